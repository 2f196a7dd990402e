"""What the scheduler hears of the network, and decides by it, is the same on any ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import pytest
from machines import SMALL, US

from odonata.agents.network import Network
from odonata.agents.workload import Workload
from odonata.jobs.power import Power
from odonata.jobs.request import Job
from odonata.results.performance import job_records
from pdes.driver import Result, run
from pdes.errors import Refused
from pdes.join import join
from pdes.partition import deal
from pdes.stream import Recording
from pdes.transport import Serial, Transport, world

pytestmark = pytest.mark.mpi(min_size=2)

EVERY, LATE = 4 * US, 3 * US
JOBS = (
    Job(20, "all-to-all", 3000, iterations=20, name="hog", on=tuple(range(0, 40, 2))),
    Job(9, "halo2d", 500, iterations=4, arrival_ps=11 * US, sensitive=True),
    Job(9, "allreduce", 500, iterations=4, arrival_ps=11 * US, sensitive=False),
    Job(16, "uniform", 600, iterations=10, arrival_ps=14 * US),
    Job(12, "fft3d", 300, iterations=2, arrival_ps=22 * US, sensitive=False),
    Job(30, "permutation", 900, arrival_ps=23 * US, sensitive=True),
)


def model(allocation: str = "nedd", power: Power | None = None, **given: Any) -> Network:
    how = {"allocation": allocation, "launch_ps": 900_000, "telemetry_ps": EVERY,
           "telemetry_delay_ps": LATE} | given  # fmt: skip
    return Network(SMALL, workload=Workload(JOBS, **how), routing="adaptive", power=power)


def alone(network: Network) -> Result:
    return run(network, None, transport=Serial(), show_compiling=False)


def same(network: Network, together: Result) -> None:
    here = alone(network)
    assert job_records(network, together) == job_records(network, here)
    assert together.digest == here.digest


@pytest.mark.parametrize(
    ("name", "protocol"),
    [("nedd", "null"), ("nedd-level", "window"), ("low-stall-router", "window"),
     *(pytest.param(name, protocol, marks=pytest.mark.long) for name, protocol in
       (("nedd", "window"), ("nedd-level", "null"), ("low-stall-router", "null")))],
)  # fmt: skip
def test_decisions_are_those_of_one_rank(name: str, protocol: str) -> None:
    network = model(name)
    same(network, run(network, None, protocol=protocol, show_compiling=False))


@pytest.mark.long
def test_a_scheduler_on_a_rank_of_its_own_hears_the_same_also_where_nodes_have_caps() -> None:
    for power in (None, Power("uniform", cap="13 kW", interval_ps=3 * US)):
        network = model(power=power)
        apart = replace(network, dedicated_scheduler=True)
        same(network, run(apart, None, show_compiling=False))


def test_decisions_go_by_the_counters_of_all_ranks() -> None:
    """The sensitive job is kept away from every router of the hog, whichever ranks have them; the
    other one gets the rest of these routers."""
    network = model()
    records = job_records(network, run(network, None, show_compiling=False))
    busy = {label // SMALL.nodes for label in records[0].labels}
    sensitive, insensitive = (
        {label // SMALL.nodes for label in job.labels} for job in records[1:3]
    )
    assert not sensitive & busy
    assert insensitive < busy
    assert insensitive & sensitive == set()


@pytest.mark.parametrize(
    ("stop", "protocol"),
    [(11 * US - 1, "window"),
     *(pytest.param(stop, protocol, marks=pytest.mark.long)
       for stop in (8 * US + 1, 11 * US - 1, 11 * US) for protocol in ("window", "null")
       if (stop, protocol) != (11 * US - 1, "window"))],
)  # fmt: skip
def test_a_restart_between_report_and_decision_changes_nothing(
    tmp_path: Path, protocol: str, stop: int
) -> None:
    """Readings of 8 us are on their way until 11 us, when jobs arrive."""
    place = Path(world().everyone(str(tmp_path))[0])
    network = model()
    run(network, stop + 1, protocol=protocol, checkpoint_dir=place, checkpoint_every=stop,
        show_compiling=False)  # fmt: skip
    resumed = run(network, None, protocol=protocol, resume=place, show_compiling=False)
    assert resumed.resumed_ps == stop
    same(network, resumed)


LOGS = ("starts", "seen", "seen_routers")


def recorded(place: Path, transport: Transport, end: int | None, **how: Any) -> Result:
    record = Recording(place, 5 * US, ("jobs",), logs=LOGS)
    return run(model(), end, record=record, transport=transport, show_compiling=False, **how)


def merged(place: Path) -> dict[str, bytes]:
    join(place, place / "run.h5")
    with h5py.File(place / "run.h5") as file:
        return {f"{log}/{name}": column[:].tobytes()
                for log in LOGS for name, column in file[log].items()}  # fmt: skip


@pytest.mark.parametrize("protocol", ["window", pytest.param("null", marks=pytest.mark.long)])
def test_the_logs_of_what_was_seen_are_those_of_one_rank_also_after_a_restart(
    tmp_path: Path, protocol: str
) -> None:
    place, ranks, cut = Path(world().everyone(str(tmp_path))[0]), world(), 13 * US
    recorded(place / "whole", ranks, None, protocol=protocol)
    recorded(place / "parts", ranks, cut + 1, protocol=protocol, checkpoint_dir=place / "saved",
             checkpoint_every=cut)  # fmt: skip
    rest = recorded(place / "parts", ranks, None, protocol=protocol, resume=place / "saved")
    assert rest.resumed_ps == cut
    if ranks.rank == 0:
        recorded(place / "one", Serial(), None)
        alone = merged(place / "one")
        assert merged(place / "whole") == merged(place / "parts") == alone
        assert len(alone["seen/job"]) == 8 * sum(not job.on for job in JOBS)
        assert len(alone["seen_routers/job"]) > 8 * 5 * len(JOBS)


def test_a_delay_bounds_the_lookahead_and_none_is_refused() -> None:
    quick = model(telemetry_delay_ps=5_000)
    found = quick.lookahead(deal(quick.units(), quick.weights(), 2))
    assert found.time == 5_000
    with pytest.raises(Refused, match=r"a report to the scheduler \(telemetry_delay\)"):
        run(model(telemetry_delay_ps=0), None, show_compiling=False)
