"""What the network did for each job, and what its tasks did with their time.

The counters of a job's packets are known when a run is over, or was stopped; the machine's p99 may
belong to another job, and a job's own is here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.agents.layout import COMPUTED_PS
from odonata.agents.metrics import BY_JOB, SPENT
from odonata.agents.network import Network
from odonata.jobs.board import BEGAN, DONE, OVER, STATUS
from odonata.results.performance import quantile

if TYPE_CHECKING:
    from odonata.results.run import Run


@dataclass(frozen=True, eq=False)
class JobNetwork:
    """A job's packets and the time of its tasks. Packets are those that were delivered to it
    through the network; `spent` has a row for each of its stages, with the columns of SPENT, summed
    over tasks; the histogram is empty where there are too many jobs for that."""

    number: int
    nodes: int
    run_time_ps: int | None
    """From its start to the end of its last task; None: it has not ended."""
    packets: int
    bytes: int
    latency_ps: int
    hops: int
    non_minimal_packets: int
    hops_non_minimal: int
    latencies: Any
    spent: Any
    stages: tuple[str, ...]

    @cached_property
    def mean_latency_ps(self) -> float:
        """Returns NaN where no packet was delivered."""
        return self.latency_ps / self.packets if self.packets else math.nan

    def percentile_ps(self, percent: float) -> float:
        """Returns a percentile of the latencies of its measured packets, NaN where there are none.
        Bins are 1.6 % wide at the most."""
        if not len(self.latencies) or not self.latencies.any():
            return math.nan
        return float(quantile(self.latencies, percent / 100))

    @property
    def non_minimal_hops(self) -> float:
        """Returns the part of its hops that are on non-minimal paths, NaN without packets."""
        return self.hops_non_minimal / self.hops if self.hops else math.nan

    @property
    def communication(self) -> float:
        """Returns the part of its tasks' time in which they did not compute: they were in
        MPI; NaN before any time has passed."""
        total = int(self.spent.sum())
        return 1 - int(self.spent[:, COMPUTED_PS].sum()) / total if total else math.nan

    @property
    def operations(self) -> dict[str, float]:
        """Returns the part of its tasks' time that each of its stages took without computing, by
        the name of the stage; stages of one name are added up."""
        return added_up(self.stages, self.in_stages)

    @property
    def in_stages(self) -> list[float]:
        """Returns the part of its tasks' time that each of its stages took without computing."""
        total = max(1, int(self.spent.sum()))
        return [sum(row[1:]) / total for row in self.spent.tolist()]

    @classmethod
    def of(cls, network: Network, outcome: Mapping[str, Any]) -> list[JobNetwork]:
        """Returns what the outcome of a run has, job by job."""
        by_job, spent, latencies = (outcome[name].sum(axis=0)
                                    for name in ("by_job", "spent", "job_latencies"))  # fmt: skip
        board = outcome["board"]
        times = [int(row[OVER] - row[BEGAN]) if row[STATUS] == DONE else None for row in board]
        return _made(network, times, by_job, spent, latencies)


def added_up(names: Iterable[str], parts: Iterable[float]) -> dict[str, float]:
    """Returns the sum of the parts of each name.

    >>> added_up(("wait", "barrier", "wait"), (0.25, 0.1, 0.5))
    {'wait': 0.75, 'barrier': 0.1}
    """
    found: dict[str, float] = {}
    for name, part in zip(names, parts, strict=True):
        found[name] = found.get(name, 0.0) + part
    return found


def _made(
    network: Network, times: Sequence[int | None], by_job: Any, spent: Any, latencies: Any
) -> list[JobNetwork]:
    found, first = [], 0
    for number, (job, time) in enumerate(zip(network.jobs, times, strict=True)):
        stages = tuple(stage.name or stage.pattern for stage in job.parts)
        last = first + len(stages)
        packets, size, latency, hops, avoiding, hops_avoiding = by_job[number].tolist()
        found.append(JobNetwork(
            number, job.nodes, time, packets, size, latency, hops, avoiding, hops_avoiding,
            latencies[number] if len(latencies) else np.zeros(0), spent[first:last], stages,
        ))  # fmt: skip
        first = last
    return found


