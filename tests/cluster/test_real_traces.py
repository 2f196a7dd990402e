"""Real workloads, where they are there: they are not part of the project."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from naive import Job, kiefer_wolfowitz

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from odonata.results.schedule_series import fragmentation
from odonata.traces.distributions import powers_of_two
from odonata.traces.poisson import poisson
from odonata.traces.source import Source
from policies.allocation import ALLOCATIONS, allocate, rng_for
from policies.views import Request, Sight
from topology import Dragonfly

DATA = Path(__file__).parents[2].parent / "shared" / "data"


def real(name: str) -> str:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not there: nothing was shown on a real trace")
    return str(DATA / name)


@pytest.mark.parametrize(
    ("name", "nodes", "load"),
    [
        ("krc2.csv", 80, None),
        ("nasa-ipsc-1993-cln.swf.gz", 128, 0.9),
        ("hpc2n-sample.swf", 240, 0.9),
    ],
)
def test_first_come_first_served_waits_are_those_of_the_recursion(
    name: str, nodes: int, load: float | None
) -> None:
    trace, _ = Source(file=real(name), nodes=nodes, load=load, overrun="extend").trace()
    schedule, *_ = simulate(Cluster(trace, nodes, "fcfs", overrun="extend"))
    columns = (trace.submit_us, trace.run_us, trace.nodes)
    jobs = [Job(n, *row, 1) for n, row in enumerate(zip(*(c.tolist() for c in columns),
                                                        strict=True))]  # fmt: skip
    waits = (schedule.start_us - trace.submit_us).tolist()
    assert max(waits) > 0
    assert waits == kiefer_wolfowitz(jobs, nodes)


def test_allocations_scatter_the_jobs_of_a_real_trace_in_the_order_that_they_should() -> None:
    """Simple packs them, level-spread spreads what does not fit a router over a group or the
    machine, and random takes any nodes."""
    trace, nodes = Source(file=real("nasa-ipsc-1993-cln.swf.gz"), first=3000).trace()
    machine = Dragonfly(4, 4, 2, 8, links_per_pair=1)
    found = {}
    for name in ("simple", "level-spread", "rdn"):
        schedule, *_ = simulate(Cluster(trace, nodes, "easy", (), machine, name))
        spread = fragmentation(schedule)
        assert spread is not None
        assert (spread.groups >= spread.fewest_groups).all()
        assert (spread.routers >= spread.fewest_routers).all()
        found[name] = spread.facts()
    groups = {name: facts["groups_per_job"] or 0.0 for name, facts in found.items()}
    assert groups["simple"] < groups["level-spread"] < groups["rdn"]


@pytest.mark.alone
@pytest.mark.parametrize("name", ALLOCATIONS)
def test_a_placement_on_ten_thousand_nodes_takes_less_than_a_millisecond(name: str) -> None:
    """On a machine that is half full, in random places; the median, as others may be at work."""
    machine = Dragonfly(8, 16, 8, 80, links_per_pair=1)
    assert machine.n_nodes > 10_000
    policy, rng, times = ALLOCATIONS.make(name), np.random.default_rng(1), []
    for number in range(60):
        idle = rng.random(machine.n_nodes) < 0.5
        job = Request(number, int(rng.integers(1, 1000)), 0)
        began = time.process_time()
        allocate(policy, Sight(machine, idle), job, rng_for(1, number))
        times.append(time.process_time() - began)
    assert np.median(times) < 1e-3


@pytest.mark.alone
def test_the_cost_of_a_run_grows_with_its_jobs_and_not_with_their_square() -> None:
    """Four times the jobs take less than eight times as long."""
    seconds = []
    for jobs in (50_000, 200_000):
        trace = poisson(jobs, 10_000, load=0.9, sizes=powers_of_two(512))
        model = Cluster(trace, 10_000, "easy")
        simulate(model)
        began = time.process_time()
        simulate(model)
        seconds.append(time.process_time() - began)
    assert seconds[1] < 8 * seconds[0]
