"""The section [market]: what the grid asks of a machine, and who says how much of it is offered.

Every hour a bidding policy offers an average and a reserve. The target is then the average plus the
part of the reserve that the grid's signal names, from moment to moment; it is missed on both sides.
A power policy sees it (`policies.views.Target`) and may follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from odonata.jobs.series import Steps
from odonata.jobs.series_dates import Period
from odonata.jobs.series_text import HOLD, REFUSE, read_steps
from pdes.errors import Findings, Refused
from pdes.log import Field, Log
from policies.bidding import BIDDINGS, BiddingPolicy
from policies.parameters import in_ticks
from topology.settings import setting

PRICES = ("energy_price", "reserve_price", "error_price")
SERIES = ("signal", *PRICES)
"""The keys whose values may change over time."""


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
        0.0, "signal", "The grid's signal, -1 to 1: a number, a list of [time, number], or a CSV "
        "file.",
    )  # fmt: skip
    hour_ps: int = setting(
        3600 * 10**12, "time", "For how long a bid holds; a whole number of `power.interval`."
    )
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

    def __post_init__(self) -> None:
        found = Findings()
        found.unless(self.hour_ps > 0, f"hour = {self.hour_ps} ps", "more than 0", "hour_ps")
        found.unless(self.gaps in (REFUSE, HOLD), f"gaps = {self.gaps}", f"{REFUSE} or {HOLD}",
                     "gaps")  # fmt: skip
        found.refuse()

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

    def steps(self, name: str, tick_ps: int, period: Period | None = None) -> Steps:
        """Returns the signal or a price over time. Dates have their place in the period of the run;
        None: it has no dates."""
        kind = "signal" if name == "signal" else "price"
        found = read_steps(getattr(self, name), kind, tick_ps, f"market.{name}", period=period,
                           gaps=self.gaps)  # fmt: skip
        if kind == "signal" and not -1 <= found.least <= found.most <= 1:
            raise Refused(f"market.signal goes from {found.least:g} to {found.most:g}: it must "
                          "stay within -1 and 1")  # fmt: skip
        return found


BIDS = Log(
    (Field("average_w", "W", "the average that is bid for the hour that begins", "f8"),
     Field("reserve_w", "W", "the reserve", "f8"),
     Field("error", "1", "how far the machine was off its target in the hour that has passed: the "
           "mean, as a part of its reserve; nan where none was offered", "f8")),
    "a row when an hour of the market begins",
)  # fmt: skip
TRACKING = Log(
    (Field("target_w", "W", "what all nodes were to draw on average since the row before", "f8"),
     Field("power_w", "W", "what they drew", "f8")),
    "a row when power is measured",
)  # fmt: skip
