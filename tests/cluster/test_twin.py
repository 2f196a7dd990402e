"""The job model against an independent, deliberately naive simulator, job by job."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from clusters import simulated
from hypothesis import given, settings
from naive import kiefer_wolfowitz, simulate
from random_traces import VARIANTS, random_trace, traces

from odonata.cluster.model import Cluster
from odonata.traces.poisson import poisson
from pdes.driver import run
from policies.scheduling import DISCIPLINES, SchedulingPolicy, scheduling

SEEDS = 60


def plain(records: Any) -> list[Any]:
    return [(r.start, r.end, r.state, [tuple(s) for s in r.segments]) for r in records]


@pytest.mark.parametrize("overrun", ["kill", "extend"])
@pytest.mark.parametrize(("discipline", "parameters"), VARIANTS)
def test_every_discipline_agrees_with_the_naive_one_job_by_job(
    discipline: str, parameters: dict[str, Any], overrun: str
) -> None:
    for seed in range(SEEDS):
        jobs, nodes = random_trace(seed)
        ours, _ = simulated(jobs, nodes, discipline, overrun, **parameters)
        assert plain(ours) == plain(simulate(jobs, nodes, discipline, overrun, **parameters)), seed


def test_every_discipline_there_is_has_a_naive_twin() -> None:
    assert {name for name, _ in VARIANTS} == set(DISCIPLINES)


@given(traces(unknown=False))
@settings(max_examples=150, deadline=None)
def test_first_come_first_served_is_the_kiefer_wolfowitz_recursion(case: Any) -> None:
    jobs, nodes = case
    ours, _ = simulated(jobs, nodes, "fcfs", "extend")
    waits = [record.start - job.submit for record, job in zip(ours, jobs, strict=True)]
    assert waits == kiefer_wolfowitz(jobs, nodes)


class Twice(SchedulingPolicy):
    """Any compiled discipline, asked through a view: what a user's own policy goes through."""

    def select(self, view: Any) -> Any:
        return DISCIPLINES.make("easy").select(view)


@pytest.fixture
def by_view() -> Any:
    scheduling("by-view", about="a test's", source="nobody's")(Twice)
    yield "by-view"
    del DISCIPLINES["by-view"]


def test_a_discipline_asked_through_a_view_chooses_as_its_kernel_does(by_view: str) -> None:
    for seed in range(60):
        jobs, nodes = random_trace(seed)
        for overrun in ("kill", "extend"):
            ours, _ = simulated(jobs, nodes, by_view, overrun)
            assert plain(ours) == plain(simulate(jobs, nodes, "easy", overrun)), seed


@pytest.mark.parametrize(
    ("servers", "load", "traces"),
    [(1, 0.6, 6), (4, 0.6, 8), pytest.param(16, 0.8, 100, marks=pytest.mark.long)],
)
def test_the_mean_wait_of_one_node_jobs_is_that_of_a_queue_of_servers(
    servers: int, load: float, traces: int
) -> None:
    """Erlang's C formula. The mean of one trace is off by a per cent or more, the mean of so many
    by less than a third of what is allowed (one standard deviation)."""
    means = []
    for seed in range(1, traces + 1):
        trace = poisson(500_000, servers, load=load, seed=seed)
        result = run(Cluster(trace, servers), None, show_compiling=False)
        means.append(float((result.outcome["start_us"] - trace.submit_us).mean()) / 3600e6)
    offered = servers * load
    terms = np.cumprod([1.0, *(offered / k for k in range(1, servers + 1))])
    waits = terms[-1] / (1 - load)
    erlang_c = waits / (terms[:-1].sum() + waits)
    assert np.mean(means) == pytest.approx(erlang_c / (servers * (1 - load)), rel=0.02)
