"""Jobs, and what is decided in Python, on as many ranks as these tests are run on: the same
picoseconds as on one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import SMALL, US
from models import Office

from odonata.agents.audit import conclude
from odonata.agents.network import Network
from odonata.agents.workload import Workload
from odonata.jobs.request import Job
from odonata.results.performance import job_records, performance
from pdes.driver import Result, run
from pdes.errors import Refused
from pdes.partition import deal
from pdes.transport import Serial, world

pytestmark = pytest.mark.mpi(min_size=2)

MIXED = (
    Job(20, "all-to-all", 1500, exchange="pairwise"),
    Job(17, "allreduce", 900, iterations=4, compute_ps=12_345),
    Job(9, "uniform", 600, iterations=10),
    Job(30, "halo3d26", 700, iterations=2, arrival_ps=1),
    Job(8, "tree-broadcast", 5000, iterations=3, arrival_ps=2 * US),
    Job(72, "permutation", 40_000, arrival_ps=2 * US),
    Job(25, "fft3d", 300, iterations=2, arrival_ps=2 * US),
    Job(11, "random-ring", 800, iterations=5, arrival_ps=7 * US),
    Job(1, "incast", 100, iterations=3, arrival_ps=7 * US),
)
"""More than fit at once, mapped at random, and one that stays within its node."""


def mixed(*jobs: Job, **given: Any) -> Network:
    names = Workload.__dataclass_fields__
    how = {"allocation": "rdn", "launch_ps": 900_000, "match_ps": 20_000, "host_ps": 30_000}
    how |= {name: given.pop(name) for name in [*given] if name in names}
    tight = {"delay_ps": 20_000, "local_buffer": 2048, "global_buffer": 4096} | given
    return Network(SMALL, workload=Workload(jobs or MIXED, **how), routing="adaptive", **tight)


def alone(model: Any, **how: Any) -> Result:
    return run(model, None, transport=Serial(), show_compiling=False, **how)


def compare(model: Network, protocol: str = "window", **how: Any) -> Result:
    """All ranks against one, on every rank."""
    together, here = run(model, None, protocol=protocol, show_compiling=False, **how), alone(model)
    assert together.ranks == world().size
    records = job_records(model, together)
    assert all(job.end_ps is not None for job in records)
    assert records == job_records(model, here)
    assert together.digest == here.digest
    assert together.time_ps == here.time_ps
    assert performance(model, together) == performance(model, here)
    assert conclude(model, together.outcome) is None
    return together


@pytest.mark.parametrize("protocol", ["window", "null"])
def test_communication_times_are_those_of_one_rank_to_the_picosecond(protocol: str) -> None:
    compare(mixed(), protocol)


@pytest.mark.parametrize(
    ("order", "protocol"), [("small-first", "window"), ("large-first", "null")]
)
def test_the_queue_is_the_same_whoever_is_first(order: str, protocol: str) -> None:
    compare(mixed(order=order, allocation="level-spread"), protocol)


@pytest.mark.parametrize("protocol", ["window", "null"])
def test_a_launch_shorter_than_any_cable_bounds_the_lookahead(protocol: str) -> None:
    model = mixed(*MIXED[1:4], launch_ps=5_000)
    assert model.lookahead(deal(model.units(), model.weights(), 2)).time == 5_000
    quick, slow = (compare(m, protocol) for m in (model, mixed(*MIXED[1:4])))
    assert quick.rounds > slow.rounds


def test_a_launch_without_delay_is_refused_by_name_on_ranks_and_fine_on_one() -> None:
    model = mixed(*MIXED[1:4], launch_ps=0)
    with pytest.raises(Refused, match=r"a command of the scheduler's \(launch\) may take 0 ps"):
        run(model, None, show_compiling=False)
    assert all(job.end_ps for job in job_records(model, alone(model)))


def test_jobs_of_the_last_groups_only_are_heard_of_at_the_scheduler() -> None:
    """On rank 0 runs nothing but the scheduler."""
    jobs = (Job(60, "broadcast", 10, arrival_ps=0), Job(12, "allreduce", 2000, arrival_ps=1))
    model = mixed(*jobs, allocation="simple")
    records = job_records(model, compare(model))
    assert min(records[1].labels) == 60


@pytest.mark.parametrize("protocol", ["window", "null"])
def test_a_checkpoint_in_the_middle_changes_nothing(tmp_path: Path, protocol: str) -> None:
    place = Path(world().everyone(str(tmp_path))[0])
    model = mixed()
    run(model, 8 * US + 1, protocol=protocol, checkpoint_dir=place, checkpoint_every=4 * US)
    resumed = run(model, None, protocol=protocol, checkpoint_dir=place, resume=place)
    here = alone(model)
    assert resumed.resumed_ps == 8 * US
    assert resumed.digest == here.digest
    assert job_records(model, resumed) == job_records(model, here)


# -- decisions of any model

SLOW: dict[str, int] = {"delay": 100_000, "way": 100_000, "promised": 100_000}


@pytest.mark.parametrize("protocol", ["window", "null"])
@pytest.mark.parametrize(
    "model",
    [
        Office(**SLOW),
        Office(**SLOW, clerk=6, rounds=30),
        Office(**SLOW, orders=5000, rounds=3),
        Office(**SLOW, agents=40, orders=1, rounds=50),
        Office(way=100_001, delay=500_000, promised=100_001),
    ],
    ids=["plain", "clerk-6", "many", "one-by-one", "slow"],
)
def test_decisions_for_agents_of_any_rank_are_those_of_one(model: Office, protocol: str) -> None:
    together, here = run(model, None, protocol=protocol, show_compiling=False), alone(model)
    assert (together.digest, together.events) == (here.digest, here.events)
    assert together.time_ps == here.time_ps
    assert together.outcome["asked"].sum() == model.rounds
