"""The eight applications of the thesis on its two machines, as models fitted to what it prints.

The tables themselves are not public. `PRINTED` has the points that are: those of class C (SPhot
with 8,192 runs) were measured on rzmerl, those of class D (SPhot with 16,384 runs) on cab. A model
is fitted to the points of one machine, never to both. `scripts/fit_applications.py` finds the
parameters again; docs/overprovisioning.md has the error of every point.

**Fitted**: SPhot, SP-MZ, BT-MZ and LU-MZ of rzmerl, and SP-MZ of cab. **Chosen**: all others. For
the NAS benchmarks of cab `work` follows from the definition of their classes (class D has 15.7
times the points of class C, and 1.2 or 1.25 times the iterations), for SPhot from its number of
runs; `core_w` is such that a package draws with 64 nodes, all cores and no cap what figure 5.2
shows (66 W for NSC, 93 W for SP-MZ, 81 W on average), and the contention of LU-MZ such that the
best configuration is as much faster than the worst case as figure 5.3 shows (34 % at most, 11 % on
average). The synthetic ones differ as their names say: (not) scalable, bound by CPU or by memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from odonata.provisioning.applications import Application, Grid, table_of
from odonata.provisioning.table import Point, Table
from pdes.errors import Refused

RZMERL = {
    "SPhot": Application(
        work=1017.0, memory=0.03478, serial=0.1209, static_w=24.79, core_w=5.672, exponent=2.355,
        dram_w=3.223,
    ),
    "BT-MZ": Application(
        work=93.89, memory=0.1036, saturation=4.836, contention=2.251, crowding=6.156,
        serial=0.949, static_w=31.36, core_w=6.52, waiting=0.6721, exponent=2.269,
    ),
    "SP-MZ": Application(
        work=47.25, memory=0.4069, saturation=5.998, contention=5.571, crowding=25.59,
        serial=1.444, static_w=31.84, core_w=7.378, waiting=0.4536, exponent=1.878,
    ),
    "LU-MZ": Application(
        work=149.6, memory=0.6059, saturation=3.847, contention=1.67, crowding=1.0, serial=0.4775,
        static_w=24.38, core_w=6.618, waiting=0.7472, exponent=2.361,
    ),
    "SC": Application(work=800.0),
    "NSC": Application(work=300.0, serial=2.0, all_to_all=0.15, core_w=3.9),
    "SM": Application(work=800.0, memory=0.8, saturation=16.0, core_w=5.8),
    "NSM": Application(
        work=300.0, memory=0.8, saturation=8.0, contention=0.3, crowding=6.0, serial=4.0,
        all_to_all=0.25, core_w=5.8,
    ),
}  # fmt: skip
CAB = {
    "SPhot": Application(work=2034.0, serial=0.1, core_w=5.11),
    "BT-MZ": Application(
        work=1842.0, memory=0.35, saturation=6.0, contention=0.3, crowding=6.0, serial=2.0,
        core_w=6.777,
    ),
    "SP-MZ": Application(
        work=2663.0, memory=0.4106, saturation=6.0, contention=0.01159, crowding=1.0,
        caching=0.7096, serial=0.06787, static_w=18.0, core_w=7.733, waiting=0.1064,
    ),
    "LU-MZ": Application(
        work=2816.0, memory=0.45, saturation=5.0, contention=0.9, crowding=4.0, serial=3.0,
        core_w=7.059,
    ),
    "SC": Application(work=2000.0, core_w=4.926),
    "NSC": Application(work=1000.0, serial=10.0, all_to_all=0.5, core_w=5.01),
    "SM": Application(work=2000.0, memory=0.8, saturation=16.0, core_w=6.538),
    "NSM": Application(
        work=1000.0, memory=0.8, saturation=8.0, contention=0.2, serial=10.0, all_to_all=0.5,
        core_w=6.81,
    ),
}  # fmt: skip


class Measured(NamedTuple):
    """A machine of the thesis: its applications, its grid, and the bounds that were studied."""

    applications: Mapping[str, Application]
    grid: Grid
    bounds_w: tuple[float, ...]


MACHINES = MappingProxyType({
    "rzmerl": Measured(
        MappingProxyType(RZMERL),
        Grid(tuple(range(8, 33, 2)), tuple(range(4, 17, 2)), with_memory=True),
        (2500.0, 3000.0, 3500.0, 4000.0, 4500.0, math.inf),
    ),
    "cab": Measured(
        MappingProxyType(CAB),
        Grid(tuple(range(8, 65, 4)), tuple(range(8, 17, 2)), with_memory=False),
        (6500.0, 8000.0, 10000.0, 12000.0, 14000.0, 14720.0),
    ),
})  # fmt: skip


class Row(NamedTuple):
    """Three printed points of an application at 3,500 W (table 4.2): in the absolute worst case, of
    the packed-max configuration, and of the best one."""

    worst: Point
    packed_max: Point
    best: Point


PRINTED = MappingProxyType({
    "SPhot": Row(Point(12, 16, 115, 74.3, 2183), Point(18, 16, 115, 49.5, 3264),
                 Point(32, 16, 51, 39.8, 3478)),
    "SP-MZ": Row(Point(12, 16, 115, 13.9, 1975), Point(20, 16, 115, 9.1, 3240),
                 Point(26, 12, 80, 3.6, 3497)),
    "BT-MZ": Row(Point(12, 16, 115, 9.9, 2398), Point(16, 16, 115, 7.3, 3232),
                 Point(30, 14, 51, 6.1, 3418)),
    "LU-MZ": Row(Point(12, 16, 115, 25.3, 2228), Point(18, 16, 115, 16.5, 3308),
                 Point(32, 8, 95, 9.4, 3497)),
})  # fmt: skip
PRINTED_CAB = (Point(6, 16, 115, 447.9, 796.4), Point(8, 12, 65, 415.3, 783.8),
               Point(8, 10, 80, 439.2, 738.2))  # fmt: skip
"""The configurations of SP-MZ in the worked example (table 5.2)."""
PACKAGE_W = MappingProxyType({
    "SPhot": 84.0, "BT-MZ": 88.0, "SP-MZ": 93.0, "LU-MZ": 85.0, "SC": 82.0, "NSC": 66.0, "SM": 76.0,
    "NSM": 74.0,
})  # fmt: skip
"""What a package of cab draws with 64 nodes, all cores and no cap: 66 and 93 W are printed (P1039),
and so is the mean of all, 81 W; how the others differ is chosen."""


@cache
def tables(machine: str) -> Mapping[str, Table]:
    """Returns the tables of all applications on a machine of the thesis, by name."""
    found = MACHINES.get(machine)
    if found is None:
        raise Refused(f"machine = {machine}: one of {', '.join(MACHINES)}")
    return MappingProxyType({name: table_of(name, application, found.grid)
                             for name, application in found.applications.items()})  # fmt: skip
