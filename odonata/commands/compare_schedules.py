"""`odonata compare` of runs of the job fidelity: their measures side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from odonata.commands.output import print_json
from odonata.experiment.units import show_duration, show_energy, show_power
from odonata.jobs.metering import CAUSES
from odonata.results.opened import INCOMPLETE
from odonata.results.power_measures import KWH, PowerMeasures
from odonata.results.schedule_rows import FIGURES, spread_rows
from odonata.results.schedule_run import ScheduleRun
from odonata.results.schedule_series import fragmentation

if TYPE_CHECKING:
    from rich.table import Table


class PowerFigure(NamedTuple):
    """A measure of power that is compared: its name in JSON, its name and how it is written for
    people, and how it is read from the measures."""

    path: str
    name: str
    text: Callable[[float], str]
    read: Callable[[PowerMeasures], float | None]

    def of(self, run: ScheduleRun) -> float | None:
        """Returns its value; None where power was not simulated, or this is undefined."""
        return None if run.power_measures is None else self.read(run.power_measures)


def _percent(value: float) -> str:
    return f"{value:.2%}"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _by_cause(cause: str) -> PowerFigure:
    return PowerFigure(f"violations.{cause}", f"  {cause}", _count,
                       lambda it: None if it.capping_success is None else it.violations[cause]
                       )  # fmt: skip


OF_POWER: Sequence[PowerFigure] = (
    PowerFigure("energy_kwh", "energy", lambda kwh: show_energy(kwh * KWH),
                lambda it: it.energy_kwh),
    PowerFigure("mean_power_w", "power, mean", show_power, lambda it: it.mean_power_w),
    PowerFigure("peak_power_w", "power, highest", show_power, lambda it: it.peak_power_w),
    PowerFigure("capping_success", "within the cap", _percent, lambda it: it.capping_success),
    PowerFigure("violations", "violating intervals", _count,
                lambda it: None if it.capping_success is None else sum(it.violations.values())),
    *map(_by_cause, CAUSES[1:]),
    PowerFigure("learning_rate", "profiles known", _percent, lambda it: it.learning_rate),
    PowerFigure("cost", "cost", lambda money: f"{money:,.2f}", lambda it: it.cost),
    PowerFigure("co2_kg", "CO2", lambda kg: f"{kg:,.1f} kg", lambda it: it.co2_kg),
)  # fmt: skip


def power_figures(runs: Sequence[ScheduleRun]) -> list[PowerFigure]:
    """Returns the measures of power that any of these runs has; causes only where one occurs."""
    found = []
    for figure in OF_POWER:
        values = [figure.of(run) for run in runs]
        of_cause = figure.path.startswith("violations.")
        if any(values) if of_cause else any(value is not None for value in values):
            found.append(figure)
    return found


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

    first, watts = runs[0].measures, power_figures(runs)
    return {
        "differences": differences(runs),
        "runs": [
            {
                "label": label, "path": str(run.path), "name": run.experiment.name,
                "complete": run.complete, "reached_us": run.reached, "digest": run.digest,
                "figures": {it.path: it.of(run.measures) for it in FIGURES} | spread(run)
                           | {it.path: it.of(run) for it in watts},
                "change": {it.path: change(it.of(run.measures), it.of(first)) for it in FIGURES}
                          | {it.path: change(it.of(run), it.of(runs[0])) for it in watts},
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
    for power in power_figures(runs):
        watts = [power.of(run) for run in runs]
        add(power.name, ["-" if value is None else power.text(value) for value in watts],
            [percent(change(value, watts[0])) for value in watts])  # fmt: skip
    add("digest", [(run.digest or "-")[:12] for run in runs])
    return shown
