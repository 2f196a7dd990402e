"""Hours in which bids are tried: the same as hours of a run, without the engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from markets import logs_of

from odonata.cluster import market
from odonata.cluster.metrics import running_rows
from odonata.cluster.model import Cluster
from odonata.cluster.tried import Hours
from odonata.jobs.floors import work_left
from odonata.jobs.market import MarketSettings
from odonata.jobs.power import Power
from odonata.traces.mix import MIXES, mix
from odonata.traces.trace import Trace
from odonata.traces.types import Types
from pdes.driver import run
from pdes.transport import Serial
from policies.bidding import BIDDINGS, Bid, BiddingPolicy, bidding
from policies.power import floor as f

HOUR = 3600 * 10**6
TRIALS: list[Any] = []


def model_of(policy: str, name: str = "W4", nodes: int = 36, load: float | None = None,
             bids: str = "fixed", **market: Any) -> Cluster:  # fmt: skip
    how = MIXES[name]
    types = Types.of(how.table)
    trace = mix(types, how.types, nodes, load=how.load if load is None else load, seed=1)
    power = Power(policy, market.pop("given", ()), types=how.table, interval_ps=10**12)
    settings = MarketSettings(bids, signal="synthetic", **market)
    return Cluster(trace, nodes, power=power, market=settings, until_us=market.pop("until", HOUR))


def rows_of(hour: Any, names: tuple[str, ...]) -> Trace:
    """Returns the jobs of an hour that is tried, as a trace."""
    state = hour.state
    rows, none = state.rows[: len(state.jobs)], np.zeros(len(state.jobs), int)
    run_us = state.progress[: len(none), 0].astype(int)
    return Trace("tried", np.arange(len(none)), rows[:, 2], run_us, rows[:, 1], run_us * 10, none,
                 none, rows[:, 0], none - 1, applications=names,
                 rates=dict.fromkeys(names, 1.0))  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "mixed", "nodes", "standby", "given", "bid"),
    [("tracking-only", "W4", 36, None, (), Bid(8434.0, 3435.0)),
     ("energy-qare", "W3", 36, "bt.C.16", (("preemption", True),), Bid(9577.0, 3256.0)),
     ("aqa", "W7", 36, "is.D.4", (("gaps", True), ("gain", 2.0), ("preemption", True)),
      Bid(9000.0, 3000.0, {"bt.C.16": 0.4, "mg.D.8": 0.6})),
     ("qosg", "qosg", 100, "ft", (("preemption", True),),
      Bid(20600.0, 10111.0, {"fs": 0.128, "sc": 0.212, "bt": 0.127, "lu": 0.271, "mg": 0.124,
                             "sp": 0.14}))],
)  # fmt: skip
def test_a_tried_hour_is_an_hour_of_a_run(
    policy: str, mixed: str, nodes: int, standby: str | None, given: Any, bid: Bid
) -> None:
    model = model_of(policy, mixed, nodes, standby=standby, given=given)
    assert model.types is not None
    hours = Hours(model, model.state(0, 1), 0, HOUR, None)
    trial = hours.tried(bid, 3, False)
    again = hours.tried(bid, 3, False)
    assert again.power_w.tolist() == trial.power_w.tolist()
    trace, (times, values) = rows_of(hours._hour(3), model.types.names), hours._signal(3)
    signal = tuple((f"{at} us", value) for at, value in zip(times, values, strict=True))

    class Same(BiddingPolicy):
        def bid(self, market: Any) -> Bid:
            return bid

    bidding("same", about="a test's", source="ours")(Same)
    try:
        settings = MarketSettings("same", signal=signal, standby=standby)
        whole = Cluster(trace, nodes, power=model.power, market=settings, until_us=HOUR)
        logs, result = logs_of(whole, lambda it, _end, **how: run(it, HOUR, **how))
    finally:
        del BIDDINGS["same"]
    tracking = np.array([row for _, row in logs["tracking"]])
    assert tracking[:, 1].tolist() == trial.power_w.tolist()
    assert tracking[:, 0].tolist() == trial.target_w.tolist()
    assert (result.outcome["end_us"] >= 0).sum() == trial.ended
    assert (result.outcome["start_us"] >= 0).sum() == trial.started
    start, come = result.outcome["start_us"], trace.submit_us < HOUR
    waits = np.where(start >= 0, start, HOUR)[come] - trace.submit_us[come]
    found = [wait for its in trial.waits.values() for wait in its.tolist()]
    assert sorted(found) == pytest.approx(sorted((waits / 1e6).tolist()))


class Looks(BiddingPolicy):
    """Tries what it bids, hour after hour, and keeps what came of it."""

    def bid(self, market: Any) -> Bid:
        found = Bid(8000.0, 1500.0)
        TRIALS.append((market, market.trial(found), market.trial(found, 2)))
        return found


def test_an_hour_begins_with_what_is_there() -> None:
    bidding("looks", about="a test's", source="ours")(Looks)
    TRIALS.clear()
    try:
        model = model_of("tracking-only", "W4", bids="looks", hour_ps=600 * 10**12)
        _, result = logs_of(model, lambda it, _end, **how: run(it, HOUR, **how))
    finally:
        del BIDDINGS["looks"]
    assert len(TRIALS) == 6
    for seen, first, other in TRIALS:
        assert len(first.power_w) == 600
        assert first.power_w.tolist() != other.power_w.tolist(), "jobs come otherwise"
        assert first.started > len(seen.running)
        assert [one.name for one in seen.types] == list(model.types.names)  # type: ignore[union-attr]
    assert any(seen.running for seen, _, _ in TRIALS)
    assert result.completed


def test_an_hour_that_breaks_the_rule_is_given_up() -> None:
    model = model_of("tracking-only")
    hours = Hours(model, model.state(0, 1), 0, HOUR, None)
    bad = Bid(14000.0, 100.0)
    whole, short = hours.tried(bad, 0, False), hours.tried(bad, 0, True)
    assert len(whole.power_w) == 3600
    assert whole.kept_on
    assert len(short.power_w) < 3600
    assert short.part == len(short.power_w) / 3600
    assert not short.kept_on
    longer = hours.tried(bad, 0, 2.0)
    assert round(longer.part * 3600 * longer.bad(0.3)) == 720
    assert round(short.part * 3600 * short.bad(0.3)) == 360
    assert whole.bad(0.3) >= 0.1
    assert whole.power_w[: len(short.power_w)].tolist() == short.power_w.tolist()


def test_what_is_tried_changes_nothing() -> None:
    digests = []
    bidding("looks", about="a test's", source="ours")(Looks)
    try:
        for bids, given in (("looks", {}), ("fixed", {})):
            model = model_of(
                "qosg",
                bids=bids,
                bidding_parameters=(
                    () if bids == "looks" else (("average", 8000.0), ("reserve", 1500.0))
                ),
                **given,
            )
            digests.append(run(model, HOUR, show_compiling=False, transport=Serial()).digest)
    finally:
        del BIDDINGS["looks"]
    assert digests[0] == digests[1]


class Peeks(BiddingPolicy):
    """Keeps, at each bid, what an hour begins with that is tried, beside what is there."""

    def bid(self, seen: Any) -> Bid:
        seen.trial(Bid(8000.0, 1500.0))
        (hours,) = MADE
        there, begun = hours._state, hours._hour(0)
        SEEN.append((seen.time, there._replace(**copies(there)), begun.fresh,
                     begun.ends["progress"][0]))  # fmt: skip
        MADE.clear()
        return Bid(7400.0, 3000.0)


MADE: list[Hours] = []
SEEN: list[Any] = []
OF_TYPE = [f.WAITING, f.WAITING_NODES, f.RUNNING, f.NODES, f.HALTED, f.HALTED_NODES]


def copies(state: Any) -> dict[str, Any]:
    names = ("tallies", "floor", "jobs", "ctl", "progress", "rows", "kinds", "paused", "tops")
    return {name: getattr(state, name).copy() for name in names}


def test_an_hour_that_is_tried_begins_with_the_very_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Suspended jobs and suspended standby jobs are there, too, with the work that is left."""
    made = market.Hours

    def keep(*given: Any) -> Hours:
        MADE.append(made(*given))
        return MADE[-1]

    monkeypatch.setattr(market, "Hours", keep)
    bidding("peeks", about="a test's", source="ours")(Peeks)
    SEEN.clear()
    try:
        model = model_of("tracking-only", "W4", load=0.4, bids="peeks", standby="bt.C.16",
                         given=(("preemption", True),), hour_ps=100 * 10**12)  # fmt: skip
        assert model.market is not None
        falls = tuple((f"{100 * at + when} s", level) for at in range(36)
                      for when, level in ((0, 0.5), (97, -1.0)))  # fmt: skip
        model = replace(model, market=replace(model.market, signal=falls))
        logs_of(model, lambda it, _end, **how: run(it, HOUR, **how))
    finally:
        del BIDDINGS["peeks"]
    assert len(SEEN) == 36
    halted = np.zeros(2, int)
    for time, there, fresh, marks in SEEN:
        assert fresh["tallies"][:, OF_TYPE].tolist() == there.tallies[:, OF_TYPE].tolist()
        for word in (f.FREE, f.QUEUED, f.PAUSED):
            assert fresh["floor"][word] == there.floor[word]
        aside = there.tallies[:, f.STANDBY] != 0
        halted += [there.tallies[some, f.HALTED].sum() for some in (~aside, aside)]
        rows = running_rows(there)
        left = np.maximum(1.0, work_left(there, rows, time))
        clocks, marks = fresh["kinds"][there.rows[rows, f.OF], f.CLOCK], marks[: len(rows)]
        begun = np.where(marks[:, f.LEFT] >= 0, marks[:, f.LEFT], marks[:, f.FINISH] - clocks)
        assert begun == pytest.approx(left, abs=1e-3)
    assert (halted > 0).all(), "there were suspended jobs, and suspended standby jobs"


