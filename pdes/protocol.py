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
"""The head of a letter in `null`: the promise; how many cuts the sender has reached; once it has
been asked to stop, the earliest cut it can still stop at (else -1); events handled."""


class Channels:
    """What a rank knows of each other one under `null`; lasts from cut to cut."""

    def __init__(self, size: int, rank: int, start: int) -> None:
        self.promise = [start] * size
        self.promise[rank] = FOREVER
        self.promised = 0
        """What this rank promised last."""
        self.marks = [0] * size
        self.handled = [0] * size
        self.bids: dict[int, tuple[int, int]] = {}
        """Of ranks that were asked to stop: on the way to which cut, and at what time."""


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
    head = promise, channels.marks[me], bid if on > channels.marks[me] else -1, engine.events
    for peer in range(transport.size):
        letter = letters[places[peer] : places[peer + 1]]
        if peer != me and (news or len(letter) > 1):
            letter[0, :WORDS] = head
            transport.post(peer, letter.copy())
    engine.lap("exchange")


def _receive(engine: Engine) -> None:
    channels = engine.channels
    messages = engine.transport.collect(wait=True)
    engine.lap("waiting")
    for sender, letter in messages:
        promise, marks, bid, handled = letter[0, :WORDS].tolist()
        channels.promise[sender] = promise
        channels.marks[sender] = marks
        channels.handled[sender] = handled
        if bid >= 0:
            channels.bids[sender] = marks + 1, bid
    engine.deliver([letter for _, letter in messages])
    engine.report(engine.reached, engine.events + sum(channels.handled))
    engine.lap("exchange")


PROTOCOLS: dict[str, Callable[[Engine, int], Arrival]] = {"window": window, "null": null}
