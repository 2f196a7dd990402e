"""What the thesis prints of single applications, each number beside what our models say: the points
of its tables, the best configurations at 3,500 W, and figures 5.2 and 5.3."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from odonata.provisioning.applications import (
    SOCKETS,
    UNCAPPED_W,
    Application,
    Estimate,
    estimate,
)
from odonata.provisioning.fitted import (
    CAB,
    MACHINES,
    PACKAGE_W,
    PRINTED,
    PRINTED_CAB,
    tables,
)
from odonata.provisioning.search import (
    PACKED_MAX,
    peak_w,
    search,
)
from odonata.provisioning.table import Point
from odonata.study.verdicts import NEAR

BOUND_W = 3500.0
BENCHMARKS = ("SPhot", "SP-MZ", "BT-MZ", "LU-MZ")
FIGURE_5_3_W = (6500.0, 8000.0, 10000.0, 12000.0, 14720.0)
"""The bounds of figure 5.3."""


# -- points


class Beside(NamedTuple):
    """A printed point, and what the model says of its configuration."""

    machine: str
    application: str
    what: str
    printed: Point
    ours: Point

    @property
    def error_s(self) -> float:
        return self.ours.seconds / self.printed.seconds - 1.0

    @property
    def error_w(self) -> float:
        return self.ours.watts / self.printed.watts - 1.0

    @property
    def holds(self) -> bool:
        """Tells whether neither its time nor its power is off by more than a tenth."""
        return max(abs(self.error_s), abs(self.error_w)) <= NEAR


def modelled(machine: str, application: str, nodes: int, cores: int, cap_w: float) -> Point:
    """Returns what the model of an application says of a configuration, measured or not."""
    found, memory = MACHINES[machine].applications[application], MACHINES[machine].grid.with_memory
    here = at(found, nodes, cores, cap_w)
    socket_w = float(here.package_w[0]) + (float(here.dram_w[0]) if memory else 0.0)
    return Point(nodes, cores, cap_w, float(here.seconds[0]), SOCKETS * nodes * socket_w)


def at(application: Application, nodes: float, cores: float, cap_w: float) -> Estimate:
    """Returns the model's estimate of one configuration, in arrays of one element."""
    return estimate(application, *(np.array([float(it)]) for it in (nodes, cores, cap_w)))


def points() -> list[Beside]:
    """Returns every printed point: tables 4.2 (rzmerl) and 5.2 (cab)."""
    found = [
        Beside("rzmerl", name, what, point, modelled("rzmerl", name, *point[:3]))
        for name, row in PRINTED.items()
        for what, point in zip(("worst case", "packed-max", "best"), row, strict=True)
    ]
    return found + [
        Beside("cab", "SP-MZ", f"C{place}", point, modelled("cab", "SP-MZ", *point[:3]))
        for place, point in enumerate(PRINTED_CAB, 1)
    ]


class Packages(NamedTuple):
    """The watts of a package of cab with 64 nodes, all cores and no cap: those that the model was
    fitted to, and the model's."""

    application: str
    wanted_w: float
    ours_w: float
    printed: bool
    """Whether the thesis prints the first, or it was chosen."""


def packages() -> list[Packages]:
    """Returns figure 5.2."""
    return [Packages(name, watts, float(at(CAB[name], 64, 16, UNCAPPED_W).package_w[0]),
                     name in ("NSC", "SP-MZ"))
            for name, watts in PACKAGE_W.items()]  # fmt: skip


class Searched(NamedTuple):
    """The printed best configuration of an application at 3,500 W, and the one that the search
    finds. `same_cap`: what the model says of the found nodes and cores under the printed cap."""

    application: str
    printed: Point
    found: Point
    same_cap: Point

    @property
    def nodes_and_cores(self) -> bool:
        return self.printed[:2] == self.found[:2]

    @property
    def ties(self) -> bool:
        """Returns whether the printed cap gives the same time and power, as neither cap binds."""
        return (math.isclose(self.same_cap.seconds, self.found.seconds, rel_tol=1e-9)
                and math.isclose(self.same_cap.watts, self.found.watts, rel_tol=1e-9))  # fmt: skip


def searched() -> list[Searched]:
    """Returns the best configurations at 3,500 W."""
    rows = []
    for name in BENCHMARKS:
        printed, found = PRINTED[name].best, search(tables("rzmerl")[name], BOUND_W).best
        assert found is not None
        same = modelled("rzmerl", name, found.nodes, found.cores, printed.cap_w)
        rows.append(Searched(name, printed, found, same))
    return rows


def overprovisioned(over: str = PACKED_MAX) -> list[tuple[str, float, float]]:
    """Returns figure 5.3: for the four and each bound of cab, in W, the share of the time that the
    best configuration saves over packed-max, or over `worst-case`: as many nodes as could all draw
    their peak."""
    found = []
    for name in BENCHMARKS:
        for bound_w in FIGURE_5_3_W:
            it = search(tables("cab")[name], bound_w, peak_w(memory_w=0.0))
            speedup = it.speedup("best", over)
            found.append((name, bound_w, 1.0 - 1.0 / speedup if speedup else math.nan))
    return found
