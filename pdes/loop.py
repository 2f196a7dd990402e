"""The hot loop, and the one call by which a model schedules an event.

`advance` is written once and compiled once per model, with that model's `handle` inlined, so that a
run is a single compiled function from one horizon to the next.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pdes.events import FOREVER, KEY, KINDS, TIME, WORDS, A, B, Rows, agent_of, kind_of
from pdes.jit import bind, kernel, prefetch, record, ticks
from pdes.parcels import TAKEN, Pool, give, take
from pdes.queue import CAPACITY, COUNT, DUE, Cells, drop, next_time, push

NOW, FIRST, LAST, AGENTS, LOOKAHEAD, REACHED, COMING, EVENTS, PEAK, OUT, MADE = range(11)
"""Words of `Sim.ctl`: the time of the event being handled; this rank's agents are FIRST .. LAST - 1
of AGENTS; the least delay of an event for another rank; the horizon before which all is done; the
time of the event that comes next; events handled; the most that were pending at once; events in
the outbox; events that the handler has made."""
QUEUE_TICKS, ALL_TICKS, FAULT, BEARERS, RECEIPTS = range(11, 16)
"""Ticks counted so far, of the events that are timed; the rule that was broken; the kinds of events
that bear a parcel, and those that are received and not handled, as bits."""
DECISIONS, SPARE, CAUSE, CULPRIT = 16, 17, 18, 18 + WORDS
"""The kinds that are decided in Python, likewise; what a decision leaves of the budget; where the
handled and the scheduled event are noted when a rule is broken, and the event that is to be
decided."""
CTL_WORDS = CULPRIT + WORDS

DONE, QUEUE_FULL, OUTBOX_FULL, POOL_FULL, BUDGET, FAULTY, DECIDE = range(7)
"""Reasons why `advance` returned: it is at the horizon, needs room, was asked to stop, failed, or
has met a decision that is made in Python."""

PAST, TOO_SOON, NOBODY, TOO_MANY, LATE = range(1, 6)
"""The rules that can be broken: four by a handler, the last by another rank."""

NEXT, ROWS, STOP, HANDLED = range(WORDS)
"""The words at the head of a letter to another rank: the earliest event that this rank has or has
just sent; how many events follow; whether a stop is asked for; how many events it has handled."""

HANDLED_KIND, SAMPLED_KIND, TICKS_KIND = range(3)
"""Words of a row of `Sim.kinds`: events of that kind, how many were timed, and their ticks outside
the queue."""

SAMPLE_EVERY = 256
"""One event in so many is timed, so that every run can say where its time went."""


@record
class Sim(NamedTuple):
    """The arguments of a handler besides its own state: it reads `now` and calls `schedule`."""

    ctl: Any
    queue: Cells
    made: Any
    """Room for the events that one call of the handler makes."""
    out: Any
    """Events for other ranks, as they come."""
    starts: Any
    """Every rank's first agent and, last, how many agents there are."""
    letters: Any
    """The same events grouped by rank, each group behind a head row: what is sent."""
    places: Any
    """Rank r's letter is letters[places[r] : places[r + 1]]."""
    pool: Pool
    """The parcels."""
    kinds: Any
    """What each kind of event cost so far."""


@kernel
def schedule(sim: Sim, time: int, key: int, a: int, b: int) -> None:
    """Schedule an event at `time`, here or on whichever rank has the key's agent.

    `time` may be now (an event of the same instant is handled in row order) but not before; for an
    agent of another rank it is at least the lookahead away.
    """
    made = sim.ctl[MADE]
    sim.ctl[MADE] = made + 1
    if made < sim.made.shape[0]:
        sim.made[made, TIME] = time
        sim.made[made, KEY] = key
        sim.made[made, A] = a
        sim.made[made, B] = b
    else:
        _note(sim.ctl, TOO_MANY, time, key, a, b)


@kernel
def last_of_instant(sim: Sim, time: int) -> bool:
    """Tells a handler, at `time`, whether nothing else is to happen here at this instant: neither
    an event that is pending nor one that it has just made."""
    ctl, queue = sim.ctl, sim.queue
    last = queue.ctl[COUNT] == 0 or (queue.ctl[DUE] > 0 and queue.due[0, TIME] > time)
    for i in range(ctl[MADE]):
        last = last and sim.made[i, TIME] > time
    return last  # type: ignore[no-any-return]


