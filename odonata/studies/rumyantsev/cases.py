"""The simulations of the study, by the figure that they are for; a part is one or more of these.

Figures 1 and 2 are of one run with two thresholds, figure 3 of runs with one threshold each. Beside
them stand runs that the paper describes and does not show: control by the number of customers, with
one threshold each; randomised control; the disciplines other than first come, first served, under
both controls, with one threshold each and with two; figure 3 of randomised traces, which the paper
leaves to others; and streams of customers near the boundary of stability.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from odonata.studies.rumyantsev import simulation
from odonata.study.contract import digest
from pdes.errors import require
from pdes.transport import Serial

TWO_THRESHOLDS = (1e5, 3e5)
THRESHOLDS = tuple(1e5 * i for i in range(31))
"""Workloads, in seconds at a service rate of 1: those of figure 3."""
NUMBERS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 49)
"""Customers: there are never more than 49 at a time, so the last is no control at all."""
COINS = ((0.9, 0.1), (0.5, 0.5), (0.1, 0.9))
"""Probabilities that a departure sets the low rate and an arrival the high one: the paper has no
values."""
DISCIPLINES = ("easy-strict", "easy", "lcfs-pr", "spf", "lpf")
"""Those of the paper besides first come, first served; its EASY backfilling is `easy-strict`, and
`easy` the usual one, which also fills servers that the first waiting customer leaves over."""
SOME_THRESHOLDS = (0.0, 1e5, 2e5, 3e5, 5e5, 1e6, 2e6, 3e6)
SOME_NUMBERS = (0, 1, 2, 3, 5, 8, 15, 49)
"""Those of THRESHOLDS and NUMBERS at which disciplines are compared."""
CUSTOMERS = (7000, 500)
"""From which row of the trace on figure 2 shows customers, counted from 1, and how many."""
DRAW_LOADS = (0.9, 0.95, 1.05, 1.1)
"""Arrivals of independent customers per those at the boundary of stability, at the low rate."""
SATURATED, CONTROLLED = 3.0, 1.15
"""The load at which somebody always waits; and one that is above the boundary at the low rate and
below that at the high one, which is a third higher."""
NEVER = 1e15
"""A workload that is never reached: the rate stays low."""
LEAST_RATE, MOST_RATE, MOST_GAP_MS = 0.001, 1000.0, 1e6


@dataclass(frozen=True)
class RumyantsevPlan:
    """What is asked for. `data` is a digest of the trace."""

    trace: str
    data: str = ""
    recorded_rate: float = 1.0
    zero_gap_ms: float = 1.0
    parts: tuple[str, ...] = ()
    draws: int = 10

    def __post_init__(self) -> None:
        require(1 <= self.draws <= 1000, f"draws = {self.draws}: 1 .. 1000")
        require(LEAST_RATE <= self.recorded_rate <= MOST_RATE, f"recorded-rate = "
                f"{self.recorded_rate:g}: {LEAST_RATE:g} .. {MOST_RATE:g}, as 1 or "
                f"{simulation.HIGH:g}")  # fmt: skip
        require(0 <= self.zero_gap_ms <= MOST_GAP_MS, f"zero-gap-ms = {self.zero_gap_ms:g}: "
                f"0 .. {MOST_GAP_MS:g}")  # fmt: skip

    def at(
        self, control: str, lower: float, upper: float, kept: bool = False, discipline: str = "fcfs"
    ) -> simulation.Run:
        return simulation.Run(self.trace, self.data, control, float(lower), float(upper),
                              self.recorded_rate, round(self.zero_gap_ms * 1000), kept, discipline
        )  # fmt: skip

    @property
    def hysteresis(self) -> simulation.Run:
        """Returns the run of figures 1 and 2."""
        return self.at("workload", *TWO_THRESHOLDS, kept=True)

    @property
    def recorded_high(self) -> simulation.Run:
        """Returns the same where service times were recorded at the high rate, for figure 2."""
        return replace(self.hysteresis, recorded_rate=simulation.HIGH)

    @property
    def by_workload(self) -> list[simulation.Run]:
        return [self.at("workload", k, k) for k in THRESHOLDS]

    @property
    def by_number(self) -> list[simulation.Run]:
        return [self.at("number", k, k) for k in NUMBERS]

    @property
    def randomised(self) -> list[simulation.Run]:
        return [self.at("randomised", down, up) for down, up in COINS]

    def drawn(self, seed: int) -> list[simulation.Run]:
        """Returns the runs of figure 3 with weeks that are drawn by a seed."""
        return [replace(case, stream="weeks", seed=seed) for case in self.by_workload]

    def independent(self, load: float, much: float = NEVER) -> list[simulation.Run]:
        """Returns runs of independent customers, a seed each: always at the low rate, or at the
        high one above a workload."""
        run = replace(self.at("workload", much, much), stream="independent", load=load)
        return [replace(run, seed=seed) for seed in self.seeds]

    @property
    def seeds(self) -> range:
        return range(1, self.draws + 1)

    def under(self, discipline: str, control: str) -> list[simulation.Run]:
        """Returns the runs of a discipline with one threshold each."""
        some = SOME_THRESHOLDS if control == "workload" else SOME_NUMBERS
        return [self.at(control, k, k, discipline=discipline) for k in some]

    def two_thresholds(self, discipline: str) -> simulation.Run:
        """Returns a discipline's run with the two thresholds of figure 1."""
        return self.at("workload", *TWO_THRESHOLDS, discipline == "fcfs", discipline)


def cases(asked: RumyantsevPlan) -> list[simulation.Run]:
    """Returns each case once, in the order of the parts. Refused where there is no trace of which
    they could be."""
    found = list(dict.fromkeys(case for part in asked.parts for case in _of(asked, part)))
    first = found[0]
    simulation.trace_of(first.file, first.data, first.recorded_rate, first.zero_gap_us)
    for stream in ("weeks", "independent"):
        for case in [it for it in found if it.stream == stream][:1]:
            simulation.customers_of(case)
    return found


def _of(asked: RumyantsevPlan, part: str) -> Iterator[simulation.Run]:
    if part == "hysteresis":
        yield asked.hysteresis
        yield asked.recorded_high
    elif part == "disciplines":
        for discipline in ("fcfs", *DISCIPLINES):
            yield asked.two_thresholds(discipline)
            yield from asked.under(discipline, "workload")
            yield from asked.under(discipline, "number")
    elif part == "randomised":
        for seed in asked.seeds:
            yield from asked.drawn(seed)
    elif part == "stability":
        for load in (*DRAW_LOADS, SATURATED, CONTROLLED):
            yield from asked.independent(load)
        yield from asked.independent(CONTROLLED, TWO_THRESHOLDS[1])
    else:
        yield from asked.by_workload
    if part == "comparison":
        yield from asked.by_number
        yield from asked.randomised


def mark() -> str:
    """Returns a digest of this simulator under every control and every discipline, on a few random
    jobs."""
    from odonata.cluster.simulation import simulate as run
    from odonata.traces.changing import filled
    from odonata.traces.poisson import poisson

    trace, found = filled(poisson(60, simulation.SERVERS, seed=1, load=0.9)), []
    thresholds = {"workload": (2e4, 5e4), "number": (3, 6), "randomised": (0.5, 0.5)}
    some = [simulation.Run("", "", control, *of) for control, of in thresholds.items()]
    some += [replace(some[0], discipline=discipline) for discipline in DISCIPLINES]
    for case in some:
        result = run(simulation.model_of(case, trace), transport=Serial())
        epochs = simulation.epochs_of(result)
        found.append(f"{result.result.digest} {epochs.mean_work:.9g}")
    return digest(found)
