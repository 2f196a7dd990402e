"""Runs of moldable jobs: what each ran in is kept, counted and opened again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import Simulated, simulate
from odonata.experiment.experiment import JobExperiment
from odonata.experiment.reading import parse
from odonata.jobs.power import Power
from odonata.jobs.schedule import FINISHED
from odonata.provisioning.fitted import tables
from odonata.provisioning.table_file import write_tables
from odonata.results.job_table import write_swf
from odonata.results.run import Run
from odonata.results.run import open as open_run
from odonata.results.schedule_measures import measures
from odonata.results.schedule_series import steps
from odonata.traces.poisson import poisson
from odonata.traces.reading import read
from odonata.traces.rmap import rmap
from pdes.driver import run
from pdes.errors import Fault, Refused
from policies.power import POWERS, Admitted, Mold, PowerPolicy, power
from topology.presets import PRESETS

Odonata = Callable[..., Any]

RMAP = """
fidelity = "job"
[trace]
model = "rmap-random"
[power]
policy = "rmap-adaptive"
applications = "cab"
cap = "6500 W"
interval = "1 min"
"""


def simulated(policy: str = "rmap-adaptive", **more: Any) -> Simulated:
    power = Power(policy, cap="6500 W", applications="cab")
    return simulate(Cluster(rmap("random", seed=1), 64, power=power, applications=tables("cab"),
                            **more))  # fmt: skip


@pytest.fixture(scope="module")
def alone() -> Simulated:
    return simulated()


def test_a_job_takes_the_time_and_the_power_of_its_configuration(alone: Simulated) -> None:
    schedule, record = alone.schedule, alone.power
    assert schedule.molds is not None
    assert record is not None
    assert (schedule.state == FINISHED).all()
    trace = schedule.trace
    for job, nodes, cores, cap_w, watts, limit_us in zip(*schedule.molds, strict=True):
        table = tables("cab")[trace.applications[trace.application[job]]]
        point = table.find(nodes, cores, cap_w)
        assert point is not None
        lasted_us = schedule.end_us[job] - schedule.start_us[job]
        assert lasted_us == round(point.seconds * 1e6) <= limit_us
        assert watts == point.watts
        assert record.energy_j[job] == pytest.approx(point.watts * lasted_us * 1e-6, rel=1e-9)
    assert {*schedule.molds.job.tolist()} == {*range(30)}


def test_nodes_in_use_are_those_that_jobs_got(alone: Simulated) -> None:
    schedule = alone.schedule
    assert (schedule.job_nodes != schedule.trace.nodes).any()
    begun, over, held = schedule.segment_from_us, schedule.segment_to_us, schedule.held
    found = steps(schedule)
    for at, busy in zip(found.time_us.tolist(), found.busy.tolist(), strict=True):
        assert busy == held[(begun <= at) & (at < over)].sum() <= 64
    assert found.busy[-1] == found.queue[-1] == found.waiting_nodes[-1] == 0
    used = (held * (over - begun)).sum() / (64 * (schedule.end_us.max() - begun.min()))
    assert measures(schedule).utilisation == pytest.approx(used, rel=0.02)


def test_a_placed_job_gets_as_many_places(alone: Simulated) -> None:
    found = simulated(machine=PRESETS["kim-72"].machine).schedule
    assert found.labels is not None
    assert len(found.labels) == found.held.sum()
    assert (found.start_us == alone.schedule.start_us).all()
    first = found.first_label
    for at, size in enumerate(found.held.tolist()):
        assert len({*found.labels[first[at] : first[at] + size].tolist()}) == size


def test_a_run_from_a_file_is_the_same_and_opens_again(
    odonata: Odonata, tmp_path: Path, alone: Simulated
) -> None:
    (tmp_path / "rmap.toml").write_text(RMAP)
    odonata("run", "rmap.toml", "-o", "out")
    run = open_run(tmp_path / "out")
    assert isinstance(run, Run)
    assert run.schedule.molds is not None
    assert alone.schedule.molds is not None
    for mine, other in zip(run.schedule.molds, alone.schedule.molds, strict=True):
        assert (mine == other).all()
    assert (run.jobs.held_nodes == alone.schedule.job_nodes).all()
    assert (run.jobs.cores > 0).all()
    assert set(run.jobs.cap_w.values.tolist()) <= {51.0, 65.0, 80.0, 95.0, 115.0}
    assert run.jobs.cap_w.attrs["unit"] == "W"


def test_the_command_has_a_table_of_ones_own(odonata: Odonata, tmp_path: Path) -> None:
    write_tables(tmp_path / "mine.csv", {"SC": tables("cab")["SC"], "SM": tables("cab")["SM"]})
    words = ("schedule", "--model", "rmap-small", "--power", "rmap-naive", "--cap", "14000 W",
             "--json", "--set")  # fmt: skip
    mine, theirs = (json.loads(odonata(*words, f"applications={it}").stdout)
                    for it in ("mine.csv", "cab"))  # fmt: skip
    assert mine["digest"] != theirs["digest"]
    (tmp_path / "wrong.csv").write_text(
        "application,nodes,cores,cap_w,seconds,watts\nSC,8,8,51,-1,9\n"
    )
    done = odonata(*words, "applications=wrong.csv")
    assert "wrong.csv: line 2" in done.stderr


def test_what_is_named_and_not_there_is_refused() -> None:
    with pytest.raises(
        Refused, match=r'power.applications = "sierra": rzmerl, cab, or a file that ends in \.csv'
    ):
        parse(RMAP.replace('"cab"', '"sierra"'), "x.toml")
    found = parse(RMAP, "x.toml")
    assert isinstance(found, JobExperiment)
    assert found.power is not None
    assert found.power.idle == 0.0
    with pytest.raises(Refused, match=r"power.maximum = 100 W: a job draws 184[0-9.]* W on its"):
        Cluster(rmap("large"), 64, power=Power("rmap-naive", active_w=100.0, least_w=90.0),
                applications=tables("cab"))  # fmt: skip


@pytest.mark.parametrize("knowledge", ["oracle", "model"])
def test_a_run_that_goes_on_from_a_checkpoint_ends_with_the_same_bits(
    knowledge: str, tmp_path: Path
) -> None:
    def model() -> Cluster:
        power = Power("rmap-adaptive", (("knowledge", knowledge), ("threshold", 0.2)),
                      cap=[["0 s", "6500 W"], ["600 s", "8000 W"]], applications="cab",
                      idle_w=20.0)  # fmt: skip
        return Cluster(rmap("random", seed=2, gap_s=20.0), 64, power=power,
                       applications=tables("cab"))  # fmt: skip

    whole = run(model(), None, show_compiling=False)
    half = run(model(), 500 * 10**6, checkpoint_dir=tmp_path, checkpoint_every=10**8,
               show_compiling=False)  # fmt: skip
    assert half.digest != whole.digest
    rest = run(model(), None, resume=tmp_path, show_compiling=False)
    assert rest.digest == whole.digest
    assert (rest.outcome["end_us"] == whole.outcome["end_us"]).all()


def test_other_policies_draw_what_was_measured_without_a_cap() -> None:
    """So that they can be compared: with power for all, none and rmap-traditional are the same."""
    energies = []
    for policy in ("none", "rmap-traditional"):
        power = Power(policy, cap="40 kW", applications="cab")
        found = simulate(Cluster(rmap("small", seed=4), 64, "easy", power=power,
                                 applications=tables("cab")))  # fmt: skip
        assert found.power is not None
        energies.append(found.power.energy_j)
    assert energies[0] == pytest.approx(energies[1], rel=1e-9)


def test_the_trace_is_written_as_it_ran(odonata: Odonata, tmp_path: Path, alone: Simulated) -> None:
    write_swf(alone.schedule, tmp_path / "ran.swf")
    trace = read(str(tmp_path / "ran.swf"))
    assert (trace.nodes == alone.schedule.job_nodes).all()
    ran = alone.schedule.end_us - alone.schedule.start_us
    assert np.abs(trace.run_us - ran).max() <= 500_000  # SWF has whole seconds


def test_nodes_that_differ_draw_more_and_are_slower_under_a_cap() -> None:
    """Every job takes the time of its least efficient node: without a cap that of the table, under
    one that of a lower cap; and its energy is what its nodes draw for so long."""
    trace, places = rmap("large", seed=3), PRESETS["kim-72"].machine
    alike, differ = (
        simulate(Cluster(trace, 64, machine=places, seed=2, applications=tables("cab"),
                         power=Power("rmap-naive", cap="6500 W", idle_w=0.0, variation=variation)))
        for variation in (0.0, 0.23)
    )  # fmt: skip
    assert alike.schedule.molds is not None
    assert differ.schedule.molds is not None
    assert differ.power is not None
    order = np.argsort(differ.schedule.molds.job)
    ran = (differ.schedule.end_us - differ.schedule.start_us) / 1e6
    assert differ.power.energy_j == pytest.approx(differ.schedule.molds.watts[order] * ran)
    before = {
        job: (nodes, cores, cap_w, watts)
        for job, nodes, cores, cap_w, watts in zip(
            *(column.tolist() for column in alike.schedule.molds[:5]), strict=True
        )
    }
    slower = 0
    for job, nodes, cores, cap_w, watts in zip(
        *(column.tolist() for column in differ.schedule.molds[:5]), strict=True
    ):
        assert before[job][:3] == (nodes, cores, cap_w), "the policy knows of no difference"
        of = tables("cab")[trace.applications[trace.application[job]]]
        point = of.find(nodes, cores, cap_w)
        assert point is not None
        assert point.seconds <= ran[job] * (1 + 1e-6) <= 1.23 * point.seconds
        assert point.watts * 0.95 < watts < 1.23 * point.watts
        if cap_w == 115:
            assert ran[job] == pytest.approx(point.seconds, abs=1e-6)
        slower += ran[job] > 1.01 * point.seconds
    assert slower >= 2
    assert (differ.schedule.state == alike.schedule.state).all(), "nobody is ended for it"


@pytest.mark.parametrize(("more", "words"), [
    ({"idle_w": 120.0}, r"power.idle = 120 W: a node of .* draws [0-9.]+ W in one of its"),
    ({"variation": 0.2}, "nodes differ only on a machine on which jobs are placed"),
])  # fmt: skip
def test_what_does_not_go_with_moldable_jobs_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        Cluster(rmap("small"), 64, power=Power("rmap-naive", applications="cab", **more),
                applications=tables("cab"))  # fmt: skip
    with pytest.raises(Refused, match=r"power.applications = cab: poisson has no job of SPhot, .*, "
                       "but jobs of application 1"):  # fmt: skip
        Cluster(poisson(5, 64), 64, power=Power("rmap-naive", applications="cab"),
                applications=tables("cab"))  # fmt: skip
    with pytest.raises(Refused, match=r'power.applications = "cab": only with fidelity = "job"'):
        parse('[power]\napplications = "cab"\n[[jobs]]\nnodes = 2\npattern = "all-to-all"\n',
              "x.toml")  # fmt: skip


@pytest.mark.parametrize(("mold", "words"), [
    (Mold(7, 16, 115.0), "which was never measured"),
    (Mold(8, 16, 115.0, 0), "it ends job 0 after 0; more than 0"),
])  # fmt: skip
def test_a_policy_that_molds_wrongly_is_named(mold: Mold, words: str) -> None:
    @power("test-mold", about="", source="")
    class Wrong(PowerPolicy):
        selects = True

        def select(self, view: Any) -> Admitted:
            return Admitted([view.queue[0].number], molds={view.queue[0].number: mold})

    try:
        with pytest.raises(Fault, match=f"power test-mold: .*{words}"):
            simulated("test-mold")
    finally:
        POWERS.pop("test-mold", None)


def test_a_bound_that_changes_is_kept_to(alone: Simulated) -> None:
    """A cap that falls leaves running jobs alone, and counts against those that start after."""
    power = Power("rmap-naive", cap=[["0 s", "9000 W"], ["500 s", "6500 W"]], applications="cab")
    found = simulate(Cluster(rmap("random", seed=1, gap_s=20.0), 64, power=power,
                             applications=tables("cab")))  # fmt: skip
    schedule, molds = found.schedule, found.schedule.molds
    assert molds is not None
    watts = np.zeros(30)
    watts[molds.job] = molds.watts
    for at in schedule.start_us.tolist():
        running = (schedule.start_us <= at) & (at < schedule.end_us)
        assert watts[running].sum() <= (9000 if at < 500e6 else 6500) + 1e-4 or (
            at >= 500e6 and schedule.start_us[running].min() < 500e6
        )
