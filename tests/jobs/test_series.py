"""Values that change in steps: what they are at a time, what they sum to, how they are read."""

from __future__ import annotations

import contextlib
import gzip
import math
import pickle
import time
import tomllib
from collections.abc import Iterable
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odonata.experiment.units import exact_power, power_w
from odonata.jobs.series_dates import Period
from odonata.jobs.series_text import HOLD, KINDS, Steps, read_steps, steps_to_toml
from odonata.traces.clock import WallClock, clock_given
from pdes.errors import Refused

US, HOUR = 10**6, 3_600_000_000
"""A microsecond in ps; an hour in us."""
LEVELS = st.floats(0, 1e9)
W0 = ["0 s", "1 W"]
PERIOD = Period(clock_given(None, "2014-01-01T00:00", "UTC"), 10**12)
"""A run from the beginning of 2014 on."""


@st.composite
def steps(draw: st.DrawFn, levels: st.SearchStrategy[float] = LEVELS, most: int = 60) -> Steps:
    after = draw(st.lists(st.integers(1, most), unique=True, max_size=8))
    begins = [0, *sorted(after)]
    values = st.lists(levels, min_size=len(begins), max_size=len(begins))
    return Steps.of(begins, draw(values))


SPANS = st.tuples(st.integers(0, 70), st.integers(0, 70)).map(sorted)


def naive(some: Steps, time: int) -> float:
    value = math.nan
    for begin, level in zip(some.begins, some.levels, strict=True):
        value = level if begin <= time else value
    return value


# -- what they are


@given(steps(), st.integers(0, 70))
def test_the_value_at_a_time_is_that_of_the_last_step_before(some: Steps, at: int) -> None:
    assert some.at(at) == naive(some, at)


@given(steps(), SPANS)
def test_the_pieces_of_a_span_cover_it_once(some: Steps, span: list[int]) -> None:
    ticks = [(tick, value) for begin, end, value in some.between(*span)
             for tick in range(begin, end)]  # fmt: skip
    assert ticks == [(tick, naive(some, tick)) for tick in range(*span)]


@given(steps(), SPANS)
def test_an_integral_is_the_sum_over_all_ticks(some: Steps, span: list[int]) -> None:
    exact = sum((Fraction(naive(some, tick)) for tick in range(*span)), Fraction())
    assert some.integral(*span) == pytest.approx(float(exact), rel=1e-15)


@given(steps(), steps(), SPANS)
def test_an_integral_with_others_is_the_sum_of_products(
    some: Steps, other: Steps, span: list[int]
) -> None:
    exact = sum((Fraction(naive(some, t)) * Fraction(naive(other, t)) for t in range(*span)),
                Fraction())  # fmt: skip
    found = some.integral_with(other.times, other.values, *span)
    assert found == pytest.approx(float(exact), rel=1e-15)
    assert found == other.integral_with(some.times, some.values, *span)


def test_of_levels_at_the_same_time_the_last_counts() -> None:
    assert Steps.constant(2.0).integral_with([0, 5, 5], [1.0, 100.0, 3.0], 0, 10) == 2 * (5 + 15)


