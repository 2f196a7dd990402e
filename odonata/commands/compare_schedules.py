"""`odonata compare` of runs of the job fidelity: their measures side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odonata.commands.output import print_json
from odonata.experiment.units import show_duration
from odonata.results.opened import INCOMPLETE
from odonata.results.schedule_rows import FIGURES, spread_rows
from odonata.results.schedule_run import ScheduleRun
from odonata.results.schedule_series import fragmentation

if TYPE_CHECKING:
    from rich.table import Table


def show(labels: Sequence[str], runs: Sequence[ScheduleRun], plot: Path | None, as_json: bool
         ) -> None:  # fmt: skip
    """Print and draw the comparison."""
    if plot is not None:
        from odonata.figures.schedule_comparison import draw_schedules

        draw_schedules({label: run.schedule for label, run in zip(labels, runs, strict=True)},
                         plot)  # fmt: skip
    if as_json:
        print_json(facts(labels, runs))
        return
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(highlight=False, markup=False)
    if not console.is_terminal:  # a file or a pipe is as wide as it must be
        console.width = 100_000
    unbound, made = console.options.update(max_width=100_000), []
    for size in range(len(runs) - 1, 0, -1):
        made = [table([labels[0], *labels[at : at + size]], [runs[0], *runs[at : at + size]])
                for at in range(1, len(runs), size)]  # fmt: skip
        if all(Measurement.get(console, unbound, one).maximum <= console.width for one in made):
            break
    for shown in made:
        console.print(shown)
        console.print()
    for note in notes(labels, runs):
        console.print(note, style="bold", soft_wrap=True)
    console.print(f"Changes are relative, against {labels[0]}.", style="dim", soft_wrap=True)


def facts(labels: Sequence[str], runs: Sequence[ScheduleRun]) -> dict[str, Any]:
    """Returns the comparison for JSON. Changes are fractions of the first run's measures."""
    from odonata.commands.compare import change, differences

    first = runs[0].measures
    return {
        "differences": differences(runs),
        "runs": [
            {
                "label": label, "path": str(run.path), "name": run.experiment.name,
                "complete": run.complete, "reached_us": run.reached, "digest": run.digest,
                "figures": {it.path: it.of(run.measures) for it in FIGURES} | spread(run),
                "change": {it.path: change(it.of(run.measures), it.of(first)) for it in FIGURES},
            }
            for label, run in zip(labels, runs, strict=True)
        ],
        "notes": notes(labels, runs),
    }  # fmt: skip


def spread(run: ScheduleRun) -> dict[str, float | None]:
    """Returns over how many groups and routers jobs are spread, where they are placed."""
    found = fragmentation(run.schedule)
    return found.facts() if found else {}


def notes(labels: Sequence[str], runs: Sequence[ScheduleRun]) -> list[str]:
    """Returns what a reader must know before reading the figures."""
    lines = [f"{label}: INCOMPLETE: {show_duration(run.reached / 1e6)} simulated; "
             f"{INCOMPLETE[run.state]}"
             for label, run in zip(labels, runs, strict=True) if not run.complete]  # fmt: skip
    same: dict[str, list[str]] = {}
    for label, run in zip(labels, runs, strict=True):
        if run.digest:
            same.setdefault(run.digest, []).append(label)
    return lines + [f"{' = '.join(names)}: the same run (digest {digest[:12]})"
                    for digest, names in same.items() if len(names) > 1]  # fmt: skip


def table(labels: Sequence[str], runs: Sequence[ScheduleRun]) -> Table:
    """Returns a table whose columns are runs, with the change beside each but the first."""
    from rich.table import Table
    from rich.text import Text

    from odonata.commands.compare import change, differences, percent

    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("", no_wrap=True)
    for number, label in enumerate(labels):
        shown.add_column(Text(label), justify="right", overflow="fold", max_width=24)
        if number:
            shown.add_column("", justify="right", no_wrap=True)

    def add(name: str, cells: Sequence[str], changes: Sequence[str] = ()) -> None:
        row = [Text(name, "dim")]
        for at, cell in enumerate(cells):
            row.append(Text(cell))
            row += [Text(changes[at] if changes else "", "cyan")] if at else []
        shown.add_row(*row)

    for path, values in differences(runs).items():
        add(path, values)
    shown.add_row()
    add("state", ["complete" if run.complete else "INCOMPLETE" for run in runs])
    for figure in FIGURES:
        found = [figure.of(run.measures) for run in runs]
        add(figure.name, [figure.text(value) for value in found],
            [percent(change(value, found[0])) for value in found])  # fmt: skip
    spreads = [spread_rows(run.schedule) for run in runs]
    if all(spreads):
        for rows in zip(*spreads, strict=True):
            add(rows[0][0], [row[1] for row in rows])
    add("digest", [(run.digest or "-")[:12] for run in runs])
    return shown