def job_network(run: Run) -> list[JobNetwork]:
    """Returns what the network did for each job of a run that is over or was stopped. Empty where
    that is not known: while it goes on, and in files of earlier versions."""
    if "jobs/packets" not in run.file or run.state in ("running", "died", "failed"):
        return []
    by_job = np.stack([run.read(f"jobs/{name}") for name in BY_JOB], axis=-1)
    spent = np.stack([run.read(f"stages/{name}") for name in SPENT], axis=-1)
    latencies = run.read("jobs/latencies")
    times = [record.run_time_ps for record in run.job_records]
    if run.missing and len(spent) != sum(len(job.parts) for job in run.network.jobs):
        return []
    return _made(run.network, times, by_job, spent, latencies)


# -- for people and for programs

FIGURES = ("packets", "bytes", "mean_latency_ps", "median_latency_ps", "p99_latency_ps",
           "non_minimal_packets", "non_minimal_hops", "communication")  # fmt: skip
"""The figures of a job that `odonata.open(out).jobs` has."""
HEADS = ("job", "MB", "mean (ns)", "median (ns)", "99 % (ns)", "non-min.", "in MPI", "stalls/flit",
         "slowdown")  # fmt: skip
KNOWN_AT_ONCE = 7
"""How many of them are known when a run ends, before its files are opened."""
CAPTION = (
    "Packets that were delivered to a job: their bytes, latencies (mean, median and 99th "
    "percentile), and the part of its hops that were on non-minimal paths; in MPI: the part of its "
    "tasks' time in which they did not compute; stalls per flit: the mean over the network tiles "
    "of its routers, as in the congestion map, while it ran; slowdown: its run time against the "
    "same job on the same nodes alone, where `odonata slowdown` has measured that."
)


def cells(
    job: JobNetwork, name: str, slowdown: float | None = None, stalls: float | None = None
) -> tuple[str, ...]:
    """Returns a row of the table, under HEADS; "-" for what is not known."""
    times = (job.mean_latency_ps, job.percentile_ps(50), job.percentile_ps(99))
    return (
        name, f"{job.bytes / 1e6:,.2f}", *(_text(ps / 1e3, ",.0f") for ps in times),
        _text(job.non_minimal_hops, ".1%"), _text(job.communication, ".1%"),
        _text(stalls, ".3f"), _text(slowdown, ".2f"),
    )  # fmt: skip


def _text(value: float | None, form: str) -> str:
    return "-" if value is None or math.isnan(value) else format(value, form)


def facts(job: JobNetwork, slowdown: float | None = None) -> dict[str, Any]:
    """Returns the same for JSON; null for what is not known."""
    found = {
        "packets": job.packets, "bytes": job.bytes, "mean_latency_ps": job.mean_latency_ps,
        "median_latency_ps": job.percentile_ps(50), "p99_latency_ps": job.percentile_ps(99),
        "non_minimal_packets": job.non_minimal_packets, "non_minimal_hops": job.non_minimal_hops,
        "communication": job.communication, "slowdown": slowdown,
    }  # fmt: skip
    known = {name: None if value is None or math.isnan(value) else value
             for name, value in found.items()}  # fmt: skip
    return {**known, "operations": job.operations}


def network_table(jobs: Sequence[JobNetwork], names: Sequence[str]) -> Any:
    """Returns the table for a terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head in HEADS[:KNOWN_AT_ONCE]:
        shown.add_column(head, justify="left" if head == "job" else "right", no_wrap=head != "job",
                         max_width=28)  # fmt: skip
    for job, name in zip(jobs, names, strict=True):
        shown.add_row(*map(Text, cells(job, name)[:KNOWN_AT_ONCE]))
    return shown
