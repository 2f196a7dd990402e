"""The scheduler hears what routers and nodes counted, exactly, a delay later, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from machines import EVERYTHING, SMALL, US
from workloads import go, network

from odonata.agents.layout import DELIVERED_BYTES
from odonata.agents.metrics import COUNTERS
from odonata.agents.network import Network
from odonata.agents.reports import Telemetry
from odonata.commands.cli import cli
from odonata.jobs.request import Job
from odonata.results.performance import performance
from pdes.driver import run
from pdes.errors import Fault, Refused
from pdes.transport import Serial
from policies.allocation import ALLOCATIONS, AllocationPolicy, allocation
from policies.scheduling import SCHEDULINGS, scheduling
from policies.views import Counters, Labels, Request, Sight

EVERY, LATE = 4 * US + 7, 3 * US
"""No event of the network is at the instant of a reading."""
HOG = Job(16, "all-to-all", 4096, iterations=40, on=tuple(range(0, 32, 2)), name="hog")
TIMES = (2, 6, 9, 13, 27, 40)
LATER = tuple(Job(4, "halo2d", 100, arrival_ps=time * US + 1) for time in TIMES)
READS = 3


@dataclass(frozen=True)
class Spy(AllocationPolicy):
    """Notes what it is shown, and gives the first idle nodes."""

    @property
    def reads(self) -> int:
        return READS

    def choose(self, sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
        SEEN[job.submit] = sight.counters
        return sight.labels[: job.nodes]


SEEN: dict[int, Counters | None] = {}
"""What it was shown, by the time at which a job was submitted."""


@pytest.fixture(autouse=True)
def spy() -> Iterator[None]:
    allocation("spy", about="what a test looks at", source="this test")(Spy)
    SEEN.clear()
    yield
    del ALLOCATIONS["spy"]


def spied(*jobs: Job, **given: Any) -> Network:
    how = {"allocation": "spy", "telemetry_ps": EVERY, "telemetry_delay_ps": LATE}
    return network(*(jobs or (HOG, *LATER)), **how | given)


def truth(model: Network, time: int) -> dict[str, Any]:
    """Returns the counters at a time, as a run has them that ends then and reports nothing."""
    m = model.machine
    if not time:
        nodes, routers = np.zeros(m.n_nodes, np.int64), np.zeros(m.n_routers, np.int64)
        return {"sent": nodes, "received": nodes, "stall": routers, "wait": routers}
    outcome = run(model, time, transport=Serial(), show_compiling=False).outcome
    counters = outcome["counters"].sum(axis=2)
    ports = m.routers * m.radix
    counted = {name: counters[:, :, place] for place, name in enumerate(COUNTERS)}
    stall, wait = (
        counted[name][:, :ports].reshape(m.n_routers, m.radix).sum(1)
        for name in ("stall_ps", "wait_ps")
    )
    if "inputs" in outcome:
        waited, room, eject, _ = outcome["inputs"].reshape(m.n_routers, -1, 4).sum(1).T
        stall, wait = stall + room + eject, wait + waited
    return {
        "sent": counted["bytes"][:, ports:].reshape(-1),
        "received": outcome["nodes"][:, DELIVERED_BYTES],
        "stall": stall,
        "wait": wait,
    }


TIGHT = {"local_buffer": 1024, "global_buffer": 1024}


@pytest.mark.parametrize(
    ("inside", "delay"),
    [(TIGHT, LATE), (TIGHT, 5 * EVERY),
     pytest.param(EVERYTHING, LATE, marks=pytest.mark.long)],  # a program of its own
    ids=["plain", "later than all that is kept", "crossbars"],
)  # fmt: skip
def test_what_is_seen_is_what_was_counted_in_the_last_intervals(
    inside: dict[str, Any], delay: int
) -> None:
    inside = {name: value for name, value in inside.items() if name != "routing"}
    go(spied(**inside, telemetry_delay_ps=delay))
    plain = network(HOG, *LATER, **inside)
    for time in (us * US + 1 for us in TIMES):
        last, seen = (time - delay) // EVERY, SEEN[time]
        if last < 1:
            assert seen is None
            continue
        assert seen is not None
        assert (seen.age, seen.interval_s) == (time - last * EVERY, EVERY / 1e12)
        ends = [truth(plain, end * EVERY) for end in range(max(0, last - READS), last + 1)]
        for name in ("sent", "received", "stall", "wait"):
            readings = np.array([end[name] for end in ends])
            assert (np.diff(readings, axis=0) == getattr(seen, name)).all(), name
            assert readings.any(), name


def test_a_report_takes_its_delay_and_not_a_picosecond_less() -> None:
    for early in (0, 1):
        late = Job(4, "halo2d", 100, arrival_ps=EVERY + LATE - early)
        model = spied(HOG, late)
        state = go(model, EVERY + LATE + 1 - early).state
        seen = SEEN[EVERY + LATE - early]
        assert (seen is None) == (not state.heard.any()) == bool(early)
        assert seen is None or seen.age == LATE


def test_reports_change_nothing_in_the_network() -> None:
    told, untold = (go(network(HOG, *LATER, telemetry_ps=every)) for every in (EVERY, None))
    assert told.jobs == untold.jobs
    assert told.result.digest != untold.result.digest
    assert not len(untold.state.heard)
    for name in ("counters", "nodes", "histogram"):
        assert (told.result.outcome[name] == untold.result.outcome[name]).all()


def test_counters_are_read_where_the_allocation_wants_them() -> None:
    assert network(HOG).telemetry is None
    assert network(HOG, telemetry_ps=EVERY).telemetry == Telemetry(EVERY, 10 * US, 1)
    nedd = network(HOG, allocation="nedd", allocation_parameters=(("intervals", 5),))
    assert nedd.telemetry == Telemetry(100 * US, 10 * US, 5)


@pytest.mark.parametrize("reads", ["3", 3.5, -1, 257])
def test_a_policy_that_reads_nonsense_is_named(monkeypatch: Any, reads: Any) -> None:
    monkeypatch.setattr(Spy, "reads", reads)
    with pytest.raises(Fault, match=r"allocation spy: its reads is .* 0 .. 256"):
        go(spied())


def test_a_run_without_packets_refuses_an_allocation_that_reads_counters() -> None:
    asked = ["schedule", "--model", "poisson", "--jobs", "9", "--nodes", "9", "--machine", "kim-72"]
    found = CliRunner().invoke(cli, [*asked, "--allocation", "nedd"])
    assert found.exit_code != 0
    assert "allocation = nedd: it reads the counters of the network" in str(found.exception)


def test_a_run_ends_though_counters_are_read_for_ever() -> None:
    """Also where a job never starts."""
    assert go(spied(Job(4, "halo2d", 100))).result.time_ps < 100 * US
    scheduling("nobody", about="starts nothing", source="this test")(lambda view: [])
    stuck = spied(order="nobody")
    try:
        result = run(stuck, None, transport=Serial(), show_compiling=False)
        with pytest.raises(Fault, match="hog never started"):
            performance(stuck, result)
    finally:
        del SCHEDULINGS["nobody"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"telemetry_ps": 0}, "telemetry = 0 ps: 1 ns .. 1,000 s, or auto"),
        ({"telemetry_delay_ps": -1}, "telemetry_delay = -1 ps: 0 .. 1,000 s"),
        ({"telemetry_ps": 1000, "telemetry_delay_ps": 10**8}, "at most 10,000 times the interval"),
    ],
)
def test_nonsense_is_refused(given: dict[str, int], said: str) -> None:
    with pytest.raises(Refused, match=said):
        network(HOG, **given)


def test_its_events_grow_with_routers_and_not_with_packets() -> None:
    """A reading of a router is an event, and what it says of the router and of each of its nodes is
    one more each."""
    reports = SMALL.nodes + 1
    end = 10 * EVERY + LATE + 1
    for iterations in (1, 40):
        hog = replace(HOG, iterations=iterations)
        told, untold = (
            run(network(hog, telemetry_ps=every, telemetry_delay_ps=LATE), end,
                transport=Serial(), show_compiling=False).events
            for every in (EVERY, None)
        )  # fmt: skip
        assert told - untold == SMALL.n_routers * (10 + 10 * reports)
