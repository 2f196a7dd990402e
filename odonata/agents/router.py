"""A router: a packet arrives, its way is chosen, it wants a channel of the port it leaves by."""

from __future__ import annotations

from typing import Any

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
    where,
)
from odonata.agents.link import FEEDER_BITS, another, free, queued, send
from odonata.agents.packet import (
    AWAY,
    BETWEEN,
    CAME,
    DETOUR,
    LAST_LEG,
    LEG,
    LOCAL,
    LOCAL_SHIFT,
    LOCALS,
    LUCK,
    MID_SHIFT,
    PATH,
    STRAIGHT,
    TAIL,
    VISIT,
    address,
    destination,
    group_at,
    luck_of,
    node_at,
    router_at,
    vc_of,
)
from pdes.events import agent_of, key_of, port_of
from pdes.jit import kernel, rebound
from pdes.loop import Sim
from pdes.random import U64, below
from policies.routing.base import SIGHTS, Outlook, Routing


@kernel
def step(shape: Any, gates: Any, group: int, router: int, target: int, path: int, luck: Any) -> Any:
    """From this router towards the target: by which port, on which VC, and the path after that.

    Each leg has local VCs of its own, and goes on to the next if it makes a second hop; a global
    hop is on VC 0 if it leads to an intermediate group, else on the last. So along any way channels
    only go up in one order, and none waits for itself; and who waits for a crowded cable on the
    straight way is in nobody's way who avoids it.
    """
    leg, locals_taken = path & LEG, (path & LOCALS) >> LOCAL_SHIFT
    towards = router_at(target)
    if group_at(target) != group:
        copy = 0 if shape[COPIES] == 1 else below(luck, shape[COPIES])
        gate = gates[group - shape[FIRST_GROUP], group_at(target), copy]
        towards = gate >> GATE_BITS
        if towards == router:
            port = shape[NODES] + shape[ROUTERS] - 1 + (gate & ((1 << GATE_BITS) - 1))
            vc = 0 if leg == AWAY else shape[LAST_GLOBAL]
            return port, vc, (path & ~(LOCALS | LEG)) | (BETWEEN if leg == AWAY else LAST_LEG)
    elif towards == router:
        return node_at(target), 0, path
    port = shape[NODES] + towards - (1 if towards > router else 0)
    vc = (shape[BASES + leg] + locals_taken) & shape[VCS_MASK]
    return port, vc, path + LOCAL


@kernel
def candidate(shape: Any, group: int, goal: int, luck: Any) -> int:
    """A random router (of a random group, where detours are by a group) in neither the packet's
    group nor its destination's; -1 where there is none. Where detours lead anywhere, a random
    router of the whole machine; -1 where that is in the packet's own group."""
    router = below(another(luck, 1), shape[ROUTERS]) if shape[VIA] != GROUP else 0
    if shape[VIA] == ANYWHERE:
        via = below(luck, shape[GROUPS])
        return address(via, router, 0) if via != group else -1
    others = shape[GROUPS] - 2
    if others < 1:
        return -1
    low, high = min(group, goal), max(group, goal)
    via = below(luck, others)
    via += 1 if via >= low else 0
    via += 1 if via >= high else 0
    return address(via, router, 0)


def non_minimal(minimal: Outlook, valiant: Outlook, threshold: float, bias: int, word: int) -> bool:
    """Stands for the routing's own, as the constants below do."""
    raise AssertionError("a router of no routing")


NEVER, SEES, REVISES = False, 0, False


@kernel
def look(sim: Sim, state: Any, row: int, vc: int, now: int, alone: bool) -> Outlook:
    """How a channel looks; its queue alone, or that of the whole port."""
    vcs = state.slow.shape[1]
    used = 0
    for other in range(vcs):
        used += state.ports[row, 0, CAPACITY] - free(sim, state, row, other, now)
    part = free(sim, state, row, vc, now) / state.ports[row, 0, CAPACITY]
    first, last = (vc, vc + 1) if alone else (0, vcs)
    return Outlook(queued(state, row, now, first, last), part, used)


