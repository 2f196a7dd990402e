"""A router: a packet arrives, its path is chosen, and it requests a channel of its output port."""

from __future__ import annotations

from typing import Any, NamedTuple

from odonata.agents import layout as w
from odonata.agents import packet as p
from odonata.agents.layout import port_row, router_row, where
from odonata.agents.link import FEEDER_BITS, Links, another, free, queued, send
from odonata.agents.packet import (
    address,
    destination,
    group_at,
    intermediate,
    node_at,
    random_of,
    router_at,
    vc_of,
)
from odonata.agents.switch import OUT_SHIFT, Switches, free_part, join
from pdes.events import agent_of, key_of, port_of
from pdes.jit import kernel, rebound
from pdes.loop import Sim
from pdes.random import U64, below
from policies.routing.base import SIGHTS, Outlook, Routing


@kernel
def step(shape: Any, gates: Any, group: int, router: int, target: int, path: int, word: Any) -> Any:
    """Returns the port by which a packet leaves this router towards the target, the VC, and its
    path after that.

    Each leg has local VCs of its own and uses the next one for its second hop; a global hop is on
    VC 0 if it leads to an intermediate group, else on the last. So along any path channels only go
    up in one order, and no channel waits for itself; and packets that wait for a congested global
    link on the minimal path do not block packets that avoid it.
    """
    leg, locals_taken = path & p.LEG, (path & p.LOCALS) >> p.LOCAL_SHIFT
    towards = router_at(target)
    if group_at(target) != group:
        copy = 0 if shape[w.COPIES] == 1 else below(word, shape[w.COPIES])
        gate = gates[group - shape[w.FIRST_GROUP], group_at(target), copy]
        towards = gate >> w.GATE_BITS
        if towards == router:
            port = shape[w.NODES] + shape[w.ROUTERS] - 1 + (gate & ((1 << w.GATE_BITS) - 1))
            vc = 0 if leg == p.NON_MINIMAL else shape[w.LAST_GLOBAL]
            after = p.INTERMEDIATE if leg == p.NON_MINIMAL else p.FINAL
            return port, vc, (path & ~(p.LOCALS | p.LEG)) | after
    elif towards == router:
        return node_at(target), 0, path
    port = shape[w.NODES] + towards - (1 if towards > router else 0)
    vc = (shape[w.BASES + leg] + locals_taken) & shape[w.VCS_MASK]
    return port, vc, path + p.LOCAL


@kernel
def candidate(shape: Any, group: int, goal: int, word: Any) -> int:
    """Returns the address of a random intermediate router; -1 where there is none. Its group is
    neither the packet's nor its destination's; where paths lead through a group, its router number
    is 0. With `via` anywhere it is any router of the machine, and -1 if that is in the packet's own
    group."""
    router = below(another(word, 1), shape[w.ROUTERS]) if shape[w.VIA] != w.GROUP else 0
    if shape[w.VIA] == w.ANYWHERE:
        via = below(word, shape[w.GROUPS])
        return address(via, router, 0) if via != group else -1
    others = shape[w.GROUPS] - 2
    if others < 1:
        return -1
    low, high = min(group, goal), max(group, goal)
    via = below(word, others)
    via += 1 if via >= low else 0
    via += 1 if via >= high else 0
    return address(via, router, 0)


@kernel
def third_router(shape: Any, group: int, here: int, goal: int, word: Any) -> int:
    """Returns the address of a random router of the group that is neither of these two; -1 where
    there is none."""
    others = shape[w.ROUTERS] - 2
    if others < 1:
        return -1
    via = below(word, others)
    via += 1 if via >= min(here, goal) else 0
    via += 1 if via >= max(here, goal) else 0
    return address(group, via, 0)


def non_minimal(minimal: Outlook, valiant: Outlook, threshold: float, bias: int, word: int) -> bool:
    """Bound by `compiled` to the routing's own (`policies.routing.base.Routing.non_minimal`)."""
    raise AssertionError("a router of no routing")


# Bound by `compiled`:
NEVER: bool = False  # Routing.always_minimal
SEES: int = 0  # the place of Routing.sees in SIGHTS
REVISES: bool = False  # Routing.revises
DETOURS: bool = False  # Way.detours
OUTPUT_SIDE: bool = False  # Way.output_side
SWITCHED: bool = False  # whether there is a crossbar, whose queues packets `join`


def look(sim: Sim, state: Any, row: int, vc: int, now: int, alone: bool) -> Outlook:
    """Returns the state of a channel as a routing sees it. `alone`: blocked bytes are those of this
    channel, else those of all channels of the port."""
    vcs = state.slow.shape[1]
    used = 0
    for other in range(vcs):
        used += state.ports[row, 0, w.CAPACITY] - free(sim, state, row, other, now)
    if OUTPUT_SIDE:
        part = free_part(sim, state, row, vc, now)
    else:
        part = free(sim, state, row, vc, now) / state.ports[row, 0, w.CAPACITY]
    first, last = (vc, vc + 1) if alone else (0, vcs)
    return Outlook(queued(state, row, now, first, last), part, used)


