"""The market of a run of packets, and a scheduler that follows its target by what it knows.

It keeps a floor (`policies.power.floor`) of its own: jobs wait on it from their arrival, run from
the decision that they start to the notice that they have ended, and have as much work left as is
expected of them. Whenever a measurement is known (`READ`), the kernel of the power policy decides
on this floor, and its moves become messages. docs/following-in-packets.md says exactly what happens
when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.agents.scheduling import SECOND, MessageMachine, Reported, Scheduler
from odonata.agents.waiting import conclude
from odonata.jobs import board as b
from odonata.jobs import trading as t
from odonata.jobs.asking import locked
from odonata.jobs.board import Board, Ledger
from odonata.jobs.floors import NO_FLOOR, Kinds, floor_arrays, jobs_there
from odonata.jobs.machine import Hour
from odonata.jobs.regulating import asking, cap_of, set_cap
from odonata.jobs.trading import Trade
from pdes.errors import Fault
from pdes.jit import bind, entry
from policies.bidding import BiddingPolicy
from policies.power import floor as f
from policies.power.acts import advance, arrive, finish, overrun, wake
from policies.power.floor import Floor, Regulate
from policies.views import Bid, JobKind, JobsThere, Moment, PowerDesk, Target

if TYPE_CHECKING:
    from odonata.jobs.passes import Passes

HOUR_S = 3600.0
SUSPENDED, GOES_ON = -1.0, float("nan")
"""What the nodes of a job are told in place of a cap."""


class Dealings(NamedTuple):
    """The arrays of a model's state that are about the market: the scheduler's."""

    market: Any
    """[`odonata.jobs.trading.MARKET`], empty where there is none."""
    before: Any
    """[2]: average and reserve of the hour before, whose last measurement is known late."""
    weights: Any
    """[type]: its weight in the bid for this hour."""
    given: Any
    """The parameters of the policy that regulates."""
    floor: Any
    """As of `policies.power.floor.Floor`, all that follow."""
    sums: Any
    kinds: Any
    tallies: Any
    rows: Any
    progress: Any
    tops: Any
    paused: Any
    moves: Any

    @classmethod
    def nowhere(cls) -> Dealings:
        """Returns those of a rank that has no scheduler, or of a run without a market."""
        none = {name: np.zeros(0) for name in ("market", "before", "weights")}
        return cls(**none, **{name: array.copy() for name, array in NO_FLOOR.items()})

    @classmethod
    def of(cls, state: Any) -> Dealings:
        """Returns those in a state that has the arrays, by their names."""
        return cls(*(getattr(state, name) for name in cls._fields))

    @property
    def hashed(self) -> tuple[Any, ...]:
        """Returns what a fingerprint has of them."""
        return tuple(self._replace(
            sums=self.sums[f.SUM.hashed], kinds=self.kinds[:, f.KIND.hashed]
        ))  # fmt: skip

    @property
    def on_floor(self) -> Floor:
        """Returns the part on which a policy that regulates works."""
        return Floor(self.floor, self.sums, self.kinds, self.tallies, self.rows, self.progress,
                     self.tops, self.paused, self.moves)  # fmt: skip


# -- the floor, compiled


@entry
def arrive_now(floor: Floor, row: int) -> None:
    """Have a job wait."""
    arrive(floor, row)


@entry
def finish_now(floor: Floor, row: int, time: int) -> None:
    """Take a job off its nodes that has ended, whether it was suspended or not."""
    words, kind = floor.floor, floor.rows[row, f.OF]
    words[f.WAKES] = 0
    advance(floor, kind, time)
    for at in range(words[f.PAUSED]):
        if floor.paused[at] == row:
            wake(floor, at, time)
            break
    finish(floor, row, time)


ask: Any = None
"""`odonata.jobs.regulating.asking` of a policy, which `controlling` puts in its place."""


def control_now(
    floor: Floor, given: Any, time: int, busy: int, until: int, watts: Any, caps_w: Any
) -> None:
    """Have the policy decide, and write the caps of types per node. `watts` are the numbers of a
    `Moment` from `idle_w` to `signal`, and then `error`."""
    for kind in range(floor.kinds.shape[0]):
        advance(floor, kind, time)
        overrun(floor, kind)
    ask(
        Moment(time, floor.floor[f.FREE], busy, watts[0], watts[1], watts[2], watts[3], watts[4],
               watts[5], watts[6], watts[7], watts[8], until, watts[9]),
        floor, given,
    )  # fmt: skip
    for kind in range(floor.kinds.shape[0]):
        set_cap(floor, kind)
        caps_w[kind] = cap_of(floor, kind)


@cache
def controlling(policy: Regulate) -> Any:
    """Returns `control_now` for the kernel of a policy."""
    return bind(control_now, "control_now", ask=asking(policy))


# -- in Python


@dataclass(frozen=True, eq=False)
class Exchange:
    """The market of a run of packets: what never changes of it. Times are picoseconds."""

    trade: Trade
    policy: BiddingPolicy
    """Who bids."""
    kinds: Kinds
    """The types of jobs, and that of each job."""
    expected: npt.NDArray[np.int64]
    """[job]: how long it is expected to run without a cap; 0: nobody knows."""
    regulate: Regulate | None = None
    """The kernel of a power policy that regulates by type."""
    given: Sequence[float] = ()
    """Its parameters."""
    waits_w: float = np.inf
    """What a node of a job draws that only waits; infinity: as if it computed."""

    def fresh(self, scheduler: Scheduler) -> Dealings:
        """Returns the arrays before the first bid, and before a job has arrived. Rows of the floor
        are jobs in order of arrival."""
        found = {
            "market": self.trade.words(), "before": np.zeros(2),
            "weights": np.zeros(len(self.kinds.rows)),
        }  # fmt: skip
        if self.regulate is None:
            return Dealings(**found, **{name: array.copy() for name, array in NO_FLOOR.items()})
        assert scheduler.power is not None
        order = scheduler.by_submission
        kinds = self.kinds._replace(of_job=self.kinds.of_job[order])
        widths = scheduler.columns["nodes"][order]
        return Dealings(**found, **floor_arrays(
            kinds, self.expected[order], widths, scheduler.submitted, scheduler.machine.n_nodes,
            scheduler.power.idle_w, self.given, self.waits_w,
        ))  # fmt: skip

    def rehearse(self, scheduler: Scheduler) -> None:
        """Have the kernels of the floor compiled, on one of which nobody hears."""
        if self.regulate is None:
            return
        floor = self.fresh(scheduler).on_floor
        given, caps_w = np.array(self.given, np.float64), np.zeros(len(self.kinds.rows))
        arrive_now(floor, 0)
        controlling(self.regulate)(floor, given, 0, 0, 0, np.zeros(10), caps_w)
        if floor.floor[f.STARTS] > 0:
            finish_now(floor, int(floor.moves[f.STARTED, 0]), 1)

    def machine(
        self,
        scheduler: Scheduler,
        board: Board,
        ledger: Ledger,
        time: int,
        reported: Reported,
        dealings: Dealings,
    ) -> FollowingMachine:
        """Returns the machine as its scheduler knows it at one instant."""
        return FollowingMachine(scheduler, board, ledger, time, reported, dealings)


class FollowingMachine(MessageMachine):
    """The machine of a scheduler that takes part in a market."""

    def __init__(
        self,
        scheduler: Scheduler,
        board: Board,
        ledger: Ledger,
        time: int,
        reported: Reported,
        dealings: Dealings,
    ) -> None:
        super().__init__(scheduler, board, ledger, time, reported)
        assert scheduler.market is not None
        self.exchange, self.dealings = scheduler.market, dealings
        if len(dealings.market):
            dealings.market[t.SIGNAL_NOW] = self.exchange.trade.signal_at(time)

    # -- the market

    def target(self) -> Target | None:
        names = self.exchange.kinds.names
        weights = zip(names, self.dealings.weights.tolist(), strict=True)
        return t.target_of(
            self.dealings.market, {name: weight for name, weight in weights if weight}
        )

    def excluded(self) -> bool:
        return self.exchange.trade.excluded(self.dealings.market, self.time)

    def hour(self) -> Hour:
        exchange, time = self.exchange, self.time
        kinds, length = exchange.kinds, exchange.trade.length
        there = np.searchsorted(self.scheduler.submitted, time, "right")
        jobs = self.scheduler.by_submission[:there]
        of_job, nodes = kinds.of_job[jobs], self.scheduler.columns["nodes"][jobs]
        count = np.bincount(of_job, minlength=len(kinds.rows))
        width = np.bincount(of_job, nodes, len(kinds.rows))
        run = np.bincount(of_job, exchange.expected[jobs], len(kinds.rows))
        holds = self.board.jobs[jobs, b.STATUS] != b.DONE
        present = np.bincount(of_job[holds], nodes[holds], len(kinds.rows))
        hours = time * SECOND / HOUR_S
        types = tuple(
            JobKind(row.name, width[at] / max(1, count[at]), run[at] / max(1, count[at]),
                    row.most_w, min(row.least_w, row.most_w), row.slowdown, row.threshold,
                    row.delay_rate, count[at] / hours if time else 0.0, float(present[at]))
            for at, row in enumerate(kinds.rows)
        )  # fmt: skip
        arrivals = {row.name: count[at] * length / time for at, row in enumerate(kinds.rows)
                    if time and count[at]}  # fmt: skip
        return exchange.trade.known(self.dealings.market, time, arrivals, types, self._there())

    def _there(self) -> JobsThere | None:
        """Returns the jobs that run and wait, where they are on a floor."""
        if self.exchange.regulate is None:
            return None
        running = np.sort(self._row[self._runs()])
        waiting = np.array([self._row[job.number] for job in self.waiting()], np.int64)
        run = self.dealings.progress[np.concatenate([running, waiting]), f.RUN]
        return jobs_there(self.dealings, running, waiting, run, self.time)

    def offer(self, bid: Bid) -> None:
        market, names = self.dealings.market, self.exchange.kinds.names
        for name in bid.weights:
            if name not in names:
                raise Fault(f"bidding {self.exchange.policy.name}: it gives a weight to {name}, "
                            f"which is no type of this run: it has {', '.join(names)}")  # fmt: skip
        self.dealings.before[:] = market[[t.AVERAGE_W, t.RESERVE_W]]
        self.log.append(self.exchange.trade.bid(market, self.time, bid))
        self.dealings.weights[:] = [bid.weights.get(name, 0.0) for name in names]
        if len(self.dealings.kinds):
            self.dealings.kinds[:, f.WEIGHT] = self.dealings.weights
        self.decided.hour = self.time + self.exchange.trade.length

    def begin_hour(self, passes: Passes) -> None:
        passes.bid(self)

    def measure(self) -> tuple[int, int, float]:
        began, until, joules = super().measure()
        dealings, trade = self.dealings, self.exchange.trade
        market, seconds = dealings.market, (until - began) * SECOND
        begun = market[t.UNTIL] - trade.length
        average_w, reserve_w = dealings.before if until <= begun else market[:2]
        target_w = float(average_w + reserve_w * trade.signal_mean(began, until))
        if until > begun:
            market[t.OFF_J] += abs(joules - target_w * seconds)
            market[t.TRACKED_S] += seconds
        t.count_bad(market, joules / seconds, target_w, float(reserve_w))
        if until % trade.length == 0:
            trade.judge(market, until - trade.length, self.time)
        self.log.append(("tracking", (target_w, joules / seconds, 0.0)))
        if self.exchange.regulate is not None:
            self._conclude(began, until)
        return began, until, joules

    def _conclude(self, began: int, until: int) -> None:
        """Conclude from the readings of an interval which part of their time jobs compute. A cap is
        in force two launches after the reading on which it was decided."""
        jobs, dealings, halted = self.readings(), self.dealings, self._halted()
        for number, node_w in zip(jobs.jobs.tolist(), jobs.watts.tolist(), strict=True):
            row = int(self._row[number])
            if halted[row]:
                continue
            start = max(began, int(self.board.jobs[number, b.BEGAN]))
            ran, changes = until - start, began + 2 * self.scheduler.launch - start
            before = min(1.0, max(0, changes) / ran)
            kind, nodes = int(dealings.rows[row, f.OF]), int(dealings.rows[row, f.WIDTH])
            conclude(dealings, kind, node_w, float(nodes * ran), before)

    # -- the floor

    @cached_property
    def _row(self) -> npt.NDArray[np.int64]:
        """[job]: its row on the floor."""
        return np.argsort(self.scheduler.by_submission, kind="stable")

    @property
    def gets_on(self) -> bool:
        if self.exchange.regulate is None:
            return super().gets_on
        return bool(self.dealings.tallies[:, f.RUNNING].sum())

    def desk(self, shown: Any = None) -> PowerDesk:
        desk = super().desk(shown)
        if self.exchange.regulate is None:
            return desk
        return desk._replace(suspended=locked(self._halted()[self._row].astype(np.int64)))

    def _halted(self) -> npt.NDArray[np.bool_]:
        """[row]: whether it is suspended."""
        found: npt.NDArray[np.bool_] = self.dealings.progress[:, f.LEFT] >= 0.0
        return found

    def regulate(self, passes: Passes, due: bool) -> bool:
        """Have jobs arrive and end on the floor and, if control is due, the policy decide there."""
        if self.exchange.regulate is None:
            return False
        floor, tallies = self.dealings.on_floor, self.dealings.tallies
        passes.learn(self)
        over = int((self.board.jobs[:, b.STATUS] == b.DONE).sum()) - len(self.decided.ended)
        known = int(tallies[:, [f.WAITING, f.RUNNING, f.HALTED]].sum()) + over
        there = int(np.searchsorted(self.scheduler.submitted, self.time, "right"))
        for row in range(known, there):
            arrive_now(floor, row)
        for number in self.decided.ended:
            finish_now(floor, int(self._row[number]), self.time)
        if due:
            self._control(passes, floor)
        return True

    def _control(self, passes: Passes, floor: Floor) -> None:
        """Have the policy decide on the floor, and tell nodes of it."""
        exchange, dealings, power = self.exchange, self.dealings, self.power
        assert exchange.regulate is not None
        market, meter = dealings.market, self.ledger.measured_w
        signal, caps_w = float(market[t.SIGNAL_NOW]), np.zeros(len(dealings.kinds))
        average_w, reserve_w = market[t.AVERAGE_W], market[t.RESERVE_W]
        watts = np.array([
            power.idle_w, 0.0, power.most_w, meter[b.MACHINE_CAP_W], meter[b.LAST_W],
            average_w + signal * reserve_w, average_w, reserve_w, signal, t.error_of(market),
        ])  # fmt: skip
        before = self._halted()
        dealings.kinds[:, f.BEFORE] = dealings.kinds[:, f.RATIO]
        controlling(exchange.regulate)(
            floor, dealings.given, self.time, self.busy, int(market[t.UNTIL]), watts, caps_w
        )
        if wrong := int(dealings.floor[f.WRONG]):
            raise Fault(f"power {power.policy.name}: {f.MISDEEDS[wrong]}")
        by_row, halted = self.scheduler.by_submission, self._halted()
        started = dealings.moves[f.STARTED, : dealings.floor[f.STARTS]]
        passes.place(self, by_row[started].tolist())
        for row in np.flatnonzero(before != halted).tolist():
            self.decided.moves[int(by_row[row])] = SUSPENDED if halted[row] else GOES_ON
        goes = self._runs()[~halted[self._row[self._runs()]]]
        self.cap(goes, caps_w[exchange.kinds.of_job[goes]])
        self.asked()
