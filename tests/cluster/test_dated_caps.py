"""Dated caps and prices act at their dates, whatever the trace is and whenever it begins."""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import Simulated, simulate
from odonata.jobs.metering import PowerRecord
from odonata.jobs.power import Power
from odonata.results.power_measures import power_measures
from odonata.traces.source import Source
from odonata.traces.trace import SECOND, Trace
from pdes.driver import run
from pdes.errors import Refused

ZONE = "Europe/Stockholm"
HERE = ZoneInfo(ZONE)
BEGIN = datetime(2026, 3, 10, 14, 37)
"""The first submission, a Tuesday, by the clocks of Stockholm."""
DAYS = 23
"""Long enough to reach beyond 29 March 2026, when clocks go forward."""
NODES = 4
SUBMITTED_H = range(0, DAYS * 24, 5)
"""The hours at which jobs come."""


def instant(hours: float, begin: datetime = BEGIN) -> datetime:
    return datetime.fromtimestamp(begin.replace(tzinfo=HERE).timestamp() + hours * 3600, HERE)


def as_swf(folder: Path, begin: datetime = BEGIN) -> Source:
    start = int(instant(0, begin).timestamp()) - 7200
    lines = [f"; UnixStartTime: {start}", f"; TimeZoneString: {ZONE}", f"; MaxProcs: {NODES}"]
    lines += [f"{n} {7200 + hour * 3600} -1 14000 3 -1 -1 3 20000 -1 1 1 1 1 1 1 -1 -1"
              for n, hour in enumerate(SUBMITTED_H, 1)]  # fmt: skip
    (folder / "a.swf").write_text("\n".join(lines))
    return Source(str(folder / "a.swf"))


def as_epochs(folder: Path, begin: datetime = BEGIN) -> Source:
    start = int(instant(0, begin).timestamp())
    lines = [f"; TimeZone: 3600\n; MaxProcs: {NODES}"]
    lines += [f"{n} {start + hour * 3600} -1 14000 3 -1 -1 3 20000 -1 1 1 1 1 1 1 -1 -1"
              for n, hour in enumerate(SUBMITTED_H, 1)]  # fmt: skip
    (folder / "a.swf").write_text("\n".join(lines))
    return Source(str(folder / "a.swf"), timezone=ZONE)


def as_sacct(folder: Path, begin: datetime = BEGIN) -> Source:
    rows = ["JobID|Submit|ElapsedRaw|TimelimitRaw|NNodes|State"]
    rows += [f"{n}|{instant(hour, begin).replace(tzinfo=None).isoformat()}|14000|300|3|COMPLETED"
             for n, hour in enumerate(SUBMITTED_H)]  # fmt: skip
    (folder / "a.sacct").write_text("\n".join(rows))
    return Source(str(folder / "a.sacct"), nodes=NODES, timezone=ZONE)


def as_batsim(folder: Path, begin: datetime = BEGIN) -> Source:
    jobs = [{"id": n, "subtime": hour * 3600, "res": 3, "walltime": 20000, "profile": "p"}
            for n, hour in enumerate(SUBMITTED_H)]  # fmt: skip
    profiles = {"p": {"type": "delay", "delay": 14000}}
    text = json.dumps({"nb_res": NODES, "jobs": jobs, "profiles": profiles})
    (folder / "a.json").write_text(text)
    return Source(str(folder / "a.json"), epoch=begin.isoformat(), timezone=ZONE)


SOURCES = [as_sacct, as_swf, as_epochs, as_batsim]


def evening_caps(folder: Path, first: datetime = datetime(2026, 3, 2), zone: bool = False) -> str:
    """A cap of 800 W from 17 to 20 on working days, by the clocks of Stockholm, and none else."""
    rows = ["time,watts", f"{first.isoformat()}{'+01:00' * zone},none"]
    for day in range(60):
        date = first + timedelta(days=day)
        if date.weekday() < 5:
            for hour, cap in ((17, "800"), (20, "none")):
                at = date.replace(hour=hour)
                offset = at.replace(tzinfo=HERE).isoformat()[-6:] if zone else ""
                rows.append(f"{at.isoformat()}{offset},{cap}")
    (folder / "cap.csv").write_text("\n".join(rows))
    return str(folder / "cap.csv")


