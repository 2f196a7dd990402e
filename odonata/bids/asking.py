"""What a search for a bid asks for: bids, each in some hours.

A search is a generator of **steps**: it yields bids with hours, hears what each came to in each of
its hours, and returns what it has found. Who simulates the hours, on how many processes, in which
order, and whether some were simulated on another day, it does not know: what it finds cannot
depend on it. `finished` simulates them here, and `searching` has the study that does it elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, TypeVar

from policies.bidding.aqa import tried
from policies.bidding.judging import Judged, judge
from policies.views import Bid, Market

T = TypeVar("T")


class Wanted(NamedTuple):
    """A bid, and the numbers of the hours in which it is to be simulated."""

    bid: Bid
    hours: Sequence[int]
    training: bool = False
    """Whether hours may be cut short that break the tracking rule by far: those of training."""
    margin: float = 0.0
    """See `policies.bidding.judging.judge`, as for `tails`."""
    tails: bool = False


Heard = Sequence[Sequence[Judged]]
"""What each of several bids came to, hour by hour."""
Steps = Generator[Sequence[Wanted], Heard, T]


def simulated(market: Market, wanted: Wanted) -> list[Judged]:
    """Returns what a bid comes to in its hours, simulated here."""
    bid, hours, training, margin, tails = wanted
    if training:
        return list(tried(market, bid, hours, margin, tails).judged)
    assert market.trial is not None
    return [judge(market, bid, market.trial(bid, hour), margin, tails) for hour in hours]


def finished(steps: Steps[T], answer: Callable[[Sequence[Wanted]], Heard]) -> T:
    """Returns what a search finds that hears these answers."""
    try:
        wanted = next(steps)
        while True:
            wanted = steps.send(answer(wanted))
    except StopIteration as done:
        found: T = done.value
        return found


def found_here(market: Market, steps: Steps[T]) -> T:
    """Returns what a search finds, with all hours simulated here, one after the other."""
    return finished(steps, lambda wanted: [simulated(market, it) for it in wanted])
