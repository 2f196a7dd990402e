"""One rank: its agents' state, its queue, its outbox, and the operations that a protocol needs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pdes import checkpoint, jit, stream
from pdes.dealing import Deals, taken_up
from pdes.decisions import Answer, Decider
from pdes.errors import Fault, Refused
from pdes.events import (
    AGENT_MASK,
    FOREVER,
    KEY,
    KIND_SHIFT,
    PORT_BITS,
    TIME,
    WORDS,
    Rows,
    no_rows,
)
from pdes.log import Appended
from pdes.loop import (
    AGENTS,
    ALL_TICKS,
    BEARERS,
    BUDGET,
    CAUSE,
    COMING,
    CULPRIT,
    DECIDE,
    DECISIONS,
    DONE,
    EVENTS,
    FAULT,
    FAULTY,
    FIRST,
    HANDLED_KIND,
    LAST,
    LOOKAHEAD,
    NOW,
    OUTBOX_FULL,
    PEAK,
    POOL_FULL,
    QUEUE_FULL,
    QUEUE_TICKS,
    RECEIPTS,
    SAMPLED_KIND,
    SPARE,
    TICKS_KIND,
    Sim,
    compile_loop,
    new_ctl,
    new_kinds,
)
from pdes.model import Audits, Carries, Decides, Ends, Model, Streams, Tally, facet
from pdes.outbox import Outbox
from pdes.parcels import new_pool, reserved
from pdes.partition import deal
from pdes.protocol import Channels
from pdes.queue import EventQueue
from pdes.rules import Rules, describe
from pdes.signals import StopSignals
from pdes.stream import Recorder
from pdes.transport import Transport

SECONDS = ("handlers", "queue", "exchange", "waiting", "metrics", "checkpoint")
"""The parts of a rank's time. Packing, unpacking and all bookkeeping between two horizons are
`exchange`; from the first word sent to the last received is `waiting`, for others or the wire."""

BUDGET_EVENTS = 1 << 16
"""The number of events after which a kernel returns at the latest: for signals, progress and
Ctrl-C."""

LOOK_SECONDS = 0.1
"""Seconds after which the same is done between decisions, which may be slow."""

SETTLE_EVERY = 16
"""Rounds between two checks of how well the queue's days fit."""

NO_ROWS = no_rows()

MOST_BITS = 62
"""The largest kind of event that can be marked by a bit of a word."""

CHECK_QUEUE_EVERY = 1024
"""Under debug the model is checked after every event, the whole queue after so many."""

Progress = Callable[[int, int, Tally | None], None]
"""A function that is called with the simulated time reached, in ticks, the events handled so far on
all ranks, and what the model counts as done (`Ends.tally`)."""


_TRIED: set[Any] = set()
"""The kernels that this process has tried, by what they are for: they are compiled."""


