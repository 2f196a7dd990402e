from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdes.errors import Refused
from pdes.partition import deal

sizes = st.lists(st.integers(1, 50), min_size=1, max_size=60)


@given(sizes, st.integers(1, 60), st.booleans())
def test_every_unit_goes_to_one_rank_whole_and_in_order(
    units: list[int], ranks: int, weighed: bool
) -> None:
    ranks = min(ranks, len(units))
    offsets = np.concatenate(([0], np.cumsum(units)))
    weights = np.array(units, float) if weighed else np.ones(len(units))
    partition = deal(offsets, weights, ranks)
    assert partition.ranks == ranks
    assert partition.unit_starts[0] == 0
    assert partition.unit_starts[-1] == len(units)
    assert (np.diff(partition.unit_starts) > 0).all()
    assert (partition.agent_starts == offsets[partition.unit_starts]).all()
    assert partition.agents == sum(units)


@given(st.integers(1, 500), st.integers(1, 40))
def test_equal_units_are_dealt_evenly(units: int, ranks: int) -> None:
    ranks = min(ranks, units)
    partition = deal(np.arange(units + 1), np.ones(units), ranks)
    shares = np.diff(partition.unit_starts)
    assert shares.max() - shares.min() <= 1


def test_more_ranks_than_partitions_are_refused() -> None:
    with pytest.raises(Refused, match=r"5 ranks: this model has 4 partitions.*at most 4"):
        deal(np.arange(5), np.ones(4), 5)
