"""The two conservative protocols, side by side.

Each takes a rank from where it is to a **cut**: a time before which every event has been handled,
on every rank, with nothing on its way. They differ only in how ranks agree on how far it is safe to
go, and neither can change a result. A stop that anyone asked for makes an earlier cut.

* `window`: all ranks agree on the earliest pending event anywhere; everything before that time plus
  the lookahead is safe, for events yet to be made must come later. Exchange, repeat.
* `null` (Chandy, Misra, Bryant): each rank promises each other a time before which it will send
  nothing more; what precedes all promises is safe. Promises travel with the events, or alone.

Window wants one collective step per lookahead of activity; null wants no collective at all.
Promises alone would creep through idle time one lookahead per message, so a letter of `null`
that bears no events reports the sender's earliest event, and how many events it has sent to and
received from each rank. Where the latest reports of all ranks agree on these numbers, they show all
ranks at moments between which no event was on its way: every event yet to be sent comes from those
that were pending then, and so not before the earliest of them plus the lookahead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from pdes.events import FOREVER, WORDS, Rows
from pdes.loop import STOP
from pdes.transport import Transport


class Engine(Protocol):
    """What a protocol needs from a rank (`pdes.engine.Engine` is one)."""

    transport: Transport
    channels: Channels
    lookahead: int
    """The least delay of an event for another rank."""
    reach: int
    """How far beyond the earliest event of all a window may go."""
    reached: int
    """Every event before this time has been handled here."""

    @property
    def events(self) -> int:
        """Events handled so far."""

    @property
    def stop_requested(self) -> bool:
        """Whether a signal to this rank asked for a stop."""

    def next_time(self) -> int:
        """Returns the time of the earliest event that is here and not handled."""

    def letters(self) -> tuple[Rows, list[int]]:
        """What the last advance made for other ranks, and where each one's letter begins."""

    def deliver(self, letters: list[Rows]) -> None:
        """Keep events from other ranks for the next advance."""

    def look(self) -> None:
        """Accept what was delivered and write new letters, without handling anything."""

    def advance(self, horizon: int) -> None:
        """Handle every event before `horizon`."""

    def report(self, reached: int, events: int) -> None:
        """Report how far all ranks have come."""

    def lap(self, what: str) -> float:
        """Charge the time since the last lap to this part."""


class Arrival(NamedTuple):
    """The cut at which a protocol came to rest, and whether a stop was asked for."""

    time: int
    stopped: bool


def window(engine: Engine, cut: int) -> Arrival:
    engine.look()
    while True:
        letters, places = engine.letters()
        if engine.stop_requested:
            letters[places[:-1], STOP] = 1
        floor, _, stop, handled = letters[0, :WORDS].tolist()
        engine.lap("exchange")
        arrived = engine.transport.exchange(letters, places)
        engine.lap("waiting")
        for letter in arrived:
            their_floor, _, their_stop, their_handled = letter[0, :WORDS].tolist()
            floor, stop = min(floor, their_floor), stop | their_stop
            handled += their_handled
        engine.deliver(arrived)
        engine.report(min(floor, cut), handled)
        engine.lap("exchange")
        if stop or floor >= cut:
            return Arrival(min(floor, cut), bool(stop))
        engine.advance(min(floor + engine.reach, cut))


PROMISE, MARKS, BID, _ = range(WORDS)
"""The head of a letter in `null`: the promise; how many cuts the sender has reached, doubled, and 1
more if the letter ends with a report; once it has been asked to stop, the earliest cut it can still
stop at (else -1); events handled."""


class Channels:
    """What a rank knows of each other one under `null`; it lasts from cut to cut."""

    def __init__(self, size: int, rank: int, start: int) -> None:
        self.promise = [start] * size
        self.promise[rank] = FOREVER
        self.promised = 0
        """The last promise of this rank."""
        self.marks = [0] * size
        self.handled = [0] * size
        self.bids: dict[int, tuple[int, int]] = {}
        """The bids of ranks that were asked to stop: on the way to which cut, and at what time."""
        self.sent = [0] * size
        self.received = [0] * size
        """Events, to and from each rank."""
        self.reports = np.full((size, 1 + 2 * size), -1, np.int64)
        """The latest report of each rank: its earliest event, how many events it has sent to each
        rank, how many it has received from each. A rank that has not reported yet has -1, which
        agrees with nobody."""

    def agreed(self) -> int | None:
        """Returns the earliest event that any rank had when nothing was on its way, or None where
        the reports do not fit together."""
        size = len(self.marks)
        sent, received = self.reports[:, 1 : 1 + size], self.reports[:, 1 + size :]
        return int(self.reports[:, 0].min()) if (sent == received.T).all() else None


