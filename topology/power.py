"""The watts of a network: what its routers and its cables draw without traffic, and at full load.

A preset has one `NetworkPower` (`topology.presets`), with the sources of its numbers. A router is
one chip with all of its logic, its SerDes included and the transceivers of its cables excluded. A
cable is counted once, with both of its ends and both of its directions. What is plugged into a node
(its network adapter) is part of the node.

Links are never switched off: a cable draws its idle power all the time. In each of its directions
it draws half of the difference to its active power while that direction sends. A router draws its
idle power all the time, and of the difference to its active power as large a part as the mean
utilisation of its ports, each in the direction in which the router sends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from topology.dragonfly import Dragonfly, refuse
from topology.settings import Broken, Setting, check, required

CABLES = ("terminal", "local", "global")
"""The kinds of cables, in the order in which a router has its ports."""
PARTS = ("router", *CABLES)


def _watts(about: str) -> dict[str, Setting]:
    return required("power", about, otherwise="the machine's")


class NetworkJoules(NamedTuple):
    """The energy of all routers, and of all cables of each kind."""

    router_j: float
    terminal_j: float
    local_j: float
    global_j: float

    @property
    def total_j(self) -> float:
        return self.router_j + self.terminal_j + self.local_j + self.global_j


@dataclass(frozen=True)
class NetworkPower:
    """The power of one router, and of one cable of each kind with both of its ends and both of its
    directions, in watts: idle without traffic, active at full load of all ports or of both
    directions. `source` says where the numbers are from, and which were chosen."""

    router_idle_w: float = field(
        metadata=_watts("Power of a router without traffic, its cables aside.")
    )
    router_active_w: float = field(
        metadata=_watts("Power of a router with all ports at full load.")
    )
    terminal_idle_w: float = field(
        metadata=_watts("Power of a cable to a node, both ends, without traffic.")
    )
    terminal_active_w: float = field(
        metadata=_watts("Power of a cable to a node, full in both directions.")
    )
    local_idle_w: float = field(
        metadata=_watts("Power of a local cable, both ends, without traffic.")
    )
    local_active_w: float = field(
        metadata=_watts("Power of a local cable, full in both directions.")
    )
    global_idle_w: float = field(
        metadata=_watts("Power of a global cable, both ends, without traffic.")
    )
    global_active_w: float = field(
        metadata=_watts("Power of a global cable, full in both directions.")
    )
    source: str

    def __post_init__(self) -> None:
        problems = [*check(self)]
        wrong = {problem.fields[0] for problem in problems}
        for part in PARTS:
            idle, active = (f"{part}_idle_w", f"{part}_active_w")
            least, given = getattr(self, idle), getattr(self, active)
            if wrong.isdisjoint((idle, active)) and given < least:
                rule = f"at least {idle} = {least:g}: traffic does not lower the power"
                problems.append(Broken((active, idle), f"{active} = {given:g}", rule))
        if not isinstance(self.source, str) or not self.source.strip():
            given = f"source = {self.source!r}"
            problems.append(Broken(("source",), given, "say where the watts are from"))
        refuse(problems)

    def watts(self, part: str) -> tuple[float, float]:
        """Returns the idle and the active power of one 'router', or of one 'terminal', 'local' or
        'global' cable."""
        return getattr(self, f"{part}_idle_w"), getattr(self, f"{part}_active_w")

    def idle_w(self, machine: Dragonfly) -> float:
        """Returns the power of the whole network without traffic."""
        return sum(count * self.watts(part)[0] for part, count in _counts(machine).items())

    def peak_w(self, machine: Dragonfly) -> float:
        """Returns the power of the whole network with every cable full in both directions."""
        return sum(count * self.watts(part)[1] for part, count in _counts(machine).items())

    def energy_j(
        self,
        machine: Dragonfly,
        duration_s: float,
        router_load: npt.ArrayLike | None = None,
        busy_s: Mapping[str, float] | None = None,
    ) -> NetworkJoules:
        """Returns the energy of a network over a time.

        `router_load` has for each router the mean utilisation of its ports, from 0 to 1; None is no
        load. `busy_s` has for each kind of cable, 'terminal', 'local' and 'global', for how long
        directions were in use, summed over all cables and both directions: a cable that is full
        both ways counts twice the duration. A kind that is left out carried nothing.
        """
        counts, busy = _counts(machine), dict(busy_s or {})
        load = np.zeros(0) if router_load is None else np.asarray(router_load, float)
        _check(duration_s, load, busy, counts)
        idle, active = self.watts("router")
        loaded_s = duration_s * math.fsum(load.tolist())
        joules = [counts["router"] * idle * duration_s + (active - idle) * loaded_s]
        for kind in CABLES:
            idle, active = self.watts(kind)
            sending_s = busy.get(kind, 0.0)
            joules.append(counts[kind] * idle * duration_s + (active - idle) / 2 * sending_s)
        return NetworkJoules(*joules)


def _counts(machine: Dragonfly) -> dict[str, int]:
    return {"router": machine.n_routers, **machine.n_links}


def _check(
    duration_s: float,
    load: npt.NDArray[np.float64],
    busy_s: Mapping[str, float],
    counts: Mapping[str, int],
) -> None:
    """Raise ValueError where the network cannot have been used like this. A millionth more than all
    of the time is taken for rounding."""
    full = 1 + 1e-6
    if not 0 <= duration_s < math.inf:
        raise ValueError(f"duration_s = {duration_s}: a finite number of seconds, at least 0")
    if load.size and load.shape != (counts["router"],):
        raise ValueError(f"router_load of shape {load.shape}: one for each of the machine's "
                         f"{counts['router']} routers")  # fmt: skip
    if not ((load >= 0) & (load <= full)).all():
        raise ValueError("router_load: mean utilisations of ports, from 0 to 1")
    for kind, seconds in busy_s.items():
        if kind not in CABLES:
            raise ValueError(f"busy_s of {kind!r}: one of {', '.join(CABLES)}")
        most = 2 * counts[kind] * duration_s
        if not 0 <= seconds <= most * full:
            raise ValueError(f"busy_s of {kind} cables = {seconds}: from 0 to {most}, the two "
                             f"directions of {counts[kind]} cables for {duration_s} s")  # fmt: skip


IDLE_PART = 0.95
"""What is left of a router's active power without traffic, where only the latter is published."""
_IDLE = (
    "idle, 95 % of that, is chosen: a switch with all links on varied by 5 % with its load "
    "(B. Heller et al., ElasticTree, talk at NSDI 2010)"
)
_LASERS = "idle as active, for links stay on without traffic (H. Han et al., arXiv:2112.02083)"
ROSETTA_W, ROSETTA_PORTS = 250.0, 64
_ROSETTA = (
    "Rosetta, 64 ports of 200 Gbit/s: up to 250 W (D. De Sensi et al., An In-Depth Analysis of the "
    "Slingshot Interconnect, SC20; 250 W also for the switches of Frontier in ExaDigiT/RAPS, "
    "config/frontier.yaml)"
)
COPPER_W = 2 * 0.1
_COPPER = (
    "copper of 200 Gbit/s: at most 0.1 W (NVIDIA MCP1650-V0xxEyy product specifications), taken as "
    "per end"
)
FIBRE_200G_W = 2 * 10.0 / 2
_FIBRE_200G = (
    "fibre of 200 Gbit/s: half of a QSFP56-DD active optical cable of 400 Gbit/s, less than 10 W "
    "per end (Fluxlight QSFP56-DD-QSFP56-DD-AOC), for one carries two links"
)
FIBRE_56G_W = 2 * 1.5
_FIBRE_56G = (
    "fibre of 56 Gbit/s: an active optical cable of four lanes of 14 Gbit/s, less than 1.5 W per "
    "end (Finisar FCBN414QB1Cxx)"
)
FDR = 7e9
"""The bandwidth of these four lanes, in bytes per second and direction."""

