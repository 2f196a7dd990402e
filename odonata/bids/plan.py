"""What is looked for, what is found, and the whole way between: the training, with a risk the
choice, and the judgement on hours of which the search knew nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from odonata.bids.asking import Steps, Wanted
from odonata.bids.risk import AtRisk, at_risk_steps
from odonata.bids.training import CHOOSE, JUDGE, TRAIN, Report, Trained, report, training
from policies.bidding import BIDDINGS
from policies.bidding.aqa import Optimised
from policies.views import Bid, Market


@dataclass(frozen=True)
class BidPlan:
    """What is looked for: a bid for the experiment that `text` is, by so many hours of each kind.
    With a `risk`, one for which the chance of a failed hour is below that."""

    text: str
    identity: str
    """A digest of all that decides how hours of this experiment go, files that it names included.
    """
    optimiser: str = "search"
    candidates: int = 500
    margin: float = 0.4
    train: int = 6
    judge: int = 20
    choose: int = 0
    risk: float | None = None

    @property
    def how(self) -> Optimised:
        """Returns the bidding policy that searches so."""
        made = BIDDINGS.make("aqa", {
            "optimiser": self.optimiser, "hours": self.train, "candidates": self.candidates,
            "margin": self.margin, "risk": self.risk or 0.0,
        })  # fmt: skip
        assert isinstance(made, Optimised)
        return made


class Found(NamedTuple):
    """The bid that a search ended with, and what it came to."""

    bid: Bid
    trained: Trained
    before: Report
    """What it came to in the hours it was trained on or, with a risk, chosen by, without a margin.
    """
    after: Report
    """What it came to in the hours that it is judged on, of which the search knew nothing."""
    at_risk: AtRisk | None = None


def steps_of(market: Market, asked: BidPlan) -> Steps[Found]:
    """The steps of the whole search."""
    found: AtRisk | None = None
    if asked.risk is None:
        own = range(TRAIN, TRAIN + asked.train)
        trained = yield from training(market, asked.how, own)
        bid = trained.best.bid
    else:
        own = range(CHOOSE, CHOOSE + asked.choose)
        found = yield from at_risk_steps(market, asked.how, asked.risk, asked.train, asked.choose,
                                         asked.judge)  # fmt: skip
        trained, bid = found.trained, found.chosen.bid
    others = range(JUDGE, JUDGE + asked.judge)
    before, after = yield [Wanted(bid, own), Wanted(bid, others)]
    return Found(bid, trained, report(market, before), report(market, after), found)
