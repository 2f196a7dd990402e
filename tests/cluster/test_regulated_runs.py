"""Runs of a machine that is regulated by type: whole hours, restarts within them, what is kept of
energy and of jobs, and what is refused before anything runs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markets import logs_of
from test_regulation_twin import ours
from test_tried_hours import HOUR, model_of

from odonata.cluster import audit
from odonata.cluster.simulation import simulate
from odonata.experiment.reading import parse
from odonata.results.market_memory import simulate_market
from pdes.driver import run
from pdes.errors import Fault, Refused
from pdes.transport import Serial
from policies.bidding import Bid
from policies.power import floor as f

MINUTE = 60 * 10**6
GIVEN = {"bidding_parameters": (("average", 8434.0), ("reserve", 3435.0))}


def logged(model: Any, end: int = HOUR, **how: Any) -> tuple[dict[str, Any], Any]:
    return logs_of(model, lambda it, _end, **more: run(it, end, **more | how))


def halted_in_the_end(caps: Any) -> set[int]:
    """Returns the jobs that a log of caps leaves suspended: those that ended went on before."""
    halted: set[int] = set()
    for _, (job, cap_w) in caps:
        if cap_w < 0.0:
            halted.add(job)
        elif math.isnan(cap_w):
            halted.remove(job)
    return halted


@pytest.mark.parametrize("policy", ["tracking-only", "energy-qare", "aqa"])
@pytest.mark.parametrize("preemption", [False, True])
def test_energy_and_jobs_are_all_accounted_for(policy: str, preemption: bool) -> None:
    model = model_of(policy, standby="bt.C.16", given=(("preemption", preemption),), **GIVEN)
    logs, result = ours(model)
    out = result.outcome
    tracking = np.array([row for _, row in logs["tracking"]])
    assert len(tracking) == 3600
    total = out["machine_j"].sum() + out["standby_j"].sum()
    assert total == pytest.approx(tracking[:, 1].sum(), rel=1e-9)
    assert out["standby_j"].sum() == pytest.approx(tracking[:, 2].sum(), rel=1e-9)
    assert out["energy_j"].sum() == pytest.approx(out["machine_j"][2], rel=1e-12)
    over, begun = out["end_us"] >= 0, out["start_us"] >= 0
    assert [time for time, _ in logs["starts"]] == sorted(out["start_us"][begun])
    assert [time for time, _ in logs["ends"]] == sorted(out["end_us"][over])
    halted = halted_in_the_end(logs.get("caps", ()))
    assert halted <= set(np.flatnonzero(begun & ~over))
    running = (begun & ~over).sum() - len(halted)
    waiting = ((model.trace.submit_us <= HOUR) & ~begun).sum()
    assert over.sum() + running + waiting + len(halted) == len(model.trace)
    assert model.trace.nodes[begun & ~over].sum() <= model.nodes
    assert (out["start_us"][begun] >= model.trace.submit_us[begun]).all()
    took = out["end_us"][over] - out["start_us"][over]
    assert (took >= model.trace.run_us[over]).all()
    assert (out["start_us"][begun] % 10**6 == 0).all()


@pytest.mark.parametrize(
    ("word", "wrong", "told"),
    [(f.HALTED, 1, "a suspended job is not counted"), (f.WAITING, -1, "who waits was lost"),
     (f.NODES, 2, "a node was lost"), (f.HALTED_NODES, 2, "a node was lost")],
)  # fmt: skip
def test_a_job_that_is_lost_is_told(word: int, wrong: int, told: str) -> None:
    model = model_of("tracking-only", given=(("preemption", True),), **GIVEN)
    state = model.state(0, 1)
    audit.check(state, model.nodes)
    state.tallies[0, word] += wrong
    with pytest.raises(AssertionError, match=told):
        audit.check(state, model.nodes)


def test_a_machine_that_has_drained_has_all_energy_in_its_jobs() -> None:
    model = replace(model_of("qosg", load=0.3, given=(("preemption", True),), **GIVEN),
                    until_us=None)  # fmt: skip
    logs, result = logs_of(model)
    out = result.outcome
    assert (out["end_us"] >= 0).all()
    assert not halted_in_the_end(logs.get("caps", ()))
    assert len(logs["ends"]) == len(model.trace)
    assert out["energy_j"] == pytest.approx([row[2] for _, row in by_job(logs["ends"])], rel=1e-9)
    seconds = np.diff([0, *(time for time, _ in logs["tracking"])]) * 1e-6
    drawn = sum(row[1] * its for (_, row), its in zip(logs["tracking"], seconds, strict=True))
    rest = (result.time - logs["tracking"][-1][0]) * 1e-6  # an interval that was not over
    assert 0.0 <= rest < 1.0
    assert out["machine_j"].sum() == pytest.approx(drawn, abs=rest * 36 * 290.0 + 1e-6)


def by_job(ends: Any) -> Any:
    return sorted(ends, key=lambda row: row[1][0])


@pytest.mark.parametrize("policy", ["tracking-only", "energy-qare", "aqa"])
def test_a_restart_within_an_hour_changes_nothing(policy: str, tmp_path: Path) -> None:
    def model() -> Any:
        return model_of(policy, standby="bt.C.16", given=(("preemption", True),),
                        hour_ps=600 * 10**12, **GIVEN)  # fmt: skip

    whole = run(model(), HOUR, show_compiling=False, transport=Serial())
    run(model(), HOUR, show_compiling=False, transport=Serial(), checkpoint_dir=tmp_path,
        checkpoint_every=1_234_567_891)  # fmt: skip
    made = sorted(tmp_path.iterdir())
    resumed = run(model(), HOUR, show_compiling=False, transport=Serial(), resume=tmp_path)
    assert made
    assert resumed.resumed
    assert resumed.resumed % (10 * MINUTE)
    assert resumed.digest == whole.digest
    for name, found in whole.outcome.items():
        assert np.array_equal(found, resumed.outcome[name]), name


def test_a_job_takes_a_microsecond_at_least(tmp_path: Path) -> None:
    """One that ends at once, in its trace, too: its degradation is not below 0."""
    rows = [f"{at} {7 * at} -1 {at % 3} 2 -1 -1 2 9 -1 1 1 1 1 1 1 -1 -1" for at in range(1, 30)]
    (tmp_path / "few.swf").write_text("; MaxNodes: 8\n" + "\n".join(rows) + "\n")
    text = EXPERIMENT.replace('model = "mix"\nmix = "W4"\nspan = "10 min"\nnodes = 36',
                              f'file = "{tmp_path / "few.swf"}"')  # fmt: skip
    row = '{type = "a", by = "any", power_max_w = 300, power_min_w = 150, slowdown = 1.5}'
    text = text.replace('interval = "1 s"', f'interval = "1 s"\ntypes = [{row}]')
    model = parse(text.replace("= 8434, reserve = 3435", "= 2000, reserve = 9"), "few").model()
    assert sorted({*model.trace.run_us.tolist()}) == [1, 10**6, 2 * 10**6]
    schedule, *_, market = simulate_market(model, 600 * 10**6, transport=Serial())
    assert market is not None
    assert market.quality is not None
    assert (schedule.end_us - schedule.start_us).min() == 1
    assert (market.quality >= 0).all()


def test_a_machine_goes_on_for_its_hours_when_no_job_is_left() -> None:
    model = model_of("tracking-only", load=0.05, standby="bt.C.16", **GIVEN)
    logs, result = ours(model)
    assert len(logs["tracking"]) == 3600
    assert result.outcome["standby_jobs"][0] > 0


def test_without_an_end_it_runs_until_the_last_job_is_over() -> None:
    model = replace(model_of("tracking-only", **GIVEN), until_us=None)
    _, result = logs_of(model)
    assert (result.outcome["end_us"] >= 0).all()
    assert result.time - 1 <= result.outcome["end_us"].max() <= result.time


def test_a_run_whose_target_feeds_nobody_comes_to_an_end() -> None:
    given = (("average", 100.0), ("reserve", 50.0))
    model = model_of("tracking-only", standby="bt.C.16", bidding_parameters=given)
    with pytest.raises(Fault, match="tracking-only: it has left 980 of 980 jobs waiting"):
        simulate(replace(model, until_us=None))


EXPERIMENT = """
fidelity = "job"
[trace]
model = "mix"
mix = "W4"
span = "10 min"
nodes = 36
[power]
policy = "tracking-only"
interval = "1 s"
[market]
bidding = { name = "fixed", average = 8434, reserve = 3435 }
signal = "synthetic"
[run]
duration = "10 min"
"""


def built(changes: dict[str, str]) -> Any:
    text = EXPERIMENT
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return parse(text, "regulated").model()


def test_the_experiment_of_these_tests_is_fine() -> None:
    assert built({}).regulates is not None


def test_an_experiment_says_that_nobody_is_killed_and_is_read_back() -> None:
    made = parse(EXPERIMENT, "regulated")
    assert made.trace.overrun == "extend"  # type: ignore[union-attr]
    assert parse(made.to_toml(), "again") == made


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reserve = 3435": "reserve = 9000"}, "reserve = 9000: at most average, 8,?434"),
        ({"average = 8434": "average = -1"}, "average"),
        ({'signal = "synthetic"': "signal = 7"}, "signal"),
        ({'signal = "synthetic"': 'signal = "x"'}, "signal"),
        ({'signal = "synthetic"': "signal = [[0, 0.5], [0, 0.2]]"}, "signal"),
        ({'signal = "synthetic"': 'signal = "synthetic"\nreserve_price = -0.1'}, "reserve_price"),
        ({'signal = "synthetic"': 'signal = "synthetic"\nsignal_deviation = 2'}, "deviation"),
        ({'signal = "synthetic"': 'signal = "synthetic"\nhour = "1500 ms"'}, "whole number of"),
        ({'signal = "synthetic"': 'signal = "synthetic"\nstandby = "nope"'},
         'market.standby = "nope": no type of aqa, which has bt.C.16, bt.C.25,'),
        ({'signal = "synthetic"': 'signal = "synthetic"\nstandby = "wide"', 'mix = "W4"':
          'mix = ["a"]', 'interval = "1 s"': 'interval = "1 s"\ntypes = ['
          '{type = "a", time_min_s = 9, slowdown = 1, power_max_w = 200, power_min_w = 150, '
          'nodes = 1}, {type = "wide", time_min_s = 9, slowdown = 1, power_max_w = 200, '
          'power_min_w = 150, nodes = 37}]'},
         'market.standby = "wide": a standby job needs 37 nodes, and the machine has 36: none'),
        ({'policy = "tracking-only"': 'policy = "uniform"',
          'bidding = { name = "fixed", average = 8434, reserve = 3435 }': 'bidding = "qosg"'},
         "it goes by types of jobs: set power.types"),
        ({"reserve = 3435": 'reserve = 3435, weights = "mg.D.16=1 nope=2 bt.C.16=1"'},
         "fixed.: it gives weights to nope, bt.C.16, which are no types of this run: it has "
         "mg.D.16, is.D.32, ep.D.64, lu.D.224, cg.C.4, lu.C.28, is.D.64, mg.D.32$"),
        ({"nodes = 36": "nodes = 4"}, "lu.D.224"),
        ({'mix = "W4"': 'mix = "W4711"'}, "W4711"),
        ({'interval = "1 s"': 'interval = "1 s"\ntypes = "qosg"'}, "type"),
        ({'interval = "1 s"': 'interval = "1 s"\ncap = "9 kW"'}, "keeps to no cap"),
        ({'interval = "1 s"': 'interval = "1 s"\nidle = "300 W"'}, "idle"),
        ({'mix = "W4"': 'mix = ["a"]', 'interval = "1 s"': 'interval = "1 s"\ntypes = '
          '[{type = "idle", by = "idle", power_max_w = 160}, {type = "a", time_min_s = 9, '
          'slowdown = 2, power_max_w = 200, power_min_w = 150, nodes = 1}]'},
         "^regulated: power.idle = 160 W: at most 150 W, which a node of type a draws under the "
         "lowest cap$"),
        ({'interval = "1 s"': 'interval = "1 s"\nsleep = "10 W"'}, "tracking-only.*no node sleeps"),
        ({'interval = "1 s"': 'interval = "1 s"\nwake_time = "9 s"'}, "leave out power.sleep, "),
        ({"nodes = 36": 'nodes = 36\noverrun = "kill"'},
         'trace.overrun = "kill": a policy that regulates jobs by type kills none: leave it out'),
        ({'interval = "1 s"':
          'interval = "1 s"\ntypes = [{type = "a", time_min_s = 9, time_max_s = 8, '
          "power_max_w = 200, power_min_w = 150, nodes = 1}]"}, "time_max_s"),
        ({"[run]": '[scheduler]\norder = "easy"\n[run]'}, "starts jobs itself"),
        ({"[run]": '[machine]\npreset = "kim-72"\n[run]'}, "only counted"),
        ({'model = "mix"\nmix = "W4"\nspan = "10 min"': 'model = "poisson"\njobs = 9'},
         "power.types"),
        ({EXPERIMENT[EXPERIMENT.index("[market]") : EXPERIMENT.index("[run]")]: ""},
         r"a section \[market\] is needed"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_runs(
    changes: dict[str, str], words: str
) -> None:
    with pytest.raises(Refused, match=words) as refused:
        built(changes)
    assert len(str(refused.value)) < 900


def test_weights_of_types_that_there_are_not_are_told_when_they_are_bid() -> None:
    """Nobody knows the weights of this policy before it bids."""
    model = model_of("qosg", **GIVEN)
    assert model.trading is not None
    state = model.state(0, 1)
    model.trading.offer(state, 0, Bid(9000.0, 500.0, {"mg.D.16": 1.0}))
    with pytest.raises(Fault, match=r"fixed: it gives weights to ft, which is no type of this run"):
        model.trading.offer(state, 0, Bid(9000.0, 500.0, {"mg.D.16": 1.0, "ft": 0.1}))


def test_a_target_out_of_reach_is_followed_as_far_as_it_can_be() -> None:
    """Below what idle nodes draw nothing runs; above what all can draw all run without caps."""
    for average, watts in ((100.0, 36 * 169.0), (40_000.0, None)):
        model = model_of("tracking-only", standby="bt.C.16",
                         bidding_parameters=(("average", average), ("reserve", 50.0)))  # fmt: skip
        logs, _ = ours(model)
        power = np.array([row[1] for _, row in logs["tracking"]])
        if watts is None:
            assert power[60:].min() > 36 * 200
        else:
            assert power == pytest.approx(np.full(3600, watts))


def test_the_json_of_a_run_is_the_same_without_the_compiler(odonata: Any, tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    text = EXPERIMENT.replace("10 min", "3 min").replace("tracking-only", "energy-qare")
    file.write_text(text.replace("[run]", 'standby = "bt.C.16"\n[run]'))
    digests = [
        json.loads(odonata("run", str(file), "-o", str(tmp_path / jit), "--json",
                           ODONATA_JIT=jit).stdout)["digest"] for jit in "01"
    ]  # fmt: skip
    assert digests[0] == digests[1]
