"""Small models that do what PHOLD does not: break the rules, or multiply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pdes.events import Rows, agent_of, key_of, pack
from pdes.jit import kernel
from pdes.loop import FIRST, Sim, schedule
from pdes.model import Lookahead, Model
from pdes.partition import Partition
from pdes.queue import rows_of


class RogueState(NamedTuple):
    integers: Any
    handled: Any


DELAY, TARGET, COPIES = range(3)


@kernel
def rogue(sim: Sim, state: RogueState, time: int, key: int, a: int, b: int) -> None:
    n = state.integers
    agent = agent_of(key)
    state.handled[agent - sim.ctl[FIRST]] += 1
    target = agent if n[TARGET] < 0 else n[TARGET]
    for _ in range(n[COPIES]):
        schedule(sim, time + n[DELAY], key_of(0, target, 0), 0, 0)


@dataclass(frozen=True)
class Rogue(Model):
    """An agent whose events make `copies` events at `target` (its own if negative) after `delay`,
    whatever it promised."""

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
    """Every event makes two, `depth` times over: 2**depth events pending at the end."""

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
