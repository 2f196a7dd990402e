"""The policy `by-caps`: what it concludes from meters, and the jobs that it starts and the caps
that it gives, beside a twin in plain Python."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from following import columns, following, recorded
from hypothesis import given
from hypothesis import strategies as st
from machines import SMALL, US
from workloads import go

from odonata.agents.following import arrive_now, controlling
from odonata.agents.waiting import conclude
from odonata.jobs.floors import Kinds, floor_arrays
from odonata.jobs.request import Job
from odonata.results.job_network import JobNetwork
from odonata.traces.types import JobType
from policies.power import floor as f
from policies.power.by_caps import ByCaps
from policies.power.floor import Floor

NODES, IDLE_W = 60, 100.0
parts = st.floats(0.0, 1.0)


# -- what is concluded from a reading


def one_type(most_w: float, low_w: float, slowdown: float, waits_w: float) -> Any:
    kinds = np.zeros((1, len(f.KIND)))
    kinds[0, [f.MOST_W, f.LOW_W, f.SLOWDOWN]] = most_w, low_w, slowdown
    sums = np.zeros(len(f.SUM))
    sums[f.WAITS_W] = waits_w
    return SimpleNamespace(kinds=kinds, sums=sums)


@given(part=parts, ratio=parts, nodes=st.integers(1, 99), slowdown=st.floats(1.0, 4.0))
def test_a_reading_under_any_cap_says_which_part_of_the_time_would_be_computing_without_one(
    part: float, ratio: float, nodes: int, slowdown: float
) -> None:
    dealings = one_type(290.0, 162.0, slowdown, 120.0)
    dealings.kinds[0, [f.BEFORE, f.RATIO]] = ratio
    computes_w, pace = 162.0 + ratio * 128.0, 1.0 + (slowdown - 1.0) * (1.0 - ratio)
    computed = part * pace / (part * pace + 1.0 - part)  # of the time under this cap
    conclude(dealings, 0, computed * computes_w + (1.0 - computed) * 120.0, nodes * 5e7, 0.3)
    worked, waited = dealings.kinds[0, [f.WORKED, f.WAITED]]
    assert worked / (worked + waited) == pytest.approx(part, abs=1e-9)
    assert worked * pace + waited == pytest.approx(nodes * 5e7, rel=1e-9)


@pytest.mark.parametrize("waits_w", [290.0, np.inf, 288.0])
def test_nothing_is_concluded_where_waiting_draws_as_much_as_computing(waits_w: float) -> None:
    dealings = one_type(290.0, 162.0, 1.43, waits_w)
    dealings.kinds[0, [f.BEFORE, f.RATIO]] = 1.0
    conclude(dealings, 0, 250.0, 1e8, 0.0)
    assert not dealings.kinds[0, [f.WORKED, f.WAITED]].any()


def test_of_jobs_in_packets_it_finds_what_their_tasks_did() -> None:
    """A halo exchange that computes most of its time, and an all-to-all that does not."""
    jobs = (
        Job(12, "halo3d", 2048, iterations=40, compute_ps=10 * US, application="halo"),
        Job(12, "all-to-all", 2048, iterations=25, compute_ps=5 * US, application="all"),
    )
    model = following(*jobs, policy="by-caps", policy_parameters=(), bid_w=(20_000.0, 500.0))
    ran = go(model)
    true = [1.0 - it.communication for it in JobNetwork.of(model, ran.result.outcome)]
    seen = ran.state.kinds[:, [f.WORKED, f.WAITED]]
    assert true[1] < true[0] - 0.15
    assert (seen[:, 0] / seen.sum(axis=1)).tolist() == pytest.approx(true, abs=0.03)


# -- what is decided


def floor_of(rng: np.random.Generator) -> tuple[Floor, list[Any]]:
    """A floor on which jobs of up to four types wait; and the numbers of the types."""
    types = [JobType(name, float(rng.uniform(250, 300)), float(rng.uniform(110, 160)),
                     float(rng.uniform(1.1, 1.45)))
             for name in "abcd"[: rng.integers(1, 5)]]  # fmt: skip
    jobs = int(rng.integers(1, 9))
    of_job = rng.integers(0, len(types), jobs)
    widths = rng.integers(1, 20, jobs)
    arrays = floor_arrays(Kinds(types, of_job), np.full(jobs, 10**9), widths,
                          np.zeros(jobs, np.int64), NODES, IDLE_W, (), 120.0)  # fmt: skip
    floor = Floor(*(arrays["progress" if name == "marks" else name] for name in Floor._fields))
    seen = rng.uniform(0.0, 1.0, (len(types), 2)) * (rng.random((len(types), 1)) < 0.8)
    floor.kinds[:, [f.WORKED, f.WAITED]] = seen
    for row in range(jobs):
        arrive_now(floor, row)
    return floor, types


class Twin:
    """The rule of docs/together.md, in plain Python."""

    def __init__(self, floor: Floor, types: list[Any], meters: bool, apart: bool) -> None:
        self.types = types
        seen = floor.kinds[:, [f.WORKED, f.WAITED]].copy()
        if not apart:
            seen[:] = seen.sum(axis=0)
        self.part = [worked / (worked + waited) if meters and worked + waited else 1.0
                     for worked, waited in seen.tolist()]  # fmt: skip
        self.nodes = [0] * len(types)

    def node_w(self, kind: int, ratio: float) -> float:
        it, part = self.types[kind], self.part[kind]
        computing_w = it.least_w + ratio * (it.most_w - it.least_w)
        stretch = 1.0 + (it.slowdown - 1.0) * (1.0 - ratio)
        times = [part * stretch, 1.0 - part]
        return float(np.average([computing_w, min(120.0, computing_w)], weights=times))

    def total_w(self, ratios: list[float]) -> float:
        busy = sum(n * self.node_w(k, ratios[k]) for k, n in enumerate(self.nodes) if n)
        return busy + (NODES - sum(self.nodes)) * IDLE_W

    def loss(self, kind: int) -> float:
        saved = self.node_w(kind, 1.0) - self.node_w(kind, 0.0)
        return self.part[kind] * (self.types[kind].slowdown - 1.0) / saved if saved > 1e-6 else 9e9


@pytest.mark.parametrize(("meters", "apart", "turns"), [
    (True, True, True), (True, False, False), (False, True, False), (True, True, False),
])  # fmt: skip
def test_starts_and_caps_are_those_of_the_twin(meters: bool, apart: bool, turns: bool) -> None:
    capped = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        floor, types = floor_of(rng)
        twin = Twin(floor, types, meters, apart)
        average_w, reserve_w = float(rng.uniform(7000, 15000)), float(rng.uniform(0, 4000))
        signal = float(rng.uniform(-1, 1))
        watts = np.array([IDLE_W, 0.0, 300.0, np.inf, 0.0, average_w + signal * reserve_w,
                          average_w, reserve_w, signal, 0.0])  # fmt: skip
        given = np.array([meters, apart, turns], np.float64)
        control = controlling(ByCaps.regulate)
        control(floor, given, 10, 0, 10**12, watts, np.zeros(len(types)))
        order = floor.rows[:, [f.OF, f.WIDTH]].tolist()
        started = 0
        for kind, width in order:
            twin.nodes[kind] += width
            low = twin.total_w([0.0] * len(types))
            if sum(twin.nodes) > NODES or low > average_w - reserve_w + 1e-6:
                twin.nodes[kind] -= width
                break
            started += 1
        assert floor.floor[f.STARTS] == started
        assert floor.tallies[:, f.NODES].tolist() == twin.nodes
        target_w, ratios = watts[5], floor.kinds[:, f.RATIO].tolist()
        if twin.total_w([1.0] * len(types)) <= target_w + 1e-6:
            assert ratios == [1.0] * len(types)
            continue
        capped += 1
        lowest = twin.total_w([0.0] * len(types))
        assert twin.total_w(ratios) == pytest.approx(max(lowest, target_w), rel=1e-6)
        runs = [kind for kind, n in enumerate(twin.nodes) if n]
        if turns:
            ranked = [ratios[kind] for kind in sorted(runs, key=twin.loss)]
            between = [ratio for ratio in ranked if 0.0 < ratio < 1.0]
            assert ranked == sorted(ranked)
            assert len(between) <= 1
        else:
            assert len({*ratios}) == 1
    assert capped > 30


def test_the_machine_draws_what_it_is_to_where_its_meters_are_read(tmp_path: Path) -> None:
    """An all-to-all, of which who assumes that it computes draws far too little."""
    job = Job(16, "all-to-all", 2048, iterations=60, compute_ps=5 * US)
    off = []
    for meters in (False, True):
        model = following(job, policy="by-caps", policy_parameters=(("meters", meters),),
                          bid_w=(SMALL.n_nodes * IDLE_W + 1_060.0, 60.0), signal=0.0)  # fmt: skip
        recorded(model, tmp_path / str(meters), end=400 * US)
        found = columns(tmp_path / str(meters))
        watts = found["tracking/power_w"] - found["tracking/target_w"]
        off.append(float(watts[10:].mean()))
    assert off[0] < -300.0
    assert abs(off[1]) < 0.3 * abs(off[0]), off
