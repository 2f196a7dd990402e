"""What an experiment file makes, and that an experiment is the same after writing and reading."""

from __future__ import annotations

import re
import string
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from files import FILES, OPEN, conforms, refusal
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from odonata.agents.network import Network
from odonata.agents.routers import ROUTERS
from odonata.agents.traffic import ARRIVALS, PATTERNS, Traffic
from odonata.commands.presets import workload
from odonata.experiment import building
from odonata.experiment.building import memory_bytes, round_up
from odonata.experiment.experiment import Experiment, is_own_seed
from odonata.experiment.reading import load, parse
from odonata.experiment.sections import Metrics, NetworkSettings, RunSettings
from odonata.traces import source
from pdes import launcher
from pdes.errors import Refused
from policies.routing import ROUTINGS
from topology import Dragonfly, LinkClass
from topology.dragonfly import CABLINGS
from topology.presets import PRESETS

US = 10**6
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_a_file_makes_an_experiment() -> None:
    text = """
        about = "a try"
        [machine]
        preset = "theta"
        groups = 5
        links_per_pair = "all"
        global_bandwidth = "8 Gbit/s"
        [network]
        routing = "par"
        packet = "1 KiB"
        bias = "-2 KiB"
        threshold = 2
        [traffic]
        pattern = "hotspot"
        load = 1
        messages = 7
        measure = "5 us"
        [run]
        duration = "20 us"
        seed = 3
        checkpoint_every = "1.5 us"
        [metrics]
        flush = "250 ms"
    """
    theta = PRESETS["theta"].machine
    machine = replace(
        theta, groups=5, links_per_pair=None, global_=replace(theta.global_, bandwidth=1e9)
    )
    traffic = Traffic("hotspot", 1.0, message_bytes=1024, messages=7, measure_ps=5 * US)
    made = parse(text, "runs/first.toml")
    assert made == Experiment(
        "first",
        "a try",
        machine,
        NetworkSettings("par", packet_bytes=1024, bias=-2048, threshold=2.0),
        (traffic,),
        run=RunSettings(20 * US, "window", 1_500_000, seed=3),
        metrics=Metrics(10**6, ports=True, channels=False, flush_ps=250 * 10**9),
    )
    assert made.model() == Network(
        machine, traffic, "par", packet_bytes=1024, bias=-2048, threshold=2.0, seed=3
    )


def test_a_sample_is_taken_every_10_us_unless_that_is_too_few_or_too_many() -> None:
    for duration, interval in (("100 us", 5 * US), ("3 ms", 10 * US), ("1 ns", 1000),
                               ("30 us", 2 * US), ("30 ns", 2000), ("1 s", 10**9)):  # fmt: skip
        made = parse("", "x.toml", [f"run.duration={duration}"])
        assert made.metrics.interval_ps == interval
    assert [round_up(n) for n in (1, 3, 5, 6, 10, 11, 51)] == [1, 5, 5, 10, 10, 20, 100]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_experiment_we_ship_loads_and_says_what_it_is(path: Path) -> None:
    made = load(path)
    assert made.name == path.stem
    assert made.about
    assert parse(made.to_toml(), "again.toml") == made
    assert path.read_text().startswith("# ")


def test_there_are_experiments_to_ship() -> None:
    assert {path.stem for path in FILES} >= {"demo", "codes-c", "codes-d", "hotspot", "theta",
                                             "routing-kim72", "frontier"}  # fmt: skip


@pytest.mark.parametrize("name", ["codes-c", "codes-d"])
def test_the_workloads_of_codes_are_those_of_the_bench(name: str) -> None:
    network, traffic, end = workload(name)
    made = load(next(path for path in FILES if path.stem == name))
    assert made.model() == Network(PRESETS[name].machine, Traffic(**traffic), **network)
    assert made.run.end == end


machines = st.builds(
    lambda p, a, h, share, cabling, rate, latency: Dragonfly(
        p, a, h, 1 + max(1, a * h // share), cabling, 1,
        local=LinkClass(rate, latency), global_=LinkClass(rate / 3, latency + 1),
    ),
    st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 5),
    st.sampled_from(CABLINGS), st.floats(1e7, 1e13), st.integers(0, 10**12 - 1),
)  # fmt: skip
traffics = st.builds(
    Traffic,
    st.sampled_from(PATTERNS), st.floats(1e-6, 1), st.sampled_from(ARRIVALS),
    st.integers(1, 2**39), st.none() | st.integers(0, 2**61), st.just(1), st.floats(0, 1),
    st.integers(1, 2**39), st.integers(0, 10**6), st.none() | st.integers(1, 2**60),
    st.none() | st.integers(0, 2**61),
)  # fmt: skip
texts = st.text(st.characters(codec="utf-8"), max_size=30)
names = st.text(string.ascii_letters + "é ü-_ß", min_size=1, max_size=9).filter(str.strip)
intervals = st.integers(10**8, 2**61)


@FEW
@given(machines, traffics, st.sampled_from(sorted(ROUTINGS)), st.none() | st.floats(0, 1e6),
       st.none() | st.integers(-(2**39), 2**39), st.integers(0, 2**63 - 1), texts, names,
       intervals, st.integers(10**9, 6 * 10**13), st.booleans())  # fmt: skip
