"""The job model goes on with another number of ranks: all of it is on the first of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusters import trace_of
from random_traces import random_trace
from threads import bits, go

from odonata.cluster.model import Cluster
from odonata.jobs.power import Power
from pdes.stream import Recording

POWER = Power(
    "uniform", demand="constant", idle_w=100.0, interval_ps=10**7,
    cap=(("0 s", "2500 W"), ("9 us", "1800 W"), ("40 us", "3 kW")),
)  # fmt: skip


@pytest.mark.parametrize("ranks", [(2, 1), (1, 3)])
def test_any_ranks_after_any_other_give_the_same_logs(
    tmp_path: Path, ranks: tuple[int, int]
) -> None:
    jobs, nodes = random_trace(3)
    model, last = Cluster(trace_of(jobs), nodes, "easy", power=POWER), jobs[-1].submit
    logs, every = (*model.logs(),), max(1, last // 3)

    def kept(name: str) -> Recording:
        return Recording(tmp_path / name, every, (*model.tables(every),), logs=logs)

    go(model, last, ranks[0], record=kept("parts"), checkpoint_dir=tmp_path,
       checkpoint_every=max(1, last // 2), show_compiling=False)  # fmt: skip
    ran = go(model, None, ranks[1], record=kept("parts"), resume=tmp_path, show_compiling=False)
    whole = go(model, None, 1, record=kept("whole"), show_compiling=False)
    assert ran.resumed
    assert (ran.digest, ran.events) == (whole.digest, whole.events)
    found = bits(tmp_path / "parts")
    assert found == bits(tmp_path / "whole")
    assert len(found["starts/job"][1])
