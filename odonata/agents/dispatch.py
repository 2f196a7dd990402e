"""The handler of events: which agent an event is for, and what that agent does."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from odonata.agents import ejection, link, node, power, router, task, tracing
from odonata.agents import layout as w
from odonata.agents import packet as p
from odonata.agents import switch as switching
from odonata.agents.ejection import drain
from odonata.agents.flows import span_at
from odonata.agents.layout import nic_row, node_at_key, node_row, port_row, where
from odonata.agents.link import Links, pump, repay, wake
from odonata.agents.node import deliver
from odonata.agents.power import cap, computed, note_report, read_meter
from odonata.agents.reports import note_reading, sample
from odonata.agents.router import Way
from odonata.agents.task import hear, learn, match
from pdes.events import FOREVER, agent_of, key_of, kind_of, port_of
from pdes.jit import kernel, rebound
from pdes.loop import NOW, Sim, drop_parcel, schedule
from policies.routing import Routing


def grant(sim: Sim, state: Any, time: int, key: int, awaited: bool) -> None:
    """Grant what waits in a channel: it has only just come, or credit was `awaited` and is there,
    if this is the event that serves it."""
    shape, port = state.shape, port_of(key)
    group, index = where(shape, key)
    node, vc = index - shape[w.ROUTERS], port & p.VC_MASK
    if node < 0:
        row = port_row(shape, group, index) + (port >> w.VC_BITS)
    else:
        row = nic_row(shape, group, node)
    if awaited:
        if time != state.slow[row, vc, w.WAKE]:
            return
        state.slow[row, vc, w.WAKE] = FOREVER
    waiting = state.slow[row, vc, w.WAITING] if node >= 0 else 0
    started = pump(sim, state, row, vc, time, key)
    if node >= 0:
        sent = waiting - state.slow[row, vc, w.WAITING]
        own = group - shape[w.FIRST_GROUP]
        state.flows[own, span_at(state, own, time), w.F_INJECTED] += sent
        state.nodes[node_row(shape, group, node), w.INJECTED] += started
        if HALF_DUPLEX:
            drain(sim, state, time, key)


# Bound by `handler`:
HALF_DUPLEX: bool = False  # Routers.ejection is HALF
SWITCHED: bool = False  # Routers.crossbar


def receive(sim: Sim, state: Any, time: int, key: int, room: int, b: int) -> None:
    """Note credit that comes from another rank."""
    shape, port = state.shape, port_of(key)
    group, router = where(shape, key)
    row = port_row(shape, group, router) + (port >> w.VC_BITS)
    vc = port & p.VC_MASK
    if repay(sim, state, row, vc, time, room, sim.ctl[NOW]):
        wake(sim, state, row, vc, time, key)


@kernel
def nothing(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> bool:
    """Stands for what a network does not have."""
    return False


Handler = Callable[..., bool]
"""A kernel that handles events: of sim, state, time, key and as many of their words as it needs."""

# Bound by `handler`:
arrive: Handler = nothing  # router.compiled(...); of traced packets, tracing.arrive around it
proceed: Handler = nothing  # task.kernels(...).proceed
command: Handler = nothing  # task.kernels(...).command
generate: Handler = nothing  # node.generator(...), or no_messages
switch: Handler = nothing  # switch.kernels(...).switch
reach: Handler = nothing  # ejection.kernels(...).reach
ordinary: Handler = nothing  # `work`, or in work_with_telemetry also work_under_caps


@kernel
def drop(sim: Sim, state: Any, time: int, key: int, number: int) -> None:
    """Count a packet where there is nothing but open-loop traffic."""
    deliver(sim, state, time, key, number)
    drop_parcel(sim, number)


@kernel
def hand_over(sim: Sim, state: Any, time: int, key: int, number: int) -> None:
    """Count a packet, unless it never left its node, and give it to the task that it is for, if it
    is for one."""
    packet = sim.pool.rows[number]
    if port_of(key) < w.WITHIN:
        which = deliver(sim, state, time, key, number)
        if packet[p.RANDOM] >= 0:
            _, _, row = node_at_key(state.shape, key)
            job = state.slots[row, (packet[p.RANDOM] >> p.TO_SHIFT) & p.SLOT_MASK, w.JOB]
            tally, path = state.by_job[job], packet[p.PATH]
            visited = (path >> p.VISIT_SHIFT) & p.VISIT_MASK
            tally[w.BY_PACKETS] += 1
            tally[w.BY_BYTES] += packet[p.SIZE]
            tally[w.BY_LATENCY] += time - packet[p.BORN]
            tally[w.BY_HOPS] += visited
            if path & p.AVOIDS:
                tally[w.BY_NON_MINIMAL] += 1
                tally[w.BY_NON_MINIMAL_HOPS] += visited
            if which >= 0 and state.job_latencies.shape[0] > 0:
                state.job_latencies[job, which] += 1
    if packet[p.RANDOM] < 0:
        drop_parcel(sim, number)
    else:
        match(sim, state, time, key, number)


@kernel
def hand_over_and_count(sim: Sim, state: Any, time: int, key: int, number: int) -> None:
    """Do the same, and count the bytes that a job's tasks receive from other nodes."""
    packet = sim.pool.rows[number]
    if port_of(key) < w.WITHIN and packet[p.RANDOM] >= 0:
        _, _, row = node_at_key(state.shape, key)
        state.holding[row, w.RECEIVED] += packet[p.SIZE]
    hand_over(sim, state, time, key, number)


# Bound by `handler`: of jobs hand_over or hand_over_and_count; and tracing.accept around it.
accept: Callable[..., None] = drop


