"""The NeDD study: who sits where, its simulations, and what it says of them."""

from __future__ import annotations

import doctest
import itertools
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from odonata.studies import named
from odonata.studies.congestion.options import MACHINE
from odonata.studies.nedd import APPLICATIONS, PARTS, NeDD, floor, simulation
from odonata.studies.nedd import claims as said
from odonata.studies.nedd.cases import (
    AGED,
    BLIND,
    DELAYS_US,
    QUEUED,
    RIVALS,
    SETS,
    SETS_BY,
    NeDDPlan,
    cases,
    restless,
)
from odonata.studies.nedd.claims import change, claims, mean_of, slowdowns
from odonata.studies.nedd.floor import CONGESTED, IDLE, WANTED, in_sets
from odonata.studies.nedd.simulation import (
    CONGESTOR_NODES,
    CONGESTORS,
    JOBS,
    NO_CONGESTOR,
    Alone,
    Moving,
    NeDDOutcome,
    Point,
    Queue,
    experiment_for,
    simulate,
)
from odonata.study.contract import Claim
from odonata.study.store import Answer, from_line, to_line
from pdes.errors import Refused
from topology.presets import PRESETS

STUDY = NeDD()
TOTAL = PRESETS[MACHINE].machine.n_nodes
TIMES = {"low-traffic-router": 1.0, "nedd": 1.0, "nedd-level": 0.99, "fewer-router": 1.1,
         "low-stall-router": 1.2, "random": 2.0, "high-traffic-router": 3.0, NO_CONGESTOR: 0.98,
         "level-spread": 1.2, "level-spread-random": 1.2, "simple": 1.05}  # fmt: skip
"""How long a sensitive job takes, in ms."""


def ordinary(point: Point) -> NeDDOutcome:
    """Sensitive jobs take as long as TIMES has it, others nearly always the same, and old counters
    make nedd worse; no two runs are the same."""
    aside = 1 + 0.1 * (point.run % 3)
    slow = TIMES[point.allocation]
    if isinstance(point, Alone | Moving):
        if point.application == "hpcg":
            slow = 1 + 0.01 * slow
        if isinstance(point, Moving):
            slow += point.delay_us / 4000
        times, kinds = [slow * (4 if slow == 2 and point.run == 1 else 1)], [True]
    else:
        times, kinds = [slow, 3.0, slow], [True, False, True]
        if point.order != "fcfs":
            times[0] *= 0.9
    ends = [1.01 + aside * time for time in times]
    some = len(times)
    return NeDDOutcome(["a"] * some, [*kinds], [1.0] * some, [1.01] * some, ends, [8] * some,
                       [0.5] * some, [slow > 1.1] * some, 7, "d")  # fmt: skip


def invented(
    asked: NeDDPlan, give: Callable[[Point], NeDDOutcome] = ordinary
) -> dict[str, NeDDOutcome]:
    return {case.key: give(case) for case in cases(asked)}


@pytest.fixture
def some() -> NeDDPlan:
    return STUDY.ask(application=("minimd", "hpcg"), repetitions=3)


def by_name(found: list[Claim]) -> dict[str, Claim]:
    names = [one.name for one in found]
    assert len({*names}) == len(names)
    return {one.name: one for one in found}


@pytest.mark.parametrize("module", [floor, simulation, said])
def test_examples_in_docstrings_are_so(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)


# -- which simulations


def test_a_study_of_that_name_is_listed() -> None:
    assert isinstance(named("nedd"), NeDD)


def test_every_allocation_has_every_repetition_and_no_case_comes_twice() -> None:
    counts = {part: len(cases(STUDY.ask(part=part))) for part in PARTS}
    assert counts == {
        "application": 10 * len(APPLICATIONS) * len(RIVALS),
        "sets": 10 * len(SETS) * len(SETS_BY),
        "queue": 10 * (len(QUEUED) + 1 + 2 + len(BLIND)),
        "age": 10 * len(AGED) * (len(DELAYS_US) + len(BLIND) + 1),
    }
    every = STUDY.cases(STUDY.ask(), {})
    assert len({case.key for case in every}) == len(every)
    assert [case.run for case in every] == sorted(case.run for case in every)
    assert len({str(case) for case in cases(STUDY.ask(part="age"))}) == counts["age"]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (r"application lammp: one of .*lammps", {"application": ("lammp",)}),
        (r"repetitions = 0: 1 \.\. 1,000", {"repetitions": 0}),
        (r"sets = 201: 1 \.\. 200", {"sets": 201}),
    ],
)
def test_what_makes_no_sense_is_refused(words: str, options: dict[str, Any]) -> None:
    with pytest.raises(Refused, match=words):
        STUDY.ask(**options)


