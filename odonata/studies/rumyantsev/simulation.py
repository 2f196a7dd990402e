"""One simulation of the study: the Karelian trace, served by one discipline under one control of
the service rate; and what it gives.

Energies decide nothing, so that one simulation gives the power of every preset. Job amounts are
recorded seconds times `recorded_rate`: 1 by choice, as the thresholds of the paper then lie where
the workload is; 2.66 if the trace was recorded at the high rate.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.study.contract import Case
from pdes.errors import Refused
from pdes.transport import Serial

if TYPE_CHECKING:
    from odonata.cluster.model import Cluster
    from odonata.cluster.simulation import Simulated
    from odonata.studies.rumyantsev.measures import Epochs
    from odonata.traces.trace import Trace, Whole

SERVERS = 80
LOW, HIGH = 2.0, 2.66
"""The service rates."""
CONTROLS = {
    "workload": ("rate-by-workload", "little", "much", float),
    "number": ("rate-by-number", "few", "many", int),
    "randomised": ("rate-randomised", "down", "up", float),
}
"""By word, the policy of each control, and its parameters for `lower` and `upper`, with their type.
"""
RARELY_PS = 30 * 86400 * 10**12
"""Power is measured once in 30 days: the study integrates it, and needs no readings."""
CURE = (
    "the study needs the data set HPC_KRC2 of the R package hpcwld (on CRAN) as a CSV file; in R: "
    'write.csv(hpcwld::HPC_KRC2, "krc2.csv", row.names = FALSE); then --trace krc2.csv'
)


@dataclass(frozen=True)
class Run(Case):
    """One simulation. `lower` and `upper` are the thresholds below which the low and above which
    the high rate is set, in seconds of work or in customers; or the probabilities that a departure
    sets the low and an arrival the high rate. `data` is a digest of the file, which stands for it
    in the key: where the file lies does not matter. `kept`: the whole run is in the outcome, for
    the figures that show it. `stream`: the customers are those that were recorded, or of weeks that
    are drawn by `seed`, or independent of each other, `load` times as many as at the boundary of
    stability for the low rate (`odonata.studies.rumyantsev.streams`)."""

    file: str
    data: str
    control: str
    lower: float
    upper: float
    recorded_rate: float = 1.0
    zero_gap_us: int = 1000
    kept: bool = False
    discipline: str = "fcfs"
    stream: str = "recorded"
    seed: int = 0
    load: float = 0.0

    def fields(self) -> dict[str, Any]:
        """Returns them without the file and, of the recorded customers, what is about others:
        stores of before there were such are read."""
        out = {"file"} | ({"stream", "seed", "load"} if self.stream == "recorded" else set())
        return {name: value for name, value in super().fields().items() if name not in out}

    def __str__(self) -> str:
        words = f"{self.discipline}, control by {self.control}, {self.lower:g} and {self.upper:g}"
        return words if self.stream == "recorded" else f"{words}, {self.stream} {self.seed}"


@dataclass(frozen=True)
class RumyantsevOutcome:
    """The outcome: means over time and over customers, as `odonata.studies.rumyantsev.measures` has
    them."""

    customers: int
    until_s: float
    """The time of the last departure, up to which the system is measured."""
    switches: int
    """Changes of the service rate."""
    power_w: Mapping[str, float]
    """The mean power of all servers, by preset of energies."""
    system: Mapping[str, float]
    per_customer: Mapping[str, Mapping[str, float]]
    digest: str
    seconds: float
    """Wall-clock seconds."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Rows of the trace that are no customers, by reason."""
    track: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Where the run is kept: `time_us`, `work`, `served` and `fast` by epoch, and `number` (of the
    row in the trace), `submit_us`, `start_us`, `end_us`, `amount_us` and `servers` by customer."""
    in_system: Sequence[int] = ()
    """How many customers were there at the end of each tenth of the time of arrivals."""
    per_s: float = 0.0
    """Departures per second in that time."""
    boundary_per_s: float = 0.0
    """How many customers may arrive per second, at most, for the system to be stable at the low
    rate. It is given for streams of independent customers alone."""


def digest_of(file: str) -> str:
    """Returns a digest of a trace. Raises Refused, with where to get it, where there is none."""
    path = Path(file)
    if not path.is_file():
        raise Refused(f"trace = {file}: there is no such file; {CURE}")
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise Refused(f"trace = {file}: cannot be read: {error.strerror}; {CURE}") from None


@lru_cache(maxsize=3)
def trace_of(file: str, data: str, recorded_rate: float, zero_gap_us: int) -> Trace:
    """Returns the customers, in order of arrival: their run times are their job amounts, which are
    known to the policies. Whoever would come together with the one before comes `zero_gap_us` after
    it."""
    from odonata.traces.source import Source

    if digest_of(file) != data:
        raise Refused(f"trace = {file}: it has changed since the study began; start it again")
    trace, _ = Source(file=file, nodes=SERVERS, requests="exact").trace()
    amount = np.rint(trace.run_us * recorded_rate).astype(np.int64)
    return trace.where(slice(None), submit_us=apart(trace.submit_us, zero_gap_us), run_us=amount,
                       requested_us=np.maximum(amount, 1))  # fmt: skip


@lru_cache(maxsize=2)
def _customers(
    file: str, data: str, recorded_rate: float, zero_gap_us: int, stream: str, seed: int,
    load: float,
) -> Trace:  # fmt: skip
    from odonata.studies.rumyantsev.streams import independent
    from odonata.traces.windows import WEEK_US, resampled

    trace = trace_of(file, data, recorded_rate, zero_gap_us)
    if stream == "weeks":
        found = resampled(trace, WEEK_US, seed)
        return found.where(slice(None), submit_us=apart(found.submit_us, zero_gap_us))
    return independent(trace, SERVERS, LOW, load, seed)


def customers_of(case: Run) -> Trace:
    """Returns the customers of a case."""
    given = case.file, case.data, case.recorded_rate, case.zero_gap_us
    if case.stream == "recorded":
        return trace_of(*given)
    return _customers(*given, case.stream, case.seed, case.load)


def apart(submit_us: Whole, gap_us: int) -> Whole:
    """Returns arrivals of which no two are at the same time: whoever is not later than the one
    before is so much later, and nobody else is moved."""
    found, last = submit_us.tolist(), -gap_us
    for position, at in enumerate(found):
        last = found[position] = at if at > last or not gap_us else last + gap_us
    return np.array(found, np.int64)


def model_of(case: Run, trace: Trace, energies: str = "swapped") -> Cluster:
    """Returns the model of a case. Before the first arrival servers are idle at the low rate."""
    from odonata.cluster.model import Cluster
    from odonata.jobs.power import Power
    from policies.power.service_rate import ENERGIES

    policy, lower, upper, kind = CONTROLS[case.control]
    parameters = {"low": LOW, "high": HIGH, "energies": energies, lower: kind(case.lower),
                  upper: kind(case.upper)}  # fmt: skip
    power = Power(policy, tuple(parameters.items()), demand="constant", interval_ps=RARELY_PS,
                  idle_w=ENERGIES[energies].idle_low_w)  # fmt: skip
    return Cluster(trace, SERVERS, case.discipline, overrun="extend", power=power)


def epochs_of(found: Simulated) -> Epochs:
    """Returns a run from epoch to epoch."""
    from odonata.studies.rumyantsev.measures import Epochs

    assert found.power is not None
    return Epochs.of(found.schedule, found.power.speed_changes, LOW, HIGH)


def simulate(case: Run) -> RumyantsevOutcome:
    """Simulate a case on this core, whatever ranks there are."""
    from odonata.cluster.simulation import simulate as run
    from odonata.studies.rumyantsev.streams import boundary_per_s
    from odonata.traces.trace import SECOND
    from policies.power.service_rate import ENERGIES

    began = time.perf_counter()
    trace = customers_of(case)
    found = run(model_of(case, trace), transport=Serial())
    epochs = epochs_of(found)
    boundary = 0.0
    if case.stream == "independent":
        recorded = trace_of(case.file, case.data, case.recorded_rate, case.zero_gap_us)
        boundary = boundary_per_s(recorded, SERVERS, LOW)
    end_us = np.sort(found.schedule.end_us)
    tenths = np.arange(1, 11) * (int(trace.submit_us[-1]) / 10)
    gone = np.searchsorted(end_us, tenths, "right")
    return RumyantsevOutcome(
        customers=len(trace),
        until_s=epochs.until_s,
        switches=int((np.diff(epochs.rate) != 0).sum()),
        power_w={name: epochs.power_w(watts) for name, watts in ENERGIES.items()},
        system=epochs.system(),
        per_customer=epochs.customers(),
        digest=found.result.digest,
        seconds=time.perf_counter() - began,
        left_out=dict(trace.account.dropped),
        track=_track(epochs) if case.kept else {},
        in_system=(np.searchsorted(trace.submit_us, tenths, "right") - gone).tolist(),
        per_s=float(gone[-1]) / (tenths[-1] / SECOND) if tenths[-1] else 0.0,
        boundary_per_s=boundary,
    )


def _track(epochs: Epochs) -> dict[str, list[float]]:
    schedule = epochs.schedule
    trace = schedule.trace
    columns = {
        "time_us": epochs.time_us, "work": epochs.work.round(3), "served": epochs.served,
        "fast": epochs.fast.astype(int), "number": trace.number, "submit_us": trace.submit_us,
        "start_us": schedule.start_us, "end_us": schedule.end_us, "amount_us": trace.run_us,
        "servers": trace.nodes,
    }  # fmt: skip
    return {name: column.tolist() for name, column in columns.items()}
