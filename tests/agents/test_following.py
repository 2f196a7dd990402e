"""A scheduler of packets that follows a target: what meters saw, what computing took, what a node
draws that is suspended, and what the same jobs do in a job run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from following import INTERVAL, JOBS, LAUNCH, TYPES, columns, following, recorded
from machines import SMALL, US
from workloads import go

from odonata.cluster.model import Cluster
from odonata.jobs.market import MarketSettings
from odonata.jobs.power import Power
from odonata.jobs.request import Job
from odonata.traces.trace import UNKNOWN, Trace
from odonata.traces.types import Types
from pdes.driver import run
from pdes.errors import Fault, Refused
from pdes.transport import Serial
from policies.bidding import BIDDINGS
from policies.bidding.base import BiddingPolicy, bidding
from policies.power import POWERS, Caps, PowerPolicy, power
from policies.power import floor as f
from policies.views import Bid

IDLE, ACTIVE, LEAST, SLOWDOWN = 100.0, 290.0, 162.0, 1.43


# -- what meters saw


@pytest.mark.parametrize("power", [{}, {"types": TYPES}], ids=["alike", "types"])
def test_the_power_of_each_interval_is_the_integral_of_what_nodes_drew(
    power: dict[str, Any], tmp_path: Path
) -> None:
    recorded(following(power=power), tmp_path)
    found = columns(tmp_path)
    heard, watts = found["tracking/time_ps"], found["tracking/power_w"]
    assert heard.tolist() == [LAUNCH + INTERVAL * n for n in range(1, len(heard) + 1)]
    by_node = found["nodes/energy_j"].sum(axis=1)
    count = min(len(watts), len(by_node) - 1)
    assert count > 20
    taken = np.diff(by_node, prepend=0.0)[:count] if by_node[0] else np.diff(by_node)[:count]
    np.testing.assert_allclose(watts[:count] * (INTERVAL * 1e-12), taken, rtol=1e-9)
    assert (watts == found["power/power_w"]).all()
    assert len({*watts.round(3).tolist()}) > 8


def test_targets_are_the_bid_of_the_interval_even_where_its_reading_comes_after_another_bid(
    tmp_path: Path,
) -> None:
    @bidding("stairs", about="more each hour", source="a test")
    class Stairs(BiddingPolicy):
        def bid(self, market: Any) -> Bid:
            hour = market.time // market.hour
            return Bid(10_000.0 + 1_000.0 * hour, 1_000.0 + 100.0 * hour)

    try:
        model = following(market={"bidding": "stairs", "bidding_parameters": ()})
        recorded(model, tmp_path)
    finally:
        del BIDDINGS["stairs"]
    found = columns(tmp_path)
    bids = found["bids/time_ps"].tolist()
    assert bids == [40 * US * n for n in range(len(bids))]
    for heard, target_w in zip(found["tracking/time_ps"], found["tracking/target_w"], strict=True):
        until = int(heard) - LAUNCH
        hour = (until - INTERVAL) // (40 * US)
        signal = naive_mean(until - INTERVAL, until)
        wanted = 10_000.0 + 1_000.0 * hour + signal * (1_000.0 + 100.0 * hour)
        assert target_w == pytest.approx(wanted, rel=1e-12)
    # The error of an hour leaves out its last interval, which is not known when the next is bid.
    watts, targets = found["tracking/power_w"], found["tracking/target_w"]
    for hour in range(1, len(found["bids/error"])):
        some = slice(8 * (hour - 1), 8 * hour - 1)
        off = np.abs(watts[some] - targets[some]).mean() / (1_000.0 + 100.0 * (hour - 1))
        assert found["bids/error"][hour] == pytest.approx(off, rel=1e-9)


def naive_mean(begin: int, end: int) -> float:
    """The mean of SIGNAL, instant by instant of a microsecond."""
    steps = [(0, 0.5), (30, -1.0), (65, 0.9), (80, -0.7), (120, 1.0)]
    values = [[level for since, level in steps if since <= at][-1]
              for at in range(begin // US, end // US)]  # fmt: skip
    return math.fsum(values) / len(values)


# -- what computing takes


def naive_end(
    start: int, pieces: int, work_ps: int, told: list[tuple[int, float]], how: tuple[float, ...]
) -> int:
    """When a task is done that computes so many pieces, after each of which messages take APART, by
    the words of docs/power.md and docs/following-in-packets.md; `told` is what reached its node,
    and when."""
    most, least, slowdown = how

    def stretch(cap_w: float) -> float:
        if cap_w >= most:
            return 1.0
        return 1.0 + (slowdown - 1.0) * (most - max(cap_w, least)) / (most - least)

    now, pace, goes, at = start, 1.0, True, 0
    for _ in range(pieces):
        left = float(work_ps)
        while True:
            done = now + math.ceil(left * pace) if goes else None
            if at < len(told) and (done is None or told[at][0] < done):
                when, word = told[at]
                at += 1
                when = max(when, now)
                if word < 0.0:
                    if goes:
                        left = max(0.0, left - (when - now) / pace)
                    goes, now = False, when
                elif math.isnan(word):
                    goes, now = True, when
                elif stretch(word) != pace:
                    if goes:
                        left, now = max(0.0, left - (when - now) / pace), when
                    pace = stretch(word)
                continue
            assert done is not None
            now = done + APART
            break
    return now


APART = 50_000 + 150_000
"""How long messages take within a node, in ps: `nic.send` and `nic.host`."""


def test_computing_takes_to_the_picosecond_what_the_formula_says(tmp_path: Path) -> None:
    """Of random jobs under random signals; caps, suspensions and resumptions all come."""
    told_in_all: list[float] = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        jobs = tuple(
            Job(1, "permutation", 8, iterations=int(rng.integers(2, 7)), application=name,
                compute_ps=int(rng.integers(5 * US, 40 * US)),
                arrival_ps=int(rng.integers(0, 60 * US)))
            for name in "abcab"
        )  # fmt: skip
        preempts = seed % 2 == 1
        low = 0.8 if preempts else -1.0
        signal = [[f"{17 * n} us", (-1) ** (n * preempts) * float(rng.uniform(low, 1))]
                  for n in range(24)]  # fmt: skip
        reserve = float(rng.uniform(110, 250) if preempts else rng.uniform(200, 500))
        model = following(
            *jobs, policy_parameters=(("preemption", preempts),), signal=signal, match_ps=0,
            send_ps=50_000, host_ps=150_000, power={"types": TYPES},
            bid_w=(SMALL.n_nodes * IDLE + reserve + 130.0 * (not preempts) + 12.0, reserve),
        )  # fmt: skip
        recorded(model, tmp_path / str(seed), end=1000 * US, every=100 * US)
        found = columns(tmp_path / str(seed))
        ends = dict(zip(found["ends/job"].tolist(), found["ends/end_ps"].tolist(), strict=True))
        starts = zip(found["starts/job"].tolist(), found["starts/start_ps"].tolist(), strict=True)
        for number, start in starts:
            if number not in ends:
                continue
            mine = found["caps/job"] == number
            heard = (found["caps/time_ps"][mine] + LAUNCH).tolist()
            told = [*zip(heard, found["caps/cap_w"][mine].tolist(), strict=True)]
            told_in_all += [word for when, word in told if when < ends[number]]
            of, job = model.draws[number], jobs[number]
            wanted = naive_end(start, job.iterations, job.compute_ps, told, (of[1], of[2], of[4]))
            assert ends[number] == wanted, (seed, number, told)
    words = np.array(told_in_all)
    assert (words > 0).sum() > 60
    assert (words < 0).sum() > 6
    assert np.isnan(words).sum() > 6


def test_communication_does_not_stretch_and_what_stops_is_not_counted_as_computing() -> None:
    """In the middle suspended, tasks have computed as long as they have to."""
    jobs = (Job(12, "halo3d", 600, iterations=8, compute_ps=5 * US),)
    signal = [["0 s", 1.0], ["30 us", -1.0], ["60 us", 1.0]]
    ran = go(following(*jobs, bid_w=(9_000.0, 2_500.0), signal=signal))
    state = ran.state
    free = go(following(*jobs, bid_w=(20_000.0, 0.0)))
    assert ran.jobs[0].cap_stretch == 1.0
    assert state.spent[0, 0] == free.state.spent[0, 0] == 8 * 24 * 5 * US
    stopped = ran.jobs[0].run_time_ps - free.jobs[0].run_time_ps  # type: ignore[operator]
    assert 25 * US <= stopped <= 40 * US
    # stopped time is nobody's: not computing, and of waiting only what the network is to blame for
    assert int(state.spent.sum()) <= int(free.state.spent.sum()) + 24 * 10 * US


# -- a job that is suspended


def test_a_node_whose_tasks_are_all_stopped_draws_idle_power(tmp_path: Path) -> None:
    job = Job(10, "broadcast", 8, compute_ps=100 * US, iterations=2)
    signal = [["0 s", 1.0], ["20 us", -1.0], ["70 us", 1.0]]
    recorded(following(job, bid_w=(8_500.0, 1_200.0), signal=signal), tmp_path)
    found = columns(tmp_path)
    words = found["caps/cap_w"]
    assert words[0] == -1.0
    assert np.isnan(words[1])
    halted, goes = (found["caps/time_ps"][:2] + LAUNCH).tolist()
    assert (halted, goes) == (20 * US + 2 * LAUNCH, 70 * US + 2 * LAUNCH)
    watts, until = found["tracking/power_w"], found["tracking/time_ps"] - LAUNCH
    inside = (until - INTERVAL >= halted) & (until <= goes)
    assert inside.sum() > 5
    np.testing.assert_allclose(watts[inside], SMALL.n_nodes * IDLE, rtol=1e-12)


def test_a_resumed_job_ends_later_by_as_long_as_it_was_stopped() -> None:
    job = Job(10, "permutation", 8, compute_ps=100 * US, iterations=1)
    signal = [["0 s", 1.0], ["20 us", -1.0], ["70 us", 1.0]]
    stopped = go(following(job, bid_w=(8_500.0, 1_200.0), signal=signal)).jobs[0]
    never = go(following(job, bid_w=(8_500.0, 1_200.0), signal=1.0)).jobs[0]
    assert stopped.run_time_ps - never.run_time_ps == 50 * US  # type: ignore[operator]
    assert stopped.energy_j == pytest.approx(never.energy_j + 10 * IDLE * 50e-6, rel=1e-9)  # type: ignore[operator]


# -- what the scheduler expects


def test_a_job_that_goes_on_for_longer_than_expected_has_no_work_left_and_runs_on() -> None:
    job = Job(10, "broadcast", 8, compute_ps=60 * US, iterations=2, requested_ps=10 * US)
    ran = go(following(job), 100 * US)
    marks = ran.state.progress[0]
    kind = ran.state.kinds[0]
    assert marks[f.FINISH] == kind[f.CLOCK]
    assert ran.state.tallies[0, f.RUNNING] == 1
    done = go(following(job))
    assert done.jobs[0].end_ps is not None
    assert done.state.floor[f.FREE] == SMALL.n_nodes - 10  # nobody decides after the last end


# -- beside the job model


def jobs_beside(compute: float = 1.0) -> tuple[Job, ...]:
    """Twelve jobs, most of their time computing; sizes, lengths and types by turns."""
    return tuple(
        Job(nodes, "permutation", 8, iterations=4, application=name,
            compute_ps=round(length * US * compute / 4), arrival_ps=arrival * US,
            requested_ps=length * US)
        for nodes, length, name, arrival in (
            (20, 5_300, "a", 0), (10, 9_100, "b", 0), (12, 3_700, "c", 100), (8, 12_300, "a", 450),
            (25, 4_100, "b", 1_250), (6, 7_900, "c", 2_350), (16, 6_700, "a", 3_450),
            (9, 8_300, "b", 4_650), (30, 2_900, "c", 5_350), (4, 15_100, "a", 6_150),
            (14, 5_500, "b", 8_350), (18, 4_700, "c", 9_450),
        )
    )  # fmt: skip


BESIDE_SIGNAL = [[f"{2500 * n} us", (0.4, -0.9, 1.0, -0.3, 0.8, -1.0)[n % 6]] for n in range(16)]
LONG = 500 * US


def in_packets(tmp_path: Path, **given: Any) -> tuple[Any, Any, Any]:
    """Starts and ends by job in us, and the power of each interval."""
    model = following(
        *jobs_beside(), power={"types": TYPES, "interval_ps": LONG, "communicating_w": None},
        market={"hour_ps": 10_000 * US}, signal=BESIDE_SIGNAL, tasks_per_node=1, **given,
    )  # fmt: skip
    recorded(model, tmp_path, every=LONG)
    found = columns(tmp_path)
    start, end = np.zeros(12), np.zeros(12)
    start[found["starts/job"]] = found["starts/start_ps"] / US
    end[found["ends/job"]] = found["ends/end_ps"] / US
    return start, end, found["tracking/power_w"]


def in_the_job_model(policy_parameters: Any = (("preemption", True),)) -> tuple[Any, Any, Any]:
    jobs = jobs_beside()
    names = ("a", "b", "c")
    none = np.zeros(len(jobs), np.int64)
    length = np.array([job.requested_ps // US for job in jobs])  # type: ignore[operator]
    trace = Trace(
        "beside", np.arange(len(jobs)), np.array([job.arrival_ps // US for job in jobs]), length,
        np.array([job.nodes for job in jobs]), length, none, none,
        np.array([names.index(job.application) for job in jobs]), none + UNKNOWN,
        applications=names,
    )  # fmt: skip
    power = Power("tracking-only", policy_parameters, types=Types.of(TYPES), interval_ps=LONG)
    market = MarketSettings(
        "fixed", (("average", 12_500.0), ("reserve", 4_500.0)), BESIDE_SIGNAL,
        hour_ps=10_000 * US,
    )  # fmt: skip
    model = Cluster(trace, SMALL.n_nodes, "fcfs", power=power, market=market, overrun="extend")
    rows: list[Any] = []

    def take(time: int, agent: int, logs: Any) -> None:
        rows.extend(values.columns for name, values in logs if name == "tracking")

    result = run(model, None, log=take, transport=Serial(), show_compiling=False)
    watts = np.concatenate([column[1] for column in rows])
    return result.outcome["start_us"], result.outcome["end_us"], watts


@pytest.mark.parametrize("launch_us", [1, 10])
def test_the_same_jobs_do_in_packets_what_they_do_in_the_job_model(
    launch_us: int, tmp_path: Path
) -> None:
    """Jobs start two launches later: a measurement is known one launch late, and a command takes
    another. What communication takes and draws comes on top."""
    start, end, watts = in_packets(tmp_path, launch_ps=launch_us * US)
    begun, over, drawn = in_the_job_model()
    assert np.argsort(start, kind="stable").tolist() == np.argsort(begun, kind="stable").tolist()
    later = start - begun
    at_zero = begun == 0
    assert (later[at_zero] == launch_us).all()
    assert (later[~at_zero] == 2 * launch_us).all()
    longer = (end - start) - (over - begun)
    assert np.abs(longer).max() <= 2 * launch_us + 4, longer
    count = min(len(watts), len(drawn))
    swing = SMALL.n_nodes * (310.0 - IDLE)
    band = swing * (2 * launch_us + 8) / (LONG / US)
    assert np.abs(watts[:count] - drawn[:count]).max() <= band


# -- other policies


class Halves(PowerPolicy):
    """Shares what the target leaves after idle nodes among the nodes of jobs."""

    def caps(self, view: Any) -> Caps:
        assert view.target is not None
        assert view.target.average_w == 12_500.0
        left = view.target.average_w + view.target.signal * view.target.reserve_w
        each = (left - view.free * view.idle_w) / max(1, view.busy)
        return Caps({job.run.request.number: max(0.0, each) for job in view.running})


def test_a_policy_that_is_asked_for_caps_sees_the_target(tmp_path: Path) -> None:
    power("halves", about="shares the target", source="a test")(Halves)
    try:
        model = following(policy="halves", policy_parameters=())
        recorded(model, tmp_path)
    finally:
        del POWERS["halves"]
    found = columns(tmp_path)
    assert len({*found["caps/cap_w"].round(6).tolist()}) > 5
    assert len(found["tracking/power_w"]) > 20


@pytest.mark.long
@pytest.mark.parametrize("policy", ["qosg", "energy-qare", "aqa"])
def test_other_policies_that_regulate_start_all_jobs(policy: str) -> None:
    types = [dict(row, q_threshold=2.0, time_min_s=1e-4) for row in TYPES]
    market = {"bidding_parameters": (("average", 12_500.0), ("reserve", 4_500.0),
                                     ("weights", "a=0.5 b=0.3 any=0.2"))}  # fmt: skip
    model = following(policy=policy, policy_parameters=(), power={"types": types}, market=market)
    ran = go(model)
    assert all(job.end_ps is not None for job in ran.jobs)
    assert ran.state.kinds[:, f.WEIGHT].tolist() == [0.5, 0.3, 0.2]


# -- what is refused


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"market": {"standby": "a"}}, "only a run with fidelity"),
        ({"launch_ps": INTERVAL}, "less than power.interval"),
        ({"market": {"hour_ps": 41 * US}}, "a whole number of power.interval"),
        ({"power": {"interval_ps": 1_500_000}}, "a whole number of microseconds"),
        ({"power": {"cap": "20 kW"}}, "keeps to no cap"),
        ({"power": {"variation": 0.2}}, "takes all nodes for alike"),
        ({"power": {"least_w": 90.0}}, "at least idle"),
        ({"order": "easy"}, "starts jobs itself"),
        ({"market": {"bidding": "energy-qare", "bidding_parameters": ()}}, "it tries bids"),
        ({"market": {"bidding_parameters": (("weights", "z=1"),)}}, "is no type of this run"),
        ({"market": {"energy_price": [["0 s", 1.0], ["2500 ns", 2.0]]}}, "whole number of micro"),
        ({"power": {"types": TYPES[:1]}}, "no type"),
        ({"power": {"types": [dict(TYPES[2], q_threshold=3)]}}, "how long they take"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(given: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        following(**given).exchange  # noqa: B018 which may be refused only then


def test_a_policy_that_follows_needs_a_market_and_places_jobs_itself() -> None:
    with pytest.raises(Refused, match=r"a section \[market\] is needed"):
        replace(following(), market=None)
    with pytest.raises(Refused, match="leave it out"):
        following(replace(JOBS[0], nodes=2, on=(3, 4)))


def test_a_bidder_that_tries_an_hour_after_all_is_named() -> None:
    @bidding("tries", about="tries", source="a test")
    class Tries(BiddingPolicy):
        def bid(self, market: Any) -> Bid:
            market.trial(Bid(1.0, 1.0))
            return Bid(1.0, 1.0)

    try:
        with pytest.raises(Fault, match='tries a bid, which only a run with fidelity = "job"'):
            go(following(market={"bidding": "tries", "bidding_parameters": ()}))
    finally:
        del BIDDINGS["tries"]
