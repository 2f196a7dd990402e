"""The job model on as many ranks as these tests are run on: the same microseconds as on one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clusters import trace_of
from random_traces import VARIANTS, random_trace

from odonata.cluster.model import Cluster
from odonata.jobs.market import MarketSettings
from odonata.jobs.power import Power
from odonata.traces.mix import MIXES, mix
from odonata.traces.types import Types
from pdes.driver import run
from pdes.transport import Serial, world
from policies.bidding import Bid, BiddingPolicy, Market, bidding
from topology import Dragonfly

pytestmark = pytest.mark.mpi(min_size=2)


@bidding("cautious-here", about="a test's", source="ours")
class Cautious(BiddingPolicy):
    """Offers half of what it tries, where that can be followed."""

    def bid(self, market: Market) -> Bid:
        busy = sum(job.configuration.nodes for job in market.running)
        tried = Bid(market.nodes * market.idle_w + busy * 100.0, busy * 50.0)
        assert market.trial is not None
        part = 0.5 if market.trial(tried).bad(0.3) > 0.1 else 1.0
        return tried._replace(reserve_w=part * tried.reserve_w)


MACHINE = Dragonfly(2, 4, 2, 9)


@pytest.mark.parametrize("protocol", ["window", "null"])
@pytest.mark.parametrize("placed", [False, True])
def test_every_discipline_is_the_same_on_these_ranks(protocol: str, placed: bool) -> None:
    every = 1 if world().size == 2 else 4  # the other ranks have nothing to do, one or many
    for number, (discipline, parameters) in [*enumerate(VARIANTS)][::every]:
        jobs, nodes = random_trace(number)
        given = tuple((name, float(value) if name == "half_life" else value)
                      for name, value in parameters.items())  # fmt: skip
        where: dict[str, Any] = {"machine": MACHINE, "allocation": "rdn"} if placed else {}
        model = Cluster(trace_of(jobs), nodes, discipline, given, **where)
        together = run(model, None, protocol=protocol, show_compiling=False)
        alone = run(model, None, transport=Serial(), show_compiling=False)
        assert together.ranks == world().size
        assert (together.digest, together.time, together.events) == (
            alone.digest, alone.time, alone.events)  # fmt: skip
        for name, values in alone.outcome.items():
            assert (together.outcome[name] == values).all()


@pytest.mark.parametrize("policy", ["idle-sleep", "uniform", "naive", "dynamic-learner"])
@pytest.mark.parametrize("placed", [False, True])
def test_watts_are_the_same_on_these_ranks(policy: str, placed: bool) -> None:
    discipline = "wfp" if policy == "dynamic-learner" else "lcfs-pr"
    power = Power(
        policy, (("sleep_after_s", 6e-6),), demand="constant", idle_w=100.0, interval_ps=10**7,
        cap=(("0 s", "2500 W"), ("9 us", "1800 W"), ("40 us", "3 kW")), wake_ps=3 * 10**6,
        wake_j=1e-3, variation=0.2 if placed else 0.0,
    )  # fmt: skip
    where: dict[str, Any] = {"machine": MACHINE, "allocation": "rdn"} if placed else {}
    for seed in (1, 2):
        jobs, nodes = random_trace(seed)
        model = Cluster(trace_of(jobs), nodes, discipline, power=power, **where)
        together = run(model, None, show_compiling=False)
        alone = run(model, None, transport=Serial(), show_compiling=False)
        assert (together.digest, together.time) == (alone.digest, alone.time)
        for name, values in alone.outcome.items():
            assert (together.outcome[name] == values).all(), name


def test_bids_are_the_same_on_these_ranks_and_after_a_restart(tmp_path: Path) -> None:
    jobs, nodes = random_trace(2)
    supply = Power("uniform", cap="3 kW", idle_w=100.0, interval_ps=10**7, demand="constant")
    market = MarketSettings("cautious-here", signal=(("0 s", 0.5), ("40 us", -0.5)),
                            hour_ps=2 * 10**7)  # fmt: skip
    model = Cluster(trace_of(jobs), nodes, "easy", power=supply, market=market)
    together = run(model, None, show_compiling=False)
    assert together.digest == run(model, None, transport=Serial(), show_compiling=False).digest
    saved, last = Path(world().everyone(str(tmp_path))[0]), jobs[-1].submit
    run(model, last, checkpoint_dir=saved, checkpoint_every=max(1, last // 2), show_compiling=False)
    assert run(model, None, resume=saved, show_compiling=False).digest == together.digest


def test_a_checkpoint_of_these_ranks_goes_on_to_the_same_end(tmp_path: Path) -> None:
    jobs, nodes = random_trace(3)
    model, saved = Cluster(trace_of(jobs), nodes, "easy"), tmp_path
    saved = Path(world().everyone(str(saved))[0])
    last = jobs[-1].submit
    half = run(model, last, checkpoint_dir=saved, checkpoint_every=max(1, last // 2),
               show_compiling=False)  # fmt: skip
    rest = run(model, None, resume=saved, show_compiling=False)
    assert half.completed
    assert rest.digest == run(model, None, show_compiling=False).digest


@pytest.mark.parametrize("rule", ["easy", "conservative"])
def test_starts_that_wait_for_a_cheaper_hour_are_the_same_on_these_ranks(
    rule: str, tmp_path: Path
) -> None:
    jobs, nodes = random_trace(4)
    price = tuple((f"{time} us", (5.0, 2.0, 9.0, 1.0, 4.0)[time % 5]) for time in range(0, 80, 3))
    cap = (("0 us", "none"), ("20 us", f"{nodes * 100 + nodes // 2 * 190} W"), ("30 us", "none"))
    supply = Power(price=price, cap=cap, demand="constant")
    given = (("rule", rule), ("bound", 25 / 3.6e9), ("part", 0.0), ("drain", True))
    model = Cluster(trace_of(jobs), nodes, "price-aware", given, power=supply)
    together = run(model, None, show_compiling=False)
    alone = run(model, None, transport=Serial(), show_compiling=False)
    assert (together.digest, together.events) == (alone.digest, alone.events)
    for name, values in alone.outcome.items():
        assert (together.outcome[name] == values).all(), name
    saved = Path(world().everyone(str(tmp_path))[0])
    run(model, 12, checkpoint_dir=saved, checkpoint_every=11, show_compiling=False)
    assert run(model, None, resume=saved, show_compiling=False).digest == together.digest


@pytest.mark.parametrize("policy", ["tracking-only", "energy-qare", "qosg", "aqa"])
@pytest.mark.parametrize("protocol", ["window", "null"])
def test_a_regulated_machine_is_the_same_on_these_ranks(policy: str, protocol: str) -> None:
    trace = mix(Types.of("aqa"), MIXES["W5"].types, 36, span_s=1200.0)
    end = 1200 * 10**6
    given: tuple[tuple[str, Any], ...] = (("preemption", True),)
    given += (("gaps", True), ("gain", 1.5)) if policy == "aqa" else ()
    power = Power(policy, given, types="aqa", interval_ps=10**12)
    excludes = {"exclude_after": 1, "exclude_for_ps": 500 * 10**12} if policy == "aqa" else {}
    market = MarketSettings("tracking-only", signal="synthetic", standby="bt.C.16",
                            hour_ps=400 * 10**12, **excludes)  # fmt: skip
    model = Cluster(trace, 36, power=power, market=market, until_us=end)
    together = run(model, end, protocol=protocol, show_compiling=False)
    alone = run(model, end, transport=Serial(), show_compiling=False)
    assert together.ranks == world().size
    assert (together.digest, together.events) == (alone.digest, alone.events)
    for name, values in alone.outcome.items():
        assert (together.outcome[name] == values).all()