def test_an_experiment_is_the_same_after_writing_and_reading(
    machine: Dragonfly, traffic: Traffic, routing: str, threshold: float | None, bias: int | None,
    seed: int, about: str, name: str, interval: int, flush: int, ports: bool,
) -> None:  # fmt: skip
    assume(traffic.stop_ps is None or traffic.warmup_ps < traffic.stop_ps)
    end = min(2**62, interval * 90_000)
    made = Experiment(
        name, about, machine, NetworkSettings(routing, threshold=threshold, bias=bias), (traffic,),
        run=RunSettings(end, "null", interval, seed=seed),
        metrics=Metrics(interval, ports, not ports, flush),
    )  # fmt: skip
    try:
        made.model()
    except Refused:
        assume(False)
    text = made.to_toml()
    assert parse(text, "x.toml") == made
    assert parse(text, "x.toml").to_toml() == text
    assert all(
        f"\n{key.name} = " in f"\n{text}" for key in OPEN if key.field and not is_own_seed(key)
    )
    conforms(tomllib.loads(text))


def test_a_change_is_read_as_toml_or_as_text() -> None:
    made = parse("[machine]\ngroups = 9", "x.toml", [
        "machine.groups=17", "run.duration=10us", 'run.checkpoint_every="2 us"', "name=2026-11-15",
        "metrics.ports=false", "traffic.load = 0.5", "about=1\nx=2", "network.routing=par",
        "traffic.load=0.6", "metrics.channels=True", "traffic.hot=.5", "network.threshold=2.",
    ])  # fmt: skip
    assert (made.metrics.channels, made.traffic[0].hot) == (True, 0.5)
    assert made.network.threshold == 2
    assert made.machine.groups == 17
    assert (made.run.end, made.run.checkpoint_every) == (10 * US, 2 * US)
    assert (made.name, made.about) == ("2026-11-15", "1\nx=2")
    assert (made.metrics.ports, made.traffic[0].load) == (False, 0.6)


def test_a_machine_that_memory_cannot_hold_is_refused_with_both_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "[machine]\nnodes = 200\nrouters = 64\nglobal_links = 256\ngroups = 16_384\n" \
           "links_per_pair = 1"  # fmt: skip
    monkeypatch.setattr(building, "host_memory", lambda: 16 * 10**9)
    problems = refusal(text)
    assert len(problems) == 1
    assert re.fullmatch(
        r"demo\.toml: machine\.groups = 16384: 209,715,200 nodes and 1,048,576 routers of 519 "
        r"ports need 4\d\d GB of memory, and there are 16 GB",
        problems[0],
    )
    monkeypatch.setattr(launcher, "hosts", lambda: 100)
    assert parse(text, "x.toml").machine.n_nodes == 209_715_200


def test_hosts_are_counted_as_the_launcher_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*launcher.SIZES, *launcher.RANKS, *launcher.HERE):
        monkeypatch.delenv(name, raising=False)
    assert launcher.hosts() == 1
    monkeypatch.setenv("PMI_SIZE", "8")
    assert launcher.hosts() == 8
    monkeypatch.setenv("MPI_LOCALNRANKS", "4")
    assert launcher.hosts() == 2


@pytest.mark.parametrize("name", ROUTERS)
def test_a_named_router_sets_what_it_stands_for_and_a_file_may_say_otherwise(name: str) -> None:
    text = f"[machine]\npreset = 'kim-72'\n[network]\nrouter = '{name}'\n"
    model, plain = parse(text, "x.toml").model(), parse("[machine]\npreset = 'kim-72'", "x.toml")
    assert model == replace(plain.model(), **ROUTERS[name])
    other = text + "crossbar = 3\noutput_buffer = '2 KiB'\n[nic]\ninjection_channels = 1\n"
    changes = {"crossbar": 3.0, "output_buffer": 2048, "injection_channels": 1}
    assert parse(other, "x.toml").model() == replace(model, **changes)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("router = 'merlin'\ncrossbar = 'ideal'", "sight = \"output\" (as in router merlin)"),
        ("router = 'merlin'\npacket = '15 KiB'",
         "output_buffer = \"14000 B\" (as in router merlin): must hold a packet of 15360 B"),
        ("router = 'booksim'\nvcs = 'one'", "injection_channels = 2 (as in router booksim): 1 .. "),
    ],
)  # fmt: skip
def test_what_is_refused_of_a_named_router_is_shown_as_that_router_has_it(
    given: str, said: str
) -> None:
    problems = refusal(f"[machine]\npreset = 'kim-72'\n[network]\n{given}")
    assert any(said in problem for problem in problems), problems


@pytest.mark.parametrize("router", ["ideal", "merlin", "booksim"])
@pytest.mark.parametrize("routing", ["minimal", "ugal-l"])
@pytest.mark.parametrize("preset", ["kim-72", "kim-1056", "theta"])
def test_memory_is_estimated_from_above_and_not_far(preset: str, routing: str, router: str) -> None:
    network = Network(PRESETS[preset].machine, Traffic(), routing, **ROUTERS[router])
    state = network.state(0, int(network.units()[-1]))
    taken = sum(array.nbytes for array in state if hasattr(array, "nbytes"))
    estimate = memory_bytes(network.machine, network.channels, network.switched)
    assert taken < estimate < 2 * taken


@pytest.mark.parametrize("model", ["poisson", "lublin", "mira", "rmap-random"])
def test_more_jobs_than_there_is_memory_for_are_refused_before_any_is_made(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "host_memory", lambda: 16 * 10**9)
    text = f"""
        fidelity = "job"
        [trace]
        model = "{model}"
        nodes = 64
        jobs = 1_000_000_000
    """
    words = "they need 144 GB of memory or more, and there are 16 GB"
    assert refusal(text) == [f"demo.toml: trace.jobs = 1000000000: {words}"]
