"""What a bidding policy is asked and answers, and the register of those there are."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pdes.errors import Fault
from policies.policy import Policy, enter
from policies.register import REGISTERS, Entry, Register, described
from policies.views import Bid, Market


class BiddingPolicy(Policy):
    """Says what the machine offers to a market for regulation service.

    It is asked once per hour, before the hour begins. An example, which offers what the jobs that
    are there can follow: half the sum, and half the difference, of the most and the least that they
    draw::

        @bidding("half", about="the middle of what present jobs draw", source="Zhang 2021, 2.8.2")
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

    It may try bids out (`market.trial`). What it has to know from hour to hour is in its memory.
    """

    by_types: bool = False
    """Whether it goes by types of jobs (`Market.types`), and by hours that are tried with them:
    then a run needs `power.types`, and a power policy that regulates by type."""

    tries: bool = False
    """Whether it tries bids out (`Market.trial`), which only a run with fidelity = "job" can do."""

    @property
    def named(self) -> Sequence[str]:
        """Returns the types to which its bids give weights, as far as that is known before a run,
        which is refused where it has others. Of each bid it is found out when it is made."""
        return ()

    @abstractmethod
    def bid(self, market: Market) -> Bid:
        """Returns the bid for the next hour: average at least reserve, both at least 0."""


Written = TypeVar("Written", bound=type[BiddingPolicy])

BIDDINGS: Register[Entry] = REGISTERS["bidding"]


def bidding(name: str, *, about: str, source: str) -> Callable[[Written], Written]:
    """Register the subclass of `BiddingPolicy` that it stands above, which stays what it is."""

    def decorate(written: Written) -> Written:
        words = {"name": name, "about": about, "source": source}
        enter("bidding", BiddingPolicy, written, None, words)
        return written

    return decorate


def bid(policy: BiddingPolicy, market: Market) -> Bid:
    """Ask for the bid for the next hour; the one place where this is done. A Fault names the policy
    if it fails, or if its answer is no bid."""
    try:
        answer = policy.bid(market)
    except Fault:
        raise
    except BaseException as error:
        raise Fault(f"bidding {policy.name} failed: {described(error)}") from error
    return checked(policy, answer)


def checked(policy: BiddingPolicy, answer: Any, did: str = "bid") -> Bid:
    """Returns what a policy bid, or tried, if it is a bid: a Fault names the policy if not, as
    where it offers more reserve than average."""
    try:
        if not isinstance(answer, Bid):
            raise Fault(f"bidding {policy.name}: it {did} {answer!r}, which is no Bid")
        weights = {str(name): float(weight) for name, weight in answer.weights.items()}
        found = Bid(float(answer.average_w), float(answer.reserve_w), weights)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise Fault(f"bidding {policy.name}: it {did} {answer!r}, which cannot be read: "
                    f"{error}") from error  # fmt: skip
    if not 0 <= found.reserve_w <= found.average_w < math.inf:
        raise Fault(f"bidding {policy.name}: it {did} an average of {found.average_w:g} W and a "
                    f"reserve of {found.reserve_w:g} W; the reserve is 0 up to the "
                    "average")  # fmt: skip
    for name, weight in weights.items():
        if not 0 <= weight < math.inf:
            raise Fault(f"bidding {policy.name}: it gives {name or 'no application'} a weight of "
                        f"{weight:g}; at least 0")  # fmt: skip
    return found
