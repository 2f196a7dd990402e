"""What a bidding policy is asked and answers, and the register of those there are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from policies.memory import Memory
from policies.policy import Policy, enter
from policies.power.base import Powered
from policies.power.choices import Choices
from policies.register import REGISTERS, Entry, Register
from policies.views import Request


class Bid(NamedTuple):
    """The machine will draw `average_w` plus a part of `reserve_w` that the grid's signal, between
    -1 and 1, names from moment to moment. `weights` are the shares of the job types, where the
    power policy divides nodes by them."""

    average_w: float
    reserve_w: float
    weights: Mapping[str, float] = {}


class Market(NamedTuple):
    """What is known when a bid is due."""

    time: int
    hour: int
    """The length of the time that is bid for, in ticks."""
    nodes: int
    idle_w: float
    """The watts that a node draws while it is idle."""
    queue: Sequence[Request]
    running: Sequence[Powered]
    choices: Mapping[str, Choices]
    """As in `policies.power.PowerView`."""
    arrivals: Mapping[str, float]
    """Jobs per hour that are expected, by application."""
    energy_price: float
    """Per watt and hour, that is paid for the average."""
    reserve_price: float
    """Per watt and hour, that is earned by the reserve."""
    error_price: float
    """Per watt and hour, that is paid for every watt the machine is off the signal."""
    signal: Sequence[float] = ()
    """The signal of the hour that has passed."""
    error: float = 0.0
    """How far the machine was off it on average, as a part of the reserve."""
    memory: Memory | None = None


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
