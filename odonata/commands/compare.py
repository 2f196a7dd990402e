"""`odonata compare`: runs side by side: their different settings, and their results.

Changes are relative, against the first run: a utilisation that goes from 40 % to 50 % has changed
by +25 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from odonata.commands import compare_schedules
from odonata.commands.group import SETTINGS
from odonata.commands.options import json_option
from odonata.commands.output import print_json, say_missing
from odonata.experiment.units import show_time
from odonata.jobs.record import JobRecord
from odonata.results.alone import slowdowns
from odonata.results.derived import simulated, summary
from odonata.results.job_table import by_pattern, makespan_ps, mean
from odonata.results.opened import INCOMPLETE, Opened
from odonata.results.opening import open as open_run
from odonata.results.performance import Performance
from odonata.results.run import Run
from odonata.results.schedule_run import ScheduleRun
from odonata.results.summary_rows import still
from pdes import launcher
from pdes.errors import Refused

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDEST = 20
"""The largest width of a column in letters; longer words are broken."""
MOST_DRAWN = 8
"""How many runs can be distinguished in one picture."""


@click.command("compare", context_settings=SETTINGS)
@click.argument("directories", nargs=-1, required=True, type=click.Path(path_type=Path),
                metavar="DIR DIR...")  # fmt: skip
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False),
              help="Draw them over each other, as .png, .svg or .pdf.")  # fmt: skip
@json_option
def command(directories: tuple[Path, ...], plot: Path | None, as_json: bool) -> None:
    """Compare runs: what was asked for, and what came of it."""
    if launcher.rank() == 0:
        show(directories, plot, as_json)


class Figure(NamedTuple):
    """A row of the table: its name, its unit, and how it is read from a run. None where there is no
    value, such as the latency of no packet."""

    path: str
    name: str
    form: str
    of: Callable[[Performance], float | None]


class JobFigure(NamedTuple):
    """Returns a figure read from the jobs of a run, in microseconds."""

    path: str
    name: str
    form: str
    of: Callable[[Sequence[JobRecord]], float | None]


def _latency(field: str) -> Callable[[Performance], float | None]:
    return lambda measured: getattr(measured, field) if measured.measured_packets else None


def _link(kind: str, field: str) -> Callable[[Performance], float | None]:
    return lambda measured: measured.links[kind][field] if kind in measured.links else None


FIGURES = (
    Figure("packets", "packets delivered", "{:,.0f}", lambda measured: measured.packets),
    Figure("offered", "offered load", "{:.3f}", lambda measured: measured.offered),
    Figure("throughput", "throughput", "{:.3f}", lambda measured: measured.throughput),
    Figure("mean_latency_ns", "latency, mean (ns)", "{:,.1f}", _latency("mean_latency_ns")),
    Figure("median_latency_ns", "latency, median (ns)", "{:,.0f}", _latency("median_latency_ns")),
    Figure("p99_latency_ns", "latency, 99 % (ns)", "{:,.0f}", _latency("p99_latency_ns")),
    Figure("max_latency_ns", "latency, longest (ns)", "{:,.0f}", _latency("max_latency_ns")),
    Figure("mean_hops", "routers per packet", "{:.2f}",
           lambda measured: measured.mean_hops if measured.packets else None),
    *(Figure(f"{kind}.{field}", f"{kind} links, {name}", form, _link(kind, field))
      for field, name, form in (("utilisation", "utilisation", "{:.1%}"),
                                ("max_utilisation", "busiest", "{:.1%}"),
                                ("stall_to_flit", "credit stalls per flit", "{:.3f}"))
      for kind in ("global", "local", "eject", "inject")),
)  # fmt: skip


LOADS = ("offered", "throughput")
OF_JOBS = (
    JobFigure("jobs.done", "jobs done", "{:,.0f}",
              lambda jobs: sum(it.end_ps is not None for it in jobs)),
    JobFigure("jobs.makespan_us", "makespan (us)", "{:,.1f}", lambda jobs: _us(makespan_ps(jobs))),
    JobFigure("jobs.waiting_us", "waited, mean (us)", "{:,.1f}",
              lambda jobs: _us(mean([it.waiting_ps for it in jobs]))),
    JobFigure("jobs.run_time_us", "run time, mean (us)", "{:,.1f}",
              lambda jobs: _us(mean([it.run_time_ps for it in jobs]))),
)  # fmt: skip


class PacketFigure(NamedTuple):
    """A figure read from the packets of the jobs of a run, and from their slowdowns."""

    path: str
    name: str
    form: str
    of: Callable[[Run], float | None]


def _mean_slowdown(run: Run) -> float | None:
    known = [it for it in slowdowns(run.job_records, run.alone_ps) if it is not None]
    return math.fsum(known) / len(known) if known else None


OF_PACKETS = (
    PacketFigure("jobs.slowdown", "slowdown against alone, mean", "{:.2f}", _mean_slowdown),
)
FEW = 6
"""The most jobs of which each has rows of its own."""


def _of_job(name: str) -> Iterator[PacketFigure]:
    """Returns the figures of one job by name; of several of that name, the first."""

    def reading(column: str, scale: float) -> Callable[[Run], float | None]:
        def of(run: Run) -> float | None:
            names = [record.name for record in run.job_records]
            if name not in names or column not in run.jobs:
                return None
            value = float(run.jobs[column][names.index(name)]) * scale
            return None if math.isnan(value) else value

        return of

    figures = (
        ("bytes", "MB received", "{:,.2f}", "bytes", 1e-6),
        ("mean_latency_ns", "latency, mean (ns)", "{:,.0f}", "mean_latency_ps", 1e-3),
        ("p99_latency_ns", "latency, 99 % (ns)", "{:,.0f}", "p99_latency_ps", 1e-3),
        ("communication", "time in MPI", "{:.1%}", "communication", 1),
        ("non_minimal_hops", "non-minimal hops", "{:.1%}", "non_minimal_hops", 1),
        ("stall_to_flit", "stalls per flit", "{:.3f}", "stall_to_flit", 1),
        ("slowdown", "slowdown", "{:.2f}", "slowdown", 1),
    )
    for path, words, form, column, scale in figures:
        yield PacketFigure(f"jobs.{name}.{path}", f"  {name}: {words}", form,
                           reading(column, scale))  # fmt: skip


OF_POWER = (
    JobFigure("jobs.energy_j", "energy of jobs (J)", "{:,.4g}",
              lambda jobs: _sum(jobs, "energy_j")),
    JobFigure("jobs.nj_per_byte", "energy per byte received (nJ)", "{:,.4g}",
              lambda jobs: _per_byte(jobs)),
)  # fmt: skip
"""The figures of jobs that draw power."""


def _sum(jobs: Sequence[JobRecord], field: str) -> float | None:
    """Returns the sum over jobs of what is known of all of them."""
    values = [getattr(job, field) for job in jobs]
    return None if any(value is None for value in values) else math.fsum(values)


def _per_byte(jobs: Sequence[JobRecord]) -> float | None:
    joules, received = _sum(jobs, "energy_j"), _sum(jobs, "received_bytes")
    return joules / received * 1e9 if joules is not None and received else None


def _us(ps: float | None) -> float | None:
    return None if ps is None else ps / 1e6


def _of_pattern(pattern: str) -> JobFigure:
    return JobFigure(f"jobs.run_time_us.{pattern}", f"  of {pattern} (us)", "{:,.1f}",
                     lambda jobs: _us(by_pattern(jobs).get(pattern)))  # fmt: skip


def figures_of(runs: Sequence[Compared]) -> list[Figure | JobFigure | PacketFigure]:
    """Returns the figures that apply: with jobs their run times, over all and by pattern,
    in place of loads."""
    with_jobs = [one for one in runs if one.run.experiment.jobs]
    if not with_jobs:
        return [*FIGURES]
    patterns = dict.fromkeys(job.pattern for one in with_jobs for job in one.jobs)
    rest = [it for it in FIGURES if it.path not in LOADS or len(with_jobs) < len(runs)]
    watts = OF_POWER if any(one.run.experiment.power for one in with_jobs) else ()
    names = dict.fromkeys(job.name for one in with_jobs for job in one.jobs)
    own = [figure for name in names for figure in _of_job(name)] if len(names) <= FEW else []
    return [*OF_JOBS, *map(_of_pattern, patterns), *OF_PACKETS, *own, *watts, *rest]


class Compared(NamedTuple):
    """A run beside others: `label` is the user's name for it, as short as is clear."""

    label: str
    run: Run
    measured: Performance
    jobs: Sequence[JobRecord]

    @property
    def begun(self) -> bool:
        """Tells whether it reached the measurement."""
        return self.run.reached_ps > self.run.network.warmup_ps

    @property
    def saturated(self) -> bool | None:
        """Returns whether it is saturated; None where that is not known: too early, or only jobs
        send."""
        return self.measured.saturated if self.begun and not self.run.experiment.jobs else None

    def figure(self, figure: Figure | JobFigure | PacketFigure) -> float | None:
        """Returns the value of a figure; None before the first sample, and for loads before the
        warm-up is over."""
        if not len(self.run.time):
            return None
        if isinstance(figure, JobFigure):
            return figure.of(self.jobs) if self.jobs else None
        if isinstance(figure, PacketFigure):
            return figure.of(self.run) if self.jobs else None
        if figure.path in LOADS and (not self.begun or self.jobs):
            return None
        return figure.of(self.measured)


