"""Conservative backfilling keeps plans and a profile between passes: that a run was stopped and
resumed meanwhile, or that the profile is built anew at every pass, changes no start."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import simulated, through_a_view, trace_of
from naive import Job
from random_traces import build, random_trace

from odonata.cluster.model import Cluster
from odonata.jobs.power import Power
from pdes.driver import run
from policies.scheduling import SCHEDULINGS, scheduling

SEEDS = pytest.mark.parametrize("seeds", [
    pytest.param((2, 3), id="some"),
    pytest.param((0, 1, 4, 5), id="more", marks=pytest.mark.long),
])  # fmt: skip
DEPTHS: list[dict[str, Any]] = [{}, {"depth": 1}, {"depth": 3}]
CHANGING = {
    "no rates": None,
    "by number": Power("rate-by-number", (("low", 1.0), ("high", 2.0), ("few", 2), ("many", 4)),
                       demand="constant"),
    "randomised": Power("rate-randomised", (("low", 0.75), ("high", 1.5)), demand="constant"),
    "uniform": Power("uniform", idle_w=50.0, demand="constant",
                     cap=(("0 s", "3 kW"), ("40 us", "900 W"), ("90 us", "2 kW"))),
    "naive": Power("naive", idle_w=50.0, demand="constant",
                   cap=(("0 s", "2 kW"), ("70 us", "1200 W"), ("300 us", "3 kW"))),
}  # fmt: skip
"""What sets the pace of jobs or, the last, does not let all start whose time has come."""


def jobs_of(seed: int) -> tuple[list[Job], int]:
    """Returns a trace with early ends, overruns, and jobs that did not say how long they take; of
    every third, as many jobs as fill several blocks of the profile."""
    if seed % 3:
        jobs, nodes = random_trace(seed)
        return [job._replace(submit=7 * job.submit, run=8 * job.run,
                             requested=None if job.requested is None else 8 * job.requested)
                for job in jobs], nodes  # fmt: skip
    rng = random.Random(seed)
    rows: list[tuple[int, int, int, int | None, int]] = []
    for _ in range(70):
        run_ = rng.randint(0, 60)
        asked = rng.choice((run_, rng.randint(run_, 5 * run_ + 1), rng.randint(1, run_ + 1)))
        rows.append((rng.choice((0, 0, rng.randint(0, 30))), run_, rng.randint(1, 16),
                     None if rng.random() < 0.03 else max(1, asked), 0))  # fmt: skip
    return build(rows), 16


@SEEDS
@pytest.mark.parametrize("parameters", DEPTHS, ids=str)
@pytest.mark.parametrize("rates", CHANGING)
def test_a_run_that_is_stopped_and_resumed_starts_jobs_when_one_that_is_not_does(
    rates: str, parameters: dict[str, Any], seeds: tuple[int, ...], tmp_path: Path
) -> None:
    for seed in seeds:
        jobs, nodes = jobs_of(seed)
        model = Cluster(trace_of(jobs), nodes, "conservative", tuple(parameters.items()),
                        overrun=("kill", "extend")[seed % 2], power=CHANGING[rates])  # fmt: skip
        whole = run(model, None, show_compiling=False)
        if whole.time < 3:
            continue
        middle = random.Random(seed).randint(2, int(whole.time) - 1)
        place = tmp_path / str(seed)
        run(model, middle + 1, checkpoint_dir=place, checkpoint_every=middle, show_compiling=False)
        rest = run(model, None, resume=place, show_compiling=False)
        assert rest.resumed == middle
        for name in ("start_us", "end_us", "state"):
            assert (rest.outcome[name] == whole.outcome[name]).all(), (seed, name)
        assert rest.digest == whole.digest


@pytest.fixture
def by_view(request: pytest.FixtureRequest) -> Iterator[str]:
    made = through_a_view("conservative", request.param)
    scheduling("by-view", about="a test's", source="nobody's")(made)
    yield "by-view"
    del SCHEDULINGS["by-view"]


@SEEDS
@pytest.mark.parametrize("rates", CHANGING)
@pytest.mark.parametrize(("by_view", "parameters"), [(it, it) for it in DEPTHS], ids=str,
                         indirect=["by_view"])  # fmt: skip
def test_asked_through_a_view_it_chooses_as_its_kernel_does_whatever_the_pace(
    by_view: str, parameters: dict[str, Any], rates: str, seeds: tuple[int, ...]
) -> None:
    """Through a view the profile is built anew at every pass."""
    for seed in seeds:
        jobs, nodes = jobs_of(seed)
        overrun = ("kill", "extend")[seed % 2]
        plain, _ = simulated(jobs, nodes, by_view, overrun, power=CHANGING[rates])
        kept, _ = simulated(jobs, nodes, "conservative", overrun, **parameters,
                            power=CHANGING[rates])  # fmt: skip
        assert plain == kept, seed
