"""A run in a market that is simulated in memory: nothing is written, and its hours are returned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from odonata.cluster.judged import left_us
from odonata.cluster.model import Cluster
from odonata.cluster.simulation import LogsInMemory, check_all_done
from odonata.jobs.metering import PowerRecord
from odonata.jobs.schedule import FINISHED, Schedule
from odonata.results.market import Bids, Market, Rules, Tracking, measured_until
from odonata.results.qualities import CapLogs, JobTypes
from pdes.driver import Result, run
from pdes.engine import Progress
from pdes.log import Appended
from pdes.transport import Transport

LEFT = "left_us"
"""How long each job that holds nodes would have gone on without a cap, in the outcome of a run."""


class Traded(NamedTuple):
    """A run in memory: what became of its jobs, the engine's account, what was measured of power,
    and the hours of its market; None where it has none."""

    schedule: Schedule
    result: Result
    power: PowerRecord | None
    market: Market | None


class Judged(Cluster):
    """A machine that also tells how much is left of its jobs in the end."""

    def outcome(self, state: Any, pending: Any, parcels: Any, time: int) -> Mapping[str, Any]:
        found = super().outcome(state, pending, parcels, time)
        if self.regulates is None:
            return found
        jobs = len(self.trace)
        left = left_us(state, jobs, time) if len(state.jobs) else np.zeros(jobs)
        return {**found, LEFT: left}


class MarketLogs(LogsInMemory):
    """The logs of a run in memory, those of its market too."""

    def __init__(self) -> None:
        super().__init__()
        self._bids: list[Any] = []

    def take(self, time: int, agent: int, rows: Appended) -> None:
        others = []
        for name, values in rows:
            if name == "bids":
                average_w, reserve_w, _error, *excluded = values
                self._bids.append((time, average_w, reserve_w, *(excluded or [0])))
            else:
                others.append((name, values))
        super().take(time, agent, others)

    def power(self, model: Cluster, result: Result) -> PowerRecord | None:
        found, standby_j = super().power(model, result), result.outcome.get("standby_j")
        if found is None or standby_j is None:
            return found
        return replace(found, standby_j=float(standby_j.sum()))

    def market(self, model: Cluster, schedule: Schedule, result: Result) -> Market | None:
        """Returns the hours of the market, None where there is none."""
        if model.trading is None:
            return None
        time_us, *watts = self._columns("tracking", 3)
        over = result.outcome["state"] >= FINISHED
        until = result.time
        if model.until_us is None and over.all():
            until = int(result.outcome["end_us"].max())
        standby = result.outcome.get("standby_jobs")
        return Market(
            Rules.of(model.trading.settings), model.trading.series, measured_until(until, time_us),
            self._offered(), Tracking(time_us, *watts),
            schedule, None if model.types is None else JobTypes.of(model.types),
            CapLogs(self._columns("type_caps", 2), self._columns("caps", 2),
                    self._columns("speeds", 1)),
            None if standby is None else (int(standby[0]), int(standby[1])),
            result.outcome.get(LEFT), carbon=model.steps("carbon"),
        )  # fmt: skip

    def _offered(self) -> Bids:
        begin, average_w, reserve_w, excluded = np.array(self._bids, np.float64).reshape(-1, 4).T
        return Bids(begin.astype(np.int64), average_w, reserve_w, excluded != 0)


def simulate_market(
    model: Cluster,
    end_us: int | None,
    *,
    transport: Transport | None = None,
    progress: Progress | None = None,
) -> Traded:
    """Returns what comes of a run to a time, or to the last job's end."""
    gathered = MarketLogs()
    if model.market is not None:
        model = Judged(**{one.name: getattr(model, one.name) for one in fields(model)})
    result = run(model, end_us, log=gathered.take, transport=transport, progress=progress)
    if end_us is None:
        check_all_done(model, result)
    schedule = gathered.schedule(model, result.time + (end_us is None))
    return Traded(schedule, result, gathered.power(model, result),
                  gathered.market(model, schedule, result))  # fmt: skip
