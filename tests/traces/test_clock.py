"""The wall clock of a trace: from whichever source, with or without a zone, and written back."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from odonata.jobs.power import Power
from odonata.results.power_measures import power_measures
from odonata.results.schedule_measures import measures
from odonata.traces import changing, swf
from odonata.traces.clock import WallClock, clock_given, instant_us, skips, zone_of
from odonata.traces.reading import read
from odonata.traces.source import Source
from odonata.traces.trace import COLUMNS, SECOND
from pdes.errors import Refused

STOCKHOLM = ZoneInfo("Europe/Stockholm")
FIRST = 1_357_000_000
"""A second of 1 January 2013."""
JOBS = [(0, 100, 2), (30, 700, 1), (5000, 50, 4), (90_000, 3600, 3)]
"""Submission and run time in s, and nodes."""


def swf_file(path: Path, shift: int, *comments: str) -> Path:
    lines = [f"{n} {at + shift} -1 {run} {size} -1 -1 {size} {2 * run} -1 1 1 1 1 1 1 -1 -1"
             for n, (at, run, size) in enumerate(JOBS, 1)]  # fmt: skip
    path.write_text("\n".join(["; MaxProcs: 4", *(f"; {it}" for it in comments), *lines]) + "\n")
    return path


def batsim_file(path: Path, shift: int) -> Path:
    jobs = [{"id": str(n), "subtime": at + shift, "res": size, "profile": f"p{n}",
             "walltime": 2 * run} for n, (at, run, size) in enumerate(JOBS)]  # fmt: skip
    profiles = {f"p{n}": {"type": "delay", "delay": run} for n, (_, run, _) in enumerate(JOBS)}
    path.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    return path


def sacct_file(path: Path, begin: datetime, seconds: bool = False) -> Path:
    rows = ["JobID|Submit|ElapsedRaw|TimelimitRaw|NNodes|State"]
    for n, (at, run, size) in enumerate(JOBS):
        date = begin + timedelta(seconds=at)
        text = str(int(date.timestamp())) if seconds else date.isoformat()
        rows.append(f"{n}|{text}|{run}|60|{size}|COMPLETED")
    path.write_text("\n".join(rows) + "\n")
    return path


# -- times that count from 1970


@pytest.mark.parametrize("make", [swf_file, batsim_file])
def test_times_since_1970_have_the_energy_of_the_same_trace_from_zero(
    make: object, tmp_path: Path
) -> None:
    """Before, 43 years of idle nodes were counted."""
    suffix = {swf_file: "swf", batsim_file: "json"}[make]  # type: ignore[index]
    late, zero = (make(tmp_path / f"{shift}.{suffix}", shift) for shift in (FIRST, 0))  # type: ignore[operator]
    found = []
    for path in (late, zero):
        model = Cluster.of(Source(str(path), nodes=4), "easy", power=Power())
        schedule, result, power = simulate(model)
        assert power is not None
        watts = power_measures(power, model.trace)
        found.append((result.digest, watts, measures(schedule).facts(), watts.intervals))
    assert found[0] == found[1]
    assert found[0][1].energy_kwh < 20
    dated = read(late)
    assert dated.submit_us[0] == 0
    assert dated.clock == WallClock(FIRST * SECOND)
    assert dated.clock.date(0) == "2013-01-01T00:26:40+00:00"
    assert dated.account.repaired[changing.SINCE_1970] == len(JOBS)
    assert read(zero).clock is None


def test_a_trace_that_begins_on_its_seventh_day_stays_there(tmp_path: Path) -> None:
    trace = read(swf_file(tmp_path / "a.swf", 7 * 86400, "UnixStartTime: 86400"))
    assert trace.submit_us[0] == 7 * 86400 * SECOND
    assert trace.clock == WallClock(86400 * SECOND)


def test_times_since_1970_are_dates_whatever_the_header_says(tmp_path: Path) -> None:
    """Some converters write UnixStartTime, and count from 1970 all the same."""
    comments = (f"UnixStartTime: {FIRST}", "TimeZoneString: Asia/Tokyo")
    trace = read(swf_file(tmp_path / "a.swf", FIRST, *comments))
    assert trace.clock == WallClock(FIRST * SECOND, "Asia/Tokyo")
    assert trace.submit_us[0] == 0


# -- what tells the date


def test_sacct_tells_what_local_clocks_showed(tmp_path: Path) -> None:
    path = sacct_file(tmp_path / "a.sacct", datetime(2026, 3, 10, 14, 37))
    shown = instant_us(datetime(2026, 3, 10, 14, 37), None)
    assert read(path).clock == WallClock(shown, None, True)
    clock = read(path, timezone="Europe/Stockholm").clock
    assert clock is not None
    assert clock.date(0) == "2026-03-10T14:37:00+01:00"
    assert clock.name == "Europe/Stockholm"
    seconds = sacct_file(tmp_path / "b.sacct", datetime(2026, 3, 10, 14, 37, tzinfo=UTC), True)
    assert read(seconds).clock == WallClock(shown)


def test_with_its_zone_sacct_has_the_right_gaps_across_a_change_of_the_clocks(
    tmp_path: Path,
) -> None:
    rows = ["JobID|Submit|Start|ElapsedRaw|NNodes|State",
            "1|2026-03-29T01:30:00|2026-03-29T03:30:00|60|1|COMPLETED",
            "2|2026-10-25T02:30:00|2026-10-25T02:10:00|60|1|COMPLETED"]  # fmt: skip
    (tmp_path / "a.sacct").write_text("\n".join(rows))
    here = read(tmp_path / "a.sacct", timezone="Europe/Stockholm")
    assert (here.wait_us // SECOND).tolist() == [3600, 2400]
    without = read(tmp_path / "a.sacct")
    assert (without.wait_us // SECOND).tolist() == [7200, -1]
    assert here.span_us == without.span_us - 3600 * SECOND


def test_a_key_gives_the_date_of_any_other_trace(tmp_path: Path) -> None:
    path = str(batsim_file(tmp_path / "a.json", 0))

    def clock(**given: str) -> WallClock | None:
        return Source(path, **given).given(None).clock  # type: ignore[arg-type]

    noon = instant_us(datetime(2026, 3, 2, 12), None)
    assert clock() is None
    assert clock(timezone="Europe/Paris") is None
    assert clock(epoch="2026-03-02T12:00Z") == WallClock(noon, "UTC")
    assert clock(epoch="2026-03-02T13:00+01:00") == WallClock(noon, "UTC+01:00")
    assert clock(epoch="2026-03-02T13:00", timezone="Europe/Paris") == WallClock(
        noon, "Europe/Paris"
    )
    assert clock(epoch="2026-03-02T12:00Z", timezone="Europe/Paris") == WallClock(
        noon, "Europe/Paris"
    )
    assert clock(epoch="2026-03-02T12:00") == WallClock(noon, None, True)
    made = Source(model="poisson", jobs=5, nodes=4, epoch="2026-03-02T12:00Z").given(4)
    assert made.clock == WallClock(noon, "UTC")


def test_a_key_moves_a_trace_that_has_a_date_of_its_own(tmp_path: Path) -> None:
    told = WallClock(FIRST * SECOND, "Asia/Tokyo")
    assert clock_given(told, None, None) == told
    assert clock_given(told, None, "+01:00") == WallClock(FIRST * SECOND, "UTC+01:00")
    moved = clock_given(told, "2026-03-02T00:00", None)
    assert moved is not None
    assert moved.date(0) == "2026-03-02T00:00:00+09:00"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epoch": "yesterday"}, "epoch = yesterday: not a date: one like 2026-03-02T00:00"),
        ({"epoch": "2026-02-30"}, "epoch = 2026-02-30: not a date"),
        ({"epoch": "1969-12-31"}, "epoch = 1969-12-31: a trace begins in the years 1971 to 8999"),
        ({"epoch": "9999-01-01"}, "epoch = 9999-01-01: a date of the years 2 to 8,999"),
        ({"timezone": "Europe/Stokholm"}, "did you mean Europe/Stockholm?"),
        ({"timezone": "../../etc/passwd"}, "not a time zone: a name of the IANA's database"),
        ({"timezone": "+99:00"}, "not a time zone"),
        ({"timezone": "x\0y"}, "not a time zone"),
    ],
)
def test_dates_and_zones_that_are_none_are_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(Refused) as refusal:
        Source("a.swf", **given)  # type: ignore[arg-type]
    assert words in str(refusal.value)


# -- changes keep it, and writing does


def test_filters_and_another_load_keep_the_date(tmp_path: Path) -> None:
    path = swf_file(tmp_path / "a.swf", 500, "UnixStartTime: 1000000000")
    trace = read(path)
    assert changing.first(trace, 2).clock == trace.clock
    assert changing.rescaled(trace, 0.5, 4).clock == trace.clock
    cut = changing.between(trace, 5000 * SECOND, 10**6 * SECOND)
    assert cut.clock == trace.clock
    moved = changing.from_zero(cut)
    assert moved.clock is not None
    assert cut.clock is not None
    assert moved.clock.dates(moved.submit_us) == cut.clock.dates(cut.submit_us)


CLOCKS = st.builds(
    WallClock, st.integers(1, 8 * 10**15),
    st.sampled_from([None, "UTC", "Europe/Stockholm", "US/Pacific", "UTC+05:30", "UTC-03:00"]),
) | st.builds(WallClock, st.integers(1, 8 * 10**15), st.none(), st.just(True))  # fmt: skip


@given(CLOCKS)
@examples(30)
def test_a_trace_that_is_written_reads_back_with_the_same_dates(clock: WallClock) -> None:
    header = ("UnixStartTime: 1234567", "TimeZoneString: Asia/Tokyo", "Computer: x")
    text = "1 0 -1 5 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1"
    trace = swf.read(["".join(f"; {it}\n" for it in header).encode(), text.encode()], "a.swf")
    kept = io.StringIO()
    swf.write(kept, replace(trace, clock=clock))
    back = swf.read([kept.getvalue().encode()], "a.swf")
    assert back.clock == clock
    assert all(np.array_equal(getattr(back, name), getattr(trace, name)) for name in COLUMNS)
    again = io.StringIO()
    swf.write(again, back)
    assert again.getvalue() == kept.getvalue()


def test_a_header_that_tells_the_date_is_kept_as_it_is(tmp_path: Path) -> None:
    comments = ("UnixStartTime: 749458803", "TimeZone: -28800", "TimeZoneString: US/Pacific",
                "StartTime: Fri Oct 01 00:00:03 PDT 1993")  # fmt: skip
    trace = read(swf_file(tmp_path / "a.swf", 0, *comments))
    swf.write(tmp_path / "b.swf", trace)
    lines = (tmp_path / "b.swf").read_text().splitlines()
    assert [f"; {it}" for it in comments] == [it for it in lines if "Time" in it]


# -- when clocks are changed


def test_a_time_that_clocks_skip_is_the_moment_at_which_they_do() -> None:
    change = datetime(2026, 3, 29, 1, tzinfo=UTC)
    for minute in (0, 30, 59):
        skipped = datetime(2026, 3, 29, 2, minute, 0, 500_000 * (minute > 30))
        assert skips(skipped, STOCKHOLM)
        assert instant_us(skipped, STOCKHOLM) == int(change.timestamp()) * SECOND
    assert not skips(datetime(2026, 3, 29, 3), STOCKHOLM)


def test_of_a_time_that_comes_twice_the_first_is_meant_unless_it_is_over() -> None:
    twice = datetime(2026, 10, 25, 2, 30)
    first = instant_us(twice, STOCKHOLM)
    assert first == int(datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp()) * SECOND
    assert instant_us(twice, STOCKHOLM, first - 1) == first
    assert instant_us(twice, STOCKHOLM, first) == first + 3600 * SECOND


@given(
    st.datetimes(datetime(1980, 1, 1), datetime(2035, 1, 1)),
    st.sampled_from(["Europe/Stockholm", "US/Pacific", "Australia/Lord_Howe", "Asia/Tokyo"]),
)
@examples(100)
def test_what_clocks_show_at_an_instant_is_the_date_that_it_is_of(
    date: datetime, zone: str
) -> None:
    """Against the standard library's own conversion."""
    instant = date.replace(microsecond=0, tzinfo=UTC)
    clock = WallClock(int(instant.timestamp()) * SECOND, zone)
    there = instant.astimezone(ZoneInfo(zone))
    assert clock.date(0) == there.isoformat()
    back = instant_us(there.replace(tzinfo=None, fold=0), zone_of(zone))
    assert back == clock.begin_us or there.fold == 1
