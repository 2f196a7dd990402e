"""What happens at an event: which agent it is for, and what that one does."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from odonata.agents import router
from odonata.agents.link import (
    ARRIVE,
    CREDIT_DUE,
    DELIVER,
    ENDED,
    GENERATE,
    PLACE,
    START,
    VC_BITS,
    WAKE,
    pump,
    repay,
    wake,
)
from odonata.agents.node import INJECTED, deliver, generate, nic_row, node_row
from odonata.agents.packet import VC_MASK
from odonata.agents.router import AGENT_BITS, ROUTERS, port_row
from odonata.agents.task import WITHIN, command, hear, learn, proceed, take_in
from pdes.events import FOREVER, agent_of, key_of, kind_of, port_of
from pdes.jit import kernel, rebound
from pdes.loop import NOW, Sim, drop_parcel
from policies.routing import Routing


def arrive(sim: Sim, state: Any, time: int, key: int, number: int, told: int) -> None:
    """Stands for that of one routing."""


@kernel
def grant(sim: Sim, state: Any, time: int, key: int, awaited: bool) -> None:
    """Grant what waits in a channel: it has only just come, or credit was `awaited` and is there,
    if this is the event that is to see to it."""
    shape, agent, port = state.shape, agent_of(key), port_of(key)
    group = agent >> shape[AGENT_BITS]
    index = agent & ((1 << shape[AGENT_BITS]) - 1)
    node, vc = index - shape[ROUTERS], port & VC_MASK
    if node < 0:
        row = port_row(shape, group, index) + (port >> VC_BITS)
    else:
        row = nic_row(shape, group, node)
    if awaited:
        if time != state.slow[row, vc, WAKE]:
            return
        state.slow[row, vc, WAKE] = FOREVER
    started = pump(sim, state, row, vc, time, key)
    if node >= 0:
        state.nodes[node_row(shape, group, node), INJECTED] += started


@kernel
def receive(sim: Sim, state: Any, time: int, key: int, room: int, b: int) -> None:
    """Credit comes from another rank."""
    shape, agent, port = state.shape, agent_of(key), port_of(key)
    router = agent & ((1 << shape[AGENT_BITS]) - 1)
    row = port_row(shape, agent >> shape[AGENT_BITS], router) + (port >> VC_BITS)
    vc = port & VC_MASK
    if repay(sim, state, row, vc, time, room, sim.ctl[NOW]):
        wake(sim, state, row, vc, time, key)


def handle(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> None:
    """Of a network under open-loop traffic."""
    kind = kind_of(key)
    if kind == ARRIVE:
        arrive(sim, state, time, key, a, b)
    elif kind == DELIVER:
        deliver(sim, state, time, key, a)
        drop_parcel(sim, a)
    else:
        ready = True
        if kind == GENERATE:
            ready = generate(sim, state, time, key)
            key = key_of(CREDIT_DUE, agent_of(key), 0)
        if ready:
            grant(sim, state, time, key, kind == CREDIT_DUE)


def handle_jobs(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> None:
    """Of one whose nodes run jobs."""
    kind = kind_of(key)
    if kind == ARRIVE:
        arrive(sim, state, time, key, a, b)
    elif kind == DELIVER:
        if port_of(key) < WITHIN:
            deliver(sim, state, time, key, a)
        take_in(sim, state, time, key, a)
    elif kind == PLACE:
        learn(sim, state, a, b)
    elif kind == START:
        command(sim, state, time, key, a, b)
    elif kind == ENDED:
        hear(sim, state, time, key, a, b)
    else:
        ready = True
        if kind == GENERATE:
            ready = proceed(sim, state, time, key)
            key = key_of(CREDIT_DUE, agent_of(key), 0)
        if ready:
            grant(sim, state, time, key, kind == CREDIT_DUE)


@lru_cache
def handler(how: Routing, jobs: bool) -> Any:
    template = handle_jobs if jobs else handle
    return kernel(rebound(template, template.__name__, arrive=router.compiled(how)))
