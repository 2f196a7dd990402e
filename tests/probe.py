"""A model whose every event is a decision, counted in microseconds: years of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pdes.events import AGENT_MASK, PORT_BITS, Rows, pack
from pdes.log import Field, Log
from pdes.model import Decides, Decision, Lookahead, Model, Streams, nothing
from pdes.partition import Partition
from pdes.queue import rows_of

YEAR = 365 * 24 * 3600 * 10**6
"""In microseconds."""
WORD = (1 << 64) - 1


class ProbeState(NamedTuple):
    first: Any
    history: Any


@dataclass(frozen=True)
class Probe(Model, Decides):
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


@dataclass(frozen=True)
class Diary(Probe, Streams):
    """The same, on few instants that many agents share, with a log of visits and one of moves. The
    two kinds of events have agents in another order than their numbers."""

    name, kinds, decisions = "diary", ("visit", "call"), (0, 1)

    def start(self, state: ProbeState, first: int, last: int) -> Rows:
        return rows_of((0, pack(agent % 2, agent, 0), agent, 0) for agent in range(first, last))

    def decide(self, state: ProbeState, time: int, key: int, a: int, b: int) -> Any:
        agent = (key >> PORT_BITS) & AGENT_MASK
        when, where, luck, visits = super().decide(state, time, agent << PORT_BITS, a, b)
        step = self.mean // 8
        when = time + (when - time) // step * step
        rows: list[tuple[str, Any]] = [
            ("visits", (agent, luck / 2**32, range(agent, agent + luck % 4)))
        ]
        if where >> PORT_BITS != agent:
            rows.append(("moves", (agent, where >> PORT_BITS)))
        return Decision((when, pack(luck & 1, where >> PORT_BITS, 0), luck, visits), rows)

    def logs(self) -> dict[str, Log]:
        agent = Field("agent", "1", "whom it was at", "i4")
        luck = Field("luck", "1", "what was drawn", "f8")
        guests = Field("guests", "1", "who else was there", several=True)
        return {
            "visits": Log((agent, luck, guests), "every visit"),
            "moves": Log((agent, Field("to", "1", "whom the visitor went to", "i4"))),
            "never": Log((agent,), "what does not happen"),
        }
