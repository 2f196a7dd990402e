"""What is odd about tables of configurations, and how they are repaired where that is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from odonata.provisioning.table import Numbers, Point, Table, Whole, sorted_table

TOLERANCE = 0.05
"""How far measurements may go against the rule (more cores do not draw less, a higher cap does not
slow down) before it is told: what noise and the control loop of a cap make of them."""
MEMORY_W = 30.0
"""How far the power of a socket may lie above its cap before it is told: its memory has no cap."""
DIGITS = 6
"""Significant figures of what is interpolated: more would not be true, and the last bits of
logarithms depend on the machine."""


def rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def configurations(count: int) -> str:
    return "1 configuration" if count == 1 else f"{count:,} configurations"


def table_of_points(application: str, points: Sequence[Point]) -> Table:
    nodes, cores, cap_w, seconds, watts = zip(*points, strict=True)
    return sorted_table(application, np.array(nodes, np.int64), np.array(cores, np.int64),
                        np.array(cap_w, np.float64), np.array(seconds, np.float64),
                        np.array(watts, np.float64))  # fmt: skip


# -- repairs


def _holes(table: Table) -> Iterator[tuple[int, int, float]]:
    """Yields the configurations of the grid (all nodes by all cores by all caps) that lack."""
    columns = (table.nodes.tolist(), table.cores.tolist(), table.cap_w.tolist())
    there = set(zip(*columns, strict=True))
    grid = product(*(sorted(set(column)) for column in columns))
    return (each for each in grid if each not in there)


def _hole_count(table: Table) -> int:
    sizes = (len(np.unique(column)) for column in (table.nodes, table.cores, table.cap_w))
    return math.prod(sizes) - len(table)


def without_holes(table: Table, told: list[str]) -> Table:
    """Returns a table in which holes are filled: by the mean, over the axes along which a hole has
    neighbours on both sides, of the straight line between them in logarithms. A grid of which less
    than half was measured stays as it is."""
    if _hole_count(table) > len(table):
        return table
    columns = (table.nodes, table.cores, table.cap_w)
    logs = [np.log(column) for column in columns]
    results = (np.log(table.seconds), np.log(table.watts))
    filled: list[Point] = []
    for hole in _holes(table):
        estimates = []
        for axis in range(3):
            others = [columns[at] == hole[at] for at in range(3) if at != axis]
            line = np.flatnonzero(others[0] & others[1])
            above = int(np.searchsorted(columns[axis][line], hole[axis]))
            if 0 < above < len(line):
                low, high = line[above - 1], line[above]
                x = (math.log(hole[axis]) - logs[axis][low]) / (logs[axis][high] - logs[axis][low])
                estimates.append([(1 - x) * of[low] + x * of[high] for of in results])
        if estimates:
            mean = np.mean(estimates, axis=0)
            filled.append(Point(*hole, *(rounded(math.exp(value)) for value in mean)))
    if not filled:
        return table
    told.append(f"{table.application}: {configurations(len(filled))} that lacked between measured "
                f"ones {'was' if len(filled) == 1 else 'were'} interpolated, {filled[0].name} "
                "first.")  # fmt: skip
    return table_of_points(table.application, [*map(table.point, range(len(table))), *filled])


def monotone(table: Table, told: list[str]) -> Table:
    """Returns a table in which a higher cap takes no longer and draws no less: a higher cap can
    always be left unused, so what was measured otherwise is noise, and neighbours are pooled."""
    seconds, watts = np.empty_like(table.seconds), np.empty_like(table.watts)
    first = np.flatnonzero(np.append(True, np.diff(table.nodes) | np.diff(table.cores)))
    for begin, end in pairwise([*first.tolist(), len(table)]):
        seconds[begin:end] = -_rising(-table.seconds[begin:end])
        watts[begin:end] = _rising(table.watts[begin:end])
    for what, old, new in (("times", table.seconds, seconds), ("watts", table.watts, watts)):
        change = np.abs(new / old - 1.0)
        if (moved := new != old).any():
            at = table.point(int(np.argmax(change)))
            rule = "rose" if what == "times" else "fell"
            told.append(f"{table.application}: {what} that {rule} with the cap were averaged with "
                        f"their neighbours in {configurations(int(moved.sum()))}, by up to "
                        f"{change.max():.1%}, at {at.name}.")  # fmt: skip
    return Table(table.application, table.nodes, table.cores, table.cap_w, seconds, watts)


def _rising(values: Numbers) -> Numbers:
    """Returns the nearest values that do not fall: adjacent ones that do are replaced by their
    mean, until none do."""
    pools: list[tuple[float, int]] = []
    for value in values.tolist():
        total, count = value, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    return np.array([total / count for total, count in pools for _ in range(count)])


# -- what is odd


def oddities(table: Table) -> list[str]:
    """Returns what is odd about a table and what follows from it, in sentences."""
    told: list[str] = []
    if len(table) < 2:
        told.append(f"{table.application}: a single configuration is known: there is no choice.")
    if holes := _hole_count(table):
        first = Point(*next(_holes(table)), 0, 0).name
        told.append(f"{table.application}: {holes:,} of {holes + len(table):,} configurations "
                    f"{'is' if holes == 1 else 'are'} missing, {first} first; what was not "
                    "measured is never chosen.")  # fmt: skip
    told += [check(table) for check in (_no_packed_max, _node_gap, _not_summed)]
    told += [_fall(table, axis) for axis in ("nodes", "cores", "cap_w")]
    told.append(_slower(table))
    return [words for words in told if words]


def _no_packed_max(table: Table) -> str:
    cores, cap_w = int(table.cores.max()), float(table.cap_w.max())
    if ((table.cores == cores) & (table.cap_w == cap_w)).any():
        return ""
    return (f"{table.application}: no configuration has both all {cores} cores and the highest cap,"
            f" {cap_w:g} W: packed-max and speed-ups over it are not known.")  # fmt: skip


def _node_gap(table: Table) -> str:
    nodes = np.unique(table.nodes)
    steps = np.diff(nodes)
    if len(steps) < 3 or 2 * (steps == steps.min()).sum() <= len(steps):
        return ""
    wide = np.flatnonzero((steps > steps.min()) & (steps % steps.min() == 0))
    if not len(wide) or (steps % steps.min()).any():
        return ""
    low, high = int(nodes[wide[0]]), int(nodes[wide[0] + 1])
    return (f"{table.application}: node counts are {int(steps.min())} apart, and between {low} and "
            f"{high} there are none.")  # fmt: skip


def _not_summed(table: Table) -> str:
    """Tells of watts that are as many on many nodes as on few."""
    few, many = _neighbours(table, "nodes")
    if not len(few):
        return ""
    growth = np.log(table.watts[many] / table.watts[few])
    if np.median(growth / np.log(table.nodes[many] / table.nodes[few])) > 0.3:
        return ""
    return (f"{table.application}: watts hardly grow with nodes: are they per node? Those of all "
            "nodes together are needed.")  # fmt: skip


def _neighbours(table: Table, axis: str) -> tuple[Whole, Whole]:
    """Returns the places of points next to each other along an axis, all else equal."""
    names = [name for name in ("nodes", "cores", "cap_w") if name != axis]
    columns: list[npt.NDArray[np.float64]] = [getattr(table, name) for name in (axis, *names)]
    order = np.lexsort(tuple(columns))
    same = np.ones(max(0, len(order) - 1), np.bool_)
    for column in columns[1:]:
        same &= np.diff(column[order]) == 0
    return order[:-1][same], order[1:][same]


def _fall(table: Table, axis: str) -> str:
    """Tells of power that falls where nodes, cores or the cap rise."""
    low, high = _neighbours(table, axis)
    rises = "the cap rises" if axis == "cap_w" else f"{axis} rise"
    fall = 1.0 - table.watts[high] / table.watts[low]
    return _worst(table, low, high, fall, lambda it: f"{it.watts:,.6g} W",
                  f"power falls where {rises}")  # fmt: skip


def _slower(table: Table) -> str:
    """Tells of times that rise with the cap. More cores may well slow down: memory is shared."""
    low, high = _neighbours(table, "cap_w")
    rise = table.seconds[high] / table.seconds[low] - 1.0
    return _worst(table, low, high, rise, lambda it: f"{it.seconds:.6g} s",
                  "time rises where the cap rises")  # fmt: skip


def _worst(
    table: Table, low: Whole, high: Whole, by: Numbers, show: Callable[[Point], str], what: str
) -> str:
    """Returns how often points go against a rule by more than the tolerance, and the worst case."""
    count = int((by > TOLERANCE).sum())
    if not count:
        return ""
    at = int(np.argmax(by))
    one, other = table.point(int(low[at])), table.point(int(high[at]))
    return (f"{table.application}: {what}, by more than {TOLERANCE:.0%} {_times(count)}; most from "
            f"{one.name}, {show(one)}, to {other.name}, {show(other)}.")  # fmt: skip


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def unlike(tables: Mapping[str, Table], sockets: int = 2) -> list[str]:
    """Returns what is odd about the tables of a file together, in sentences: applications that were
    not measured with all cores, or up to the highest cap, of the others, so that packed and max are
    something else for them; and sockets far above their cap, told once for all."""
    told = []
    for column, noun in (("cores", "cores per node"), ("cap_w", "W as a cap")):
        most = {name: float(getattr(table, column).max()) for name, table in tables.items()}
        highest = max(most.values())
        told += [f"{name}: at most {value:g} {noun}, where others have {highest:g}: packed-max is "
                 f"with {value:g}." for name, value in most.items() if value < highest]  # fmt: skip
    return told + _above_caps(tables, sockets)


def _above_caps(tables: Mapping[str, Table], sockets: int) -> list[str]:
    each = {name: table.watts / (table.nodes * sockets) for name, table in tables.items()}
    over = {name: each[name] - (table.cap_w + MEMORY_W) for name, table in tables.items()}
    found = {name: by for name, by in over.items() if (by > 0).any()}
    if not found:
        return []
    count = sum(int((by > 0).sum()) for by in found.values())
    worst = max(found, key=lambda name: float(found[name].max()))
    at = int(np.argmax(found[worst]))
    of = "" if len(found) == 1 else f" of {worst}"
    return [f"{', '.join(found)}: {configurations(count)} with sockets more than {MEMORY_W:g} W "
            f"above their cap; most at {tables[worst].point(at).name}{of}, {each[worst][at]:.4g} W "
            f"for each of {sockets} sockets per node. If watts are those of whole nodes, with "
            "memory and boards, this is as it should be; if they are those of sockets alone, check "
            "that cap_w is per socket, and watts those of all nodes together."]  # fmt: skip