def null(engine: Engine, cut: int) -> Arrival:
    """A stop is settled thus: whoever is asked, or hears of it, stands still and bids the time it
    has already been allowed to reach; when everyone has, the largest bid becomes the cut. Who has
    reached the old cut already need not bid: its mark says so, and the old cut stands."""
    transport, channels = engine.transport, engine.channels
    if transport.size == 1:
        return window(engine, cut)
    me, ranks = transport.rank, range(transport.size)
    leg = channels.marks[me] + 1
    while True:
        bids = {rank: time for rank, (on, time) in channels.bids.items() if on == leg}
        stopping = engine.stop_requested or bool(bids)
        if channels.marks[me] == leg:
            if all(marks >= leg for marks in channels.marks):
                return Arrival(engine.reached, bool(bids))
        elif stopping and me not in bids:
            channels.bids[me] = leg, engine.reached
            _post(engine, force=True)
            continue
        elif all(rank in bids or channels.marks[rank] >= leg for rank in ranks) or not stopping:
            target = max(bids.values()) if len(bids) == transport.size else cut
            safe = min(*channels.promise, target)
            engine.advance(safe)
            if safe == target:
                channels.marks[me] = leg
            _post(engine, force=safe == target)
            if safe == target:
                continue
        _receive(engine)


def _post(engine: Engine, force: bool) -> None:
    """Send each other rank its events and, where it says more than the last did, our promise."""
    transport, channels = engine.transport, engine.channels
    me = transport.rank
    letters, places = engine.letters()
    soonest = min(engine.next_time(), *channels.promise)
    promise = min(soonest, FOREVER - engine.lookahead) + engine.lookahead
    news = force or promise > channels.promised
    channels.promised = promise
    on, bid = channels.bids.get(me, (0, -1))
    marks, bid = 2 * channels.marks[me], bid if on > channels.marks[me] else -1
    bare = []
    for peer in range(transport.size):
        rows = places[peer + 1] - places[peer] - 1
        channels.sent[peer] += rows
        if peer == me:
            continue
        letter = letters[places[peer] : places[peer + 1]]
        if force or (news and rows == 0):
            letter[0, :WORDS] = promise, marks + 1, bid, engine.events
            bare.append((peer, letter))
        elif rows:
            letter[0, :WORDS] = promise, marks, bid, engine.events
            transport.post(peer, letter.copy())
    if bare:
        report = _report(engine, letters.shape[1])
        for peer, letter in bare:
            transport.post(peer, np.concatenate((letter, report)))
    engine.lap("exchange")


def _report(engine: Engine, width: int) -> Rows:
    """Brings this rank's report up to date. Returns it as rows of so many words, which end a
    letter: one without events, or one that a rank may wait for."""
    channels = engine.channels
    report = channels.reports[engine.transport.rank]
    report[:] = engine.next_time(), *channels.sent, *channels.received
    rows = np.zeros((-(-len(report) // width), width), np.int64)
    rows.reshape(-1)[: len(report)] = report
    return rows


def _receive(engine: Engine) -> None:
    channels = engine.channels
    words = channels.reports.shape[1]
    messages = engine.transport.collect(wait=True)
    engine.lap("waiting")
    letters, idle = [], True
    for sender, letter in messages:
        promise, marks, bid, handled = letter[0, :WORDS].tolist()
        channels.promise[sender] = max(channels.promise[sender], promise)
        channels.marks[sender] = marks >> 1
        channels.handled[sender] = handled
        if bid >= 0:
            channels.bids[sender] = (marks >> 1) + 1, bid
        if marks & 1:
            rows = -(-words // letter.shape[1])
            channels.reports[sender] = letter[-rows:].reshape(-1)[:words]
            letter = letter[:-rows]
        channels.received[sender] += len(letter) - 1
        idle = idle and len(letter) == 1
        letters.append(letter)
    engine.deliver(letters)
    if idle and engine.next_time() >= min(channels.promise):
        _jump(engine)
    engine.report(engine.reached, engine.events + sum(channels.handled))
    engine.lap("exchange")


def _jump(engine: Engine) -> None:
    """Skip idle time: no event that is here is safe yet, but perhaps none is pending anywhere for
    longer than the promises tell."""
    channels = engine.channels
    mine = engine.next_time(), *channels.sent, *channels.received
    channels.reports[engine.transport.rank] = mine
    floor = channels.agreed()
    if floor is not None:
        least = min(floor, FOREVER - engine.lookahead) + engine.lookahead
        channels.promise = [max(promise, least) for promise in channels.promise]


PROTOCOLS: dict[str, Callable[[Engine, int], Arrival]] = {"window": window, "null": null}
