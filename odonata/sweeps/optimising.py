"""Finds the values of some keys for which a figure is least, or greatest, without trying them all.

Optuna (an optional extra: ``pip install 'odonata[optimise]'``) suggests **trials**, each a value
for every key; a trial is simulated with every seed, and the mean of the figure is what it hears.
Trials are asked for in batches of a fixed size, each after the one before has been told, so that
what it suggests does not depend on how many processes work or in which order they end. Outcomes are
kept as those of any sweep: a search that was cut short asks for the same trials again, and goes on.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from odonata.experiment.experiment import SEED
from odonata.experiment.reading import load
from odonata.results.statistics import Interval, interval
from odonata.study.contract import Claim, Study
from odonata.sweeps.axes import Value, merged
from odonata.sweeps.outcomes import JOBS, SweepOutcome, simulate
from odonata.sweeps.plan import Point, asked_in, check, compiled_for, identities
from odonata.sweeps.study import mark_of
from odonata.sweeps.table import Swept, mean_of
from pdes.errors import Refused
from pdes.shown import csv_cell

TRIALS = "trials.csv"
BATCH = 8
"""Trials that are asked for at once, before the results of any of them are known."""
BETWEEN = re.compile(r"([-+]?[\d.]+(?:[eE][-+]?\d+)?)\.\.([-+]?[\d.]+(?:[eE][-+]?\d+)?)")
"""The least and the greatest of numbers that a key can have, as 0.1..0.9."""


class Space(NamedTuple):
    """What a key, or an axis, can be: one of some values, or any number from `low` to `high`."""

    key: str
    values: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False

    def distribution(self) -> Any:
        from optuna.distributions import (
            CategoricalDistribution,
            FloatDistribution,
            IntDistribution,
        )

        if self.values:
            return CategoricalDistribution([value.label for value in self.values])
        if self.whole:
            return IntDistribution(int(self.low), int(self.high))
        return FloatDistribution(self.low, self.high)

    def text(self, suggested: Any) -> str:
        """Returns what was suggested as a label."""
        return str(round(suggested)) if self.whole else str(suggested)

    def changes(self, label: str) -> tuple[str, ...]:
        """Returns the changes that a label stands for."""
        named = (value.changes for value in self.values if value.label == label)
        return next(named, (f"{self.key}={label}",))


class Trial(NamedTuple):
    """Values by key, and its points, one for each seed; none where no experiment can have these
    values."""

    values: Mapping[str, Any]
    points: tuple[Point, ...]


@dataclass(frozen=True)
class SearchPlan:
    """What is looked for: the figure, in which direction, over which space, in how many trials."""

    file: str
    spaces: tuple[Space, ...]
    changes: tuple[str, ...]
    plugins: tuple[str, ...]
    seeds: tuple[int, ...]
    figure: str
    direction: str = "minimise"
    trials: int = 50


def asked_of(
    file: Path, changes: Sequence[str], plugins: Sequence[Path | str], seeds: int | None,
    figure: str, direction: str, trials: int,
) -> SearchPlan:  # fmt: skip
    """Returns what is looked for; a change with several values, or with a range of numbers as
    0.1..0.9, is a part of the space, and so is every axis of the file. Refused where there is none,
    or without Optuna."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise Refused("--optimise needs Optuna: pip install 'odonata[optimise]'") from None
    said, fixed = asked_in(file), []
    axes, rest = merged(said.axes, changes)
    if seeds is not None and axes.get(SEED) in said.axes:
        del axes[SEED]
    spaces = {name: Space(name, axis.values) for name, axis in axes.items()}
    for change in rest:
        key, _, text = (part.strip() for part in change.partition("="))
        if found := BETWEEN.fullmatch(text):
            spaces[key] = _between(change, key, found)
        else:
            fixed.append(change)
    for axis in axes.values():
        check(axis)
    if SEED in spaces:
        raise Refused(f"--optimise: {SEED} is not a key to optimise; --seeds 5 gives each trial "
                      "five seeds")  # fmt: skip
    if not spaces:
        raise Refused("--optimise: over what? --set traffic.load=0.1..0.9, or several values: "
                      "--set network.routing=minimal,ugal-l")  # fmt: skip
    order = tuple(spaces.values())
    first = [change for space in order for change in space.changes(_first(space))]
    base = load(file, [*fixed, *first], plugins).run.seed
    every = tuple(range(base, base + (seeds or said.seeds)))
    return SearchPlan(str(file), order, tuple(fixed), tuple(map(str, plugins)), every, figure,
                      direction, trials)  # fmt: skip