def work(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> bool:
    """Handle an event of a task or of the scheduler. Returns whether the task's node has a message
    that may go at once."""
    kind = kind_of(key)
    if kind == w.PLACE:
        learn(sim, state, a, b)
    elif kind == w.START:
        command(sim, state, time, key, a, b)
    elif kind == w.ENDED:
        hear(sim, state, time, key, a, b)
    else:
        return proceed(sim, state, time, key)
    return False


def work_under_caps(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> bool:
    """Do the same where nodes draw power."""
    kind = kind_of(key)
    if kind == w.CAP:
        cap(sim, state, time, key, a, b)
    elif kind == w.METER:
        read_meter(sim, state, time, key)
    elif kind == w.REPORT:
        note_report(sim, state, time, key, a, b)
    elif kind == w.METERS_OFF:
        state.metering[w.METERS_ARE_OFF] = 1
    else:
        if kind == w.STEP and a == w.COMPUTED:
            pause = computed(state, time, key, b)
            if pause > 0:
                schedule(sim, time + pause, key, w.PAUSED, 0)
            if pause != 0:
                return False
        return ordinary(sim, state, time, key, a, b)
    return False


def work_with_telemetry(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> bool:
    """Do what `ordinary` does where counters are reported to the scheduler."""
    kind = kind_of(key)
    if kind == w.SAMPLE:
        sample(sim, state, time, key)
    elif kind == w.TELL:
        note_reading(state, time, key, a, b)
    else:
        return ordinary(sim, state, time, key, a, b)
    return False


def handle(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> None:
    """Handle any event that is not decided in Python."""
    kind = kind_of(key)
    if kind == w.ARRIVE:
        arrive(sim, state, time, key, a, b)
    elif kind == w.DELIVER:
        accept(sim, state, time, key, a)
        if HALF_DUPLEX:
            drain(sim, state, time, key)
    elif SWITCHED and kind == w.SWITCH:
        switch(sim, state, time, key)
    elif HALF_DUPLEX and kind == w.REACH:
        reach(sim, state, time, key, a)
    else:
        ready = True
        if kind != w.CREDIT_DUE:
            if kind == w.GENERATE:
                ready = generate(sim, state, time, key)
            else:
                ready = work(sim, state, time, key, a, b)
            key = key_of(w.CREDIT_DUE, agent_of(key), 0)
        if ready:
            grant(sim, state, time, key, kind == w.CREDIT_DUE)


@kernel
def no_messages(sim: Sim, state: Any, time: int, key: int) -> bool:
    """Stands for open-loop traffic, where there is none."""
    return False


class Routers(NamedTuple):
    """What is inside of routers, and what nodes accept: when room is given back (of CREDITS);
    whether there is a crossbar, and output buffers behind it; how routers choose; and how nodes
    accept packets (`odonata.agents.ejection`); whether their own have a choice of channels; and
    whether packets are traced (`odonata.agents.tracing`)."""

    credits: int = w.PACKETWISE
    crossbar: bool = False
    buffered: bool = False
    way: Way = Way()
    ejection: int = ejection.ALWAYS
    lanes: bool = False
    traced: bool = False

    @property
    def plain(self) -> bool:
        """Tells whether routers are ideal and nodes accept everything."""
        return not self.crossbar and self.ejection == ejection.ALWAYS


@lru_cache
def link_kernels(inside: Routers) -> Links:
    """Returns the kernels of links between such routers."""
    others: tuple[Any, ...] = ()
    if inside.crossbar:
        others = switching.BUFFERS if inside.buffered else switching.NO_BUFFERS
    if inside.ejection == ejection.FULL:
        others = (*others, ejection.eject)
    around = (tracing.launch,) if inside.traced else ()
    return link.kernels(inside.credits, others, inside.lanes, around)


@lru_cache
def receiver(inside: Routers) -> Any:
    """Returns `receive` for such routers."""
    return kernel(rebound(receive, "receive", **link_kernels(inside)._asdict()))


@lru_cache
def handler(
    how: Routing,
    traffic: tuple[Any, ...] | None,
    patterns: tuple[Any, ...] | None,
    powered: bool = False,
    inside: Routers = Routers(),  # noqa: B008
    reported: bool = False,
) -> Any:
    """Returns `handle` for a routing, for traffic (None: there is none; else the patterns that
    plug-ins bring, as kernels) and for jobs (likewise), whose nodes draw power or not; and whose
    scheduler has reports of the network or not."""
    links = link_kernels(inside)
    switches = None
    if inside.crossbar:
        around = (tracing.cross,) if inside.traced else ()
        switches = switching.kernels(links, inside.buffered, around)
    names: dict[str, Any] = {
        "arrive": router.compiled(how, links, switches, inside.way),
        "work": nothing,
        "SWITCHED": inside.crossbar,
        "HALF_DUPLEX": inside.ejection == ejection.HALF,
        **links._asdict(),
    }
    if switches is not None:
        names["switch"] = switches.switch
    if inside.ejection == ejection.HALF:
        names |= ejection.kernels(links)._asdict()
    names["grant"] = kernel(rebound(grant, "grant", **names))
    names["generate"] = no_messages if traffic is None else node.generator(traffic)
    if patterns is not None:
        tasks = task.kernels(patterns, power.HOOKS if powered else None)
        names["work"] = kernel(rebound(work, "work", **tasks._asdict()))
        names["accept"] = hand_over_and_count if powered else hand_over
        if powered:
            both = rebound(work_under_caps, "work_under_caps", ordinary=names["work"])
            names["work"] = kernel(both)
        if reported:
            both = rebound(work_with_telemetry, "work_with_telemetry", ordinary=names["work"])
            names["work"] = kernel(both)
    if inside.traced:
        names |= tracing.kernels(names["arrive"], names.get("accept", drop))
    return kernel(rebound(handle, "handle", **names))