class Engine:
    """One rank of a run: built for its agents, begun (`start` or `resume`), then driven by a
    protocol."""

    def __init__(
        self,
        model: Model,
        transport: Transport,
        signals: StopSignals,
        capacity: int,
        debug: bool,
        progress: Progress | None,
    ) -> None:
        self.model = model
        self._carries = carries = facet(model, Carries)
        self._decides = decides = facet(model, Decides)
        self._deals, self.streams = facet(model, Deals), facet(model, Streams)
        self.ends, self.audits = facet(model, Ends), facet(model, Audits)
        self.transport = transport
        self.debug = debug
        self._signals = signals
        self.reached = 0
        """Every event before this time, in ticks, has been handled here."""
        self.channels = Channels(transport.size, transport.rank, start=0)
        self.seconds = dict.fromkeys((*SECONDS, "kernel"), 0.0)
        self._began = self._lap = time.perf_counter()
        self.rounds = self._advances = 0
        self._progress = progress if transport.rank == 0 else None
        self._next_report = time.perf_counter() + 0.2
        self._next_look = time.perf_counter()
        self.partition = deal(model.units(), model.weights(), transport.size, self._deals.alone)
        self.lookahead, self.reach = self._horizon()
        self._block = first, last = self.partition.block(transport.rank)
        self.state: Any = model.state(first, last)
        self.queue = EventQueue(capacity)
        self._ctl = new_ctl()
        self._words = self._ctl.data
        """A view of the control words as plain memory, which Python reads five times as fast."""
        self._cause = self._words[CAUSE : CAUSE + WORDS]
        self._ctl[[FIRST, LAST, AGENTS, LOOKAHEAD]] = (
            first, last, self.partition.agents, self.lookahead
        )  # fmt: skip
        marked = carries.bearers, carries.receipts, decides.decisions
        if any(kind > MOST_BITS for kinds in marked for kind in kinds):
            raise Refused(
                f"{model.name}: bearers, receipts and decisions are kinds up to {MOST_BITS}"
            )
        if decides.decisions and type(decides).decide is Decides.decide:
            raise Refused(f"{model.name}: has decisions, and no `decide` to make them")
        self._rules = Rules(model, self.partition.agents, self.lookahead)
        self._decider = Decider(decides, carries, self.partition, transport.rank, self._rules)
        self._ctl[[BEARERS, RECEIPTS, DECISIONS]] = [sum(1 << k for k in kinds) for kinds in marked]
        self._budget = 1 if debug else min(BUDGET_EVENTS, self.streams.noted_every or BUDGET_EVENTS)
        """The events after which a kernel returns at the latest."""
        self._kinds = new_kinds()
        self._made = np.zeros((model.fanout, WORDS), np.int64)
        self._pool = new_pool(carries.parcel)
        transport.carry(WORDS + carries.parcel)
        self._outbox = Outbox(self._ctl, transport.size, WORDS + carries.parcel, model.fanout)
        self._incoming: list[Rows] = []
        self._arrived: int | None = FOREVER
        """The time of the earliest of these, once somebody has asked for it."""
        self._sim_now: Sim | None = None
        self._logging: Recorder | None = None
        """Where logs are kept, if any are."""
        self._log: Callable[[int, int, Appended], None] | None = None
        """Takes rows of logs, from whichever agent, as they come."""
        kept = f"{model.name}_{type(self.state).__module__}.{type(self.state).__qualname__}"
        self._loop = compile_loop(kept, model.handle, carries.receive, model.fanout, carries.takes)

    def _horizon(self) -> tuple[int, int]:
        """Set the lookahead, and how far beyond the earliest event a window reaches."""
        if self.transport.size == 1:
            return 0, FOREVER
        least = self.model.lookahead(self.partition)
        if least.time <= 0:
            raise Refused(
                f"{self.model.name}: {least.cause} may take {least.time} {self.model.tick}, and "
                "the two are on different ranks: ranks need a lookahead above 0 between them. Give "
                "that link a latency, or use one rank"
            )
        return least.time, least.time

    # -- beginnings

    def start(self) -> int:
        first, last = self._block
        rows = self._first_events(self.state, first, last)
        agents = (rows[:, KEY] >> PORT_BITS) & AGENT_MASK
        wrong = (rows[:, TIME] < 0) | (agents < first) | (agents >= last)
        if wrong.any():
            row = rows[wrong.argmax()]
            raise Refused(
                f"{self.model.name}: the first event {describe(self.model, row.tolist())} is "
                + (
                    "in the past: time begins at 0"
                    if row[TIME] < 0
                    else f"not at one of the agents asked for, {first} to {last - 1}"
                )
            )
        self.queue.extend(rows)
        self.queue.start(0)
        return 0

    def _first_events(self, state: Any, first: int, last: int) -> Rows:
        return np.asarray(self.model.start(state, first, last), np.int64).reshape(-1, WORDS)

    def identity(self) -> dict[str, Any]:
        """Returns the identity of a checkpoint. A tick of a picosecond is not named."""
        tick = self.model.tick
        return {
            "model": self.model.name,
            "ranks": self.transport.size,
            "parameters": self._parameters(aside=False),
            **({} if tick == "ps" else {"tick": tick}),
        }

    def _parameters(self, aside: bool) -> dict[str, Any]:
        """Returns the parameters that decide the outcome, or those that do not (`Deals.aside`)."""
        given = self.model.parameters().items()
        return {name: value for name, value in given if (name in self._deals.aside) == aside}

    def save(self, directory: Path) -> Path:
        cut = checkpoint.Cut(self.reached, self.events)
        self.look()
        arrays = {f"state.{name}": array for name, array in self.state._asdict().items()}
        return checkpoint.save(
            directory, self.transport, self.identity(), cut,
            {"pending": self.queue.pending(), "pool": self._pool.ctl,
             "parcels": self._pool.rows, **arrays},
            self.partition.unit_starts.tolist(),
        )  # fmt: skip

    def resume(self, directory: Path) -> int:
        """Go on from a checkpoint, of any number of ranks. Returns its time."""
        found = checkpoint.find(directory, self.identity(), self._parameters(aside=True))
        self.state, pending, self._pool = taken_up(
            self.model, found, self.partition, self.transport.rank, self.state
        )
        self.queue.extend(pending)
        self.queue.start(found.time)
        self._ctl[EVENTS] = sum(found.events[self.transport.rank :: self.transport.size])
        self._ctl[NOW] = self.reached = found.time
        self.channels = Channels(self.transport.size, self.transport.rank, start=found.time)
        return found.time

    def log_to(
        self, log: Callable[[int, int, Appended], None], recorder: Recorder | None = None
    ) -> None:
        """Have the rows of logs taken by this function, which is the recorder's where there is
        one."""
        self._log = self._decider.log = log
        self._logging = recorder

    def collect(self) -> None:
        """Collect the rows of logs that handlers have noted down; without a log they are gone."""
        if self._log:
            self._log(0, 0, self.streams.noted(self.state))
        elif self.streams.noted_every:
            self.streams.noted(self.state)

    def record(self, recorder: Recorder) -> bool:
        """Take a sample, at a cut. Returns whether anything is left to happen, on any rank; where
        nothing is, the sample says so too, and a run that goes on from here knows it."""
        self.lap("exchange")
        self.collect()
        left = self.ends.left(self.state, self.queue.content)
        self.lap("metrics")
        goes_on = self._any(left)
        spent = time.perf_counter() - self._began
        done = stream.Progress(self.events, left * goes_on, spent)
        recorder.take(self.state, self.reached, done)
        self.lap("metrics")
        return goes_on

    def over(self) -> int:
        """Returns when the last thing happened, on any rank, as far as the model knows."""
        ranks = self.transport.everyone(self.ends.over(self.state))
        return max((time for time in ranks if time is not None), default=self.reached)

    def wants_more(self) -> bool:
        """Tells whether a run without an end is to go on, on any rank, at a cut."""
        return self._any(self.ends.goal(self.state, self.queue.content))

    def stuck(self) -> bool:
        """Tells, at a cut, whether the model has come to a standstill, on any rank."""
        suspects = self.transport.everyone(self.audits.suspects(self.state, self.reached))
        if not sum(suspects):
            return False
        self.look()
        mine = self.audits.evidence(self.state, self.queue.content(), self._pool.rows)
        return self.audits.stuck(self.transport.everyone(mine))

    def _any(self, mine: int) -> bool:
        """Tells whether this is anything, summed over ranks. If no rank has any event but those
        that always come again, nothing will happen, whatever the model says."""
        ranks = self.transport.everyone((mine, self._moves()))
        self.lap("waiting")
        return sum(left for left, _ in ranks) != 0 and any(moves for _, moves in ranks)

    def _moves(self) -> bool:
        """Tells whether this rank has an event that is not of a perpetual kind."""
        if self.next_time() >= FOREVER or not self.ends.perpetual:
            return self.next_time() < FOREVER
        coming = np.concatenate([self.queue.content(), *(r[:, :WORDS] for r in self._incoming)])
        return not np.isin(coming[:, KEY] >> KIND_SHIFT, self.ends.perpetual).all()

    def compile(self, show: bool, recorder: Recorder | None = None) -> None:
        """Prepare every kernel, compiled by one rank per host and loaded by the others: try each on
        a single unit of the model."""
        unit = int(self.partition.unit_starts[self.transport.rank])
        first, last = self.model.units()[unit : unit + 2].tolist()

        scripted = type(self.state).__module__ == "__main__"
        how_often = " and ".join(filter(None, ("once for this version", self.model.variant)))
        if scripted:
            how_often = (
                f"on every run, because {type(self.state).__name__} is defined in the main script "
                "(in a module that it imports, they would be kept)"
            )

        def try_each() -> None:
            state, queue = self.model.state(first, last), EventQueue()
            queue.extend(self._first_events(state, first, last))
            queue.pending()
            queue.next_time()
            self._loop(self._sim()._replace(queue=queue.cells), state, NO_ROWS, 0, 0)
            self._decides.rehearse(state)
            if recorder:
                recorder.rehearse(state)

        what = (self._loop, type(self.model), self._decides.decisions, jit.kind_of(self.state))
        if self.transport.size == 1 and recorder is None and what in _TRIED:
            return
        notice = jit.compile_notice(show and self.transport.host_leader, how_often)
        with notice, jit.explaining():
            if scripted:
                try_each()
            else:
                self.transport.leader_first(try_each)
        _TRIED.add(what)

    def begin(self) -> float:
        """Start the clock: all is in place."""
        self._loop = jit.direct(self._loop, self._sim(), self.state, NO_ROWS, 0, 0)
        self.look()
        self.lap("exchange")
        self.seconds = dict.fromkeys(self.seconds, 0.0)
        self._began = self._lap
        return self._lap

    # -- what protocols use

    @property
    def events(self) -> int:
        return self._words[EVENTS]

    @property
    def peak(self) -> int:
        return int(self._ctl[PEAK])

    @property
    def stop_requested(self) -> bool:
        return self._signals.received is not None

    def next_time(self) -> int:
        """Returns the time of the earliest event that is on this rank and not handled."""
        if self._arrived is None:
            self._arrived = min(int(rows[:, TIME].min()) for rows in self._incoming)
        return min(int(self._ctl[COMING]), self._arrived)

    def letters(self) -> tuple[Rows, list[int]]:
        """Returns the letters to other ranks since the last advance, and where each one begins.
        They are given out once; after that the letters are empty but for their heads."""
        return self._outbox.give_out()

    def deliver(self, letters: list[Rows]) -> None:
        """Keep events from other ranks for the next advance."""
        for letter in letters:
            if len(letter) > 1:
                self._incoming.append(letter[1:])
                self._arrived = None

    def take_in(self) -> Rows:
        """Returns the events that were delivered; there is room for them now."""
        if not self._incoming:
            return NO_ROWS
        rows = self._incoming[0] if len(self._incoming) == 1 else np.concatenate(self._incoming)
        self._incoming, self._arrived = [], FOREVER
        self.queue.reserve(len(rows))
        if self._carries.parcel:
            self._pool = reserved(self._pool, len(rows))
        return rows

    def look(self) -> None:
        """Accept what was delivered and write new letters, without handling anything."""
        incoming = self.take_in()  # first: it may give the queue other arrays
        why = self._loop(self._sim(), self.state, incoming, self.reached, 1)
        if why == FAULTY:
            raise self._broken_rule()

    def advance(self, horizon: int) -> None:
        """Handle every event before `horizon`."""
        if horizon <= self.reached:
            return
        self.lap("exchange")
        self._advances += 1
        incoming, budget = self.take_in(), self._budget
        loop, state, words, cause = self._loop, self.state, self._words, self._cause
        decide, sim = self._decider.decide, self._sim()
        quick, nothing = self._decider.quick, self._decider.nothing
        while True:
            why = loop(sim, state, incoming, horizon, budget)
            if why == DECIDE:
                answer = decide(state, *cause.tolist())
                incoming, budget = answer.mine, words[SPARE]
                if answer is not quick and answer is not nothing:
                    self._make_way(answer)
                    sim = self._sim()
                if time.perf_counter() >= self._next_look:
                    horizon = self._look_after(horizon)
                continue
            incoming = NO_ROWS
            if why == DONE:
                break
            if why == QUEUE_FULL:
                self.queue.reserve(self.model.fanout)
            elif why == OUTBOX_FULL:
                self._outbox.make_room()
            elif why == POOL_FULL:
                self._pool = reserved(self._pool, self._carries.takes)
            elif why == BUDGET:
                horizon, budget = self._breathe(horizon), self._budget
            elif why == FAULTY:
                raise self._broken_rule()
            if self.streams.noted_every:
                self.collect()
            sim = self._sim()
        self.reached = horizon
        self._write_logs(horizon)
        self.lap("kernel")
        if self._advances % SETTLE_EVERY == 0:
            self.queue.settle(int(self._ctl[NOW]))

    def _make_way(self, answer: Answer) -> None:
        """Make room for the events of a decision; those for other ranks go to the outbox."""
        mine, others = answer
        self.queue.reserve(len(mine))
        if self._carries.parcel:
            self._pool = reserved(self._pool, len(mine))
        if others is not None:
            self._outbox.add(others)

    def _breathe(self, horizon: int) -> int:
        """Do the occasional work during a long advance to a horizon. Returns the horizon."""
        if self.debug:
            self.check(self.events % CHECK_QUEUE_EVERY == 0)
        if self.transport.size == 1:
            self.rounds += 1
            self.queue.settle(self._words[NOW])
        return self._look_after(horizon)

    def _look_after(self, horizon: int) -> int:
        """Serve logs, progress and signals. Returns the horizon: one rank alone, asked to stop,
        makes it the end of the present instant; several have agreed on theirs, and it is never
        farther than the lookahead."""
        self._next_look = time.perf_counter() + LOOK_SECONDS
        now = self._words[NOW]
        self._write_logs(now)
        if self.transport.size > 1:
            return horizon
        self.report(now, self.events)
        return min(horizon, now + 1) if self.stop_requested else horizon

    def _write_logs(self, final: int) -> None:
        """Write the rows of logs that have waited for long enough; all before `final` are here."""
        self.collect()
        if self._logging and self._logging.log_due:
            self.lap("kernel")
            self._logging.write_logs(final)
            self.lap("metrics")

    def report(self, reached: int, events: int) -> None:
        if self._progress and (now := time.perf_counter()) >= self._next_report:
            self._progress(reached, events, self.ends.tally(self.state))
            self._next_report = now + 0.1

    def lap(self, what: str) -> float:
        """Charge the time since the last lap to this part. Returns the time of day."""
        now = time.perf_counter()
        self.seconds[what] += now - self._lap
        self._lap = now
        return now

    def skip(self) -> float:
        """Charge the time since the last lap to nothing. Returns it, in s."""
        now = time.perf_counter()
        passed, self._lap = now - self._lap, now
        return passed

    def _sim(self) -> Sim:
        """Returns the arguments of the loop; built anew only where an array was replaced."""
        sim = self._sim_now
        if (
            sim is None
            or sim.queue is not self.queue.cells
            or sim.out is not self._outbox.rows
            or sim.letters is not self._outbox.letters
            or sim.pool is not self._pool
        ):
            box = self._outbox
            sim = self._sim_now = Sim(
                self._ctl, self.queue.cells, self._made, box.rows, self.partition.agent_starts,
                box.letters, box.places, self._pool, self._kinds,
            )  # fmt: skip
        return sim

    def _broken_rule(self) -> Fault:
        ctl = self._ctl.tolist()
        cause, culprit = ctl[CAUSE : CAUSE + WORDS], ctl[CULPRIT : CULPRIT + WORDS]
        return Fault(self._rules.broken(ctl[FAULT], cause, culprit, self.reached))

    # -- ends

    def check(self, queue: bool = True) -> None:
        """Check the model's invariants and our own."""
        self.audits.check(self.state, self.queue.content(), self._pool.rows)
        if queue and self.debug:
            self.queue.check()

    def spent(self) -> dict[str, float]:
        """Returns the seconds of each of SECONDS; the kernel's are divided by the timed events."""
        seconds = dict(self.seconds)
        kernel = seconds.pop("kernel")
        queue = float(self._ctl[QUEUE_TICKS] / max(1, self._ctl[ALL_TICKS]))
        return {**seconds, "queue": kernel * queue, "handlers": kernel * (1 - queue)}

    def kinds(self) -> dict[str, tuple[int, float]]:
        """Returns, for each kind of event, how many there were, and the ticks of one outside the
        queue, as timed."""
        rows = self._kinds[: len(self.model.kinds)].tolist()
        return {
            word: (row[HANDLED_KIND], row[TICKS_KIND] / max(1, row[SAMPLED_KIND]))
            for word, row in zip(self.model.kinds, rows, strict=True)
        }

    def outcome(self) -> dict[str, Any]:
        mine = self.model.outcome(self.state, self.queue.content(), self._pool.rows, self.reached)
        parts = self.transport.everyone(dict(mine))
        self._rules.same_on_all_ranks("outcome", [sorted(part) for part in parts])
        for name in parts[0]:
            widths = [part[name].shape[1:] for part in parts]
            self._rules.same_on_all_ranks(f"outcome[{name!r}]", widths)
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def digest(self) -> str:
        parts = self.transport.gather(self.model.fingerprint(self.state))
        value = None
        if parts is not None:
            self._rules.same_on_all_ranks("fingerprint", [part.shape[1:] for part in parts])
            hashed = hashlib.blake2b(digest_size=stream.DIGEST_BYTES)
            for part in self._deals.assemble(parts):
                hashed.update(np.ascontiguousarray(part).tobytes())
            value = hashed.hexdigest()
        return next(v for v in self.transport.everyone(value) if v is not None)
