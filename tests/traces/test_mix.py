"""Mixes: which types they have, when their jobs arrive, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from odonata.traces.mix import MIXES, mix, per_second
from odonata.traces.source import Source
from odonata.traces.types import Types
from pdes.errors import Refused

AQA, QOSG = Types.of("aqa"), Types.of("qosg")
PS = 10**12
W = {name: [AQA[AQA.place(each)] for each in it.types] for name, it in MIXES.items()
     if it.table == "aqa"}  # fmt: skip


# -- the mixes of the papers


def test_mixes_have_as_many_types_as_is_stated() -> None:
    counts = {name: len(types) for name, types in W.items()}
    assert counts.pop("W6") == 2
    assert counts.pop("W7") == 16
    assert counts.pop("W14") == 3
    assert [*counts] == [f"W{n}" for n in (*range(1, 6), *range(8, 14))]
    assert {*counts.values()} == {8}
    assert all(len({*it.types}) == len(it.types) for it in MIXES.values())


def test_the_types_of_a_mix_keep_its_rule() -> None:
    assert {it.nodes for it in W["W2"]} == {1}
    assert all(4 <= (it.nodes or 0) <= 8 for it in W["W3"])
    assert all((it.shortest_s or 1e9) <= 120 for it in W["W4"])
    assert all(122 <= (it.shortest_s or 0) <= 1022 for it in W["W5"])
    assert all(it.most_w <= 350 for it in W["W8"])
    assert all(it.most_w > 350 for it in W["W9"])
    assert all(it.threshold <= 5 for it in W["W10"])
    assert [it.name for it in W["W11"] if it.threshold <= 5] == ["mg.D.32"]
    assert {it.name for it in W["W14"]} == {
        it.name for it in sorted(AQA, key=lambda it: it.threshold)[:3]
    }
    assert W["W1"] == W["W12"] == W["W13"]


def test_loads_and_shares_are_those_that_are_stated() -> None:
    loads = {name: it.load for name, it in MIXES.items() if it.load != 0.5}
    assert loads == {"W12": 0.25, "W13": 0.9, "meggie-like": 0.75, "emmy-like": 0.75}
    assert MIXES["qosg"].types == ("fs", "sc", "bt", "lu", "mg", "sp")
    assert MIXES["qosg"].shares is None
    assert MIXES["qosg-W1"].shares == (1, 1, 3, 1, 3, 3)
    assert MIXES["qosg-W3"].shares == (3, 3, 1, 3, 1, 1)


@pytest.mark.parametrize(
    ("name", "watts"), [("W1", 8594.7), ("W6", 9712.5), ("W13", 10738.4), ("qosg", 17025.0)]
)
def test_mean_power_is_that_of_busy_and_idle_nodes(name: str, watts: float) -> None:
    assert MIXES[name].mean_w == pytest.approx(watts, abs=0.05)


# -- arrivals


@pytest.mark.parametrize("name", ["W1", "W3", "W12", "W13", "qosg", "qosg-W1"])
def test_jobs_arrive_at_the_rates_that_keep_the_load(name: str) -> None:
    known = MIXES[name]
    hours, seeds = 20, 20
    spans = hours * seeds
    counts = np.zeros(len(known.types))
    work = 0.0
    for seed in range(seeds):
        trace, nodes = Source(model="mix", mix=name, span_ps=hours * 3600 * PS).trace(seed=seed)
        assert nodes == trace.machine_nodes == known.nodes
        counts += np.bincount(trace.application, minlength=len(counts))
        work += float((trace.run_us * 1e-6 * trace.nodes).sum())
    assert trace.rates is not None
    expected = spans * np.array([trace.rates[it] for it in known.types])
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()
    table = Types.of(known.table)
    size = np.array([it.nodes * it.shortest_s for it in map(table.__getitem__,  # type: ignore[operator]
                     map(table.place, known.types))])  # fmt: skip
    off = math.sqrt(float((expected * size**2).sum())) / (spans * 3600 * nodes)
    assert work / (spans * 3600 * nodes) == pytest.approx(known.load, abs=5 * off)
    shares = expected * size / (expected * size).sum()
    asked = np.array(known.shares or [1.0] * len(known.types))
    assert shares == pytest.approx(asked / asked.sum())


def test_gaps_are_exponential_and_arrivals_independent() -> None:
    trace = mix(QOSG, ["lu"], 1000, span_s=360_000, seed=3)
    gaps = np.diff(trace.submit_us) * 1e-6
    mean = 62.8 / 500
    assert len(gaps) > 1_000_000
    assert gaps.mean() == pytest.approx(mean, rel=0.005)
    assert gaps.std() == pytest.approx(mean, rel=0.01)
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 0.005


def arrivals(trace: Any, name: str) -> Any:
    return trace.submit_us[trace.application == trace.applications.index(name)]


def test_another_type_leaves_the_arrivals_of_a_type_as_they_were() -> None:
    few = mix(AQA, ["bt.C.16", "lu.D.224"], 30, shares=[1, 1], load=0.5, seed=7)
    many = mix(AQA, ["mg.D.8", "lu.D.224", "bt.C.16"], 30, shares=[1, 1, 1], load=0.75, seed=7)
    for name in few.applications:
        assert arrivals(few, name).tolist() == arrivals(many, name).tolist()
    other = mix(AQA, ["bt.C.16", "lu.D.224"], 30, seed=8)
    assert arrivals(other, "bt.C.16").tolist() != arrivals(few, "bt.C.16").tolist()


def test_a_longer_span_begins_with_the_shorter_one() -> None:
    short, long = (mix(QOSG, ["sc"], 5000, span_s=span) for span in (1000, 2000))
    assert len(short) > 2 * 4096  # drawn in several parts
    assert long.submit_us[: len(short)].tolist() == short.submit_us.tolist()
    assert long.submit_us[len(short)] >= 1000 * 10**6
    assert short.submit_us[-1] < 1000 * 10**6


def test_a_higher_load_is_the_same_arrivals_closer_together() -> None:
    low, high = (mix(QOSG, ["sc"], 100, span_s=1000 / load, load=load) for load in (0.25, 0.5))
    assert np.abs(low.submit_us - 2 * high.submit_us).max() <= 2


def test_jobs_are_as_their_type_says() -> None:
    trace = mix(QOSG, ["fs", "bt"], 100, seed=5)
    assert {*zip(trace.application.tolist(), trace.run_us.tolist(), trace.requested_us.tolist(),
                 trace.nodes.tolist(), strict=True)} == {
        (0, 97_600_000, 100_800_000, 1), (1, 108_500_000, 143_000_000, 1),
    }  # fmt: skip
    assert trace.applications == ("fs", "bt")
    assert (np.diff(trace.submit_us) >= 0).all()
    assert QOSG.match(trace).tolist() == np.array([0, 2])[trace.application].tolist()
    assert trace.rates == pytest.approx({"fs": 3600 * 25 / 97.6, "bt": 3600 * 25 / 108.5})


def test_equation_30_as_printed_leaves_out_how_many_nodes_a_job_has() -> None:
    types = W["W1"]
    sized = per_second(types, 35, 0.5, None, True)
    printed = per_second(types, 35, 0.5, None, False)
    assert printed == pytest.approx([one * (it.nodes or 0) for one, it in
                                     zip(sized, types, strict=True)])  # fmt: skip
    used = sum(rate * (it.shortest_s or 0) * (it.nodes or 0) / 35 for rate, it in
               zip(printed, types, strict=True))  # fmt: skip
    assert used == pytest.approx(1.3125)
    trace = Source(model="mix", mix="W1", sized=False, span_ps=360_000 * PS).trace()[0]
    assert trace.load(35) == pytest.approx(1.3125, rel=0.02)


def test_a_rescaled_trace_has_other_rates() -> None:
    from odonata.traces.changing import first, rescaled

    trace = mix(QOSG, ["fs", "bt"], 100)
    assert rescaled(trace, 0.9, 100).rates is None
    assert first(trace, 3).rates == trace.rates


# -- in an experiment


def test_a_list_of_types_has_the_table_that_has_them() -> None:
    trace, nodes = Source(model="mix", mix=["bt", "fs"], nodes=20, load=0.75).trace()
    assert (nodes, trace.applications, trace.name) == (20, ("bt", "fs"), "mix")
    assert Source(model="mix", mix=("bt.C.16",)).types == AQA
    assert Source(model="mix", mix="qosg-W3").types == QOSG
    assert Source("jobs.swf").types is None


def test_the_types_that_are_given_are_those_of_the_jobs() -> None:
    rows = [replace(it, shortest_s=2 * (it.shortest_s or 0)) for it in AQA]
    doubled = Types(tuple(rows), "mine")
    trace, _ = Source(model="mix", mix="W6").trace(types=doubled)
    assert {*trace.run_us.tolist()} == {2 * 38 * 10**6, 2 * 763 * 10**6}


def test_a_mix_in_an_experiment_is_written_and_read_back() -> None:
    from odonata.experiment.reading import parse

    text = """fidelity = "job"
