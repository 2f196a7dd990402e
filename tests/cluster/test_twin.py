"""The job model against an independent, deliberately naive simulator, job by job."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from clusters import simulated, through_a_view
from conftest import examples
from hypothesis import given
from naive import kiefer_wolfowitz, simulate
from random_traces import VARIANTS, random_trace, traces

from odonata.cluster.model import Cluster
from odonata.traces.poisson import poisson
from pdes.driver import run
from pdes.errors import Fault
from policies.scheduling import SCHEDULINGS, backfilling, scheduling


def some_of(seeds: int, most: int) -> pytest.MarkDecorator:
    """Has a test try so many random traces; `make test-long`, so many in all."""
    rest = pytest.param(range(seeds, most), marks=pytest.mark.long, id="more")
    return pytest.mark.parametrize("seeds", [pytest.param(range(seeds), id="some"), rest])


def plain(records: Any) -> list[Any]:
    return [(r.start, r.end, r.state, [tuple(s) for s in r.segments]) for r in records]


@some_of(15, 60)
@pytest.mark.parametrize("overrun", ["kill", "extend"])
@pytest.mark.parametrize(("discipline", "parameters"), VARIANTS)
def test_every_discipline_agrees_with_the_naive_one_job_by_job(
    discipline: str, parameters: dict[str, Any], overrun: str, seeds: range
) -> None:
    for seed in seeds:
        jobs, nodes = random_trace(seed)
        ours, _ = simulated(jobs, nodes, discipline, overrun, **parameters)
        assert plain(ours) == plain(simulate(jobs, nodes, discipline, overrun, **parameters)), seed


def test_every_discipline_there_is_has_a_naive_twin() -> None:
    """The discipline `sensitive-first` is `easy` here, since a trace does not say which jobs are
    sensitive; its twin is in tests/policies/test_scheduling.py. Those that look ahead have one of
    their own (tests/cheaper_twin.py)."""
    others = {"sensitive-first", "price-aware", "carbon-aware"}
    assert {*(name for name, _ in VARIANTS), *others} == set(SCHEDULINGS)


def test_where_nobody_knows_who_is_sensitive_sensitive_first_is_easy() -> None:
    for seed in range(12):
        jobs, nodes = random_trace(seed)
        ours, _ = simulated(jobs, nodes, "sensitive-first", "kill")
        assert plain(ours) == plain(simulate(jobs, nodes, "easy", "kill")), seed


@given(traces(unknown=False))
@examples(40)
def test_first_come_first_served_is_the_kiefer_wolfowitz_recursion(case: Any) -> None:
    jobs, nodes = case
    ours, _ = simulated(jobs, nodes, "fcfs", "extend")
    waits = [record.start - job.submit for record, job in zip(ours, jobs, strict=True)]
    assert waits == kiefer_wolfowitz(jobs, nodes)


ASKED = [(name, given) for name, given in VARIANTS if not given.get("printed")]
"""Those that can be asked through a view."""


@some_of(4, 15)
@pytest.mark.parametrize(("discipline", "parameters"), ASKED)
def test_a_discipline_asked_through_a_view_chooses_as_its_kernel_does(
    discipline: str, parameters: dict[str, Any], seeds: range
) -> None:
    made = through_a_view(discipline, parameters)
    scheduling("by-view", about="a test's", source="nobody's")(made)
    try:
        for seed in seeds:
            jobs, nodes = random_trace(seed)
            for overrun in ("kill", "extend"):
                ours, _ = simulated(jobs, nodes, "by-view", overrun)
                naive = simulate(jobs, nodes, discipline, overrun, **parameters)
                assert plain(ours) == plain(naive), seed
    finally:
        del SCHEDULINGS["by-view"]


@some_of(15, 60)
def test_backfilling_in_python_is_easy(seeds: range) -> None:
    @scheduling("by-view", about="a test's", source="nobody's")
    def in_python(view: Any) -> Any:
        return backfilling(view, range(len(view.queue)))

    try:
        for seed in seeds:
            jobs, nodes = random_trace(seed)
            for overrun in ("kill", "extend"):
                ours, _ = simulated(jobs, nodes, "by-view", overrun)
                assert plain(ours) == plain(simulate(jobs, nodes, "easy", overrun)), seed
    finally:
        del SCHEDULINGS["by-view"]


def test_what_a_view_does_not_tell_is_not_guessed() -> None:
    scheduling("by-view", about="a test's", source="nobody's")(
        through_a_view("spf", {"printed": True}))  # fmt: skip
    try:
        with pytest.raises(Fault, match="spf: asked through a view"):
            simulated(*random_trace(0), "by-view")
    finally:
        del SCHEDULINGS["by-view"]


@pytest.mark.parametrize(
    ("servers", "load", "traces"),
    [
        (1, 0.6, 2),
        pytest.param(1, 0.6, 6, marks=pytest.mark.long),
        pytest.param(4, 0.6, 8, marks=pytest.mark.long),
        pytest.param(16, 0.8, 100, marks=pytest.mark.long),
    ],
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
