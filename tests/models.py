"""Small models that do what PHOLD does not: break the rules, or multiply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pdes.events import WORDS, Rows, agent_of, key_of, kind_of, pack, port_of
from pdes.jit import kernel
from pdes.loop import Sim, drop_parcel, local, schedule
from pdes.model import Carries, Decides, Ends, Lookahead, Model
from pdes.partition import Partition
from pdes.queue import rows_of
from pdes.random import below, draw


class RogueState(NamedTuple):
    integers: Any
    handled: Any


DELAY, TARGET, COPIES = range(3)


@kernel
def rogue(sim: Sim, state: RogueState, time: int, key: int, a: int, b: int) -> None:
    n = state.integers
    agent = agent_of(key)
    state.handled[local(sim, key)] += 1
    target = agent if n[TARGET] < 0 else n[TARGET]
    for _ in range(n[COPIES]):
        schedule(sim, time + n[DELAY], key_of(0, target, 0), 0, 0)


@dataclass(frozen=True)
class Rogue(Model):
    """An agent whose events schedule `copies` events at `target` (its own if negative) after
    `delay`, whatever it promised."""

    delay: int = 1000
    target: int = -1
    copies: int = 1
    promised: int = 500_000
    first_time: int = 0
    first_agent: int = 0
    agents: int = 4

    name = "rogue"
    handle = staticmethod(rogue)
    fanout = 1
    kinds = ("tick",)

    def units(self) -> Any:
        return np.arange(self.agents + 1)

    def lookahead(self, partition: Partition) -> Lookahead:
        return Lookahead(self.promised, "the cable from agent 1 to agent 2")

    def state(self, first: int, last: int) -> RogueState:
        return RogueState(
            np.array([self.delay, self.target, self.copies]), np.zeros(last - first, np.int64)
        )

    def start(self, state: RogueState, first: int, last: int) -> Rows:
        return rows_of([(self.first_time, pack(0, self.first_agent, 0), 0, 0)] * (first == 0))

    def fingerprint(self, state: RogueState) -> Any:
        return state.handled


@kernel
def burst(sim: Sim, state: RogueState, time: int, key: int, a: int, b: int) -> None:
    state.handled[0] += 1
    schedule(sim, time + (10**9 if a < state.integers[COPIES] else 1), key, a + 1, b)


@dataclass(frozen=True)
class Burst(Rogue):
    """`copies` events a millisecond apart, then one every picosecond, for ever."""

    copies: int = 80

    name, handle = "burst", staticmethod(burst)


class TreeState(NamedTuple):
    depth: Any
    leaves: Any


@kernel
def branch(sim: Sim, state: TreeState, time: int, key: int, a: int, b: int) -> None:
    if a < state.depth[0]:
        for child in range(2):
            schedule(sim, time + 1000, key, a + 1, 2 * b + child)
    else:
        state.leaves[0] += 1


@dataclass(frozen=True)
class Tree(Model):
    """Every event schedules two, `depth` times over: 2**depth events are pending at the end."""

    depth: int

    name = "tree"
    handle = staticmethod(branch)
    fanout = 2
    kinds = ("branch",)

    def units(self) -> Any:
        return np.arange(2)

    def lookahead(self, partition: Partition) -> Lookahead:
        raise AssertionError("one agent is never on two ranks")

    def state(self, first: int, last: int) -> TreeState:
        return TreeState(np.array([self.depth]), np.zeros(1, np.int64))

    def start(self, state: TreeState, first: int, last: int) -> Rows:
        return rows_of([(0, pack(0, 0, 0), 0, 0)])

    def fingerprint(self, state: TreeState) -> Any:
        return state.leaves


class NetState(NamedTuple):
    numbers: Any
    mate: Any
    count: Any
    history: Any


GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel
def relay(sim: Sim, state: NetState, time: int, key: int, a: int, b: int) -> None:
    agent, kind, me = agent_of(key), kind_of(key), local(sim, key)
    n = state.count[me]
    state.count[me] = n + 1
    mixed = np.uint64(time) ^ np.uint64(key) ^ (np.uint64(a) << np.uint64(7))
    state.history[me] = (state.history[me] ^ mixed ^ (np.uint64(b) << np.uint64(33))) * GOLDEN
    w0, w1, w2, w3 = draw(state.numbers[0], agent, n)
    if kind == 0:
        schedule(sim, time, key_of(1, state.mate[me], below(w0, 5)), agent, b)
        if b > 0:
            for port in range(2):
                target = below(w1 if port == 0 else w2, state.numbers[1])
                later = time + state.numbers[2] + below(w3, 4) * 10
                schedule(sim, later, key_of(2, target, port), agent, b - 1)
    elif kind == 1:
        schedule(sim, time + below(w0, 3), key_of(2, agent, port_of(key) + 1), a, -1)
    elif b >= 0:
        schedule(sim, time + below(w0, 2), key_of(0, agent, 0), a, b)


@dataclass(frozen=True)
class Net(Model):
    """A model with all that PHOLD lacks: three kinds of events, ports, a fanout of three, units of
    several agents and of unequal weight, links without delay inside a unit, many events at one
    instant."""

    size: int = 12
    depth: int = 6
    delay: int = 1000
    seed: int = 3

    name, handle, fanout, kinds = "net", staticmethod(relay), 3, ("ask", "tell", "pass")

    def units(self) -> Any:
        return np.concatenate(([0], np.cumsum(2 * (1 + np.arange(self.size) % 4))))

    def weights(self) -> Any:
        return np.diff(self.units()).astype(float)

    def lookahead(self, partition: Partition) -> Lookahead:
        return Lookahead(self.delay, "a link between units")

    def state(self, first: int, last: int) -> NetState:
        numbers = np.array([self.seed, int(self.units()[-1]), self.delay])
        count, history = np.zeros(last - first, np.int64), np.zeros(last - first, np.uint64)
        return NetState(numbers, np.arange(first, last) ^ 1, count, history)

    def start(self, state: NetState, first: int, last: int) -> Rows:
        return rows_of((0, pack(0, agent, 0), 0, self.depth) for agent in range(first, last))

    def fingerprint(self, state: NetState) -> Any:
        return np.column_stack((state.count.view(np.uint64), state.history))


class OfficeState(NamedTuple):
    numbers: Any
    asked: Any
    seen: Any
    history: Any


ASK, WORK = range(2)
ORDER, LAST_ORDER = 1, 2
"""Words of a parcel: which order it is, and is it the last of its round."""


@kernel
def work(sim: Sim, state: OfficeState, time: int, key: int, a: int, b: int) -> None:
    me, order = local(sim, key), sim.pool.rows[a]
    state.seen[me] += 1
    mixed = np.uint64(time) ^ (np.uint64(order[ORDER]) << np.uint64(20)) ^ np.uint64(b)
    state.history[me] = (state.history[me] ^ mixed) * GOLDEN
    if order[LAST_ORDER] == 1 and b > 0:
        delay, clerk = state.numbers[0], state.numbers[1]
        schedule(sim, time + delay, key_of(ASK, clerk, 0), agent_of(key), b)
    drop_parcel(sim, a)


@dataclass(frozen=True)
class Office(Model, Carries, Decides, Ends):
    """A clerk, asked `rounds` times, decides in Python: `orders` orders for all agents in turn, as
    parcels, each at a port of its own (of events with the same time and key, those with parcels are
    in no order); whoever has the last of them asks again. `delay` is what the clerk keeps to, `way`
    what the question takes, `target` (if not negative) whom every order goes to."""

    agents: int = 7
    orders: int = 5
    rounds: int = 6
    clerk: int = 0
    delay: int = 1000
    way: int = 1000
    promised: int = 1000
    target: int = -1

    name, fanout, kinds = "office", 1, ("ask", "work")
    handle = staticmethod(work)
    parcel, bearers, decisions = 4, (WORK,), (ASK,)

    def units(self) -> Any:
        return np.arange(self.agents + 1)

    def lookahead(self, partition: Partition) -> Lookahead:
        return Lookahead(self.promised, "an order of the clerk's")

    def state(self, first: int, last: int) -> OfficeState:
        n = last - first
        numbers = np.array([self.way, self.clerk, first])
        return OfficeState(numbers, *(np.zeros(n, np.int64) for _ in "as"), np.zeros(n, np.uint64))

    def start(self, state: OfficeState, first: int, last: int) -> Rows:
        here = first <= self.clerk < last
        return rows_of([(0, pack(ASK, self.clerk, 0), -1, self.rounds)] * here)

    def decide(self, state: OfficeState, time: int, key: int, a: int, b: int) -> Rows:
        clerk = self.clerk - int(state.numbers[2])
        done = int(state.asked[clerk]) * self.orders
        state.asked[clerk] += 1
        rows = np.zeros((self.orders, WORDS + self.parcel), np.int64)
        for i in range(self.orders):
            target = (done + i) % self.agents if self.target < 0 else self.target
            rows[i, :WORDS] = time + self.delay, pack(WORK, target, i), 0, b - 1
            rows[i, WORDS + ORDER], rows[i, WORDS + LAST_ORDER] = done + i, i == self.orders - 1
        return rows

    def fingerprint(self, state: OfficeState) -> Any:
        whole = (state.asked.view(np.uint64), state.seen.view(np.uint64), state.history)
        return np.column_stack(whole)

    def outcome(self, state: OfficeState, *_: Any) -> dict[str, Any]:
        return {"asked": state.asked, "seen": state.seen}

    def left(self, state: OfficeState, pending: Callable[[], Rows]) -> int:
        done = self.rounds * self.orders * (int(state.numbers[2]) == 0)
        return done - int(state.seen.sum())
