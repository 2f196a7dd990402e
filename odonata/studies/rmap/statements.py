"""The statements of the thesis about single applications, each beside what our models say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from odonata.provisioning.applications import SOCKETS, UNCAPPED_W
from odonata.provisioning.fitted import PACKAGE_W, PRINTED, PRINTED_CAB, RZMERL, tables
from odonata.provisioning.scaling import fitted_line
from odonata.provisioning.search import (
    PACKED_MAX,
    PACKED_MIN,
    SPREAD_MAX,
    SPREAD_MIN,
    UNLIMITED,
    best_at_each_n,
    search,
)
from odonata.provisioning.table import Point
from odonata.studies.rmap.printed import BENCHMARKS, BOUND_W, at, overprovisioned, packages

NEAR, NEAR_SHARE, NEAR_POINTS = 0.10, 0.2, 0.05
"""A printed number holds if ours is off by no more than a tenth of it; a share by which one is
faster than another, by no more than a fifth of it or five percentage points."""
SPEEDUPS = {2500.0: 0.738, 3000.0: 0.556, 3500.0: 0.672, 4000.0: 0.509}
"""Printed: by how much the best configurations of the four are faster than packed-max, on average,
by bound in W."""
LINES = {"SPhot": (-1.114, 73.07), "SP-MZ": (-0.112, 7.0), "BT-MZ": (-0.069, 8.5),
         "LU-MZ": (-0.542, 25.93)}  # fmt: skip
"""Table 4.8: slope and intercept of the time over the number of nodes."""
FITTED = (
    *(f"3.3: {name}, one node, {cores} cores: package" for name in ("SPhot", "BT-MZ")
      for cores in (4, 16)),
    "3.4, 2,500 W: SP-MZ: best faster", "3.4, 2,500 W: SP-MZ: spread-max faster",
    *(f"3.4, 3,500 W: {name}: packed-max" for name in BENCHMARKS),
    "3.4, 3,500 W: SP-MZ: best faster", "4.2, 3,500 W", "3.4, unlimited: SP-MZ: best faster",
    "3.4, unlimited: SP-MZ: spread-max faster",
    "3.4, unlimited: LU-MZ: best faster than spread-max",
    "table 4.8", "figure 5.2", "figure 5.3: time that the best saves over packed-max",
)  # fmt: skip
"""How the names of statements begin that `scripts/fit_applications.py` uses, or that follow from
what it uses."""
LINE_FROM, LINE_AT = 12, (18, 30)
"""Chosen: the fewest nodes through which lines are drawn, those of the worst case at 3,500 W; the
thesis does not give its range. Lines hold where their times at these two numbers of nodes do, at
which table 4.9 uses them."""
POINTS_C, POINTS_D = 480 * 320 * 28, 1632 * 1216 * 34
"""Of the grids of NPB-MZ, classes C and D."""
ITERATIONS = {"BT-MZ": (200, 250), "SP-MZ": (400, 500), "LU-MZ": (250, 300)}
"""Of its benchmarks, in classes C and D."""


# -- statements


class Statement(NamedTuple):
    """A statement of the thesis, and what our models say; `holds` is None where they were made to
    agree with it, or where nothing is claimed."""

    where: str
    about: str
    printed: str
    ours: str
    holds: bool | None
    fitted: bool = False
    """Whether the models were fitted to it, or to the points that it follows from: that it holds is
    then no test of them."""

    @property
    def name(self) -> str:
        return f"{self.where}: {self.about}"


def statements() -> list[Statement]:
    """Returns all that is printed of single applications and that our models can answer."""
    found = [*_one_node(), *_at_2500(), *_at_3500(), *_unlimited(), *_all_bounds(), *_cab()]
    return [it._replace(fitted=it.name.startswith(FITTED)) for it in found]


def _one_node() -> Iterator[Statement]:
    where = "3.3"
    for name, cores, printed_w in (("SPhot", 4, 44.6), ("SPhot", 16, 82.1), ("BT-MZ", 4, 54.5),
                                   ("BT-MZ", 16, 105.7)):  # fmt: skip
        ours = float(at(RZMERL[name], 1, cores, UNCAPPED_W).package_w[0])
        yield _near(where, f"{name}, one node, {cores} cores: package", printed_w, ours, "{:.1f} W")
    for cores, printed_w in ((4, 4.9), (16, 5.7)):
        ours = float(at(RZMERL["SPhot"], 1, cores, UNCAPPED_W).dram_w[0])
        yield _near(where, f"SPhot, one node, {cores} cores: memory", printed_w, ours, "{:.1f} W")
    for name, low, high in (("SP-MZ", 0.103, 0.103), ("BT-MZ", 0.07, 0.08), ("LU-MZ", 0.07, 0.08)):
        here = at(RZMERL[name], 1, 16, UNCAPPED_W)
        share = float((here.dram_w / (here.dram_w + here.package_w))[0])
        holds = low * (1 - NEAR) <= share <= high * (1 + NEAR)
        text = f"{100 * low:g} %" if low == high else f"{100 * low:g} .. {100 * high:g} %"
        yield Statement(where, f"{name}, one node, 16 cores: memory's share of the power", text,
                        f"{100 * share:.1f} %", holds)  # fmt: skip
    for name, printed in (("SP-MZ", 0.213), ("SPhot", 0.171)):
        slow, fast = (float(at(RZMERL[name], 1, 16, cap_w).seconds[0]) for cap_w in (51, 85))
        yield _ratio(where, f"{name}, one node, 16 cores: faster at 85 W than at 51 W", printed,
                     slow / fast)  # fmt: skip


def _at_2500() -> Iterator[Statement]:
    where, found = "3.4, 2,500 W", {it: search(table, 2500.0)
                                    for it, table in tables("rzmerl").items()}  # fmt: skip
    one = found["SP-MZ"]
    yield _configuration(where, "SP-MZ: best", (22, 8, 80), one.best)
    yield _configuration(where, "SP-MZ: packed-max", (12, 16, 115), one.forms[PACKED_MAX])
    printed = PRINTED["SP-MZ"].worst
    more_w = printed.watts / printed.nodes * 14
    yield Statement(where, "SP-MZ: what 14 nodes would draw, by the printed point of 12",
                    "more than 2,500 W", f"{more_w:,.0f} W", more_w > 2500)  # fmt: skip
    yield _configuration(where, "SP-MZ: fastest canonical, spread-min", (28, 4, 51),
                         one.forms[SPREAD_MIN])  # fmt: skip
    yield _ratio(where, "SP-MZ: best faster than spread-min", 0.22, one.speedup("best", SPREAD_MIN))
    yield _times(where, "SP-MZ: spread-max faster than packed-max", 2.16, one.speedup(SPREAD_MAX))
    one = found["SPhot"]
    yield _ratio(where, "SPhot: spread-min slower than packed-min", 0.645,
                 one.speedup(PACKED_MIN, SPREAD_MIN))  # fmt: skip
    yield _ratio(where, "SPhot: packed-max slower than packed-min", 0.298,
                 one.speedup(PACKED_MIN, PACKED_MAX))  # fmt: skip
    yield _times(where, "NSC: spread-max slower than packed-max", 2.36,
                 found["NSC"].speedup(PACKED_MAX, SPREAD_MAX))  # fmt: skip
    yield _above(where, "SC: spread-min slower than packed-min", 2.0,
                 found["SC"].speedup(PACKED_MIN, SPREAD_MIN))  # fmt: skip
    yield _ratio(where, "LU-MZ: spread-max and spread-min differ by", 0.08,
                 _apart(found["LU-MZ"].speedup(SPREAD_MAX, SPREAD_MIN)))  # fmt: skip
    others = [name for name, it in found.items()
              if it.best is not None and it.best not in it.forms.values()]  # fmt: skip
    expected = ["BT-MZ", "SP-MZ", "LU-MZ", "NSM"]
    yield Statement(where, "best is no canonical configuration", "BT-, SP-, LU-MZ, NSM",
                    ", ".join(others), set(others) == set(expected))  # fmt: skip


def _at_3500() -> Iterator[Statement]:
    where, found = "3.4, 3,500 W", {it: search(table, BOUND_W)
                                    for it, table in tables("rzmerl").items()}  # fmt: skip
    for name in BENCHMARKS:
        printed = PRINTED[name].packed_max
        yield _configuration(where, f"{name}: packed-max", printed[:3],
                             found[name].forms[PACKED_MAX])  # fmt: skip
    yield _times(where, "SP-MZ: best faster than packed-max", 2.49, found["SP-MZ"].speedup("best"))
    yield _ratio(where, "LU-MZ: spread-max and spread-min differ by", 0.16,
                 _apart(found["LU-MZ"].speedup(SPREAD_MAX, SPREAD_MIN)))  # fmt: skip
    where = "4.2, 3,500 W"
    four = [found[name] for name in BENCHMARKS]
    wasted = float(np.mean([it.wasted("worst-case") for it in four]))
    yield Statement(where, "wasted in the worst case", "37 %", f"{100 * wasted:.1f} %",
                    abs(wasted - 0.37) <= 0.02)  # fmt: skip
    wasted = float(np.mean([it.wasted("best") for it in four]))
    yield Statement(where, "wasted by the best", "< 1 %", f"{100 * wasted:.1f} %", wasted < 0.01)
    for name in BENCHMARKS:
        row = PRINTED[name]
        yield _times(where, f"{name}: best faster than the worst case",
                     row.worst.seconds / row.best.seconds,
                     found[name].speedup("best", "worst-case"))  # fmt: skip
        yield _times(where, f"{name}: degree of overprovisioning", row.best.nodes / 12,
                     found[name].degree)  # fmt: skip


def _unlimited() -> Iterator[Statement]:
    where, found = "3.4, unlimited", {it: search(table, UNLIMITED)
                                      for it, table in tables("rzmerl").items()}  # fmt: skip
    one = found["SP-MZ"]
    yield _configuration(where, "SP-MZ: best", (32, 14, 115), one.best)
    yield _ratio(where, "SP-MZ: best faster than spread-max", 0.72, one.speedup("best", SPREAD_MAX))
    yield _ratio(where, "SP-MZ: spread-max faster than packed-max", 0.15, one.speedup(SPREAD_MAX))
    one = found["LU-MZ"]
    yield _configuration(where, "LU-MZ: best", (32, 8, 115), one.best)
    yield _above(where, "LU-MZ: best faster than packed-max", 2.0, one.speedup("best"))
    yield _ratio(where, "LU-MZ: best faster than spread-max", 0.17, one.speedup("best", SPREAD_MAX))
    other = [name for name, it in found.items() if it.best != it.forms[PACKED_MAX]]
    yield Statement(where, "packed-max is not the best for", "3 of 8",
                    f"{len(other)} of 8: {', '.join(other)}", len(other) == 3)  # fmt: skip
    packed = found["BT-MZ"].forms[PACKED_MAX]
    yield _near(where, "BT-MZ on 32 nodes, all cores", 6350.0, packed.watts if packed else math.nan,
                "{:,.0f} W")  # fmt: skip


def _all_bounds() -> Iterator[Statement]:
    rzmerl = tables("rzmerl")
    for bound_w, printed in SPEEDUPS.items():
        ours = [search(rzmerl[name], bound_w).speedup("best") or math.nan for name in BENCHMARKS]
        yield _ratio("3.4", f"the four at {bound_w:,.0f} W: best faster than packed-max", printed,
                     float(np.mean(ours)))  # fmt: skip
    every = [search(table, bound_w).speedup("best") or math.nan
             for table in rzmerl.values() for bound_w in SPEEDUPS]  # fmt: skip
    yield _times("3", "all eight, four bounds: best faster than packed-max, most", 2.63, max(every))
    yield _times("3", "and on average", 1.47, float(np.mean(every)))
    one = search(rzmerl["SP-MZ"], 4500.0)
    yield _above("3.4, 4,500 W", "SP-MZ: best faster than packed-max", 2.0, one.speedup("best"))
    for name, (slope, intercept) in LINES.items():
        for least in (8, LINE_FROM):
            found = [it for it in best_at_each_n(rzmerl[name], BOUND_W) if it.nodes >= least]
            line, error = fitted_line([it.nodes for it in found], [it.seconds for it in found], 48)
            off = [line.time_s(n) / (slope * n + intercept) - 1.0 for n in LINE_AT]
            yield Statement("table 4.8", f"{name}: slope, intercept, from {least} nodes on",
                            f"{slope:g}, {intercept:g}", f"{line.slope:.3f}, {line.intercept:.2f} "
                            f"(error {100 * error:.0f} %)", None if least == 8
                            else max(map(abs, off)) <= NEAR)  # fmt: skip


def _cab() -> Iterator[Statement]:
    drawn = [it.ours_w for it in packages()]
    yield Statement("figure 5.2", "package: least, most, mean", "66, 93, 81 W",
                    f"{min(drawn):.1f}, {max(drawn):.1f}, {np.mean(drawn):.1f} W", None
                    )  # fmt: skip
    for over, words in ((PACKED_MAX, "packed-max"), ("worst-case", "nodes at their peak")):
        gains = [gain for _, _, gain in overprovisioned(over)]
        yield Statement("figure 5.3", f"time that the best saves over {words}: most, mean",
                        "34, 11 %", f"{100 * max(gains):.0f}, {100 * np.mean(gains):.0f} %", None
                        )  # fmt: skip
    first, packed = PRINTED_CAB[0], PRINTED["SP-MZ"].worst
    once, more = ITERATIONS["SP-MZ"]
    ours = first.seconds * first.nodes / (packed.seconds * packed.nodes)
    work = POINTS_D / POINTS_C * more / once
    yield Statement("tables 4.2, 5.2", "SP-MZ, 16 cores uncapped: node-seconds of 5.2 to 4.2",
                    "class C: 1", f"{ours:.1f}; class D to C: {work:.1f}",
                    False)  # fmt: skip
    yield Statement("table 5.2", "SP-MZ, 6 nodes: package", "",
                    f"{first.watts / (SOCKETS * first.nodes):.1f} W; on 64 nodes "
                    f"{PACKAGE_W['SP-MZ']:g} W", None)  # fmt: skip


# -- how a statement is held against ours


def _near(where: str, about: str, printed: float, ours: float, form: str) -> Statement:
    holds = abs(ours / printed - 1.0) <= NEAR
    return Statement(where, about, form.format(printed), form.format(ours), holds)


def _ratio(where: str, about: str, printed: float, ours: float | None) -> Statement:
    """A share by which one is faster or slower; `ours` is how many times it is."""
    share = math.nan if ours is None else ours - 1.0
    return Statement(where, about, f"{100 * printed:.1f} %", f"{100 * share:.1f} %",
                     abs(share - printed) <= max(NEAR_SHARE * printed, NEAR_POINTS))  # fmt: skip


def _times(where: str, about: str, printed: float, ours: float | None) -> Statement:
    ours = math.nan if ours is None else ours
    return Statement(where, about, f"{printed:.2f} times", f"{ours:.2f} times",
                     abs(ours / printed - 1.0) <= NEAR)  # fmt: skip


def _above(where: str, about: str, printed: float, ours: float | None) -> Statement:
    ours = math.nan if ours is None else ours
    return Statement(where, about, f"> {printed:g} times", f"{ours:.2f} times", ours > printed)


def _apart(ratio: float | None) -> float | None:
    return None if ratio is None else max(ratio, 1.0 / ratio)


def _configuration(
    where: str, about: str, printed: Sequence[float], ours: Point | None
) -> Statement:
    nodes, cores, cap_w = printed
    found = "none" if ours is None else ours.name
    return Statement(where, about, f"({nodes:g}×{cores:g}, {cap_w:g})", found,
                     ours is not None and ours[:3] == tuple(printed))  # fmt: skip
