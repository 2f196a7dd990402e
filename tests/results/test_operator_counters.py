"""Counters as an operator reads them: small arrays by hand, and real runs against plain loops."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import DIRECT, EVERYTHING, US, network

import odonata
from odonata.agents.network import Network
from odonata.experiment.experiment import Experiment
from odonata.experiment.sections import (
    OF_NODES,
    Metrics,
    NetworkSettings,
    NicSettings,
    RunSettings,
)
from odonata.jobs.record import JobRecord
from odonata.results.derived import CLASSES, stall_to_flit
from odonata.results.execution import RunOptions, execute, recording
from odonata.results.operator_counters import (
    KINDS,
    Counters,
    JobCounters,
    counters_of,
    cumulative,
    job_counters,
    job_ntile_stalls_per_s,
    job_ptile_flits_per_s,
    job_ptile_stalls_per_s,
    job_stall_to_flit,
)
from odonata.results.run import Run
from odonata.results.run import open as open_run
from pdes.driver import run
from pdes.errors import Refused
from pdes.join import join
from pdes.transport import Serial
from topology import Dragonfly

END = 4 * US + 300_000
S = 10**12
THRESHOLDS = ("median", 0, 2e6, {"local": 1e6, "global": 5e6}, 1e18)


# -- by hand


def small(**given: Any) -> Counters:
    """Two intervals of one second and of two, two routers with two electrical tiles of 1 ms a flit
    and one optical tile of 2 ms a flit, and one node each."""
    values: dict[str, Any] = {
        "time_ps": [1 * S, 3 * S], "interval_ps": [1 * S, 2 * S], "lit": [[1, 1, 1], [1, 1, 1]],
        "classes": ["local", "local", "global"], "flit_ps": [S / 1000, S / 1000, S / 500],
        "node_flit_ps": S / 1000,
        "n_flit": [[[100, 10, 50], [0, 0, 0]], [[200, 0, 50], [10, 0, 5]]],
        "all_stall_ps": np.array([[[300, 10, 400], [0, 0, 0]], [[400, 60, 0], [20, 0, 40]]])
        * (S // 1000),
        "credit_stall_ps": np.zeros((2, 2, 3)), "p_flit": [[7, 0], [8, 2]],
        "p_stall_ps": np.array([[5, 0], [0, 6]]) * (S // 1000),
    }  # fmt: skip
    kinds = {"lit": bool, "classes": str, "flit_ps": float}
    values |= given
    return Counters(**{
        name: value if name == "node_flit_ps" else np.array(value).astype(kinds.get(name, np.int64))
        for name, value in values.items()
    })  # fmt: skip


def test_a_stall_is_the_time_of_a_flit_on_the_link_of_its_tile() -> None:
    stalls = small().stalls()
    assert stalls.tolist() == [[[300, 10, 200], [0, 0, 0]], [[400, 60, 0], [20, 0, 20]]]
    assert small().per_second(stalls)[1].tolist() == [[200, 30, 0], [10, 0, 10]]


def test_the_ratio_of_a_router_is_the_mean_of_those_of_its_tiles_and_not_that_of_the_sums() -> None:
    """300/100, 10/10 and 200/50, not 510/160. A tile that saw no flit is 0, though it stalled."""
    ratio = small().stall_to_flit(0)
    np.testing.assert_allclose(ratio, [[(3 + 1 + 4) / 3, 0], [2 / 3, (2 + 4) / 3]], rtol=1e-15)


def test_below_the_median_of_its_class_a_tile_is_left_out() -> None:
    """Electrical: 300, 10, 0, 0, 200, 30, 10, 0 stalls per second, optical: 200, 0, 0, 10."""
    assert small().thresholds() == {"local": 10, "global": 5}
    ratio = small().stall_to_flit()
    np.testing.assert_allclose(ratio, [[(3 + 1 + 4) / 3, 0], [(2 + 0) / 2, (2 + 4) / 2]])
    high = small().stall_to_flit({"local": 250, "global": 1e9})
    np.testing.assert_allclose(high, [[3, 0], [0, 0]])


def test_where_every_tile_is_left_out_the_ratio_is_0() -> None:
    assert not small().stall_to_flit(1e9).any()


def test_classes_have_ratios_of_their_own() -> None:
    electrical, optical = (small().stall_to_flit(0, classes=[name]) for name in CLASSES)
    np.testing.assert_allclose(electrical, [[(3 + 1) / 2, 0], [1, 1]])
    np.testing.assert_allclose(optical, [[4, 0], [0, 4]])


def test_a_port_without_a_cable_is_no_tile() -> None:
    dark = small(lit=[[1, 1, 0], [1, 1, 1]], n_flit=[[[100, 10, 0], [0, 0, 0]], [[200, 0, 0],
                 [10, 0, 5]]])  # fmt: skip
    np.testing.assert_allclose(dark.stall_to_flit(0)[:, 0], [2, 1])
    assert dark.thresholds()["global"] == 5
    assert not dark.stall_to_flit(0, classes=["global"])[:, 0].any()


def test_over_the_run_intervals_count_by_their_lengths() -> None:
    assert small().over_time([[3.0, 0.0], [0.0, 6.0]]).tolist() == [1, 4]


def test_a_kind_and_a_threshold_that_do_not_exist_are_named() -> None:
    with pytest.raises(ValueError, match="kind = 'some': one of all, credit"):
        small().stall_to_flit(0, "some")
    with pytest.raises(ValueError, match="threshold = 'mean': median"):
        small().stall_to_flit("mean")
    with pytest.raises(ValueError, match="for each of local, global"):
        small().stall_to_flit({"local": 1})


class Fake:
    """Two routers of one node each, and a job."""

    class machine:
        nodes = 1

    def __init__(self, labels: tuple[int, ...], start: int | None, end: int | None) -> None:
        self.job_records = [JobRecord(0, "a", len(labels), "fft3d", 0, start, end, labels)]


@pytest.mark.parametrize(("labels", "start", "end", "weights"), [
    ((0,), 0, S, (1, 0)),
    ((0,), S // 2, 2 * S, (0.5, 1)),
    ((0, 1), S // 4, None, (0.75, 2)),
    ((1,), 5 * S // 2, 9 * S, (0, 0.5)),
])  # fmt: skip
def test_a_job_has_the_means_over_its_routers_and_over_the_intervals_of_its_run(
    labels: tuple[int, ...], start: int, end: int | None, weights: tuple[float, float]
) -> None:
    """An interval counts by how much of it the job ran for."""
    fake, seen = Fake(labels, start, end), small()
    found = job_counters(fake, None, 0, counters=seen)[0]  # type: ignore[arg-type]
    ratio = [[8 / 3, 0], [2 / 3, 2]]
    stalls = [[510, 0], [230, 20]]
    refused, taken = [[5, 0], [0, 3]], [[7, 0], [4, 1]]
    means = (found.stall_to_flit, found.ntile_stalls_per_s, found.ptile_stalls_per_s,
             found.ptile_flits_per_s)  # fmt: skip
    for value, table in zip(means, (ratio, stalls, refused, taken), strict=True):
        by_interval = [sum(row[label] for label in labels) / len(labels) for row in table]
        expected = sum(w * it for w, it in zip(weights, by_interval, strict=True)) / sum(weights)
        assert value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("labels", "start"), [((), None), ((0,), 3 * S), ((0,), 4 * S)])
def test_of_a_job_that_no_sample_has_seen_nothing_is_known(
    labels: tuple[int, ...], start: int | None
) -> None:
    found = job_counters(Fake(labels, start, None), None, 0, counters=small())  # type: ignore[arg-type]
    assert found[0].largest_router is None
    assert all(math.isnan(value) for value in found[0] if value is not None)


@pytest.mark.parametrize(("labels", "end", "median", "largest", "router"), [
    ((0, 1), None, (4 / 3 + 4 / 3) / 2, 4 / 3, 0),
    ((0, 1), S, 4 / 3, 8 / 3, 0),
    ((0, 1), 2 * S, 4 / 3, 5 / 3, 0),
    ((1,), 2 * S, 1, 1, 1),
])  # fmt: skip
def test_of_the_routers_of_a_job_the_median_and_the_largest_are_known(
    labels: tuple[int, ...], end: int | None, median: float, largest: float, router: int
) -> None:
    """Router 0 has 8/3 in the first second and 2/3 in the two after it, router 1 has 0 and 2."""
    fake = Fake(labels, 0, end)
    found = job_counters(fake, None, 0, counters=small())[0]  # type: ignore[arg-type]
    assert found.stall_to_flit_median == pytest.approx(median, rel=1e-12)
    assert found.stall_to_flit_largest == pytest.approx(largest, rel=1e-12)
    assert found.largest_router == router


# -- real runs


def recorded(model: Network, out: Path, ports: bool = True) -> Run:
    routers = {field.name: getattr(model, field.name) for field in fields(NetworkSettings)}
    nodes = {name: getattr(model, name) for name in OF_NODES}
    traffic = model.traffic if isinstance(model.traffic, tuple) else (model.traffic,)
    made = Experiment("small", "", model.machine, NetworkSettings(**routers), traffic,
                      nic=NicSettings(**nodes), run=RunSettings(END, seed=model.seed),
                      metrics=Metrics(US, ports, False))  # fmt: skip
    result = run(made.model(), END, record=recording(made, out), transport=Serial(),
                 show_compiling=False)  # fmt: skip
    join(out, out / "run.h5", {"digest": result.digest})
    opened = open_run(out)
    assert isinstance(opened, Run)
    return opened


MODELS = {
    "ideal": network(pattern="hotspot", load=0.7),
    "dark": network(Dragonfly(2, 4, 3, 6, links_per_pair=1, cabling="relative"), load=0.9,
                    pattern="adversarial"),
    "output buffers": network(pattern="hotspot", **EVERYTHING),
    "input queues": network(pattern="hotspot", **DIRECT | {"ejection": 3e9,
                                                           "ejection_buffer": 1024}),
}  # fmt: skip


@pytest.fixture(scope="module", params=[*MODELS])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return recorded(MODELS[request.param], tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def seen(opened: Run) -> Counters:
    return counters_of(opened)


def naive(opened: Run) -> dict[tuple[int, int, int], dict[str, Any]]:
    """Returns class, flits and stalls of both kinds by interval, router and tile, in a plain
    loop."""
    m, flit = opened.machine, opened.network.flit_bytes
    ports = {name: opened.ports[name].data.tolist() for name in ("flits", "stall_ps", "wait_ps")}
    own = {name: opened.inputs[name].data.tolist() for name in ("switch_ps", "room_ps", "eject_ps")
           if opened.network.switched}  # fmt: skip
    to_router, to_port = opened.ports.to_router.data, opened.ports.to_port.data
    found = {}
    for t in range(len(opened.time)):
        for router in range(m.n_routers):
            for port in range(m.nodes, m.radix):
                there, back = int(to_router[router, port]), int(to_port[router, port])
                if there < 0:
                    continue
                far = {name: rows[t][there][back] for name, rows in ports.items()}
                here = {name: rows[t][router][port] for name, rows in own.items()}
                local = port < m.nodes + m.routers - 1
                lacked = here["room_ps"] + here["eject_ps"] if here else 0
                found[t, router, port - m.nodes] = {
                    "class": "local" if local else "global",
                    "cycle": flit * 1e12 / (m.local if local else m.global_).bandwidth,
                    "flits": far["flits"],
                    "credit": far["stall_ps"] + lacked,
                    "all": here["switch_ps"] + lacked if here
                    else far["stall_ps"] + far["wait_ps"],
                }  # fmt: skip
    return found


def test_tiles_count_what_a_plain_loop_counts(opened: Run, seen: Counters) -> None:
    tiles = naive(opened)
    assert len(tiles) == seen.lit.sum() * len(opened.time)
    for at, it in tiles.items():
        assert seen.n_flit[at] == it["flits"]
        assert (seen.all_stall_ps[at], seen.credit_stall_ps[at]) == (it["all"], it["credit"])
    for values in (seen.n_flit, seen.all_stall_ps, seen.credit_stall_ps):
        assert values.sum() == sum(values[at] for at in tiles), "a port without a cable counts"
        assert values.any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threshold", THRESHOLDS, ids=str)
def test_ratios_are_those_of_a_plain_loop(
    opened: Run, seen: Counters, threshold: Any, kind: str
) -> None:
    tiles, seconds = naive(opened), [ps / 1e12 for ps in opened.interval.data.tolist()]
    rates: dict[str, list[float]] = {name: [] for name in CLASSES}
    for (t, _, _), it in tiles.items():
        it["stalls"] = it[kind] / it["cycle"]
        it["rate"] = it["stalls"] / seconds[t]
        rates[it["class"]].append(it["rate"])
    if threshold == "median":
        least = {name: median(rates[name]) for name in CLASSES}
    else:
        least = threshold if isinstance(threshold, dict) else dict.fromkeys(CLASSES, threshold)
    assert seen.thresholds(threshold, kind) == pytest.approx(least, rel=1e-12)
    ratio = seen.stall_to_flit(threshold, kind)
    kept: dict[tuple[int, int], list[float]] = {}
    for (t, router, _), it in tiles.items():
        if it["rate"] >= least[it["class"]]:
            of_tile = it["stalls"] / it["flits"] if it["flits"] else 0.0
            kept.setdefault((t, router), []).append(of_tile)
    for at in np.ndindex(ratio.shape):
        some = kept.get(at, [0.0])
        assert ratio[at] == pytest.approx(sum(some) / len(some), rel=1e-9)


def test_tiles_took_in_every_flit_that_ports_to_routers_sent(opened: Run, seen: Counters) -> None:
    sent = opened.ports.flits.where((opened.ports.kind != "node") & opened.ports.lit, 0)
    assert seen.n_flit.sum() == sent.sum()
    by_kind = {name: sent.where(opened.ports.kind == name, 0).sum() for name in CLASSES}
    for name in CLASSES:
        assert seen.class_flits(name).sum() == by_kind[name]
    nodes = opened.ports.flits.where(opened.ports.kind == "node", 0)
    assert seen.p_flit.sum() == nodes.sum()


def test_counters_begin_at_0_and_never_fall(opened: Run, seen: Counters) -> None:
    for increase in (seen.n_flit, seen.all_stall_ps, seen.credit_stall_ps, seen.p_flit):
        counter = cumulative(increase)
        assert (increase >= 0).all()
        assert (np.diff(counter, axis=0, prepend=0) == increase).all()
        assert (counter[-1] == increase.sum(axis=0)).all()


def test_processor_tiles_stall_only_where_nodes_push_back(opened: Run, seen: Counters) -> None:
    network, p = opened.network, opened.machine.nodes
    if network.ejection is None:
        assert not seen.p_stall_ps.any()
        return
    stalls = opened.ports.stall_ps[:, :, :p].sum("port")
    ejected = opened.inputs.eject_ps.sum("port")
    assert (seen.p_stall_ps == (stalls if network.buffered else ejected)).all()
    assert seen.p_stall_ps.any()


def test_with_ideal_routers_credit_stalls_are_those_of_stall_to_flit(tmp_path: Path) -> None:
    """Which leaves out a tile without flits, and has NaN where none is left."""
    opened = recorded(MODELS["ideal"], tmp_path)
    theirs = stall_to_flit(opened, 1.0)
    ours = counters_of(opened).stall_to_flit(1.0, "credit")
    flits = counters_of(opened).n_flit
    whole = ((flits > 0) | (counters_of(opened).credit_stall_ps == 0)).all(axis=2)
    assert whole.any()
    np.testing.assert_allclose(ours[whole], np.nan_to_num(theirs.data)[whole], rtol=1e-12)
    assert (counters_of(opened).all_stall_ps >= counters_of(opened).credit_stall_ps).all()


def test_without_the_counters_of_ports_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="ports were not recorded"):
        counters_of(recorded(MODELS["ideal"], tmp_path, ports=False))


def test_one_router_has_no_network_tiles_and_no_congestion(tmp_path: Path) -> None:
    seen = counters_of(recorded(network(Dragonfly(4, 1, 0, 1)), tmp_path))
    assert seen.n_flit.shape[1:] == (1, 0)
    assert seen.thresholds() == {"local": 0, "global": 0}
    assert not seen.stall_to_flit().any()
    assert seen.p_flit.any()


JOBS = """
name = "jobs"
[machine]
preset = "kim-72"
[network]
routing = "adaptive"
[[jobs]]
nodes = 30
pattern = "fft3d"
[[jobs]]
nodes = 40
pattern = "incast"
arrival = "1500 ns"
[metrics]
interval = "1 us"
"""


def test_jobs_of_a_run_have_the_counters_of_their_routers(tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text(JOBS)
    execute(RunOptions(tmp_path / "jobs.toml", tmp_path / "out", (), progress=False))
    with odonata.open(tmp_path / "out") as opened:
        assert isinstance(opened, Run)
        seen = counters_of(opened)
        found = job_counters(opened)
        ratio = seen.stall_to_flit()
        for job, record in enumerate(opened.job_records):
            assert record.start_ps is not None
            assert record.end_ps is not None
            routers = {label // opened.machine.nodes for label in record.labels}
            total = weight = 0.0
            for t, time in enumerate(opened.time.data.tolist()):
                begin = time - int(opened.interval[t])
                part = max(0, min(record.end_ps, time) - max(record.start_ps, begin))
                weight += part
                total += part * sum(ratio[t, router] for router in routers) / len(routers)
            assert weight == record.run_time_ps
            assert found[job].stall_to_flit == pytest.approx(total / weight, rel=1e-9)
            assert found[job] == found[job]._replace(
                stall_to_flit=job_stall_to_flit(opened, job),
                ntile_stalls_per_s=job_ntile_stalls_per_s(opened, job),
                ptile_stalls_per_s=job_ptile_stalls_per_s(opened, job),
                ptile_flits_per_s=job_ptile_flits_per_s(opened, job, seen),
            )
            assert found[job].ptile_flits_per_s > 0
            check_spread(opened, ratio, record, found[job])


def check_spread(opened: Run, ratio: Any, record: JobRecord, found: JobCounters) -> None:
    """Compare with a matrix product over all routers, of which those of the job are then taken."""
    ends = np.clip(opened.time.data, record.start_ps, record.end_ps)
    begins = np.clip(opened.time.data - opened.interval.data, record.start_ps, record.end_ps)
    each = (ends - begins) @ ratio / (ends - begins).sum()
    own = {label // opened.machine.nodes: each[label // opened.machine.nodes]
           for label in record.labels}  # fmt: skip
    assert found.stall_to_flit == pytest.approx(np.mean([*own.values()]), rel=1e-9)
    assert found.stall_to_flit_median == pytest.approx(np.median([*own.values()]), rel=1e-9)
    assert found.stall_to_flit_largest == pytest.approx(max(own.values()), rel=1e-9)
    assert found.largest_router == max(own, key=lambda router: own[router])
    assert found.stall_to_flit_median < found.stall_to_flit_largest


# -- whatever the counters


@st.composite
def any_counters(draw: st.DrawFn) -> Counters:
    times, routers, local, optical = (draw(st.integers(1, 4)) for _ in range(4))
    tiles = local + optical
    numbers = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (times, routers, tiles)
    lit = numbers.random((routers, tiles)) < 0.9
    interval = numbers.integers(1, 10**6, times)
    flits, every, credit = (numbers.integers(0, 5, shape) * numbers.integers(0, 2, shape) * lit
                            * scale for scale in (1, 1000, 100))  # fmt: skip
    flit_ps = np.repeat(numbers.random(2) * 1000 + 1, [local, optical])
    return Counters(
        np.cumsum(interval), interval, lit, np.repeat(["local", "global"], [local, optical]),
        flit_ps, 10.0, flits, every, credit, numbers.integers(0, 9, (times, routers)),
        numbers.integers(0, 9, (times, routers)),
    )  # fmt: skip


@given(any_counters(), st.floats(1e-3, 1e3))
def test_twice_the_cycle_or_twice_the_flits_are_half_the_ratio(
    seen: Counters, scale: float
) -> None:
    slower = replace(seen, flit_ps=seen.flit_ps * scale)
    for kind in KINDS:
        np.testing.assert_allclose(slower.stall_to_flit(0, kind) * scale,
                                   seen.stall_to_flit(0, kind), rtol=1e-9)  # fmt: skip
    doubled = replace(seen, n_flit=seen.n_flit * 2)
    np.testing.assert_allclose(doubled.stall_to_flit() * 2, seen.stall_to_flit(), rtol=1e-12)


@given(any_counters())
def test_a_ratio_lies_between_those_of_its_tiles(seen: Counters) -> None:
    stalls, flits = seen.stalls(), seen.n_flit
    each = np.divide(stalls, flits, out=np.zeros_like(stalls), where=(flits > 0) & seen.lit)
    for threshold in ("median", 0, 5e6):
        ratio = seen.stall_to_flit(threshold)
        assert (ratio >= 0).all()
        assert (ratio <= each.max(axis=2) * (1 + 1e-12)).all()


@given(any_counters())
def test_the_median_leaves_out_no_more_than_half_of_a_class(seen: Counters) -> None:
    rates, least = seen.per_second(seen.stalls()), seen.thresholds()
    for name in CLASSES:
        some = rates[:, seen.of_class(name)]
        assert (some >= least[name]).sum() * 2 >= some.size
