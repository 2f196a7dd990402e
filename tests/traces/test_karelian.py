"""CSV of interarrival times, delays, service times and cores."""

from __future__ import annotations

from pathlib import Path

import pytest

from odonata.traces import karelian
from odonata.traces.reading import read
from odonata.traces.trace import UNKNOWN, Account, Trace
from pdes.errors import Refused

DATA = Path(__file__).parents[3] / "shared" / "data"
HEADER = "interarrival,delays,service,cores_used"


def trace(*rows: str, header: str = HEADER) -> Trace:
    return karelian.read(["\n".join([header, *rows]).encode()], "k.csv")


def test_gaps_add_up_to_submissions_and_the_first_counts() -> None:
    made = trace("5.0,1.0,10.0,2.0", "0.5,0.0,7.25,80.0")
    assert made.submit_us.tolist() == [5_000_000, 5_500_000]
    assert made.run_us.tolist() == [10_000_000, 7_250_000]
    assert made.wait_us.tolist() == [1_000_000, 0]
    assert made.nodes.tolist() == [2, 80]
    assert made.number.tolist() == [1, 2]
    assert (made.requested_us == UNKNOWN).all()
    assert (made.users, made.machine_nodes, made.account) == (("",), None, Account(2))


def test_the_gaps_of_rows_that_are_dropped_still_count() -> None:
    made = trace("5,0,10,0", "6,0,0,1", "7,0,10,1", "8,0,-1,1", "-9,-4,10,1")
    assert made.submit_us.tolist() == [18_000_000, 26_000_000]
    assert made.account == Account(
        5, {"size unknown": 1, "service time of 0 or less": 2},
        {"time since the job before it below 0: taken as 0": 1,
         "wait time below 0: taken as unknown": 1},
    )  # fmt: skip
    assert made.wait_us.tolist() == [0, UNKNOWN]


def test_a_gap_below_0_of_a_row_that_is_dropped_is_not_a_repair() -> None:
    assert trace("-9,0,0,1", "1,0,1,1").account.repaired == {}


@pytest.mark.parametrize("row", ["1,2,3", "1,2,3,4,5", "a,0,1,1", "1,nan,1,1", "1,0,inf,1", ",,,",
                                 "1,0,NA,1", '"1,0,1,1'])  # fmt: skip
def test_broken_rows_are_dropped(row: str) -> None:
    assert trace("1,0,1,1", row).account.dropped == {karelian.BROKEN: 1}


def test_times_beyond_belief_are_dropped() -> None:
    made = trace(
        "1e400,0,1,1", "1,0,1e12,1", "30000000000,0,1,1", "30000000000,0,1,1", "1,0,1,1e30"
    )
    assert made.account.dropped == {"a time of more than 1,000 years": 3,
                                    "size above 1,000,000,000": 1}  # fmt: skip


def test_columns_may_be_in_any_order_and_quoted() -> None:
    made = trace(
        '"4", "x, y", "1", "9", "2"', header='"cores_used",who,interarrival,SERVICE,delays'
    )
    assert (made.nodes[0], made.submit_us[0], made.run_us[0]) == (4, 10**6, 9 * 10**6)


def test_wrong_columns_are_named() -> None:
    with pytest.raises(Refused, match=r"k\.csv: the first line has no column service, cores_used"):
        trace("1,2", header="interarrival,delays")


def test_of_the_karelian_log_what_is_impossible_is_dropped() -> None:
    if not (DATA / "krc2.csv").exists():
        pytest.skip("krc2.csv is not in shared/data beside the repository")
    made = read(DATA / "krc2.csv")
    assert made.account.records == 9389
    assert made.account.dropped == {"service time of 0 or less": 1733, "size unknown": 87}
    assert made.account.repaired == {karelian.NEGATIVE_GAP: 9}
    assert (len(made), made.nodes.max()) == (7569, 64)
