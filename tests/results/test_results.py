"""What a run leaves says what the run did, exactly."""

from __future__ import annotations

import pickle
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from machines import DIRECT, EVERYTHING, US, network

import odonata
from odonata.agents.metrics import COUNTERS
from odonata.agents.network import Network
from odonata.commands.watch import frame, sparkline
from odonata.experiment.experiment import Experiment
from odonata.experiment.sections import (
    OF_NODES,
    Metrics,
    NetworkSettings,
    NicSettings,
    RunSettings,
)
from odonata.results.derived import stall_to_flit, summary, system
from odonata.results.diff import compare, words_for
from odonata.results.execution import recording
from odonata.results.performance import performance
from odonata.results.run import Run
from odonata.results.run import open as open_run
from pdes.driver import Result, run
from pdes.errors import Refused
from pdes.join import join
from pdes.transport import Serial
from topology import Dragonfly

END, INTERVAL = 4 * US + 300_000, US
DOC = Path(__file__).parents[2] / "docs" / "results.md"


def experiment(model: Network, end: int = END, channels: bool = True, **given: Any) -> Experiment:
    metrics = Metrics(given.pop("interval", INTERVAL), True, channels)
    routers = {field.name: getattr(model, field.name) for field in fields(NetworkSettings)}
    nodes = {name: getattr(model, name) for name in OF_NODES}
    traffic = model.traffic if isinstance(model.traffic, tuple) else (model.traffic,)
    return Experiment("small", "", model.machine, NetworkSettings(**routers), traffic,
                      nic=NicSettings(**nodes), run=RunSettings(end, seed=model.seed),
                      metrics=metrics)  # fmt: skip


def recorded(made: Experiment, out: Path, **how: Any) -> Result:
    result = run(made.model(), made.run.end, record=recording(made, out), transport=Serial(),
                 show_compiling=False, **how)  # fmt: skip
    join(out, out / "run.h5", {"digest": result.digest})
    return result


