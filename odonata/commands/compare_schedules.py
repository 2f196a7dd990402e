"""`odonata compare` of runs of the job fidelity: their measures side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from odonata.commands.side_by_side import Column, Figure, same_runs
from odonata.experiment.units import show_duration, show_energy, show_power
from odonata.jobs.metering import CAUSES
from odonata.results.market_measures import FIGURES as OF_MARKET
from odonata.results.market_measures import Figure as OfMarket
from odonata.results.opened import INCOMPLETE
from odonata.results.power_measures import KWH, PowerMeasures
from odonata.results.schedule_rows import FIGURES
from odonata.results.schedule_run import ScheduleRun
from odonata.results.schedule_series import fragmentation


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


def market_figures(runs: Sequence[ScheduleRun]) -> list[OfMarket]:
    """Returns the measures of a market that any of these runs has."""
    return [it for it in OF_MARKET if any(market_value(run, it) is not None for run in runs)]


def market_value(run: ScheduleRun, figure: OfMarket) -> float | None:
    """Returns a measure of the market of a run; None where it has none."""
    return None if run.market is None else getattr(run.market.measures, figure.path)


def columns_of(
    labels: Sequence[str], runs: Sequence[ScheduleRun]
) -> tuple[list[Column], list[Figure]]:
    """Returns the runs as columns, and the figures that are their rows."""
    watts, traded = power_figures(runs), market_figures(runs)
    figures = [Figure(it.path, it.name, it.text) for it in FIGURES]
    placed = [spread(run) for run in runs]
    if all(placed):
        figures += [Figure(path, path.replace("_", " "), "{:.3g}".format) for path in placed[0]]
    figures += [Figure(it.path, it.name, it.text) for it in watts]
    figures += [Figure(f"market.{it.path}", it.name, it.text) for it in traded]
    columns = []
    for label, run, where in zip(labels, runs, placed, strict=True):
        values = {it.path: it.of(run.measures) for it in FIGURES} | where
        values |= {it.path: it.of(run) for it in watts}
        values |= {f"market.{it.path}": market_value(run, it) for it in traded}
        said = {"state": "complete" if run.complete else "INCOMPLETE",
                "digest": (run.digest or "-")[:12]}  # fmt: skip
        columns.append(Column(label, run, values, said, {"reached_us": run.reached}))
    return columns, figures


def spread(run: ScheduleRun) -> dict[str, float | None]:
    """Returns over how many groups and routers jobs are spread, where they are placed."""
    found = fragmentation(run.schedule)
    return found.facts() if found else {}


def notes(columns: Sequence[Column]) -> list[str]:
    """Returns what a reader must know before reading the figures."""
    lines = []
    for column in columns:
        run = column.run
        if isinstance(run, ScheduleRun) and not run.complete:
            lines.append(f"{column.label}: INCOMPLETE: {show_duration(run.reached / 1e6)} "
                         f"simulated; {INCOMPLETE[run.state]}")  # fmt: skip
    return lines + same_runs(columns)
