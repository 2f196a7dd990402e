"""What sacct --parsable2 prints."""

from __future__ import annotations

import pytest

from odonata.traces import sacct
from odonata.traces.trace import UNKNOWN, Account, Trace
from pdes.errors import Refused

TITLES = "JobID|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|User|Account|JobName|State"
JOB = {
    "JobID": "123", "Submit": "2024-03-01T10:00:00", "Start": "2024-03-01T10:01:30",
    "End": "2024-03-01T11:01:30", "ElapsedRaw": "3600", "TimelimitRaw": "120", "NNodes": "4",
    "User": "ada", "Account": "physics", "JobName": "solve", "State": "COMPLETED",
}  # fmt: skip


def trace(*jobs: dict[str, str], titles: str = TITLES) -> Trace:
    names = titles.split("|")
    rows = ["|".join(({**JOB, **job}).get(name, "") for name in names) for job in jobs]
    return sacct.read(["\n".join([titles, *rows, ""]).encode()], "slurm.txt")


def test_every_field_that_counts_is_where_it_belongs() -> None:
    made = trace({})
    assert {name: int(column[0]) for name, column in made.columns()} == {
        "number": 123, "submit_us": 0, "run_us": 3_600_000_000, "nodes": 4, "wait_us": 90_000_000,
        "requested_us": 7_200_000_000, "user": 0, "project": 0, "application": 0,
    }  # fmt: skip
    assert (made.users, made.projects, made.applications) == (("ada",), ("physics",), ("solve",))
    assert (made.machine_nodes, made.account) == (None, Account(1))


def test_submissions_are_told_from_the_earliest_and_sorted() -> None:
    made = trace({"JobID": "9", "Submit": "2024-03-01T10:00:10"}, {"JobID": "8"},
                 {"JobID": "7", "Submit": "2024-02-29T10:00:00", "NNodes": "0"})  # fmt: skip
    assert made.number.tolist() == [8, 9]
    assert made.submit_us.tolist() == [0, 10_000_000]
    assert made.account.dropped == {"size unknown": 1}
    assert made.account.total_repaired == 1


def test_arrays_and_het_jobs_are_jobs_and_steps_are_not() -> None:
    made = trace(*({"JobID": name} for name in ("5_4", "6+1", "7", "7.batch", "7.extern", "7.0")))
    assert made.number.tolist() == [5, 6, 7]
    assert made.account == Account(6, {"a step, not a job": 3})


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"State": "RUNNING", "End": "Unknown"}, sacct.RUNNING),
        ({"State": "", "End": "Unknown"}, sacct.RUNNING),
        ({"State": "PENDING", "Start": "Unknown", "ElapsedRaw": "0"}, sacct.PENDING),
        ({"State": "", "Start": "Unknown", "End": "Unknown", "ElapsedRaw": "0"}, sacct.PENDING),
        ({"State": "CANCELLED by 1000", "Start": "None", "ElapsedRaw": "0"}, sacct.NOT_STARTED),
        ({"State": "CANCELLED by 1000", "ElapsedRaw": "0"}, sacct.NOT_STARTED),
        ({"State": "FAILED", "Start": "Unknown", "ElapsedRaw": "0"}, sacct.NOT_STARTED),
        ({"NNodes": ""}, "size unknown"),
        ({"NNodes": "9" * 40}, "size above 1,000,000,000"),
        ({"Submit": "Unknown"}, "time of submission not readable"),
        ({"Submit": "2024-13-45T99:00:00"}, "time of submission not readable"),
        ({"Submit": "yesterday"}, "time of submission not readable"),
        ({"ElapsedRaw": "x", "End": "x"}, "run time not readable"),
        ({"ElapsedRaw": "9" * 12}, "a time of more than 1,000 years"),
        ({"JobName": "a|b"}, "a line that has not as many fields as the title line"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_job_is_dropped_with_its_reason(job: dict[str, str], reason: str) -> None:
    made = trace({}, job)
    assert made.account == Account(2, {reason: 1})
    with pytest.raises(Refused, match=r"slurm\.txt: no job is left of 1 records"):
        trace(job)


def test_jobs_that_ran_are_kept_however_they_ended() -> None:
    states = ("FAILED", "TIMEOUT", "CANCELLED by 7", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY")
    assert trace(*({"State": state} for state in states)).account == Account(6)
    assert trace({"State": "COMPLETED", "ElapsedRaw": "0"}).run_us.tolist() == [0]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("00:00:07", 7), ("01:02:03", 3723), ("2-01:02:03", 176_523), ("02:03", 123)],
)
def test_elapsed_is_told_in_days_and_hours(text: str, seconds: int) -> None:
    titles = "JobIDRaw|Submit|Start|Elapsed|Timelimit|AllocNodes"
    made = trace({"JobIDRaw": "7", "Elapsed": text, "Timelimit": text, "AllocNodes": "3"},
                 titles=titles)  # fmt: skip
    assert (made.run_us[0], made.requested_us[0]) == (seconds * 10**6,) * 2
    assert (made.nodes[0], made.users, made.number[0]) == (3, ("",), 7)


