"""What these ranks began goes on with one, and what one began with these: the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from machines import DIRECT, EVERYTHING, PARALLEL, SMALL, US, network
from threads import bits, files

from odonata.agents.audit import conclude
from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.agents.workload import Workload
from odonata.jobs.power import Power
from odonata.jobs.request import Job
from pdes.driver import Result, run
from pdes.stream import Recording
from pdes.transport import Serial, Transport, world

pytestmark = pytest.mark.mpi(min_size=2)

END = 2_500_000
JOBS = (
    Job(20, "all-to-all", 1500, exchange="pairwise", compute_ps=200_000),
    Job(17, "allreduce", 900, iterations=3, compute_ps=112_345, sensitive=True),
    Job(30, "halo3d26", 700, iterations=2, arrival_ps=1, user="ann"),
    Job(40, "permutation", 4000, arrival_ps=US, sensitive=False),
)


def jobs(traffic: tuple[Traffic, ...] = (), power: Power | None = None, **given: Any) -> Network:
    load = Workload(JOBS, **{"allocation": "rdn", "launch_ps": 900_000} | given)
    return Network(SMALL, traffic, workload=load, routing="adaptive", power=power)


MODELS: dict[str, Callable[[], Network]] = {
    "traffic": lambda: network(PARALLEL, routing="ugal-l", pattern="adversarial", load=0.8),
    "buffered": lambda: network(**EVERYTHING),
    "direct": lambda: network(**DIRECT),
    "mixed": lambda: jobs((Traffic("uniform", load=0.2, message_bytes=700),)),
    "power": lambda: jobs(power=Power("uniform", cap="13 kW", interval_ps=US, variation=0.2)),
    "telemetry": lambda: jobs(
        allocation="nedd", telemetry_ps=US, telemetry_delay_ps=900_000, match_ps=20_000
    ),
}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Returns one directory for all ranks, which is removed when all of them have left it."""
    yield Path(world().everyone(str(tmp_path))[0])
    world().everyone(None)


def leg(
    model: Network, end: int, where: Path, transport: Transport, **how: Any
) -> Result | None:  # fmt: skip
    """Run on these ranks, or on the first of them alone; all wait for it."""
    record = Recording(where, US // 2, (*model.tables(US // 2),), logs=(*model.logs(),))
    ran = None
    if transport.size > 1 or world().rank == 0:
        ran = run(model, end, record=record, transport=transport, show_compiling=False, **how)
    world().everyone(None)
    return ran


def assert_same(model: Network, ran: Result | None, place: Path, parts: Path, end: int) -> None:
    whole = leg(model, end, place / "whole", Serial())
    if ran and whole:
        assert ran.resumed is not None
        assert ran.digest == whole.digest
        assert conclude(model, ran.outcome) is None
        assert bits(parts) == bits(place / "whole")
        assert files(parts) == [f"rank-{rank:04d}.h5" for rank in range(ran.ranks)]
    world().everyone(None)


@pytest.mark.parametrize(
    ("name", "protocol"),
    [("direct", "null"), ("telemetry", "window"),
     pytest.param("traffic", "window", marks=pytest.mark.long)],
)  # fmt: skip
def test_what_these_ranks_began_goes_on_with_one(name: str, protocol: str, place: Path) -> None:
    model, cut = MODELS[name](), 1_400_000
    leg(model, cut + 1, place / "parts", world(), protocol=protocol, checkpoint_dir=place / "saved",
        checkpoint_every=cut)  # fmt: skip
    ran = leg(model, END, place / "parts", Serial(), resume=place / "saved")
    assert_same(model, ran, place, place / "parts", END)


@pytest.mark.parametrize(("name", "protocol"), [("buffered", "window"), ("mixed", "null")])
def test_what_one_began_goes_on_with_these_ranks(name: str, protocol: str, place: Path) -> None:
    model, cut = MODELS[name](), 1_400_000
    leg(model, cut + 1, place / "parts", Serial(), checkpoint_dir=place / "saved",
        checkpoint_every=cut)  # fmt: skip
    ran = leg(model, END, place / "parts", world(), protocol=protocol, resume=place / "saved")
    assert_same(model, ran, place, place / "parts", END)


def test_the_scheduler_may_get_a_rank_of_its_own_on_the_way_and_lose_it(place: Path) -> None:
    """As many ranks as before have other groups then."""
    model, saved = MODELS["power"](), place / "saved"
    apart = replace(model, dedicated_scheduler=True)
    leg(model, 1_200_001, place / "parts", world(), checkpoint_dir=saved,
        checkpoint_every=1_200_000)  # fmt: skip
    leg(apart, 2_400_001, place / "parts", world(), checkpoint_dir=saved,
        checkpoint_every=1_200_000, resume=saved)  # fmt: skip
    ran = leg(model, END, place / "parts", world(), resume=saved)
    assert ran is not None
    assert ran.resumed == 2_400_000
    assert_same(model, ran, place, place / "parts", END)
