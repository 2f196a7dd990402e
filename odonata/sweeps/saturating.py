"""Finds the load at which a network saturates: points along an axis of loads, until none is steady,
and then between the last load that was steady and the next, which was not.

A **curve** is one combination of the other axes, with one seed. It goes up the loads of the sweep,
to a few past the first that is not steady. Then the **gap** between the highest steady load and the
next is split until it is narrower than the resolution; the saturation load is the middle of what is
left. Where a gap is split depends on the seed, so that what the resolution leaves open differs from
seed to seed, and is in the interval of their mean.

A run that is neither steady nor saturated is made again, twice as long, until it is, or until the
next would be longer than it may: then the point has not settled, and is not steady.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from odonata.experiment.experiment import SEED, Experiment
from odonata.experiment.units import show_time, time_ps
from odonata.results.steadiness import SATURATED, STEADY, TOLERANCE, UNSETTLED
from odonata.sweeps.axes import key_of
from odonata.sweeps.outcomes import SweepOutcome
from odonata.sweeps.plan import Plan, Point, compiled_for, identities, read
from odonata.sweeps.study import Sweep
from odonata.sweeps.table import SATURATION
from pdes.clock import LATEST
from pdes.errors import require

LOAD = re.compile(r"traffic(\[\d+\])?\.load")
BEYOND = 2
"""Points past the first that is not steady: they show whether throughput is flat there, or
falls."""
LONGER = 16
"""How many times as long as at first a point is simulated at the most, where nobody says."""
FULL = 0.9
"""The utilisation from which on a link is nearly full: its queue needs some 1 / (1 - FULL)² = 100
packets to come to its mean, and without end above 1."""
LEAST = 1e-3
"""A load below which no gap is split."""


class AtLoad(NamedTuple):
    """What a curve has at a load: the outcome of the last of its runs, which is `stretch` times as
    long as the first, and the events of all of them."""

    load: float
    point: Point
    outcome: SweepOutcome
    stretch: int = 1
    events: float = 0.0

    @property
    def steady(self) -> bool:
        return self.outcome.verdict == STEADY

    @property
    def settled(self) -> bool:
        """Tells whether its throughput is that of a steady state."""
        return self.outcome.verdict in (STEADY, SATURATED)

    def figure(self, name: str) -> float:
        """Returns a figure, NaN where it is not defined."""
        value = self.outcome.figures.get(name)
        return math.nan if value is None else value


@dataclass(frozen=True)
class Curve:
    """What there is of a curve, by increasing load: at the loads of the sweep, as far as all are
    there, and at those of the search."""

    labels: tuple[str, ...]
    """Those of its values on all axes but that of loads."""
    seed: int
    points: tuple[AtLoad, ...]
    searched: tuple[AtLoad, ...] = ()

    @property
    def throughput(self) -> float | None:
        """Returns the largest accepted load of a point of the sweep that has settled, None where
        none has; where no point is saturated, more may be possible."""
        found = (it.figure("throughput") for it in self.points if it.settled)
        return max(found, default=None)

    @property
    def saturated_at(self) -> float | None:
        """Returns the lowest saturated load of the sweep above which none was steady."""
        lowest = None
        for at in reversed(self.points):
            if at.steady:
                break
            if at.outcome.verdict == SATURATED:
                lowest = at.load
        return lowest

    @property
    def gap(self) -> tuple[float, float] | None:
        """Returns the highest steady load, 0 where there is none, and the next, which was not; None
        where there is no such."""
        every = (*self.points, *self.searched)
        below = max((at.load for at in every if at.steady), default=0.0)
        above = min((at.load for at in every if at.load > below), default=None)
        return None if above is None else (below, above)

    @property
    def saturation_load(self) -> float | None:
        """Returns the middle of the gap."""
        return None if self.gap is None else sum(self.gap) / 2


def split(gap: tuple[float, float], seed: int, resolution: float) -> str | None:
    """Returns a load in the middle third of a gap, where depends on the seed; None where the gap is
    narrower than this part of its upper end.

    >>> split((0.1, 0.15), 1, 0.01), split((0.1, 0.15), 2, 0.01), split((0.1, 0.101), 1, 0.01)
    ('0.127', '0.1206', None)
    """
    below, above = gap
    part = (1 + seed * (math.sqrt(5) - 1) / 2 % 1) / 3
    load = f"{below + (above - below) * part:.4g}"
    found = above - below <= resolution * above or above < LEAST
    return None if found or not below < float(load) < above else load


@dataclass(frozen=True)
class Saturating(Sweep):
    """The study of a plan that asks for the load at which networks saturate."""

    sequential = True

    def __post_init__(self) -> None:
        loads = [axis.name for axis in self.plan.axes if LOAD.fullmatch(axis.name)]
        require(len(loads) == 1, "[sweep] saturation: it needs one axis of loads, as traffic.load "
                "= [0.1, 0.2, 0.3]; without a search, saturation = 0")  # fmt: skip
        for point in self._first.values():
            made = point.experiment()
            end = made.run.end
            require(isinstance(made, Experiment) and not made.jobs and end is not None,
                    "[sweep] saturation: it is of traffic alone, with a run.duration")  # fmt: skip
            longest = self._longest(end)
            require(longest >= end, f"longest = {show_time(longest)}: at least the first run's "
                    f"{show_time(end)}")  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        return {"plan": self.plan, "part": self.part}  # without what was found of it

    # -- which points there are

    @cached_property
    def _axis(self) -> int:
        """Returns the place of the axis of loads."""
        return next(n for n, axis in enumerate(self.plan.axes) if LOAD.fullmatch(axis.name))

    @cached_property
    def _loads(self) -> tuple[str, ...]:
        return tuple(sorted(self.plan.axes[self._axis].labels, key=float))

    @cached_property
    def _grid(self) -> dict[tuple[tuple[str, ...], int], dict[str, Point]]:
        """Returns the points of the plan by load, for the labels and the seed of each curve."""
        found: dict[tuple[tuple[str, ...], int], dict[str, Point]] = {}
        for point in self.plan.points:
            curve = self._others(point.labels), point.seed
            found.setdefault(curve, {})[point.labels[self._axis]] = point
        every = [*found.items()]
        return dict(every[self.part[0] - 1 :: self.part[1]] if self.part else every)

    @cached_property
    def _first(self) -> dict[str, Point]:
        """Returns a point of each program that is compiled, which is simulated before the others:
        they find what it has compiled."""
        found: dict[str, Point] = {}
        for labels in dict.fromkeys(labels for labels, _ in self._grid):
            loads = next(it for (own, _), it in self._grid.items() if own == labels)
            point = loads[self._loads[0]]
            found.setdefault(compiled_for(point.experiment()), point)
        return found

    @cached_property
    def _points(self) -> dict[tuple[str, str, int], Point]:
        """Returns the points that are not in the plan: by the key of one that is, by load, and by
        how many times as long they are."""
        return {}

    def _point(self, like: Point, load: str, stretch: int) -> Point:
        if like.labels[self._axis] == load and stretch == 1:
            return like
        known = self._points.get((like.key, load, stretch))
        if known is None:
            known = self._points[like.key, load, stretch] = self._made(like, load, stretch)
        return known

    def point(self, like: Point, stretch: int) -> Point:
        """Returns a point of the plan, or the same so many times as long."""
        return self._point(like, like.labels[self._axis], stretch)

    def _made(self, like: Point, load: str, stretch: int) -> Point:
        """Returns a point at another load, or so many times as long."""
        axis = self.plan.axes[self._axis].name
        made = like.experiment()
        assert isinstance(made, Experiment)
        assert made.run.end is not None
        several = axis != "traffic.load"
        times = {"run.duration": made.run.end}
        for number, traffic in enumerate(made.traffic if several else made.traffic[:1]):
            section = f"traffic[{number}]" if several else "traffic"
            times |= {f"{section}.warmup": traffic.warmup_ps}
            times |= {f"{section}.measure": traffic.measure_ps} if traffic.measure_ps else {}
        longer = {name: f'{name}="{show_time(ps * stretch)}"' for name, ps in times.items()}
        new = {axis: f"{axis}={load}", **(longer if stretch > 1 else {})}
        changes = (*(it for it in like.changes if key_of(it) not in new), *new.values())
        named = dict(zip(like.names, like.labels, strict=True)) | {axis: load}
        named |= {"stretch": str(stretch)} if stretch > 1 else {}
        read_it = read(like.file, like.text, [*changes, f"{SEED}={like.seed}"], like.plugins)
        (identity,) = identities(read_it, [like.seed])
        return replace(like, changes=changes, labels=tuple(named.values()), names=tuple(named),
                       identity=identity)  # fmt: skip

    def _longest(self, end_ps: int) -> int:
        asked = self.plan.wanted.longest
        return time_ps(asked) if asked else min(LATEST, LONGER * end_ps)

    # -- which of them are needed

    def cases(self, asked: Plan, outcomes: Mapping[str, SweepOutcome]) -> Sequence[Point]:
        """Returns the points of all curves as far as they are known to go; all go up together.

        Whoever works on several points at a time runs ahead, and may find afterwards that a curve
        was at its end: `curves` leaves those out.
        """
        first = [point for point in self._first.values() if point.key not in outcomes]
        if first:
            return first
        lengths = self._lengths(outcomes)
        wanted = [
            self._at(loads[load], load, outcomes)[0]
            for number, load in enumerate(self._loads)
            for (labels, _), loads in self._grid.items()
            if number < lengths[labels]
        ]
        wanted += [self._search(curve, outcomes)[0] for curve in self.curves(outcomes)]
        every = itertools.chain.from_iterable(wanted)
        return [*{point.key: point for point in every}.values()]

    def curves(self, outcomes: Mapping[str, SweepOutcome]) -> list[Curve]:
        """Returns the curves that have begun, those of one combination by seed."""
        found = []
        lengths = self._lengths(outcomes)
        for (labels, seed), loads in self._grid.items():
            points = list[AtLoad]()
            for load in self._loads[: lengths[labels]]:
                _, at = self._at(loads[load], load, outcomes)
                if at is None:
                    break
                points.append(at)
            if points:
                curve = Curve(labels, seed, tuple(points))
                if len(points) == lengths[labels]:
                    curve = replace(curve, searched=self._search(curve, outcomes)[1])
                found.append(curve)
        return found

    def _lengths(self, outcomes: Mapping[str, SweepOutcome]) -> dict[tuple[str, ...], int]:
        """Returns how many loads the curves of a combination have, as far as is known: with each
        seed to the first that is not steady, and BEYOND more, none of which is."""
        found: dict[tuple[str, ...], int] = {}
        for (labels, _), loads in self._grid.items():
            length, running = len(self._loads), 0
            for number, load in enumerate(() if self.plan.wanted.beyond else self._loads):
                _, at = self._at(loads[load], load, outcomes)
                running = running + 1 if at is not None and not at.steady else 0
                if running > BEYOND:
                    length = number + 1
                    break
            found[labels] = max(found.get(labels, 1), length)
        return found

    @cached_property
    def _found(self) -> dict[tuple[str, str], tuple[list[Point], AtLoad]]:
        """Returns what `_at` returned where all was known."""
        return {}

    def _at(
        self, like: Point, load: str, outcomes: Mapping[str, SweepOutcome], stretch: int = 1
    ) -> tuple[list[Point], AtLoad | None]:
        """Returns the points that a load needs, as far as is known, and what came of them. The
        first is so many times as long.

        Where a link is nearly full, a queue may take long to grow that has no end: there a run is
        steady if one of half its length was too, with the same mean latency.
        """
        known = self._found.get((like.key, load))
        if known is not None and known[1].point.key in outcomes:
            return known
        points, events, last = list[Point](), 0.0, math.nan
        while True:
            point = self._point(like, load, stretch)
            points.append(point)
            found = outcomes.get(point.key)
            if found is None:
                return points, None
            events += found.figures.get("events") or 0.0
            settled, longest = found.verdict in (STEADY, SATURATED), self._is_longest(like, stretch)
            mean = found.figures.get("mean_latency_ns") or math.nan
            if found.verdict == STEADY and _busiest(found) >= FULL:
                growth = mean / last - 1
                settled = abs(growth) <= TOLERANCE
                if longest and abs(growth) > TOLERANCE:
                    why = f"its mean latency is {growth:+.1%} off that of a run of half the length"
                    found = replace(found, verdict=UNSETTLED, why=why)
            if settled or longest or found.failed:
                at = AtLoad(float(load), point, found, stretch, events)
                self._found[like.key, load] = points, at
                return points, at
            stretch, last = stretch * 2, mean

    @cached_property
    def _ends(self) -> dict[str, int]:
        return {}

    def _is_longest(self, like: Point, stretch: int) -> bool:
        """Tells whether a run of twice the length would be too long."""
        if like.key not in self._ends:
            self._ends[like.key] = like.experiment().run.end or 0
        end = self._ends[like.key]
        return end * stretch * 2 > self._longest(end)

    def _search(
        self, curve: Curve, outcomes: Mapping[str, SweepOutcome]
    ) -> tuple[list[Point], tuple[AtLoad, ...]]:
        """Returns the points between the loads of a curve that are needed, as far as is known, and
        what came of them, by load. One begins half as long as those beside it had to be."""
        wanted = list[Point]()
        like = self._grid[curve.labels, curve.seed][self._loads[0]]
        while curve.gap is not None and not any(it.outcome.failed for it in curve.points):
            load = split(curve.gap, curve.seed, self.plan.wanted.saturation)
            if load is None:
                break
            longest = max(at.stretch for at in (*curve.points, *curve.searched)
                          if at.load in curve.gap)  # fmt: skip
            points, at = self._at(like, load, outcomes, max(1, longest // 2))
            wanted += points
            if at is None:
                break
            curve = replace(curve, searched=(*curve.searched, at))
        return wanted, tuple(sorted(curve.searched))

    # -- what came of them

    def facts(self, outcomes: Mapping[str, SweepOutcome]) -> dict[str, Any]:
        """Returns what is kept beside the outcomes: the last point at each load, "" where a curve
        has none, and where each curve is saturated."""
        if self.part:
            return replace(self, part=None).facts(outcomes)
        keys, unsettled, rows = dict[Any, str](), dict[str, str](), list[dict[str, Any]]()
        lengths = self._lengths(outcomes)
        for (labels, seed), loads in self._grid.items():
            for load in self._loads[: lengths[labels]]:
                points, at = self._at(loads[load], load, outcomes)
                keys[labels, load, seed] = points[-1].key
                if at is not None and at.outcome != outcomes[at.point.key]:
                    unsettled[at.point.key] = at.outcome.why
        for curve in self.curves(outcomes):
            if all(point.key in outcomes for point in self._search(curve, outcomes)[0]):
                rows.append(_row(curve))
        axes = {axis.name: list(axis.labels) for axis in self.plan.axes}
        name = self.plan.axes[self._axis].name
        axes[name] = [*self._loads[: max(lengths.values())]]
        every = itertools.product(itertools.product(*axes.values()), self.plan.seeds)
        last = [keys.get((self._others(labels), labels[self._axis], seed), "")
                for labels, seed in every]  # fmt: skip
        curves = [axis for axis in axes if axis != name]
        return {**self.plan.facts(), "axes": axes, "points": last, "unsettled": unsettled,
                "curves": curves, "saturation": rows}  # fmt: skip

    def _others(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Returns the labels but that of a load."""
        return (*labels[: self._axis], *labels[self._axis + 1 :])


def _row(curve: Curve) -> dict[str, Any]:
    steady, above = curve.gap or (None, None)
    return {"labels": list(curve.labels), "seed": curve.seed, "steady": steady, "above": above,
            SATURATION[0]: curve.saturation_load, SATURATION[1]: curve.throughput}  # fmt: skip


def _busiest(found: SweepOutcome) -> float:
    """Returns the utilisation of the busiest link of any class."""
    every = (value or 0.0 for name, value in found.figures.items()
             if name.endswith(".max_utilisation"))  # fmt: skip
    return max(every, default=0.0)
