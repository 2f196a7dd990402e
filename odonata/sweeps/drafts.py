"""Sweeps that commands write from their options, in place of a user: the text of the file, its
plan, and its runs as wholes, with all that is printed, drawn and written of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from odonata.experiment.experiment import SEED, JobExperiment
from odonata.experiment.progress import ProgressLine
from odonata.experiment.values import from_shell
from odonata.jobs.series_repair import unsaid
from odonata.results.execution import RunOptions, execute
from odonata.results.facts import run_facts
from odonata.results.market_memory import Traded
from odonata.results.measured import traded, traded_facts
from odonata.results.run import open as open_run
from odonata.study.filling import fill
from odonata.sweeps.axes import Axis, Value, key_text, toml
from odonata.sweeps.outcomes import SweepOutcome, outcome_of
from odonata.sweeps.plan import Plan, Point, planned
from odonata.sweeps.study import Sweep
from pdes import launcher
from pdes.errors import Fault, Refused
from pdes.replacing import replacing
from pdes.transport import Serial, world

FEW = 4
"""So few runs are done here: to start processes would take longer."""
Sections = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Draft:
    """A sweep as a command writes it from its options: the text of an experiment, and axes.
    `where` is the name of the command, of which problems are told."""

    where: str
    experiment: str
    axes: Sequence[Axis] = ()
    seeds: Sequence[int] = (1,)

    @property
    def text(self) -> str:
        """Returns the file that a user would have written."""
        own = {"seeds": len(self.seeds)} if len(self.seeds) > 1 else {}
        keys = {axis.name: [from_shell(_value(value)) for value in axis.values]
                for axis in self.axes if not axis.labelled}  # fmt: skip
        labelled = {f"sweep.{axis.name}": {key_text(value.label): dict(map(_change, value.changes))
                                           for value in axis.values}
                    for axis in self.axes if axis.labelled}  # fmt: skip
        return self.experiment + text_of_sections({"sweep": own | keys, **labelled})

    def plan(self, tolerant: bool = False) -> Plan:
        """Returns the plan of the sweep. Refused with what is wrong."""
        seeds = Axis(SEED, tuple(Value(str(it), (f"{SEED}={it}",)) for it in self.seeds))
        return planned(Path(self.where), axes=[*self.axes, seeds], text=self.experiment,
                       tolerant=tolerant)  # fmt: skip


def _value(value: Value) -> str:
    """Returns the value of a key on an axis, as TOML."""
    (change,) = value.changes
    return change.partition("=")[2]


def _change(change: str) -> tuple[str, Any]:
    key, _, value = change.partition("=")
    return key, from_shell(value)


def text_of_sections(sections: Sections) -> str:
    """Returns sections as TOML; what is None is left out, and so are sections of nothing."""
    lines: list[str] = []
    for section, keys in sections.items():
        said = {name: value for name, value in keys.items() if value is not None}
        lines += ["", f"[{section}]"] if section and keys else []
        lines += [f"{name} = {toml(value)}" for name, value in said.items()]
    return "\n".join(lines) + "\n" * bool(lines)


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    with replacing(path.resolve()) as part:  # a link stays one
        part.write_text(text, encoding="utf-8")


def check_written(
    options: Mapping[str, tuple[Path | None, str]], out: Path | None = None, overwrite: bool = False
) -> None:
    """Refuse files that cannot be written, by their options, each with the suffix that it must
    have; and a directory of runs that has something in it."""
    for option, (path, suffix) in options.items():
        if path is None:
            continue
        if path.suffix.lower() != suffix and suffix:
            raise Refused(f"{option} {path}: the name must end in {suffix}")
        if not path.absolute().parent.is_dir():
            raise Refused(f"{option} {path}: there is no directory {path.parent}")
        if path.exists() and suffix and not overwrite:
            raise Refused(f"{option} {path}: there is such a file: name another, or add "
                          "--overwrite")  # fmt: skip
    if out is not None and out.exists() and any(out.iterdir()) and not overwrite:
        raise Refused(f"-o {out}: there is something in it: name another, or add --overwrite")
    if out is not None and (launcher.ranks() or 1) > 1:
        raise Refused(f"-o {out}: runs are kept one after the other: without mpiexec")


# -- its runs


Derive = Callable[[JobExperiment, Traded], Any]
"""What a command takes from a run beside its facts; a function of a module, as processes call
it."""


@dataclass(frozen=True)
class WholeRun(SweepOutcome):
    """A run of jobs with all its facts, and what a command has derived from it."""

    seed: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    derived: Any = None
    seconds: float = 0.0
    """What it took to simulate and to measure it, without compiling."""


@dataclass(frozen=True)
class Kept:
    """Where runs are kept: each in a directory of this one, by its key, with the file that it was
    made from."""

    directory: Path
    file: str
    names: Mapping[str, str]
    overwrite: bool = False


@dataclass(frozen=True)
class WholeRuns(Sweep):
    """A sweep of which runs are needed as wholes. Their outcomes stay in memory."""

    derive: Derive | None = None
    kept: Kept | None = None

    def simulate(self, case: Point) -> WholeRun:
        with unsaid():  # as the plan has read all files before
            made = case.experiment()
            assert isinstance(made, JobExperiment)
            if self.kept is not None and case.key in self.kept.names:
                return self._kept(case, made, self.kept)
            began = time.perf_counter()
            try:
                alone = len(self.plan.points) == 1
                line = ProgressLine(None, made.tick) if alone else None
                try:
                    found = traded(made, Serial(), line)
                finally:
                    if line:
                        line.close()
                return self._whole(made, found, traded_facts(made, found), began)
            except (Fault, Refused) as error:
                return WholeRun(failed=str(error), seed=case.seed)

    def _kept(self, case: Point, made: JobExperiment, kept: Kept) -> WholeRun:
        """Returns a run that is kept in a directory."""
        out = kept.directory / kept.names[case.key]
        began = time.perf_counter()
        done = execute(RunOptions(kept.directory / kept.file, out,
                                  (*case.changes, f"{SEED}={case.seed}"),
                                  overwrite=kept.overwrite, progress=False))  # fmt: skip
        with open_run(out) as run:
            if done is None or not run.complete:
                raise Refused(f"stopped before its end: go on with `odonata run --resume -o {out}`,"
                              f" and see what came of it with `odonata report {out}`")  # fmt: skip
            found = Traded(run.schedule, done.result, run.power, run.market)
            return self._whole(made, found, run_facts(done), began)

    def _whole(
        self, made: JobExperiment, found: Traded, facts: Mapping[str, Any], began: float
    ) -> WholeRun:
        figures = asdict(outcome_of(facts))
        derived = None if self.derive is None else self.derive(made, found)
        seconds = time.perf_counter() - began - found.result.compile_seconds
        return WholeRun(
            **figures, seed=made.run.seed, facts=facts, derived=derived, seconds=seconds
        )


def whole_runs(
    draft: Draft, plan: Plan, derive: Derive | None, jobs: int = 1, kept: Kept | None = None
) -> dict[tuple[str, ...], list[WholeRun]]:
    """Returns the runs of a plan by the labels of its combinations, seed by seed; nothing on all
    ranks but the first. Those that are kept are done one after the other, and in this process, as
    few are."""
    if kept is not None:
        kept.directory.mkdir(parents=True, exist_ok=True)
        write_text(kept.directory / kept.file, draft.text)
    here = kept is not None or len(plan.points) < FEW
    ran, store = fill(WholeRuns(plan, derive=derive, kept=kept), plan, None, 1 if here else jobs)
    if ran.failures:
        raise Fault(ran.failures[0])
    found: dict[tuple[str, ...], list[WholeRun]] = {}
    outcomes: Mapping[str, Any] = store.outcomes
    for point in plan.points if world().rank == 0 else ():
        found.setdefault(point.labels, []).append(outcomes[point.key])
    return found
