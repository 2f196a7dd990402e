"""The partition: which rank has which agents; whole units, in order, of near-equal weight."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pdes.errors import Refused


@dataclass(frozen=True)
class Partition:
    """Rank r has the units unit_starts[r] .. unit_starts[r + 1] - 1, and likewise the agents."""

    unit_starts: npt.NDArray[np.int64]
    agent_starts: npt.NDArray[np.int64]

    @property
    def ranks(self) -> int:
        return len(self.unit_starts) - 1

    @property
    def agents(self) -> int:
        return int(self.agent_starts[-1])

    def block(self, rank: int) -> tuple[int, int]:
        """Returns the first agent of a rank, and the first that is no longer its own."""
        return int(self.agent_starts[rank]), int(self.agent_starts[rank + 1])


def deal(
    units: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64],
    ranks: int,
    alone: bool = False,
) -> Partition:
    """Cut the sequence of units where the running weight comes closest to an equal share. `alone`:
    the first unit has rank 0 to itself, where there is more than one rank."""
    if alone and ranks > 1:
        rest = deal(units[1:], weights[1:], ranks - 1)
        starts = np.concatenate(([0], rest.unit_starts + 1))
        return Partition(starts, np.asarray(units, np.int64)[starts])
    count = len(units) - 1
    if ranks > count:
        raise Refused(
            f"{ranks} ranks: this model has {count} partition{'s' * (count != 1)}, "
            f"and a rank needs at least one; use at most {count} rank{'s' * (count != 1)}"
        )
    sums = np.concatenate(([0.0], np.cumsum(weights)))
    cuts = [0]
    for r in range(1, ranks):
        ideal = sums[-1] * r / ranks
        cut = int(np.searchsorted(sums, ideal))
        if cut > 0 and ideal - sums[cut - 1] <= sums[cut] - ideal:
            cut -= 1
        cuts.append(min(max(cut, cuts[-1] + 1), count - (ranks - r)))
    cuts.append(count)
    assert all(a < b for a, b in pairwise(cuts))
    starts = np.array(cuts, np.int64)
    return Partition(starts, np.asarray(units, np.int64)[starts])