class Tells(BiddingPolicy):
    """Bids as another policy, and keeps what it bids."""

    def bid(self, market: Any) -> Bid:
        found = BIDDINGS.make(OF[0], COARSE.get(OF[0], {})).bid(market)
        TOLD.append(found)
        return found


COARSE: dict[str, dict[str, Any]] = {
    "energy-qare": {"steps": 4},
    "qosg": {"step": 0.05},
    "aqa": {"candidates": 30, "hours": 2},
}
"""Parameters of bidding policies that try a grid of bids, for a coarser grid."""
OF: list[str] = []
TOLD: list[Bid] = []


@pytest.mark.parametrize("policy", ["tracking-only", "energy-qare", "qosg", "aqa"])
def test_no_bid_knows_what_is_to_come(policy: str) -> None:
    """Two traces are alike until the third quarter of an hour; after it other types come."""
    names = ("fs", "bt", "mg") if policy == "qosg" else ("mg.D.16", "is.D.64", "lu.C.28")
    table, quarter = Types.of("qosg" if policy == "qosg" else "aqa"), HOUR // 4
    trace = mix(table, names[:2], 20, load=0.5, seed=3)
    other = mix(table, names[1:], 20, load=0.9, seed=4)
    late = other.submit_us > 3 * quarter
    some = trace.submit_us <= 3 * quarter

    def joined(first: Any, second: Any) -> Any:
        return np.concatenate([first[some], second[late]])

    places = np.array([names.index(name) for name in other.applications])
    two = [replace(trace, rates=None)]
    columns = {name: joined(getattr(trace, name), getattr(other, name))
               for name in ("submit_us", "run_us", "nodes", "requested_us", "user", "project",
                            "wait_us")}  # fmt: skip
    application = joined(trace.application, places[other.application])
    two.append(replace(trace, rates=None, number=np.arange(len(application)) + 1,
                       application=application, applications=names, **columns))  # fmt: skip
    bidding("tells", about="a test's", source="ours")(Tells)
    OF[:] = [policy]
    found = []
    try:
        for each in two:
            TOLD.clear()
            power = Power(policy, (), types=table, interval_ps=10**12)
            settings = MarketSettings("tells", signal="synthetic", hour_ps=900 * 10**12)
            model = Cluster(each, 20, power=power, market=settings, until_us=HOUR)
            logs_of(model, lambda it, _end, **how: run(it, HOUR, **how))
            found.append([*TOLD])
    finally:
        del BIDDINGS["tells"]
    assert len(found[0]) == len(found[1]) == 4
    assert found[0] == found[1], "the last is made when the traces begin to differ"
    assert any(bid.reserve_w for bid in found[0])