def show(directories: Sequence[Path], plot: Path | None, as_json: bool) -> None:
    """Compare runs, and print and draw the comparison."""
    if len(directories) < 2:
        raise Refused("compare: two runs at least: odonata compare DIR DIR")
    if plot is not None:
        from odonata.figures.machine import check_name

        check_name(plot)
    with ExitStack() as stack:
        opened = [stack.enter_context(open_run(path)) for path in directories]
        say_missing(*opened)
        of_jobs = [run for run in opened if isinstance(run, ScheduleRun)]
        if len(of_jobs) == len(opened):
            compare_schedules.show(labels(directories), of_jobs, plot, as_json)
            return
        of_packets = [run for run in opened if isinstance(run, Run)]
        if of_jobs:
            raise Refused(f"{of_jobs[0].path}: simulated jobs, and {of_packets[0].path} packets: "
                          "they have no figure in common")  # fmt: skip
        runs = [Compared(label, run, summary(run), run.job_records if run.experiment.jobs else ())
                for label, run in zip(labels(directories), of_packets, strict=True)]  # fmt: skip
        if plot is not None:
            draw(runs, plot)
        if as_json:
            print_json(comparison(runs))
            return
        from rich.console import Console

        console = Console(highlight=False, markup=False)
        if not console.is_terminal:  # a file or a pipe is as wide as it must be
            console.width = 100_000
        for shown in tables(runs, console):
            console.print(shown)
            console.print()
        for note in notes(runs):
            console.print(note, style="bold", markup=False, soft_wrap=True)
        console.print(f"Changes are relative, against {runs[0].label}.", style="dim", markup=False,
                      soft_wrap=True)  # fmt: skip


