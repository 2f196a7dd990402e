"""Traffic beside jobs, and a scheduler with a rank to itself, on ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machines import SMALL, US

from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.agents.workload import Workload
from odonata.jobs.request import Job
from odonata.results.performance import job_records
from pdes.driver import run
from pdes.transport import Serial, world
from policies.scheduling import SCHEDULINGS, SchedulingPolicy, fitting, scheduling

pytestmark = pytest.mark.mpi

TRAFFIC = (
    Traffic("uniform", load=0.2, message_bytes=700),
    Traffic("hotspot", load=0.05, hot=1.0, hot_every=SMALL.n_nodes, messages=20),
)
JOBS = (Job(16, "halo3d", 3000, iterations=3), Job(20, "all-to-all", 900, arrival_ps=US))


def mixed(**given: Any) -> Network:
    load = Workload(JOBS, allocation="rdn", launch_ps=900_000)
    return Network(SMALL, TRAFFIC, workload=load, routing="adaptive", **given)


@pytest.mark.parametrize("protocol", ["window", "null"])
@pytest.mark.parametrize("dedicated", [False, True])
def test_jobs_beside_traffic_are_those_of_one_rank(protocol: str, dedicated: bool) -> None:
    model = mixed(dedicated_scheduler=dedicated)
    together = run(model, 12 * US, protocol=protocol, show_compiling=False)
    here = run(mixed(), 12 * US, transport=Serial(), show_compiling=False)
    assert together.ranks == world().size
    assert together.digest == here.digest
    assert job_records(model, together) == job_records(model, here)


@pytest.mark.parametrize("seeds", [{"placement_seed": 5}, {"traffic_seed": 5, "mapping_seed": 2}])
def test_seeds_of_their_own_are_those_of_one_rank(seeds: dict[str, int]) -> None:
    together = run(mixed(**seeds), 6 * US, show_compiling=False)
    here = run(mixed(**seeds), 6 * US, transport=Serial(), show_compiling=False)
    assert together.digest == here.digest
    assert here.digest != run(mixed(), 6 * US, transport=Serial(), show_compiling=False).digest


class Patience(SchedulingPolicy):
    """Prefers users whose jobs have waited longest on average, as it remembers them."""

    name, about, source = "patience", "who has waited longest", "a test"

    def remembers(self, sizes: Any) -> dict[str, Any]:
        return {"total": np.zeros(sizes.users), "jobs": np.zeros(sizes.users)}

    def learn(self, ended: Any, memory: Any) -> None:
        memory.total[ended.request.user_number] += ended.wait
        memory.jobs[ended.request.user_number] += 1

    def select(self, view: Any) -> Any:
        mean = view.memory.total / np.maximum(1, view.memory.jobs)
        order = np.argsort([-mean[job.user_number] for job in view.queue], kind="stable")
        return fitting(view, order.tolist())


@pytest.fixture
def patience() -> Iterator[None]:
    scheduling("patience", about="who has waited longest", source="a test")(Patience)
    yield
    del SCHEDULINGS["patience"]


@pytest.mark.usefixtures("patience")
def test_a_policy_that_remembers_gives_one_digest_on_any_ranks_and_after_a_restart(
    tmp_path: Path,
) -> None:
    jobs = tuple(Job(30, "permutation", 4000 * (1 + n % 3), user=f"user {n % 4}", arrival_ps=n * US)
                 for n in range(12))  # fmt: skip
    load = Workload(jobs, order="patience", launch_ps=900_000)
    model = Network(SMALL, workload=load, routing="adaptive")
    here = run(model, None, transport=Serial(), show_compiling=False)
    forgetful = Network(SMALL, workload=replace(load, order="fcfs"), routing="adaptive")
    assert run(forgetful, None, transport=Serial(), show_compiling=False).digest != here.digest
    kept, cut = world().everyone(tmp_path)[0], here.time // 2
    run(model, cut + 1, checkpoint_dir=kept, checkpoint_every=cut, show_compiling=False)
    resumed = run(model, None, resume=kept, show_compiling=False)
    assert resumed.resumed == cut
    assert resumed.digest == here.digest
    assert run(model, None, show_compiling=False).digest == here.digest
