"""What a bid sets, and what is known when one is due: the same for a machine of either fidelity.

The prices and the signal are `Steps` over the ticks of the run. A signal may come again from its
beginning, after a period.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.jobs.machine import Hour
from odonata.jobs.market import PRICES, MarketSettings
from odonata.jobs.metering import missed
from odonata.jobs.series import Steps
from odonata.jobs.series_text import SYNTHETIC
from pdes.words import Row
from policies.views import Bid, JobKind, JobsThere, Target
from policies.views.tracking import breaks_rule, is_bad

MARKET = Row("State.market")
AVERAGE_W = MARKET.word("W", "the average that was bid for this hour")
RESERVE_W = MARKET.word("W", "the reserve that was bid")
SIGNAL_NOW = MARKET.word("1", "the grid's signal, -1 to 1")
TARGET_J = MARKET.word("J", "what the target asked for since the beginning")
LAST_TARGET_J = MARKET.word("J", "what it had asked for at the last measurement")
OFF_J = MARKET.word("J", "by how much the machine was off it in this hour, interval by interval")
TRACKED_S = MARKET.word("s", "how much of this hour was measured")
UNTIL = MARKET.word("tick", "when this hour is over")
ALWAYS = len(MARKET)
"""So many words there are in every market, and those that follow where hours may be excluded."""
LIMIT = MARKET.word("1", "the error, as a part of the reserve, above which an interval is bad")
SEEN = MARKET.word("1", "intervals that were measured of the hour that will be judged next, if it "
                   "has a reserve")  # fmt: skip
BAD = MARKET.word("1", "the bad ones of them")
EXCLUDED = MARKET.word("1", "1: this hour is excluded")
EXCLUDED_UNTIL = MARKET.word("tick", "nothing is offered in hours that begin before this time")
FAILED = MARKET.word("tick", "when the latest hours began that broke the tracking rule, as many as "
                     "lead to an exclusion, the earliest first; minus infinity: none")  # fmt: skip
NOTHING = Bid(0.0, 0.0)
"""What is offered in an hour that is excluded."""


class Trade:
    """The market of one run over time: its settings, for how long a bid holds, the prices and the
    signal, and after how many ticks that comes again from its beginning (0: never)."""

    def __init__(
        self, settings: MarketSettings, length: int, series: Mapping[str, Steps], period: int
    ) -> None:
        self.settings, self.length, self.series, self.period = settings, length, series, period
        tick_ps = settings.hour_ps // length
        self._within = settings.exclude_within_ps // tick_ps
        self._long = settings.exclude_for_ps // tick_ps

    def words(self) -> npt.NDArray[np.float64]:
        """Returns the words of the market [MARKET] before the first bid."""
        after = self.settings.exclude_after
        found = np.zeros(FAILED + after if after else ALWAYS)
        if after:
            found[LIMIT], found[FAILED:] = self.settings.limit, -math.inf
        return found

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
        row: tuple[Any, ...] = bid.average_w, bid.reserve_w, error
        if len(market) > ALWAYS:
            market[EXCLUDED] = self.excluded(market, time)
            row = *row, market[EXCLUDED]
        return "bids", row

    # -- exclusion

    def judge(self, market: Any, begin: int, time: int) -> None:
        """Decide what follows from the hour that began then, now that its last interval has been
        measured: whether the hours that begin from now on are excluded, and until when."""
        if not self.settings.exclude_after:
            return
        seen, bad = market[[SEEN, BAD]].tolist()
        market[[SEEN, BAD]] = 0.0
        failed = seen and breaks_rule(bad / seen, self.settings.share)
        if not failed or begin < market[EXCLUDED_UNTIL]:
            return
        market[FAILED:] = [*market[FAILED + 1 :], begin]
        if market[FAILED] >= begin + self.length - self._within:
            first = -(-time // self.length) * self.length
            market[EXCLUDED_UNTIL], market[FAILED:] = first + self._long, -math.inf

    def excluded(self, market: Any, time: int) -> bool:
        """Tells whether nothing may be offered in the hour that begins now."""
        return len(market) > ALWAYS and bool(time < market[EXCLUDED_UNTIL])


def count_bad(market: Any, power_w: float, target_w: float, reserve_w: float) -> None:
    """Count an interval of the hour that is judged next, where hours may be excluded."""
    if len(market) > ALWAYS and reserve_w > 0.0:
        market[SEEN] += 1.0
        if is_bad(abs(power_w - target_w) / reserve_w, market[LIMIT]):
            market[BAD] += 1.0


def target_of(market: Any, weights: Mapping[str, float]) -> Target | None:
    """Returns what the machine is to draw now, with the weights of the bid; None before the first
    bid, and in an hour that is excluded."""
    words = market.tolist()
    if not words or words[UNTIL] == 0.0 or (len(words) > ALWAYS and words[EXCLUDED]):
        return None
    return Target(words[AVERAGE_W], words[RESERVE_W], words[SIGNAL_NOW], int(words[UNTIL]), weights,
                  error_of(market))  # fmt: skip


def error_of(market: Any) -> float:
    """Returns how far the machine is off its target, as a part of the reserve: the mean of this
    hour so far."""
    words = market.tolist()
    return missed(words[OFF_J], words[RESERVE_W], words[TRACKED_S])