SLINGSHOT = NetworkPower(
    router_idle_w=IDLE_PART * ROSETTA_W,
    router_active_w=ROSETTA_W,
    terminal_idle_w=COPPER_W,
    terminal_active_w=COPPER_W,
    local_idle_w=COPPER_W,
    local_active_w=COPPER_W,
    global_idle_w=FIBRE_200G_W,
    global_active_w=FIBRE_200G_W,
    source=f"router: {_ROSETTA}; {_IDLE}. Terminal and local cables: {_COPPER}. Global cables: "
    f"{_FIBRE_200G}; {_LASERS}",
)

ARIES = NetworkPower(
    router_idle_w=IDLE_PART * 100.0,
    router_active_w=100.0,
    terminal_idle_w=0.0,
    terminal_active_w=0.0,
    local_idle_w=0.0,
    local_active_w=0.0,
    global_idle_w=3 / 4 * FIBRE_56G_W,
    global_active_w=3 / 4 * FIBRE_56G_W,
    source="router: 100 W per Aries, its four network adapters included, is chosen: Cray gives no "
    "figure that we could read; G. Fourestey et al. (arXiv:1408.2657) measured the Aries network "
    f"of an XC30 and could correct it; {_IDLE}. Terminal and local cables: 0 W is chosen, for they "
    "are traces of blades and backplanes, and passive copper. Global cables: three lanes each way "
    f"of 12.5 Gbit/s, taken as three quarters of {_FIBRE_56G}; {_LASERS}",
)


def generic(machine: Dragonfly) -> NetworkPower:
    """Returns the power of a network for which none is published: a router with as many ports as
    this machine's, dark ones included, each of which draws what a port of a Slingshot switch does,
    whatever its rate; copper in the group, and fibre outside of it."""
    router_w = ROSETTA_W / ROSETTA_PORTS * machine.radix
    slow = machine.global_.bandwidth <= FDR
    fibre_w, fibre = (FIBRE_56G_W, _FIBRE_56G) if slow else (FIBRE_200G_W, _FIBRE_200G)
    return NetworkPower(
        router_idle_w=IDLE_PART * router_w,
        router_active_w=router_w,
        terminal_idle_w=COPPER_W,
        terminal_active_w=COPPER_W,
        local_idle_w=COPPER_W,
        local_active_w=COPPER_W,
        global_idle_w=fibre_w,
        global_active_w=fibre_w,
        source="generic, as nothing is published for this machine. Router: "
        f"{ROSETTA_W / ROSETTA_PORTS:.3g} W per port, whatever its rate, is chosen, as in a "
        f"{_ROSETTA}; {_IDLE}. Terminal and local cables: chosen, as {_COPPER}. Global cables: "
        f"chosen, as {fibre}; {_LASERS}",
    )
