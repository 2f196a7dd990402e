"""The handler of events: which agent an event is for, and what that agent does."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from odonata.agents import ejection, link, node, power, router, task, tracing
from odonata.agents import switch as switching
from odonata.agents.ejection import drain
from odonata.agents.flows import span_at
from odonata.agents.layout import (
    ARRIVE,
    BY_BYTES,
    BY_HOPS,
    BY_LATENCY,
    BY_NON_MINIMAL,
    BY_NON_MINIMAL_HOPS,
    BY_PACKETS,
    CAP,
    COMPUTED,
    CREDIT_DUE,
    DELIVER,
    ENDED,
    F_INJECTED,
    FIRST_GROUP,
    GENERATE,
    INJECTED,
    JOB,
    METER,
    PACKETWISE,
    PAUSED,
    PLACE,
    REACH,
    RECEIVED,
    REPORT,
    REST,
    RESTING,
    ROUTERS,
    SAMPLE,
    START,
    STEP,
    SWITCH,
    TELL,
    VC_BITS,
    WAITING,
    WAKE,
    WITHIN,
    nic_row,
    node_at_key,
    node_row,
    port_row,
    where,
)
from odonata.agents.link import Links, pump, repay, wake
from odonata.agents.node import deliver
from odonata.agents.packet import (
    AVOIDS,
    BORN,
    PATH,
    RANDOM,
    SIZE,
    SLOT_MASK,
    TO_SHIFT,
    VC_MASK,
    VISIT_MASK,
    VISIT_SHIFT,
)
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
    node, vc = index - shape[ROUTERS], port & VC_MASK
    if node < 0:
        row = port_row(shape, group, index) + (port >> VC_BITS)
    else:
        row = nic_row(shape, group, node)
    if awaited:
        if time != state.slow[row, vc, WAKE]:
            return
        state.slow[row, vc, WAKE] = FOREVER
    waiting = state.slow[row, vc, WAITING] if node >= 0 else 0
    started = pump(sim, state, row, vc, time, key)
    if node >= 0:
        sent = waiting - state.slow[row, vc, WAITING]
        own = group - shape[FIRST_GROUP]
        state.flows[own, span_at(state, own, time), F_INJECTED] += sent
        state.nodes[node_row(shape, group, node), INJECTED] += started
        if HALF_DUPLEX:
            drain(sim, state, time, key)


HALF_DUPLEX, SWITCHED = False, False


def receive(sim: Sim, state: Any, time: int, key: int, room: int, b: int) -> None:
    """Note credit that comes from another rank."""
    shape, port = state.shape, port_of(key)
    group, router = where(shape, key)
    row = port_row(shape, group, router) + (port >> VC_BITS)
    vc = port & VC_MASK
    if repay(sim, state, row, vc, time, room, sim.ctl[NOW]):
        wake(sim, state, row, vc, time, key)


@kernel
def nothing(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> bool:
    """Stands for what a network does not have."""
    return False


arrive = proceed = command = generate = switch = reach = nothing
"""Stand for those of one routing and of one set of patterns."""


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
    if port_of(key) < WITHIN:
        which = deliver(sim, state, time, key, number)
        if packet[RANDOM] >= 0:
            _, _, row = node_at_key(state.shape, key)
            job = state.slots[row, (packet[RANDOM] >> TO_SHIFT) & SLOT_MASK, JOB]
            tally, path = state.by_job[job], packet[PATH]
            visited = (path >> VISIT_SHIFT) & VISIT_MASK
            tally[BY_PACKETS] += 1
            tally[BY_BYTES] += packet[SIZE]
            tally[BY_LATENCY] += time - packet[BORN]
            tally[BY_HOPS] += visited
            if path & AVOIDS:
                tally[BY_NON_MINIMAL] += 1
                tally[BY_NON_MINIMAL_HOPS] += visited
            if which >= 0 and state.job_latencies.shape[0] > 0:
                state.job_latencies[job, which] += 1
    if packet[RANDOM] < 0:
        drop_parcel(sim, number)
    else:
        match(sim, state, time, key, number)


@kernel
def hand_over_and_count(sim: Sim, state: Any, time: int, key: int, number: int) -> None:
    """Do the same, and count the bytes that a job's tasks receive from other nodes."""
    packet = sim.pool.rows[number]
    if port_of(key) < WITHIN and packet[RANDOM] >= 0:
        _, _, row = node_at_key(state.shape, key)
        state.holding[row, RECEIVED] += packet[SIZE]
    hand_over(sim, state, time, key, number)


accept = drop


def work(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> bool:
    """Handle an event of a task or of the scheduler. Returns whether the task's node has a message
    that may go at once."""
    kind = kind_of(key)
    if kind == PLACE:
        learn(sim, state, a, b)
    elif kind == START:
        command(sim, state, time, key, a, b)
    elif kind == ENDED:
        hear(sim, state, time, key, a, b)
    else:
        return proceed(sim, state, time, key)  # type: ignore[call-arg]
    return False


ordinary = nothing
"""Stands for `work`, in `work_under_caps` and `work_with_telemetry`."""


def work_under_caps(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> bool:
    """Do the same where nodes draw power."""
    kind = kind_of(key)
    if kind == CAP:
        cap(sim, state, time, key, a, b)
    elif kind == METER:
        read_meter(sim, state, time, key)
    elif kind == REPORT:
        note_report(sim, state, time, key, a, b)
    elif kind == REST:
        state.metering[RESTING] = 1
    else:
        if kind == STEP and a == COMPUTED:
            pause = computed(state, time, key, b)
            if pause > 0:
                schedule(sim, time + pause, key, PAUSED, 0)
            if pause != 0:
                return False
        return ordinary(sim, state, time, key, a, b)
    return False


def work_with_telemetry(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> bool:
    """Do what `ordinary` does where counters are reported to the scheduler."""
    kind = kind_of(key)
    if kind == SAMPLE:
        sample(sim, state, time, key)
    elif kind == TELL:
        note_reading(state, time, key, a, b)
    else:
        return ordinary(sim, state, time, key, a, b)
    return False


def handle(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> None:
    """Handle any event that is not decided in Python."""
    kind = kind_of(key)
    if kind == ARRIVE:
        arrive(sim, state, time, key, a, b)
    elif kind == DELIVER:
        accept(sim, state, time, key, a)
        if HALF_DUPLEX:
            drain(sim, state, time, key)
    elif SWITCHED and kind == SWITCH:
        switch(sim, state, time, key)  # type: ignore[call-arg]
    elif HALF_DUPLEX and kind == REACH:
        reach(sim, state, time, key, a)  # type: ignore[call-arg]
    else:
        ready = True
        if kind != CREDIT_DUE:
            if kind == GENERATE:
                ready = generate(sim, state, time, key)  # type: ignore[call-arg]
            else:
                ready = work(sim, state, time, key, a, b)
            key = key_of(CREDIT_DUE, agent_of(key), 0)
        if ready:
            grant(sim, state, time, key, kind == CREDIT_DUE)


@kernel
def no_messages(sim: Sim, state: Any, time: int, key: int) -> bool:
    """Stands for open-loop traffic, where there is none."""
    return False


class Routers(NamedTuple):
    """What is inside of routers, and what nodes accept: when room is given back (of CREDITS);
    whether there is a crossbar, and output buffers behind it; how routers choose; and how nodes
    accept packets (`odonata.agents.ejection`); whether their own have a choice of channels; and
    whether packets are traced (`odonata.agents.tracing`)."""

    credits: int = PACKETWISE
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
