"""What a bidding policy is asked and answers, and the register of those there are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from policies.policy import Policy, enter
from policies.register import REGISTERS, Entry, Register
from policies.views import Market


class Bid(NamedTuple):
    """The machine will draw `average_w` plus a part of `reserve_w` that the grid's signal, between
    -1 and 1, names from moment to moment. `weights` are the shares of the job types, where the
    power policy divides nodes by them."""

    average_w: float
    reserve_w: float
    weights: Mapping[str, float] = {}


class BiddingPolicy(Policy):
    """Says what the machine offers to a market for regulation service.

    It is asked once per hour, before the hour begins. An example, which offers what the jobs that
    are there can follow: half the sum, and half the difference, of the most and the least that they
    draw::

        @bidding("half", about="the middle of what present jobs can draw", source="Zhang 2021, 2.6")
        class Half(BiddingPolicy):
            def bid(self, market):
                busy, least, most = 0, 0.0, 0.0
                for job in (*market.queue, *(each.run.request for each in market.running)):
                    choices = market.choices.get(job.application)
                    watts = choices.watts.tolist() if choices else []
                    if watts and busy + job.nodes <= market.nodes:
                        busy += job.nodes
                        least, most = least + min(watts), most + max(watts)
                idle = (market.nodes - busy) * market.idle_w
                return Bid(idle + (least + most) / 2, (most - least) / 2)

    On ten nodes that draw 100 W when idle, with one job of four nodes that draws 600 to 1,000 W,
    the bid is an average of 1,400 W and a reserve of 200 W.

    A bid that was tried out by simulation may be looked up in arrays of its own: what the policy
    knows from hour to hour is in its memory.
    """

    @abstractmethod
    def bid(self, market: Market) -> Bid:
        """Returns the bid for the next hour: average at least reserve, both at least 0."""


Written = TypeVar("Written", bound=type[BiddingPolicy])

BIDDINGS: Register[Entry] = REGISTERS["bidding"]


def bidding(name: str, *, about: str, source: str) -> Callable[[Written], Written]:
    """Register the subclass of `BiddingPolicy` that it stands above, which stays what it is."""

    def decorate(written: Written) -> Written:
        enter(
            "bidding",
            BiddingPolicy,
            written,
            None,
            {"name": name, "about": about, "source": source},
        )
        return written

    return decorate
