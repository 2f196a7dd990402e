"""Runs side by side, whatever they simulated: a column per run, or per group of runs that differ
only in their seed, with means and confidence intervals; and changes against the first. Rows are the
figures of the register that any of the runs has.

Changes are relative: a utilisation that goes from 40 % to 50 % has changed by +25 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from odonata.experiment.units import show_duration, show_time
from odonata.results.job_table import by_pattern
from odonata.results.measured import Measured
from odonata.results.register import (
    FIGURES,
    JOB_FIGURES,
    JOBS,
    LOAD,
    MARKET,
    NETWORK,
    POWER,
    SCHEDULE,
    Figure,
    misleads,
)
from odonata.results.run import INCOMPLETE, Run
from odonata.results.statistics import METHODS, RESAMPLED, Interval, difference, interval
from odonata.results.summary_rows import simulated_text, still

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDEST = 24
"""The largest width of a column in letters; longer words are broken."""
SEED = "run.seed"
INDIFFERENT = (SEED, "name", "about", "plugins", "run.protocol", "run.checkpoint_every",
               "run.dedicated_scheduler")  # fmt: skip
"""Settings in which the runs of a group may differ; and those of [metrics]."""


class Column(NamedTuple):
    """A run beside others. `label` is the user's name for it, as short as is clear; `values` are
    those of its figures by path, None where there is none, such as the latency of no packet; `said`
    are rows of words about it; `facts` are for JSON; `marked` are the figures that would be read as
    means of a steady state, and are none."""

    label: str
    run: Run
    values: Mapping[str, float | None]
    said: Mapping[str, str]
    facts: Mapping[str, Any]
    marked: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seeds; or one run."""

    label: str
    columns: tuple[Column, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(column.run.experiment.run.seed for column in self.columns)

    @property
    def every_seed(self) -> tuple[tuple[int, ...], ...]:
        """Returns the seeds of each run: that of the run, and those of placement and the like."""
        return tuple(_seeds(column) for column in self.columns)

    def values(self, path: str) -> list[float | None]:
        return [column.values.get(path) for column in self.columns]

    @property
    def method(self) -> str:
        """Returns how its intervals are computed."""
        return RESAMPLED if self.columns[0].run.experiment.replicates else METHODS[0]

    def mean(self, path: str) -> Interval:
        return interval(self.values(path), method=self.method)

    def mark(self, path: str) -> str:
        """Returns what stands behind a figure that is not of a steady state, in any of its runs."""
        return " *" if any(path in column.marked for column in self.columns) else ""


class Change(NamedTuple):
    """The change of a figure as a fraction of the baseline's, None where there is no such thing;
    and whether it is significant, None where nobody can tell: one run has no spread."""

    part: float | None
    significant: bool | None


def grouped(columns: Sequence[Column]) -> list[Group]:
    """Returns the groups of runs that differ only in their seed. A run whose seed a group has
    already is another group. Where all runs were one group, there would be nothing to compare, and
    each is by itself."""
    groups: dict[tuple[Any, ...], list[Column]] = {}
    for column in columns:
        place, again = _settings(column.run), 0
        while any(_seeds(column) == _seeds(other) for other in groups.get((*place, again), ())):
            again += 1
        groups.setdefault((*place, again), []).append(column)
    if len(groups) < 2 or len(groups) == len(columns):
        return each(columns)
    stems = [_stem([column.label for column in some]) for some in groups.values()]
    if len(set(stems)) < len(stems):
        stems = [some[0].label for some in groups.values()]
    return [Group(f"{stem} ({len(some)} seeds)" if len(some) > 1 else some[0].label,
                  tuple(sorted(some, key=_seeds)))
            for stem, some in zip(stems, groups.values(), strict=True)]  # fmt: skip


def _seeds(column: Column) -> tuple[int, ...]:
    from odonata.experiment.sections import seeds_of

    return tuple(seeds_of(column.run.experiment.run).values())


def each(columns: Sequence[Column]) -> list[Group]:
    """Returns every run as a group of its own."""
    return [Group(column.label, (column,)) for column in columns]


def _settings(run: Run) -> tuple[tuple[str, str], ...]:
    indifferent = ("metrics.", f"{SEED}.")
    return tuple((path, value) for path, value in run.experiment.written().items()
                 if path not in INDIFFERENT and not path.startswith(indifferent))  # fmt: skip


def _stem(labels: Sequence[str]) -> str:
    """Returns the letters with which all labels begin."""
    first, last = min(labels), max(labels)
    same = next((n for n, pair in enumerate(zip(first, last, strict=False)) if len({*pair}) > 1),
                min(len(first), len(last)))  # fmt: skip
    return first[:same].rstrip("-_./ ") or labels[0]


def labels_of(directories: Sequence[Any]) -> list[str]:
    """Returns the names of directories or, where two are alike, their paths."""
    names = [path.resolve().name for path in directories]
    return names if len(set(names)) == len(names) else [str(path) for path in directories]


def differences(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Returns the settings that are not the same in all runs, by key, as a file would have them."""
    asked = asked_of(runs)
    paths = dict.fromkeys(path for each in asked for path in each)
    values = {path: [_asked(each, path) for each in asked] for path in paths}
    return {path: found for path, found in values.items() if len(set(found)) > 1}


def asked_of(runs: Sequence[Run]) -> list[dict[str, str]]:
    """Returns the settings of each run. Jobs are known by their names, where all have one of their
    own, and else by their numbers. One of [[jobs]] or [[traffic]] that not all runs have is one
    setting, what it is called, or else what it does."""
    asked = [dict(run.experiment.written()) for run in runs]
    if all(map(_names, asked)):
        asked = [_by_name(each) for each in asked]
    sections = [{path.rpartition(".")[0] for path in each if "[" in path} for each in asked]
    for section in sorted(set().union(*sections) - sections[0].intersection(*sections)):
        for each in asked:
            own = [path for path in each if path.startswith(f"{section}.")]
            names = (each.get(f"{section}.{name}", '""') for name in ("name", "pattern"))
            called = next((name for name in names if name != '""'), "-")
            for path in own:
                del each[path]
            each[section] = called if own else "none"
    return asked


def _names(asked: Mapping[str, str]) -> dict[str, str]:
    """Returns the names of jobs by their section; none where two have the same, or one has none."""
    names = {path.removesuffix(".name"): value.strip('"') for path, value in asked.items()
             if path.startswith("jobs[") and path.endswith("].name")}  # fmt: skip
    return names if len({*names.values()} - {""}) == len(names) else {}


def _by_name(asked: Mapping[str, str]) -> dict[str, str]:
    names = _names(asked)
    found = {}
    for path, value in asked.items():
        section, _, key = path.partition(".")
        found[f"jobs[{names[section]}].{key}" if section in names else path] = value
    return found


def _asked(written: Mapping[str, str], path: str) -> str:
    """Returns a value without quotes; what does not apply is empty."""
    return written.get(path, "-").strip('"')


def change(group: Group, base: Group, path: str) -> Change:
    """Returns the change of the mean of a figure. Two groups that have seeds in common are compared
    seed by seed, on these."""
    part = relative(group.mean(path).mean, base.mean(path).mean)
    if group is base:
        return Change(part, None)
    first, second = (dict(zip(it.every_seed, it.values(path), strict=True)) for it in (base, group))
    common = [seed for seed in first if seed in second]
    paired = len(common) > 1
    ones, others = ([of[it] for it in (common if paired else of)] for of in (first, second))
    apart = difference(ones, others, paired, method=group.method)
    return Change(part, None if math.isnan(apart.low) else apart.excludes_zero)


def relative(value: float | None, first: float | None) -> float | None:
    """Returns the change as a fraction of the first, or None where there is no such thing."""
    if value is None or first is None or math.isnan(value) or math.isnan(first):
        return None
    if math.isclose(first, 0.0, abs_tol=1e-300):
        return None
    return value / first - 1


# -- which figures, and what they are of each run

FEW = 6
"""The most jobs of which each has rows of its own."""
ORDER = (JOBS, SCHEDULE, POWER, MARKET, NETWORK)


def columns_of(labels: Sequence[str], runs: Sequence[Run]) -> tuple[list[Column], list[Figure]]:
    """Returns the runs as columns, and the figures that are their rows."""
    found = [Measured.of_run(run) for run in runs]
    values = [_values(run, it) for run, it in zip(runs, found, strict=True)]
    named = [figure for kind in ORDER for figure in [*_declared(kind, found), *_named(kind, found)]]
    shown = [figure for figure in named if figure.everywhere
             or any(each.get(figure.path) is not None for each in values)]  # fmt: skip
    causes = [it for it in shown if it.path.startswith("violations.")]
    silent = [it for it in causes if not any(each.get(it.path) for each in values)]
    shown = [it for it in shown if it not in silent]
    columns = [_column(label, run, it, known, shown, found) for label, run, it, known in
               zip(labels, runs, found, values, strict=True)]  # fmt: skip
    return columns, shown


def _declared(kind: str, found: Sequence[Measured]) -> Iterator[Figure]:
    """Returns the figures of a kind that apply: where all runs have jobs, no loads."""
    with_jobs, packets = all(it.schedule for it in found), any(it.performance for it in found)
    applies = {JOBS: packets and any(it.records for it in found), NETWORK: packets,
               SCHEDULE: not packets, POWER: True, MARKET: True}[kind]  # fmt: skip
    for figure in FIGURES:
        loads = figure.steady == LOAD or figure.path == "offered"
        if figure.kind == kind and applies and not (loads and with_jobs):
            yield figure


def _named(kind: str, found: Sequence[Measured]) -> Iterator[Figure]:
    """Returns the figures of jobs by their pattern and, where there are few, of each by name; of
    several of one name the first."""
    if kind != JOBS:
        return
    for pattern in dict.fromkeys(job.pattern for it in found for job in it.records):
        yield Figure(f"jobs.run_time_us.{pattern}", f"  of {pattern} (us)", JOBS, "{:,.1f}")
    names = dict.fromkeys(job.name for it in found for job in it.records)
    for name in names if len(names) <= FEW else ():
        for one in JOB_FIGURES:
            if one.path != "jobs.waiting_ps":
                yield Figure(_of_job(name, one), f"  {name}: {one.title}", JOBS, one.form)


def _of_job(name: str, one: Figure) -> str:
    """Returns the path of a figure of one job, with the unit in which it is shown."""
    path = one.path.removeprefix("jobs.")
    stem = path.removesuffix("_ps") if one.unit in ("us", "ns") else path
    return f"jobs.{name}.{stem}_{one.unit}" if stem != path else f"jobs.{name}.{path}"


def _values(run: Run, it: Measured) -> dict[str, float | None]:
    """Returns the figures of a run, by their paths: none before the first sample, and no loads
    before its warm-up is over."""
    if it.performance is not None and not len(run.times):
        return {}
    found = {figure.path: figure.value(it) for figure in FIGURES}
    if it.performance is None:
        return found
    if not it.performance.measured_packets:
        found |= {path: None for path in found if path.endswith("_latency_ns")}
    if not it.performance.packets:
        found["mean_hops"] = None
    if it.records or not begun(run):
        found |= {"offered": None, "throughput": None}
    for pattern, ps in by_pattern(it.records).items():
        found[f"jobs.run_time_us.{pattern}"] = ps / 1e6
    names = [job.name for job in it.records]
    for at, name in enumerate(names if len({*names}) <= FEW else ()):
        for one in JOB_FIGURES if names.index(name) == at else ():
            column = one.path.removeprefix("jobs.")
            value = float(run.jobs[column][at]) if column in run.jobs else math.nan
            found[_of_job(name, one)] = value * one.scale if value >= 0 else None
    return found


def begun(run: Run) -> bool:
    """Tells whether a run of packets reached the measurement."""
    return run.reached_ps > run.network.warmup_ps


def _column(
    label: str, run: Run, it: Measured, values: Mapping[str, float | None],
    shown: Sequence[Figure], found: Sequence[Measured],
) -> Column:  # fmt: skip
    state = "complete" if run.complete else "INCOMPLETE"
    if it.performance is None:
        said = {"state": state, "digest": (run.digest or "-")[:12]}
        return Column(label, run, values, said, {"reached_us": run.reached, "notes": [
            *_notes(label, run, it)]})  # fmt: skip
    judged = it.performance.steadiness if begun(run) and not it.records else None
    verdict = "" if judged is None else judged.verdict
    said = {"simulated": simulated_text(run.experiment.run.end, run.simulated_ps), "state": state}
    if not all(each.records for each in found):
        said["steady state"] = verdict or "-"
    facts = {
        "reached_ps": run.reached_ps,
        "simulated_ps": run.simulated_ps,
        "saturated": None if judged is None else it.performance.saturated,
        "steadiness": None if judged is None else asdict(judged),
        "notes": [*_notes(label, run, it)],
    }
    marked = frozenset(figure.path for figure in shown if misleads(verdict, figure.path))
    return Column(label, run, values, said, facts, marked)


def _notes(label: str, run: Run, it: Measured) -> Iterator[str]:
    """Returns what a reader must know before reading the figures of a run."""
    if not run.complete:
        reached, rest = f"{show_duration(run.reached / 1e6)} simulated", ""
        if it.performance is not None:
            reached = show_time(run.reached_ps)
            rest = f"{' ' if run.experiment.run.end else ' and '}{still(run.experiment)}"
        yield f"{label}: INCOMPLETE: {reached}{rest}; {INCOMPLETE[run.state]}"
    if it.performance is None:
        return
    found = it.performance.steadiness
    if begun(run) and not it.records and found.marked:
        yield f"{label}: {found.verdict}: {found.why} (* not a mean of a steady state)"
    if not it.performance.measured_packets:
        yield f"{label}: no packet was measured"


def notes(columns: Sequence[Column]) -> list[str]:
    """Returns what a reader must know before reading the figures."""
    return [line for column in columns for line in column.facts["notes"]] + same_runs(columns)


def same_runs(columns: Sequence[Column]) -> list[str]:
    """Returns a note for runs that have the same digest."""
    same: dict[str, list[str]] = {}
    for column in columns:
        if column.run.digest:
            same.setdefault(column.run.digest, []).append(column.label)
    return [f"{' = '.join(names)}: the same run (digest {digest[:12]})"
            for digest, names in same.items() if len(names) > 1]  # fmt: skip


# -- for programs


def comparison(
    groups: Sequence[Group], figures: Sequence[Figure], notes: Sequence[str]
) -> dict[str, Any]:
    """Returns the comparison for JSON. Changes are fractions of the first run's figures (or, of
    groups, of the first group's means); null where there is none."""
    columns = [column for group in groups for column in group.columns]
    first = columns[0]
    found: dict[str, Any] = {
        "differences": differences([column.run for column in columns]),
        "runs": [
            {
                "label": column.label, "path": str(column.run.path),
                "name": column.run.experiment.name, "complete": column.run.complete,
                **column.facts, "digest": column.run.digest,
                "figures": {it.compared: column.values.get(it.path) for it in figures},
                "change": {it.compared: relative(column.values.get(it.path),
                                                 first.values.get(it.path)) for it in figures},
            }
            for column in columns
        ],
        "notes": [*notes],
    }  # fmt: skip
    if len(groups) < len(columns):
        found["groups"] = [_group_facts(group, groups[0], figures) for group in groups]
    return found


def _group_facts(group: Group, base: Group, figures: Sequence[Figure]) -> dict[str, Any]:
    means = {it.compared: group.mean(it.path) for it in figures}
    changes = {it.compared: change(group, base, it.path) for it in figures}
    return {
        "label": group.label,
        "runs": [column.label for column in group.columns],
        "seeds": list(group.seeds),
        "figures": {path: {name: None if value != value else value
                           for name, value in mean._asdict().items()}
                    for path, mean in means.items()},
        "change": {path: made._asdict() for path, made in changes.items()},
    }  # fmt: skip


# -- for people


def tables(groups: Sequence[Group], figures: Sequence[Figure], console: Console) -> Iterator[Table]:
    """Returns one table or, where the terminal is too narrow, several, each with the first."""
    from rich.measure import Measurement

    first, others = groups[0], groups[1:]
    unbound = console.options.update(max_width=100_000)
    keys = differences([column.run for group in groups for column in group.columns])
    made: list[Table] = []
    for size in range(max(1, len(others)), 0, -1):
        made = [_table([first, *others[at : at + size]], figures, [*keys])
                for at in range(0, max(1, len(others)), size)]  # fmt: skip
        if all(Measurement.get(console, unbound, one).maximum <= console.width for one in made):
            break
    yield from made


def _table(groups: Sequence[Group], figures: Sequence[Figure], keys: Sequence[str]) -> Table:
    """Returns a table whose columns are groups, with the change beside each but the first; `keys`
    are the settings to show."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("", no_wrap=True)
    for number, group in enumerate(groups):
        shown.add_column(Text(group.label), justify="right", overflow="fold", max_width=WIDEST)
        if number:
            shown.add_column("", justify="right", no_wrap=True)

    def add(name: str, cells: Sequence[str], changes: Sequence[str] = ()) -> None:
        row = [Text(name, "dim")]
        for at, cell in enumerate(cells):
            row.append(Text(cell))
            row += [Text(changes[at] if changes else "", "cyan")] if at else []
        shown.add_row(*row)

    written = iter(asked_of([column.run for group in groups for column in group.columns]))
    asked = [[next(written) for _ in group.columns] for group in groups]
    for path in keys:
        add(path, [_together([_asked(each, path) for each in some]) for some in asked])
    if not keys:
        add("asked for the same", [])
    shown.add_row()
    for name in dict.fromkeys(name for group in groups for name in group.columns[0].said):
        add(name, [_together([column.said.get(name, "-") for column in group.columns])
                   for group in groups])  # fmt: skip
    shown.add_row()
    for figure in figures:
        means = [group.mean(figure.path) for group in groups]
        if any(mean.of for mean in means):
            changes = [change(group, groups[0], figure.path) for group in groups]
            add(figure.head, [mean_text(figure, mean) + group.mark(figure.path)
                              for group, mean in zip(groups, means, strict=True)],
                [change_text(it) for it in changes])  # fmt: skip
    return shown


def _together(words: Sequence[str]) -> str:
    """Returns what all say; or the first and the last, where they say different things."""
    apart = [*dict.fromkeys(words)]
    return apart[0] if len(apart) == 1 else f"{apart[0]} … {apart[-1]}"


def mean_text(figure: Figure, mean: Interval) -> str:
    """Returns a mean, with half of its interval if there is one."""
    if not mean.of:
        return "-"
    half = "" if math.isnan(mean.half) else f" ± {figure.text(mean.half)}"
    return figure.text(mean.mean) + half


def change_text(made: Change) -> str:
    """Returns a change in percent, marked where it is not significant."""
    return percent(made.part) + (" ~" if made.significant is False and made.part else "")


def percent(part: float | None) -> str:
    if part is None:
        return ""
    if abs(part) < 5e-4:
        return "0%" if part == 0 else "±0.0%"
    return f"{part:+,.0%}" if abs(part) >= 10 else f"{part:+.1%}"


def show(groups: Sequence[Group], figures: Sequence[Figure], notes: Sequence[str]) -> None:
    """Print the comparison."""
    from odonata.experiment.terminal import plain_console

    console = plain_console(highlight=False, markup=False)
    if not console.is_terminal:  # a file or a pipe is as wide as it must be
        console.width = 100_000
    for shown in tables(groups, figures, console):
        console.print(shown)
        console.print()
    for note in notes:
        console.print(note, style="bold", markup=False, soft_wrap=True)
    console.print(about_changes(groups), style="dim", markup=False, soft_wrap=True)


def about_changes(groups: Sequence[Group]) -> str:
    """Returns how to read the numbers."""
    words = f"Changes are relative, against {groups[0].label}."
    if any(len(group.columns) > 1 for group in groups):
        words += (" Of several seeds: the mean ± half of its 95 % confidence interval; ~ the "
                  "change is not significant at this confidence.")  # fmt: skip
    return words
