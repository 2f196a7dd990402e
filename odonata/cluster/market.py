"""The market of a job run: what is known when a bid is due, what it sets, and an hour to try it in.

An hour that is tried begins with what the scheduler sees. Jobs that run and wait take as long as
their users said (an hour, if they did not), and draw what was last measured of them or, where they
were held below what they would draw, the most that a node can. Jobs like those that came so far
come as often. The signal is that of the hour that has passed; before there is one, it goes to
either end for a quarter of the hour. Nodes are only counted, all of them are awake, and what
policies remember begins anew, as does the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.cluster import layout as w
from odonata.cluster.dispatch import serve_now
from odonata.cluster.layout import State
from odonata.cluster.tried import Hours, jobs_known, known_types
from odonata.jobs.machine import Hour
from odonata.jobs.market import SERIES, MarketSettings
from odonata.jobs.series import Steps
from odonata.jobs.trading import Trade, target_of
from odonata.traces.demand import Demand
from odonata.traces.trace import UNKNOWN, Trace
from pdes.driver import run
from pdes.errors import Fault, Refused
from pdes.log import Appended
from pdes.transport import Serial
from policies.bidding import BiddingPolicy
from policies.bidding.base import checked
from policies.power import floor as f
from policies.scheduling.desk import NEVER
from policies.views import Bid, Market, Target, Trial

if TYPE_CHECKING:
    from odonata.cluster.model import Cluster

TRIED = 0xB1D
"""Part of the key of the random numbers of hours that are tried."""


class Offered(BiddingPolicy):
    """Bids what is tried."""

    name = "tried"

    def __init__(self, offered: Bid) -> None:
        self.offered = offered

    def bid(self, market: Market) -> Bid:
        return self.offered


class Begun(NamedTuple):
    """How an hour begins that is tried: the first jobs of the trace run, under these caps; what
    jobs demand; the signal, and the prices; and what is bid."""

    caps_w: npt.NDArray[np.float64]
    demand: Demand
    series: Mapping[str, Steps]
    bid: Bid


class Trading(Trade):
    """The market of a job run: what is known of it on a state, and hours to try bids in."""

    def __init__(self, model: Cluster, settings: MarketSettings) -> None:
        assert model.power is not None
        tick_ps = w.TICK_PS
        interval = model.power.interval(tick_ps, w.USUAL_INTERVAL_PS)
        length = settings.hour(interval, tick_ps)
        self.model = model
        if model.until_us is not None and model.until_us % interval:
            raise Refused(f"run.duration = {model.until_us * w.SECOND:,g} s: in a market a whole "
                          f"number of power.interval, {interval * w.SECOND:,g} s")  # fmt: skip
        until = model.until_us
        if until is not None and settings.warmup_ps // tick_ps >= until:
            raise Refused(f"market.warmup = {settings.warmup_ps * 1e-12:,g} s: less than the run, "
                          f"which lasts for {until * w.SECOND:,g} s: nothing would be "
                          "judged")  # fmt: skip
        self.policy = settings.made(tick_ps)
        self._hours: dict[tuple[int, int], Hours] = {}
        """The hours in which bids are tried that are due now, by how long they are and from when on
        they count."""
        self._weights: tuple[float, Mapping[str, float]] | None = None
        """Those of the hour that ends then, as a policy sees them."""
        if model.begun is not None:
            self.policy = Offered(model.begun.bid)
            super().__init__(settings, length, model.begun.series, 0)
            return
        if wrong := self._unknown(self.policy.named):
            raise Refused(f"market.bidding = {settings.bidding}: {wrong}")
        series = {name: settings.steps(name, tick_ps, model.period, model.seed, model.until_us)
                  for name in SERIES}  # fmt: skip
        super().__init__(settings, length, series, settings.after(series["signal"], tick_ps))

    def arrays(self) -> dict[str, Any]:
        """Returns the arrays of a state, before the first bid."""
        signal = self.series["signal"]
        return {
            "market": self.words(), "weights": np.zeros(len(self.names)),
            "signal": signal.values.copy(), "signal_times": signal.times.copy(),
        }  # fmt: skip

    @property
    def names(self) -> Sequence[str]:
        return self.model.trace.applications

    def _unknown(self, named: Iterable[str]) -> str:
        """Returns what is wrong with names that weights are given to; empty if nothing is. Where
        jobs are regulated these are types, standby jobs aside, and else applications."""
        what, known = "application", self.names
        if self.model.regulates is not None and self.model.types is not None:
            what, known = "type", self.model.types.names
        wrong = [name for name in named if name not in known]
        if not wrong:
            return ""
        several = f"are no {what}s" if len(wrong) > 1 else f"is no {what}"
        there = ", ".join(name for name in known if name) or "no name"
        return (f"it gives weights to {', '.join(wrong)}, which {several} of this run: it has "
                f"{there}")  # fmt: skip

    def hour(self, state: State, time: int) -> Hour:
        """Returns what is known of the hour that begins."""
        application = self.model.trace.application[: state.ctl[w.NEXT]]
        arrived = np.bincount(application, minlength=len(self.names)) * (self.length / max(1, time))
        arrivals = {name: rate for name, rate in zip(self.names, arrived.tolist(), strict=True)
                    if rate and time}  # fmt: skip
        types = known_types(self.model, state, time, self.length)
        jobs = jobs_known(self.model, state, time, self.length)
        return self.known(state.market, time, arrivals, types, jobs)

    def target(self, state: State) -> Target | None:
        """Returns what the machine is to draw now; None before the first bid."""
        until = float(state.market[w.UNTIL]) if len(state.market) else 0.0
        if self._weights is None or self._weights[0] != until:
            given = zip(self.names, state.weights.tolist(), strict=True)
            self._weights = until, {name: weight for name, weight in given if weight}
        return target_of(state.market, self._weights[1])

    def offer(self, state: State, time: int, bid: Bid) -> tuple[str, Sequence[Any]]:
        """Have a bid hold for the hour that begins. Returns the row of the log."""
        row = self.bid(state.market, time, bid)
        state.weights[:] = [bid.weights.get(name, 0.0) for name in self.names]
        if len(state.kinds):
            assert self.model.types is not None
            if wrong := self._unknown(bid.weights):
                raise Fault(f"bidding {self.policy.name}: {wrong}")
            names = self.model.types.names
            state.kinds[: len(names), f.WEIGHT] = [bid.weights.get(name, 0.0) for name in names]
        return row

    # -- an hour that is tried

    def tried(
        self,
        state: State,
        time: int,
        bid: Bid,
        hour: int = 0,
        give_up: float = 0.0,
        span: int = 0,
        since: int = 0,
    ) -> Trial:
        """Returns what a bid would come to in an hour or, where that is given, in a longer span, of
        which what begins at `since` counts."""
        bid = checked(self.policy, bid, "tried")
        if self.model.regulates is not None:
            span = span or self.length
            if not all(it.time == time for it in self._hours.values()):
                self._hours.clear()
            if (span, since) not in self._hours:
                past = self._past(time) if time >= self.length and span == self.length else None
                self._hours[span, since] = Hours(self.model, state, time, self.length, past, span,
                                                 since)  # fmt: skip
            return self._hours[span, since].tried(bid, hour, give_up)
        if span or since:
            raise Fault(f"bidding {self.policy.name}: it tries a bid for longer than an hour, "
                        "which only a power policy that regulates by type can do")  # fmt: skip
        model, running = self.model, state.running[: state.ctl[w.RUNNING]]
        power = model.power
        assert power is not None
        waiting = state.queue[state.ctl[w.FIRST] : state.ctl[w.LAST]]
        like, arrive = self._expected(state, time, hour)
        every, begun = np.concatenate([running, waiting, like]), len(running)
        submit = np.concatenate([np.zeros(begun + len(waiting), np.int64), arrive])
        serve_now(state, time)
        asked = state.jobs[every, w.REQUESTED]
        left = np.where(asked < NEVER, asked, self.length)
        here = begun + len(waiting)  # others have not been served
        left[:here] = np.maximum(1, left[:here] - np.floor(state.served[every[:here]]))
        known = model.trace
        trace = Trace(
            "an hour that is tried", np.arange(len(every)), submit, left,
            state.jobs[every, w.NODES], left, known.user[every], known.project[every],
            known.application[every], np.full(len(every), UNKNOWN), known.users, known.projects,
            known.applications,
        )  # fmt: skip
        watts, zero = np.full(len(every), power.maximum), np.zeros(len(every))
        read, caps_w = state.energy[running, w.READ_W], state.energy[running, w.CAP_W]
        below = (read > 0.0) & (read < caps_w * (1.0 - 1e-9)) & (state.jobs[running, w.PAUSED] == 0)
        watts[:begun] = np.where(below, np.minimum(read, power.maximum), watts[:begun])
        cap_w = float(state.meter[w.MACHINE_CAP_W])
        tried = replace(
            model, trace=trace, machine=None, slowdown=None,
            power=replace(power, cap=None if cap_w == np.inf else f"{cap_w!r} W", variation=0.0,
                          maximum_w=power.maximum, price=None, carbon=None),
            begun=Begun(caps_w, Demand(watts, zero, zero + 1.0, zero + 1.0),
                        {**self.series, "signal": self._past(time)}, bid),
        )  # fmt: skip
        return _simulated(tried, self.length, bid)

    def _expected(self, state: State, time: int, hour: int) -> tuple[Any, Any]:
        """Returns jobs that came so far, like which others are expected, and when these come."""
        arrived = int(state.ctl[w.NEXT])
        key = [self.model.seed, TRIED + time + (hour << 50)]
        rng = np.random.Generator(np.random.Philox(key=key))
        count = round(arrived * self.length / time) if time else 0
        times = np.sort(rng.integers(1, self.length, count))
        # One comes after the hour, as there is no run without jobs.
        return (np.append(rng.integers(0, max(1, arrived), count), 0),
                np.append(times, 2 * self.length))  # fmt: skip

    def _past(self, time: int) -> Steps:
        """Returns the signal of the hour that has passed, as if it began now."""
        if time < self.length:
            quarter = self.length // 4
            return Steps((0, quarter, 2 * quarter, 3 * quarter), (0.0, 1.0, 0.0, -1.0))
        begin = time - self.length
        steps = [*self.signal(begin, time)]
        return Steps.of([since - begin for since, _, _ in steps],
                        [level for _, _, level in steps])  # fmt: skip


def _simulated(hour: Cluster, length: int, bid: Bid) -> Trial:
    """Returns what an hour came to."""
    found: list[Any] = []

    def take(time: int, agent: int, rows: Appended) -> None:
        found.extend(values.columns for name, values in rows if name == "tracking")  # type: ignore[union-attr]

    result = run(hour, length + 1, log=take, show_compiling=False, transport=Serial())
    assert hour.begun is not None
    start, over, begun = (
        result.outcome["start_us"],
        result.outcome["end_us"],
        len(hour.begun.caps_w),
    )
    target_w, power_w, _standby_w = (
        np.concatenate([np.zeros(0), *column]) for column in zip(*found, strict=True)
    )
    return Trial(power_w, target_w, bid.reserve_w, int((start[begun:] >= 0).sum()),
                 int((over >= 0).sum()))  # fmt: skip
