"""The days of the study, by the question that they are for; a part is one or more of these.

A **setting** is what distinguishes cases besides their seed. Every day of a setting has the seed of
a day of any other, so that differences are between days with the same jobs and the same signal.
Where FES bids, a case searches for the bid first, and the days have that bid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from odonata.jobs.signal import LEAST_DEVIATION, MOST_DEVIATION
from odonata.studies.bidding.simulation import FES, BiddingOutcome, Day, simulate
from odonata.study.contract import digest
from pdes.errors import require

Outcomes = Mapping[str, BiddingOutcome]
POLICIES = ("energy-qare", "qoscap")
BIDS = ("fh", FES, "adaptive")
NOTHING = (0.0, 0.0)
"""The bid of whoever offers nothing."""
TRIED = 6
"""In how many days FES tries each bid where one day is too few."""
MOST_DAYS = 1000
LOADS = (0.6, 0.75, 0.85, 0.9)
BURSTS = (1.0, 4.0, 16.0)
SWING = 0.6


class Workload(NamedTuple):
    """Jobs of a machine: those of a mix, at a load, evenly or not."""

    name: str
    system: str
    load: float = 0.75
    burst: float = 1.0
    swing: float = 0.0


TABLE = (
    Workload("meggie", "meggie-like"),
    Workload("meggie, uneven", "meggie-like", burst=2.0, swing=SWING),
    Workload("emmy", "emmy-like"),
)
"""In place of the three days of traces of the thesis."""
BUSY = (
    Workload("meggie, 90 %", "meggie-like", 0.9),
    Workload("meggie, 90 %, uneven", "meggie-like", 0.9, 2.0, SWING),
    Workload("emmy, 90 %", "emmy-like", 0.9),
)
CAUSES = tuple(Workload(f"meggie, {load:.0%}, groups of {burst:g}", "meggie-like", load, burst,
                        SWING if burst > 1.0 else 0.0)
               for load in LOADS for burst in BURSTS)  # fmt: skip


@dataclass(frozen=True)
class BiddingPlan:
    """What is asked for."""

    parts: tuple[str, ...]
    days: int
    deviation: float

    def __post_init__(self) -> None:
        require(1 <= self.days <= MOST_DAYS, f"days = {self.days}: 1 .. {MOST_DAYS:,}")
        require(LEAST_DEVIATION <= self.deviation <= MOST_DEVIATION,
                f"deviation = {self.deviation:g}: {LEAST_DEVIATION:g} .. {MOST_DEVIATION:g}"
                )  # fmt: skip

    def search(self, workload: Workload, policy: str, tried: int = 1) -> Day:
        """Returns the search of FES for a workload: with jobs that come at random, as often."""
        even = workload._replace(burst=1.0, swing=0.0)
        return self._day(0, even, policy, bid=FES, searching=True, tried=tried)

    def of(
        self,
        workload: Workload,
        policy: str,
        bid: Any,
        outcomes: Outcomes,
        tried: int = 1,
        **more: Any,
    ) -> list[Day]:
        """Returns all days of a setting; none while the bid of FES is not known, which is `tried`
        in so many days."""
        if bid == FES:
            found = outcomes.get(self.search(workload, policy, tried).key)
            if found is None:
                return []
            bid = found.average_w, found.reserve_w
        days = [self._day(seed, workload, policy, bid=bid, **more)
                for seed in range(1, self.days + 1)]  # fmt: skip
        shown = workload in (TABLE[1], BUSY[1]) and not more
        return [replace(day, kept=day.seed == 1 and shown) for day in days]

    def _day(self, seed: int, workload: Workload, policy: str, **more: Any) -> Day:
        of = workload._asdict()
        del of["name"]
        return Day(seed, policy=policy, deviation=self.deviation, **of, **more)


def workloads(part: str) -> Sequence[Workload]:
    """Returns the workloads of a part."""
    return {"table": TABLE, "busy": BUSY, "causes": CAUSES, "fes": TABLE}[part]


def days(asked: BiddingPlan, part: str, outcomes: Outcomes) -> Iterator[Day]:
    """Yields the cases of a part, as far as they are known."""
    some = workloads(part)
    if part == "causes":
        for workload in some:
            for policy in POLICIES:
                yield from asked.of(workload, policy, "adaptive", outcomes)
            yield from asked.of(workload, "energy-qare", NOTHING, outcomes)
        return
    if part == "fes":
        for workload in some:
            yield from (asked.search(workload, policy, TRIED) for policy in POLICIES)
        for workload in some:
            for policy in POLICIES:
                yield from asked.of(workload, policy, FES, outcomes, tried=TRIED)
        return
    for workload in some:
        yield from (asked.search(workload, policy) for policy in POLICIES)
    for workload in some:
        for policy in POLICIES:
            for bid in (*BIDS, NOTHING):
                yield from asked.of(workload, policy, bid, outcomes)
        yield from asked.of(workload, "qoscap", "adaptive", outcomes, turns=False)


def cases(asked: BiddingPlan, outcomes: Outcomes) -> list[Day]:
    """Returns each case once, in the order of the parts."""
    found = (case for part in asked.parts for case in days(asked, part, outcomes))
    return [*dict.fromkeys(found)]


def mark() -> str:
    """Returns a digest of this simulator, of a day of a small machine under every policy and
    bid."""
    small = Day(1, nodes=100, warm_h=1, after_h=0, steps=2)
    few = [
        replace(small, policy=policy, bid=bid) for policy in POLICIES for bid in ("fh", "adaptive")
    ]
    few.append(replace(small, turns=False, burst=2.0, swing=SWING))
    few.append(replace(small, searching=True, bid=FES))
    found = map(simulate, few)
    return digest(f"{it.average_w:.9g} {it.reserve_w:.9g} {it.error or 0:.9g} {it.cost:.9g} "
                  f"{sorted(it.q.items())}" for it in found)  # fmt: skip
