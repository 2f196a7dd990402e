"""PHOLD, the benchmark every parallel simulator reports, and the shortest model there is.

`population` events live at each of `processes` logical processes. An event at a process schedules
one new event after lookahead + Exp(mean - lookahead), at a uniformly random process with
probability `remote`, else at its own.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pdes.errors import require
from pdes.events import Rows, agent_of, key_of
from pdes.jit import entry, kernel, record
from pdes.loop import Sim, local, schedule
from pdes.model import Audits, Lookahead, Model, Streams
from pdes.partition import Partition
from pdes.random import U64, below, draw, exponential
from pdes.stream import Series, Table

SEED, PROCESSES, THRESHOLD, LEAST, SPREAD = range(5)
GOLDEN = U64(0x9E3779B97F4A7C15)


@record
class State(NamedTuple):
    numbers: Any  # the five above
    handled: Any  # events, by process
    draws: Any  # random numbers, by process
    history: Any  # a hash over (time, sender) of every event handled, in order, by process


@kernel
def hop(state: State, me: int, process: int) -> Any:
    """Returns where the process's next event goes, and after what delay, in ps."""
    n, count = state.numbers, state.draws[me]
    state.draws[me] = count + 1
    w0, w1, w2, w3 = draw(n[SEED], process, count)
    target = below(w1, n[PROCESSES]) if np.int64(w0) < n[THRESHOLD] else process
    return target, n[LEAST] + np.int64(exponential(w2, w3) * n[SPREAD] + 0.5)


@kernel
def handle(sim: Sim, state: State, time: int, key: int, a: int, b: int) -> None:
    process, me = agent_of(key), local(sim, key)
    state.handled[me] += 1
    state.history[me] = (state.history[me] ^ U64(time) ^ (U64(a) << U64(40))) * GOLDEN
    target, delay = hop(state, me, process)
    schedule(sim, time + delay, key_of(0, target, 0), process, 0)


@entry
def first_events(state: State, rows: Any, first: int, population: int) -> None:
    for i in range(rows.shape[0]):
        process = first + i // population
        rows[i, 0] = hop(state, process - first, process)[1]
        rows[i, 1] = key_of(0, process, 0)
        rows[i, 2] = process


@dataclass(frozen=True)
class Phold(Model, Streams, Audits):
    """PHOLD as a model. Times are in picoseconds; `mean` is that of the whole delay."""

    processes: int = 1024
    population: int = 16
    remote: float = 0.25
    lookahead_ps: int = 500_000
    mean_ps: int = 1_000_000
    seed: int = 1

    name, handle, fanout, kinds = "phold", staticmethod(handle), 1, ("hop",)

    def __post_init__(self) -> None:
        delays = f"lookahead {self.lookahead_ps} ps, mean delay {self.mean_ps} ps"
        require(1 <= self.processes < 2**32, f"{self.processes} processes: must be 1 .. 2**32 - 1")
        require(self.population >= 0, f"a population of {self.population}: must not be negative")
        require(0 <= self.remote <= 1, f"remote = {self.remote}: must be a probability, 0 .. 1")
        require(0 <= self.lookahead_ps <= self.mean_ps, f"{delays}: must be 0 <= lookahead <= mean")
        require(self.mean_ps < 2**50, f"{delays}: the mean must be below 2**50 ps")
        require(0 <= self.seed < 2**63, f"seed = {self.seed}: must be 0 .. 2**63 - 1")

    def units(self) -> Any:
        return np.arange(self.processes + 1)

    def lookahead(self, partition: Partition) -> Lookahead:
        last = partition.block(0)[1] - 1
        return Lookahead(self.lookahead_ps, f"an event from process {last} to {last + 1}")

    def state(self, first: int, last: int) -> State:
        least, spread = self.lookahead_ps, self.mean_ps - self.lookahead_ps
        numbers = [self.seed, self.processes, round(self.remote * 2**32), least, spread]
        handled, draws = np.zeros((2, last - first), np.int64)
        return State(np.array(numbers), handled, draws, np.zeros(last - first, np.uint64))

    def start(self, state: State, first: int, last: int) -> Rows:
        rows = np.zeros(((last - first) * self.population, 4), np.int64)
        first_events(state, rows, first, self.population)
        return rows

    def outcome(self, state: State, pending: Rows, parcels: Rows, time: int) -> dict[str, Any]:
        return {"handled": state.handled}

    def tables(self, interval: int) -> dict[str, Table]:
        handled = Series("processes/handled", ("process",), "1", "events handled")
        return {"processes": Table((handled,), lambda state, time: [state.handled])}

    def fingerprint(self, state: State) -> Any:
        return np.column_stack((state.handled.view(np.uint64), state.history))

    def check(self, state: State, pending: Rows, parcels: Rows) -> None:
        assert (state.draws == state.handled + self.population).all(), "a draw was lost"
