"""PHOLD, the benchmark every parallel simulator reports, and the shortest model there is.

`population` events live at each of `processes` logical processes. An event at a process makes one
new event after lookahead + Exp(mean - lookahead), at a uniformly random process with probability
`remote`, else at its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pdes.errors import Refused
from pdes.events import Rows, agent_of, key_of
from pdes.jit import entry, kernel
from pdes.loop import FIRST, Sim, schedule
from pdes.model import Lookahead, Model
from pdes.partition import Partition
from pdes.random import U64, below, draw, exponential

GOLDEN = U64(0x9E3779B97F4A7C15)


class State(NamedTuple):
    integers: npt.NDArray[np.int64]
    mean: npt.NDArray[np.float64]
    handled: npt.NDArray[np.int64]
    draws: npt.NDArray[np.int64]
    history: npt.NDArray[np.uint64]
    """A hash over (time, sender) of every event handled, in order."""


SEED, PROCESSES, THRESHOLD, LEAST = range(4)


@kernel
def hop(state: State, me: int, process: int) -> Any:
    """Where the process's next event goes, and after what delay."""
    n, x = state.integers, state.draws[me]
    state.draws[me] = x + 1
    w0, w1, w2, w3 = draw(n[SEED], process, x)
    target = below(w1, n[PROCESSES]) if np.int64(w0) < n[THRESHOLD] else process
    return target, n[LEAST] + np.int64(exponential(w2, w3) * state.mean[0] + 0.5)


@kernel
def handle(sim: Sim, state: State, time: int, key: int, a: int, b: int) -> None:
    process = agent_of(key)
    me = process - sim.ctl[FIRST]
    state.handled[me] += 1
    state.history[me] = (state.history[me] ^ U64(time) ^ (U64(a) << U64(40))) * GOLDEN
    target, delay = hop(state, me, process)
    schedule(sim, time + delay, key_of(0, target, 0), process, 0)


@entry
def first_events(state: State, rows: Any, first: int, population: int) -> None:
    for i in range(rows.shape[0]):
        me = i // population
        process = first + me
        _, delay = hop(state, me, process)
        rows[i, :] = 0
        rows[i, 0] = delay
        rows[i, 1] = key_of(0, process, 0)
        rows[i, 2] = process


@dataclass(frozen=True)
class Phold(Model):
    """Times in picoseconds; `mean` is that of the whole delay."""

    processes: int = 1024
    population: int = 16
    remote: float = 0.25
    lookahead_ps: int = 500_000
    mean_ps: int = 1_000_000
    seed: int = 1

    name = "phold"
    handle = staticmethod(handle)
    fanout = 1
    kinds = ("hop",)

    def __post_init__(self) -> None:
        if not 1 <= self.processes < 2**32:
            raise Refused(f"phold: {self.processes} processes: 1 to 2**32 - 1 are possible")
        if self.population < 0:
            raise Refused(f"phold: a population of {self.population} events a process")
        if not 0 <= self.remote <= 1:
            raise Refused(f"phold: remote = {self.remote}: a probability is from 0 to 1")
        if not 0 <= self.lookahead_ps <= self.mean_ps:
            raise Refused(
                f"phold: lookahead {self.lookahead_ps} ps, mean delay {self.mean_ps} ps: "
                "the lookahead is part of the delay, so 0 <= lookahead <= mean"
            )
        if not 0 <= self.seed < 2**63:
            raise Refused(f"phold: seed = {self.seed}: 0 to 2**63 - 1 are possible")

    def parameters(self) -> Mapping[str, int | float | str]:
        return asdict(self)

    def units(self) -> npt.NDArray[np.int64]:
        return np.arange(self.processes + 1)

    def lookahead(self, partition: Partition) -> Lookahead:
        last = partition.block(0)[1] - 1
        return Lookahead(self.lookahead_ps, f"an event from process {last} to {last + 1}")

    def state(self, first: int, last: int) -> State:
        integers = [self.seed, self.processes, round(self.remote * 2**32), self.lookahead_ps]
        return State(
            integers=np.array(integers),
            mean=np.array([float(self.mean_ps - self.lookahead_ps)]),
            handled=np.zeros(last - first, np.int64),
            draws=np.zeros(last - first, np.int64),
            history=np.zeros(last - first, np.uint64),
        )

    def start(self, state: State, first: int, last: int) -> Rows:
        rows = np.empty(((last - first) * self.population, 4), np.int64)
        first_events(state, rows, first, self.population)
        return rows

    def fingerprint(self, state: State) -> npt.NDArray[Any]:
        return np.column_stack((state.handled.view(np.uint64), state.history))

    def check(self, state: State) -> None:
        assert (state.draws == state.handled + self.population).all(), "a draw was lost"
