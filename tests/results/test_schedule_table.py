"""The table of a schedule: what it says, the ranges of nodes in it, and that evalys reads it as we
mean it."""

from __future__ import annotations

import csv
import io
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from test_schedule_measures import made

from odonata.jobs.schedule import KILLED, RUNNING, TO_COME, WAITING, Schedule
from odonata.results.job_table import COLUMNS, to_csv, write_csv
from odonata.results.node_ranges import ranges
from odonata.results.schedule_measures import measures
from odonata.results.schedule_series import steps, total
from odonata.traces.trace import SECOND
from topology import Dragonfly


def read(schedule: Schedule, name: str = "") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(schedule, name))))


def nodes_of(schedule: Schedule) -> list[list[int]]:
    """Returns the nodes of every segment, one by one."""
    found = ranges(schedule)
    pairs = list(zip(found.low.tolist(), found.high.tolist(), strict=True))
    first = found.first.tolist()
    return [[node for low, high in pairs[begin:beyond] for node in range(low, high + 1)]
            for begin, beyond in pairwise(first)]  # fmt: skip


def test_every_state_has_batsims_word_and_what_is_unknown_is_empty() -> None:
    jobs: list[dict[str, Any]] = [
        {"submit": 0, "nodes": 2, "held": [(1, 5), (7, 9)], "user": 1},
        {"submit": 1, "nodes": 1, "held": [(2, 6)], "state": KILLED},
        {"submit": 2, "nodes": 1, "held": [(5, None)], "state": RUNNING},
        {"submit": 3, "nodes": 3, "held": [], "state": WAITING},
        {"submit": 40, "nodes": 1, "held": [], "state": TO_COME},
    ]
    text = to_csv(made(jobs, reached=30, users=("", 'a "b", c')), "some, work")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert text.splitlines()[0] == ",".join(COLUMNS)
    assert rows[0] == {
        "job_id": "1", "workload_name": "some, work", "profile": "job",
        "submission_time": "0.000000", "requested_number_of_resources": "2",
        "requested_time": "-1", "success": "1", "final_state": "COMPLETED_SUCCESSFULLY",
        "starting_time": "1.000000", "execution_time": "8.000000", "finish_time": "9.000000",
        "waiting_time": "1.000000", "turnaround_time": "9.000000", "stretch": "1.125000",
        "allocated_resources": "0-1", "name": "", "user": 'a "b", c', "project": "",
        "application": "",
    }  # fmt: skip
    assert [(row["final_state"], row["success"], row["starting_time"], row["finish_time"],
             row["allocated_resources"]) for row in rows[1:]] == [
        ("COMPLETED_WALLTIME_REACHED", "0", "2.000000", "6.000000", "2"),
        ("RUNNING", "0", "5.000000", "", "0"),
        ("SUBMITTED", "0", "", "", ""),
        ("NOT_SUBMITTED", "0", "", "", ""),
    ]  # fmt: skip


def test_times_are_exact_to_the_microsecond() -> None:
    year = 365 * 86400 * SECOND
    jobs = [{"submit": 7, "held": [(year + 1, 3 * year + 20)]}]
    row = read(made(jobs, unit=1))[0]
    assert row["submission_time"] == "0.000007"
    assert row["starting_time"] == "31536000.000001"
    assert row["finish_time"] == "94608000.000020"


def test_placed_jobs_have_the_ranges_of_their_labels() -> None:
    machine = Dragonfly(nodes=2, routers=4, global_links=1, groups=5)
    jobs = [
        {"submit": 0, "nodes": 5, "held": [(0, 9)], "labels": [8, 0, 2, 1, 3]},
        {"submit": 0, "nodes": 3, "held": [(1, 9)], "labels": [39, 38, 10]},
        {"submit": 0, "nodes": 1, "held": [(2, 9)], "labels": [11]},
    ]
    schedule = made(jobs, nodes=40, machine=machine)
    assert [row["allocated_resources"] for row in read(schedule)] == ["0-3 8", "10 38-39", "11"]
    assert not ranges(schedule).virtual


def test_ranges_in_pieces_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Dragonfly(nodes=2, routers=4, global_links=1, groups=5)
    rng = np.random.default_rng(3)
    given = [rng.permutation(40)[: rng.integers(1, 20)] for _ in range(30)]
    jobs = [{"submit": i, "nodes": len(labels), "held": [(i, i + 1)], "labels": labels}
            for i, labels in enumerate(given)]  # fmt: skip
    monkeypatch.setattr("odonata.results.node_ranges.LABELS_AT_ONCE", 25)
    found = nodes_of(made(jobs, nodes=40, machine=machine))
    assert found == [sorted(labels.tolist()) for labels in given]


