"""Power on traces of one to three jobs whose energies and decisions are known by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odonata.cluster.layout import STILL
from odonata.cluster.model import Cluster
from odonata.cluster.simulation import Simulated, simulate
from odonata.jobs.machine import PATIENCE
from odonata.jobs.metering import DEADLOCK, ESTIMATE, LOWERED_CAP, WITHIN
from odonata.jobs.power import Power
from odonata.jobs.schedule import FINISHED
from odonata.results.power_measures import power_measures
from odonata.results.run import open as open_run
from odonata.traces.trace import Trace
from pdes.errors import Fault, Refused

SECOND = 10**6
TWO = ((0, 1000, 3, 1000), (0, 1000, 3, 1000))
"""Two jobs of three nodes: when they come, how long they run, nodes, requested; times in s."""


def trace_of(*jobs: tuple[int, int, int, int]) -> Trace:
    submit, run, nodes, requested = np.array(jobs, np.int64).T
    zero = np.zeros(len(jobs), np.int64)
    return Trace("cases", np.arange(len(jobs)), submit * SECOND, run * SECOND, nodes,
                 requested * SECOND, zero, zero, zero, zero - 1)  # fmt: skip


def went(*jobs: tuple[int, int, int, int], scheduling: str = "fcfs", nodes: int = 10,
         end_s: int | None = None, **power: Any) -> Simulated:  # fmt: skip
    model = Cluster(trace_of(*jobs), nodes, scheduling, power=Power(**power))
    return simulate(model, None if end_s is None else end_s * SECOND)


def test_cost_at_a_price_of_one_is_the_energy_in_kwh_and_no_reading_is_after_the_end() -> None:
    for seconds in (100, 239, 240, 241, 719, 1000, 1302):
        found = went((0, seconds, 3, 5000))
        assert found.power is not None
        assert (found.power.time <= seconds * SECOND).all()
        price = Power(price=1.0).steps("price", 10**6)
        priced = power_measures(found.power, trace_of(TWO[0]), price)
        assert priced.energy_kwh == pytest.approx(seconds * (3 * 290 + 7 * 100) / 3.6e6)
        assert priced.cost == pytest.approx(priced.energy_kwh, rel=1e-12)


def test_a_run_that_is_cut_short_has_the_energy_so_far_in_memory_and_in_files(
    go: Any, tmp_path: Path
) -> None:
    found = went(*TWO, end_s=500)
    assert found.power is not None
    assert found.power.total_j == pytest.approx(500 * (6 * 290 + 4 * 100))
    (tmp_path / "two.swf").write_text(
        "; MaxNodes: 10\n" + "".join(f"{n} 0 -1 1000 3 -1 -1 3 1000 -1 1 1 1 -1 1 -1 -1 -1\n"
                                     for n in (1, 2)))  # fmt: skip
    (tmp_path / "cut.toml").write_text(
        'fidelity = "job"\ntrace.file = "two.swf"\n[power]\n[run]\nduration = "500 s"\n'
        '[metrics]\ninterval = "100 s"\n'
    )
    go("run", "cut.toml", "-o", "out")
    with open_run(tmp_path / "out") as run:
        assert run.power.total_j == pytest.approx(found.power.total_j)  # type: ignore[union-attr]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a run that begins with nothing to do give it up after 50 measurements, as if there had
    been all the others before."""
    usual = Cluster.state

    def state(self: Cluster, first: int, last: int) -> Any:
        made = usual(self, first, last)
        made.ctl[STILL] = PATIENCE - 50
        return made

    monkeypatch.setattr(Cluster, "state", state)


@pytest.mark.usefixtures("impatient")
def test_naive_counts_idle_nodes_before_anything_was_measured() -> None:
    found = went(*TWO, policy="naive", cap="1600 W")
    # the first ends at 1,000 s, and from then on its watts are free, though the last measurement
    # was at 960 s
    assert found.schedule.start_us.tolist() == [0, 1000 * SECOND]
    assert found.power is not None
    assert found.power.capping_success == 1.0
    with pytest.raises(Fault, match="power naive: it has left 1 of 1 jobs waiting"):
        went(TWO[0], policy="naive", policy_parameters=(("deadlock", "idle"),), cap="1100 W",
             interval_ps=3600 * 10**12)  # fmt: skip