# -- who sits where


@pytest.mark.parametrize("sets", [1, 7, 50, 200])
def test_idle_nodes_are_in_so_many_sets_or_fewer_where_two_of_them_touch(sets: int) -> None:
    labels = in_sets(IDLE, TOTAL, sets, np.random.default_rng(sets))
    assert labels == sorted({*labels})
    assert len(labels) == IDLE
    assert {*labels} <= {*range(TOTAL)}
    gaps = sum(after - before > 1 for before, after in itertools.pairwise(labels))
    assert sets // 3 <= gaps + 1 <= sets


@pytest.mark.parametrize("allocation", ["random", NO_CONGESTOR])
def test_an_application_may_have_any_idle_node_that_gpcnet_has_not(allocation: str) -> None:
    experiment = experiment_for(Alone("minimd", allocation, 3))
    mine, *others = experiment.jobs
    assert (mine.nodes, mine.on, mine.sensitive, mine.background) == (WANTED, (), True, False)
    assert all(job.background for job in others)
    held = Counter(label for job in others for label in job.on)
    assert max(held.values()) == 1
    assert len(held) == TOTAL - IDLE + CONGESTED
    silent = [job.name for job in others if "gpcnet" not in job.name and "other" not in job.name]
    assert silent == (["no congestor"] if allocation == NO_CONGESTOR else [])


def test_all_allocations_have_the_same_nodes_and_jobs_to_choose_from() -> None:
    for one, other in (
        (Alone("milc", "random", 2), Alone("milc", "fewer-router", 2)),
        (Queue("nedd", 2), Queue("random", 2)),
        (restless("nedd", 2, 4000), restless("level-spread", 2)),
        (Moving("milc", "nedd", 2, 500), Moving("milc", "random", 2)),
    ):
        assert experiment_for(one).jobs == experiment_for(other).jobs
        assert experiment_for(one).jobs != experiment_for(replace(one, run=3)).jobs


def test_nothing_is_wrong_with_the_experiment_of_any_case() -> None:
    for case in cases(STUDY.ask(repetitions=1)):
        experiment_for(case).model()


