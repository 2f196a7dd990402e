"""Decisions: events that a model handles in Python, and what it may return for one.

When the event of such a kind comes up the compiled loop comes back, and the model's `decide` says
what the event makes:

* a tuple `(time, key, a, b)`, or a list of these: events that bear no parcel;
* rows of events, an array with room for a parcel's words behind each;
* a `Decision`, which has events in one of these forms, and rows for logs (`pdes.log`).

A tuple for an agent of this rank goes the quick way, without numpy: some microseconds in all. The
rules are those of a handler, and whatever breaks one is named alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pdes.errors import Fault
from pdes.events import AGENT_MASK, KEY, KIND_SHIFT, PORT_BITS, TIME, WORDS, A, B, Rows
from pdes.log import Appended
from pdes.loop import NOBODY, PAST, TOO_SOON
from pdes.model import Carries, Decides, Decision
from pdes.partition import Partition
from pdes.rules import Event, Rules, describe


class Answer(NamedTuple):
    """The events of a decision, sorted: for this rank, and for others if there are any."""

    mine: Rows
    others: Rows | None = None


class Decider:
    """Asks the model on one rank, and checks what it answers."""

    def __init__(
        self, decides: Decides, carries: Carries, partition: Partition, rank: int, rules: Rules
    ) -> None:
        self._model, self._rules, self._partition = rules.model, rules, partition
        self._decide, self._bearers = decides.decide, carries.bearers
        self._notices, self._width = decides.notices, WORDS + carries.parcel
        self._first, self._last = partition.block(rank)
        self._slow_kinds = sum(1 << kind for kind in {*self._bearers, *self._notices})
        one = np.zeros((1, WORDS), np.int64)
        self._words = one.reshape(-1).data
        self.quick = Answer(one)
        """The answer of a decision that scheduled one event for this rank: there is room for it."""
        self.nothing = Answer(np.zeros((0, self._width), np.int64))
        """The answer of a decision that scheduled none."""
        self.log: Callable[[int, int, Appended], None] | None = None
        """Takes the rows for logs, with the time and the agent; without it they are dropped."""

    def decide(self, state: Any, time: int, key: int, a: int, b: int) -> Answer:
        """Returns the events of this decision. The arrays are valid until the next decision."""
        made: Any = self._decide(state, time, key, a, b)
        if type(made) is Decision:
            made, appended = made
            if appended and self.log is not None:
                self.log(time, (key >> PORT_BITS) & AGENT_MASK, appended)
        if type(made) is list:
            if not made:
                return self.nothing
            if len(made) == 1:
                made = made[0]
        if type(made) is tuple:
            try:
                when, where, x, y = made
                if (
                    self._first <= (where >> PORT_BITS) & AGENT_MASK < self._last
                    and when >= time
                    and not (self._slow_kinds >> (where >> KIND_SHIFT)) & 1
                ):
                    words = self._words
                    words[TIME], words[KEY], words[A], words[B] = when, where, x, y
                    return self.quick
            except (ValueError, TypeError):
                raise self._no_event(made) from None
            made = [made]
        rows = self._rows_of(made) if type(made) is list else self._rows(made)
        return self._sorted((time, key, a, b), rows)

    def _rows_of(self, events: list[Any]) -> Rows:
        """Returns the rows of events that were given as tuples."""
        rows = np.zeros((len(events), self._width), np.int64)
        for event in events:
            if type(event) is not tuple or len(event) != WORDS:
                raise self._no_event(event)
        try:
            rows[:, :WORDS] = events
        except (ValueError, TypeError, OverflowError):
            raise self._no_event(events) from None
        borne = np.isin(rows[:, KEY] >> KIND_SHIFT, self._bearers) if self._bearers else ()
        for row in rows[borne].tolist() if len(borne) else ():
            raise Fault(
                f"{self._model.name}: `decide` made {describe(self._model, row)} as a tuple: events"
                " of this kind bear a parcel, whose words only an array of rows has"
            )
        return rows

    def _rows(self, made: Any) -> Rows:
        """Returns rows as they are, if that is what they are."""
        if not isinstance(made, np.ndarray) or made.ndim != 2 or made.shape[1] != self._width:
            raise self._no_event(made)
        return np.ascontiguousarray(made, np.int64)

    def _no_event(self, made: Any) -> Fault:
        return Fault(
            f"{self._model.name}: `decide` returned {made!r}: an event is a tuple (time, key, a, b)"
            f" of int64, and several are a list of these or an array of rows of {self._width} words"
        )

    def _sorted(self, cause: Event, rows: Rows) -> Answer:
        rows = self._noticed(rows)
        time, agents = cause[TIME], (rows[:, KEY] >> PORT_BITS) & AGENT_MASK
        mine = (agents >= self._first) & (agents < self._last)
        nobody = agents >= self._rules.agents
        wrong = nobody | (rows[:, TIME] < time + np.where(mine, 0, self._rules.lookahead))
        if wrong.any():
            at = int(wrong.argmax())
            culprit = rows[at, :WORDS].tolist()
            rule = PAST if culprit[TIME] < time else NOBODY if nobody[at] else TOO_SOON
            raise Fault(self._rules.broken(rule, cause, culprit, time))
        return Answer(rows, None) if mine.all() else Answer(rows[mine], rows[~mine])

    def _noticed(self, rows: Rows) -> Rows:
        """Returns the rows with one of every notice for each rank."""
        if not self._notices:
            return rows
        noticed = np.isin(rows[:, KEY] >> KIND_SHIFT, self._notices)
        if not noticed.any():
            return rows
        copies = np.repeat(rows[noticed][None], self._partition.ranks, axis=0)
        copies[:, :, KEY] &= ~(AGENT_MASK << PORT_BITS)
        copies[:, :, KEY] |= self._partition.agent_starts[:-1, None] << PORT_BITS
        return np.concatenate((copies.reshape(-1, rows.shape[1]), rows[~noticed]))
