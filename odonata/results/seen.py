"""What the scheduler saw of the network when it started each job (`odonata.open(out).seen`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.experiment.units import show_bandwidth, show_time
from policies.allocation import ALLOCATIONS

if TYPE_CHECKING:
    from rich.table import Table

    from odonata.jobs.record import JobRecord
    from odonata.results.run import Run

Words = npt.NDArray[np.int64]
Rates = npt.NDArray[np.float64]
SECOND_PS = 1e12


@dataclass(frozen=True, eq=False)
class Seen:
    """The reports that the scheduler had when it started a job. Bytes and times are sums over the
    last intervals that had been reported, as many as the allocation policy reads."""

    record: JobRecord
    sensitive: bool | None
    """Whether congestion slows the job down, as the policy was told; None: nobody knew."""
    time_ps: int
    """When the scheduler decided."""
    age_ps: int
    """How long before that the newest reading was taken."""
    seconds: float
    """How long the intervals lasted together."""
    nodes_per_router: int
    idle: npt.NDArray[np.bool_]
    """[node]: whether it was idle before the job had its nodes. Where several decisions were taken
    in one instant, jobs that ended then count as ended before all of them."""
    sent_bytes: Words
    """[router]: what its nodes sent."""
    received_bytes: Words
    """[router]: what was delivered to its nodes."""
    stall_ps: Words
    """[router]: packets waited in it without credit while the link was free, over its ports."""
    wait_ps: Words
    """[router]: packets waited in it while the link was busy."""

    @cached_property
    def traffic(self) -> Rates:
        """Returns the bytes per second that each router's nodes sent and received."""
        return (self.sent_bytes + self.received_bytes) / self.seconds

    @cached_property
    def stalls(self) -> Rates:
        """Returns for how long packets waited in each router without credit while the link was
        free, summed over its ports, in seconds per second."""
        return self.stall_ps / SECOND_PS / self.seconds

    @cached_property
    def routers(self) -> Words:
        """Returns the routers that have nodes of the job, ascending."""
        return np.unique(np.array(self.record.labels, np.int64) // self.nodes_per_router)

    @cached_property
    def open_routers(self) -> Words:
        """Returns the routers that had an idle node: those that the policy chose among."""
        return np.flatnonzero(self.idle.reshape(-1, self.nodes_per_router).any(axis=1))

    @property
    def traffic_of_job(self) -> float:
        """Returns the mean traffic of the routers that have nodes of the job."""
        return self.means(self.traffic)[0]

    @property
    def traffic_of_all(self) -> float:
        """Returns the mean traffic of all routers that had an idle node."""
        return self.means(self.traffic)[1]

    def means(self, values: Rates) -> tuple[float, float]:
        """Returns the means of what is given for each router: of those that have nodes of the job,
        and of all that had an idle node."""
        return float(values[self.routers].mean()), float(values[self.open_routers].mean())


LOGS = ("starts", "ends", "seen", "seen_routers")
"""The logs of a run that tell of it."""
Columns = dict[str, Any]


def seen_by_job(run: Run, logs: dict[str, Columns]) -> list[Seen | None]:
    """Returns by job what the scheduler saw when it started it, from LOGS; None where the job has
    not been started, and where nothing had been reported."""
    jobs = run.network.jobs
    made: list[Seen | None] = [None] * len(jobs)
    rows, counters = logs["seen"], _by_job(logs["seen_routers"])
    idle = dict(_idle_before(run, logs["starts"], logs["ends"]))
    for row, number in enumerate(rows["job"].tolist()):
        age, intervals = int(rows["age_ps"][row]), int(rows["intervals"][row])
        if age < 0:
            continue
        seconds = intervals * int(rows["interval_ps"][row]) / SECOND_PS
        made[number] = Seen(
            run.job_records[number], jobs[number].sensitive, int(rows["time_ps"][row]), age,
            seconds, run.machine.nodes, idle[number],
            *_dense(counters.get(number), run.machine.n_routers),
        )  # fmt: skip
    return made


COUNTERS = ("sent_bytes", "received_bytes", "stall_ps", "wait_ps")


def _by_job(columns: Columns) -> dict[int, Columns]:
    """Returns the rows about routers by job; those of one job follow each other."""
    found = np.unique(columns["job"], return_index=True, return_counts=True)
    return {
        number: {name: values[first : first + count] for name, values in columns.items()}
        for number, first, count in zip(*(each.tolist() for each in found), strict=True)
    }


def _dense(rows: Columns | None, routers: int) -> list[Words]:
    """Returns the counters of all routers; those without a row are 0."""
    made = [np.zeros(routers, np.int64) for _ in COUNTERS]
    if rows is not None:
        for values, name in zip(made, COUNTERS, strict=True):
            values[rows["router"]] = rows[name]
    return made


def _idle_before(
    run: Run, starts: Columns, ends: Columns
) -> Iterator[tuple[int, npt.NDArray[np.bool_]]]:
    """Yields every job that was started, with the nodes that were idle just before."""
    events = [
        (time, starting, place, job)
        for starting, log in enumerate((ends, starts))
        for place, (time, job) in enumerate(
            zip(log["time_ps"].tolist(), log["job"].tolist(), strict=True)
        )
    ]
    idle = np.ones(run.machine.n_nodes, bool)
    for _, starting, _, job in sorted(events):
        if starting:
            yield job, idle.copy()
        idle[list(run.job_records[job].labels)] = not starting


# -- for people


def rate(bytes_per_second: float) -> str:
    """Returns a traffic as '1.23 GB/s': three figures."""
    return show_bandwidth(float(f"{bytes_per_second:.3g}"))


class Quantity(NamedTuple):
    """What an allocation policy goes by, and what is shown of its decisions."""

    name: str
    about: str
    of: Callable[[Seen], Rates]
    show: Callable[[float], str]
    bar: str
    """The words beside a scale of colours, and how many of `of` are one of its units."""
    unit: float


QUANTITIES = {
    "traffic": Quantity(
        "traffic", "the bytes per second that the nodes of a router sent and received",
        lambda seen: seen.traffic, rate, "traffic of the router's nodes (GB/s)", 1e9,
    ),
    "stalls": Quantity(
        "stalls", "for how long packets waited in a router without credit, over all its ports, in "
        "seconds per second", lambda seen: seen.stalls, "{:.3g} s/s".format,
        "time in stalls, over all ports (s/s)", 1.0,
    ),
}  # fmt: skip
HEADS = ("job", "congestion", "age (us)", "its routers", "all with idle nodes")


def policy_of(run: Run) -> str:
    """Returns the name of a run's allocation policy."""
    assert run.network.workload is not None
    return run.network.workload.allocation


def reads(run: Run) -> bool:
    """Tells whether the allocation policy of a run goes by what the network reports."""
    return ALLOCATIONS.known(policy_of(run)) and run.network.scheduler.allocation.reads > 0


def quantity(run: Run) -> Quantity:
    """Returns what the allocation policy of a run goes by: traffic, if it goes by nothing of the
    network."""
    known = ALLOCATIONS.known(policy_of(run))
    return QUANTITIES[run.network.scheduler.allocation.sorts_by if known else "traffic"]


def caption(run: Run) -> str:
    """Returns how to read the table."""
    return (
        "The counters that the scheduler had when it placed a job. Congestion: whether it slows "
        f"the job down, as far as is known. Age: of the newest reading. Then "
        f"{quantity(run).about}: the mean of the routers that the job was given, and of all "
        f"routers that had an idle node.{unseen(run)}"
    )


def unseen(run: Run) -> str:
    """Returns a sentence about jobs that were placed before the first report had come; empty where
    there are none."""
    count = sum(it is None and not job.on and record.start_ps is not None for it, job, record
                in zip(run.seen, run.network.jobs, run.job_records, strict=True))  # fmt: skip
    if not count:
        return ""
    jobs = "1 job was" if count == 1 else f"{count:,} jobs were"
    equal = f", when all routers are equal to {policy_of(run)}" * reads(run)
    return f" {jobs} placed before the first report had come{equal}."


def placed(run: Run) -> list[Seen]:
    """Returns what was seen of the jobs that an allocation policy placed: the sensitive ones first,
    each in order of their starts. Empty where nothing is known of any."""
    some = [it for it in run.seen if it is not None]
    return sorted(some, key=lambda it: (not it.sensitive, it.time_ps, it.record.number))


def longest(some: Sequence[Seen]) -> str:
    """Returns of how long a time the counters are that were seen, at most, as text."""
    return show_time(round(max(it.seconds for it in some) * SECOND_PS))


def kind(seen: Seen) -> str:
    """Returns in a word whether congestion slows a job down."""
    return {True: "sensitive", False: "insensitive", None: "unknown"}[seen.sensitive]


def cells(seen: Seen, by: Quantity) -> tuple[str, ...]:
    """Returns a row of the table, under HEADS."""
    means = seen.means(by.of(seen))
    return (seen.record.name, kind(seen), f"{seen.age_ps / 1e6:,.1f}", *map(by.show, means))


def seen_table(run: Run) -> Table:
    """Returns the table for a terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    by, found = quantity(run), placed(run)
    over = f" in the last {longest(found)}" if found else ""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0),
                  title=f"{by.name} that the scheduler saw{over}", title_justify="left",
                  caption=unseen(run).strip() or None, caption_justify="left")  # fmt: skip
    for head in HEADS:
        left = head in HEADS[:2]
        shown.add_column(head, justify="left" if left else "right", no_wrap=not left, max_width=28)
    for job in found:
        shown.add_row(*map(Text, cells(job, by)))
    return shown
