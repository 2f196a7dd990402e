"""Jobs of several stages beside traffic and a congestor, with everything on, on as many ranks as
these tests are run on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machines import DIRECT, EVERYTHING, SMALL, US, alone

from odonata.agents.layout import BY_HOPS
from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.agents.workload import Workload
from odonata.jobs.request import Job, Stage
from pdes.driver import run
from pdes.transport import world

pytestmark = pytest.mark.mpi(min_size=2)

END = 40 * US
INSIDE = [pytest.param({"routing": "adaptive"}, id="plain"),
          pytest.param(EVERYTHING, id="buffered", marks=pytest.mark.long),
          pytest.param(DIRECT, id="direct", marks=pytest.mark.long)]  # fmt: skip
"""What routers are like; crossbars take a quarter of a minute each to compile."""
STAGES = (
    Stage("halo4d", 900, compute_ps=300_000, imbalance=0.4, overhead_ps=20_000, repeat=2),
    Stage("uniform", 700, wait="nothing", repeat=3),
    Stage("random-ring", 100, wait="replies", reply_bytes=1500),
    Stage("allreduce", 8),
)


def everything(inside: dict[str, Any]) -> Network:
    """Half-duplex nodes have less to do: they would deadlock."""
    given = {name: value for name, value in inside.items() if name != "load"}
    get = Stage("incast", 200, wait="replies", reply_bytes=800)
    jobs = (
        Job(20, stages=STAGES, iterations=3),
        Job(9, stages=(get,), iterations=100_000, background=True),
        Job(7, "fft3d", 500, 4, arrival_ps=4 * US),
    )
    load = Workload(jobs, allocation="rdn", launch_ps=900_000)
    buffers = {"terminal_buffer": 8192, "local_buffer": 8192, "global_buffer": 8192}
    return Network(SMALL, Traffic(load=0.05, message_bytes=600), workload=load,
                   **(buffers | given))  # fmt: skip


@pytest.mark.parametrize("protocol", ["window", "null"])
@pytest.mark.parametrize("inside", INSIDE)
def test_the_answer_is_that_of_one_rank(inside: dict[str, Any], protocol: str) -> None:
    model = everything(inside)
    result, here = run(model, END, protocol=protocol, show_compiling=False), alone(model, END)
    assert result.ranks == world().size
    assert result.digest == here.digest
    for name in ("by_job", "spent", "job_latencies"):
        assert (result.outcome[name].sum(axis=0) == here.outcome[name].sum(axis=0)).all(), name
    assert np.array_equal(result.outcome["board"], here.outcome["board"])
    assert here.outcome["by_job"].sum(axis=0)[:2, : BY_HOPS + 1].all()


@pytest.mark.parametrize("inside", INSIDE[:2])
def test_a_checkpoint_in_the_middle_of_stages_changes_nothing(
    tmp_path: Path, inside: dict[str, Any]
) -> None:
    place = Path(world().everyone(str(tmp_path))[0])
    model = everything(inside)
    run(model, 21 * US, checkpoint_dir=place, checkpoint_every=10 * US, show_compiling=False)
    resumed = run(model, END, checkpoint_dir=place, resume=place, show_compiling=False)
    assert resumed.resumed_ps == 20 * US
    here = alone(model, END)
    assert resumed.digest == here.digest
    for name in ("by_job", "spent", "job_latencies"):
        assert (resumed.outcome[name].sum(axis=0) == here.outcome[name].sum(axis=0)).all(), name
