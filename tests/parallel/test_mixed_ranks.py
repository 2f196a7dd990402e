"""Traffic beside jobs, and a scheduler with a rank to itself, on ranks."""

from __future__ import annotations

from typing import Any

import pytest
from machines import SMALL, US

from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.agents.workload import Workload
from odonata.jobs.request import Job
from odonata.results.performance import job_records
from pdes.driver import run
from pdes.transport import Serial, world

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