def test_virtual_nodes_are_the_lowest_that_are_free() -> None:
    jobs = [
        {"submit": 0, "nodes": 2, "held": [(0, 4)]},
        {"submit": 0, "nodes": 2, "held": [(0, 9)]},
        {"submit": 0, "nodes": 1, "held": [(0, 6)]},
        {"submit": 4, "nodes": 3, "held": [(4, 9)]},
        {"submit": 6, "nodes": 1, "held": [(6, 9)]},
    ]
    found = nodes_of(made(jobs, nodes=8))
    assert found == [[0, 1], [2, 3], [4], [0, 1, 5], [4]]


@examples(30)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9), st.integers(0, 8)), max_size=25))
def test_no_virtual_node_is_given_twice_at_a_time(jobs: list[tuple[int, int, int]]) -> None:
    asked = [{"submit": at, "nodes": nodes, "held": [(at, at + run)]}
             for at, nodes, run in sorted(jobs)]  # fmt: skip
    schedule = made(asked, nodes=10)
    found = nodes_of(schedule)
    assert [len(nodes) for nodes in found] == schedule.trace.nodes[schedule.segment_job].tolist()
    owner: dict[tuple[int, int], int] = {}
    for job, nodes in zip(schedule.segment_job.tolist(), found, strict=True):
        (begin, end), = asked[job]["held"]  # type: ignore[misc,attr-defined]  # fmt: skip
        for tick in range(begin, end):
            taken = {node for (when, node) in owner if when == tick}
            for node in nodes:
                assert owner.setdefault((tick, node), job) == job
            if tick == begin:  # the lowest of those that earlier ones had left
                free = [node for node in range(300) if node not in taken]
                assert nodes == free[: len(nodes)]


def test_room_for_ranges_grows() -> None:
    small = [{"submit": 0, "nodes": 1, "held": [(0, 5 if i % 2 else 20)]} for i in range(400)]
    large = [{"submit": 5, "nodes": 200, "held": [(5, 9)]}]
    large += [{"submit": 9 + i, "nodes": 200, "held": [(9 + i, 10 + i)]} for i in range(9)]
    found = nodes_of(made(small + large, nodes=400))
    assert found[400:] == [list(range(1, 400, 2))] * 10


def test_a_schedule_without_jobs_is_a_header(tmp_path: Path) -> None:
    write_csv(made([]), tmp_path / "jobs.csv")
    assert (tmp_path / "jobs.csv").read_text() == ",".join(COLUMNS) + "\n"


def test_many_rows_are_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = made([{"submit": i, "nodes": 1 + i % 3, "held": [(i, i + 3)]} for i in range(20)])
    whole = to_csv(schedule)
    monkeypatch.setattr("odonata.results.job_table.ROWS_AT_ONCE", 7)
    assert to_csv(schedule) == whole
    assert len(whole.splitlines()) == 21


def test_evalys_reads_the_same_waits_utilisation_and_queue(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # evalys calls what pandas is about to remove
        from evalys.jobset import JobSet  # type: ignore[import-not-found]

        rng = np.random.default_rng(5)
        jobs, busy_until = [], np.zeros(16, np.int64)
        for submit in np.sort(rng.integers(0, 2000, 200)).tolist():
            nodes = int(rng.integers(1, 17))
            last = int(np.sort(busy_until)[nodes - 1])
            begin = max(submit, last)
            end = begin + int(rng.integers(1, 60))
            busy_until[np.argsort(busy_until, kind="stable")[:nodes]] = end
            jobs.append({"submit": submit, "nodes": nodes, "held": [(begin, end)]})
        schedule = made(jobs, nodes=16)
        write_csv(schedule, tmp_path / "jobs.csv", "random")
        theirs = JobSet.from_csv(str(tmp_path / "jobs.csv"), resource_bounds=(0, 15))
        load, queue = theirs.utilisation, theirs.queue
        free = theirs.free_intervals()
    ours, series = measures(schedule), steps(schedule)
    assert ours.observed_s is not None
    assert theirs.df.waiting_time.mean() == pytest.approx(ours.mean_wait_s)
    assert theirs.df.waiting_time.max() == ours.max_wait_s
    assert theirs.df.turnaround_time.mean() == pytest.approx(ours.mean_turnaround_s)
    assert theirs.df.stretch.mean() == pytest.approx(ours.mean_slowdown, rel=1e-6)
    assert load.area.sum() / (16 * ours.observed_s) == pytest.approx(ours.utilisation)
    assert load.load.max() == series.busy.max()
    waited = total(series.waiting_nodes, series.lengths_us()) / SECOND
    assert queue.area.sum() == pytest.approx(waited)
    assert len(free.free_itvs.iloc[0]) == 16
