"""Workloads of Batsim."""

from __future__ import annotations

import json
from typing import Any

import pytest

from odonata.traces import batsim
from odonata.traces.trace import UNKNOWN, Account, Trace
from pdes.errors import Refused

PROFILES = {
    "ten": {"type": "delay", "delay": 10.25},
    "flow": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0},
    "told": {"type": "parallel", "runtime": 30},
    "lost": {"type": "delay"},
}
JOB: dict[str, Any] = {"id": "0", "subtime": 0, "res": 2, "profile": "ten"}


def trace(*jobs: Any, **others: Any) -> Trace:
    workload = {"nb_res": 8, "jobs": jobs, "profiles": PROFILES, **others}
    return batsim.read([json.dumps(workload).encode()], "w.json")


def test_every_key_that_counts_is_where_it_belongs() -> None:
    made = trace({**JOB, "id": "w0!7", "subtime": 0.1, "walltime": 20, "user": "ada", "group": 5})
    assert {name: int(column[0]) for name, column in made.columns()} == {
        "number": 7, "submit_us": 100_000, "run_us": 10_250_000, "nodes": 2,
        "requested_us": 20_000_000, "user": 0, "project": 0, "application": 0, "wait_us": UNKNOWN,
    }  # fmt: skip
    assert (made.users, made.projects, made.applications) == (("ada",), ("5",), ("ten",))
    assert (made.machine_nodes, made.name, made.account) == (8, "w", Account(1))


def test_the_number_of_a_job_is_its_id_or_its_position() -> None:
    made = trace(*({**JOB, "id": given} for given in ("0", 4, "w0!3", "a", None, "w!9!12")))
    assert made.number.tolist() == [0, 4, 3, 3, 4, 12]


def test_a_run_time_is_that_of_the_job_then_of_its_profile() -> None:
    changes: list[dict[str, Any]] = [
        {}, {"runtime": 3}, {"profile": "told"}, {"profile": "flow", "runtime": 4},
        {"profile": "no", "runtime": 5},
    ]  # fmt: skip
    made = trace(*({**JOB, **each} for each in changes))
    assert (made.run_us // 1000).tolist() == [10_250, 3000, 30_000, 4000, 5000]
    assert made.account == Account(5)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"profile": "flow"}, "profile type parallel_homogeneous has no run time"),
        ({"profile": "none"}, "profile not among the profiles"),
        ({"profile": 3}, "profile not among the profiles"),
        ({"profile": "lost"}, "run time unknown"),
        ({"runtime": -1}, "run time unknown"),
        ({"subtime": -1}, "time of submission unknown or below 0"),
        ({"subtime": True}, "time of submission unknown or below 0"),
        ({"subtime": float("nan")}, "time of submission unknown or below 0"),
        ({"subtime": "5"}, "time of submission unknown or below 0"),
        ({"res": 0}, "size unknown"),
        ({"res": 1.5}, "size unknown"),
        ({"res": 10**12}, "size above 1,000,000,000"),
        ({"runtime": 10**400}, "a time of more than 1,000 years"),
    ],
)
def test_what_cannot_be_a_job_is_dropped_with_its_reason(
    changes: dict[str, Any], reason: str
) -> None:
    made = trace(JOB, {**JOB, **changes})
    assert made.account == Account(2, {reason: 1})
    with pytest.raises(Refused, match="no job is left of 1 records"):
        trace({**JOB, **changes})


def test_a_reason_is_one_short_line_whatever_a_profile_is_called() -> None:
    odd = {"p": {"type": "a\nb" * 100}}
    (reason,) = trace({**JOB, "runtime": 1}, {**JOB, "profile": "p"}, profiles=odd).account.dropped
    assert reason.startswith("profile type a ba b")
    assert len(reason) < 80
    assert "\n" not in reason


def test_a_job_that_is_not_an_object_is_dropped() -> None:
    assert trace(7, JOB, None).account.dropped == {"a job that is not an object": 2}


def test_walltimes_below_0_other_than_minus_1_are_repaired() -> None:
    made = trace(*({**JOB, "walltime": given} for given in (-1, 0, -1.0, -7, None, 1e-9)))
    assert (made.requested_us == UNKNOWN).all()
    assert made.account.repaired == {"requested time of 0 or less: taken as unknown": 3}


def test_jobs_are_put_in_order_of_submission() -> None:
    made = trace({**JOB, "subtime": 9}, {**JOB, "id": 1}, {**JOB, "id": 2, "subtime": 9})
    assert made.number.tolist() == [1, 0, 2]
    assert sum(made.account.repaired.values()) == 1


def test_a_machine_of_no_size_is_unknown() -> None:
    sizes = [trace(JOB, nb_res=n).machine_nodes for n in (5, 5.0, 0, -1, "5", None, 2.5, 10**30)]
    assert sizes == [5, 5, None, None, None, None, None, None]


def test_damaged_json_is_refused_with_line_and_column() -> None:
    with pytest.raises(Refused, match=r"w\.json: damaged JSON in line 2, column 11: Expecting"):
        batsim.read([b'{"nb_res": 4,\n "jobs": [}'], "w.json")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[1]", 'no list "jobs"'),
        (b'{"jobs": 3}', 'no list "jobs"'),
        (b'{"jobs": [], "profiles": 3}', '"profiles" are not an object'),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"jobs": [' + b"1" * 5000 + b"]}", "a number that is too long"),
    ],
)
def test_other_json_is_refused(text: bytes, words: str) -> None:
    with pytest.raises(Refused, match=words):
        batsim.read([text], "w.json")
