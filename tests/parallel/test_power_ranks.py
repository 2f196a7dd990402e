"""Power in runs of packets, on the ranks that these tests are run on: the same joules as on one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from machines import SMALL, US

from odonata.agents.audit import conclude
from odonata.agents.network import Network
from odonata.agents.workload import Workload
from odonata.jobs.power import Power
from odonata.jobs.request import Job
from odonata.results.performance import job_records, node_energy_j
from pdes.driver import Result, run
from pdes.join import join
from pdes.stream import Recording
from pdes.transport import Serial, Transport, world
from policies.memory import Sizes
from policies.power import POWERS, Caps, PowerPolicy, power

pytestmark = pytest.mark.mpi(min_size=2)

JOBS = (
    Job(20, "all-to-all", 1500, exchange="pairwise", compute_ps=9 * US),
    Job(17, "allreduce", 900, iterations=6, compute_ps=3_012_345),
    Job(9, "uniform", 600, iterations=10, compute_ps=2 * US),
    Job(30, "halo3d26", 700, iterations=5, arrival_ps=1, compute_ps=4 * US, user="ann"),
    Job(8, "tree-broadcast", 5000, iterations=3, arrival_ps=2 * US, project="climate"),
    Job(70, "permutation", 4000, arrival_ps=2 * US, compute_ps=11 * US),
    Job(11, "random-ring", 800, iterations=5, arrival_ps=7 * US, compute_ps=US),
)
CAP = [["0 s", "17 kW"], *([f"{20 * n} us", f"{(13, 11, 19)[n % 3]} kW"] for n in range(1, 20))]
"""It changes every 20 us."""


class Turns(PowerPolicy):
    """One job after the other is held at the least; who it is, it remembers. It is asked for caps
    every 3 us."""

    figures = ("turn",)

    def remembers(self, sizes: Sizes) -> dict[str, Any]:
        return {"turn": np.zeros(1, np.int64), "drawn": np.zeros(sizes.jobs)}

    def observe(self, view: Any) -> tuple[float]:
        view.memory.drawn[view.readings.jobs] = view.readings.watts
        return (float(view.memory.turn[0]),)

    def caps(self, view: Any) -> Caps:
        view.memory.turn += 1
        numbers = [job.run.request.number for job in view.running]
        slow = numbers[int(view.memory.turn[0]) % len(numbers)] if numbers else -1
        return Caps({n: 0.0 if n == slow else view.most_w for n in numbers},
                    again=view.time + 3 * US)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def turns() -> Iterator[None]:
    power("turns", about="one after the other", source="a test")(Turns)
    yield
    del POWERS["turns"]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Returns one directory for all ranks, which is removed when all of them have left it."""
    yield Path(world().everyone(str(tmp_path))[0])
    world().everyone(None)


def capped(policy: str, **given: Any) -> Network:
    load = Workload(JOBS, allocation="rdn", launch_ps=900_000, match_ps=20_000, host_ps=30_000)
    how = Power(policy, cap=CAP, interval_ps=7 * US, variation=0.23, communicating_w=180.0)
    tight = {"delay_ps": 20_000, "local_buffer": 2048, "global_buffer": 4096} | given
    return Network(SMALL, workload=load, routing="adaptive", power=how, **tight)


def same(model: Network, one: Result, other: Result) -> None:
    assert (one.digest, one.time_ps) == (other.digest, other.time_ps)
    records = job_records(model, one)
    assert all(job.end_ps is not None and job.energy_j for job in records)
    assert records == job_records(model, other)
    assert node_energy_j(one).tobytes() == node_energy_j(other).tobytes()
    assert conclude(model, one.outcome) is None


@pytest.mark.parametrize(
    ("policy", "protocol"),
    [("uniform", "window"), ("uniform", "null"), ("naive", "null"), ("dynamic-learner", "window")],
)
def test_caps_that_change_every_20_us_give_the_same_bits(policy: str, protocol: str) -> None:
    model = capped(policy)
    together = run(model, None, protocol=protocol, show_compiling=False)
    assert together.ranks == world().size
    same(model, together, run(model, None, transport=Serial(), show_compiling=False))


def test_a_scheduler_on_a_rank_of_its_own_changes_nothing() -> None:
    model, plain = capped("turns", dedicated_scheduler=True), capped("turns")
    together = run(model, None, show_compiling=False)
    same(model, together, run(plain, None, transport=Serial(), show_compiling=False))


TABLES, LOGS = ("nodes", "jobs"), ("starts", "ends", "power", "caps", "learned")


def recorded(place: Path, transport: Transport, end: int | None, **how: Any) -> Result:
    record = Recording(place, 5 * US, TABLES, logs=LOGS)
    return run(capped("turns"), end, record=record, transport=transport, show_compiling=False,
               **how)  # fmt: skip


def merged(place: Path) -> dict[str, bytes]:
    join(place, place / "run.h5")
    found = {}
    with h5py.File(place / "run.h5") as file:
        for group in (*TABLES, *LOGS):
            for name, column in file[group].items():
                found[f"{group}/{name}"] = column[:].tobytes()
    return found


@pytest.mark.parametrize("protocol", ["window", pytest.param("null", marks=pytest.mark.long)])
def test_restarted_all_is_written_as_if_nothing_had_happened(place: Path, protocol: str) -> None:
    ranks, cut = world(), 45 * US
    recorded(place / "parts", ranks, cut + 1, protocol=protocol, checkpoint_dir=place / "saved",
             checkpoint_every=cut)  # fmt: skip
    rest = recorded(place / "parts", ranks, None, protocol=protocol, resume=place / "saved")
    assert rest.resumed == cut
    model = capped("turns")
    same(model, rest, run(model, None, transport=Serial(), show_compiling=False))
    if ranks.rank == 0:
        recorded(place / "one", Serial(), None)
        alone = merged(place / "one")
        assert merged(place / "parts") == alone
        sizes = {name: len(alone[name]) for name in ("power/cause", "caps/cap_w", "nodes/energy_j")}
        assert min(sizes.values()) > 5, sizes
