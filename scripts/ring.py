"""A token ring: the smallest model of one's own. docs/models.md goes through it line by line.

python scripts/ring.py
mpiexec -n 2 python scripts/ring.py
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import pdes
from pdes import agent_of, draw, exponential, kernel, key_of, local, schedule

LEAST = 100_000  # picoseconds: nobody passes the token on sooner


class State(NamedTuple):
    numbers: Any  # seed, agents, mean wait in ps
    visits: Any  # of the token, by agent


@kernel
def handle(sim: Any, state: State, time: int, key: int, a: int, b: int) -> None:
    me, agent = local(sim, key), agent_of(key)
    seed, agents, mean = state.numbers[0], state.numbers[1], state.numbers[2]
    _, _, w2, w3 = draw(seed, agent, state.visits[me])
    state.visits[me] += 1
    wait = LEAST + np.int64(exponential(w2, w3) * mean)
    schedule(sim, time + wait, key_of(0, (agent + 1) % agents, 0), 0, 0)


@dataclass(frozen=True)
class Ring(pdes.Model):
    agents: int = 10
    mean_ps: int = 500_000
    seed: int = 1

    name, handle, fanout, kinds = "ring", staticmethod(handle), 1, ("token",)

    def units(self) -> Any:
        return np.arange(self.agents + 1)

    def lookahead(self, partition: Any) -> pdes.Lookahead:
        return pdes.Lookahead(LEAST, "passing the token")

    def state(self, first: int, last: int) -> State:
        numbers = np.array([self.seed, self.agents, self.mean_ps])
        return State(numbers, np.zeros(last - first, np.int64))

    def start(self, state: State, first: int, last: int) -> Any:
        return pdes.rows_of([(0, pdes.pack(0, 0, 0), 0, 0)] if first == 0 else [])

    def fingerprint(self, state: State) -> Any:
        return state.visits

    def outcome(self, state: State, *rest: Any) -> dict[str, Any]:
        return {"visits": state.visits}


def main() -> None:
    result = pdes.run(Ring(), end=1_000_000_000)
    if pdes.rank() == 0:
        print(f"{result.events} events on {result.ranks} ranks, digest {result.digest}")
        print("visits:", result.outcome["visits"].tolist())


if __name__ == "__main__":
    from ring import main  # as a module, so that what is compiled for its State can be kept

    main()
