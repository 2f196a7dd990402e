"""One simulation of the study: a month of the year, or all of it, under one policy and cap."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate as simulate_jobs
from odonata.jobs.power import Power
from odonata.jobs.schedule import Schedule
from odonata.study.contract import Case
from odonata.traces.changing import filled
from odonata.traces.demand import Demand, like_mira
from odonata.traces.mira import LOAD, NODES, YEAR, mira_year
from odonata.traces.trace import SECOND, Trace
from pdes.errors import Fault
from pdes.transport import Serial

DAY_US = 86_400 * SECOND
BIN_US = 3 * 3600 * SECOND
"""The resolution of the power that is kept for figures."""
NONE, NAIVE, LEARNER = "none", "naive", "dynamic-learner"
VARIABLE, LEVELS_KW = "variable", (2000, 3000, 4000, 2000)
"""The cap that changes three times, and its levels, each for a quarter of the year (chosen: the
paper does not give the days)."""
DISCIPLINES = {
    ("fcfs", "none"): ("fcfs", ()),
    ("fcfs", "easy"): ("easy", ()),
    ("fcfs", "first-fit"): ("first-fit", ()),
    ("wfp", "none"): ("wfp", (("backfill", "none"),)),
    ("wfp", "easy"): ("wfp", ()),
}
"""The disciplines, by the order of the queue and by who may pass."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Part(Case):
    """One simulation. `cap` is a power, or VARIABLE; a run without control has one too, so that it
    is counted how often it would have been exceeded. `month`: the one whose jobs are simulated, on
    a machine that is empty when it begins; None: all jobs of the year. `strangers`: every job is of
    a project of its own, so that nothing is ever known of one that waits."""

    order: str
    policy: str
    cap: str
    month: int | None = None
    backfill: str = "none"
    window: int = 20
    strangers: bool = False
    seed: int = 1
    load: float = LOAD
    days: int = YEAR
    months: int = 12

    def __str__(self) -> str:
        when = "the year" if self.month is None else f"month {self.month + 1}"
        return f"{when}, {self.order}, {self.policy}, cap {self.cap}, seed {self.seed}"

    @property
    def weight(self) -> float:
        """Returns about how many seconds it takes, of a whole year, or of its month."""
        seconds = {NONE: 0.5, NAIVE: 10.0, LEARNER: 35.0}[self.policy]
        if self.cap in ("2000 kW", VARIABLE):
            seconds *= 2
        share = 1.0 if self.month is None else 1.0 / self.months
        return seconds * share * self.days / YEAR + 0.3

    @property
    def span_us(self) -> int:
        """Returns the length of the month, or of the year."""
        return self.days * DAY_US // (1 if self.month is None else self.months)


@dataclass(frozen=True)
class WallaceOutcome:
    """What a run gave. [month]: of its month alone or, of a run of the year, of each."""

    jobs: tuple[int, ...]
    """[month]: those that were submitted in it."""
    wait_s: tuple[float, ...]
    """[month]: their mean wait."""
    utilisation: tuple[float, ...]
    """[month]: node-time in use, as a part of all that there is in the month."""
    intervals: int
    """How often power was measured, up to the end of the last job."""
    violations: Mapping[str, int]
    """How many of these were above the cap, by cause."""
    mean_kw: tuple[int, ...]
    highest_kw: tuple[int, ...]
    """[3 h] of a run of the year: the mean power, and the highest reading."""
    known: tuple[int, ...]
    unknown: tuple[int, ...]
    sets_known: tuple[int, ...]
    sets_seen: tuple[int, ...]
    """[day] of a run of the year: jobs that have started with a known and with an unknown profile,
    sets of jobs alike whose profile is known, and all that were seen."""
    digest: str
    seconds: float
    """Wall-clock seconds."""
    outliers: tuple[int, ...] = ()
    whole_outliers: tuple[int, ...] = ()
    whole_jobs: tuple[int, ...] = ()
    """[month]: jobs whose wait is an outlier among those of the month, as a box plot has it, those
    of them that take the whole machine, and all jobs that do."""

    @property
    def capping_success(self) -> float:
        return 1.0 - sum(self.violations.values()) / max(1, self.intervals)


@dataclass(frozen=True, eq=False)
class PartOfYear(Cluster):
    """A machine that runs some jobs of a year, which draw what they draw in the whole of it."""

    of_jobs: Demand | None = None

    @cached_property
    def demand(self) -> Demand:
        assert self.of_jobs is not None
        return self.of_jobs


@lru_cache(maxsize=4)
def year(seed: int, load: float, days: int) -> tuple[Trace, Demand]:
    """Returns the jobs of the year and what they draw, made once per process."""
    trace = filled(mira_year(seed, load=load, days=days))
    return trace, like_mira(trace, seed)