def test_a_run_time_may_come_from_dates() -> None:
    assert trace({}, titles="JobID|Submit|Start|End|ReqNodes|NNodes").run_us.tolist() == [
        3600 * 10**6
    ]


@pytest.mark.parametrize("limit", ["UNLIMITED", "Partition_Limit", "", "Unknown"])
def test_without_a_limit_the_requested_time_is_unknown(limit: str) -> None:
    made = trace({"TimelimitRaw": limit})
    assert (made.requested_us[0], made.account) == (UNKNOWN, Account(1))


def test_what_is_not_readable_but_not_needed_is_repaired() -> None:
    made = trace({"TimelimitRaw": "soon"}, {"TimelimitRaw": "0"}, {"Start": "Unknown"},
                 {"Start": "2024-03-01T09:00:00"})  # fmt: skip
    assert made.account.repaired == {
        sacct.BAD_LIMIT: 1, "requested time of 0 or less: taken as unknown": 1, sacct.BAD_START: 1,
        "wait time below 0: taken as unknown": 1,
    }  # fmt: skip
    assert made.wait_us.tolist() == [90_000_000, 90_000_000, UNKNOWN, UNKNOWN]


def test_when_a_job_became_eligible_stands_in_for_its_submission() -> None:
    made = trace({"Submit": "Unknown", "Eligible": "2024-03-01T10:01:00"},
                 titles=f"{TITLES}|Eligible")  # fmt: skip
    assert made.wait_us.tolist() == [30_000_000]
    assert made.account.repaired == {sacct.ELIGIBLE: 1}


def test_dates_may_be_seconds_or_have_a_zone() -> None:
    made = trace({"Submit": "1709287200", "Start": "2024-03-01T11:00:05+01:00"})
    assert made.wait_us.tolist() == [5_000_000]


def test_a_bar_at_the_end_of_lines_and_a_second_title_line_do_no_harm() -> None:
    text = "JobID|Submit|Elapsed|NNodes|\n1|2024-03-01T10:00:00|00:10:00|4|\n"
    made = sacct.read([(text * 2).encode()], "s")
    assert (len(made), made.account) == (2, Account(2))


def test_missing_columns_are_named_with_the_command_that_gives_them() -> None:
    with pytest.raises(Refused) as refused:
        trace({}, titles="JobID|Start|User")
    assert str(refused.value) == (
        "slurm.txt: the title line has no Submit, ElapsedRaw, NNodes: sacct --allusers "
        "--allocations --parsable2 --starttime=DATE --format=JobID,Submit,Start,End,ElapsedRaw,"
        "TimelimitRaw,NNodes,User,Account,JobName,State prints what is needed"
    )