def ran(source: Source, **power: Any) -> tuple[Cluster, Simulated]:
    power = {"policy": "uniform", "interval_ps": 1800 * 10**12} | power
    model = Cluster.of(source, "easy", power=Power(**power))
    return model, simulate(model)


def dates_of(trace: Trace, times_us: Any) -> list[datetime]:
    assert trace.clock is not None
    return [datetime.fromisoformat(it) for it in trace.clock.dates(np.asarray(times_us))]


def power_of(done: Simulated) -> PowerRecord:
    assert done.power is not None
    return done.power


@pytest.mark.parametrize(("make", "zoned"), [*((make, False) for make in SOURCES), (as_swf, True)])
def test_the_evening_cap_acts_from_17_to_20_on_working_days(
    make: Any, zoned: bool, tmp_path: Path
) -> None:
    """Before, it acted from 7:37 to 10:37: the first date of the file was taken for the first
    submission. Clocks go forward on 29 March, in the middle of the run."""
    model, done = ran(make(tmp_path), cap=evening_caps(tmp_path, zone=zoned))
    power = power_of(done)
    times, jobs, caps = power.cap_changes
    of_machine = jobs == -1
    dates = dates_of(model.trace, times[of_machine])
    limited = [(it.hour, it.minute) for it, cap in zip(dates, caps[of_machine], strict=True)
               if cap == 800.0]  # fmt: skip
    freed = [(it.hour, it.minute) for it, cap in zip(dates, caps[of_machine], strict=True)
             if cap == math.inf]  # fmt: skip
    assert {*limited} == {(17, 0)}
    assert {*freed} == {(20, 0)}
    assert {it.weekday() for it in dates} == {0, 1, 2, 3, 4}
    assert len({it.date() for it in dates}) >= 5 * (DAYS // 7)
    assert {it.utcoffset() for it in dates} == {timedelta(hours=1), timedelta(hours=2)}
    ends = dates_of(model.trace, power.time)
    for at, watts, cap in zip(ends, power.power_w, power.cap_w, strict=True):
        within = at.weekday() < 5 and 17 * 60 + 30 <= at.hour * 60 + at.minute <= 20 * 60
        assert (cap == 800.0) >= within, at
        assert not within or watts <= 800.0 * (1 + 1e-9), at
        assert cap == 800.0 or cap == math.inf
    assert power.power_w.max() > 900.0
    found = power_measures(power, model.trace)
    assert found.capping_success == 1.0
    assert 0 < found.capped_intervals < found.intervals
    assert "Infinity" not in json.dumps(found.facts())
    assert "NaN" not in json.dumps(found.facts())


def test_all_sources_of_the_same_jobs_take_the_same_energy(tmp_path: Path) -> None:
    found = []
    for make in SOURCES:
        model, done = ran(make(tmp_path), cap=evening_caps(tmp_path))
        power = power_of(done)
        begin = int(model.trace.submit_us[0])
        idle_j = begin / SECOND * NODES * 100.0  # of SWF, whose time 0 is two hours earlier
        starts = done.schedule.start_us - begin
        found.append((starts.tolist(), round(power.total_j - idle_j, 3)))
    assert found[1:] == found[:-1]


def test_prices_of_a_local_day_cost_the_same_before_and_after_clocks_change(tmp_path: Path) -> None:
    """Electricity costs 1 per kWh from 17 to 20, and nothing else."""
    rows = ["time,price_per_kwh"]
    rows += [f"2026-03-{day:02}T{hour}:00,{price}" for day in range(26, 32)
             for hour, price in (("00", 0), ("17", 1), ("20", 0))]  # fmt: skip
    (tmp_path / "price.csv").write_text("\n".join(rows))
    source = Source(model="poisson", jobs=3, nodes=NODES, epoch="2026-03-26", timezone=ZONE)
    model = Cluster.of(source, power=Power(price=str(tmp_path / "price.csv")))
    steps = model.steps("price")
    assert steps is not None
    dear = [begin for begin, level in zip(steps.begins, steps.levels, strict=True) if level == 1.0]
    assert [it.isoformat() for it in dates_of(model.trace, dear)] == [
        f"2026-03-{day}T17:00:00+0{1 + (day >= 29)}:00" for day in range(26, 32)
    ]


def test_the_docs_of_packets_say_that_dates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="only a run of jobs has dates"):
        Power(cap=evening_caps(tmp_path)).checked_cap(4, 1)


