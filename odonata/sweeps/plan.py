"""The points of a sweep: every combination of the values of its axes, with every seed.

A **point** is one experiment. It is known by all that decides its outcome, so one that was
simulated before is not simulated again, whatever else of the sweep has changed since; and two
combinations that come to the same experiment are one simulation.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from odonata.experiment.experiment import BY_PATH, SEED, Experiment, JobExperiment
from odonata.experiment.reading import load, parse, text_of, tree_of, with_included
from odonata.results.statistics import METHODS, RESAMPLED
from odonata.study.contract import Case
from odonata.sweeps.axes import Axis, Wanted, key_of, merged, number_of, of_file
from pdes.errors import Refused

AnyExperiment = Experiment | JobExperiment
MOST_POINTS = 1_000_000
MOST_PROBLEMS = 20
INDIFFERENT = ("name", "about", "plugins", "run.protocol", "run.checkpoint_every",
               "run.dedicated_scheduler")  # fmt: skip
"""Keys that do not decide an outcome; nor do those of [metrics]."""
YOUNGER = ("trace.warmup", "trace.cooldown", "jobs.number", "trace.resample")
INDEX = re.compile(r"\[\d+\]")
"""Keys that decide one only where they are given: sweeps that were begun without them go on."""


@dataclass(frozen=True)
class Point(Case):
    """One experiment of a sweep: a file, the changes that are made to it, and a seed."""

    file: str
    changes: tuple[str, ...]
    plugins: tuple[str, ...]
    labels: tuple[str, ...]
    """The label of its value on each axis."""
    names: tuple[str, ...]
    """The names of these axes."""
    seed: int
    identity: str
    """A digest of all that decides its outcome, the seed included."""
    text: str | None = None
    """What the file would say, where a command has written it and it is in none."""

    def fields(self) -> dict[str, Any]:
        return {**dict(zip(self.names, self.labels, strict=True)), "seed": self.seed}

    @cached_property
    def key(self) -> str:
        return self.identity

    def __str__(self) -> str:
        parts = [f"{name}={label}" for name, label in zip(self.names, self.labels, strict=True)]
        return ", ".join([*parts, f"seed {self.seed}"])

    def experiment(self) -> AnyExperiment:
        changes = [*self.changes, f"{SEED}={self.seed}"]
        return read(self.file, self.text, changes, self.plugins)


def read(
    file: Path | str, text: str | None, changes: Sequence[str], plugins: Sequence[Path | str]
) -> AnyExperiment:
    """Returns the experiment in a file or, if there is one, in the text that stands for it."""
    if text is None:
        return load(Path(file), changes, plugins)
    return parse(text, str(file), changes, plugins)


@dataclass(frozen=True)
class Plan:
    """All that is to be simulated, in order, and how it is to be shown."""

    file: str
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    points: tuple[Point, ...]
    """A point for each seed of each combination; seeds vary fastest, then the last axis."""
    wanted: Wanted
    variants: tuple[Point, ...]
    """A point for each program that is compiled."""
    seeded: bool | None = None
    """Whether the seed decides anything at any combination; None where only runs can tell."""
    refused: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """Why combinations cannot be simulated, by their labels, where the others are all the same."""

    def facts(self) -> dict[str, Any]:
        """Returns what is kept of it beside the outcomes."""
        return {
            "file": self.file,
            "axes": {axis.name: list(axis.labels) for axis in self.axes},
            "seeds": list(self.seeds),
            "points": [point.key for point in self.points],
            "seeded": self.seeded,
            "wanted": {name: it for name, it in asdict(self.wanted).items() if name != "axes"},
        }


def planned(
    file: Path,
    changes: Sequence[str] = (),
    plugins: Sequence[Path | str] = (),
    wanted: Mapping[str, Any] | None = None,
    axes: Sequence[Axis] = (),
    *,
    text: str | None = None,
    tolerant: bool = False,
) -> Plan:
    """Returns the plan of a sweep. `changes` with several values are axes, in place of those of the
    file of that name; so are `axes`. `wanted` replaces what [sweep] says of seeds, figures and the
    rest; `text` stands for the file. Every combination is read and checked. Refused with what is
    wrong; one that is `tolerant` has the points of the other combinations."""
    said = replace(asked_in(file, text), **(wanted or {}))
    every, fixed = merged([*said.axes, *axes], changes)
    for axis in every.values():
        check(axis)
    if "seeds" in (wanted or {}) and SEED in every:
        if every[SEED] not in said.axes:  # but in the changes
            raise Refused(f"{SEED} = {', '.join(every[SEED].labels)}: which seeds, or how many "
                          "(--seeds), not both")  # fmt: skip
        del every[SEED]
    seeds = _seeds(every.pop(SEED, None), said.seeds, file, text, fixed, plugins, every)
    order = tuple(every.values())
    plan = Plan(str(file), order, seeds, (), replace(said, axes=order), ())
    return _with_points(plan, fixed, tuple(map(str, plugins)), text, tolerant)


def _method(asked: str, replicates: set[bool]) -> str:
    """Returns how intervals are computed: as was asked, where that is right. Refused where seeds
    are replicates of a trace at some combinations and not at others."""
    if len(replicates) > 1:
        raise Refused("trace.resample: at some combinations a seed is a replicate of the trace, "
                      "and at others it is not: sweep them apart")  # fmt: skip
    if True not in replicates:
        if asked == RESAMPLED:
            raise Refused(f"interval = {asked}: of replicates of a trace, and seeds are none: give "
                          "trace.resample, as 7 d, or leave it out")  # fmt: skip
        return asked or METHODS[0]
    if asked not in ("", RESAMPLED):
        raise Refused(f"interval = {asked}: of independent runs, while with trace.resample seeds "
                      "are replicates of one trace, whose spread is the interval: leave it out"
                      )  # fmt: skip
    return RESAMPLED


def asked_in(file: Path, text: str | None = None) -> Wanted:
    """Returns what the sections [sweep] of a file, and of those that it includes, ask for. Refused
    with what is wrong in them."""
    problems: list[str] = []
    asked = Wanted()
    text = text_of(file) if text is None else text
    for tree, where in with_included(tree_of(text, str(file)), str(file), problems.append):
        asked = of_file(tree, where, problems, asked)
    if problems:
        raise Refused("\n".join(problems))
    return asked


RESERVED = ("seed", "job", "figure", "digest", "mean", "low", "high", "of", "trial")
"""Names of columns, which no axis can have."""


def check(axis: Axis) -> None:
    """Refuse an axis whose values or name cannot be told from others."""
    if axis.name in RESERVED:
        raise Refused(f"{axis.name}: no name for an axis: a column of the results has it")
    if axis.name != SEED and any(key_of(change) == SEED
                                 for value in axis.values for change in value.changes):  # fmt: skip
        raise Refused(f"{axis.name}: {SEED} cannot be changed with other keys: every combination "
                      "has the same seeds (--seeds, or --set run.seed=3,7)")  # fmt: skip
    labels = [number_of(label) for label in axis.labels]
    if len({*labels}) < len(labels):
        raise Refused(f"{axis.name} = {', '.join(axis.labels)}: values that differ")


def _seeds(
    axis: Axis | None, count: int, file: Path, text: str | None, fixed: Sequence[str],
    plugins: Sequence[Path | str], every: Mapping[str, Axis],
) -> tuple[int, ...]:  # fmt: skip
    """Returns the seeds: those of `run.seed`, if it was given several values, or so many from that
    of the experiment on."""
    if axis is not None:
        try:
            return tuple(int(label) for label in axis.labels)
        except ValueError:
            raise Refused(f"{SEED} = {', '.join(axis.labels)}: whole numbers") from None
    first = [change for axis in every.values() for change in axis.values[0].changes]
    base = read(file, text, [*fixed, *first], plugins).run.seed
    return tuple(range(base, base + count))


def _with_points(
    plan: Plan, fixed: Sequence[str], plugins: tuple[str, ...], text: str | None, tolerant: bool
) -> Plan:
    """Returns a plan with its points, each of which is read and checked."""
    axes, seeds = plan.axes, plan.seeds
    count = math.prod(len(axis.values) for axis in axes) * len(seeds)
    if count > MOST_POINTS:
        raise Refused(f"{count:,} points; at most {MOST_POINTS:,}")
    combinations = [*itertools.product(*(axis.values for axis in axes))]
    names = tuple(axis.name for axis in axes)
    points: list[Point] = []
    variants: dict[str, Point] = {}
    refused: dict[tuple[str, ...], str] = {}
    drawn: set[bool | None] = set()
    replicates: set[bool] = set()
    for values in combinations:
        changes = (*fixed, *(change for value in values for change in value.changes))
        labels = tuple(value.label for value in values)
        try:
            made = read(plan.file, text, [*changes, f"{SEED}={seeds[0]}"], plugins)
        except Refused as refusal:
            refused[labels] = str(refusal)
            continue
        for seed, identity in zip(seeds, identities(made, seeds), strict=True):
            points.append(Point(plan.file, changes, plugins, labels, names, seed, identity, text))
        variants.setdefault(compiled_for(made), points[-1])
        drawn.add(seed_decides(made))
        replicates.add(made.replicates)
    if refused and not (tolerant and points):
        problems = dict.fromkeys(line for why in refused.values() for line in why.splitlines())
        more = len(problems) - MOST_PROBLEMS
        lines = [*problems][:MOST_PROBLEMS] + [f"and {more:,} more problems"] * (more > 0)
        raise Refused("\n".join(lines))
    seeded = True if True in drawn else None if None in drawn else False
    wanted = replace(plan.wanted, interval=_method(plan.wanted.interval, replicates))
    return replace(plan, points=tuple(points), variants=tuple(variants.values()), seeded=seeded,
                   wanted=wanted, refused=refused)  # fmt: skip


def seed_decides(made: AnyExperiment) -> bool | None:
    """Tells whether the seed of an experiment changes its outcome: generated traffic and generated
    jobs are drawn at random, while the jobs of a file that are only counted, without power, are not
    (disciplines do not draw). None where it depends on the policies and patterns: only runs can
    tell."""
    if not isinstance(made, JobExperiment):
        return True if made.traffic else None
    if made.trace.model is not None or made.replicates:
        return True
    return False if made.machine is None and made.power is None else None


def compiled_for(made: AnyExperiment) -> str:
    """Returns a text that is the same for experiments that run the same compiled program."""
    if isinstance(made, JobExperiment):
        model = made.model()
        return f"{model.scheduling} {model.allocation} {model.power is not None}"
    return made.model().variant


def identities(made: AnyExperiment, seeds: Sequence[int]) -> Iterator[str]:
    """Returns a digest of all that decides the outcome of an experiment, for each seed."""
    said = {path: value for path, value in made.written().items()
            if path not in (*INDIFFERENT, SEED) and not path.startswith("metrics.")
            and not _is_younger(path, value)}  # fmt: skip
    files = {path: content_of(value.strip('"')) for path, value in said.items()
             if value.startswith('"/')}  # fmt: skip
    text = json.dumps([sorted(said.items()), sorted(files.items()), made.model().plugins()])
    for seed in seeds:
        yield hashlib.sha256(f"{text} {seed}".encode()).hexdigest()[:20]


def _is_younger(path: str, value: str) -> bool:
    """Tells whether a key is one of YOUNGER, and has its default."""
    path = INDEX.sub("", path)
    if path not in YOUNGER:
        return False
    key = BY_PATH[path]
    return value.strip('"') in (key.default, key.none)


def content_of(path: str) -> str:
    """Returns a digest of a file that an experiment names; "" where there is none."""
    try:
        about = os.stat(path)
        return _content_of(path, about.st_mtime_ns, about.st_size)
    except OSError:
        return ""


@cache
def _content_of(path: str, changed_ns: int, size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
