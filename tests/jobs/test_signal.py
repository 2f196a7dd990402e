"""The regulation signal: one that is made, what can be said of any, and what a file gives."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from odonata.jobs.market import MarketSettings
from odonata.jobs.series import Steps
from odonata.jobs.series_dates import Period
from odonata.jobs.series_repair import say_once
from odonata.jobs.signal import correlation, statistics, synthetic
from odonata.traces.clock import clock_given
from pdes.errors import Refused

S = 10**6
DAY = 21_600
"""Values of a day, 4 s apart."""


# -- one that is made


def days(count: int, **how: float) -> list[np.ndarray]:
    return [synthetic(seed, DAY, **how) for seed in range(count)]  # type: ignore[arg-type]


def test_a_day_deviates_as_the_papers_have_it_and_remembers_as_a_day_of_regd_does() -> None:
    times = np.arange(DAY) * 4 * S
    found = [statistics(times, day, DAY * 4 * S) for day in days(20)]
    assert np.mean([one.deviation for one in found]) == pytest.approx(0.40, abs=0.02)
    assert np.mean([one.mean for one in found]) == pytest.approx(0.0, abs=0.03)
    for lag, real in {30: 0.87, 60: 0.67, 120: 0.36, 180: 0.17}.items():
        mean = np.mean([one.autocorrelation[lag] for one in found])
        assert mean == pytest.approx(real, abs=0.05), lag
    assert all(-1 <= one.least <= one.most <= 1 for one in found)


@pytest.mark.parametrize("deviation", [0.05, 0.4, 0.9, 0.99])
@pytest.mark.parametrize("memory_s", [(0.0, 0.0), (30.0, 8.0), (90.0, 0.0)])
def test_it_deviates_after_clipping_by_what_is_asked_for(
    deviation: float, memory_s: tuple[float, float]
) -> None:
    found = [synthetic(seed, DAY, 4.0, deviation, memory_s).std() for seed in range(10)]
    assert np.mean(found) == pytest.approx(deviation, rel=0.02)


def test_it_begins_as_it_goes_on() -> None:
    many = np.array([synthetic(seed, 50) for seed in range(2000)])
    assert many.std(axis=0) == pytest.approx(np.full(50, 0.40), abs=0.03)
    assert many.mean(axis=0) == pytest.approx(np.zeros(50), abs=0.06)
    pairs = [np.corrcoef(many[:, at], many[:, at + 15])[0, 1] for at in (0, 30)]
    assert pairs[0] == pytest.approx(pairs[1], abs=0.06)


@given(st.integers(0, 2**63 - 1), st.integers(0, 200), st.integers(0, 200),
       st.floats(0.001, 0.999), st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)))  # fmt: skip
@examples(40)
def test_a_longer_one_begins_with_a_shorter_one(
    seed: int, some: int, more: int, deviation: float, memory_s: tuple[float, float]
) -> None:
    short, long = (synthetic(seed, count, 4.0, deviation, memory_s)
                   for count in (some, some + more))  # fmt: skip
    assert short.tolist() == long[:some].tolist()
    assert len(long) == some + more
    assert (np.abs(long) <= 1).all()


def test_the_numbers_of_a_seed_do_not_change() -> None:
    assert synthetic(1, 4).tolist() == [0.385017, 0.333476, 0.301632, 0.309104]
    assert synthetic(1, 4).tolist() != synthetic(2, 4).tolist()


@pytest.mark.parametrize(
    ("how", "words"),
    [((4.0, 0.0, (90.0, 20.0)), "deviation = 0: 0.001 .. 0.999"),
     ((4.0, 1.0, (90.0, 20.0)), "cannot deviate by more than 1"),
     ((4.0, math.nan, (90.0, 20.0)), "deviation = nan"),
     ((4.0, 0.64, (-1.0, 20.0)), "memory = -1 s: 0 s or more"),
     ((4.0, 0.64, (90.0, math.inf)), "memory = inf s"),
     ((0.0, 0.64, (90.0, 20.0)), "interval = 0 s: more than 0")],
)  # fmt: skip
def test_what_no_signal_can_have_is_refused(
    how: tuple[float, float, tuple[float, float]], words: str
) -> None:
    with pytest.raises(Refused, match=words):
        synthetic(1, 10, *how)


# -- what can be said of any


def test_means_are_over_time_and_not_over_samples() -> None:
    found = statistics([0, 1 * S, 4 * S], [1.0, -0.5, 0.25], 10 * S)
    assert found.mean == pytest.approx((1.0 * 1 - 0.5 * 3 + 0.25 * 6) / 10)
    assert found.deviation == pytest.approx(
        math.sqrt((0.9**2 * 1 + 0.6**2 * 3 + 0.15**2 * 6) / 10))  # fmt: skip
    assert (found.least, found.most) == (-0.5, 1.0)
    assert (found.step_median, found.step_most) == (pytest.approx(1.125), 1.5)
    assert found.ramp_most == 1.5
    assert found.mileage == pytest.approx((1.5 + 0.75) * 360)
    assert found.at_ends == pytest.approx(0.1)
    assert (found.spacing_s, found.spacings_s) == (2.0, (1.0, 3.0))


def test_of_one_value_little_can_be_said() -> None:
    found = statistics([0], [0.5], 3600 * S)
    assert (found.mean, found.deviation, found.mileage, found.at_ends) == (0.5, 0.0, 0.0, 0.0)
    assert math.isnan(found.step_median)
    assert math.isnan(found.spacing_s)
    assert all(math.isnan(value) for value in found.autocorrelation.values())


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(-1, 1)), min_size=2, max_size=30),
       st.integers(1, 20))  # fmt: skip
def test_the_autocorrelation_is_that_of_every_second(
    steps: list[tuple[int, float]], lag: int
) -> None:
    spans, values = zip(*steps, strict=True)
    ends = np.cumsum(spans)
    each = np.repeat(values, spans)
    found = correlation((ends - spans) * S, values, int(ends[-1]) * S, lag)
    if lag >= ends[-1] or each.std() < 1e-6:
        assert math.isnan(found) or each.std() > 0
        return
    off = each - each.mean()
    expected = (off[:-lag] * off[lag:]).mean() / each.var()
    assert found == pytest.approx(expected, abs=1e-6)


def test_a_signal_without_an_end_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="ends after the last"):
        statistics([0, S], [0.0, 1.0], S)


# -- in the market of a run


def test_a_market_makes_its_signal_by_the_seed_of_the_run() -> None:
    market = MarketSettings(signal="synthetic")
    found = market.steps("signal", S, seed=3, until=3601 * S)
    assert found.levels == tuple(synthetic(3, 901).tolist())
    assert found.begins[:3] == (0, 4 * S, 8 * S)
    assert len(market.steps("signal", S).levels) == DAY
    slow = MarketSettings(signal="synthetic", signal_deviation=0.4, signal_interval_ps=10**13,
                          signal_slow_memory_ps=3 * 10**13, signal_fast_memory_ps=0)  # fmt: skip
    expected = synthetic(1, 6, 10.0, 0.4, (30.0, 0.0))
    assert slow.steps("signal", S, until=60 * S).levels == tuple(expected.tolist())


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"signal": "synthetic", "signal_deviation": 1.0}, "signal_deviation = 1: 0.001 .. 0.999"),
     ({"signal": "synthetic", "signal_slow_memory_ps": -1},
       "signal_slow_memory = -1 ps: at least 0"),
     ({"signal": "synthetic", "signal_interval_ps": 0}, "signal_interval = 0 ps: above 0"),
     ({"signal": 0.5, "signal_deviation": 0.5}, 'only with signal = "synthetic"'),
     ({"repair": "guess"}, "repair = guess: one of refuse, repair"),
     ({"limit": 0.0}, "limit = 0: above 0"), ({"limit": math.nan}, "limit = nan"),
     ({"share": 0.0}, "share = 0: above 0"), ({"share": 1.1}, "share = 1.1"),
     ({"late": -0.1}, "late = -0.1: 0 .. 1"), ({"violation": -1.0}, "violation = -1: 0"),
     ({"standby": " "}, "the name of a type, or none")],
)  # fmt: skip
def test_settings_that_cannot_be_are_named(settings: dict[str, object], words: str) -> None:
    with pytest.raises(Refused, match=words):
        MarketSettings(**settings)  # type: ignore[arg-type]


def test_only_energy_may_cost_less_than_nothing() -> None:
    market = MarketSettings(energy_price=-0.1, reserve_price=-0.1, error_price=(("0 s", -0.1),))
    assert market.steps("energy_price", S) == Steps.constant(-0.1)
    for name in ("reserve_price", "error_price"):
        with pytest.raises(Refused, match=f"^market.{name} = -0.1 at its lowest: 0 or more"):
            market.steps(name, S)


# -- from a file


def signal_of(folder: Path, text: str, **settings: str) -> Steps:
    (folder / "it.csv").write_text(text)
    say_once.cache_clear()
    return MarketSettings(signal=str(folder / "it.csv"), **settings).steps("signal", S)


TWO = "time_s,signal\n0,0.5\n2,0.25\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [(TWO + "4,1.019\n6,-1.006\n", "line 4: 1.019 is beyond -1 and 1: .* from -1.006 to 1.019, "
      "2 of 4 values beyond by at most 0.05, as a real signal's may be"),
     (TWO + "4,7\n6,-7\n", "line 4: 7 is beyond .*divide by the reserve .*clip with repair = "),
     (TWO + "4,NaN\n", "line 4, column signal: 'NaN' is no value: give it, or .* repair = "),
     (TWO + "4,\n", "line 4, column signal: an empty cell is no value"),
     (TWO + "2,0.75\n", "line 4: '2' is the same time .* let the last count with repair = "),
     ("time_s,signal\n0,0.5\n", "line 2: a single value, .* signal = 0.5 in place")],
)  # fmt: skip
def test_what_could_be_repaired_is_refused_with_its_line(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(Refused, match=rf"^market\.signal: .*it\.csv: {words}"):
        signal_of(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "levels", "words"),
    [(TWO + "4,1.019\n6,-1.006\n", (0.5, 0.25, 1.0, -1.0),
      "2 values beyond -1 and 1 by up to 0.019 (1.019 in line 4): clipped, as a real signal's"),
     (TWO + "4,7\n6,1.01\n", (0.5, 0.25, 1.0, 1.0), "by up to 6 (7 in line 4): clipped, but that"),
     (TWO + "4,nan\n6,\n8,0.1\n", (0.5, 0.25, 0.25, 0.25, 0.1),
      "2 values are missing (the first in line 4): the last one holds"),
     (TWO + "2,0.75\n", (0.5, 0.75), "1 time comes again (line 4): the last value counts"),
     ("time_s,signal\n0,0.5\n", (0.5,), "a single value, 0.5: it holds for ever")],
)  # fmt: skip
def test_what_is_repaired_is_said(
    tmp_path: Path, text: str, levels: tuple[float, ...], words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert signal_of(tmp_path, text, repair="repair").levels == levels
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("repair", ["refuse", "repair"])
@pytest.mark.parametrize(
    ("text", "words"),
    [(TWO + "4,up\n", "line 4, column signal: 'up' is not a signal"),
     (TWO + "4,inf\n", "line 4, column signal: 'inf' is not a signal"),
     ("time_s,signal\n0,nan\n2,0.5\n", "line 2, .* none before it that could hold"),
     (TWO + "1,0.5\n", "line 4: '1' is earlier than '2' .* sort the rows"),
     (TWO + "4,0.1\n8,0.2\n10,0.1\n", "line 5: a gap of 4 s"),
     ("time_s,watts\n0,1\n", "the column 'watts' is a power, not a signal")],
)  # fmt: skip
def test_what_cannot_be_repaired_is_refused_either_way(
    tmp_path: Path, text: str, words: str, repair: str
) -> None:
    with pytest.raises(Refused, match=words):
        signal_of(tmp_path, text, repair=repair)


def test_gaps_are_a_question_of_their_own(tmp_path: Path) -> None:
    text = TWO + "4,0.1\n8,\n10,0.1\n"
    assert signal_of(tmp_path, text, gaps="hold").levels == (0.5, 0.25, 0.1, 0.1)


@pytest.mark.parametrize("repair", ["refuse", "repair"])
@pytest.mark.parametrize(
    ("rows", "words"),
    [("4,0.1\n8,0.2\n10,0.1\n",
      ["1 row is missing before line 5, from '4' to '8': the last value holds"]),
     ("4,0.1\n8,0.2\n10,0.1\n12,0\n18,0.1\n", ["3 rows are missing in 2 gaps, the first before "
      "line 5, from '4' to '8': the last value holds"]),
     ("4,0.1\n6,\n8,0.2\n10,0.1\n", ["1 value is missing (line 5): the last one holds"]),
     ("4,0.1\n6,\n10,0.2\n12,0.1\n", ["1 value is missing (line 5)",
      "1 row is missing before line 6, from"]),
     ("4,0.1\n6,0.2\n", [])],
)  # fmt: skip
def test_values_that_hold_in_gaps_are_said(
    tmp_path: Path, rows: str, words: list[str], repair: str, capsys: pytest.CaptureFixture[str]
) -> None:
    signal_of(tmp_path, TWO + rows, gaps="hold", repair=repair)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(words)
    assert all(one in line for one, line in zip(words, lines, strict=True))


def test_values_that_hold_before_and_after_a_file_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ("2026-03-02T10:00:04Z,0.5", "2026-03-02T10:00:06Z,0.2", "2026-03-02T10:00:08Z,-0.5")
    (tmp_path / "it.csv").write_text("\n".join(["time,signal", *rows]))
    period = Period(clock_given(None, "2026-03-02T10:00:00Z", None), 3600 * S)
    market = MarketSettings(signal=str(tmp_path / "it.csv"), gaps="hold")
    say_once.cache_clear()
    for _ in range(2):
        found = market.steps("signal", S, period, until=60 * S)
        assert (found.begins, found.levels) == ((0, 6 * S, 8 * S), (0.5, 0.2, -0.5))
    early, late = capsys.readouterr().err.splitlines()
    assert "it begins at '2026-03-02T10:00:04Z', later than the run: the first value holds" in early
    assert "it ends after 10 s, and the run lasts for 60 s: its last value holds" in late


def test_a_file_that_ends_before_the_last_job_comes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "it.csv").write_text(TWO + "4,0.1\n")
    (tmp_path / "price.csv").write_text("time_h,price\n0,0.1\n1,0.2\n2,0.1\n")
    market = MarketSettings(signal=str(tmp_path / "it.csv"),
                            reserve_price=str(tmp_path / "price.csv"))  # fmt: skip
    assert len(market.steps("signal", S, Period(None, 6 * S)).levels) == 3
    with pytest.raises(Refused, match=r"it.csv: it ends after 6 s, .* until 7 s: .* gaps = .hold"):
        market.steps("signal", S, Period(None, 7 * S))
    with pytest.raises(Refused, match=r"market.reserve_price: .*price.csv: it ends after 10,800 s"):
        market.steps("reserve_price", S, Period(None, 10_801 * S))
    held = MarketSettings(signal=str(tmp_path / "it.csv"), gaps="hold")
    assert len(held.steps("signal", S, Period(None, 7 * S)).levels) == 3


@pytest.mark.parametrize("rows", ["0,0.5\n6,0.25\n", "0,0.5\n1,0.25\n3,1\n4,-1\n8,0.1\n"])
def test_a_signal_that_ends_before_the_run_is_refused_whatever_its_spacing(
    tmp_path: Path, rows: str
) -> None:
    (tmp_path / "it.csv").write_text(f"time_s,signal\n{rows}")
    market = MarketSettings(signal=str(tmp_path / "it.csv"))
    early = Period(None, 5 * S)  # all jobs have come by then
    assert market.steps("signal", S, early, until=12 * S).begins[0] == 0
    with pytest.raises(Refused, match=r"it ends after 12 s, and the run lasts for 13 s: .*, have "
                       "it begin anew with repeat = true, or let"):  # fmt: skip
        market.steps("signal", S, early, until=13 * S)
    assert replace(market, repeat=True).steps("signal", S, early, until=13 * S).begins[0] == 0
    with pytest.raises(Refused, match=r"it ends after 12 s, and jobs are submitted until 13 s"):
        market.steps("signal", S, Period(None, 13 * S))


def test_a_tariff_that_ends_holds_aloud(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last value is told where it holds for longer than any before it."""
    path = tmp_path / "day.csv"
    path.write_text("time_s,price\n0,0.06\n6,0.12\n22,0.06\n")
    market, jobs = MarketSettings(energy_price=str(path)), Period(None, 30 * S)
    for until, said in ((38, ""), (39, "its last value, 0.06, holds from 22 s to the end at 39 s")):
        assert len(market.steps("energy_price", S, jobs, until=until * S).begins) == 3
        err = capsys.readouterr().err
        assert err == (f"odonata: market.energy_price: {path}: {said}\n" if said else "")
    assert MarketSettings(energy_price=0.1).steps("energy_price", S, jobs, until=39 * S).begins == (
        0,
    )
    assert not capsys.readouterr().err