def test_naive_does_not_take_sleeping_nodes_for_idle_ones() -> None:
    found = went((1000, 2000, 5, 4000), policy="naive", cap="1400 W",
                 policy_parameters=(("sleep_after_s", 60.0),))  # fmt: skip
    assert found.power is not None
    assert {*found.power.cause.tolist()} <= {WITHIN, DEADLOCK}


@pytest.mark.parametrize("at_s", [230, 240, 250, 470])
def test_a_cap_that_is_lowered_is_the_cause_whenever_it_is(at_s: int) -> None:
    found = went((0, 1000, 8, 1000), policy="naive",
                 cap=(("0 s", "3 kW"), (f"{at_s} s", "1500 W")))  # fmt: skip
    assert found.power is not None
    causes = {*found.power.cause.tolist()}
    assert causes == {WITHIN, LOWERED_CAP}
    assert ESTIMATE not in causes


def test_nodes_freed_by_preemption_go_to_sleep() -> None:
    found = went((0, 10000, 10, 10000), (100, 5000, 1, 5000), scheduling="lcfs-pr",
                 policy="idle-sleep", policy_parameters=(("sleep_after_s", 60.0),))  # fmt: skip
    assert found.power is not None
    assert found.power.sleep_j == pytest.approx(9 * 10.0 * (5000 - 60))
    model = Cluster(trace_of((0, 100, 5, 100)), 10, "lcfs-pr",
                    power=Power(policy="uniform",
                                policy_parameters=(("sleep_after_s", 60.0),)))  # fmt: skip
    assert simulate(model).power is not None


def test_limits_that_are_fixed_do_not_count_the_time_in_which_nodes_wake() -> None:
    found = went((1000, 1000, 10, 1000), (1500, 100, 1, 100), scheduling="lcfs-pr",
                 policy="idle-sleep", limits="fixed",
                 policy_parameters=(("sleep_after_s", 60.0),))  # fmt: skip
    assert found.schedule.state.tolist() == [FINISHED, FINISHED]


@pytest.mark.usefixtures("impatient")
def test_measuring_goes_on_while_a_cap_is_to_come() -> None:
    found = went((0, 100, 8, 100), (0, 100, 2, 100), (0, 100, 2, 100), policy="naive",
                 policy_parameters=(("deadlock", "idle"),), interval_ps=10**12,
                 cap=(("0 s", "1100 W"), ("101 s", "2600 W")))  # fmt: skip
    assert found.schedule.done.all()


def test_without_a_cap_the_allowed_power_is_infinite() -> None:
    found = went((0, 2000, 3, 2000))
    assert found.power is not None
    assert np.isinf(found.power.cap_w).all()
    assert found.power.capping_success is None


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"interval_ps": 10**6}, "measurements until the last submission"),
        ({"active_w": 50.0, "least_w": 20.0}, "idle = 100 W: at most active, 50 W"),
        ({"sleep_w": 200.0}, "sleep = 200 W: at most idle, 100 W"),
        ({"price": "abc"}, "power.price"),
        ({"policy": "dynamic-learner", "policy_parameters": (("samples", 500),)},
         "samples = 500: at most kept, 100"),
        ({"policy": "idle-sleep", "policy_parameters": (("sleep_after_s", 1e13),)}, "at most 1e"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_runs(how: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words.replace("(", r"\(")):
        went((0, 100, 3, 100), (2000, 100, 3, 100), **how)


@pytest.mark.parametrize("policy", ["naive", "uniform", "dynamic-learner"])
def test_a_deadlock_goes_by_the_present_cap_and_idle_waits_for_a_higher_one(policy: str) -> None:
    """A job of ten nodes comes at 100 s; up to 1,000 s the cap is too low for it."""
    low_until = (("0 s", "1200 W"), ("1000 s", "none"))
    for deadlock, start in (("run", 100), ("idle", 1000)):
        found = went((100, 500, 10, 500), policy=policy, cap=low_until, interval_ps=100 * 10**12,
                     policy_parameters=(("deadlock", deadlock),))  # fmt: skip
        assert found.schedule.start_us.tolist() == [start * SECOND]
        assert found.power is not None
        assert (found.power.cause == DEADLOCK).any() == (deadlock == "run")
