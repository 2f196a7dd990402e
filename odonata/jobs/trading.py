"""What a bid sets, and what is known when one is due: the same for a machine of either fidelity.

The prices and the signal are `Steps` over the ticks of the run. A signal may come again from its
beginning, after a period.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from odonata.jobs.machine import Hour
from odonata.jobs.market import PRICES, MarketSettings
from odonata.jobs.metering import missed
from odonata.jobs.series import Steps
from odonata.jobs.series_text import SYNTHETIC
from pdes.words import Row
from policies.views import Bid, JobKind, JobsThere, Target

MARKET = Row("State.market")
AVERAGE_W = MARKET.word("W", "the average that was bid for this hour")
RESERVE_W = MARKET.word("W", "the reserve that was bid")
SIGNAL_NOW = MARKET.word("1", "the grid's signal, -1 to 1")
TARGET_J = MARKET.word("J", "what the target asked for since the beginning")
LAST_TARGET_J = MARKET.word("J", "what it had asked for at the last measurement")
OFF_J = MARKET.word("J", "by how much the machine was off it in this hour, interval by interval")
TRACKED_S = MARKET.word("s", "how much of this hour was measured")
UNTIL = MARKET.word("tick", "when this hour is over")


class Trade:
    """The market of one run over time: its settings, for how long a bid holds, the prices and the
    signal, and after how many ticks that comes again from its beginning (0: never)."""

    def __init__(
        self, settings: MarketSettings, length: int, series: Mapping[str, Steps], period: int
    ) -> None:
        self.settings, self.length, self.series, self.period = settings, length, series, period

    # -- the signal

    def signal(self, begin: int, end: int) -> Iterator[tuple[int, int, float]]:
        """Yields (begin, end, value) of each value that the signal had between two times."""
        signal, period = self.series["signal"], self.period
        while begin < end:
            before = begin // period * period if period else 0
            until = min(end, before + period) if period else end
            for since, to, level in signal.between(begin - before, until - before):
                yield since + before, to + before, level
            begin = until

    def signal_at(self, time: int) -> float:
        """Returns the signal at a time."""
        return self.series["signal"].at(time % self.period if self.period else time)

    def signal_mean(self, begin: int, end: int) -> float:
        """Returns the mean of the signal between two times: a sum that is rounded once."""
        parts = (level * (to - since) for since, to, level in self.signal(begin, end))
        return math.fsum(parts) / (end - begin)

    # -- an hour

    def known(
        self,
        market: Any,
        time: int,
        arrivals: Mapping[str, float],
        types: Sequence[JobKind],
        jobs: JobsThere | None,
    ) -> Hour:
        """Returns what is known of the hour that begins."""
        energy, reserve, error = (self.series[name].at(time) for name in PRICES)
        passed = [level for _, _, level in self.signal(max(0, time - self.length), time)]
        how = self.settings
        return Hour(
            self.length, arrivals, energy, reserve, error, passed, error_of(market), types,
            jobs, how.limit, how.share, how.late, how.qos, how.violation, self._spread(passed),
        )  # fmt: skip

    def _spread(self, passed: Sequence[float]) -> float:
        """Returns the standard deviation of the signal: of one that is made, as asked for; else of
        the hour that has passed or, before there is one, the usual one."""
        if self.settings.signal == SYNTHETIC or len(passed) < 2:
            return self.settings.signal_deviation
        return float(np.std(passed))

    def bid(self, market: Any, time: int, bid: Bid) -> tuple[str, Sequence[Any]]:
        """Have a bid hold for the hour that begins. Returns the row of the log."""
        error = error_of(market) if market[RESERVE_W] else np.nan
        market[AVERAGE_W], market[RESERVE_W] = bid.average_w, bid.reserve_w
        market[OFF_J] = market[TRACKED_S] = 0.0
        market[UNTIL] = time + self.length
        return "bids", (bid.average_w, bid.reserve_w, error)


def target_of(market: Any, weights: Mapping[str, float]) -> Target:
    """Returns what the machine is to draw now, with the weights of the bid."""
    words = market.tolist()
    return Target(words[AVERAGE_W], words[RESERVE_W], words[SIGNAL_NOW], int(words[UNTIL]), weights,
                  error_of(market))  # fmt: skip


def error_of(market: Any) -> float:
    """Returns how far the machine is off its target, as a part of the reserve: the mean of this
    hour so far."""
    words = market.tolist()
    return missed(words[OFF_J], words[RESERVE_W], words[TRACKED_S])