def test_prices_at_uneven_times_hold(tmp_path: Path) -> None:
    (tmp_path / "it.csv").write_text("time_h,price\n0,0.1\n7,0.2\n20,0.1\n")
    market = MarketSettings(energy_price=str(tmp_path / "it.csv"))
    found = market.steps("energy_price", S, Period(None, 100 * 3600 * S), until=200 * 3600 * S)
    assert found.at(150 * 3600 * S) == 0.1


def test_a_file_may_have_dates_and_any_spacing(tmp_path: Path) -> None:
    rows = ("2026-03-02T10:00:00Z,0.5", "2026-03-02T10:00:02Z,1.2", "2026-03-02T10:00:05Z,-0.5")
    (tmp_path / "it.csv").write_text("\n".join(["time,signal", *rows]))
    period = Period(clock_given(None, "2026-03-02T10:00:01Z", None), 3 * S)
    market = MarketSettings(signal=str(tmp_path / "it.csv"), repair="repair")
    found = market.steps("signal", S, period)
    assert (found.begins, found.levels) == ((0, S, 4 * S), (0.5, 1.0, -0.5))


@given(st.lists(st.sampled_from(["0.5", "-1", "7", "-7", "nan", "", "1.019", "up", "1e9"]),
                min_size=1, max_size=8), st.sampled_from(["refuse", "repair"]))  # fmt: skip
@examples(40)
def test_whatever_a_file_has_it_is_refused_or_a_signal(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str], repair: str
) -> None:
    path = tmp_path_factory.mktemp("any") / "it.csv"
    path.write_text("time_s,signal\n" + "".join(f"{2 * at},{it}\n" for at, it in enumerate(cells)))
    market = MarketSettings(signal=str(path), repair=repair)
    sound = all(it in ("0.5", "-1") for it in cells) and len(cells) > 1
    mended = "up" not in cells and cells[0] not in ("nan", "")
    if not (mended if repair == "repair" else sound):
        with pytest.raises(Refused, match="line "):
            market.steps("signal", S)
        return
    found = market.steps("signal", S)
    assert -1 <= found.least <= found.most <= 1
    assert len(found.levels) == len(cells)