def model_of(part: Part) -> PartOfYear:
    trace, demand = year(part.seed, part.load, part.days)
    if part.month is not None:
        first_us = part.month * part.span_us
        kept = np.flatnonzero(month_of(part, trace) == part.month)
        trace = trace.where(kept, submit_us=trace.submit_us[kept] - first_us)
        demand = demand.where(kept)
    if part.strangers:
        own, names = np.arange(len(trace)), tuple(f"{job}" for job in range(len(trace)))
        trace = trace.where(slice(None), user=own, users=names, project=own, projects=names,
                            application=own, applications=names)  # fmt: skip
    scheduling, parameters = DISCIPLINES[part.order, part.backfill]
    return PartOfYear(
        trace, NODES, scheduling, parameters, seed=part.seed, power=power_of(part), of_jobs=demand
    )


def power_of(part: Part) -> Power:
    """Returns the section [power]: jobs start only when power is measured, whatever the policy, as
    in the paper's simulator, which goes by scheduling intervals."""
    cap: Any = part.cap
    if cap == VARIABLE:
        quarter_s = part.days * 86_400 // len(LEVELS_KW)
        cap = tuple((f"{k * quarter_s} s", f"{kw} kW") for k, kw in enumerate(LEVELS_KW))
    window = (("window", part.window),) if part.policy == LEARNER else ()
    return Power(part.policy, window, cap=cap, passes="intervals", demand="mira")


def month_of(part: Part, trace: Trace) -> npt.NDArray[np.int64]:
    """Returns the month in which each job of the year is submitted."""
    length_us = part.days * DAY_US // part.months
    return np.minimum(trace.submit_us // length_us, part.months - 1)


def simulate(part: Part) -> WallaceOutcome:
    """Simulate a part on this core, whatever ranks there are, to the end of its last job."""
    began = time.perf_counter()
    model = model_of(part)
    found = simulate_jobs(model, transport=Serial())
    record = found.power
    if record is None:
        raise Fault("no power was measured")
    schedule, whole = found.schedule, part.month is None
    month = month_of(part, model.trace) if whole else np.zeros(len(schedule), np.int64)
    months = part.months if whole else 1
    jobs = np.bincount(month, minlength=months)
    wait_s = (schedule.start_us - model.trace.submit_us) / SECOND
    far, took = outlying(wait_s, month, months), model.trace.nodes == NODES
    wait_s = np.bincount(month, wait_s, months) / np.maximum(jobs, 1)
    none: tuple[int, ...] = ()
    kept = _in_bins(record.time, record.power_w, part.span_us) if whole else (none, none)
    days = np.searchsorted(record.time, np.arange(1, part.days + 1) * DAY_US, "right") - 1
    counted = {name: _whole(column[np.maximum(days, 0)]) if whole else ()
               for name, column in record.figures.items()}  # fmt: skip
    return WallaceOutcome(
        jobs=_whole(jobs),
        wait_s=tuple(wait_s.tolist()),
        utilisation=_utilisation(schedule, part.span_us, months),
        intervals=len(record.time),
        violations=record.violations,
        mean_kw=kept[0],
        highest_kw=kept[1],
        known=counted.get("known", ()),
        unknown=counted.get("unknown", ()),
        sets_known=counted.get("sets_known", ()),
        sets_seen=counted.get("sets_seen", ()),
        digest=found.result.digest,
        seconds=time.perf_counter() - began,
        outliers=_whole(np.bincount(month[far], minlength=months)),
        whole_outliers=_whole(np.bincount(month[far & took], minlength=months)),
        whole_jobs=_whole(np.bincount(month[took], minlength=months)),
    )


def outlying(wait_s: Floats, month: npt.NDArray[np.int64], months: int) -> npt.NDArray[np.bool_]:
    """Tells of each job whether its wait is more than one and a half times the distance of the
    quartiles above the upper one, among the waits of its month."""
    far = np.zeros(len(wait_s), np.bool_)
    for one in range(months):
        here = month == one
        if here.any():
            lower, upper = np.percentile(wait_s[here], (25, 75))
            far[here] = wait_s[here] > upper + 1.5 * (upper - lower)
    return far


def _utilisation(schedule: Schedule, span_us: int, months: int) -> tuple[float, ...]:
    """Returns the node-time in use in each month as a part of all that there is. What of it a job
    takes after the end of the span does not count."""
    edges = np.arange(months + 1) * (span_us // months)
    nodes = schedule.trace.nodes.astype(np.float64)
    parts = []
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        held_us = np.clip(schedule.end_us, low, high) - np.clip(schedule.start_us, low, high)
        parts.append(float(held_us @ nodes) / (schedule.nodes * (high - low)))
    return tuple(parts)


def _in_bins(
    time_us: npt.NDArray[np.int64], power_w: Floats, span_us: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the mean and the highest of the readings in every bin, in kW."""
    kept = time_us <= span_us
    bins = (time_us[kept] - 1) // BIN_US
    many = -(-span_us // BIN_US)
    count = np.bincount(bins, minlength=many)
    mean_kw = np.bincount(bins, power_w[kept], many) / np.maximum(count, 1) / 1000
    highest_w = np.zeros(many)
    np.maximum.at(highest_w, bins, power_w[kept])
    return _whole(np.rint(mean_kw)), _whole(np.rint(highest_w / 1000))


def _whole(values: npt.NDArray[Any]) -> tuple[int, ...]:
    return tuple(values.astype(np.int64).tolist())