def first_channel(
    state: Any, group: int, router: int, target: int, path: int, luck: Any
) -> tuple[int, int]:
    """By which port row and VC a packet would go towards another group: from this router (sees 1),
    or out of the group (sees 2)."""
    shape = state.shape
    if SEES == 2:
        copy = 0 if shape[COPIES] == 1 else below(luck, shape[COPIES])
        router = state.gates[group - shape[FIRST_GROUP], group_at(target), copy] >> GATE_BITS
    port, vc, _ = step(shape, state.gates, group, router, target, path, luck)
    return port_row(shape, group, router) + port, vc


def choose(sim: Sim, state: Any, group: int, router: int, packet: Any, path: int, now: int) -> int:
    """The path, with a detour on it if the routing wants one here."""
    shape, goal = state.shape, destination(packet)
    if group_at(goal) == group:
        return path
    luck = another(packet[LUCK], 2 + ((path & LOCALS) >> LOCAL_SHIFT))
    mid = candidate(shape, group, group_at(goal), luck)
    if mid < 0:
        return path
    away = (path & ~(LEG | LOCALS)) | AWAY | DETOUR | (mid << MID_SHIFT)
    if SEES == 0:
        minimal = valiant = Outlook(0, 0.0, 0)
    else:
        cable = luck_of(packet)
        row, vc = first_channel(state, group, router, goal, path, cable)
        other_row, other_vc = first_channel(state, group, router, mid, away, cable)
        minimal = look(sim, state, row, vc, now, row == other_row)
        valiant = look(sim, state, other_row, other_vc, now, row == other_row)
    word = int(another(luck, 3))
    wanted = non_minimal(minimal, valiant, state.threshold[0], shape[BIAS], word)
    return away if wanted else path


def arrive(sim: Sim, state: Any, time: int, key: int, number: int, told: int) -> None:
    """The head of a packet is through the router's pipeline; `told` is its `brief`."""
    shape, came = state.shape, port_of(key)
    group, router = where(shape, key)
    row = port_row(shape, group, router)
    packet = sim.pool.rows[number]
    path, target = (told & ((1 << MID_SHIFT) - 1)) + VISIT, told >> MID_SHIFT
    vc_in = vc_of(path)
    if path & DETOUR:
        mid = packet[PATH] >> MID_SHIFT
        if group_at(mid) == group and (shape[VIA] == GROUP or router_at(mid) == router):
            path -= DETOUR
        else:
            path |= mid << MID_SHIFT
            target = mid
    elif not NEVER and (came < shape[NODES] or (REVISES and path & LEG == STRAIGHT)):
        path = choose(sim, state, group, router, packet, path, time)
        if path & DETOUR:
            target = path >> MID_SHIFT
    luck = luck_of(packet) if shape[COPIES] > 1 else U64(0)
    port, vc, path = step(shape, state.gates, group, router, target, path, luck)
    link = 0 if came < shape[NODES] else 1 if came < shape[NODES] + shape[ROUTERS] - 1 else 2
    feeder = packet[CAME] if packet[CAME] else (row + came) << FEEDER_BITS
    packet[CAME] = feeder | (link << VC_BITS) | vc_in
    packet[TAIL] += time
    packet[PATH] = path
    send(sim, state, row + port, vc, number, time,
         key_of(CREDIT_DUE, agent_of(key), (port << VC_BITS) | vc))  # fmt: skip


def compiled(routing: Routing) -> Any:
    """`arrive` for one routing."""
    about = {"SEES": SIGHTS.index(routing.sees), "non_minimal": routing.non_minimal}
    ahead = kernel(rebound(first_channel, "first_channel", **about))
    chosen = kernel(rebound(choose, "choose", first_channel=ahead, **about))
    return kernel(
        rebound(
            arrive,
            "arrive",
            choose=chosen,
            NEVER=routing.always_minimal,
            REVISES=routing.revises,
        )
    )
