"""The search for a bid as a study: its hours are simulated on processes or MPI ranks, kept, and
resumed, and what it finds is the same however that was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from odonata.bids.asking import Steps, Wanted, simulated
from odonata.bids.plan import BidPlan, Found, steps_of
from odonata.bids.training import TRAIN
from odonata.study.contract import Case, Claim, Study, digest
from odonata.study.sources import sources
from policies.bidding.delays import Tail
from policies.bidding.judging import Judged
from policies.bidding.known import mean_w
from policies.views import Bid, Market

CHUNK = 20
"""The most hours of one case: the hours of a bid are simulated by several processes at once."""


@dataclass(frozen=True)
class BidCase(Case):
    """A bid in some hours of an experiment."""

    identity: str
    average_w: float
    reserve_w: float
    weights: tuple[tuple[str, float], ...]
    hours: tuple[int, ...]
    training: bool
    margin: float
    tails: bool
    text: str = field(repr=False)
    """The experiment, of which `identity` stands for all that matters."""

    def fields(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("text", "key")}

    @property
    def weight(self) -> float:
        return float(len(self.hours))

    @property
    def wanted(self) -> Wanted:
        bid = Bid(self.average_w, self.reserve_w, dict(self.weights))
        return Wanted(bid, self.hours, self.training, self.margin, self.tails)

    def __str__(self) -> str:
        return (f"{self.average_w:,.0f} W and {self.reserve_w:,.0f} W in hours {self.hours[0]} to "
                f"{self.hours[-1]}")  # fmt: skip


@dataclass(frozen=True)
class Came:
    """What a bid came to, hour by hour."""

    judged: tuple[Judged, ...]


def cases_of(asked: BidPlan, wanted: Wanted) -> list[BidCase]:
    """Returns the cases that together are a bid in its hours, in their order."""
    bid, hours = wanted.bid, tuple(wanted.hours)
    return [
        BidCase(asked.identity, bid.average_w, bid.reserve_w, tuple(bid.weights.items()),
                hours[at : at + CHUNK], wanted.training, wanted.margin, wanted.tails, asked.text)
        for at in range(0, len(hours), CHUNK)
    ]  # fmt: skip


@lru_cache(maxsize=2)
def market_in(text: str) -> Market:
    """Returns what is known when the first bid of an experiment is due. It is made once in every
    process, and so is each hour that is tried."""
    from odonata.experiment.experiment import JobExperiment
    from odonata.experiment.reading import parse
    from odonata.jobs.series_repair import unsaid

    with unsaid():  # as the command has read the signal before
        made = parse(text, "odonata bid")
        assert isinstance(made, JobExperiment)
        return made.model().first_market()


@dataclass
class BidSearch(Study[BidPlan, BidCase, Came]):
    """The study of one search. What the search knows stays in the process that deals."""

    asked: BidPlan
    found: Found | None = None
    """What it ended with."""
    name = "bid"
    about = "A bid, trained on some hours and judged on others."
    sequential = True
    outcome = Came
    _steps: Steps[Found] | None = None
    _batch: list[list[BidCase]] = field(default_factory=list)
    """The cases of each bid that the search waits for."""
    _every: dict[str, BidCase] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {"asked": self.asked, "found": None, "_steps": None, "_batch": [], "_every": {}}

    def ask(self, *args: Any, **options: Any) -> BidPlan:
        return self.asked

    def cases(self, asked: BidPlan, outcomes: Mapping[str, Came]) -> Sequence[BidCase]:
        """Returns the cases that the search has asked for so far; it goes on if it has all of
        them."""
        if self._steps is None:
            self._steps = steps_of(self.market, asked)
            self._wait_for(next(self._steps))
        try:
            while self.found is None and all(
                case.key in outcomes for cases in self._batch for case in cases
            ):
                self._wait_for(self._steps.send(
                    [[it for case in cases for it in outcomes[case.key].judged]
                     for cases in self._batch]
                ))  # fmt: skip
        except StopIteration as done:
            self.found = done.value
        return list(self._every.values())

    def _wait_for(self, wanted: Sequence[Wanted]) -> None:
        """Take notice of what the search asks for next."""
        self._batch = [cases_of(self.asked, it) for it in wanted]
        self._every |= {case.key: case for cases in self._batch for case in cases}

    @property
    def market(self) -> Market:
        """Returns what is known when the bid is due."""
        return market_in(self.asked.text)

    def simulate(self, case: BidCase) -> Came:
        return Came(tuple(simulated(market_in(case.text), case.wanted)))

    def mark(self) -> str:
        """Returns a digest of the simulator's sources. An hour is simulated, so that what hours
        need is compiled."""
        simulated(self.market, Wanted(Bid(mean_w(self.market), 0.0), [TRAIN]))
        return digest([sources()])

    def claims(self, asked: BidPlan, outcomes: Mapping[str, Came]) -> list[Claim]:
        return []

    def revive(self, fields: dict[str, Any]) -> Came:
        return Came(tuple(_judged(*row) for row in fields["judged"]))


def _judged(*row: Any) -> Judged:
    """Returns an hour from what JSON has of it, where a list stands for a tail."""
    found = Judged(*row)
    tails = {name: None if it is None else Tail(*it) for name, it in found.tails.items()}
    return found._replace(tails=tails)