@pytest.fixture(scope="module")
def model() -> Network:
    return network(pattern="hotspot", warmup_ps=US // 2, load=0.7)


@pytest.fixture(scope="module")
def done(model: Network, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Result]:
    out = tmp_path_factory.mktemp("run")
    result = recorded(experiment(model), out)
    return open_run(out), result


def test_the_sums_over_samples_are_the_counters_at_the_end(done: tuple[Run, Result]) -> None:
    opened, result = done
    m = opened.machine
    own = result.outcome["counters"][:, : m.routers * m.radix].reshape(
        m.n_routers, m.radix, -1, len(COUNTERS)
    )
    for i, name in enumerate(COUNTERS):
        assert (opened.channels[name].sum("time") == own[..., i]).all(), name
        assert (opened.ports[name].sum("time") == own[..., i].sum(axis=2)).all(), name
    busy = result.outcome["busy_ps"][:, : m.routers * m.radix].reshape(m.n_routers, m.radix)
    assert (opened.ports.busy_ps.sum("time") == busy).all()
    assert own[..., COUNTERS.index("stall_ps")].any()
    assert opened.ports.wait_ps.any()


def test_every_sample_is_what_a_run_to_that_time_counts(
    done: tuple[Run, Result], model: Network
) -> None:
    """Stalls and waits that go on at a sample are divided there, exactly."""
    opened, _ = done
    m = opened.machine
    for i, time in enumerate(opened.time.data.tolist()):
        there = run(model, time, transport=Serial(), show_compiling=False).outcome
        own = there["counters"][:, : m.routers * m.radix].sum(axis=2)
        for j, name in enumerate(COUNTERS):
            so_far = opened.ports[name][: i + 1].sum("time")
            assert (so_far.data.reshape(own.shape[:2]) == own[..., j]).all(), (name, time)
        histogram = opened.groups.latencies[: i + 1].sum("time")
        assert (histogram == there["histogram"]).all()


def test_the_summary_is_that_of_the_run_itself(done: tuple[Run, Result], model: Network) -> None:
    opened, result = done
    assert summary(opened) == performance(model, result)
    assert opened.complete
    assert opened.digest == result.digest


def test_what_groups_took_in_is_what_their_nodes_took_in(done: tuple[Run, Result]) -> None:
    opened, _ = done
    matrix = odonata.traffic_matrix(opened)
    by_group = opened.nodes.received_bytes.sum("time").groupby("group").sum()
    assert (matrix.sum("source_group") == by_group).all()
    assert matrix.sum() < opened.nodes.sent_bytes.sum()
    latencies = opened.groups.latencies.sum("bin")
    assert (latencies == opened.groups.measured_packets).all()


def test_cables_carry_traffic_between_groups_and_non_minimal_paths_twice(
    tmp_path: Path,
) -> None:
    minimal, valiant = (
        network(routing=routing, load=0.05, message_bytes=512, stop_ps=US)
        for routing in ("minimal", "valiant")
    )
    for name, model in (("minimal", minimal), ("valiant", valiant)):
        recorded(experiment(model, 9 * US), tmp_path / name)
    with open_run(tmp_path / "minimal") as one, open_run(tmp_path / "valiant") as other:
        matrix, cables = odonata.traffic_matrix(one), odonata.cable_matrix(one)
        apart = ~np.eye(one.machine.groups, dtype=bool)
        assert (matrix.data[apart] == cables.data[apart]).all()
        assert not cables.data.diagonal().any()
        sent = odonata.traffic_matrix(other).data[apart].sum()
        assert sent * 1.5 < odonata.cable_matrix(other).sum() <= sent * 2
        assert (odonata.traffic_matrix(other) == matrix).all()


def test_samples_end_when_nothing_is_left_to_happen(tmp_path: Path) -> None:
    model = network(load=0.3, messages=5)
    made = experiment(model, 50 * US, interval=US // 2)
    result = recorded(made, tmp_path)
    with open_run(tmp_path) as opened:
        assert opened.complete
        last = int(opened.groups.last_received_ps[-1].max())
        assert opened.time[-2] < last <= opened.time[-1] < 50 * US
        assert opened.nodes.received_bytes.sum() == opened.nodes.sent_bytes.sum() > 0
        assert opened.reached_ps == 50 * US
        assert summary(opened) == performance(model, result)


def test_nothing_waits_for_longer_than_time_goes_on(done: tuple[Run, Result]) -> None:
    """In a channel, in an interval: what is yet to come is in no sample."""
    opened, _ = done
    both = opened.channels.wait_ps.astype(int) + opened.channels.stall_ps
    assert (both <= opened.interval.data[:, None, None, None]).all()
    assert (both == opened.interval.data[:, None, None, None]).any()
    for name in ("wait_ps", "stall_ps"):
        assert (opened.channels[name] >= 0).all()


def test_no_link_carries_more_than_it_can(done: tuple[Run, Result]) -> None:
    opened, _ = done
    m, ports = opened.machine, opened.ports
    sent, granted = odonata.carried(opened), ports.bytes.sum("time")
    assert (sent <= granted).all()
    assert (sent < granted).any()
    for kind, link in (("node", m.terminal), ("local", m.local), ("global", m.global_)):
        most = link.bandwidth * opened.reached_ps / 1e12
        assert float(sent.where(ports.kind == kind).max()) <= most + 1
    cables = sent.where((ports.kind == "global") & ports.lit, 0).sum()
    assert odonata.cable_matrix(opened).sum() == cables


def test_the_busiest_links_are_those(done: tuple[Run, Result]) -> None:
    opened, result = done
    everything = odonata.links(opened.network, result)
    for by, key in (("busy_ps", lambda link: -link.utilisation), ("stall_ps",
                    lambda link: -link.stall_ps)):  # fmt: skip
        first = sorted(everything, key=key)[:7]
        ours = odonata.busiest(opened, 7, by)
        assert [link[:5] for link in ours] == [link[:5] for link in first]
        assert [link.packets for link in ours] == [link.packets for link in first]
        np.testing.assert_allclose([link.utilisation for link in ours],
                                   [link.utilisation for link in first])  # fmt: skip


def test_links_are_never_used_more_than_all_the_time(done: tuple[Run, Result]) -> None:
    opened, _ = done
    part = odonata.utilisation(opened)
    assert float(part.max()) <= 1
    assert float(part.min()) >= 0
    assert float(part.max()) > 0.5


def test_stalls_per_flit_are_those_of_the_aries_counters(tmp_path: Path, model: Network) -> None:
    """One interval, no threshold: the ratio over the whole run."""
    made = experiment(model, interval=END)
    result = recorded(made, tmp_path)
    with open_run(tmp_path) as opened:
        ours = stall_to_flit(opened, None)
        theirs = odonata.aries(model, result.outcome)
        seen = theirs.n_flit.sum(axis=2) > 0
        by_tile = np.divide(theirs.n_stall, theirs.n_flit.sum(axis=2), where=seen,
                            out=np.full(seen.shape, np.nan))  # fmt: skip
        np.testing.assert_allclose(ours[0], np.nanmean(by_tile, axis=1), rtol=1e-12)
        assert float(ours.max()) > 0


@pytest.fixture(scope="module")
def dark(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of a machine that has ports without a cable."""
    machine = Dragonfly(2, 4, 3, 6, links_per_pair=1, cabling="relative")
    assert machine.dark
    out = tmp_path_factory.mktemp("dark")
    recorded(experiment(network(machine, load=0.9, pattern="adversarial")), out)
    return open_run(out)


@pytest.mark.parametrize("ports", ["all lit", "some dark"])
def test_samples_below_the_threshold_are_left_out(
    done: tuple[Run, Result], dark: Run, ports: str
) -> None:
    """Against a plain loop over tiles."""
    opened = dark if ports == "some dark" else done[0]
    m, flit = opened.machine, opened.network.flit_bytes
    ends, stalls, flits = m.ends(), opened.ports.stall_ps.data, opened.ports.flits.data
    for threshold in ("median", {"local": 1e6, "global": 5e6}, 2e6, 0.0, 1e18):
        rates = {}
        for t, length in enumerate(opened.interval.data):
            for router in range(m.n_routers):
                for tile, end in enumerate(ends[router]):
                    if end < 0:
                        continue
                    kind = "local" if tile < m.routers - 1 else "global"
                    far, port = divmod(int(end), m.radix)
                    time = flit * 1e12 / m.link(kind).bandwidth
                    count = stalls[t, far, port] / time
                    rates[t, router, tile] = (kind, count / length * 1e12, count,
                                              flits[t, far, port])  # fmt: skip
        ours = stall_to_flit(opened, threshold)
        least = {
            kind: float(np.median([r for k, r, _, _ in rates.values() if k == kind]))
            if threshold == "median"
            else threshold[kind] if isinstance(threshold, dict) else threshold
            for kind in ("local", "global")
        }  # fmt: skip
        expected = np.full(ours.shape, np.nan)
        for t in range(ours.shape[0]):
            for router in range(m.n_routers):
                some = [count / n for tile in np.flatnonzero(ends[router] >= 0)
                        for kind, rate, count, n in [rates[t, router, tile]]
                        if n and rate >= least[kind]]  # fmt: skip
                if some:
                    expected[t, router] = np.mean(some)
        np.testing.assert_allclose(ours, expected, rtol=1e-12)
    assert np.isnan(ours).all()


def test_percentiles_lie_where_the_packets_do(done: tuple[Run, Result]) -> None:
    opened, _ = done
    latencies = odonata.latency_percentiles(opened, [0.001, 50, 99, 100])
    assert (np.diff(latencies) > 0).all()
    assert float(latencies[-1]) == int(opened.groups.longest_latency_ps.max()) / 1e3
    least = odonata.latency_percentiles(opened, 0)
    assert 0 < float(least[0]) <= float(latencies[0])
    for nonsense in (-1, 101, [50, float("nan")]):
        with pytest.raises(ValueError, match=r"0 \.\. 100"):
            odonata.latency_percentiles(opened, nonsense)
    by_time = odonata.latency_percentiles(opened, by_time=True)
    assert by_time.dims == ("time", "percentile")
    counts = opened.groups.latencies.sum(("time", "group")).data
    half = np.searchsorted(np.cumsum(counts), counts.sum() / 2)
    low = float(opened.groups.from_ps[half]) / 1e3
    assert low <= float(latencies.sel(percentile=50)) <= low * 1.016


def test_the_whole_machine_over_time_is_the_sum_of_its_nodes(done: tuple[Run, Result]) -> None:
    opened, _ = done
    whole = system(opened)
    full = opened.machine.n_nodes * opened.machine.terminal.bandwidth * opened.interval / 1e12
    np.testing.assert_allclose(whole.offered * full, opened.nodes.sent_bytes.sum("node"))
    np.testing.assert_allclose(whole.accepted * full, opened.nodes.received_bytes.sum("node"))
    np.testing.assert_allclose(whole.latency_ns * whole.packets * 1e3,
                               opened.nodes.latency_ps.sum("node"))  # fmt: skip
    local = opened.ports.kind == "local"
    for name, counter in (("local_busy", "busy_ps"), ("local_stalled", "stall_ps")):
        part = opened.ports[counter].where(local).mean(("router", "port")) / opened.interval
        np.testing.assert_allclose(whole[name], part)
    units = {name: values.attrs["unit"] for name, values in whole.items()}
    links = {f"{kind}_{what}": "1" for kind in ("local", "global") for what in ("busy", "stalled")}
    assert units == {"offered": "1", "accepted": "1", "latency_ns": "ns", "packets": "1"} | links
    assert all("increase" not in str(values.attrs) for values in whole.values())
    assert "over global links" in whole.global_busy.attrs["about"]
    assert (system(opened, 2) == whole.isel(time=slice(-2, None))).all()


def test_variables_are_read_when_used_and_in_pieces(done: tuple[Run, Result]) -> None:
    opened, _ = done
    whole = opened.ports.flits.load()
    again = open_run(opened.path)
    some = again.ports.flits
    assert not isinstance(some.variable._data, np.ndarray)
    assert (some[::-1, 2:5, [3, 0]].data == whole.data[::-1, 2:5][:, :, [3, 0]]).all()
    assert (some.isel(router=[5, 1], time=-1).data == whole.data[-1, [5, 1]]).all()
    assert some[0, 0, 0].item() == whole.data[0, 0, 0]
    again.close()


def test_xarray_does_with_it_what_it_does_with_anything(done: tuple[Run, Result]) -> None:
    with open_run(done[0].path) as opened:
        ports = opened.ports
        cables = ports.where(ports.kind == "global", drop=True)
        assert cables.sizes["port"] == opened.machine.global_links
        again = pickle.loads(pickle.dumps(opened.nodes))
        assert again.identical(opened.nodes)
        assert ports.copy(deep=True).flits.sum() == ports.flits.sum()
        by_group = opened.nodes.groupby("group").sum()
        assert by_group.received_bytes.sum() == opened.nodes.received_bytes.sum()


def test_a_run_may_lie_anywhere(tmp_path: Path, model: Network) -> None:
    """Also where HDF5 would take part of the name for something else."""
    place = tmp_path / "load 50%b é [b]"
    made = experiment(model, 2 * US)
    ran = run(model, 2 * US, record=recording(made, place), transport=Serial(),
              show_compiling=False)  # fmt: skip
    for joined in (False, True):
        if joined:
            join(place, place / "run.h5")
        with open_run(place) as opened:
            assert opened.digest == ran.digest
            assert opened.ports.flits.sum() > 0


def test_coordinates_say_where_a_port_leads(done: tuple[Run, Result]) -> None:
    opened, _ = done
    ports, m = opened.ports, opened.machine
    assert (ports.kind == ["node"] * 2 + ["local"] * 3 + ["global"] * 2).all()
    far = ports.to_router.data[:, m.nodes :]
    same = far // m.routers == ports.group.data[:, None]
    assert same[:, : m.routers - 1].all()
    assert not same[:, m.routers - 1 :].any()
    assert opened.nodes.group.data[-1] == m.groups - 1
    assert float(opened.groups.from_ps[64 * 10 + 32]) == 1.5 * 2**10


def test_an_open_run_shows_what_was_flushed_and_says_so(tmp_path: Path, model: Network) -> None:
    """A run that died: its directory has no run.h5, and a rank's file was never closed."""

    def die(reached: int, events: int, tally: object) -> None:
        raise KeyboardInterrupt

    made = experiment(model, 4000 * US)
    with pytest.raises(KeyboardInterrupt):
        recorded(made, tmp_path, progress=die)
    with open_run(tmp_path) as opened:
        assert not opened.complete
        assert opened.digest is None
        assert 0 <= opened.reached_ps < made.run.end
        assert "incomplete" in repr(opened)
        summary(opened)
        system(opened)
    assert frame(tmp_path).over


def test_a_stale_joined_file_is_not_believed(tmp_path: Path, model: Network) -> None:
    recorded(experiment(model, 2 * US), tmp_path)
    run(model, 3 * US, record=recording(experiment(model, 3 * US), tmp_path), transport=Serial(),
        show_compiling=False)  # fmt: skip
    with open_run(tmp_path) as opened:
        assert int(opened.time[-1]) == 3 * US


def test_what_was_not_recorded_is_refused_by_name(tmp_path: Path, model: Network) -> None:
    recorded(experiment(model, US, channels=False), tmp_path)
    with (
        open_run(tmp_path) as opened,
        pytest.raises(Refused, match=r"channels were not recorded \(metrics.channels = false\)"),
    ):
        _ = opened.channels
    for nothing in (tmp_path / "nowhere", tmp_path.parent):
        with pytest.raises(Refused, match=r"no such directory|holds no run"):
            odonata.open(nothing)


def test_a_name_that_is_no_dataset_is_refused_with_those_that_are(done: tuple[Run, Result]) -> None:
    with pytest.raises(Refused, match=r"run\.h5: nodes is no dataset; there are nodes/\w+, nodes/"):
        done[0].read("nodes")
    with pytest.raises(Refused, match=r"run\.h5: node is no dataset; there are channels, "):
        done[0].read("node")


def test_two_runs_are_the_same_or_differ_somewhere(
    tmp_path: Path, model: Network, done: tuple[Run, Result]
) -> None:
    opened, _ = done
    recorded(experiment(model), tmp_path / "same")
    recorded(experiment(network(pattern="hotspot", warmup_ps=US // 2, load=0.7, seed=2)),
             tmp_path / "other")  # fmt: skip
    with open_run(tmp_path / "same") as same, open_run(tmp_path / "other") as other:
        verdict = compare(opened, same)
        assert verdict.same
        assert verdict.samples == 5
        assert verdict.values > 10**5
        assert "the same, bit for bit" in words_for(verdict, opened, same)
        verdict = compare(opened, other)
        assert not verdict.same
        assert "sample 0 (1 us)" in words_for(verdict, opened, other)


def test_a_single_changed_value_is_found_and_shown(tmp_path: Path, model: Network) -> None:
    for name in ("a", "b"):
        recorded(experiment(model), tmp_path / name)
    with h5py.File(tmp_path / "b" / "rank-0000.h5", "r+") as file:
        before = file["ports/flits"][3, 5, 2]
        file["ports/flits"][3, 5, 2] += 7
    with open_run(tmp_path / "a") as a, open_run(tmp_path / "b") as b:
        (found,) = compare(a, b).differences
    assert found.dataset == "ports/flits"
    assert found.values == 1
    assert found.first == f"sample 3 (4 us), router 5, port 2: {before} and {before + 7}"


def documented(*without: str) -> dict[str, tuple[str, str, str]]:
    rows = re.findall(r"^\| `([\w/]+)` \| ([\w, ]+) \| (\w+) \| (\w*) ?\|", DOC.read_text(), re.M)
    of_jobs = ("jobs/", "stages/", "starts/", "ends/", "seen", "packet_")
    return {name: (dims, unit, kind) for name, dims, unit, kind in rows
            if not name.startswith((*of_jobs, *without))}  # fmt: skip


def written(opened: Run) -> dict[str, tuple[str, str, str]]:
    found = {}

    def note(name: str, thing: Any) -> None:
        if isinstance(thing, h5py.Dataset):
            dims = ", ".join(dim.label for dim in thing.dims)
            kind = str(thing.attrs.get("kind", "")).split(" ")[0]
            found[name] = (dims, thing.attrs["unit"], kind)
            assert thing.attrs["about"]

    opened.file.visititems(note)
    return found


def test_the_documented_schema_is_what_is_written(done: tuple[Run, Result]) -> None:
    opened, _ = done
    assert documented("inputs/") == written(opened)
    attributes = DOC.read_text().split("Root attributes")[1].split("##")[0]
    assert set(re.findall(r"`(\w+)`", attributes)) == set(opened.file.attrs)


def test_so_is_that_of_routers_with_crossbars_and_their_table_is_the_outcome(
    tmp_path: Path,
) -> None:
    model = network(**EVERYTHING)
    result = recorded(experiment(model), tmp_path)
    with open_run(tmp_path) as opened:
        assert documented() == written(opened)
        times = opened.inputs[["switch_ps", "room_ps", "eject_ps"]].sum("time").to_array().data
        outcome = result.outcome["inputs"].sum(axis=2).reshape(*times.shape[1:], 4)
        assert (np.moveaxis(times, 0, -1) == outcome[..., :3]).all()


def test_a_deadlocked_run_is_not_complete_and_has_come_as_far_as_it_has(tmp_path: Path) -> None:
    tight = {"load": 0.6, "message_bytes": 2048, "ejection": 25e9, "ejection_buffer": 512,
             "terminal_buffer": 512, "local_buffer": 512, "global_buffer": 512}  # fmt: skip
    result = recorded(experiment(network(**DIRECT | tight), 200 * US), tmp_path)
    assert not result.completed
    with open_run(tmp_path) as opened:
        assert opened.state == "deadlocked"
        assert not opened.complete
        assert opened.reached_ps == result.time_ps == 10 * US


def test_a_run_of_ideal_routers_says_that_it_has_no_input_queues(done: tuple[Run, Result]) -> None:
    with pytest.raises(Refused, match="routers without a crossbar have no input queues"):
        _ = done[0].inputs


def test_sparklines_go_from_nothing_to_the_most() -> None:
    assert sparkline(np.array([0.0, 1.0, np.nan, 2.0, 4.0])) == "▁▃ ▅█"
    assert sparkline(np.array([np.nan])) == " "
    assert sparkline(np.zeros(2)) == "▁▁"
