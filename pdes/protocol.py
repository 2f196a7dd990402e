"""The two conservative protocols, side by side.

Each takes a rank from where it is to a **cut**: a time before which every event has been handled,
on every rank, with nothing on its way. They differ only in how ranks agree on how far it is safe to
go, and neither can change a result. A stop that anyone asked for makes an earlier cut.

* `window`: all ranks agree on the earliest pending event anywhere; everything before that time plus
  the lookahead is safe, for events yet to be made must come later. Exchange, repeat.
* `null` (Chandy, Misra, Bryant): each rank promises each other a time before which it will send
  nothing more; what precedes all promises is safe. Promises travel with the events, or alone.

Window wants one collective step per lookahead of activity; null wants no collective at all.
Promises alone would creep through idle time one lookahead per message, so a letter of `null` ends
with a report: the sender's earliest event, and how many events it has sent to and received from
each rank. Where the latest reports of all ranks agree on these numbers, they show all ranks at
moments between which no event was on its way: every event yet to be sent comes from those that were
pending then, and so not before the earliest of them plus the lookahead. A rank whose report has not
changed is silent, however far its promise would go: where all ranks wait, the reports agree, and
whoever has the earliest event goes on. A rank that has reached the cut is silent too: what it
receives from then on is not looked at, and its last promise stands for its earliest event.
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
    rounds: int
    """How often this rank has waited for others."""

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
        engine.rounds += 1
        engine.advance(min(floor + engine.reach, cut))


class Channels:
    """What a rank knows of each other one under `null`; it lasts from cut to cut."""

    def __init__(self, size: int, rank: int, start: int) -> None:
        self.promise = [start] * size
        self.promise[rank] = FOREVER
        self.reported: list[int] = []
        """The last report that this rank has sent."""
        self.marks = [0] * size
        """How many cuts each rank has reached."""
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
        self._earliest = self.reports[:, 0]
        self._sent, self._received = self.reports[:, 1 : 1 + size], self.reports[:, 1 + size :].T

    def agreed(self, lookahead: int) -> int | None:
        """Returns a time before which no rank had an event when nothing was on its way, or None
        where the reports do not fit together."""
        same = self._sent == self._received
        if max(self.marks) == min(self.marks):
            return int(self._earliest.min()) if same.all() else None
        done = np.array(self.marks) > min(self.marks)
        if not same[:, ~done].all():
            return None
        promised = [promise for promise, over in zip(self.promise, done, strict=True) if over]
        return min(int(self._earliest[~done].min()), min(promised) - lookahead)


def null(engine: Engine, cut: int) -> Arrival:
    """A stop is settled thus: whoever is asked, or hears of it, stands still and bids the time it
    has already been allowed to reach; when everyone has, the largest bid becomes the cut. Who has
    reached the old cut already need not bid: its mark says so, and the old cut stands. After its
    mark a rank sends nothing until all have reached the cut."""
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
        elif not stopping or all(rank in bids or channels.marks[rank] >= leg for rank in ranks):
            target = max(bids.values()) if len(bids) == transport.size else cut
            safe, coming = min(*channels.promise, target), engine.next_time()
            if coming >= safe < target:
                safe = min(_skip_idle_time(engine), target)
            if coming < safe or safe == target:
                engine.advance(safe)
                if safe == target:
                    channels.marks[me] = leg
                _post(engine, force=safe == target)
                continue
            _post(engine, force=False)
        _receive(engine, cut)


def _post(engine: Engine, force: bool) -> None:
    """Send each other rank a letter, if our report is another than the last. Its first row has our
    promise; how many cuts we have reached; once we were asked to stop, the earliest cut that we can
    still stop at (else -1); and how many events we have handled. Then come the report, in as many
    rows as it takes, and events."""
    transport, channels = engine.transport, engine.channels
    me = transport.rank
    letters, places = engine.letters()
    for peer in range(transport.size):
        channels.sent[peer] += places[peer + 1] - places[peer] - 1
    report = _own_report(engine)
    promise = min(report[0], *channels.promise, FOREVER - engine.lookahead) + engine.lookahead
    if report == channels.reported and not force:
        return
    channels.reported = report
    on, bid = channels.bids.get(me, (0, -1))
    head = [promise, channels.marks[me], bid if on > channels.marks[me] else -1, engine.events]
    width = letters.shape[1]
    words = [*head, *[0] * (width - WORDS), *report, *[0] * (-len(report) % width)]
    bare = np.array(words, np.int64).reshape(-1, width)
    for peer in range(transport.size):
        if peer != me:
            events = letters[places[peer] + 1 : places[peer + 1]]
            transport.post(peer, np.concatenate((bare, events)) if len(events) else bare)
    engine.lap("exchange")


def _own_report(engine: Engine) -> list[int]:
    return [engine.next_time(), *engine.channels.sent, *engine.channels.received]


def _receive(engine: Engine, cut: int) -> None:
    channels = engine.channels
    words = 1 + 2 * len(channels.marks)
    messages = engine.transport.collect(wait=True)
    engine.lap("waiting")
    engine.rounds += 1
    letters = []
    for sender, letter in messages:
        width = letter.shape[1]
        heads = 1 + -(-words // width)
        promise, channels.marks[sender], bid, channels.handled[sender] = letter[0, :WORDS].tolist()
        channels.promise[sender] = max(channels.promise[sender], promise)  # we may know more
        if bid >= 0:
            channels.bids[sender] = channels.marks[sender] + 1, bid
        channels.reports[sender] = letter[1:heads].reshape(-1)[:words]
        channels.received[sender] += len(letter) - heads
        letters.append(letter[heads - 1 :])
    engine.deliver(letters)
    engine.report(min(*channels.promise, cut), engine.events + sum(channels.handled))
    engine.lap("exchange")


def _skip_idle_time(engine: Engine) -> int:
    """No event that is here is safe yet, but perhaps none is pending anywhere for longer than the
    promises tell. Returns what is safe then."""
    channels = engine.channels
    channels.reports[engine.transport.rank] = _own_report(engine)
    floor = channels.agreed(engine.lookahead)
    if floor is not None:
        least = min(floor, FOREVER - engine.lookahead) + engine.lookahead
        channels.promise = [max(promise, least) for promise in channels.promise]
    return min(channels.promise)


PROTOCOLS: dict[str, Callable[[Engine, int], Arrival]] = {"window": window, "null": null}
