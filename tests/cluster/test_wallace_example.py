"""The example of Wallace et al., end to end: profiles that were learned, and what they admit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from odonata.jobs.power import Power
from odonata.traces.trace import Trace
from policies.power import POWERS, Configuration, PowerPolicy, power

MINUTE, HOUR = 60 * 10**6, 3600 * 10**6
WATTS = {"J0": 60, "J1": 50, "J2": 30, "J3": 40}
RACKS = {"J0": 3, "J1": 1, "J2": 5, "J3": 4}
"""A rack is a node here, and a kilowatt a watt."""
AFTER = 12 * HOUR


@pytest.fixture(scope="module", autouse=True)
def strict() -> Iterator[None]:
    """First come, first served, with the power of every application known."""

    @power("all-known", about="in order, by the true power", source="test")
    class AllKnown(PowerPolicy):
        def configure(self, view, job):
            running = sum(one.run.request.nodes * WATTS[one.run.request.application]
                          for one in view.running)  # fmt: skip
            mine = [job, *(it for it in view.queue if it.number < job.number)]
            needed = sum(it.nodes * WATTS[it.application] for it in mine)
            return Configuration(job.nodes) if running + needed <= view.budget.cap_w else None

    yield
    del POWERS["all-known"]


def example() -> Trace:
    """Returns a job of every application, one after the other, and when they are done the four of
    the example at once."""
    submit = np.array([0, 1, 2, 3, *[AFTER] * 4])
    run = np.array([110 * MINUTE] * 4 + [HOUR] * 4)
    nodes = np.array([1] * 4 + [RACKS[name] for name in RACKS])
    zero = np.zeros(8, np.int64)
    return Trace("example", np.arange(8), submit, run, nodes, run, zero, zero, np.arange(8) % 4,
                 zero - 1, applications=tuple(WATTS))  # fmt: skip


def first_started(policy: str, folder: Path) -> list[int]:
    """Returns which of the four start together."""
    file = folder / "watts.csv"
    file.write_text("application,watts\n" + "".join(f"{k},{v}\n" for k, v in WATTS.items()))
    settings = Power(policy=policy, cap="230 W", demand=str(file), idle_w=0.0, active_w=60.0,
                     least_w=60.0, maximum_w=100.0, sleep_w=0.0)  # fmt: skip
    found = simulate(Cluster(example(), 6, "fcfs", power=settings))
    assert found.power is not None
    assert found.power.capping_success == 1.0
    start = found.schedule.start_us[4:]
    return np.flatnonzero(start == start.min()).tolist()


def test_the_learner_fills_six_racks_with_j1_and_j2(tmp_path: Path) -> None:
    assert first_started("dynamic-learner", tmp_path) == [1, 2]


def test_strict_order_takes_j0_and_j1_and_leaves_two_racks_idle(tmp_path: Path) -> None:
    assert first_started("all-known", tmp_path) == [0, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("application,watts\nJ9,5\n", "line 2: 'J9': the trace has no such application"),
        ("application,watts\nJ0,5\nJ0,6\n", "line 3: 'J0': twice"),
        ("application,kW\nJ0,5\n", "line 1: application, kw: a header of one of application"),
        ("application,watts\nJ0,5 W\n", "line 2: watts = '5 W': a number, without a unit"),
        ("application,watts\nJ0,-5\n", "line 2: -5: watts above 0"),
        ("application,watts,spread\nJ0,5\n", "line 2: 2 columns, and the header has 3"),
        ("", "line 1: nothing: a header"),
        ("application,watts\nJ0,500\n", "power.maximum = 100 W: a job draws 500 W"),
    ],
)
def test_a_file_of_demands_that_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    from pdes.errors import Refused

    file = tmp_path / "w.csv"
    file.write_text(text)
    with pytest.raises(Refused, match=r"power\.maximum|w\.csv") as refusal:
        Cluster(example(), 6, "fcfs", power=Power(demand=str(file), maximum_w=100.0, active_w=90.0,
                                                  least_w=50.0, idle_w=0.0))  # fmt: skip
    assert words in str(refusal.value)


def test_demands_may_be_by_job_and_fluctuate(tmp_path: Path) -> None:
    file = tmp_path / "w.csv"
    file.write_text("# by number\njob,watts,spread\n3,44,0.1\n5,22,0\n")
    demand = Cluster(example(), 6, "fcfs", power=Power(demand=str(file), idle_w=0.0)).demand
    assert demand.mean_w.tolist() == [290, 290, 290, 44, 290, 22, 290, 290]
    assert demand.spread[3] == 0.1
