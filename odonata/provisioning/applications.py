"""Applications as models: the time and the power of one in any configuration.

What was measured for the thesis of T. Patki (2015) is not public, but for a few points. A model has
as many parameters as physics wants, and is fitted to those points (`fitted`).

**Time.** An application has `work`, the seconds that one node takes at all cores and 2.6 GHz. A
share of it, `memory`, waits for memory: it takes as long however many cores there are from
`saturation` cores on and whatever their frequency is, and longer when cores contend for it. The
rest computes: in inverse proportion to cores and frequency. Both divide by the number of nodes.
What does not divide is the `serial` time, and that of the all-to-all communication, which grows
with the number of nodes.

**Power.** A package draws static power, and for each core that is used `core_w` at 2.6 GHz while it
computes, which grows with a power of the frequency; while it waits, a share of that. Memory draws
more the larger the part of the time is that it is waited for.

**Frequency.** Without a cap, turbo: 3.3 GHz with up to two busy cores of a package, then 3.2, 3.1,
and 3.0 with seven or eight (P. 3.3). With a cap, turbo is off, and the frequency is the highest up
to 2.6 GHz at which the package does not draw more than the cap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.provisioning.table import Table, sorted_table

Numbers = npt.NDArray[np.float64]

SOCKETS, NODE_CORES = 2, 16
BASE_GHZ, LEAST_GHZ = 2.6, 0.6
TURBO_GHZ = {2: 3.3, 4: 3.2, 6: 3.1, 8: 3.0}
"""The frequency without a cap, by the most busy cores of a package for which it is reached."""
UNCAPPED_W = 115.0
"""The cap that stands for none: the thermal limit of the package."""
CAPS_W = (51.0, 65.0, 80.0, 95.0, UNCAPPED_W)
HALVINGS = 40


class Grid(NamedTuple):
    """The configurations in which applications were measured on a machine, and whether the power of
    memory is part of what was measured."""

    nodes: tuple[int, ...]
    cores: tuple[int, ...]
    with_memory: bool
    caps_w: tuple[float, ...] = CAPS_W


@dataclass(frozen=True)
class Application:
    """The parameters of a model; times in s, power in W per package."""

    work: float
    """Seconds of one node at all cores and 2.6 GHz."""
    memory: float = 0.0
    """The share of `work` that waits for memory."""
    saturation: float = 1.0
    """Cores of a node from which on memory is no faster."""
    contention: float = 0.0
    """By which share waiting for memory grows when all cores are used."""
    crowding: float = 4.0
    """The exponent with which contention grows with the cores that are used."""
    caching: float = 0.0
    """The exponent with which the share that waits for memory falls with the number of nodes beyond
    eight, as what each of them works on gets smaller."""
    serial: float = 0.0
    """Seconds that do not divide by nodes."""
    all_to_all: float = 0.0
    """Seconds per node of communication, which grows with the number of nodes."""
    static_w: float = 27.0
    core_w: float = 4.9
    """What a core draws that computes at 2.6 GHz."""
    waiting: float = 0.6
    """The share of `core_w` that a core draws while it waits."""
    exponent: float = 2.33
    """With which the power of a core grows with its frequency."""
    dram_w: float = 4.5
    dram_busy_w: float = 6.0
    """What memory draws at rest and, added to that, when it is waited for all the time."""


class Estimate(NamedTuple):
    """What a model says of configurations: seconds, watts of a package and of its memory, and the
    frequency."""

    seconds: Numbers
    package_w: Numbers
    dram_w: Numbers
    ghz: Numbers


def estimate(application: Application, nodes: Numbers, cores: Numbers, cap_w: Numbers) -> Estimate:
    """Returns time and power in these configurations, of which arrays have one element each."""
    a = application
    each = cores / SOCKETS
    turbo = np.select([each <= most for most in TURBO_GHZ], [*TURBO_GHZ.values()], 3.0)
    crowd = a.contention * (cores / NODE_CORES) ** a.crowding
    waiting = a.work * a.memory / nodes * np.maximum(1.0, a.saturation / cores) * (1.0 + crowd)
    waiting = waiting * (8.0 / nodes) ** a.caching
    fixed = a.serial + a.all_to_all * nodes

    def computing(ghz: Numbers) -> Numbers:
        all_cores = a.work * (1.0 - a.memory) / nodes
        return all_cores * (NODE_CORES / cores) * (BASE_GHZ / ghz)

    def package(ghz: Numbers) -> Numbers:
        busy = computing(ghz)
        share = busy / (busy + waiting + fixed)
        active = a.waiting + (1.0 - a.waiting) * share
        return a.static_w + each * a.core_w * (ghz / BASE_GHZ) ** a.exponent * active

    low, high = np.full(len(nodes), LEAST_GHZ), np.full(len(nodes), BASE_GHZ)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        fits = package(middle) <= cap_w
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    low = np.where(package(np.full(len(nodes), BASE_GHZ)) <= cap_w, BASE_GHZ, low)
    ghz = np.where(cap_w >= UNCAPPED_W, turbo, low)
    seconds = computing(ghz) + waiting + fixed
    package_w = package(ghz)
    return Estimate(seconds, package_w, a.dram_w + a.dram_busy_w * waiting / seconds, ghz)


def table_of(name: str, application: Application, grid: Grid) -> Table:
    """Returns the table that a model makes of an application on a grid."""
    nodes, cores, caps = (it.ravel() for it in np.meshgrid(grid.nodes, grid.cores, grid.caps_w))
    found = estimate(application, nodes.astype(float), cores.astype(float), caps)
    socket_w = found.package_w + (found.dram_w if grid.with_memory else 0.0)
    return sorted_table(name, nodes, cores, caps, found.seconds, SOCKETS * nodes * socket_w)
