"""What ranks have saved is dealt to other ranks: every row, event and parcel once, and to the rank
that has its agent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from pdes.dealing import ByAgent, Dealing, Deals, Dealt, Other, Part, chained, dealt
from pdes.errors import Refused
from pdes.events import AGENT_MASK, KEY, KIND_SHIFT, PORT_BITS, TIME, A, B, pack
from pdes.model import Audits, Carries, Decides
from pdes.parcels import FREE, NEXT, TAKEN, Pool, new_pool, reserved

AGENTS, PER_UNIT, WORDS = 12, 2, 3
WAIT, CARRY, TELL = range(3)
"""Kinds: one that bears nothing, one that bears a parcel, and a notice that bears one."""


class State(NamedTuple):
    """An array of each kind."""

    numbers: Any  # constant
    rows: Any  # [agent, word]: a value, the first parcel of a chain, and the last
    beside: Any  # [word, unit]
    known: Any  # the same on every rank
    counted: Any  # by rank
    board: Any  # on the first rank


class Chains(Carries, Decides, Deals, Audits):
    """What dealing needs of a model. A parcel has a value, and the number of its row on the rank,
    which only that rank understands; in the whole machine it is that of the agent."""

    name, parcel, bearers, notices = "chains", WORDS, (CARRY, TELL), (TELL,)

    def units(self) -> Any:
        return np.arange(0, AGENTS + 1, PER_UNIT)

    def state(self, first: int, last: int) -> State:
        rows = np.zeros((last - first, 3), np.int64)
        rows[:, 1] = -1
        return State(np.array([first, 7]), rows, np.zeros((2, (last - first) // PER_UNIT)),
                     np.zeros(2, np.int64), np.zeros(3, np.int32),
                     np.zeros(4 if first == 0 else 0))  # fmt: skip

    def dealing(self) -> Dealing | None:
        return {
            "numbers": Other.CONSTANT,
            "rows": ByAgent(None, 0, lambda rows: (rows[:, 1],), lambda rows: (rows[:, 2],)),
            "beside": ByAgent(lambda agent: agent // PER_UNIT, axis=1),
            "known": Other.SAME,
            "counted": Other.SUM,
            "board": Other.FIRST,
        }

    def to_global(self, state: Any, pending: Any, parcels: Any, first: int, last: int) -> None:
        parcels[:, 2] += first

    def to_local(self, state: Any, pending: Any, parcels: Any, first: int, last: int) -> None:
        parcels[:, 2] -= first

    def check(self, state: Any, pending: Any, parcels: Any) -> None:
        pass


class Memory:
    """What a rank has saved, in memory."""

    def __init__(self, made: Dealt) -> None:
        self._arrays = {"pending": made.pending, "pool": made.pool.ctl, "parcels": made.pool.rows,
                        **{f"state.{n}": a for n, a in made.state._asdict().items()}}  # fmt: skip

    def read(self, name: str, axis: int = 0, rows: slice = slice(None)) -> Any:
        return self._arrays[name][(*[slice(None)] * axis, rows)].copy()


def blocks(cuts: set[int]) -> list[tuple[int, int]]:
    """Returns the agents of ranks whose units begin at 0 and at these."""
    edges = [0, *(PER_UNIT * cut for cut in sorted(cuts)), AGENTS]
    return [*pairwise(edges)]


cuts = st.sets(st.integers(1, AGENTS // PER_UNIT - 1), max_size=4)


def whole(chains: Sequence[int], events: Sequence[tuple[int, int, bool]], notices: int) -> Dealt:
    """Returns the state of one rank: chains of these lengths, events by time, agent and whether
    they bear a parcel, and notices; in the pool there is garbage between the parcels."""
    model = Chains()
    state, pool = model.state(0, AGENTS), reserved(new_pool(WORDS), 400)
    pool.rows[:] = np.random.default_rng(1).integers(0, 400, pool.rows.shape)
    numbers = iter(np.random.default_rng(2).permutation(400).tolist())
    taken = 0

    def take(agent: int) -> int:
        nonlocal taken
        number, taken = next(numbers), taken + 1
        pool.rows[number, 1:] = 1000 + taken, agent
        return number

    for agent, length in enumerate(chains):
        state.rows[agent] = 10 * agent, -1, 399 - agent
        for _ in range(length):
            number = take(agent)
            pool.rows[number, NEXT] = -1
            if state.rows[agent, 1] < 0:
                state.rows[agent, 1] = number
            else:
                pool.rows[state.rows[agent, 2], NEXT] = number
            state.rows[agent, 2] = number
    state.beside[:] = np.arange(12).reshape(2, 6)
    state.known[:], state.counted[:], state.board[:] = (5, 6), (1, 2, 3), 9
    rows = [(time, pack(CARRY if bears else WAIT, agent, n), take(agent) if bears else 8, 4)
            for n, (time, agent, bears) in enumerate(events)]  # fmt: skip
    rows += [(50 + n, pack(TELL, 0, 1), take(0), n) for n in range(notices)]
    pool.ctl[:] = 0, taken
    return Dealt(state, np.array(rows, np.int64).reshape(-1, 4), pool)


def ranks(found: Sequence[Dealt], held: list[tuple[int, int]], cut: set[int]) -> list[Dealt]:
    """Deal what these ranks have to others."""
    model = Chains()
    parts = [Part(*block, Memory(made)) for block, made in zip(held, found, strict=True)]
    return [
        dealt(model, [p for p in parts if p.first < last and first < p.last],
              model.state(first, last), first, last)
        for first, last in blocks(cut)
    ]  # fmt: skip


def told(found: Sequence[Dealt], held: list[tuple[int, int]]) -> dict[str, Any]:
    """Returns all that ranks have, by agent, in words that do not depend on ranks. Every parcel
    that is taken is referred to once, and knows the row of its agent on this rank."""
    rows, chains, events, notices = [], [], [], []
    for made, (first, last) in zip(found, held, strict=True):
        state, pending, pool = made
        parcels, referred = pool.rows, []
        for agent in range(first, last):
            value, head, tail = state.rows[agent - first].tolist()
            _, numbers = chained(parcels, np.array([head]))
            assert head < 0 or numbers[-1] == tail
            assert (parcels[numbers, 2] == agent - first).all()
            referred += numbers.tolist()
            rows.append(value)
            chains.append(parcels[numbers, 1].tolist())
        for row in pending.tolist():
            kind, agent = row[KEY] >> KIND_SHIFT, (row[KEY] >> PORT_BITS) & AGENT_MASK
            assert first <= agent < last
            if kind != WAIT:
                referred.append(row[A])
                value = int(parcels[row[A], 1])
                if kind == TELL:
                    assert agent == first
                    notices.append((row[TIME], row[B], value))
                    continue
                assert parcels[row[A], 2] == agent - first
                row[A] = value
            events.append(tuple(row))
        assert len(set(referred)) == len(referred) == pool.ctl[TAKEN]
        assert_free(pool, set(referred))
        assert state.numbers.tolist() == [first, 7]
        assert state.known.tolist() == [5, 6]
        assert state.board.tolist() == ([9] * 4 if first == 0 else [])
    return {
        "rows": rows, "chains": chains, "events": sorted(events),
        "notices": sorted(notices), "beside": np.hstack([m.state.beside for m in found]).tolist(),
        "counted": sum(made.state.counted for made in found).tolist(),
    }  # fmt: skip


def assert_free(pool: Pool, taken: set[int]) -> None:
    """Every other parcel can be had."""
    at, free = int(pool.ctl[FREE]), set()
    while at < len(pool.rows):
        free.add(at)
        at = int(pool.rows[at, NEXT])
    assert free == {*range(len(pool.rows))} - taken


@examples(25)
@given(
    chains=st.lists(st.integers(0, 4), min_size=AGENTS, max_size=AGENTS),
    events=st.lists(st.tuples(st.integers(0, 9), st.integers(0, AGENTS - 1), st.booleans()),
                    max_size=15),
    notices=st.integers(0, 3),
    first=cuts, second=cuts, third=cuts,
)  # fmt: skip
def test_however_often_it_is_dealt_nothing_is_lost(
    chains: list[int], events: list[tuple[int, int, bool]], notices: int, first: set[int],
    second: set[int], third: set[int],
) -> None:  # fmt: skip
    found, held, before = [whole(chains, events, notices)], [(0, AGENTS)], None
    for cut in (first, second, third, set[int]()):
        found, held = ranks(found, held, cut), blocks(cut)
        now = told(found, held)
        assert now["notices"] == sorted(now["notices"][:: len(held)] * len(held))
        now["notices"] = now["notices"][:: len(held)]
        assert before is None or now == before
        before = now
    assert before is not None
    assert [len(chain) for chain in before["chains"]] == chains
    assert len(before["events"]) == len(events)
    assert len(before["notices"]) == notices
    assert before["counted"] == [1, 2, 3]


def test_arrays_that_are_not_named_are_refused() -> None:
    class Forgetful(Chains):
        def dealing(self) -> Dealing:
            return {name: how for name, how in (super().dealing() or {}).items() if name != "known"}

    model, made = Forgetful(), whole([0] * AGENTS, [], 0)
    with pytest.raises(Refused, match=r"chains: `dealing` and `state` .* \['known'\]"):
        dealt(model, [Part(0, AGENTS, Memory(made))], model.state(0, 6), 0, 6)


class Plain(Chains):
    """Says nothing of how it is dealt."""

    def dealing(self) -> None:
        return None

    def to_local(self, *_: Any) -> None:
        pass

    to_global = to_local


def test_of_a_model_that_says_nothing_what_is_not_by_agent_may_not_have_changed() -> None:
    model, made = Plain(), whole([0] * AGENTS, [], 0)
    words = r"chains: its array \w+ has not one row .*: .*Deals\.dealing.* as many as before"
    with pytest.raises(Refused, match=words):
        dealt(model, [Part(0, AGENTS, Memory(made))], model.state(0, 6), 0, 6)


def test_of_a_model_that_says_nothing_events_bear_all_parcels() -> None:
    model = Plain()
    made = whole([0] * 11 + [1], [(3, 11, True)], 0)
    fresh = model.state(0, AGENTS)._replace(rows=made.state.rows)
    made = made._replace(state=fresh)
    with pytest.raises(Refused, match=r"chains: its state refers to parcels: .*Deals\.dealing"):
        dealt(model, [Part(0, AGENTS, Memory(made))], model.state(0, 6), 0, 6)
    borne = whole([0] * AGENTS, [(3, 11, True)], 0)._replace(state=fresh)
    assert dealt(model, [Part(0, AGENTS, Memory(borne))], model.state(6, 12), 6, 12).pool.ctl[TAKEN]
