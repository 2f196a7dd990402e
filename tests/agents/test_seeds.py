"""Seeds of placement, mapping and traffic: each decides what it is named after, no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machines import SMALL, US

from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.agents.workload import Workload
from odonata.experiment.reading import parse
from odonata.jobs.request import Job
from odonata.results.performance import job_records
from odonata.sweeps.plan import planned
from pdes.driver import Result, run
from pdes.errors import Refused
from pdes.transport import Serial

QUIET = (Job(1, "incast", 100, iterations=3), Job(1, "incast", 100, arrival_ps=US))
"""Jobs that send nothing. Tasks are mapped at random where nobody says how."""
TALK = (Job(16, "halo3d", 3000), Job(12, "uniform", 900, iterations=3))


def network(jobs: tuple[Job, ...] = TALK, **seeds: int) -> Network:
    load = Workload(jobs, allocation="rdn", launch_ps=900_000)
    return Network(SMALL, Traffic(load=0.2), workload=load, routing="valiant", **seeds)


def go(model: Network) -> Result:
    return run(model, 6 * US, transport=Serial(), show_compiling=False)


def labels(model: Network) -> list[Any]:
    return [job.labels for job in job_records(model, go(model))]


def test_seeds_that_are_that_of_the_run_change_nothing() -> None:
    digest = go(network(seed=7)).digest
    assert go(network(seed=7, placement_seed=7, mapping_seed=7, traffic_seed=7)).digest == digest
    assert go(network(seed=8, placement_seed=7, mapping_seed=7, traffic_seed=7)).digest == digest
    assert go(network(seed=8, placement_seed=7, mapping_seed=7)).digest != digest


def test_the_seed_of_placement_leaves_traffic_as_it_is() -> None:
    one, other = (network(QUIET, seed=7, placement_seed=seed) for seed in (1, 2))
    first, second = go(one), go(other)
    assert job_records(one, first)[0].labels != job_records(other, second)[0].labels
    for name in ("counters", "busy_ps", "histogram"):
        assert np.array_equal(first.outcome[name], second.outcome[name]), name


def test_the_seed_of_traffic_leaves_placement_as_it_is() -> None:
    assert labels(network(traffic_seed=5)) == labels(network())
    assert go(network(traffic_seed=5)).digest != go(network()).digest
    assert labels(network(placement_seed=5)) != labels(network())


def test_the_seed_of_mapping_decides_only_where_tasks_are_in_their_job() -> None:
    quiet = (Job(16, "halo3d", 3000, mapping="linear"),)
    assert go(network(quiet, mapping_seed=5)).digest == go(network(quiet)).digest
    assert labels(network(mapping_seed=5)) == labels(network())
    assert go(network(mapping_seed=5)).digest != go(network()).digest


def test_what_a_checkpoint_is_of_names_only_seeds_that_were_given() -> None:
    assert not [name for name in network().parameters() if name.endswith("_seed")]
    assert network(mapping_seed=3).parameters()["mapping_seed"] == 3


FILE = '[machine]\npreset = "kim-72"\n[[jobs]]\nnodes = 4\n[run]\n'


@pytest.mark.parametrize("text", ["seed.others = 7\nseed.placement = 3",
                                  "[run.seed]\nothers = 7\nplacement = 3",
                                  "seed = { others = 7, placement = 3 }"])  # fmt: skip
def test_a_table_gives_single_seeds(text: str) -> None:
    made = parse(FILE + text, "x.toml")
    assert (made.run.seed, made.run.placement_seed, made.run.mapping_seed) == (7, 3, None)
    assert parse(made.to_toml(), "x.toml") == made
    assert made.written()["run.seed.placement"] == "3"
    assert parse(FILE + text, "x.toml", ["run.seed=9"]).run == made.run.__class__(
        **{**vars(made.run), "seed": 9}
    )


def test_one_number_is_written_as_it_always_was() -> None:
    assert "\nseed = 7\n" in parse(f"{FILE}seed = 7", "x.toml").to_toml()


@pytest.mark.parametrize(("change", "rule"), [
    ("run.seed.placement=-1", "run.seed.placement=-1: 0 .. 2"),
    ("run.seed.placment=1", "did you mean"),
    ("jobs=none\nrun.seed.mapping=1", "there are no [[jobs]]"),
])  # fmt: skip
def test_what_is_no_seed_is_refused(change: str, rule: str) -> None:
    with pytest.raises(Refused, match=rule.replace("[", r"\[").replace(".", r"\.")):
        parse(FILE, "x.toml", change.splitlines())


def test_seeds_are_axes_of_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(FILE + "[sweep]\nrun.seed.mapping = [1, 2]\n")
    plan = planned(tmp_path / "mine.toml", ["run.seed.placement=1,2,3"], (), {"seeds": 2})
    assert [axis.name for axis in plan.axes] == ["run.seed.mapping", "run.seed.placement"]
    assert len({point.key for point in plan.points}) == len(plan.points) == 12
    last = plan.points[-1].experiment().run
    assert (last.seed, last.placement_seed, last.mapping_seed, last.traffic_seed) == (2, 3, 2, None)
