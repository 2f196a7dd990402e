"""The machine that is regulated by type against a second simulator, written from the documentation
alone: second by second, and job by job."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from markets import logs_of
from qoscap_naive import QosCap, QosCapMachine
from regulation_naive import Found, Setting, simulate
from regulation_random import random_setting, with_options

from odonata.cluster.model import Cluster
from odonata.jobs.market import MarketSettings
from odonata.jobs.power import Power
from odonata.traces.trace import Trace
from pdes.driver import run
from policies.bidding import BIDDINGS, Bid, BiddingPolicy, bidding

BIDS: list[Bid] = []
OPTIONS = ("weighted", "sharing", "parts", "capping", "planned", "gaps", "gain")
COUNT, QUICK, FEW = 200, 80, 30
"""How many machines are simulated, and how many of them at once, the last number under `qoscap`;
the rest, and three times as many more, in `make test-long`. `qosg` has the rule of `aqa`, which is
tried on others."""


class Listed(BiddingPolicy):
    """Bids what is listed, hour by hour."""

    def bid(self, market: Any) -> Bid:
        return BIDS[market.time // market.hour]


@pytest.fixture(autouse=True)
def listed() -> Any:
    bidding("listed", about="a test's", source="ours")(Listed)
    yield
    del BIDDINGS["listed"]


def possible(seed: int) -> Setting:
    """Returns the machine of this seed, or of the next by far where it has no job, on which no node
    of a job draws less than an idle one: both would be refused."""
    while not (setting := random_setting(seed)).jobs:
        seed += 10**6
    idle = setting.idle_w
    types = [it._replace(most_w=max(it.most_w, idle), least_w=max(it.least_w, idle))
             for it in setting.types]  # fmt: skip
    return setting._replace(types=types)


def model_of(setting: Setting) -> Cluster:
    names = [it.name for it in setting.types]
    columns = np.array(setting.jobs).T
    none = np.zeros(len(setting.jobs), int)
    rates = {name: 1.0 for at, name in enumerate(names) if at != setting.standby}
    trace = Trace("random", np.arange(len(none)), *columns[:3], columns[1] * 10 + 1, none, none,
                  columns[3], none - 1, applications=tuple(names), rates=rates)  # fmt: skip
    rows = []
    for at, it in enumerate(setting.types):
        row = {"type": it.name, "power_max_w": it.most_w, "power_min_w": it.least_w,
               "slowdown": it.slowdown}  # fmt: skip
        if it.threshold < math.inf:
            row["q_threshold"] = it.threshold
        if at == setting.standby:
            row |= {"time_min_s": setting.standby_run_us / 1e6, "nodes": setting.standby_nodes}
        rows.append(row)
    market = MarketSettings(
        "listed", signal=tuple((f"{time} us", value) for time, value in setting.signal),
        hour_ps=setting.hour_us * 10**6,
        standby=None if setting.standby is None else names[setting.standby],
    )  # fmt: skip
    given: tuple[tuple[str, Any], ...] = (("preemption", setting.preemption),)
    if setting.policy == "qoscap":
        given = tuple(qoscap_options(setting)._asdict().items())
    given += (("limit", setting.limit),) * (setting.policy == "energy-qare")
    if setting.policy == "aqa":
        given += tuple((name, getattr(setting, name)) for name in OPTIONS)
    power = Power(setting.policy, given, interval_ps=setting.interval_us * 10**6, types=rows,
                  idle_w=setting.idle_w)  # fmt: skip
    BIDS[:] = [Bid(average, reserve, {name: weight for name, weight
                                      in zip(names, weights, strict=False) if name in rates})
               for average, reserve, weights in setting.bids]  # fmt: skip
    return Cluster(trace, setting.nodes, power=power, market=market, until_us=setting.end_us)


def ours(model: Cluster) -> tuple[dict[str, Any], Any]:
    assert model.until_us is not None
    logs, result = logs_of(model, lambda it, _end, **how: run(it, it.until_us, **how))
    return logs, result


def qoscap_options(setting: Setting) -> QosCap:
    """Returns the options of QoSCap on a machine: every second machine has caps that are raised by
    one ratio, and jobs start early by chance."""
    early = (0.9, 0.0, 0.3, 1.5)[len(setting.jobs) % 4]
    return QosCap(early, setting.nodes % 2 == 0)


def asked(seed: int, under: str) -> Setting:
    """Returns the machine of this seed; with the options of `aqa`, or under `qoscap`, if wanted."""
    setting = possible(seed)
    if under == "qoscap":
        return setting._replace(policy=under, preemption=False)
    return with_options(setting, seed) if under else setting


@cache
def simulated(seed: int, under: str = "") -> Found:
    """Returns what the second simulator finds, which takes it most of the time of these tests."""
    setting = asked(seed, under)
    machine = QosCapMachine(setting, qoscap_options(setting)) if under == "qoscap" else None
    return simulate(setting, machine)


def compare(seed: int, under: str = "") -> tuple[Found, Any]:
    """Raises AssertionError where the two differ."""
    model, theirs = model_of(asked(seed, under)), simulated(seed, under)
    logs, result = ours(model)
    out = result.outcome
    assert out["start_us"].tolist() == theirs.start_us
    assert out["end_us"].tolist() == theirs.end_us
    power = np.array([row for _, row in logs["tracking"]])
    assert power[:, 1] == pytest.approx(np.array(theirs.power_w), abs=1e-6)
    assert power[:, 0] == pytest.approx(np.array(theirs.target_w), abs=1e-6)
    assert power[:, 2] == pytest.approx(np.array(theirs.standby_w), abs=1e-6)
    assert out["energy_j"] == pytest.approx(np.array(theirs.energy_j), rel=1e-9, abs=1e-6)
    assert out["standby_jobs"].tolist() == [theirs.standby_started, theirs.standby_ended]
    total = out["machine_j"].sum() + out["standby_j"].sum()
    seconds = np.diff([0, *(time for time, _ in logs["tracking"])]) * 1e-6
    assert total == pytest.approx((power[:, 1] * seconds).sum(), rel=1e-9)
    assert out["standby_j"].sum() == pytest.approx(theirs.standby_j, rel=1e-9, abs=1e-6)
    return theirs, result


@pytest.mark.parametrize("seed", range(QUICK))
def test_it_is_what_the_documentation_says(seed: int) -> None:
    compare(seed)


@pytest.mark.parametrize("seed", range(COUNT // 4))
def test_aqa_is_what_the_documentation_says_with_every_option_on_and_off(seed: int) -> None:
    compare(seed, "aqa")


@pytest.mark.parametrize("seed", range(FEW))
def test_qoscap_is_what_the_documentation_says(seed: int) -> None:
    compare(seed, "qoscap")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(FEW, COUNT))
def test_qoscap_is_so_on_many_more_machines(seed: int) -> None:
    compare(seed, "qoscap")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(COUNT // 4, COUNT))
def test_aqa_is_so_on_many_more_machines(seed: int) -> None:
    compare(seed, "aqa")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(QUICK, 4 * COUNT))
def test_it_is_what_the_documentation_says_of_many_more(seed: int) -> None:
    compare(seed)


def test_what_is_compared_has_everything_in_it() -> None:
    """Suspensions, standby jobs, caps, starts for quality, all three policies."""
    seen = set[str]()
    for seed in range(QUICK):
        setting, found = possible(seed), simulated(seed)
        seen.add(setting.policy)
        seen |= {"suspended"} if any(found.suspended_s) else set()
        seen |= {"standby"} if found.standby_started else set()
        seen |= {"capped"} if any(ratio is not None for _, ratio in found.caps) else set()
        seen |= {"left waiting"} if -1 in found.start_us else set()
    assert seen >= {"tracking-only", "energy-qare", "qosg", "suspended", "standby", "capped",
                    "left waiting"}  # fmt: skip


@pytest.mark.parametrize("option", [*OPTIONS, "preemption"])
def test_every_option_of_aqa_changes_something(option: str) -> None:
    def tracked(setting: Setting) -> Any:
        return [*ours(model_of(setting))[0]["tracking"]]

    for seed in range(COUNT):
        setting = asked(seed, "aqa")
        value = getattr(setting, option)
        other = setting._replace(**{option: 2.0 if value == 0.0 else 0.0} if option == "gain" else
                                 {option: not value})  # fmt: skip
        if any(a != b for a, b in zip(tracked(setting), tracked(other), strict=True)):
            return
    pytest.fail(f"{option} changes nothing")
