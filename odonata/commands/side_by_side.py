"""Runs side by side, whatever they simulated: a column per run, or per group of runs that differ
only in their seed, with means and confidence intervals; and changes against the first.

Changes are relative: a utilisation that goes from 40 % to 50 % has changed by +25 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from odonata.results.opened import Opened
from odonata.results.statistics import Interval, difference, interval

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDEST = 24
"""The largest width of a column in letters; longer words are broken."""
SEED = "run.seed"
INDIFFERENT = (SEED, "name", "about", "plugins", "run.protocol", "run.checkpoint_every",
               "run.dedicated_scheduler")  # fmt: skip
"""Settings in which the runs of a group may differ; and those of [metrics]."""


class Figure(NamedTuple):
    """A row of the table: its name in JSON, its name for people, and how a value is written."""

    path: str
    name: str
    text: Callable[[float], str]


class Column(NamedTuple):
    """A run beside others. `label` is the user's name for it, as short as is clear; `values` are
    those of its figures by path, None where there is none, such as the latency of no packet; `said`
    are rows of words about it; `facts` are for JSON; `marked` are the figures that would be read as
    means of a steady state, and are none."""

    label: str
    run: Opened
    values: Mapping[str, float | None]
    said: Mapping[str, str]
    facts: Mapping[str, Any]
    marked: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seed; or one run."""

    label: str
    columns: tuple[Column, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(column.run.experiment.run.seed for column in self.columns)

    def values(self, path: str) -> list[float | None]:
        return [column.values.get(path) for column in self.columns]

    def mean(self, path: str) -> Interval:
        return interval(self.values(path))

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
        while any(column.run.experiment.run.seed == other.run.experiment.run.seed
                  for other in groups.get((*place, again), ())):  # fmt: skip
            again += 1
        groups.setdefault((*place, again), []).append(column)
    if len(groups) < 2 or len(groups) == len(columns):
        return each(columns)
    stems = [_stem([column.label for column in some]) for some in groups.values()]
    if len(set(stems)) < len(stems):
        stems = [some[0].label for some in groups.values()]
    return [Group(f"{stem} ({len(some)} seeds)" if len(some) > 1 else some[0].label,
                  tuple(sorted(some, key=_seed)))
            for stem, some in zip(stems, groups.values(), strict=True)]  # fmt: skip


def _seed(column: Column) -> int:
    seed: int = column.run.experiment.run.seed
    return seed


def each(columns: Sequence[Column]) -> list[Group]:
    """Returns every run as a group of its own."""
    return [Group(column.label, (column,)) for column in columns]


def _settings(run: Opened) -> tuple[tuple[str, str], ...]:
    return tuple((path, value) for path, value in run.experiment.written().items()
                 if path not in INDIFFERENT and not path.startswith("metrics."))  # fmt: skip


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


def differences(runs: Sequence[Opened]) -> dict[str, list[str]]:
    """Returns the settings that are not the same in all runs, by key, as a file would have them."""
    asked = asked_of(runs)
    paths = dict.fromkeys(path for each in asked for path in each)
    values = {path: [_asked(each, path) for each in asked] for path in paths}
    return {path: found for path, found in values.items() if len(set(found)) > 1}


def asked_of(runs: Sequence[Opened]) -> list[dict[str, str]]:
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
    first, second = (dict(zip(it.seeds, it.values(path), strict=True)) for it in (base, group))
    common = [seed for seed in first if seed in second]
    if len(common) > 1:
        apart = difference([first[it] for it in common], [second[it] for it in common], True)
    else:
        apart = difference([*first.values()], [*second.values()], False)
    return Change(part, None if math.isnan(apart.low) else apart.excludes_zero)


def relative(value: float | None, first: float | None) -> float | None:
    """Returns the change as a fraction of the first, or None where there is no such thing."""
    if value is None or first is None or math.isnan(value) or math.isnan(first):
        return None
    if math.isclose(first, 0.0, abs_tol=1e-300):
        return None
    return value / first - 1


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
                "figures": {it.path: column.values.get(it.path) for it in figures},
                "change": {it.path: relative(column.values.get(it.path),
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
    means = {it.path: group.mean(it.path) for it in figures}
    changes = {it.path: change(group, base, it.path) for it in figures}
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
            add(figure.name, [mean_text(figure, mean) + group.mark(figure.path)
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


def about_changes(groups: Sequence[Group]) -> str:
    """Returns how to read the numbers."""
    words = f"Changes are relative, against {groups[0].label}."
    if any(len(group.columns) > 1 for group in groups):
        words += (" Of several seeds: the mean ± half of its 95 % confidence interval; ~ the "
                  "change is not significant at this confidence.")  # fmt: skip
    return words
