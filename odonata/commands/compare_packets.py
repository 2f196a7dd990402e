"""The figures of packet runs that `odonata compare` shows, and how they are read from a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from odonata.commands.side_by_side import Column, Figure, same_runs
from odonata.experiment.units import show_time
from odonata.jobs.record import JobRecord
from odonata.results.alone import slowdowns
from odonata.results.derived import simulated, summary
from odonata.results.job_table import by_pattern, makespan_ps, mean
from odonata.results.market_measures import FIGURES as OF_MARKET
from odonata.results.market_measures import Figure as OfMarket
from odonata.results.opened import INCOMPLETE
from odonata.results.performance import Performance
from odonata.results.run import Run
from odonata.results.steadiness import Steadiness, misleads
from odonata.results.summary_rows import simulated_text, still

FEW = 6
"""The most jobs of which each has rows of its own."""
LOADS = ("offered", "throughput")


class Known(NamedTuple):
    """What is known of a run, for figures to read."""

    run: Run
    measured: Performance
    jobs: Sequence[JobRecord]

    @property
    def begun(self) -> bool:
        """Tells whether it reached the measurement."""
        return self.run.reached_ps > self.run.network.warmup_ps

    @property
    def steadiness(self) -> Steadiness | None:
        """Returns whether it is of a steady state; None where that is not asked: too early, or only
        jobs send."""
        return self.measured.steadiness if self.begun and not self.run.experiment.jobs else None


class Read(NamedTuple):
    """A figure, and how it is read from a run: None where there is no value."""

    path: str
    name: str
    form: str
    of: Callable[[Known], float | None]
    of_jobs: bool = False
    """Whether it is about jobs, and so only of runs that have some."""
    words: Callable[[float], str] | None = None
    """How it is written, where a form does not say that."""

    @property
    def figure(self) -> Figure:
        return Figure(self.path, self.name, self.text)

    def text(self, value: float) -> str:
        """Returns a value as its form has it; what would be shown as 0 and is not, to one digit."""
        if self.words is not None:
            return self.words(value)
        text = self.form.format(value)
        return f"{value:.0e}" if value and not any(map(text.__contains__, "123456789")) else text

    def value(self, known: Known) -> float | None:
        """Returns the value; None before the first sample, and for loads before the warm-up is
        over."""
        if not len(known.run.time) or (self.of_jobs and not known.jobs):
            return None
        if self.path in LOADS and (not known.begun or known.jobs):
            return None
        return self.of(known)


def _latency(field: str) -> Callable[[Known], float | None]:
    return lambda it: getattr(it.measured, field) if it.measured.measured_packets else None


def _link(kind: str, field: str) -> Callable[[Known], float | None]:
    return lambda it: it.measured.links[kind][field] if kind in it.measured.links else None


OF_NETWORK = (
    Read("packets", "packets delivered", "{:,.0f}", lambda it: it.measured.packets),
    Read("offered", "offered load", "{:.3f}", lambda it: it.measured.offered),
    Read("throughput", "throughput", "{:.3f}", lambda it: it.measured.throughput),
    Read("mean_latency_ns", "latency, mean (ns)", "{:,.1f}", _latency("mean_latency_ns")),
    Read("median_latency_ns", "latency, median (ns)", "{:,.0f}", _latency("median_latency_ns")),
    Read("p99_latency_ns", "latency, 99 % (ns)", "{:,.0f}", _latency("p99_latency_ns")),
    Read("max_latency_ns", "latency, longest (ns)", "{:,.0f}", _latency("max_latency_ns")),
    Read("mean_hops", "routers per packet", "{:.2f}",
         lambda it: it.measured.mean_hops if it.measured.packets else None),
    *(Read(f"{kind}.{field}", f"{kind} links, {name}", form, _link(kind, field))
      for field, name, form in (("utilisation", "utilisation", "{:.1%}"),
                                ("max_utilisation", "busiest", "{:.1%}"),
                                ("stall_to_flit", "credit stalls per flit", "{:.3f}"))
      for kind in ("global", "local", "eject", "inject")),
)  # fmt: skip


def _us(ps: float | None) -> float | None:
    return None if ps is None else ps / 1e6


def _mean_slowdown(known: Known) -> float | None:
    found = [it for it in slowdowns(known.jobs, known.run.alone_ps) if it is not None]
    return math.fsum(found) / len(found) if found else None


OF_JOBS = (
    Read("jobs.done", "jobs done", "{:,.0f}",
         lambda it: sum(job.end_ps is not None for job in it.jobs), True),
    Read("jobs.makespan_us", "makespan (us)", "{:,.1f}", lambda it: _us(makespan_ps(it.jobs)),
         True),
    Read("jobs.waiting_us", "waited, mean (us)", "{:,.1f}",
         lambda it: _us(mean([job.waiting_ps for job in it.jobs])), True),
    Read("jobs.run_time_us", "run time, mean (us)", "{:,.1f}",
         lambda it: _us(mean([job.run_time_ps for job in it.jobs])), True),
)  # fmt: skip
SLOWDOWN = Read("jobs.slowdown", "slowdown against alone, mean", "{:.2f}", _mean_slowdown, True)


def _of_pattern(pattern: str) -> Read:
    return Read(f"jobs.run_time_us.{pattern}", f"  of {pattern} (us)", "{:,.1f}",
                lambda it: _us(by_pattern(it.jobs).get(pattern)), True)  # fmt: skip


def _of_job(name: str) -> Iterator[Read]:
    """Returns the figures of one job by name; of several of that name, the first."""

    def reading(column: str, scale: float) -> Callable[[Known], float | None]:
        def of(known: Known) -> float | None:
            names = [record.name for record in known.jobs]
            if name not in names or column not in known.run.jobs:
                return None
            value = float(known.run.jobs[column][names.index(name)]) * scale
            return None if math.isnan(value) or value < 0 else value

        return of

    for path, words, form, column, scale in (
        ("run_time_us", "run time (us)", "{:,.1f}", "run_time_ps", 1e-6),
        ("bytes", "MB received", "{:,.2f}", "bytes", 1e-6),
        ("mean_latency_ns", "latency, mean (ns)", "{:,.0f}", "mean_latency_ps", 1e-3),
        ("p99_latency_ns", "latency, 99 % (ns)", "{:,.0f}", "p99_latency_ps", 1e-3),
        ("communication", "time in MPI", "{:.1%}", "communication", 1),
        ("non_minimal_hops", "non-minimal hops", "{:.1%}", "non_minimal_hops", 1),
        ("stall_to_flit", "stalls per flit", "{:.3f}", "stall_to_flit", 1),
        ("slowdown", "slowdown", "{:.2f}", "slowdown", 1),
    ):
        yield Read(f"jobs.{name}.{path}", f"  {name}: {words}", form, reading(column, scale), True)


def _sum(jobs: Sequence[JobRecord], field: str) -> float | None:
    """Returns the sum over jobs of what is known of all of them."""
    values = [getattr(job, field) for job in jobs]
    return None if any(value is None for value in values) else math.fsum(values)


def _per_byte(jobs: Sequence[JobRecord]) -> float | None:
    joules, received = _sum(jobs, "energy_j"), _sum(jobs, "received_bytes")
    return joules / received * 1e9 if joules is not None and received else None


OF_POWER = (
    Read("jobs.energy_j", "energy of jobs (J)", "{:,.4g}",
         lambda it: _sum(it.jobs, "energy_j"), True),
    Read("jobs.nj_per_byte", "energy per byte received (nJ)", "{:,.4g}",
         lambda it: _per_byte(it.jobs), True),
)  # fmt: skip
"""The figures of jobs that draw power."""


def _of_market(figure: OfMarket) -> Read:
    def of(known: Known) -> float | None:
        return None if known.run.market is None else getattr(known.run.market.measures, figure.path)

    return Read(f"market.{figure.path}", figure.name, "", of, True, figure.text)


IN_MARKETS = tuple(_of_market(figure) for figure in OF_MARKET if "standby" not in figure.path)
"""The figures of hours of a market."""


def figures_of(runs: Sequence[Known]) -> list[Read]:
    """Returns the figures that apply: with jobs their run times, over all and by pattern, in place
    of loads."""
    with_jobs = [one for one in runs if one.run.experiment.jobs]
    if not with_jobs:
        return [*OF_NETWORK]
    patterns = dict.fromkeys(job.pattern for one in with_jobs for job in one.jobs)
    rest = [it for it in OF_NETWORK if it.path not in LOADS or len(with_jobs) < len(runs)]
    watts = OF_POWER if any(one.run.experiment.power for one in with_jobs) else ()
    names = dict.fromkeys(job.name for one in with_jobs for job in one.jobs)
    own = [figure for name in names for figure in _of_job(name)] if len(names) <= FEW else []
    hours = IN_MARKETS if any(one.run.experiment.market for one in with_jobs) else ()
    return [*OF_JOBS, *map(_of_pattern, patterns), SLOWDOWN, *own, *watts, *hours, *rest]


def columns_of(labels: Sequence[str], runs: Sequence[Run]) -> tuple[list[Column], list[Figure]]:
    """Returns the runs as columns, and the figures that are their rows."""
    known = [Known(run, summary(run), run.job_records if run.experiment.jobs else ())
             for run in runs]  # fmt: skip
    shown = figures_of(known)
    jobs_alone = all(one.jobs for one in known)
    columns = []
    for label, one in zip(labels, known, strict=True):
        said = {"simulated": simulated_text(one.run.experiment.run.end, simulated(one.run)),
                "state": "complete" if one.run.complete else "INCOMPLETE"}  # fmt: skip
        if not jobs_alone:
            said["steady state"] = "-" if one.steadiness is None else one.steadiness.verdict
        facts: dict[str, Any] = {
            "reached_ps": one.run.reached_ps,
            "simulated_ps": simulated(one.run),
            "saturated": None if one.steadiness is None else one.measured.saturated,
            "steadiness": None if one.steadiness is None else asdict(one.steadiness),
            "notes": [*_notes(label, one)],
        }
        values = {figure.path: figure.value(one) for figure in shown}
        verdict = "" if one.steadiness is None else one.steadiness.verdict
        marked = frozenset(path for path in values if misleads(verdict, path))
        columns.append(Column(label, one.run, values, said, facts, marked))
    return columns, [figure.figure for figure in shown]


def notes(columns: Sequence[Column]) -> list[str]:
    """Returns what a reader must know before reading the figures."""
    return [line for column in columns for line in column.facts["notes"]] + same_runs(columns)


def _notes(label: str, one: Known) -> Iterator[str]:
    run = one.run
    if not run.complete:
        yield (f"{label}: INCOMPLETE: {show_time(run.reached_ps)} "
               f"{'' if run.experiment.run.end else 'and '}{still(run.experiment)}; "
               f"{INCOMPLETE[run.state]}")  # fmt: skip
    if one.steadiness is not None and one.steadiness.marked:
        yield (f"{label}: {one.steadiness.verdict}: {one.steadiness.why} (* not a mean of a "
               "steady state)")  # fmt: skip
    if not one.measured.measured_packets:
        yield f"{label}: no packet was measured"