[trace]
model = "mix"
mix = ["fs", "bt"]
shares = [1, 2.5]
nodes = 50
span = "2 h"
sized = false
"""
    made = parse(text, "a.toml")
    assert made.trace.mix == ("fs", "bt")
    assert (made.trace.shares, made.trace.span_ps) == ((1.0, 2.5), 7200 * PS)
    assert parse(made.to_toml(), "b.toml").trace == made.trace


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no mix": ({"model": "mix"}, "which mix"),
    "unknown": ({"model": "mix", "mix": "W99"}, "mix = W99: one of W1, "),
    "of both tables": ({"model": "mix", "mix": ["bt.C.16", "fs"], "nodes": 9}, "none of aqa, qosg"),
    "empty": ({"model": "mix", "mix": []}, "at least one type"),
    "jobs": ({"model": "mix", "mix": "W3", "jobs": 6}, "jobs = 6: .* span"),
    "no nodes": ({"model": "mix", "mix": ["bt"]}, "how many nodes"),
    "too large": ({"model": "mix", "mix": "W3", "nodes": 6}, r"lu.D.224 \(8\), sp.D.196 \(8\)"),
    "shares": ({"model": "mix", "mix": "W6", "shares": (1.0,)}, "one of each of 2 types"),
    "no share": ({"model": "mix", "mix": "W6", "shares": (1.0, 0.0)}, "shares .* above 0"),
    "no job": ({"model": "mix", "mix": "W6", "span_ps": PS}, "no job arrives within 1 s"),
    "no span": ({"model": "mix", "mix": "W6", "span_ps": 0}, "span = 0 ps: above 0"),
    "of a file": ({"file": "a.swf", "mix": "W6"}, "mix = W6: of model = mix"),
    "of another": ({"model": "poisson", "shares": (1.0,)}, "shares = .*: of model = mix"),
    "span": ({"model": "mira", "span_ps": PS}, "span = .*: of model = mix"),
    "sized": ({"model": "mira", "sized": False}, "sized = False: of model = mix"),
    "memory": ({"model": "mix", "mix": "W6", "nodes": 10**9, "span_ps": 9 * 10**18}, "memory"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused(case: str) -> None:
    given, words = REFUSED[case]
    with pytest.raises(Refused, match=words):
        Source(**given).trace()


def test_types_that_cannot_be_made_into_jobs_are_refused() -> None:
    bare = {"type": "a", "power_max_w": 300, "power_min_w": 200, "slowdown": 1.2}
    with pytest.raises(Refused, match="a: its type has no time_min_s and no nodes, without"):
        mix(Types.of([bare]), ["a"], 9)
    with pytest.raises(Refused, match="a: its type has no nodes"):
        mix(Types.of([bare | {"time_min_s": 10}]), ["a"], 9)
    with pytest.raises(Refused, match="a is matched by user"):
        mix(Types.of([bare | {"by": "user"}]), ["a"], 9)
    with pytest.raises(Refused, match="type 'b': inline has a"):
        mix(Types.of([bare]), ["b"], 9)
    with pytest.raises(Refused, match="fs is there twice"):
        mix(QOSG, ["fs", "fs"], 9)
