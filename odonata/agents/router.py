"""A router: a packet arrives, its path is chosen, and it requests a channel of its output port."""

from __future__ import annotations

from typing import Any, NamedTuple

from odonata.agents.layout import (
    ANYWHERE,
    BASES,
    BIAS,
    CAPACITY,
    COPIES,
    CREDIT_DUE,
    FIRST_GROUP,
    GATE_BITS,
    GROUP,
    GROUPS,
    LAST_GLOBAL,
    NODES,
    ROUTERS,
    VC_BITS,
    VCS_MASK,
    VIA,
    port_row,
    router_row,
    where,
)
from odonata.agents.link import FEEDER_BITS, Links, another, free, queued, send
from odonata.agents.packet import (
    AVOIDS,
    CAME,
    FINAL,
    INTERMEDIATE,
    LEG,
    LOCAL,
    LOCAL_SHIFT,
    LOCALS,
    MID_SHIFT,
    MINIMAL,
    NON_MINIMAL,
    PATH,
    RANDOM,
    SENDER,
    TAIL,
    TO_INTERMEDIATE,
    VC_MASK,
    VC_SHIFT,
    VISIT,
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
    leg, locals_taken = path & LEG, (path & LOCALS) >> LOCAL_SHIFT
    towards = router_at(target)
    if group_at(target) != group:
        copy = 0 if shape[COPIES] == 1 else below(word, shape[COPIES])
        gate = gates[group - shape[FIRST_GROUP], group_at(target), copy]
        towards = gate >> GATE_BITS
        if towards == router:
            port = shape[NODES] + shape[ROUTERS] - 1 + (gate & ((1 << GATE_BITS) - 1))
            vc = 0 if leg == NON_MINIMAL else shape[LAST_GLOBAL]
            return (
                port,
                vc,
                (path & ~(LOCALS | LEG)) | (INTERMEDIATE if leg == NON_MINIMAL else FINAL),
            )
    elif towards == router:
        return node_at(target), 0, path
    port = shape[NODES] + towards - (1 if towards > router else 0)
    vc = (shape[BASES + leg] + locals_taken) & shape[VCS_MASK]
    return port, vc, path + LOCAL


@kernel
def candidate(shape: Any, group: int, goal: int, word: Any) -> int:
    """Returns the address of a random intermediate router; -1 where there is none. Its group is
    neither the packet's nor its destination's; where paths lead through a group, its router number
    is 0. With `via` anywhere it is any router of the machine, and -1 if that is in the packet's own
    group."""
    router = below(another(word, 1), shape[ROUTERS]) if shape[VIA] != GROUP else 0
    if shape[VIA] == ANYWHERE:
        via = below(word, shape[GROUPS])
        return address(via, router, 0) if via != group else -1
    others = shape[GROUPS] - 2
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
    others = shape[ROUTERS] - 2
    if others < 1:
        return -1
    via = below(word, others)
    via += 1 if via >= min(here, goal) else 0
    via += 1 if via >= max(here, goal) else 0
    return address(group, via, 0)


def non_minimal(minimal: Outlook, valiant: Outlook, threshold: float, bias: int, word: int) -> bool:
    """Stands for the kernel of one routing, as the constants below stand for its properties."""
    raise AssertionError("a router of no routing")


NEVER, SEES, REVISES, DETOURS, OUTPUT_SIDE, SWITCHED = False, 0, False, False, False, False


def look(sim: Sim, state: Any, row: int, vc: int, now: int, alone: bool) -> Outlook:
    """Returns the state of a channel as a routing sees it. `alone`: blocked bytes are those of this
    channel, else those of all channels of the port."""
    vcs = state.slow.shape[1]
    used = 0
    for other in range(vcs):
        used += state.ports[row, 0, CAPACITY] - free(sim, state, row, other, now)
    if OUTPUT_SIDE:
        part = free_part(sim, state, row, vc, now)
    else:
        part = free(sim, state, row, vc, now) / state.ports[row, 0, CAPACITY]
    first, last = (vc, vc + 1) if alone else (0, vcs)
    return Outlook(queued(state, row, now, first, last), part, used)


def first_channel(
    state: Any, group: int, router: int, target: int, path: int, word: Any
) -> tuple[int, int]:
    """Returns the port row and the VC by which a packet would go towards another group: those at
    this router (SEES is 1), or those of the global link out of the group (SEES is 2)."""
    shape = state.shape
    if SEES == 2 and group_at(target) != group:
        copy = 0 if shape[COPIES] == 1 else below(word, shape[COPIES])
        router = state.gates[group - shape[FIRST_GROUP], group_at(target), copy] >> GATE_BITS
    port, vc, _ = step(shape, state.gates, group, router, target, path, word)
    return port_row(shape, group, router) + port, vc


def choose(sim: Sim, state: Any, group: int, router: int, packet: Any, path: int, now: int) -> int:
    """Returns the packet's path: non-minimal if the routing decides so, else unchanged."""
    shape, goal = state.shape, destination(packet)
    within = group_at(goal) == group
    if within and (not DETOURS or router_at(goal) == router):
        return path
    drawn = another(packet[RANDOM], 2 + ((path & LOCALS) >> LOCAL_SHIFT))
    if within:
        mid = third_router(shape, group, router, router_at(goal), drawn)
    else:
        mid = candidate(shape, group, group_at(goal), drawn)
    if mid < 0:
        return path
    leg = MINIMAL if within else NON_MINIMAL
    diverted = (path & ~(LEG | LOCALS)) | leg | TO_INTERMEDIATE | AVOIDS | (mid << MID_SHIFT)
    if SEES == 0:
        minimal = valiant = Outlook(0, 0.0, 0)
    else:
        cable = random_of(packet)
        row, vc = first_channel(state, group, router, goal, path, cable)
        other_row, other_vc = first_channel(state, group, router, mid, diverted, cable)
        minimal = look(sim, state, row, vc, now, row == other_row)
        valiant = look(sim, state, other_row, other_vc, now, row == other_row)
    word = int(another(drawn, 3))
    wanted = non_minimal(minimal, valiant, state.threshold[0], shape[BIAS], word)
    return diverted if wanted else path


def arrive(sim: Sim, state: Any, time: int, key: int, number: int, summary: int) -> None:
    """Handle a packet whose head has passed the router's pipeline: choose its path and output port,
    and request the channel there. `summary` is the packet's `brief`."""
    shape, came = state.shape, port_of(key)
    group, router = where(shape, key)
    row = port_row(shape, group, router)
    packet = sim.pool.rows[number]
    path, target = (summary & ((1 << MID_SHIFT) - 1)) + VISIT, summary >> MID_SHIFT
    vc_in = vc_of(path)
    if path & TO_INTERMEDIATE:
        mid = intermediate(packet)
        if group_at(mid) == group and (shape[VIA] == GROUP or router_at(mid) == router):
            path -= TO_INTERMEDIATE
            if DETOURS and path & LEG == MINIMAL:
                path = (path & ~(LEG | LOCALS)) | NON_MINIMAL
        else:
            path |= mid << MID_SHIFT
            target = mid
    elif not NEVER and (came < shape[NODES] or (REVISES and path & LEG == MINIMAL)):
        path = choose(sim, state, group, router, packet, path, time)
        if path & TO_INTERMEDIATE:
            target = path >> MID_SHIFT
    word = random_of(packet) if shape[COPIES] > 1 else U64(0)
    port, vc, path = step(shape, state.gates, group, router, target, path, word)
    link = 0 if came < shape[NODES] else 1 if came < shape[NODES] + shape[ROUTERS] - 1 else 2
    feeder = packet[CAME] if packet[CAME] else (row + came) << FEEDER_BITS
    packet[CAME] = feeder | (link << VC_BITS) | vc_in
    packet[TAIL] += time
    path |= packet[PATH] & SENDER
    if SWITCHED:
        packet[CAME] |= port << OUT_SHIFT
        packet[PATH] = (path & ~(VC_MASK << VC_SHIFT)) | (vc << VC_SHIFT)
        join(sim, state, router_row(shape, group, router), row, came, vc_in, number, time,
             agent_of(key))  # fmt: skip
    else:
        packet[PATH] = path
        send(sim, state, row + port, vc, number, time,
             key_of(CREDIT_DUE, agent_of(key), (port << VC_BITS) | vc))  # fmt: skip


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
