"""The results of a sweep: means and intervals of any figure, as a table, as CSV and for xarray.

`Swept` is opened from a directory (`odonata.open_sweep`) or made of outcomes in memory. `cells`
are what it has of a figure: one for each combination of values, and for each job where it is a
figure of jobs.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from odonata.results.register import USUAL
from odonata.results.statistics import CONFIDENCE, Interval, difference, interval, ratio
from odonata.results.steadiness import UNSETTLED
from odonata.sweeps.axes import number_of
from odonata.sweeps.outcomes import JOBS, SweepOutcome
from pdes.errors import Refused
from pdes.replacing import write_whole
from pdes.shown import csv_cell
from topology.settings import meant

if TYPE_CHECKING:
    import xarray

POINTS, JOB_POINTS, SUMMARY = "points.csv", "jobs.csv", "summary.csv"
SATURATION = ("saturation_load", "saturation_throughput")
"""The figures of a curve that say where it is saturated."""
OF_JOB_RUNS_ONLY = ("mean_latency_ns", "p99_latency_ns", "throughput")
"""Usual figures that are not shown without being asked for where there are jobs."""


class Cell(NamedTuple):
    """A figure at one combination of values: of one job, if it is a figure of jobs, or the mean
    over jobs that are shown together."""

    labels: tuple[str, ...]
    job: str
    values: tuple[float | None, ...]
    """One for each seed; None where it is not defined, or missing."""


class Baseline(NamedTuple):
    """What other runs are compared with: those with this value on an axis."""

    axis: str
    label: str


class Compared(NamedTuple):
    """A cell beside that of the baseline: the mean of the difference, that of the ratio, seed by
    seed, and whether the difference is significant."""

    difference: Interval
    ratio: Interval

    @property
    def significant(self) -> bool | None:
        """Tells whether the difference is significant; None where nobody can tell."""
        return None if math.isnan(self.difference.low) else self.difference.excludes_zero


@dataclass(frozen=True)
class Swept:
    """The results of a sweep. `axes` are the names of axes and the labels of their values, in
    order; `keys` are those of its points, seeds varying fastest, then the last axis."""

    axes: Mapping[str, tuple[str, ...]]
    seeds: tuple[int, ...]
    keys: tuple[str, ...]
    outcomes: Mapping[str, SweepOutcome]
    method: str = "t"
    confidence: float = CONFIDENCE
    seeded: bool | None = None
    """Whether the seed decides anything; None where that is not known but from the outcomes."""
    whole: Swept | None = None
    """What it was before `over` took axes away; None where none was."""
    saturation: Swept | None = None
    """Where networks saturate, over the axes but that of loads, if that was looked for; then some
    combinations have no points, and keys of ""."""

    @classmethod
    def of(cls, facts: Mapping[str, Any], outcomes: Mapping[str, SweepOutcome]) -> Swept:
        """Returns the results of a sweep, from what is kept beside its outcomes."""
        axes = {name: tuple(labels) for name, labels in facts["axes"].items()}
        seeds, wanted = tuple(facts["seeds"]), facts["wanted"]
        how = wanted["interval"], wanted["confidence"], facts.get("seeded")
        again = {key: replace(outcomes[key], verdict=UNSETTLED, why=why)
                 for key, why in facts.get("unsettled", {}).items() if key in outcomes}  # fmt: skip
        keys, saturation = tuple(facts["points"]), None
        if "saturation" in facts:
            rows = {_name(row["labels"], row["seed"]): row for row in facts["saturation"]}
            others = {name: axes[name] for name in facts["curves"]}
            every = itertools.product(itertools.product(*others.values()), seeds)
            made = {key: SweepOutcome({name: row[name] for name in SATURATION})
                    for key, row in rows.items()}  # fmt: skip
            saturation = cls(others, seeds, tuple(_name(*it) for it in every), made, *how)
        return cls(axes, seeds, keys, {**outcomes, **again}, *how, saturation=saturation)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.axes)

    @cached_property
    def combinations(self) -> list[tuple[str, ...]]:
        return [*itertools.product(*self.axes.values())]

    @cached_property
    def averaged(self) -> dict[str, tuple[str, ...]]:
        """Returns the axes that `over` took away."""
        whole = self.axes if self.whole is None else self.whole.axes
        return {name: labels for name, labels in whole.items() if name not in self.axes}

    @cached_property
    def repetitions(self) -> int:
        """Returns of how many points a combination is made: the seeds, once for each value of the
        axes that were taken away."""
        return len(self.seeds) * math.prod(map(len, self.averaged.values()))

    def over(self, *words: str) -> Swept:
        """Returns the same averaged over some axes, named as `axis` has them: they are gone, and a
        combination is made of the points with all of their values and all seeds, in that order,
        which are taken as so many independent repetitions."""
        names = {self.axis(word) for word in words}
        left = {name: labels for name, labels in self.axes.items() if name not in names}
        taken = [name for name in self.axes if name in names]
        by_labels = dict(zip(self.combinations, range(len(self.combinations)), strict=True))
        each, keys = self.repetitions, list[str]()
        for labels in itertools.product(*left.values(), *(self.axes[name] for name in taken)):
            place = dict(zip((*left, *taken), labels, strict=True))
            first = by_labels[tuple(place[name] for name in self.axes)] * each
            keys += self.keys[first : first + each]
        return replace(self, axes=left, keys=tuple(keys), whole=self.whole or self)

    def axis(self, word: str) -> str:
        """Returns the axis that a word names: its name, or the end of it behind a dot. Refused
        where there is none, or several."""
        found = [name for name in self.axes if name == word]
        found = found or [name for name in self.axes if name.endswith(f".{word}")]
        if len(found) == 1:
            return found[0]
        raise Refused(f"{word}: {'several axes' if found else 'no axis'} of this sweep; there are "
                      f"{', '.join(found or self.axes) or 'none'}")  # fmt: skip

    def at(self, number: int) -> list[SweepOutcome | None]:
        """Returns the outcomes of a combination, by repetition; None for those that are missing."""
        first = number * self.repetitions
        found = [self.outcomes.get(key) for key in self.keys[first : first + self.repetitions]]
        return [None if it is None or it.failed else it for it in found]

    @cached_property
    def known(self) -> list[SweepOutcome]:
        """Returns the outcomes that there are, of points that have not failed."""
        found = (self.outcomes.get(key) for key in dict.fromkeys(self.keys))
        return [it for it in found if it is not None and not it.failed]

    @cached_property
    def jobs(self) -> tuple[str, ...]:
        """Returns the names of all jobs."""
        return tuple(dict.fromkeys(name for it in self.known for name in it.jobs))

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Returns what the jobs that are shown together are called, those of one [[jobs]], by the
        words that they are shown under: with how many they are."""
        counts: dict[str, set[int]] = {}
        for it in self.known:
            for name, count in Counter(it.kinds.get(job, job) for job in it.jobs).items():
                counts.setdefault(name, set()).add(count)
        return {_with_count(name, each): name for name, each in counts.items()}

    @cached_property
    def figures(self) -> tuple[str, ...]:
        """Returns the names of all figures that any point has; of those of jobs with `jobs.` before
        them."""
        own = dict.fromkeys(
            name for it in self.known for name, value in it.figures.items() if value is not None
        )
        of_jobs = dict.fromkeys(JOBS + name for it in self.known for job in it.jobs.values()
                                for name, value in job.items() if value is not None)  # fmt: skip
        return (*own, *of_jobs)

    @cached_property
    def failures(self) -> list[str]:
        """Returns why points failed, each with its point."""
        whole = self.whole or self
        places = itertools.product(whole.combinations, self.seeds)
        found = []
        for (labels, seed), key in zip(places, whole.keys, strict=True):
            outcome = self.outcomes.get(key)
            if outcome is not None and outcome.failed:
                named = [f"{name}={label}" for name, label in zip(whole.axes, labels, strict=True)]
                found.append(f"{', '.join([*named, f'seed {seed}'])}: {outcome.failed}")
        return found

    @property
    def missing(self) -> int:
        return sum(key not in self.outcomes for key in self.keys if key)

    def named(self, figure: str) -> str:
        """Returns the whole name of a figure, of which `jobs.` may be left out. Refused where there
        is none."""
        for name in (figure, JOBS + figure):
            if name in self.figures:
                return name
        hint = meant(figure, [*self.figures, *(it.removeprefix(JOBS) for it in self.figures)])
        raise Refused(f"{figure}: no figure of this sweep{hint} (--figures lists them)")

    @cached_property
    def usual(self) -> tuple[str, ...]:
        """Returns the figures that are shown where none is asked for."""
        found = [name for name in USUAL if name in self.figures]
        if "jobs.run_time_ps" in found:
            found = [name for name in found if name not in OF_JOB_RUNS_ONLY]
        return tuple(found[:4])

    def cells(self, figure: str) -> Iterator[Cell]:
        """Returns what there is of a figure. A job that a combination does not have has no cell."""
        figure = self.named(figure)
        for number, labels in enumerate(self.combinations):
            found, first = self.at(number), number * len(self.seeds)
            keys = self.keys[first : first + len(self.seeds)]
            if not any(key or key in self.outcomes for key in keys):
                continue
            if not figure.startswith(JOBS):
                yield Cell(
                    labels, "", tuple(it.figures.get(figure) if it else None for it in found)
                )
                continue
            name = figure.removeprefix(JOBS)
            for words, kind in self.kinds.items():
                each = [it.of_kind(kind) if it else [] for it in found]
                if any(each):
                    yield Cell(labels, words, tuple(mean_of(job.get(name) for job in jobs)
                                                    for jobs in each))  # fmt: skip

    def judged(self, labels: tuple[str, ...]) -> str:
        """Returns the verdict at a combination: that of all seeds or, where some are of a steady
        state and others are not, those of the latter with how many they are; "" where nothing was
        judged."""
        known = [it for it in self.at(self.combinations.index(labels)) if it is not None]
        verdicts = Counter(it.verdict for it in known)
        if len(verdicts) <= 1:
            return next(iter(verdicts), "")
        marked = Counter(it.verdict for it in known if it.marked)
        return ", ".join(f"{count} of {len(known)} {it}" for it, count in marked.items())

    def marked(self, labels: tuple[str, ...]) -> bool:
        """Tells whether any seed of a combination gave a run that is not of a steady state."""
        found = self.at(self.combinations.index(labels))
        return any(it is not None and it.marked for it in found)

    def misleads(self, figure: str, labels: tuple[str, ...]) -> bool:
        """Tells whether a figure at a combination would be read as a mean of steady states, and is
        none with any seed."""
        found = self.at(self.combinations.index(labels))
        return any(it is not None and it.misleads(figure) for it in found)

    @cached_property
    def combinations_twice(self) -> int:
        """Returns at how many combinations some points, but not all, gave the same run."""
        digests = [[it.digest for it in self.at(number) if it is not None]
                   for number in range(len(self.combinations))]  # fmt: skip
        return sum(1 < len({*each}) < len(each) for each in digests)

    @cached_property
    def combinations_alike(self) -> list[tuple[str, ...]]:
        """Returns the combinations at which several seeds give the same run, to the last bit."""
        made = []
        for number, labels in enumerate(self.combinations):
            digests = [it.digest for it in self.at(number) if it is not None]
            if len(digests) == self.repetitions > 1 and len({*digests}) == 1:
                made.append(labels)
        return made

    def interval(self, cell: Cell) -> Interval:
        return interval(cell.values, self.confidence, self.method)

    def against(self, figure: str, baseline: Baseline) -> dict[Cell, Compared]:
        """Returns the cells of a figure beside those of the baseline that differ from them in
        nothing else: with the same seeds, so that differences are taken seed by seed."""
        place, label = self.names.index(baseline.axis), baseline.label
        cells = [*self.cells(figure)]
        base = {(_without(cell.labels, place), cell.job): cell for cell in cells
                if cell.labels[place] == label}  # fmt: skip
        found = {}
        for cell in cells:
            other = base.get((_without(cell.labels, place), cell.job))
            if cell.labels[place] != label and other is not None:
                found[cell] = Compared(
                    difference(other.values, cell.values, True, self.confidence, self.method),
                    ratio(other.values, cell.values, self.confidence, self.method),
                )
        return found

    # -- for programs

    @cached_property
    def data(self) -> xarray.Dataset:
        """Returns every figure of every point as an xarray dataset: a dimension for each axis, one
        of seeds, and, for figures of jobs, one of jobs. Missing is NaN."""
        import xarray

        if self.whole is not None:
            return self.whole.data
        shape = [*(len(labels) for labels in self.axes.values()), len(self.seeds)]
        dims = (*self.axes, "seed")
        variables = {}
        for figure in self.figures:
            of_jobs = figure.startswith(JOBS)
            values = np.full((len(self.combinations), len(self.seeds), len(self.jobs) or 1),
                             math.nan)  # fmt: skip
            for number in range(len(self.combinations)):
                for seed, it in enumerate(self.at(number)):
                    values[number, seed] = _values(it, figure, self.jobs)
            if of_jobs:
                variables[figure] = ((*dims, "job"), values.reshape(*shape, len(self.jobs)))
            else:
                variables[figure] = (dims, values[:, :, 0].reshape(shape))
        coordinates: dict[str, Any] = {
            name: [*map(number_of, labels)] for name, labels in self.axes.items()
        }
        coordinates |= {"seed": list(self.seeds)} | ({"job": list(self.jobs)} if self.jobs else {})
        return xarray.Dataset(variables, coordinates)

    def points_csv(self) -> str:
        """Returns a row for each point: its labels, its seed, its digest, every figure, and where
        that was asked whether it is of a steady state, and why."""
        own = [name for name in self.figures if not name.startswith(JOBS)]
        judged = ["steady_state", "why"] if any(it.verdict for it in self.known) else []
        rows: list[Sequence[Any]] = [[*self.axes, "seed", "digest", *own, *judged]]
        for labels, seed, it in self._rows():
            rows.append([*labels, seed, it.digest[:12], *(it.figures.get(name) for name in own),
                         *([it.verdict, it.why] if judged else [])])  # fmt: skip
        return _csv(rows)

    def jobs_csv(self) -> str:
        """Returns a row for each job of each point."""
        own = [name.removeprefix(JOBS) for name in self.figures if name.startswith(JOBS)]
        rows: list[Sequence[Any]] = [[*self.axes, "seed", "job", *own]]
        for labels, seed, it in self._rows():
            rows += [[*labels, seed, job, *(figures.get(name) for name in own)]
                     for job, figures in it.jobs.items()]  # fmt: skip
        return _csv(rows)

    def summary_csv(self, baseline: Baseline | None = None) -> str:
        """Returns a row for each figure at each combination: its mean, the limits of its interval,
        of how many points that is, and whether these are of a steady state; with a baseline also
        the ratio to it, its limits, and whether the difference is significant."""
        judged = ["steady_state"] if any(it.verdict for it in self.known) else []
        beside = ["ratio", "ratio_low", "ratio_high", "significant"] if baseline else []
        rows: list[Sequence[Any]] = [
            [*self.axes, "job", "figure", "mean", "low", "high", "of", *judged, *beside]
        ]
        for figure in self.figures:
            others = self.against(figure, baseline) if baseline else {}
            for cell in self.cells(figure):
                row = [*cell.labels, cell.job, figure, *self.interval(cell)]
                row += [self.judged(cell.labels)] if judged else []
                if cell in others:
                    known = others[cell].significant
                    row += [*others[cell].ratio[:3], "" if known is None else int(known)]
                rows.append(row + [""] * (len(rows[0]) - len(row)))
        return _csv(rows)

    def _rows(self) -> Iterator[tuple[tuple[str, ...], int, SweepOutcome]]:
        for number, labels in enumerate(self.combinations):
            for seed, it in zip(self.seeds, self.at(number), strict=True):
                if it is not None:
                    yield labels, seed, it

    def write(self, directory: Path, baseline: Baseline | None = None) -> list[Path]:
        """Write the CSV files. Returns where they are."""
        whole = self.whole or self
        texts = {POINTS: whole.points_csv(), SUMMARY: self.summary_csv(baseline)}
        if self.jobs:
            texts[JOB_POINTS] = whole.jobs_csv()
        for name, text in texts.items():
            write_whole(directory / name, text)
        return [directory / name for name in texts]