@pytest.mark.alone
def test_a_year_of_samples_against_hourly_prices_costs_milliseconds() -> None:
    sampled = np.arange(0, 365 * 24 * HOUR, HOUR // 15)
    power_w = 2e6 + 1e5 * np.sin(np.arange(len(sampled)))
    price = Steps.of(np.arange(365 * 24) * HOUR, 0.1 + 0.05 * np.cos(np.arange(365 * 24)))
    end = 365 * 24 * HOUR
    assert price.times[0] == 0  # the arrays are made once
    took_s = []
    for _ in range(5):
        begun = time.process_time()
        found = price.integral_with(sampled, power_w, 0, end)
        took_s.append(time.process_time() - begun)
    hourly_w = power_w.reshape(-1, 15).mean(1)
    assert found / HOUR / 1000 == pytest.approx(float(hourly_w @ price.values) / 1000, rel=1e-12)
    assert min(took_s) < 0.05


def test_steps_are_values() -> None:
    some, same = Steps.of(np.array([0, 5]), np.array([1, 2.5])), Steps((0, 5), (1.0, 2.5))
    assert some.times.dtype == np.int64
    assert some.values.tolist() == [1.0, 2.5]
    assert some == same
    assert hash(some) == hash(same)
    assert pickle.loads(pickle.dumps(some)) == same
    assert some != Steps((0, 5), (1.0, 2.0))
    assert (some.changes, some.least, some.most) == ((5,), 1.0, 2.5)
    with pytest.raises(ValueError, match="read-only"):
        some.values[0] = 3.0


@pytest.mark.parametrize(
    ("begins", "levels"),
    [((), ()), ((1,), (1.0,)), ((0, 0), (1.0, 1.0)), ((0, 2, 1), (1.0,) * 3), ((0,), ()),
     ((0,), (math.nan,)), ((0,), (-math.inf,)), ((0, 2**63), (1.0, 1.0))],
)  # fmt: skip
def test_what_are_no_steps_is_not_made(begins: tuple[int, ...], levels: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="steps"):
        Steps(begins, levels)


def test_nothing_is_known_before_time_0() -> None:
    some = Steps.constant(1.0)
    with pytest.raises(ValueError, match="from 0 on"):
        some.at(-1)
    with pytest.raises(ValueError, match="span"):
        some.integral(-1, 5)
    with pytest.raises(ValueError, match="span"):
        some.integral_with([0], [1.0], 5, 4)
    with pytest.raises(ValueError, match="from 3 or before"):
        some.integral_with([4], [1.0], 3, 9)


# -- how an experiment file gives them


@pytest.mark.parametrize(
    ("given", "unit", "value"),
    [("3000 kW", "power", 3e6), ("4.8MW", "power", 4.8e6), ("500 mW", "power", 0.5),
     (0.1, "price", 0.1), ("0.10 per kWh", "price", 0.1), ("-35/MWh", "price", -0.035),
     ("0.1", "price", 0.1), (120, "carbon", 120.0), ("120 g/kWh", "carbon", 120.0),
     ("0.5 kg per kWh", "carbon", 500.0)],
)  # fmt: skip
def test_one_value_holds_for_ever(given: object, unit: str, value: float) -> None:
    assert read_steps(given, unit, US, "key") == Steps.constant(value)


def test_pairs_have_long_times_and_short_ones() -> None:
    caps = read_steps([["0 s", "2000 kW"], ["90 d", "3 MW"]], "power", US, "power.cap")
    assert caps == Steps((0, 90 * 24 * HOUR), (2e6, 3e6))
    caps = read_steps([["0 s", "90 W"], ["20 us", "60 W"]], "power", 1, "")
    assert caps == Steps((0, 20 * US), (90.0, 60.0))


def test_dates_of_toml_are_times() -> None:
    table = tomllib.loads('p = [[2014-01-01T00:00:00Z, 0.1], ["2014-01-01T02:00:00+01:00", -1]]')
    assert read_steps(table["p"], "price", US, "p", period=PERIOD) == Steps((0, HOUR), (0.1, -1.0))


@pytest.mark.parametrize("unit", KINDS)
@given(data=st.data(), tick=st.sampled_from([1, 10**3, 10**6, 10**12]))
def test_what_is_written_reads_back(unit: str, data: st.DataObject, tick: int) -> None:
    lowest = -1e6 if KINDS[unit].signed else 0.0
    longest = min(2**62, 10**22 // tick)
    some = data.draw(steps(st.floats(lowest, 1e12), longest))
    pairs = steps_to_toml(some, unit, tick)
    assert all(isinstance(text, str) for pair in pairs for text in pair)
    assert read_steps(pairs, unit, tick, "key") == some


def test_what_is_written_is_short() -> None:
    some = Steps((0, 90 * 24 * HOUR, 90 * 24 * HOUR + 1), (2e6, 3.3e6, 5.0))
    assert steps_to_toml(some, "power", US) == [
        ["0 s", "2 MW"], ["90 d", "3.3 MW"], ["7776000000001 us", "5 W"]]  # fmt: skip


@given(st.floats(0, 1e15))
def test_a_power_is_the_same_here_and_elsewhere(w: float) -> None:
    """The units are spelled out twice, as folders may not import each other."""
    text = exact_power(w)
    assert read_steps(text, "power", US, "").levels == (power_w(text),) == (w,)
    assert steps_to_toml(Steps.constant(w), "power", US)[0][1] == text


@pytest.mark.parametrize(
    ("given", "unit", "words"),
    [
        (3000, "power", "3000 is a bare number: a power is a number and one of W, kW, MW"),
        ("3000", "power", "'3000' is a bare number"),
        ("3000 kWh", "power", "'3000 kWh' is an energy, not a power"),
        ("90 s", "power", "'90 s' is a time, not a power"),
        ("3 kW", "price", "'3 kW' is a power, not a price"),
        ("0.1 per kWh", "carbon", "is a price of electricity, not a carbon intensity"),
        ("3 KW", "power", "'3 KW' is not a power"),
        ("nan W", "power", "'nan W' is not a power"),
        (math.nan, "price", "nan: a price of electricity is finite"),
        ("1e400 W", "power", "a power is finite"),
        ("1e99999999999999999999 W", "power", "a power is finite"),
        ("-3 kW", "power", "'-3 kW': a power is not negative"),
        (-1, "carbon", "a carbon intensity is not negative"),
        (True, "price", "True is not a price"),
        ({}, "power", "{} is not a power"),
        ("caps.txt", "power", "or the name of a .csv file"),
        ([], "power", "an empty list"),
        (["3 kW"], "power", "pair 1: '3 kW': a pair"),
        ([["0 s", "1 W", "2 W"]], "power", "pair 1: "),
        ([[0, "1 W"]], "power", "pair 1: 0 is a bare number: a time is"),
        ([["0", "1 W"]], "power", "pair 1: '0' is a bare number"),
        ([["1 W", "0 s"]], "power", "pair 1: '1 W' is a power, not a time"),
        ([W0, ["5 lightyears", "1 W"]], "power", "pair 2: '5 lightyears' is not a time"),
        ([W0, ["5 s", 3]], "power", "pair 2: 3 is a bare number"),
        ([W0, ["-5 s", "1 W"]], "power", "pair 2: '-5 s': a time is not negative"),
        ([W0, ["5 ns", "1 W"]], "power", "pair 2: '5 ns': a time is a whole number of us"),
        ([W0, ["1001000 d", "1 W"]], "power", "pair 2: '1001000 d': the longest time"),
        ([W0, ["5 s", "1 W"], ["5000 ms", "1 W"]], "power", "pair 3: .* same time as '5 s'"),
        ([W0, ["5 s", "1 W"], ["4 s", "1 W"]], "power", "pair 3: '4 s' is earlier than"),
        ([["1 s", "1 W"]], "power", "pair 1: the first time, '1 s', is after 0"),
        ([["2014-01-01", "1 W"], ["5 s", "1 W"]], "power", "pair 2: '5 s' is a time, .* a date"),
        ([["2014-13-01", "1 W"]], "power", "pair 1: '2014-13-01' is not a date"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_in_a_line(given: object, unit: str, words: str) -> None:
    with pytest.raises(Refused, match=f"^a.toml: power.cap: (.*){words}") as refused:
        read_steps(given, unit, US, "a.toml: power.cap")
    assert "\n" not in str(refused.value)


# -- how a CSV file gives them


def period(begin: str, zone: str | None = None, days: int = 365) -> Period:
    return Period(clock_given(None, begin, zone), days * 24 * HOUR)


def from_file(folder: Path, text: str | bytes, unit: str = "power", **options: Any) -> Steps:
    data = text if isinstance(text, bytes) else text.encode()
    (folder / "it.csv").write_bytes(data)
    options = {"period": PERIOD} | options
    return read_steps("it.csv", unit, US, "power.cap", folder=folder, **options)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("time_s,watts\n0,2000\n3600,3000\n", "power"),
        ("time_s,watts\r\n0,2000\r\n3600,3000", "power"),
        ("\ufeffTime_h, kW\n0, 2\n\n1, 3\n", "power"),
        ("kw,time_us\n2,0\n3,3600000000\n", "power"),
        ("# from the meter\ntime_ps,mw\n0,.002\n36e14,3e-3\n", "power"),
        ('time,power\n0 s,"2 kW"\n1 h,3000 W\n', "power"),
        ("time,watts\n2014-01-01T00:00:00Z,2000\n2014-01-01T01:00:00Z,3000\n", "power"),
        ("time,watts\n2014-01-01 00:00,2000\n2014-01-01 01:00,3000\n", "power"),
        ("time_s,price_per_kwh\n0,2000\n3600,3000\n", "price"),
        ("time_s,price_per_mwh\n0,2e6\n3600,3e6\n", "price"),
        ("time_s,price\n0,2000 per kWh\n3600,3000\n", "price"),
        ("time_s,carbon_g_per_kwh\n0,2000\n3600,3000\n", "carbon"),
        ("time_min,carbon\n0,2 kg/kWh\n60,3000 g/kWh\n", "carbon"),
    ],
)  # fmt: skip
def test_a_file_says_its_units_in_the_header_or_in_the_cells(
    tmp_path: Path, text: str, unit: str
) -> None:
    assert from_file(tmp_path, text, unit) == Steps((0, HOUR), (2000.0, 3000.0))


def test_a_packed_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"time_s,watts\n0,5\n"))
    assert read_steps("a.csv.gz", "power", 1, "", folder=tmp_path) == Steps.constant(5.0)


DATED = "time,watts\n" + "".join(f"2014-01-01T0{hour}:00Z,{hour}\n" for hour in range(6))


def test_dates_have_their_place_by_the_wall_clock_of_the_trace(tmp_path: Path) -> None:
    some = from_file(tmp_path, DATED, period=period("2014-01-01T03:30Z"))
    assert some == Steps((0, HOUR // 2, HOUR * 3 // 2), (3.0, 4.0, 5.0))
    assert from_file(tmp_path, DATED, period=period("2014-01-01T04:30+01:00")) == some
    local = DATED.replace("Z", "")
    assert from_file(tmp_path, local, period=period("2014-01-01T03:30")) == some
    assert from_file(tmp_path, local, period=period("2014-01-01T03:30", "Asia/Tokyo")) == some
    tokyo = period("2014-01-01T12:30", "Asia/Tokyo")
    assert from_file(tmp_path, DATED, period=tokyo) == some
    pairs = [["2014-01-01T00:00Z", "1 W"], ["2014-01-01T05:00Z", "2 W"]]
    assert read_steps(pairs, "power", US, "", period=tokyo) == Steps((0, HOUR * 3 // 2), (1.0, 2.0))


@pytest.mark.parametrize(
    ("when", "text", "words"),
    [
        (period("2013-12-31T23:00Z"), DATED,
         "it.csv: line 2: its dates, 2014-01-01 00:00 to 2014-01-01 05:00, begin after those of "
         "the trace, 2013-12-31 23:00 to 2014-12-31 23:00 (UTC), and nothing is known before "
         "them: "),
        (period("2015-01-01T00:00Z"), DATED,
         "its dates, 2014-01-01 00:00 to 2014-01-01 05:00, and those of the trace, 2015-01-01 "
         "00:00 to 2016-01-01 00:00 (UTC), have no time in common: "),
        (period("2012-01-01T00:00Z"), DATED, "have no time in common"),
        (period("2014-01-01T00:00"), DATED, "'2014-01-01T00:00Z' has a time zone, and the dates of "
         "the trace have none: give the zone of the trace, trace.timezone"),
        (Period(WallClock(10**15), 5), DATED.replace("Z", ""), "'2014-01-01T00:00' has no time "
         "zone, and the trace does not tell its own: give the zone of the trace, trace.timezone"),
        (Period(None, 5), DATED, "'2014-01-01T00:00Z' is a date, and nothing tells that of the "
         "trace: give the date of its time 0, as trace.epoch (--epoch) = \"2014-01-01T00:00Z\""),
        (None, DATED, "only a run of jobs has dates, with fidelity = \"job\": give times"),
    ],
)  # fmt: skip
def test_dates_without_a_place_are_refused_with_the_cure(
    tmp_path: Path, when: Period | None, text: str, words: str
) -> None:
    with pytest.raises(Refused) as refusal:
        from_file(tmp_path, text, period=when)
    assert words in str(refusal.value)


def test_with_hold_the_first_value_holds_before_its_date_and_the_last_after(tmp_path: Path) -> None:
    early = from_file(tmp_path, DATED, period=period("2013-12-31T23:00Z"), gaps="hold")
    assert early == Steps(
        (0, *(hour * HOUR for hour in range(2, 7))), (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    )
    late = from_file(tmp_path, DATED, period=period("2015-01-01T00:00Z"), gaps="hold")
    assert late == Steps.constant(5.0)


# -- when clocks are changed: in Stockholm at 1:00 UTC on 29 March and on 25 October 2026


def local_hours(day: str, hours: Iterable[int | str]) -> str:
    return "time,watts\n" + "".join(f"{day}T{hour:02}:00,{at}\n" for at, hour in enumerate(hours))


SPRING = period("2026-03-29T00:00", "Europe/Stockholm")
AUTUMN = period("2026-10-25T00:00", "Europe/Stockholm")


@pytest.mark.parametrize("hours", [(0, 1, 3, 4, 5, 17), (0, 1, 2, 3, 4, 5, 17)])
def test_an_hour_that_clocks_skip_may_be_there_or_not(
    tmp_path: Path, hours: tuple[int, ...]
) -> None:
    """If it is, its value holds for no time."""
    some = from_file(tmp_path, local_hours("2026-03-29", hours), gaps="hold", period=SPRING)
    assert some.begins == tuple(h * HOUR for h in (0, 1, 2, 3, 4, 16))
    assert some.levels == tuple(float(at) for at, hour in enumerate(hours) if hour != 2)
    rows = local_hours("2026-03-29", [it for it in range(24) if it in hours or it > 2])
    assert len(from_file(tmp_path, rows, period=SPRING).begins) == 23


@pytest.mark.parametrize(
    ("hours", "begins"),
    [((0, 1, 2, 2, 3, 4), (0, 1, 2, 3, 4, 5)), ((0, 1, 2, 3, 4), (0, 1, 2, 4, 5))],
)
def test_an_hour_that_comes_twice_is_the_first_unless_that_is_over(
    tmp_path: Path, hours: tuple[int, ...], begins: tuple[int, ...]
) -> None:
    some = from_file(tmp_path, local_hours("2026-10-25", hours), period=AUTUMN)
    assert some.begins == tuple(hour * HOUR for hour in begins)
    with pytest.raises(Refused, match="line 6: '2026-10-25T02:00' is the same time as"):
        from_file(tmp_path, local_hours("2026-10-25", (0, 1, 2, 2, 2)), period=AUTUMN)


@pytest.mark.parametrize(
    "text",
    [
        "2026-13-01",
        "2026-02-30T00:00",
        "2026-03-02T25:00",
        "2026-03-02T00:00+99:00",
        "2026-03-02 noon",
        "9999-12-31T23:59",
    ],
)
def test_dates_that_are_none_are_refused_with_their_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(Refused) as refusal:
        from_file(tmp_path, f"time,watts\n2014-01-01,1\n{text},2\n")
    assert "it.csv: line 3, column time: " in str(refusal.value)
    assert text in str(refusal.value)


# -- no cap for some time


def test_a_cap_may_be_none_for_some_time(tmp_path: Path) -> None:
    some = Steps((0, HOUR, 2 * HOUR), (inf, 60e3, inf))
    pairs = [["0 s", "none"], ["1 h", "60 kW"], ["2 h", "none"]]
    assert read_steps(pairs, "power", US, "") == some
    assert from_file(tmp_path, "time_h,kw\n0,none\n1,60\n2, None\n") == some
    assert from_file(tmp_path, "time,power\n0 h,none\n1 h,60 kW\n2 h,NONE\n") == some
    assert read_steps(steps_to_toml(some, "power", US), "power", US, "") == some
    for unit in ("price", "carbon"):
        with pytest.raises(Refused, match="'none' is not a"):
            read_steps([["0 s", "none"]], unit, US, "")


HOURLY = "time_h,watts\n0,1\n1,2\n2,3\n5,4\n6,5\n"


def test_a_gap_in_a_cap_file_is_named(tmp_path: Path) -> None:
    words = (r"it\.csv: line 5: a gap of 10,800 s from '2' to '5', where rows are 3,600 s apart: "
             '2 missing; .* gaps = "hold"')  # fmt: skip
    with pytest.raises(Refused, match=words):
        from_file(tmp_path, HOURLY)
    with pytest.raises(Refused, match=r"line 5: .* 2 missing \(the first of 2 gaps\)"):
        from_file(tmp_path, HOURLY + "8,6\n")


def test_over_a_gap_the_last_value_may_hold(tmp_path: Path) -> None:
    held = Steps.of(np.array([0, 1, 2, 5, 6]) * HOUR, [1, 2, 3, 4, 5])
    assert from_file(tmp_path, HOURLY, gaps=HOLD) == held
    empty = HOURLY.replace("5,4", "3,\n4,\n5,4")
    assert from_file(tmp_path, empty, gaps=HOLD) == held


@pytest.mark.parametrize(
    "hours", [(0, 8, 24, 32, 48), (0, 1, 3), (0, 2, 5, 7, 9), (0, 1, 2, 3.5, 4.5), (0, 30 * 24)]
)
def test_rows_that_were_never_even_have_no_gap(tmp_path: Path, hours: tuple[float, ...]) -> None:
    text = "time_h,watts\n" + "".join(f"{hour},1\n" for hour in hours)
    assert len(from_file(tmp_path, text).begins) == len(hours)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("\n \n", "it is empty"),
        ("time_s,watts\n", "it has a header only, in line 1"),
        ("0,3000\n1,2\n", "line 1: '0,3000' has no column of times: the header is"),
        ("time_s,amps\n0,1\n", "line 1: the column 'amps' is not a power: .*watts, kw, mw, power"),
        ("time_s,mW\n0,1\n", "line 1: the column 'mW' is not a power"),
        ("time_s,carbon\n0,1\n", "line 1: the column 'carbon' is a carbon intensity, not a power"),
        ("time_s,watts,node\n0,1,2\n", "line 1: 'time_s,watts,node' has not two columns"),
        ("time_s;watts\n0;1\n", "line 1: 'time_s;watts' has not two columns"),
        ("time_s,watts\n0,1\n1,1,000\n", "line 3: '1,1,000': 2 columns .* there are 3"),
        ("time_s,watts\n0,1\n1\n", "line 3: '1': 2 columns are needed, .* there is 1"),
        ("time_s,watts\n0,1\n\n1,\n", "line 4, column watts: an empty cell is a gap"),
        ("time_s,watts\n0,1\n,\n2,1\n", "line 3, column time_s: '' is not a number"),
        ("time_s,watts\n0,1\n,1\n", "line 3, column time_s: '' is not a number"),
        ("time_s,watts\n0,3 kW\n", "line 2, column watts: '3 kW': .* unit; name it power"),
        ("time_s,watts\n0,3 kWh\n", "line 2, column watts: '3 kWh' is an energy, and"),
        ("time_s,kw\n0,90 s\n", "line 2, column kw: '90 s' is a time, and"),
        ("time_s,power\n0,90 s\n", "line 2, column power: '90 s' is a time, not a power"),
        ("time_s,power\n0,90\n", "line 2, column power: '90' is a bare number"),
        ("time,watts\n0,90\n", "line 2, column time: '0' is a bare number: a time is"),
        ("time_s,watts\n0 s,90\n", "line 2, column time_s: '0 s' is not a number"),
        ("time_s,watts\n0,1\n1,-1\n", "line 3, column watts: '-1': a power is not negative"),
        ("time_s,watts\n0,1\n1,nan\n", "line 3, column watts: 'nan' is not a number"),
        ("time_s,watts\n0,1\n1,inf\n", "line 3, column watts: 'inf' is not a number"),
        ("time_s,watts\n0,1\n1,1e999\n", "line 3, column watts: '1e999': a power is finite"),
        ("time_s,watts\n0,1\n2,1\n1,1\n", "line 4: '1' is earlier than '2'"),
        ("time_s,watts\n0,1\n2,1\n2.0,1\n", "line 4: '2.0' is the same time as '2'"),
        ("time_s,watts\n1,1\n", "line 2: the first time, '1', is after 0"),
        ("time_s,watts\n-1,1\n", "line 2, column time_s: '-1': a time is not negative"),
        ("time_s,watts\n0,1\n1e-7,1\n", "line 3, column time_s: '1e-7': .* whole number of us"),
        ('time_s,watts\n0,1\n1,"1\n', "line 3: '1,\"1': unexpected end of data"),
        (b"time_s,watts\n0,1\n1,\xff\n", "line 3: it is not UTF-8"),
        ("time_s,watts\n0,1\n".encode("utf-16"), "line 1: it is not UTF-8"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_named_with_its_line(
    tmp_path: Path, text: str | bytes, words: str
) -> None:
    with pytest.raises(Refused, match=rf"^power.cap: .*it\.csv: {words}") as refused:
        from_file(tmp_path, text)
    assert "\n" not in str(refused.value)


def test_a_first_value_that_is_empty_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="line 2, column watts: an empty cell"):
        from_file(tmp_path, "time_s,watts\n0,\n1,5\n", gaps=HOLD)


def test_a_file_that_is_not_there_or_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(Refused, match=r"^power.cap: .*none\.csv: No such file"):
        read_steps("none.csv", "power", US, "power.cap", folder=tmp_path)
    with pytest.raises(Refused, match=r"^power.cap: .*folder\.csv: Is a directory"):
        read_steps("folder.csv", "power", US, "power.cap", folder=tmp_path)


@given(st.text('0123456789.,-+eE sWkhdµ/nT:Z\n"#', max_size=40), st.sampled_from([*KINDS]))
def test_nonsense_is_read_or_refused(text: str, unit: str) -> None:
    for nonsense in (text, [["0 s", text]], [[text, "1 W"]]):
        with contextlib.suppress(Refused):
            assert read_steps(nonsense, unit, US, "key").begins[0] == 0
