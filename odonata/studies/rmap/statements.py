"""The statements of the thesis about single applications, each beside what our models say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from odonata.provisioning.applications import CAPS_W, NODE_CORES, SOCKETS, UNCAPPED_W
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
from odonata.provisioning.table import Point, Table
from odonata.results.statistics import Interval
from odonata.studies.rmap.printed import BENCHMARKS, BOUND_W, at, overprovisioned, packages
from odonata.study.contract import Verdict
from odonata.study.verdicts import NEAR, near, verdict

SPEEDUPS = {2500.0: 0.738, 3000.0: 0.556, 3500.0: 0.672, 4000.0: 0.509}
"""Printed: by how much the best configurations of the four are faster than packed-max, on average,
by bound in W."""
LINES = {"SPhot": (-1.114, 73.07), "SP-MZ": (-0.112, 7.0), "BT-MZ": (-0.069, 8.5),
         "LU-MZ": (-0.542, 25.93)}  # fmt: skip
"""Table 4.8: slope and intercept of the time over the number of nodes."""
FITTED = (
    "3.3: BT-MZ, one node: package", "3.3: one node, 16 cores: draws the most",
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
ONE_NODE_W = 140.0
"""Chosen: the bound of a node for figure 3.7, which prints none: between what most applications
draw under the lowest cap and without any."""
LINE_BOUNDS_W = (2500.0, 3000.0, 3500.0, 4000.0, 4500.0, 6500.0)
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
    """A statement of the thesis, and what our models say; the verdict is None where nothing is
    claimed."""

    where: str
    about: str
    printed: str
    ours: str
    verdict: Verdict | None
    values: Mapping[str, float] = MappingProxyType({})
    fitted: bool = False
    """Whether the models were fitted to it, or to the points that it follows from: that it holds is
    then no test of them."""

    @property
    def name(self) -> str:
        return f"{self.where}: {self.about}"

    @property
    def source(self) -> str:
        """Returns the section, the table or the figure, of several the last."""
        words = self.where.replace("tables 4.2, 5.2", "table 5.2").split(",")[0]
        return f"Patki {words}"


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
        rounded = 0.0005 if low == high else 0.005
        holds = near(_one(share), low, rounded) or near(_one(share), high, rounded)
        text = f"{100 * low:g} %" if low == high else f"{100 * low:g} .. {100 * high:g} %"
        yield Statement(where, f"{name}, one node, 16 cores: memory's share of the power", text,
                        f"{100 * share:.1f} %", verdict(holds or low <= share <= high),
                        {"share": share})  # fmt: skip
    one, other = (at(RZMERL["BT-MZ"], 1, cores, UNCAPPED_W) for cores in (4, 16))
    for what, printed in (("package_w", 0.93), ("dram_w", 0.31)):
        grows = float(getattr(other, what)[0] / getattr(one, what)[0])
        words = "package" if what == "package_w" else "memory"
        yield _ratio(where, f"BT-MZ, one node: {words}, 16 cores against 4", printed, grows, 0.005)
    drawn = {name: float(at(it, 1, 16, UNCAPPED_W).package_w[0]) for name, it in RZMERL.items()}
    most = max(drawn, key=lambda name: drawn[name])
    yield Statement(where, "one node, 16 cores: draws the most of all", "BT-MZ, 106 W",
                    f"{most}, {drawn[most]:.1f} W",
                    verdict(most == "BT-MZ" and near(_one(drawn[most]), 106.0, 0.5),
                            most == "BT-MZ"), drawn)  # fmt: skip
    some = sum(80 <= it <= 90 for it in drawn.values())
    yield Statement(where, "one node, 16 cores: packages that draw 80 to 90 W", "most of 8",
                    f"{some} of 8", verdict(some > 4), {"applications": some})  # fmt: skip
    for name, printed in (("SP-MZ", 0.213), ("SPhot", 0.171)):
        slow, fast = (float(at(RZMERL[name], 1, 16, cap_w).seconds[0]) for cap_w in (51, 85))
        yield _ratio(where, f"{name}, one node, 16 cores: faster at 85 W than at 51 W", printed,
                     slow / fast)  # fmt: skip
    for name in ("SP-MZ", "SPhot"):
        slow, fast = (float(at(RZMERL[name], 1, 4, cap_w).seconds[0]) for cap_w in (51, 100))
        yield Statement(where, f"{name}, one node, 4 cores: slower at 51 W than at 100 W",
                        "1 .. 2 %, by RAPL's overhead", f"{100 * (slow / fast - 1):.1f} %",
                        verdict(0.009 <= slow / fast - 1 <= 0.0275),
                        {"share": slow / fast - 1})  # fmt: skip

    for name, words in (("SPhot", "all cores under a cap"), ("LU-MZ", "fewer cores, no cap")):
        cores, best_w = _best_on_one_node(name)
        packed, capped = cores == NODE_CORES, best_w < UNCAPPED_W
        held = packed and capped if name == "SPhot" else not packed and not capped
        yield Statement("figure 3.7", f"{name}, one node within {ONE_NODE_W:g} W: best", words,
                        f"{cores} cores, {f'{best_w:g} W' if capped else 'no cap'}",
                        verdict(held, packed == (name == "SPhot")))  # fmt: skip


def _best_on_one_node(name: str) -> tuple[int, float]:
    """Returns the cores and the cap with which a node is the fastest within a few watts."""
    found: list[tuple[float, int, float]] = []
    for cores in range(4, NODE_CORES + 1, 2):
        for cap_w in CAPS_W:
            it = at(RZMERL[name], 1, cores, cap_w)
            if SOCKETS * float((it.package_w + it.dram_w)[0]) <= ONE_NODE_W:
                found.append((float(it.seconds[0]), cores, cap_w))
    _, best, best_w = min(found)
    return best, best_w


def _at_2500() -> Iterator[Statement]:
    where, found = "3.4, 2,500 W", {it: search(table, 2500.0)
                                    for it, table in tables("rzmerl").items()}  # fmt: skip
    one = found["SP-MZ"]
    yield _configuration(where, "SP-MZ: best", (22, 8, 80), one.best)
    yield _configuration(where, "SP-MZ: packed-max", (12, 16, 115), one.forms[PACKED_MAX])
    printed = PRINTED["SP-MZ"].worst
    more_w = printed.watts / printed.nodes * 14
    yield Statement(where, "SP-MZ: what 14 nodes would draw, by the printed point of 12",
                    "more than 2,500 W", f"{more_w:,.0f} W", verdict(more_w > 2500),
                    {"watts": more_w})  # fmt: skip
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
                    ", ".join(others), verdict(set(others) == set(expected)))  # fmt: skip
    for name in ("SP-MZ", "BT-MZ"):
        apart = (_apart(found[name].speedup(SPREAD_MAX, SPREAD_MIN)) or math.nan) - 1.0
        yield Statement(where, f"{name}: spread-max and spread-min differ by", "negligibly",
                        f"{100 * apart:.1f} %", verdict(apart < 0.02), {"share": apart}
                        )  # fmt: skip
    for bound_w in (2500.0, BOUND_W):
        one = search(tables("rzmerl")["LU-MZ"], bound_w)
        behind = [(it.seconds / one.best.seconds if it and one.best else math.nan) - 1.0
                  for it in (one.forms[SPREAD_MAX], one.forms[SPREAD_MIN])]  # fmt: skip
        yield Statement(f"3.4, {bound_w:,.0f} W", "LU-MZ: spread slower than the best by",
                        "little", f"{100 * min(behind):.0f}, {100 * max(behind):.0f} %",
                        verdict(max(behind) <= 0.1, max(behind) < 0.5),
                        {"least": min(behind), "most": max(behind)})  # fmt: skip


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
                    verdict(near(_one(wasted), 0.37, 0.005)), {"share": wasted})  # fmt: skip
    wasted = float(np.mean([it.wasted("best") for it in four]))
    yield Statement(where, "wasted by the best", "< 1 %", f"{100 * wasted:.1f} %",
                    verdict(wasted < 0.01, wasted < 0.37), {"share": wasted})  # fmt: skip
    gains = [it.speedup("best", "worst-case") or math.nan for it in four]
    yield _times(where, "best faster than the worst case, most", 3.0, max(gains), 0.05)
    yield _times(where, "best faster than the worst case, on average", 2.8, float(np.mean(gains)),
                 0.05)  # fmt: skip
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
                    f"{len(other)} of 8: {', '.join(other)}", verdict(len(other) == 3),
                    {"applications": len(other)})  # fmt: skip
    packed = found["BT-MZ"].forms[PACKED_MAX]
    yield _near(where, "BT-MZ on 32 nodes, all cores", 6350.0, packed.watts if packed else math.nan,
                "{:,.0f} W")  # fmt: skip


def _all_bounds() -> Iterator[Statement]:
    rzmerl = tables("rzmerl")
    for bound_w, printed in SPEEDUPS.items():
        ours = [search(rzmerl[name], bound_w).speedup("best") or math.nan for name in BENCHMARKS]
        yield _ratio("3.4", f"the four at {bound_w:,.0f} W: best faster than packed-max", printed,
                     float(np.mean(ours)))  # fmt: skip
    times = [search(table, bound_w).speedup("best") or math.nan
             for table in rzmerl.values() for bound_w in SPEEDUPS]  # fmt: skip
    yield _times("3", "all eight, four bounds: best faster than packed-max, most", 2.63, max(times))
    yield _times("3", "and on average", 1.47, float(np.mean(times)))
    one = search(rzmerl["SP-MZ"], 4500.0)
    yield _share("3", "all eight: time saved, most", 0.62, max(1 - 1 / it for it in times))
    yield _share("3", "all eight: time saved, on average", 0.32, 1 - 1 / float(np.mean(times)))
    yield _above("3.4, 4,500 W", "SP-MZ: best faster than packed-max", 2.0, one.speedup("best"))
    lines: dict[int, list[float]] = {}
    for name, (slope, intercept) in LINES.items():
        for least in (8, LINE_FROM):
            found = [it for it in best_at_each_n(rzmerl[name], BOUND_W) if it.nodes >= least]
            line, error = fitted_line([it.nodes for it in found], [it.seconds for it in found], 48)
            off = [line.time_s(n) / (slope * n + intercept) - 1.0 for n in LINE_AT]
            yield Statement("table 4.8", f"{name}: slope, intercept, from {least} nodes on",
                            f"{slope:g}, {intercept:g}" * (least != 8),
                            f"{line.slope:.3f}, {line.intercept:.2f} (error {100 * error:.0f} %)",
                            None if least == 8 else verdict(max(map(abs, off)) <= NEAR,
                                         line.slope * slope > 0))  # fmt: skip
            lines.setdefault(least, []).append(error)
    mean = float(np.mean(lines[LINE_FROM]))
    yield Statement("4.4.3", "lines through the best at each number of nodes: mean error", "< 7 %",
                    f"{100 * mean:.1f} %", verdict(mean < 0.07, mean < 0.14), {"share": mean}
                    )  # fmt: skip
    slopes = []
    for name in BENCHMARKS:
        every = np.array([_line(rzmerl[name], bound_w) for bound_w in LINE_BOUNDS_W])
        slopes.append(float(np.ptp(every) / np.abs(every).max()))
    yield Statement("4.4.3", "slopes differ from 2,500 to 6,500 W by, most", "< 2 %",
                    f"{100 * max(slopes):.0f} %", verdict(max(slopes) < 0.02),
                    dict(zip(BENCHMARKS, slopes, strict=True)))  # fmt: skip


def _line(table: Table, bound_w: float) -> float:
    """Returns the slope of the line through the best times within a bound."""
    found = [it for it in best_at_each_n(table, bound_w) if it.nodes >= LINE_FROM]
    return fitted_line([it.nodes for it in found], [it.seconds for it in found], 48)[0].slope


def _cab() -> Iterator[Statement]:
    drawn = [it.ours_w for it in packages()]
    yield Statement("figure 5.2", "package: least, most, mean", "66, 93, 81 W",
                    f"{min(drawn):.1f}, {max(drawn):.1f}, {np.mean(drawn):.1f} W",
                    verdict(all(near(_one(ours), printed, 0.5) for ours, printed in zip(
                        (min(drawn), max(drawn), float(np.mean(drawn))), (66, 93, 81),
                        strict=True)))
                    )  # fmt: skip
    for over, words in ((PACKED_MAX, "packed-max"), ("worst-case", "nodes at their peak")):
        gains = [gain for _, _, gain in overprovisioned(over)]
        yield Statement("figure 5.3", f"time that the best saves over {words}: most, mean",
                        "34, 11 %", f"{100 * max(gains):.0f}, {100 * np.mean(gains):.0f} %",
                        verdict(near(_one(max(gains)), 0.34, 0.005)
                                and near(_one(float(np.mean(gains))), 0.11, 0.005),
                                min(gains) >= 0))  # fmt: skip
    first, packed = PRINTED_CAB[0], PRINTED["SP-MZ"].worst
    once, more = ITERATIONS["SP-MZ"]
    ours = first.seconds * first.nodes / (packed.seconds * packed.nodes)
    work = POINTS_D / POINTS_C * more / once
    yield Statement("tables 4.2, 5.2", "SP-MZ, 16 cores uncapped: node-seconds of 5.2 to 4.2",
                    "class C: 1", f"{ours:.1f}; class D to C: {work:.1f}",
                    Verdict.NOT)  # fmt: skip
    yield Statement("table 5.2", "SP-MZ, 6 nodes: package", "",
                    f"{first.watts / (SOCKETS * first.nodes):.1f} W; on 64 nodes "
                    f"{PACKAGE_W['SP-MZ']:g} W", None)  # fmt: skip


# -- how a statement is held against ours


def _one(value: float) -> Interval:
    """Returns what a model says, which has no chance in it, as an interval without width."""
    return Interval(value, value, value, 1)


def _near(where: str, about: str, printed: float, ours: float, form: str) -> Statement:
    digits = form.rpartition(".")[2][0]
    rounded = 0.5 * 10.0 ** -int(digits)
    return Statement(where, about, form.format(printed), form.format(ours),
                     verdict(near(_one(ours), printed, rounded)), {"value": ours})  # fmt: skip


def _ratio(
    where: str, about: str, printed: float, ours: float | None, rounded: float = 0.0005
) -> Statement:
    """A share by which one is faster or slower; `ours` is how many times it is."""
    share = math.nan if ours is None else ours - 1.0
    return Statement(where, about, f"{100 * printed:.1f} %", f"{100 * share:.1f} %",
                     verdict(near(_one(share), printed, rounded), share > 0), {"share": share}
                     )  # fmt: skip


def _share(where: str, about: str, printed: float, ours: float) -> Statement:
    return Statement(where, about, f"{100 * printed:.0f} %", f"{100 * ours:.1f} %",
                     verdict(near(_one(ours), printed, 0.005), ours > 0), {"share": ours}
                     )  # fmt: skip


def _times(
    where: str, about: str, printed: float, ours: float | None, rounded: float = 0.005
) -> Statement:
    ours = math.nan if ours is None else ours
    return Statement(where, about, f"{printed:.2f} times", f"{ours:.2f} times",
                     verdict(near(_one(ours), printed, rounded), ours > 1), {"times": ours}
                     )  # fmt: skip


def _above(where: str, about: str, printed: float, ours: float | None) -> Statement:
    ours = math.nan if ours is None else ours
    return Statement(where, about, f"> {printed:g} times", f"{ours:.2f} times",
                     verdict(ours > printed, ours > 1), {"times": ours})  # fmt: skip


def _apart(ratio: float | None) -> float | None:
    return None if ratio is None else max(ratio, 1.0 / ratio)


def _configuration(
    where: str, about: str, printed: Sequence[float], ours: Point | None
) -> Statement:
    nodes, cores, cap_w = printed
    found = "none" if ours is None else ours.name
    return Statement(where, about, f"({nodes:g}×{cores:g}, {cap_w:g})", found,
                     verdict(ours is not None and ours[:3] == tuple(printed)))  # fmt: skip