def first_channel(
    state: Any, group: int, router: int, target: int, path: int, word: Any
) -> tuple[int, int]:
    """Returns the port row and the VC by which a packet would go towards another group: those at
    this router (SEES is 1), or those of the global link out of the group (SEES is 2)."""
    shape = state.shape
    if SEES == 2 and group_at(target) != group:
        copy = 0 if shape[w.COPIES] == 1 else below(word, shape[w.COPIES])
        router = state.gates[group - shape[w.FIRST_GROUP], group_at(target), copy] >> w.GATE_BITS
    port, vc, _ = step(shape, state.gates, group, router, target, path, word)
    return port_row(shape, group, router) + port, vc


def choose(sim: Sim, state: Any, group: int, router: int, packet: Any, path: int, now: int) -> int:
    """Returns the packet's path: non-minimal if the routing decides so, else unchanged."""
    shape, goal = state.shape, destination(packet)
    within = group_at(goal) == group
    if within and (not DETOURS or router_at(goal) == router):
        return path
    drawn = another(packet[p.RANDOM], 2 + ((path & p.LOCALS) >> p.LOCAL_SHIFT))
    if within:
        mid = third_router(shape, group, router, router_at(goal), drawn)
    else:
        mid = candidate(shape, group, group_at(goal), drawn)
    if mid < 0:
        return path
    leg = p.MINIMAL if within else p.NON_MINIMAL
    diverted = (path & ~(p.LEG | p.LOCALS)) | leg
    diverted |= p.TO_INTERMEDIATE | p.AVOIDS | (mid << p.MID_SHIFT)
    if SEES == 0:
        minimal = valiant = Outlook(0, 0.0, 0)
    else:
        cable = random_of(packet)
        row, vc = first_channel(state, group, router, goal, path, cable)
        other_row, other_vc = first_channel(state, group, router, mid, diverted, cable)
        minimal = look(sim, state, row, vc, now, row == other_row)
        valiant = look(sim, state, other_row, other_vc, now, row == other_row)
    word = int(another(drawn, 3))
    wanted = non_minimal(minimal, valiant, state.threshold[0], shape[w.BIAS], word)
    return diverted if wanted else path


def arrive(sim: Sim, state: Any, time: int, key: int, number: int, summary: int) -> None:
    """Handle a packet whose head has passed the router's pipeline: choose its path and output port,
    and request the channel there. `summary` is the packet's `brief`."""
    shape, came = state.shape, port_of(key)
    group, router = where(shape, key)
    row = port_row(shape, group, router)
    packet = sim.pool.rows[number]
    path, target = (summary & ((1 << p.MID_SHIFT) - 1)) + p.VISIT, summary >> p.MID_SHIFT
    vc_in = vc_of(path)
    if path & p.TO_INTERMEDIATE:
        mid = intermediate(packet)
        if group_at(mid) == group and (shape[w.VIA] == w.GROUP or router_at(mid) == router):
            path -= p.TO_INTERMEDIATE
            if DETOURS and path & p.LEG == p.MINIMAL:
                path = (path & ~(p.LEG | p.LOCALS)) | p.NON_MINIMAL
        else:
            path |= mid << p.MID_SHIFT
            target = mid
    elif not NEVER and (came < shape[w.NODES] or (REVISES and path & p.LEG == p.MINIMAL)):
        path = choose(sim, state, group, router, packet, path, time)
        if path & p.TO_INTERMEDIATE:
            target = path >> p.MID_SHIFT
    word = random_of(packet) if shape[w.COPIES] > 1 else U64(0)
    port, vc, path = step(shape, state.gates, group, router, target, path, word)
    link = 0 if came < shape[w.NODES] else 1 if came < shape[w.NODES] + shape[w.ROUTERS] - 1 else 2
    feeder = packet[p.CAME] if packet[p.CAME] else (row + came) << FEEDER_BITS
    packet[p.CAME] = feeder | (link << w.VC_BITS) | vc_in
    packet[p.TAIL] += time
    path |= packet[p.PATH] & p.SENDER
    if SWITCHED:
        packet[p.CAME] |= port << OUT_SHIFT
        packet[p.PATH] = (path & ~(p.VC_MASK << p.VC_SHIFT)) | (vc << p.VC_SHIFT)
        join(sim, state, router_row(shape, group, router), row, came, vc_in, number, time,
             agent_of(key))  # fmt: skip
    else:
        packet[p.PATH] = path
        send(sim, state, row + port, vc, number, time,
             key_of(w.CREDIT_DUE, agent_of(key), (port << w.VC_BITS) | vc))  # fmt: skip


class Way(NamedTuple):
    """How routers choose, beside the routing: whether paths within a group have alternatives, and
    whether the free part of a buffer is that of the router's own output buffer."""

    detours: bool = False
    output_side: bool = False


def compiled(routing: Routing, links: Links, switches: Switches | None, way: Way) -> Any:
    """Returns `arrive` for one routing."""
    names: dict[str, Any] = {
        "SEES": SIGHTS.index(routing.sees),
        "NEVER": routing.always_minimal,
        "REVISES": routing.revises,
        "DETOURS": way.detours,
        "OUTPUT_SIDE": way.output_side,
        "SWITCHED": switches is not None,
        "non_minimal": routing.non_minimal,
        **links._asdict(),
    }
    if switches is not None:
        names["join"] = switches.join
    for template in (look, first_channel, choose, arrive):
        name = template.__name__
        names[name] = kernel(rebound(template, name, **names))
    return names["arrive"]