@kernel
def _dispatch(sim: Sim, time: int, key: int, a: int, b: int) -> None:
    """Put an event into the queue or the outbox; in one place, so that the queue's code is compiled
    only once."""
    ctl = sim.ctl
    agent = agent_of(key)
    if time < ctl[NOW]:
        _note(ctl, PAST, time, key, a, b)
    elif ctl[FIRST] <= agent < ctl[LAST]:
        push(sim.queue, time, key, a, b)
    elif agent >= ctl[AGENTS]:
        _note(ctl, NOBODY, time, key, a, b)
    elif time < ctl[NOW] + ctl[LOOKAHEAD]:
        _note(ctl, TOO_SOON, time, key, a, b)
    else:
        n = ctl[OUT]
        sim.out[n, TIME] = time
        sim.out[n, KEY] = key
        sim.out[n, A] = a
        sim.out[n, B] = b
        if (ctl[BEARERS] >> kind_of(key)) & 1:
            for w in range(sim.pool.rows.shape[1]):
                sim.out[n, WORDS + w] = sim.pool.rows[a, w]
            give(sim.pool, a)
        ctl[OUT] = n + 1


@kernel
def new_parcel(sim: Sim) -> int:
    """Returns the number of a new parcel, to be filled: its words are not cleared."""
    return take(sim.pool)


@kernel
def drop_parcel(sim: Sim, number: int) -> None:
    give(sim.pool, number)


@kernel
def local(sim: Sim, key: int) -> int:
    """Returns the row, in this rank's state, of the agent that an event is at."""
    return agent_of(key) - sim.ctl[FIRST]  # type: ignore[no-any-return]


@kernel
def _write(ctl: Any, where: int, time: int, key: int, a: int, b: int) -> None:
    ctl[where + TIME] = time
    ctl[where + KEY] = key
    ctl[where + A] = a
    ctl[where + B] = b


@kernel
def _note(ctl: Any, rule: int, time: int, key: int, a: int, b: int) -> None:
    if ctl[FAULT] == 0:
        ctl[FAULT] = rule
        _write(ctl, CULPRIT, time, key, a, b)


