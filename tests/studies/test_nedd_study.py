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
from odonata.studies.congestion import users
from odonata.studies.congestion.options import MACHINE
from odonata.studies.congestion.users import in_sets
from odonata.studies.nedd import APPLICATIONS, PARTS, NeDD, simulation
from odonata.studies.nedd import claims as said
from odonata.studies.nedd.cases import (
    AGED,
    BLIND,
    CAUSED_BY,
    CAUSED_RUNS,
    CAUSES,
    DELAYS_US,
    QUEUED,
    RIVALS,
    SETS,
    SETS_BY,
    NeDDPlan,
    beside,
    cases,
    caused,
    restless,
)
from odonata.studies.nedd.claims import change, mean_of, slowdowns, spread, times
from odonata.studies.nedd.floor import CONGESTED, IDLE, WANTED
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
from odonata.study.contract import Claim, Verdict
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


@pytest.mark.parametrize("module", [users, simulation, said])
def test_examples_in_docstrings_are_so(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)


# -- which simulations


def test_a_study_of_that_name_is_listed() -> None:
    assert isinstance(named("nedd"), NeDD)


def test_every_allocation_has_every_repetition_and_no_case_comes_twice() -> None:
    counts = {part: len(cases(STUDY.ask(part=part))) for part in PARTS}
    assert counts == {
        "application": 20 * len(APPLICATIONS) * len(RIVALS),
        "sets": 20 * len(SETS) * len(SETS_BY),
        "causes": len(
            {
                caused(words, by, run)
                for words in CAUSES
                for by in CAUSED_BY
                for run in range(CAUSED_RUNS)
            }
        ),
        "queue": 20 * (len(QUEUED) + 1 + 2 + len(BLIND)),
        "age": 20 * len(AGED) * (len(DELAYS_US) + len(BLIND) + 1),
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
        (r"tasks = 0: 1 \.\. 64", {"tasks": 0}),
        (r"ranks = 2: from the 4 tasks of a node to 64", {"tasks": 4, "ranks": 2}),
        (r"hot = 26: 1 \.\. 25", {"hot": 26}),
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


def congestors_of(point: Alone) -> list[Any]:
    return [job for job in experiment_for(point).jobs if job.name.startswith("gpcnet-rma")]


def test_more_ranks_ask_for_more_at_a_time_and_more_hot_nodes_share_the_congestor() -> None:
    (plain,) = congestors_of(Alone("minimd", "random", 0))
    (many,) = congestors_of(Alone("minimd", "random", 0, ranks=32))
    (before,), (after,) = plain.stages, many.stages
    assert after.message_bytes == 16 * before.message_bytes
    assert after.reply_bytes == 16 * before.reply_bytes
    assert many.on == plain.on
    parts = congestors_of(Alone("minimd", "random", 0, ranks=8, hot=4))
    assert len(parts) == 4
    assert sorted(label for job in parts for label in job.on) == sorted(plain.on)
    assert len({job.on[0] for job in parts}) == 4
    assert {job.stages[0].message_bytes for job in parts} == {4 * before.message_bytes}


def test_tasks_per_node_are_those_of_every_job() -> None:
    experiment = experiment_for(Alone("minimd", "random", 0, tasks=4, ranks=4))
    mine, usual = (experiment_for(Alone("minimd", "random", 0, tasks=tasks, ranks=tasks)).jobs[0]
                   for tasks in (4, 2))  # fmt: skip
    assert experiment.scheduler.tasks_per_node == 4
    assert mine.stages[0].message_bytes == round(usual.stages[0].message_bytes / 2)
    asked = STUDY.ask("application", ("milc",), 1, tasks=4, hot=2)
    assert {(case.tasks, case.ranks) for case in cases(asked)} == {(4, 4)}  # type: ignore[union-attr]


def test_what_is_otherwise_is_otherwise_and_nothing_else() -> None:
    total, usual = range(TOTAL), congestors_of(Alone("minimd", "random", 1))[0]
    (close,) = congestors_of(Alone("minimd", "random", 1, together=True))
    taken = sorted(close.on)
    assert len(taken) == usual.nodes
    assert taken[-1] - taken[0] < max(usual.on) - min(usual.on) or {*taken} <= {*total}
    (more,) = congestors_of(Alone("minimd", "random", 1, congested=128))
    assert more.nodes == 102
    quiet = experiment_for(Alone("minimd", "random", 1, busy=False)).jobs
    assert [job.name for job in quiet if "other users" in job.name] == []
    assert sum(job.nodes for job in quiet if job.name == "no congestor") == TOTAL - IDLE
    stall = experiment_for(Alone("hpcg", "low-stall-router", 1)).scheduler
    assert dict(stall.allocation_parameters) == {"by_class": True}


def test_without_a_congestor_it_does_not_matter_how_it_would_send() -> None:
    quiet = {caused(words, NO_CONGESTOR, 0) for words in CAUSES}
    assert len(quiet) < len(CAUSES) == len({caused(words, "random", 0) for words in CAUSES})
    assert beside("milc", NO_CONGESTOR, 0, ranks=32, hot=4) == Alone("milc", NO_CONGESTOR, 0)


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


PRINTED = {"random": 5.0, "fewer-router": 3.5 / 0.93, "low-stall-router": 3.5 / 0.71,
           "low-traffic-router": 3.5, NO_CONGESTOR: 1.0}  # fmt: skip
"""How long miniMD takes under each allocation if all that the thesis prints of it is so."""


def as_printed(point: Point) -> NeDDOutcome:
    kept = ordinary(point)
    if not isinstance(point, Alone):
        return kept
    aside = 1 + 0.01 * (point.run % 3)
    slow = 1.0 if point.application == "hpcg" else PRINTED.get(point.allocation, 6.0)
    return replace(kept, end_s=[kept.start_s[0] + aside * slow])


def test_what_is_expected_holds_of_outcomes_that_are_so(some: NeDDPlan) -> None:
    asked = replace(some, parts=("application",), repetitions=20)
    found = by_name(STUDY.claims(asked, invented(asked, as_printed)))
    judged = [one for one in found.values() if one.verdict is not None]
    assert [one.name for one in judged if not one.holds] == []
    assert len(judged) == 7
    assert all(one.source.startswith("Zhang") and not one.cause for one in judged)
    assert all(bool(one.paper) == (one.verdict is not None) for one in found.values())


def test_what_an_average_is_off_is_seen_though_the_worst_run_is_not(some: NeDDPlan) -> None:
    """The thesis compares averages: a single run of five times does not make it hold."""
    found = by_name(STUDY.claims(some, invented(some)))
    one = found["minimd: mean run time at random against no congestor"]
    assert "worst" in one.ours
    assert one.verdict is not Verdict.HOLDS
    assert all(one.cause.startswith("nedd.md#") for one in found.values() if one.holds is False)
    page = Path(__file__).parents[2] / "docs" / "nedd.md"
    headings = {"".join(c for c in line.lstrip("# ").lower().replace(" ", "-")
                        if c.isalnum() or c == "-").rstrip()
                for line in page.read_text().splitlines() if line.startswith("#")}  # fmt: skip
    causes = {*said.CAUSE.values(), said.EDGE, said.REQUESTS}
    assert {cause.partition("#")[2] for cause in causes} <= headings


def test_numbers_of_ordinary_outcomes_are_those(some: NeDDPlan) -> None:
    found = by_name(STUDY.claims(some, invented(some)))
    assert found["minimd: low-traffic-router against fewer-router"].values["mean"] == pytest.approx(
        0.1 / 1.1)  # fmt: skip
    assert found["hpcg: longer than without a congestor by at most"].holds
    assert found["hpcg: low-traffic-router against random"].holds is None
    assert found["queue, nedd against random: sensitive jobs end"].holds is None
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

    found = by_name(STUDY.claims(some, invented(some, otherwise)))
    for name in ("minimd: mean run time at random against no congestor",
                 "minimd: low-traffic-router against random",
                 "minimd: low-traffic-router against low-stall-router"):  # fmt: skip
        assert found[name].verdict is Verdict.NOT, name


def test_a_difference_that_chance_may_make_is_not_taken_for_one(some: NeDDPlan) -> None:
    """On average it is the printed one, but of three runs one alone makes it."""

    def noisy(point: Point) -> NeDDOutcome:
        kept = as_printed(point)
        if isinstance(point, Alone) and point.allocation == "fewer-router":
            took = 3.5 * 1.3 if point.run == 0 else 3.5 * 0.965
            return replace(kept, end_s=[kept.start_s[0] + took])
        return kept

    found = by_name(STUDY.claims(some, invented(some, noisy)))
    one = found["minimd: low-traffic-router against fewer-router"]
    assert one.values["mean"] == pytest.approx(0.07, abs=0.01)
    assert one.verdict is Verdict.SIGN


def test_the_ratio_of_two_means_is_as_sure_as_both_of_them() -> None:
    steady, varied = {0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0}, {0: 1.0, 1: 3.0, 2: 1.0, 3: 3.0}
    it, other = times(steady, varied), times(varied, steady)
    assert (it.mean, other.mean) == (0.5, 2.0)
    assert it.half / it.mean == pytest.approx(other.half / other.mean)
    assert times(varied, {run: 2 * value for run, value in varied.items()}).half == 0


def test_a_spread_is_like_another_where_chance_may_have_made_the_difference() -> None:
    mine, theirs = {0: 1.0, 1: 2.0, 2: 3.0}, {0: 1.0, 1: 3.0, 2: 5.0}
    it = spread(mine, theirs)
    assert it.mean == pytest.approx(0.5)
    assert it.low < 1 < it.high
    assert np.isnan(spread({0: 1.0}, theirs).mean)


def test_of_a_part_only_its_claims_are_made(some: NeDDPlan) -> None:
    assert STUDY.claims(some, {}) == []
    for part, words in (("application", "minimd"), ("sets", "sets:"), ("causes", "causes,"),
                        ("queue", "queue"),
                        ("age", "age ")):  # fmt: skip
        asked = replace(some, parts=(part,))
        found = STUDY.claims(asked, invented(asked))
        assert found
        assert all(words in one.name or "hpcg" in one.name or "all app" in one.name
                   for one in found)  # fmt: skip


def test_a_single_run_has_no_confidence_interval() -> None:
    middle, half = change({0: 2.0}, {0: 1.0, 1: 4.0})
    assert (middle, np.isnan(half)) == (1.0, True)
    assert np.isnan(change({}, {0: 1.0})[0])
    assert np.isnan(mean_of({0: 2.0})[1])
    asked = STUDY.ask(repetitions=1)
    m = STUDY.measured(asked, invented(replace(asked, parts=("queue",))))
    assert slowdowns(m, "nedd", 10) == {}


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