def tables(runs: Sequence[Compared], console: Console) -> list[Table]:
    """Returns one table or, where the terminal is too narrow, several, each with the first run."""
    from rich.measure import Measurement

    first, others = runs[0], runs[1:]
    unbound = console.options.update(max_width=100_000)
    made: list[Table] = []
    keys = differences([one.run for one in runs])
    for size in range(len(others), 0, -1):
        made = [comparison_table([first, *others[at : at + size]], keys)
                for at in range(0, len(others), size)]  # fmt: skip
        if all(Measurement.get(console, unbound, one).maximum <= console.width for one in made):
            break
    return made


def labels(directories: Sequence[Path]) -> list[str]:
    """Returns their names or, where two are alike, their paths."""
    names = [path.resolve().name for path in directories]
    return names if len(set(names)) == len(names) else [str(path) for path in directories]


def differences(runs: Sequence[Opened]) -> dict[str, list[str]]:
    """Returns the settings that are not the same in all runs, by key, as a file would have them."""
    asked = [run.experiment.written() for run in runs]
    paths = dict.fromkeys(path for each in asked for path in each)
    values = {path: [_asked(each, path) for each in asked] for path in paths}
    return {path: found for path, found in values.items() if len(set(found)) > 1}


def _asked(written: Mapping[str, str], path: str) -> str:
    """Returns a value without quotes; what does not apply is empty."""
    return written.get(path, "-").strip('"')


def change(value: float | None, first: float | None) -> float | None:
    """Returns the change as a fraction of the first, or None where there is no such thing."""
    if value is None or first is None or math.isclose(first, 0.0, abs_tol=1e-300):
        return None
    return value / first - 1


def notes(runs: Sequence[Compared]) -> list[str]:
    """Returns what a reader must know before reading the figures."""
    lines = [
        f"{one.label}: INCOMPLETE: {show_time(one.run.reached_ps)} "
        f"{'' if one.run.experiment.run.end else 'and '}{still(one.run.experiment)}; "
        f"{INCOMPLETE[one.run.state]}"
        for one in runs
        if not one.run.complete
    ]
    lines += [
        f"{one.label}: saturated: source queues grow, so its latencies grow with its duration"
        for one in runs
        if one.measured.saturated and not one.run.experiment.jobs
    ]
    unmeasured = [one for one in runs if not one.measured.measured_packets]
    lines += [f"{one.label}: no packet was measured" for one in unmeasured]
    same: dict[str, list[str]] = {}
    for one in runs:
        if one.run.digest:
            same.setdefault(one.run.digest, []).append(one.label)
    lines += [f"{' = '.join(names)}: the same run (digest {digest[:12]})"
             for digest, names in same.items() if len(names) > 1]  # fmt: skip
    return lines


