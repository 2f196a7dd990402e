"""Jobs that a power policy can never start are dropped, counted and named; those that ask for fewer
nodes than were measured run as they were submitted, on no more nodes than they asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import assume, given
from naive import Job as Plain
from rmap_twin import Job, Machine, Rules, Shares, Way
from test_rmap_twin import Case, cases, model_of, real, twin

from odonata.cluster.admission import admitted
from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from odonata.jobs.power import Power
from odonata.jobs.schedule import FINISHED
from pdes.errors import Refused

POLICIES = ("traditional", "naive", "adaptive")
KNOWN = {"big": [Way(16, 16, 115.0, 400, 3200.0), Way(16, 16, 65.0, 560, 2400.0),
                 Way(32, 16, 115.0, 200, 6400.0)]}  # fmt: skip
FEW = Job(0, 0, 3, 70, "big", 70)
MANY = Job(1, 0, 20, 500, "big", 500)
STRANGE = Job(2, 0, 40, 50, None, 50)


def case(policy: str, *jobs: Job, bound_w: float = 9000.0) -> Case:
    machine = Machine(64, bound_w, 0.0, 290.0, KNOWN, KNOWN)
    return Case([job._replace(number=at) for at, job in enumerate(jobs)], machine, Rules(policy))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_below_the_smallest_measured_size_is_not_enlarged(policy: str) -> None:
    """It runs for as long, and on as many nodes, as its user said; one above is molded."""
    some = case(policy, FEW, MANY)
    few, many = real(some)
    assert [few, many] == twin(some)
    assert (few.nodes, few.end, few.way) == (3, 70, None)
    assert many.way is not None
    assert many.nodes in (16, 32) if policy != "traditional" else many.nodes == 16


@pytest.mark.parametrize("policy", POLICIES)
def test_who_could_never_start_is_dropped_counted_and_named(policy: str) -> None:
    """At 290 W per node 40 nodes draw 11,600 W."""
    model = admitted(model_of(case(policy, FEW, MANY, STRANGE)))
    assert model.trace.number.tolist() == [0, 1]
    ((reason, count),) = model.trace.account.dropped.items()
    assert count == 1
    assert reason == (
        "their power policy could never start them: they draw more than the cap, 9,000 W at its "
        "highest, at the 290 W per node that are assumed, as their application was not measured "
        "(number 2)"
    )
    assert model.trace.account.noted == {
        "run as submitted, at up to 290 W per node, while others are molded: they ask for fewer "
        "nodes than their application was measured on": 1
    }
    assert (simulate(model).schedule.state == FINISHED).all()
    assert model.trace.account.lines()[-1].startswith("1 run as submitted, at up to 290 W")


def test_no_job_left_is_refused_with_the_reason() -> None:
    with pytest.raises(Refused, match=r"no job is left to run; 1 dropped: their power policy could "
                       r"never .* 2,300 W at its highest, in each of their configur"):  # fmt: skip
        admitted(model_of(case("naive", MANY, bound_w=2300.0)))


def test_the_highest_cap_that_is_still_to_come_decides() -> None:
    """Two of three jobs see a cap under which they start; the third came too late."""
    jobs = [Plain(0, 0, 50, 4, 50), Plain(1, 100, 50, 4, 50), Plain(2, 250, 50, 4, 50)]
    cap = (("0 s", "900 W"), ("200 us", "1200 W"), ("240 us", "900 W"))
    from clusters import trace_of

    power = Power("rmap-naive", cap=cap, idle_w=0.0, demand="constant")
    model = admitted(Cluster(trace_of(jobs), 4, power=power))
    assert model.trace.number.tolist() == [0, 1]
    (reason,) = model.trace.account.dropped
    assert "1,200 W at its highest" in reason


@pytest.mark.parametrize("policy", ["none", "naive", "uniform", "dynamic-learner"])
def test_policies_that_let_a_job_break_the_cap_drop_nobody(policy: str) -> None:
    from clusters import trace_of

    model = Cluster(trace_of([Plain(0, 0, 50, 4, 50)]), 4, power=Power(
        policy, cap="500 W", demand="constant"))  # fmt: skip
    assert admitted(model) is model


@given(cases())
@examples(30)
def test_all_that_is_left_ends_and_all_that_was_dropped_never_starts(some: Case) -> None:
    """Also where nobody may overtake the first that waits."""
    shares = Shares(some.machine, some.rules._replace(grace=0.0))
    possible = [job.number for job in some.jobs
                if shares.cluster_w >= 0 and shares.wanted(job) is not None]  # fmt: skip
    assume(possible)
    model = admitted(model_of(some))
    assert model.trace.number.tolist() == possible
    assert len(some.jobs) - len(possible) == model.trace.account.total_dropped
    found: Any = simulate(model)  # which would fail if somebody were left
    assert found.schedule.done.all()
    asked, held = model.trace.nodes, found.schedule.job_nodes
    molded = np.zeros(len(asked), bool)
    molded[found.schedule.molds.job if found.schedule.molds else []] = True
    assert (held[~molded] == asked[~molded]).all()
    if some.rules.policy == "traditional":
        assert (held <= asked).all()
