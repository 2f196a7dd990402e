"""The two conservative protocols, side by side.

Each takes a rank from where it is to a **cut**: a time before which every event has been handled,
on every rank, with nothing on its way. They differ only in how ranks agree on how far it is safe to
go, and neither can change a result. A stop that anyone asked for makes an earlier cut.

* `window`: all ranks agree on the earliest pending event anywhere; everything before that time plus
  the lookahead is safe, for events yet to be made must come later. Exchange, repeat.
* `null` (Chandy, Misra, Bryant): each rank promises each other a time before which it will send
  nothing more; what precedes all promises is safe. Promises travel with the events, or alone.

Window wants one collective step per lookahead of activity and skips idle time; null wants no
collective at all, but creeps through idle time one lookahead per message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from pdes.events import FOREVER, WORDS, Rows
from pdes.loop import STOP
from pdes.transport import Transport


class Engine(Protocol):
    """What a protocol needs of a rank (`pdes.engine.Engine` is one)."""

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
        """Handled so far."""

    @property
    def stop_requested(self) -> bool:
        """By a signal to this rank."""

    def next_time(self) -> int:
        """Of the events that are here and not handled."""

    def letters(self) -> tuple[Rows, list[int]]:
        """What the last advance made for other ranks, and where each one's letter begins."""

    def deliver(self, letters: list[Rows]) -> None:
        """Have events from other ranks taken in at the next advance."""

    def look(self) -> None:
        """Take in what was delivered and write fresh letters, without handling anything."""

    def advance(self, horizon: int) -> None:
        """Handle every event before `horizon`."""

    def report(self, reached: int, events: int) -> None:
        """How far all ranks have come."""

    def lap(self, what: str) -> float:
        """The time since the last lap was spent on this."""


class Arrival(NamedTuple):
    """At which cut a protocol came to rest, and whether because someone asked for a stop."""

    time: int
    stopped: bool


def window(engine: Engine, cut: int) -> Arrival:
    engine.look()
    while True:
        letters, places = engine.letters()
        if engine.stop_requested:
            letters[places[:-1], STOP] = 1
        floor, _, stop, handled = letters[0].tolist()
        engine.lap("exchange")
        arrived = engine.transport.exchange(letters, places)
        engine.lap("waiting")
        for letter in arrived:
            their_floor, _, their_stop, their_handled = letter[0].tolist()
            floor, stop = min(floor, their_floor), stop | their_stop
            handled += their_handled
        engine.deliver(arrived)
        engine.report(min(floor, cut), handled)
        engine.lap("exchange")
        if stop or floor >= cut:
            return Arrival(min(floor, cut), bool(stop))
        engine.advance(min(floor + engine.reach, cut))


PROMISE, MARKS, BID, _ = range(WORDS)
"""The head of a letter in `null`: the promise; how many cuts the sender has reached; once it has
been asked to stop, the earliest cut it can still stop at (else -1); events handled."""


class Channels:
    """What a rank knows of each other one under `null`; lasts from cut to cut."""

    def __init__(self, size: int, rank: int) -> None:
        self.promise = np.zeros(size, np.int64)
        self.promise[rank] = FOREVER
        self.marks = np.zeros(size, np.int64)
        self.handled = np.zeros(size, np.int64)
        self.bid_leg = np.zeros(size, np.int64)
        self.bid = np.zeros(size, np.int64)
        self.promised = 0


def null(engine: Engine, cut: int) -> Arrival:
    """A stop is settled thus: whoever is asked, or hears of it, stands still and bids the time it
    has already been allowed to reach; the largest bid becomes the cut. Who has reached the old cut
    already need not bid: its mark says so."""
    transport, channels = engine.transport, engine.channels
    if transport.size == 1:
        return window(engine, cut)
    me = transport.rank
    others = np.arange(transport.size) != me
    leg = int(channels.marks[me]) + 1
    while True:
        bids = channels.bid_leg == leg
        stopping = bool(bids.any()) or engine.stop_requested
        marked = channels.marks[me] == leg
        if stopping and not marked and not bids[me]:
            channels.bid_leg[me], channels.bid[me] = leg, engine.reached
            _post(engine, force=True)
        elif stopping and not marked and not (bids | (channels.marks >= leg)).all():
            pass
        elif not marked:
            target = cut
            if stopping and (channels.marks[~bids] < leg).all():
                target = int(channels.bid[bids].max())
            safe = min(int(channels.promise.min()), target)
            engine.advance(safe)
            marked = safe == target
            channels.marks[me] += marked
            _post(engine, force=bool(marked))
        if marked and (channels.marks[others] >= leg).all():
            stopped = bool((channels.bid_leg == leg).any())
            return Arrival(engine.reached, stopped)
        _receive(engine)


def _post(engine: Engine, force: bool) -> None:
    """Send each other rank its events and, where it says more than the last did, our promise."""
    transport, channels = engine.transport, engine.channels
    me = transport.rank
    letters, places = engine.letters()
    soonest = min(engine.next_time(), int(channels.promise.min()))
    promise = min(soonest, FOREVER - engine.lookahead) + engine.lookahead
    news = force or promise > channels.promised
    channels.promised = promise
    bid = int(channels.bid[me]) if channels.bid_leg[me] == channels.marks[me] + 1 else -1
    head = promise, int(channels.marks[me]), bid, engine.events
    for peer in range(transport.size):
        letter = letters[places[peer] : places[peer + 1]]
        if peer != me and (news or len(letter) > 1):
            letter[0] = head
            transport.post(peer, letter.copy())
    engine.lap("exchange")


def _receive(engine: Engine) -> None:
    channels = engine.channels
    messages = engine.transport.collect(wait=True)
    engine.lap("waiting")
    for sender, letter in messages:
        promise, marks, bid, handled = letter[0].tolist()
        channels.promise[sender] = promise
        channels.marks[sender] = marks
        channels.handled[sender] = handled
        if bid >= 0:
            channels.bid_leg[sender], channels.bid[sender] = marks + 1, bid
    engine.deliver([letter for _, letter in messages])
    engine.report(engine.reached, engine.events + int(channels.handled.sum()))
    engine.lap("exchange")


PROTOCOLS: dict[str, Callable[[Engine, int], Arrival]] = {"window": window, "null": null}