def handle(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> None:
    """Stands for the model's handler, which `compile_loop` puts in its place."""
    raise AssertionError("a loop that was compiled for no model")


def receive(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> None:
    """Stands for the model's, where it has one."""


FANOUT, TAKES = 1, 0
"""Stand for the model's own, likewise."""


def advance(sim: Sim, state: Any, incoming: Any, horizon: int, budget: int) -> int:
    """Accept events from other ranks, then handle everything before `horizon`, at most `budget`
    events. Returns why it stopped. At the horizon the letters to the other ranks are ready.

    The caller has made room for `incoming`, and passes it once. A decision costs one event of the
    budget, like any other: what is left of it is in SPARE, and the caller goes on with that. There
    is room then for one event more than the model's fanout.
    """
    ctl, queue = sim.ctl, sim.queue
    for i in range(incoming.shape[0]):
        t, k, a, b = incoming[i, TIME], incoming[i, KEY], incoming[i, A], incoming[i, B]
        if t < ctl[REACHED]:
            _note(ctl, LATE, t, k, a, b)
            return FAULTY
        if (ctl[RECEIPTS] >> kind_of(k)) & 1:
            ctl[MADE] = 0
            receive(sim, state, t, k, a, b)
            for j in range(min(ctl[MADE], sim.made.shape[0])):
                made = sim.made[j]
                push(queue, made[TIME], made[KEY], made[A], made[B])
            continue
        if (ctl[BEARERS] >> kind_of(k)) & 1:
            a = take(sim.pool)
            for w in range(sim.pool.rows.shape[1]):
                sim.pool.rows[a, w] = incoming[i, WORDS + w]
        push(queue, t, k, a, b)
    while budget > 0:
        sampled = ctl[EVENTS] & (SAMPLE_EVERY - 1) == 0
        began = ticks() if sampled else 0
        time = next_time(queue)
        if time >= horizon:
            ctl[REACHED] = horizon
            ctl[COMING] = time
            _write_letters(sim, time)
            return DONE
        if queue.ctl[COUNT] + FANOUT > queue.ctl[CAPACITY]:
            return QUEUE_FULL
        if ctl[OUT] + FANOUT > sim.out.shape[0]:
            return OUTBOX_FULL
        if TAKES > 0 and sim.pool.ctl[TAKEN] + TAKES > sim.pool.rows.shape[0]:
            return POOL_FULL
        key, a, b = queue.due[0, KEY], queue.due[0, A], queue.due[0, B]
        drop(queue)
        if next_time(queue) != FOREVER and (ctl[BEARERS] >> kind_of(queue.due[0, KEY])) & 1:
            prefetch(sim.pool.rows, queue.due[0, A])
        ctl[NOW] = time
        ctl[MADE] = 0
        ctl[EVENTS] += 1
        kind = sim.kinds[kind_of(key)]
        kind[HANDLED_KIND] += 1
        if (ctl[DECISIONS] >> kind_of(key)) & 1:
            _write(ctl, CAUSE, time, key, a, b)
            ctl[PEAK] = max(ctl[PEAK], queue.ctl[COUNT] + ctl[OUT])
            ctl[SPARE] = budget - 1
            return DECIDE
        taken = ticks() if sampled else 0
        handle(sim, state, time, key, a, b)
        handled = ticks() if sampled else 0
        for i in range(min(ctl[MADE], sim.made.shape[0])):
            made = sim.made[i]
            _dispatch(sim, made[TIME], made[KEY], made[A], made[B])
        if sampled:
            now = ticks()
            kind[SAMPLED_KIND] += 1
            kind[TICKS_KIND] += handled - taken
            ctl[QUEUE_TICKS] += (now - handled) + (taken - began)
            ctl[ALL_TICKS] += now - began
        ctl[PEAK] = max(ctl[PEAK], queue.ctl[COUNT] + ctl[OUT])
        if ctl[FAULT] != 0:
            _write(ctl, CAUSE, time, key, a, b)
            return FAULTY
        budget -= 1
    return BUDGET


@kernel
def _write_letters(sim: Sim, next_time: int) -> None:
    """Empty the outbox into a letter for each rank, by counting sort."""
    ctl, out, letters, places = sim.ctl, sim.out, sim.letters, sim.places
    ranks = places.shape[0] - 1
    n = ctl[OUT]
    places[:] = 1
    for i in range(n):
        places[_owner(sim.starts, ranks, agent_of(out[i, KEY]))] += 1
        next_time = min(next_time, out[i, TIME])
    place = 0
    for r in range(ranks + 1):
        size = places[r]
        places[r] = place
        if r < ranks:
            letters[place, NEXT] = next_time
            letters[place, ROWS] = size - 1
            letters[place, STOP] = 0
            letters[place, HANDLED] = ctl[EVENTS]
        place += size
    for i in range(n):
        rank = _owner(sim.starts, ranks, agent_of(out[i, KEY]))
        places[rank] += 1
        for w in range(out.shape[1]):
            letters[places[rank], w] = out[i, w]
    for r in range(ranks, 0, -1):
        places[r] = places[r - 1] + 1
    places[0] = 0
    ctl[OUT] = 0


@kernel
def _owner(starts: Any, ranks: int, agent: int) -> int:
    low, high = 0, ranks
    while high - low > 1:
        middle = (low + high) >> 1
        if starts[middle] <= agent:
            low = middle
        else:
            high = middle
    return low


@lru_cache(maxsize=64)
def compile_loop(name: str, handle: Any, receive: Any, fanout: int, takes: int) -> Any:
    """Returns `advance` for one model. A process that runs a model again, as a study does, reuses
    it."""
    names = {"handle": handle, "receive": receive, "FANOUT": fanout, "TAKES": takes}
    return bind(advance, f"advance_{name}", **names)


def new_ctl() -> Rows:
    return np.zeros(CTL_WORDS, np.int64)


def new_kinds() -> Rows:
    return np.zeros((KINDS, 3), np.int64)
