"""What a row of an array has follows from the network, and not from a rank's part of it: a rank
that has the scheduler and no group has the same words as any other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matrix import FACTORS, Case, network_of, products

from odonata.agents.network import Network
from pdes.dealing import ByAgent
from pdes.events import no_rows

RANKS = 3
CASES = [
    Case(**{"load": "both", "scheduler": "alone", "protocol": "window", "restart": "never", **each})
    for each in products(inside=FACTORS["inside"], knows=FACTORS["knows"], kept=FACTORS["kept"])
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_are_alike_on_a_rank_with_nothing_but_the_scheduler(case: Case) -> None:
    network = network_of(case, RANKS)
    for one in (network, replace(network, traffic=())):
        _assert_alike(one)


def _assert_alike(network: Network) -> None:
    first, last, end = network.units()[[0, 1, -1]].tolist()
    apart, rest = network.state(first, last), network.state(last, end)
    for name, how in network.dealing().items():
        if isinstance(how, ByAgent):
            one, other = (np.moveaxis(getattr(it, name), how.axis, 0) for it in (apart, rest))
            assert one.shape[1:] == other.shape[1:], name
            assert len(one) == 0, name
    assert network.fingerprint(apart).shape[1:] == network.fingerprint(rest).shape[1:]
    none = np.zeros((1, network.parcel), np.int64)
    ours, theirs = (network.outcome(it, no_rows(), none, 0) for it in (apart, rest))
    assert [*ours] == [*theirs]
    for name in ours:
        assert ours[name].shape[1:] == theirs[name].shape[1:], name
    network.check(apart, no_rows(), none)
