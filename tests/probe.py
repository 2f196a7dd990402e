"""A model whose every event is a decision, counted in microseconds: years of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pdes.events import PORT_BITS, Rows, pack
from pdes.model import Lookahead, Model, nothing
from pdes.partition import Partition
from pdes.queue import rows_of

YEAR = 365 * 24 * 3600 * 10**6
"""In microseconds."""
WORD = (1 << 64) - 1


class ProbeState(NamedTuple):
    first: Any
    history: Any


@dataclass(frozen=True)
class Probe(Model):
    """Every agent has a visitor; whoever is visited decides when the visitor goes on, and whether
    to the next agent. `mean` is how long a visit takes, on average, and half of it the least. It
    makes eight decisions per `mean`."""

    agents: int = 8
    mean: int = 8 * 10 * YEAR // 20_000
    seed: int = 1

    name, handle, fanout, kinds = "probe", staticmethod(nothing), 1, ("visit",)
    tick, decisions = "us", (0,)

    def units(self) -> Any:
        return np.arange(self.agents + 1)

    def lookahead(self, partition: Partition) -> Lookahead:
        return Lookahead(self.mean // 2, "a visit")

    def state(self, first: int, last: int) -> ProbeState:
        return ProbeState(np.array([first]), np.zeros(last - first, np.uint64))

    def start(self, state: ProbeState, first: int, last: int) -> Rows:
        return rows_of((1 + agent, pack(0, agent, 0), self.seed, 0) for agent in range(first, last))

    def decide(self, state: ProbeState, time: int, key: int, a: int, b: int) -> Any:
        luck = (a * 1664525 + 1013904223) & 0xFFFFFFFF
        agent = key >> PORT_BITS
        me = agent - state.first.item()
        state.history[me] = (state.history.item(me) * 31 + time + luck) & WORD
        if luck >> 29 == 0:
            agent = (agent + 1) % self.agents
        return time + (self.mean >> 1) + (self.mean * luck >> 32), agent << PORT_BITS, luck, b + 1

    def fingerprint(self, state: ProbeState) -> Any:
        return state.history