def test_a_trace_without_a_date_names_the_key_that_would_give_it(tmp_path: Path) -> None:
    source = Source(model="poisson", jobs=3, nodes=NODES)
    words = (r"power.cap: .*line 2.*give the date of its time 0, as trace.epoch \(--epoch\) = "
             '"2026-03-02T00:00:00"')  # fmt: skip
    with pytest.raises(Refused, match=words):
        Cluster.of(source, power=Power(cap=evening_caps(tmp_path)))


@given(st.integers(0, 10**6), st.integers(1, 20 * 86400))
@examples(5)
def test_a_trace_and_its_dated_cap_may_be_moved_together(
    tmp_path_factory: pytest.TempPathFactory, begin_min: int, by_s: int
) -> None:
    """Nothing of the run changes but its dates."""
    folder = tmp_path_factory.mktemp("moved")
    found = []
    for shift in (0, by_s):
        start = datetime(2024, 1, 1) + timedelta(minutes=begin_min, seconds=shift)
        rows = [["time", "watts"], [start - timedelta(hours=10), "none"]]
        rows += [[start + timedelta(hours=3 * n), ("800", "none", "1000")[n % 3]]
                 for n in range(1, 40)]  # fmt: skip
        text = "\n".join(",".join(map(str, row)) for row in rows)
        (folder / "cap.csv").write_text(text)
        epoch = start.isoformat()
        source = Source(model="poisson", jobs=20, nodes=NODES, epoch=epoch, timezone="UTC")
        _, done = ran(source, cap=str(folder / "cap.csv"))
        power = power_of(done)
        found.append((done.result.digest, power.total_j, power.cap_w.tolist()))
    assert found[0] == found[1]


# -- hours without a cap


POLICIES = ["none", "idle-sleep", "naive", "uniform", "dynamic-learner", "rmap-traditional",
            "rmap-naive", "rmap-adaptive"]  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_runs_through_hours_without_a_cap(policy: str) -> None:
    """A reading over an interval that was partly without a cap has none, and breaks none."""
    cap = (("0 s", "none"), ("90 min", "2000 W"), ("3 h", "none"), ("301 min", "1800 W"))
    of = {"applications": "cab", "idle_w": 50.0} if policy.startswith("rmap") else {}
    model_name = "rmap-small" if of else "poisson"
    source = Source(model=model_name, jobs=30, nodes=16)
    model = Cluster.of(source, power=Power(policy=policy, cap=cap, demand="constant", **of))  # type: ignore[arg-type]
    done = simulate(model)
    power = power_of(done)
    for begin, end, allowed in zip(np.append(0, power.time), power.time, power.cap_w, strict=False):
        levels = [level for _, _, level in model.cap.between(int(begin), int(end))]  # type: ignore[union-attr]
        assert (allowed == math.inf) == (math.inf in levels)
    assert not (power.cause[power.cap_w == math.inf] != 0).any()
    facts = power_measures(power, model.trace).facts()
    assert "Infinity" not in json.dumps(facts)
    assert facts["capped_intervals"] == int(np.isfinite(power.cap_w).sum())


def test_a_resume_under_another_cap_is_refused_in_a_few_words(tmp_path: Path) -> None:
    """A cap that changes twice a day has hundreds of steps, of which the first that differs is
    named."""
    source = as_swf(tmp_path)

    def model(last: str) -> Cluster:
        cap = tmp_path / "cap.csv"
        cap.write_text(Path(evening_caps(tmp_path)).read_text().replace("26T17:00", last))
        return Cluster.of(source, "easy", power=Power(cap=str(cap)))

    day = 86400 * SECOND
    place = tmp_path / "kept"
    run(model("26T17:00"), 5 * day, checkpoint_dir=place, checkpoint_every=2 * day)
    assert run(model("26T17:00"), 6 * day, resume=place).resumed == 4 * day
    with pytest.raises(Refused, match=r"was made with cap = .*, this run has cap = ") as caught:
        run(model("26T15:00"), None, resume=place)
    assert len(str(caught.value)) < len(str(place)) + 600
    before, after = str(caught.value).split("this run has")
    assert before.count("...") == after.count("...") == 2
    assert before[-100:] != after[-100:]