def comparison(runs: Sequence[Compared]) -> dict[str, Any]:
    """Returns the comparison for JSON. Changes are fractions of the first run's figures; null where
    there is none."""
    first, shown = runs[0], figures_of(runs)
    return {
        "differences": differences([one.run for one in runs]),
        "runs": [
            {
                "label": one.label,
                "path": str(one.run.path),
                "name": one.run.experiment.name,
                "complete": one.run.complete,
                "reached_ps": one.run.reached_ps,
                "simulated_ps": simulated(one.run),
                "digest": one.run.digest,
                "saturated": one.saturated,
                "figures": {figure.path: one.figure(figure) for figure in shown},
                "change": {
                    figure.path: change(one.figure(figure), first.figure(figure))
                    for figure in shown
                },
            }
            for one in runs
        ],
        "notes": notes(runs),
    }


def comparison_table(runs: Sequence[Compared], keys: Collection[str]) -> Table:
    """Returns a table whose columns are runs, with the change beside each but the first; `keys` are
    the settings to show."""
    from rich.table import Table
    from rich.text import Text

    first = runs[0]
    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("", no_wrap=True)
    for one in runs:
        shown.add_column(Text(one.label), justify="right", overflow="fold", max_width=WIDEST)
        if one is not first:
            shown.add_column("", justify="right", no_wrap=True)

    def add(name: str, cells: Sequence[str], changes: Sequence[str] = ()) -> None:
        row = [Text(name, "dim")]
        for i, cell in enumerate(cells):
            row.append(Text(cell))
            row += [Text(changes[i] if changes else "", "cyan")] if i else []
        shown.add_row(*row)

    asked = [one.run.experiment.written() for one in runs]
    for path in keys:
        add(path, [_asked(each, path) for each in asked])
    if not keys:
        add("asked for the same", [])
    shown.add_row()
    add("simulated", [show_time(simulated(one.run)) for one in runs])
    add("state", ["complete" if one.run.complete else "INCOMPLETE" for one in runs])
    if not all(one.jobs for one in runs):
        add("saturated", [{True: "yes", False: "no", None: "-"}[one.saturated] for one in runs])
    shown.add_row()
    for figure in figures_of(runs):
        values = [one.figure(figure) for one in runs]
        if any(value is not None for value in values):
            cells = ["-" if value is None else figure.form.format(value) for value in values]
            add(figure.name, cells, [percent(change(value, values[0])) for value in values])
    return shown


def percent(part: float | None) -> str:
    if part is None:
        return ""
    if abs(part) < 5e-4:
        return "0%" if part == 0 else "±0.0%"
    return f"{part:+,.0%}" if abs(part) >= 10 else f"{part:+.1%}"


# -- the picture


def draw(runs: Sequence[Compared], path: Path) -> None:
    """Draw load, latency and global links over time, and the latencies of all packets, each run in
    its colour."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

    from odonata.figures import network as figures

    if len(runs) > MOST_DRAWN:
        raise Refused(f"--plot: {len(runs)} runs: at most {MOST_DRAWN} can be distinguished")
    with figures.style():
        canvas = Canvas(figsize=(11.5, 7.4), facecolor="white", layout="constrained")
        FigureCanvasAgg(canvas)
        (load, latency), (links, tail) = canvas.subplots(2, 2)
        keys = []
        for one, colour in zip(runs, figures.RUN_COLOURS, strict=False):
            state = "" if one.run.complete else " (incomplete)"
            keys.append(Line2D([], [], color=colour, lw=2, label=one.label + state))
            figures.overlay(one.run, (load, latency, links, tail), colour)
        figures.finish_overlay([one.run for one in runs], (load, latency, links, tail))
        all_jobs = all(one.jobs for one in runs)
        taken, made = ("received", "sent") if all_jobs else ("accepted", "offered")
        style = [Line2D([], [], color=figures.INK, lw=1.4, label=f"{taken}, mean"),
                 Line2D([], [], color=figures.INK, lw=0.9, ls=figures.DASHES,
                        label=f"{made}, 99 %")]  # fmt: skip
        handles = keys + style
        canvas.legend(handles, [str(handle.get_label()) for handle in handles],
                      loc="outside upper center", ncols=min(6, len(handles)))  # fmt: skip
        figures.save(canvas, path, path.suffix.lstrip(".").lower())
