"""The section [market]: what the grid asks of a machine, and who says how much of it is offered.

Every hour a bidding policy offers an average and a reserve. The target is then the average plus the
part of the reserve that the grid's signal names, from moment to moment; it is missed on both sides.
A power policy sees it (`policies.views.Target`) and may follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from odonata.jobs import signal as signals
from odonata.jobs.series import Steps
from odonata.jobs.series_dates import PS, Period
from odonata.jobs.series_repair import REPAIR, say_once
from odonata.jobs.series_text import FILES, HOLD, REFUSE, SYNTHETIC, read_steps
from pdes.clock import show_ticks
from pdes.errors import Findings, Refused
from pdes.log import Field, Log
from policies.bidding import BIDDINGS, BiddingPolicy
from policies.parameters import in_ticks
from policies.register import check
from policies.views.tracking import QOS_RULES, SHARE
from topology.settings import setting

PRICES = ("energy_price", "reserve_price", "error_price")
SERIES = ("signal", *PRICES)
"""The keys whose values may change over time."""
SIGNAL_KEYS = ("signal_deviation", "signal_slow_memory_ps", "signal_fast_memory_ps",
               "signal_interval_ps")  # fmt: skip
"""The fields that only a synthetic signal has a use for."""
AGAIN = "repeat = true"
"""The setting by which a signal begins anew when it has ended."""
DAY_PS = 24 * 3600 * 10**12
MOST_LIMIT, MOST_MONEY, MOST_FAILED = 1e3, 1e12, 1000


def not_empty(name: str) -> None:
    if not name.strip():
        raise ValueError("the name of a type, or none")


@dataclass(frozen=True)
class MarketSettings:
    """What a market for regulation asks and pays, and the policy that bids. The prices are those of
    PJM in Zhang's thesis, in money per kWh and per kW and hour."""

    bidding: str = setting(
        "fixed", "word", "Bidding policy, which offers an average and a reserve every hour; "
        "`odonata policies` explains them.", register="bidding",
    )  # fmt: skip
    bidding_parameters: tuple[tuple[str, Any], ...] = ()
    """Name and value of each parameter that differs from the policy's default."""
    signal: Any = setting(
        0.0, "signal", "The grid's signal, -1 to 1: a number, a list of [time, number], a CSV "
        "file, or synthetic, which is made by the seed of the run; `odonata signal` shows one.",
    )  # fmt: skip
    signal_deviation: float = setting(
        signals.DEVIATION, "number", "The standard deviation of a synthetic signal, after it is "
        "clipped to -1 and 1.", least=signals.LEAST_DEVIATION, most=signals.MOST_DEVIATION,
        accepted=signals.DEVIATIONS,
    )  # fmt: skip
    signal_slow_memory_ps: int = setting(
        round(signals.MEMORY_S[0] * 1e12), "time", "The time constant of the first of the two "
        "filters that a synthetic signal is noise through; 0 s: none.",
    )  # fmt: skip
    signal_fast_memory_ps: int = setting(
        round(signals.MEMORY_S[1] * 1e12), "time", "That of the second one."
    )
    signal_interval_ps: int = setting(
        round(signals.INTERVAL_S * 1e12), "time", "How often a synthetic signal changes.", above=0
    )
    hour_ps: int = setting(
        3600 * 10**12, "time", "For how long a bid holds; a whole number of `power.interval`.",
        above=0,
    )  # fmt: skip
    energy_price: Any = setting(
        0.1, "price", "What is paid for a kWh of the average: a number, a list of [time, price], "
        "or a CSV file.",
    )  # fmt: skip
    reserve_price: Any = setting(
        0.1, "price", "What is earned by a kW of reserve that is offered for an hour, likewise."
    )
    error_price: Any = setting(
        0.1, "price", "What is paid for a kWh by which the machine is off its target, likewise."
    )
    gaps: str = setting(
        REFUSE, "word", "What becomes of a gap in a CSV file of the signal or of a price: it is "
        "refused, or the last value holds.", words=(REFUSE, HOLD),
    )  # fmt: skip
    repair: str = setting(
        REFUSE, "word", "What becomes of values of the signal that are missing, repeated or beyond "
        "-1 and 1: they are refused; or repaired, aloud: the last value holds, the last counts, or "
        "they are clipped.", words=(REFUSE, REPAIR),
    )  # fmt: skip
    repeat: bool = setting(
        False, "flag", "Whether a signal begins anew when it has ended, as a day of it for a week; "
        "else its last value holds.",
    )  # fmt: skip
    limit: float = setting(
        0.3, "number", "The error, as a part of the reserve, above which an interval is bad.",
        above=0, most=MOST_LIMIT,
    )  # fmt: skip
    share: float = setting(
        0.1, "number", "The tracking rule: the share of bad intervals of an hour is below this.",
        above=0, most=1, accepted="above 0, at most 1: the share of bad intervals is below it",
    )  # fmt: skip
    late: float = setting(
        0.1, "number", "Which part of the jobs of a type may be at their threshold or beyond it.",
        least=0, most=1,
    )  # fmt: skip
    qos: str = setting(
        SHARE, "word", "When a type of jobs keeps its QoS: if at most `late` of its jobs are at "
        "their threshold or beyond (share), or if their mean degradation is below it (mean).",
        words=QOS_RULES,
    )  # fmt: skip
    warmup_ps: int = setting(
        0, "time", "What is judged begins so long after the run: hours that begin and jobs that "
        "are submitted before are left out of all sums and means.",
    )  # fmt: skip
    violation: float = setting(
        0.0, "number", "What an hour costs on top in which the tracking rule was broken: money.",
        least=0, most=MOST_MONEY,
    )  # fmt: skip
    exclude_after: int = setting(
        0, "whole", "After so many hours that broke the tracking rule nothing may be offered for "
        "`exclude_for`; 0: never.", least=0, most=MOST_FAILED,
    )  # fmt: skip
    exclude_within_ps: int = setting(
        DAY_PS, "time", "Hours count to these that began no longer than this before the end of the "
        "last one of them.", above=0,
    )  # fmt: skip
    exclude_for_ps: int = setting(
        DAY_PS, "time", "For how long nothing may be offered, from the beginning of an hour on.",
        above=0,
    )  # fmt: skip
    standby: str | None = setting(
        None, "text", "The name of the type of which there is always another job, that starts when "
        "nothing else waits and power is left.", none="none", rule=not_empty,
    )  # fmt: skip

    def __post_init__(self) -> None:
        found = check(self)
        self._check_exclusion(found)
        if self.signal != SYNTHETIC:
            for field in SIGNAL_KEYS:
                value, usual = getattr(self, field), getattr(MarketSettings, field)
                found.unless(value == usual, f"{field.removesuffix('_ps')} = {value}",
                             f'only with signal = "{SYNTHETIC}": another signal is taken as it is',
                             field, "signal")  # fmt: skip
        found.refuse()

    def _check_exclusion(self, found: Findings) -> None:
        after = self.exclude_after
        for field in ("exclude_within_ps", "exclude_for_ps"):
            value, key = getattr(self, field), field.removesuffix("_ps")
            found.unless(after != 0 or value == DAY_PS, f"{key} = {show_ticks(value, 'ps')}",
                         "only with exclude_after, the hours that lead to an exclusion", field,
                         "exclude_after")  # fmt: skip
        hours = self.exclude_within_ps // max(1, self.hour_ps)
        found.unless(after <= hours, f"exclude_after = {after}", f"at most {hours:,}, as no more "
                     "hours begin in exclude_within", "exclude_after",
                     "exclude_within_ps")  # fmt: skip

    def made(self, tick_ps: int) -> BiddingPolicy:
        """Returns the policy, with times as ticks of a model."""
        entry = BIDDINGS.named(self.bidding)
        given = in_ticks(entry.parameters, self.bidding_parameters, tick_ps)
        policy: BiddingPolicy = BIDDINGS.make(self.bidding, given)
        return policy

    def hour(self, interval: int, tick_ps: int) -> int:
        """Returns the length of an hour in ticks, which is a whole number of intervals between
        measurements: then none of these belongs to two bids."""
        if self.hour_ps % (interval * tick_ps):
            raise Refused(f"market.hour = {self.hour_ps * 1e-12:,g} s: a whole number of "
                          f"power.interval, {interval * tick_ps * 1e-12:,g} s")  # fmt: skip
        return self.hour_ps // tick_ps

    def steps(
        self,
        name: str,
        tick_ps: int,
        period: Period | None = None,
        seed: int = 1,
        until: int | None = None,
    ) -> Steps:
        """Returns the signal or a price over time. Dates have their place in the period of the run;
        None: it has no dates. `until`: the tick at which the run ends; None: when all jobs are
        over. A synthetic signal is that of a seed; where nobody knows when the run ends, it is
        twice as long as jobs come, and a day longer than that at least. Its last value holds from
        then on, as that of any other that may end."""
        if name == "signal" and self.signal == SYNTHETIC:
            day, last = DAY_PS // tick_ps, 0 if period is None else period.last_us * PS // tick_ps
            known = last + max(last, day) if until is None else until
            return self._synthetic(tick_ps, seed, known)
        given = getattr(self, name)
        kind, where = "signal" if name == "signal" else "price", f"market.{name}"
        found = read_steps(given, kind, tick_ps, where, period=period, gaps=self.gaps,
                           repair=self.repair if kind == "signal" else None)  # fmt: skip
        if kind == "signal" and not -1 <= found.least <= found.most <= 1:
            raise Refused(f"{where} goes from {found.least:g} to {found.most:g}: it must stay "
                          "within -1 and 1")  # fmt: skip
        if name in ("reserve_price", "error_price") and found.least < 0:
            raise Refused(f"{where} = {found.least:g} at its lowest: 0 or more; only the price of "
                          "energy may be below 0")  # fmt: skip
        if isinstance(given, str) and given.lower().endswith(FILES):
            if name == "signal" and self.repeat:
                return found
            short = _short(found, tick_ps, period, until, name == "signal")
            if short and self.gaps != HOLD:
                anew = f"have it begin anew with {AGAIN}, " if name == "signal" else ""
                raise Refused(f"{where}: {given}: {short}: add what is missing, {anew}or let the "
                              f'last value hold with gaps = "{HOLD}"')  # fmt: skip
            said = f"{short}: its last value holds" if short and name == "signal" else ""
            if said := said or _held(found, tick_ps, period, until):
                say_once((f"{where}: {given}: {said}",))
        return found

    def after(self, signal: Steps, tick_ps: int) -> int:
        """Returns after how many ticks a signal comes again from its beginning; 0: never. One that
        is made does when its end is reached; the last value of another lasts as long as the one
        before it did."""
        if self.signal == SYNTHETIC:
            return int(signal.times[-1]) + self.signal_interval_ps // tick_ps
        if not self.repeat or len(signal.times) < 2:
            return 0
        return int(2 * signal.times[-1] - signal.times[-2])

    def _synthetic(self, tick_ps: int, seed: int, until: int) -> Steps:
        """Returns the signal that is made, of so many ticks."""
        step_ps = self.signal_interval_ps
        if step_ps % tick_ps:
            raise Refused(f"market.signal_interval = {step_ps} ps: a whole number of {tick_ps} ps")
        step = step_ps // tick_ps
        count = max(1, -(-until // step))
        if count > MOST_VALUES:
            raise Refused(f"market.signal_interval = {step_ps * 1e-12:g} s: the signal would have "
                          f"{count:,} values until the end of the run, and {MOST_VALUES:,} is the "
                          "most: give a longer one")  # fmt: skip
        memory = self.signal_slow_memory_ps * 1e-12, self.signal_fast_memory_ps * 1e-12
        values = signals.synthetic(seed, count, step_ps * 1e-12, self.signal_deviation, memory)
        return Steps.of((np.arange(count) * step).tolist(), values.tolist())


MOST_VALUES = 50_000_000
"""Of a signal that is made: some six years at 4 s."""


def _short(
    found: Steps, tick_ps: int, period: Period | None, until: int | None, signal: bool
) -> str:
    """Returns by what a file is too short: one of a signal that ends before the run or, where
    nobody knows when that ends, before the last job is submitted. The last value lasts as long as
    the one before it. Likewise one of prices that are evenly spaced; others, such as those of a
    tariff, hold. Empty where a file is long enough."""
    apart = np.diff(found.times)
    if period is None or not len(apart):
        return ""
    last = int(apart[-1])
    if not signal:
        last = int(apart.min())
        if len(apart) < 2 or 2 * int((apart == last).sum()) <= len(apart):
            return ""
    end_ps, run_ps = (int(found.times[-1]) + last) * tick_ps, period.last_us * PS
    what = "jobs are submitted until"
    if until is not None and (signal or until * tick_ps < run_ps):
        run_ps, what = until * tick_ps, "the run lasts for"
    if end_ps >= run_ps:
        return ""
    return f"it ends after {show_ticks(end_ps, 'ps')}, and {what} {show_ticks(run_ps, 'ps')}"


def _held(found: Steps, tick_ps: int, period: Period | None, until: int | None) -> str:
    """Returns for how long the last value of a file holds, if that is longer than any before it
    does; else an empty text."""
    if period is None or len(found.times) < 2:
        return ""
    last_ps = int(found.times[-1]) * tick_ps
    end_ps = period.last_us * PS if until is None else until * tick_ps
    if end_ps - last_ps <= int(np.diff(found.times).max()) * tick_ps:
        return ""
    return (f"its last value, {found.levels[-1]:g}, holds from {show_ticks(last_ps, 'ps')} to the "
            f"end at {show_ticks(end_ps, 'ps')}")  # fmt: skip


BIDS = Log(
    (Field("average_w", "W", "the average that is bid for the hour that begins", "f8"),
     Field("reserve_w", "W", "the reserve", "f8"),
     Field("error", "1", "how far the machine was off its target in the hour that has passed: the "
           "mean, as a part of its reserve; nan where none was offered", "f8")),
    "a row when an hour of the market begins",
)  # fmt: skip
BIDS_AND_EXCLUSIONS = Log(
    (*BIDS.columns, Field("excluded", "1", "1: nothing may be offered in this hour", "i1")),
    BIDS.about,
)
TRACKING = Log(
    (Field("target_w", "W", "what all nodes were to draw on average since the row before", "f8"),
     Field("power_w", "W", "what they drew", "f8"),
     Field("standby_w", "W", "what the nodes of standby jobs drew of that", "f8")),
    "a row when power is measured",
)  # fmt: skip


def market_logs(market: MarketSettings) -> dict[str, Log]:
    """Returns the logs of a run in a market."""
    return {"bids": BIDS_AND_EXCLUSIONS if market.exclude_after else BIDS, "tracking": TRACKING}