def _between(change: str, key: str, found: re.Match[str]) -> Space:
    low, high = float(found[1]), float(found[2])
    if not low < high:
        raise Refused(f"--set {change}: the least number first, as 0.1..0.9")
    whole = all(re.fullmatch(r"[-+]?\d+", word) for word in found.groups())
    return Space(key, (), low, high, whole)


def _first(space: Space) -> str:
    return space.values[0].label if space.values else space.text(space.low)


@dataclass
class Search(Study[SearchPlan, Point, SweepOutcome]):
    """The study of one search. What Optuna knows of it stays in the process that deals."""

    asked: SearchPlan
    done: list[Trial] = field(default_factory=list)
    """All trials that were asked for, in order."""
    name = "sweep"
    about = "The values of keys for which a figure is least, or greatest."
    tolerant = True
    sequential = True
    outcome = SweepOutcome
    _optuna: Any = None
    _asked: list[Any] = field(default_factory=list)
    _told: int = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"asked": self.asked, "done": [], "_optuna": None, "_asked": [], "_told": 0}

    def ask(self, *args: Any, **options: Any) -> SearchPlan:
        return self.asked

    def simulate(self, case: Point) -> SweepOutcome:
        return simulate(case)

    def mark(self) -> str:
        """Returns the mark of sweeps; what each word of each key needs is compiled."""
        spaces = self.asked.spaces
        first = {space.key: space.values[0].label if space.values else space.low
                 for space in spaces}  # fmt: skip
        tried = [first, *({**first, space.key: value.label}
                          for space in spaces for value in space.values)]  # fmt: skip
        points = [point for params in tried for point in self._trial(params).points[:1]]
        programs = {compiled_for(point.experiment()): point for point in points}
        return mark_of([*programs.values()])

    def claims(self, asked: SearchPlan, outcomes: Mapping[str, SweepOutcome]) -> list[Claim]:
        return []

    def cases(self, asked: SearchPlan, outcomes: Mapping[str, SweepOutcome]) -> Sequence[Point]:
        """Returns the points of all trials so far: a batch more, if all before are known."""
        study = self._study()
        while True:
            batch = self.done[self._told :]
            if any(point.key not in outcomes for trial in batch for point in trial.points):
                break
            for trial, suggested in zip(batch, self._asked[self._told :], strict=True):
                mean = self.mean(trial, outcomes).mean
                if mean == mean and not self.misleads(trial, outcomes):
                    study.tell(suggested, mean)
                else:
                    study.tell(suggested, state=_failed())
            self._told = len(self.done)
            more = min(BATCH, asked.trials - len(self.done))
            if more <= 0:
                break
            space = {each.key: each.distribution() for each in asked.spaces}
            self._asked += [study.ask(space) for _ in range(more)]
            self.done += [self._trial(it.params) for it in self._asked[self._told :]]
        points = (point for trial in self.done for point in trial.points)
        return [*{point.key: point for point in points}.values()]

    def _study(self) -> Any:
        import optuna

        if self._optuna is None:
            optuna.logging.set_verbosity(optuna.logging.WARNING)
            self._optuna = optuna.create_study(
                direction="minimize" if self.asked.direction == "minimise" else "maximize",
                sampler=optuna.samplers.TPESampler(seed=self.asked.seeds[0]),
            )
        return self._optuna

    def _trial(self, params: Mapping[str, Any]) -> Trial:
        asked = self.asked
        values = {space.key: space.text(params[space.key]) for space in asked.spaces}
        changes = (*asked.changes, *(change for space in asked.spaces
                                     for change in space.changes(values[space.key])))  # fmt: skip
        try:
            made = load(Path(asked.file), [*changes, f"{SEED}={asked.seeds[0]}"], asked.plugins)
        except Refused:
            return Trial(values, ())
        labels, names = tuple(values.values()), tuple(values)
        return Trial(values, tuple(
            Point(asked.file, changes, asked.plugins, labels, names, seed, identity)
            for seed, identity in zip(asked.seeds, identities(made, asked.seeds), strict=True)
        ))  # fmt: skip

    def mean(self, trial: Trial, outcomes: Mapping[str, SweepOutcome]) -> Interval:
        """Returns the mean of the figure over the seeds of a trial, and its interval."""
        return interval([figure_of(outcomes.get(point.key), self.asked.figure)
                         for point in trial.points])  # fmt: skip

    def misleads(self, trial: Trial, outcomes: Mapping[str, SweepOutcome]) -> bool:
        """Tells whether the mean of a trial would be read as that of steady states, and is none."""
        found = (outcomes.get(point.key) for point in trial.points)
        return any(it is not None and it.misleads(self.asked.figure) for it in found)

    def verdict(self, trial: Trial, outcomes: Mapping[str, SweepOutcome]) -> str:
        """Returns the verdicts on the points of a trial, each once."""
        found = (outcomes.get(point.key) for point in trial.points)
        return ", ".join(dict.fromkeys(it.verdict for it in found if it is not None and it.verdict))

    def ranked(self, outcomes: Mapping[str, SweepOutcome]) -> list[tuple[int, Trial, Interval]]:
        """Returns the trials that have a mean, the best first, each with its number; those whose
        means are not of steady states come after all others."""
        found = [(number, trial, self.mean(trial, outcomes))
                 for number, trial in enumerate(self.done, 1)]  # fmt: skip
        sign = 1 if self.asked.direction == "minimise" else -1
        return sorted(
            (it for it in found if it[2].of),
            key=lambda it: (self.misleads(it[1], outcomes), sign * it[2].mean),
        )

    def to_csv(self, outcomes: Mapping[str, SweepOutcome]) -> str:
        """Returns a row for each trial, in the order in which they were suggested."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        keys = [space.key for space in self.asked.spaces]
        writer.writerow(
            ["trial", *map(csv_cell, keys), "mean", "low", "high", "of", "steady_state"]
        )
        for number, trial in enumerate(self.done, 1):
            made = ["" if value != value else value for value in self.mean(trial, outcomes)]
            values = (csv_cell(trial.values[key]) for key in keys)
            writer.writerow([number, *values, *made, self.verdict(trial, outcomes)])
        return text.getvalue()


def figure_of(outcome: SweepOutcome | None, figure: str) -> float | None:
    """Returns a figure of a point; of a figure of jobs the mean over all jobs, or that of one, as
    jobs.fft.run_time_ps. Refused where a point that has not failed has no such figure."""
    if outcome is None or outcome.failed:
        return None
    if figure in outcome.figures:
        return outcome.figures[figure]
    name = figure.removeprefix(JOBS)
    of_jobs = [job[name] for job in outcome.jobs.values() if name in job]
    if of_jobs:
        return mean_of(of_jobs)
    job, _, last = name.rpartition(".")
    found = [outcome.jobs[job]] if job in outcome.jobs else outcome.of_kind(job)
    if any(last in each for each in found):
        return mean_of(each.get(last) for each in found)
    Swept({}, (1,), ("",), {"": outcome}).named(figure)  # which refuses it
    return None


def _failed() -> Any:
    from optuna.trial import TrialState

    return TrialState.FAIL