def test_half_of_a_queue_is_sensitive() -> None:
    jobs = [job for job in experiment_for(Queue("nedd", 0)).jobs if not job.background]
    assert Counter(job.sensitive for job in jobs) == {True: JOBS // 2, False: JOBS // 2}
    arrivals = [job.arrival_ps for job in jobs]
    assert arrivals == sorted(arrivals)
    congestors = [job for job in experiment_for(Queue("nedd", 0)).jobs if job.background]
    assert [job.nodes for job in congestors] == [CONGESTOR_NODES] * CONGESTORS


def test_half_of_the_congestors_are_active_where_they_take_turns() -> None:
    jobs = experiment_for(Moving("milc", "nedd", 1)).jobs
    at = np.arange(50.0, 6000.0, 100.0)
    active = np.zeros(len(at), int)
    for job in jobs[1:]:
        end = 0.0
        for stage in job.stages:
            begin, end = end, end + (stage.compute_ps / 1e6 if stage.name == "pause"
                                     else stage.repeat * 18)  # fmt: skip
            if stage.name == "get":
                active += (begin <= at) & (at < end)
    assert np.mean(active == CONGESTORS // 2) > 0.9, "but for rounding to whole gets"


# -- what is said of outcomes


def test_an_outcome_is_the_same_after_it_was_written_and_read() -> None:
    for case in (Alone("milc", "random", 2), Queue("nedd", 1), Moving("milc", "nedd", 0)):
        kept = ordinary(case)
        assert STUDY.revive(json.loads(json.dumps(asdict(kept)))) == kept
        assert from_line(to_line(Answer(case, kept)), STUDY) == (case.key, kept)


def test_what_is_expected_holds_of_outcomes_that_are_so(some: NeDDPlan) -> None:
    found = by_name(claims(some, invented(some)))
    assert all(one.holds is not False for one in found.values())
    assert found["minimd: low-traffic-router against random"].values["shorter"] > 0.5
    assert found["minimd: random against no congestor"].values["worst"] > 8
    assert found["minimd: fewer-router against random"].holds
    assert found["hpcg: furthest from no congestor"].holds
    assert found["hpcg: low-traffic-router against random"].holds is None
    assert found["queue, nedd against random: sensitive jobs end"].holds
    assert found["queue, nedd against random: insensitive jobs run"].ours == "0.0% shorter ± 0.0%"
    ages = [found[f"age {delay / 1000:g} times a congestor's stay: nedd against random"]
            for delay in DELAYS_US]  # fmt: skip
    gains = [one.values["shorter"] for one in ages]
    assert gains == sorted(gains, reverse=True)


def test_what_is_expected_does_not_hold_of_outcomes_that_are_otherwise(some: NeDDPlan) -> None:
    def otherwise(point: Point) -> NeDDOutcome:
        """Everything is best at random, and hpcg suffers."""
        best = {"random": 0.5, "high-traffic-router": 0.9}
        slow = best.get(point.allocation, 1.0)
        kept = ordinary(replace(point, allocation=NO_CONGESTOR))
        ends = [start + slow * (end - start)
                for start, end in zip(kept.start_s, kept.end_s, strict=True)]  # fmt: skip
        return replace(kept, end_s=ends)

    found = by_name(claims(some, invented(some, otherwise)))
    for name in ("minimd: random against no congestor",
                 "minimd: low-traffic-router against random",
                 "minimd: fewer-router against random",
                 "hpcg: furthest from no congestor",
                 "queue, nedd against random: sensitive jobs end",
                 "queue, nedd against random: insensitive jobs run"):  # fmt: skip
        assert found[name].holds is False, name


def test_a_difference_that_chance_may_make_is_not_taken_for_one(some: NeDDPlan) -> None:
    def noisy(point: Point) -> NeDDOutcome:
        kept = ordinary(point)
        if isinstance(point, Queue) and point.allocation == "level-spread":
            worse = 3.0 if point.run == 0 else 0.9
            ends = [start + worse * (end - start)
                    for start, end in zip(kept.start_s, kept.end_s, strict=True)]  # fmt: skip
            return replace(kept, end_s=ends)
        return kept

    found = by_name(claims(some, invented(some, noisy)))
    one = found["queue, nedd against level-spread: sensitive jobs end"]
    assert one.values["sooner"] > 0
    assert one.holds is False


def test_of_a_part_only_its_claims_are_made(some: NeDDPlan) -> None:
    assert claims(some, {}) == []
    for part, words in (("application", "minimd"), ("sets", "sets:"), ("queue", "queue"),
                        ("age", "age ")):  # fmt: skip
        asked = replace(some, parts=(part,))
        found = claims(asked, invented(asked))
        assert found
        assert all(words in one.name or "hpcg" in one.name for one in found)


def test_a_single_run_has_no_confidence_interval() -> None:
    middle, half = change({0: 2.0}, {0: 1.0, 1: 4.0})
    assert (middle, np.isnan(half)) == (1.0, True)
    assert np.isnan(change({}, {0: 1.0})[0])
    assert np.isnan(mean_of({0: 2.0})[1])
    asked = STUDY.ask(repetitions=1)
    assert slowdowns(asked, invented(replace(asked, parts=("queue",))), "nedd", 10) == {}


# -- what is drawn


def drawn(asked: NeDDPlan, outcomes: dict[str, NeDDOutcome], out: Path) -> list[str]:
    paths = STUDY.figures(asked, outcomes, out, pdf=False)
    assert all(path.stat().st_size > 5_000 for path in paths)
    return [path.name for path in paths]


@pytest.mark.long
def test_all_figures_are_drawn_and_those_without_outcomes_are_not(
    some: NeDDPlan, tmp_path: Path
) -> None:
    assert drawn(some, invented(some), tmp_path) == [
        "3.24.png", "sets.png", "queue.png", "age.png"]  # fmt: skip
    assert drawn(some, {}, tmp_path) == []
    once = STUDY.ask("queue", repetitions=1)
    assert drawn(once, invented(once), tmp_path) == ["queue.png"]
    alone = STUDY.ask("application", ("milc",), 1)
    assert drawn(alone, invented(alone), tmp_path) == ["3.24.png"]


# -- one that is simulated


@pytest.mark.long
def test_a_sensitive_job_is_kept_from_the_router_that_is_hot() -> None:
    low, high = (simulate(Alone("milc", by, 0)) for by in ("low-traffic-router",
                                                           "high-traffic-router"))  # fmt: skip
    assert low.sensitive == [True]
    assert low.end_s[0] - low.start_s[0] < high.end_s[0] - high.start_s[0]
    assert low.shared[0] < high.shared[0]
    assert low.submit_s == [1.05e-3]