def _name(labels: Iterable[str], seed: int) -> str:
    return f"{[*labels]} {seed}"


def _values(it: SweepOutcome | None, figure: str, jobs: Sequence[str]) -> Any:
    if it is None:
        return math.nan
    if not figure.startswith(JOBS):
        value = it.figures.get(figure)
        return math.nan if value is None else value
    name = figure.removeprefix(JOBS)
    found = [it.jobs.get(job, {}).get(name) for job in jobs]
    return [math.nan if value is None else value for value in found]


def mean_of(values: Iterable[float | None]) -> float | None:
    """Returns the mean of values, None where one of them is not defined."""
    found = [*values]
    if not found or any(value is None for value in found):
        return None
    return math.fsum(found) / len(found)  # type: ignore[arg-type]


def _with_count(name: str, counts: set[int]) -> str:
    """Returns the name of jobs with how many they are, or have been at different points."""
    if counts == {1}:
        return name
    least, most = min(counts), max(counts)
    return f"{name} ({least})" if least == most else f"{name} ({least} to {most})"


def _without(labels: tuple[str, ...], place: int) -> tuple[str, ...]:
    return labels[:place] + labels[place + 1 :]


def _csv(rows: Sequence[Sequence[Any]]) -> str:
    """Returns rows as CSV; numbers in full, and nothing for what is not known."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow(["" if each is None or each != each else _short(each) for each in row])
    return text.getvalue()


def _short(value: Any) -> Any:
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else csv_cell(value)
