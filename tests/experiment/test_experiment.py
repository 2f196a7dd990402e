"""Experiment files: what they make, and that whatever is wrong with one is told, all of it."""

from __future__ import annotations

import json
import pickle
import re
import string
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from odonata.agents.network import FORWARDINGS, VCS, Network
from odonata.agents.patterns import EXCHANGES
from odonata.agents.patterns import PATTERNS as JOB_PATTERNS
from odonata.agents.router import VIAS
from odonata.agents.traffic import ARRIVALS, PATTERNS, Traffic
from odonata.agents.workload import Workload
from odonata.commands import schema
from odonata.commands.cli import cli
from odonata.commands.options import network_options
from odonata.commands.presets import workload
from odonata.experiment import keys
from odonata.experiment import reading as experiment
from odonata.experiment.keys import BY_PATH, KEYS, SECTIONS, Key
from odonata.experiment.reading import Experiment, Metrics, load, memory_bytes, parse, round_up
from odonata.experiment.values import read
from odonata.jobs.request import Job
from pdes import launcher
from pdes.driver import PROTOCOLS
from pdes.errors import Refused
from policies.allocation import ALLOCATIONS
from policies.routing import ROUTINGS
from policies.scheduling import DISCIPLINES
from topology import BadMachine, Dragonfly, LinkClass
from topology.dragonfly import CABLINGS
from topology.presets import PRESETS

FILES = sorted((Path(__file__).parents[2] / "scripts" / "experiments").glob("*.toml"))
US = 10**6
OPEN = tuple(key for key in KEYS if key.section not in keys.OF_JOBS)
"""Without those of jobs, which are in test_job_experiments.py."""
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MANY = settings(FEW, max_examples=300)


def attempt(text: str, *changes: str) -> tuple[Experiment | None, list[str]]:
    """What it makes, or the problems it has, one a line. Nothing but Refused is caught."""
    try:
        return parse(text, "demo.toml", changes), []
    except Refused as refused:
        return None, str(refused).split("\n")


def refusal(text: str, *changes: str) -> list[str]:
    """The problems of what must be refused."""
    made, problems = attempt(text, *changes)
    assert made is None
    return problems


# -- the table


def test_a_default_in_the_table_is_that_of_the_field() -> None:
    made = parse("", "x.toml").network
    assert made == Network(PRESETS[keys.PRESET].machine, Traffic())
    owners = {"traffic": Traffic, "scheduler": Workload, "nic": Workload, "jobs": Job}
    sections = ("network", *owners)
    for key in (*KEYS, *keys.JOB_KEYS):
        known = key.section in sections or key.path == "run.seed"
        if known and key.default is not None and key.path != "jobs.count":
            owner = owners.get(key.section, Network)
            field = next(field for field in fields(owner) if field.name == key.last)
            assert read(key, key.default) == field.default, key.path


def test_everything_a_network_has_can_be_set() -> None:
    has = {"network.machine." + f.name for f in fields(Dragonfly) if "LinkClass" not in str(f.type)}
    for link in ("terminal", "local", "global_"):
        has |= {f"network.machine.{link}.{f.name}" for f in fields(LinkClass)}
    has |= {f"network.traffic.{f.name}" for owner in (Traffic, Workload) for f in fields(owner)}
    has -= {"network.traffic.jobs"}
    has |= {f"network.{f.name}" for f in fields(Network)} - {"network.machine", "network.traffic"}
    assert has == {field for field in keys.BY_FIELD if field.startswith("network.")}
    assert len({key.name for key in KEYS}) == len(KEYS)
    assert {f.name for f in fields(Job)} | {"count"} == {key.field for key in keys.JOB_KEYS}


def test_the_words_in_the_table_are_those_accepted() -> None:
    words = {"cabling": CABLINGS, "routing": ROUTINGS, "via": VIAS, "forwarding": FORWARDINGS,
             "vcs": VCS, "pattern": PATTERNS, "arrivals": ARRIVALS, "protocol": PROTOCOLS,
             "allocation": ALLOCATIONS, "order": DISCIPLINES}  # fmt: skip
    told = {key.name: set(key.words) for key in KEYS if key.words}
    assert told == {name: set(those) for name, those in words.items()}
    told = {key.name: set(key.words) for key in keys.JOB_KEYS if key.words}
    assert told == {"pattern": set(JOB_PATTERNS), "exchange": set(EXCHANGES),
                    "mapping": {"random", "linear"}}  # fmt: skip


# -- what a file makes


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
    network = Network(machine, traffic, "par", packet_bytes=1024, bias=-2048, threshold=2.0, seed=3)
    metrics = Metrics(10**6, ports=True, channels=False, flush_s=0.25)
    assert parse(text, "runs/first.toml") == Experiment(
        "first", "a try", network, 20 * US, "window", 1_500_000, metrics
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
    assert made.network == Network(PRESETS[name].machine, Traffic(**traffic), **network)
    assert made.end == end


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
    try:
        network = Network(machine, traffic, routing, threshold=threshold, bias=bias, seed=seed)
    except Refused:
        assume(False)
    assume(traffic.stop_ps is None or traffic.warmup_ps < traffic.stop_ps)
    end = min(2**62, interval * 90_000)
    made = Experiment(name, about, network, end, "null", interval,
                      Metrics(interval, ports, not ports, flush / 10**12))  # fmt: skip
    text = made.to_toml()
    assert parse(text, "x.toml") == made
    assert parse(text, "x.toml").to_toml() == text
    assert all(f"\n{key.name} = " in f"\n{text}" for key in OPEN if key.path != "machine.preset")
    conforms(tomllib.loads(text))


def test_a_change_is_read_as_toml_or_as_text() -> None:
    made = parse("[machine]\ngroups = 9", "x.toml", [
        "machine.groups=17", "run.duration=10us", 'run.checkpoint_every="2 us"', "name=2026-11-15",
        "metrics.ports=false", "traffic.load = 0.5", "about=1\nx=2", "network.routing=par",
        "traffic.load=0.6", "metrics.channels=True", "traffic.hot=.5", "network.threshold=2.",
    ])  # fmt: skip
    assert (made.metrics.channels, made.network.traffic[0].hot) == (True, 0.5)
    assert made.network.threshold == 2
    assert made.network.machine.groups == 17
    assert (made.end, made.checkpoint_every) == (10 * US, 2 * US)
    assert (made.name, made.about) == ("2026-11-15", "1\nx=2")
    assert (made.metrics.ports, made.network.traffic[0].load) == (False, 0.6)


# -- what is refused


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("traffic.load = 1.5", "traffic.load = 1.5: above 0, at most 1 (of a node's link)"),
        ("traffic.load = nan", "traffic.load = nan: a number, finite and below 2**63"),
        ("traffic.load = true", "traffic.load = true: a number"),
        ("run.seed = 1.0", "run.seed = 1.0: a whole number"),
        ("run.seed = 1979-05-27", "run.seed = 1979-05-27: a whole number"),
        ("run.seed = []", "run.seed = a list: a whole number"),
        ("run.duration = 100",
         'run.duration = 100: a bare number; a time with its unit, as "1.5 us", or done'),
        ('run.duration = "5 parsecs"', 'run.duration = "5 parsecs": not a time: a number and one '
                                       "of ps, ns, us, ms, s; or done"),
        ('run.duration = ""', 'run.duration = "": not a time: a number and one of ps, ns, us, ms, '
                              "s; or done"),
        ('run.duration = "0 us"', 'run.duration = "0 us": above 0'),
        ('run.checkpoint_every = "0 us"', 'run.checkpoint_every = "0 us": above 0, or never'),
        ('network.packet = "4 KB"', 'network.packet = "4 KB": not a size: a number and one of B, '
                                    "kB, KiB, MB, MiB, GB, GiB"),
        ('network.routing = "ugall"', 'network.routing = "ugall": one of minimal, valiant, ugal-l, '
                                      "ugal-g, par, adaptive; did you mean ugal-l?"),
        ('network.local_buffer = "8 B"',
         'network.local_buffer = "8 B": must hold a packet of 512 B, all of it'),
        ('network.packet = "1 MiB"', 'network.local_buffer = "16 KiB" (by default): must hold a '
                                     "packet of 1048576 B, all of it"),
        ("machine.groups = 40",
         "machine.groups = 40: at most routers·global_links + 1 = 33 groups can be cabled"),
        ("machine.routers = 2", "machine.groups = 33 (as in kim-1056): at most "
                                "routers·global_links + 1 = 9 groups can be cabled"),
        ("machine.links_per_pair = 'some'",
         'machine.links_per_pair = "some": a whole number, or all'),
        ("machine.routers = 1_000_000_000_000",
         "machine.routers = 1000000000000: groups·routers·radix = 33000000000231000000000000 "
         "ports: at most 2147483647 can be numbered"),
        (f"machine.routers = 0x{'f' * 9000}",
         "machine.routers = about 2**36000: a whole number, below 2**63"),
        ("machine.group = 3", "machine.group: unknown; did you mean machine.groups?"),
        ("machine.colour = 3", "machine.colour: unknown; one of preset, nodes, routers, "
                               "global_links, groups, cabling, links_per_pair, terminal_bandwidth, "
                               "terminal_latency, local_bandwidth, local_latency, "
                               "global_bandwidth, global_latency"),
        ("network.load = 0.3", "network.load: unknown; it belongs in [traffic], as traffic.load"),
        ("seed = 3", "seed: unknown; it belongs in [run], as run.seed"),
        ("run.name = 'x'", "run.name: unknown; it belongs above all sections, as name"),
        ("[trafic]", "[trafic]: unknown; did you mean [traffic]?"),
        ("[power]", "[power]: unknown; one of [machine], [network], [traffic], [[jobs]], "
                    "[scheduler], [nic], [run], [metrics]"),
        ("machine = 3", "machine = 3: a section, [machine]"),
        ("[[machine]]", "machine = a list: a section, [machine]"),
        ("[name]", "name = a table: text"),
        ("name = ''", 'name = "": of 1 to 100 characters that can be printed, without a /'),
        ("name = 'a/b'", 'name = "a/b": of 1 to 100 characters that can be printed, without a /'),
        ("metrics.ports = 1", "metrics.ports = 1: true or false"),
        ("metrics.interval = '1 ps'", 'metrics.interval = "1 ps": 100,000,000 samples in 100 us; '
                                      "at most 100,000, as with 1 ns"),
        ("metrics.flush = '1 ps'", 'metrics.flush = "1 ps": 1 ms .. 60 s'),
        ("traffic.warmup = '1 ms'", 'traffic.warmup = "1 ms": must be less than the duration of '
                                    "100 us, or nothing is measured"),
        ("run.checkpoint_every = '1 ps'", 'run.checkpoint_every = "1 ps": 100,000,000 checkpoints '
                                          "in 100 us; at most 100,000"),
        ("traffic.warmup = '2 us'\ntraffic.stop = '1 us'",
         'traffic.warmup = "2 us": must be less than traffic.stop, 1 us, or nothing is measured'),
    ],
)  # fmt: skip
def test_a_problem_is_told_with_file_key_value_and_rule(text: str, line: str) -> None:
    found = refusal(text)
    assert f"demo.toml: {line}" in found
    assert len(found) == (3 if "1 MiB" in text else 1)  # there are three kinds of buffers


def test_everything_that_is_wrong_is_told_at_once_in_the_order_of_the_table() -> None:
    text = """
        nme = "x"
        [machine]
        nodes = 0
        groups = 40
        local_bandwidth = "1 kB/s"
        global_latency = 3
        [network]
        packet = "0 B"
        flit = "12 B"
        local_buffer = "10 B"
        vcs = "two"
        [traffic]
        pattern = "adversarial"
        load = 1.5
        message = "0 B"
        hot = 7
        [run]
        duration = "soon"
        [metrics]
        interval = "0 s"
        ports = "yes"
    """
    told = refusal(text, "machine.groups=41", "traffic.load=two", "foo", "machine=3", "load=0.2")
    assert [line.split(":")[0] for line in told] == [
        "demo.toml", "--set foo", "--set machine=3", "--set load=0.2", "demo.toml",
        "--set machine.groups=41", *["demo.toml"] * 5, "--set traffic.load=two", *["demo.toml"] * 5,
    ]  # fmt: skip
    named = [line.removeprefix("demo.toml: ").split(" ")[0] for line in told
             if line.startswith("demo.toml")]  # fmt: skip
    assert named == [
        "nme:", "machine.nodes", "machine.local_bandwidth", "machine.global_latency",
        "network.packet", "network.flit", "network.vcs", "traffic.message", "traffic.hot",
        "run.duration", "metrics.interval", "metrics.ports",
    ]  # fmt: skip


def test_a_problem_between_two_keys_is_not_told_of_one_that_is_wrong_already() -> None:
    text = '[network]\npacket = "0.5 B"\nlocal_buffer = "8 B"'
    assert len(refusal(text)) == 1
    text = '[machine]\ngroups = 99\n[traffic]\npattern = "adversarial"\nstride = 33'
    assert len(refusal(text)) == 1
    assert "adversarial" in refusal(text.replace("99", "33"))[0]


def test_what_a_change_breaks_is_told_with_the_change() -> None:
    good = "[machine]\ngroups = 33"
    assert refusal(good, "machine.groups=40")[0].startswith("--set machine.groups=40: at most")
    assert refusal(good, "machin.groups=40") == [
        "--set machin.groups=40: unknown; did you mean machine.groups?"
    ]
    assert refusal(good, "machine.groups") == [
        "--set machine.groups: a key and a value, as machine.groups=33"
    ]
    assert refusal(good, "traffic.load=")[0] == "--set traffic.load=: a number"
    parse("[machine]\ngroups = 40", "x.toml", ["machine.groups=33"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = 1\nb 2", "line 2, column 3: Expected '=' after a key in a key/value pair"),
        ("[run]\nseed = 1\nseed = 2\n[metrics]", "line 3, column 9: a key that was given before"),
        ("a = [\n\n", "line 2: Invalid value"),
        ("a = " + "[" * 9000, "nested too deeply"),
        ("\n[run]\nseed = " + "9" * 5000, "line 3: a number of 5000 digits"),
    ],
)
def test_broken_toml_is_told_with_its_line(text: str, told: str) -> None:
    assert refusal(text)[0].startswith(f"demo.toml: {told}")


def test_what_cannot_be_read_is_told_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"name = 'x'\nabout = '\xff'")
    (tmp_path / "large.toml").write_bytes(b"#" * (experiment.LONGEST_FILE + 1))
    for name, reason in (("none.toml", "No such file"), (".", "Is a directory"),
                         ("bytes.toml", "line 2: not text in UTF-8"), ("a\0b", "null byte"),
                         ("large.toml", "more than 33554432 bytes")):  # fmt: skip
        with pytest.raises(Refused, match=reason):
            load(tmp_path / name)
    (tmp_path / "windows.toml").write_bytes("\ufeff[run]\r\nseed = 4\r\n".encode())
    assert load(tmp_path / "windows.toml").network.seed == 4


# -- how large


def test_a_machine_that_memory_cannot_hold_is_refused_with_both_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "[machine]\nnodes = 200\nrouters = 64\nglobal_links = 256\ngroups = 16_384\n" \
           "links_per_pair = 1"  # fmt: skip
    monkeypatch.setattr(experiment, "host_memory", lambda: 16 * 10**9)
    told = refusal(text)
    assert len(told) == 1
    assert re.fullmatch(
        r"demo\.toml: machine\.groups = 16384: 209,715,200 nodes and 1,048,576 routers of 519 "
        r"ports need 4\d\d GB of memory, and there are 16 GB",
        told[0],
    )
    monkeypatch.setattr(launcher, "hosts", lambda: 100)
    assert parse(text, "x.toml").network.machine.n_nodes == 209_715_200


def test_hosts_are_counted_as_the_launcher_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*launcher.SIZES, *launcher.RANKS, *launcher.HERE):
        monkeypatch.delenv(name, raising=False)
    assert launcher.hosts() == 1
    monkeypatch.setenv("PMI_SIZE", "8")
    assert launcher.hosts() == 8
    monkeypatch.setenv("MPI_LOCALNRANKS", "4")
    assert launcher.hosts() == 2


@pytest.mark.parametrize("routing", ["minimal", "ugal-l"])
@pytest.mark.parametrize("preset", ["kim-72", "kim-1056", "theta"])
def test_memory_is_estimated_from_above_and_not_far(preset: str, routing: str) -> None:
    network = Network(PRESETS[preset].machine, Traffic(), routing)
    state = network.state(0, int(network.units()[-1]))
    taken = sum(array.nbytes for array in state if hasattr(array, "nbytes"))
    assert taken < memory_bytes(network.machine, network.channels) < 2 * taken


# -- many malformed files

WRONG = {
    "text": ["1", "true", "1979-05-27", "[]", "{}", "nan"],
    "word": ["1", "true", "[]", '""', '"besst"', "{ a = 1 }", "1979-05-27T07:32:00Z"],
    "whole": ["1.5", "nan", "inf", "true", '""', '"3"', "[1]", "{}", "1979-05-27", str(2**64),
              f"-{10**40}"],
    "number": ["nan", "inf", "-inf", "true", '"0.5"', '""', "[0.5]", "{}", "07:32:00", "1" * 400],
    "flag": ["1", "0", '"yes"', '""', "[]", "{}", "0.0"],
    "time": ["5", "5.0", "nan", '"5"', '""', '"5 lightyears"', '"-5 ns"', '"0.5 ps"', '"1e30 s"',
             '"ns"', '"nan s"', "true", "[]", "{}", '"1 KiB"'],
    "size": ["5", '"5"', '""', '"5 KB"', '"-5 B"', '"0.5 B"', '"1e99 GiB"', '"1 us"', "true", "{}"],
    "signed size": ["5", '"5"', '""', '"5 KB"', '"--5 B"', '"0.5 B"', '"1e99 GiB"', "true", "[]"],
    "bandwidth": ["5", '"5"', '""', '"5 Gb/s"', '"-5 GB/s"', '"0 GB/s"', '"1e999 GB/s"', "false",
                  '"5 GB"', "{}"],
}  # fmt: skip

ABSURD = {
    "machine.nodes": str(2**50), "machine.routers": str(2**50), "machine.groups": str(2**50),
    "machine.global_links": str(2**50), "machine.links_per_pair": str(2**50),
    "machine.local_bandwidth": '"1e9 TB/s"', "machine.global_latency": '"1000 s"',
    "network.packet": '"1 GiB"', "network.flit": '"1 GiB"', "network.local_buffer": '"999 TiB"',
    "network.threshold": "1e300", "network.bias": '"-999 TiB"', "network.delay": '"1e6 s"',
    "traffic.load": "1e-300", "traffic.message": '"999 TiB"', "traffic.messages": str(2**62),
    "traffic.stride": str(2**40), "traffic.hot": "1e10", "traffic.hot_every": str(2**50),
    "run.seed": "-1", "metrics.interval": '"1 ps"', "metrics.flush": '"1 s"'.replace("1", "1e6"),
}  # fmt: skip
"""One at a time: several may hide each other."""


def written(settings: dict[str, str]) -> str:
    """A file, from TOML values by path."""
    lines = [f"{path} = {value}" for path, value in settings.items() if "." not in path]
    for section in dict.fromkeys(path.split(".")[0] for path in settings if "." in path):
        lines.append(f"[{section}]")
        lines += [f"{path.split('.')[1]} = {value}" for path, value in settings.items()
                  if path.startswith(f"{section}.")]  # fmt: skip
    return "\n".join(lines)


VALID = {key.path: key.write(parse("", "valid.toml").value(key)) for key in OPEN}


@st.composite
def misspelt(draw: st.DrawFn) -> str:
    """The path of a key that there is not, by one edit."""
    key = draw(st.sampled_from(OPEN))
    at = draw(st.integers(0, len(key.name) - 1))
    letter = draw(st.sampled_from(string.ascii_lowercase))
    name = draw(st.sampled_from([
        key.name[:at] + key.name[at + 1 :],
        key.name[:at] + letter + key.name[at:],
        key.name[:at] + letter + key.name[at + 1 :],
        key.name[:at] + key.name[at + 1 : at + 2] + key.name[at] + key.name[at + 2 :],
        key.name.upper(),
        key.name.replace("_", "-") + "-" * ("_" not in key.name),
    ]))  # fmt: skip
    path = f"{key.section}.{name}" if key.section else name
    assume(path not in BY_PATH and path not in {*SECTIONS, "jobs"})
    return path


wrong_values = st.sampled_from(OPEN).flatmap(
    lambda key: st.tuples(st.just(key.path), st.sampled_from(WRONG[key.kind]))
)
unknown_paths = st.tuples(
    st.sampled_from(["", *(f"{section}." for section in SECTIONS)]),
    st.text(string.ascii_lowercase + string.digits + "_", min_size=1, max_size=20),
).map("".join)


@MANY
@given(
    st.lists(wrong_values, max_size=4),
    st.lists(misspelt(), max_size=2),
    st.lists(
        unknown_paths.filter(lambda path: path not in {*BY_PATH, *SECTIONS, "jobs"}), max_size=2
    ),
)
def test_each_of_several_mistakes_is_named(
    wrong: list[tuple[str, str]], misspelt: list[str], unknown: list[str]
) -> None:
    assume(wrong or misspelt or unknown)
    told = refusal(written(VALID | dict.fromkeys([*misspelt, *unknown], "1") | dict(wrong)))
    for path in dict(wrong):
        assert sum(line.startswith(f"demo.toml: {path} = ") for line in told) == 1, path
    for path in {*misspelt, *unknown}:
        assert sum(line.startswith(f"demo.toml: {path}: unknown; ") for line in told) == 1, path
    for path in misspelt:
        line = next(line for line in told if line.startswith(f"demo.toml: {path}: "))
        assert "did you mean" in line or "it belongs" in line
    assert len(told) == len({*dict(wrong), *misspelt, *unknown})


@pytest.mark.parametrize("path", ABSURD)
def test_an_absurd_size_is_refused_at_once_and_named(path: str) -> None:
    told = refusal(written({path: ABSURD[path]}))
    assert any(line.startswith(f"demo.toml: {path} = ") for line in told), told


toml_values = st.recursive(
    st.booleans().map(lambda flag: str(flag).lower())
    | st.integers().map(str)
    | st.floats().map(str)
    | st.text(string.printable, max_size=9).map(keys.quoted)
    | st.from_regex(r'"-?[0-9]{1,25}(\.[0-9]{1,3})? ?(ps|us|s|B|KiB|GiB|GB/s)"', fullmatch=True),
    lambda inner: st.lists(inner, max_size=2).map(lambda items: f"[{', '.join(items)}]"),
    max_leaves=3,
)


@MANY
@given(st.dictionaries(st.sampled_from(sorted(BY_PATH)), toml_values, max_size=8))
def test_whatever_a_file_holds_it_is_refused_in_words_or_right(given: dict[str, str]) -> None:
    made, problems = attempt(written(given))
    assert all(line.startswith("demo.toml: ") for line in problems)
    if made:
        assert parse(made.to_toml(), "again.toml") == made
    else:
        assert any(path in line for path in BY_PATH for line in problems)


@MANY
@given(st.text(max_size=40), st.integers(0, 2000), st.integers(0, 40))
def test_a_torn_file_is_refused_in_words_or_right(junk: str, at: int, cut: int) -> None:
    text = FILES[0].read_text()
    _, problems = attempt(text[:at] + junk + text[at + cut :])
    assert all(line.startswith("demo.toml: ") for line in problems)


@MANY
@given(st.text(max_size=20) | st.tuples(st.sampled_from(sorted(BY_PATH)), st.text(max_size=12)).map(
    "=".join))  # fmt: skip
def test_whatever_a_change_holds_it_is_refused_in_words_or_right(change: str) -> None:
    _, problems = attempt("", change)
    assert all(line.startswith(("--set ", "demo.toml: ")) for line in problems)
    assert len(problems) <= 3


# -- in Python


def test_an_object_is_refused_with_all_its_problems() -> None:
    with pytest.raises(Refused) as traffic:
        Traffic("random", load=2.0, hot=-1.0)
    assert str(traffic.value).count("\n") == 2
    assert [problem.fields for problem in traffic.value.problems] == [
        ("pattern",), ("load",), ("hot",)
    ]  # fmt: skip
    with pytest.raises(Refused) as network:
        Network(Dragonfly(2, 4, 2, 9), Traffic("adversarial", stride=9), "best", local_buffer=8)
    blamed = [problem.fields[0] for problem in network.value.problems]
    assert blamed == ["routing", "local_buffer", "traffic.stride"]
    with pytest.raises(BadMachine) as machine:
        Dragonfly(0, 4.0, 2, 9, "any")  # type: ignore[arg-type]
    assert [problem.fields[0] for problem in machine.value.problems] == [
        "nodes", "routers", "cabling"
    ]  # fmt: skip
    with pytest.raises(BadMachine) as link:
        LinkClass(0, -1)
    assert [str(problem) for problem in link.value.problems] == str(link.value).splitlines()
    for refused in (traffic, network, machine, link):
        assert pickle.loads(pickle.dumps(refused.value)).problems == refused.value.problems


# -- on the command line


def test_options_are_made_from_the_table() -> None:
    @click.command()
    @network_options
    def tell(network: Network) -> None:
        print(
            network.traffic[0].messages, network.threshold, network.bias, network.traffic[0].stop_ps
        )

    def told(*words: str) -> str:
        return CliRunner().invoke(tell, ["--preset", "codes-c", *words]).output

    assert told() == "50 None None None\n"
    assert told("--messages", "any", "--bias", "-4 KiB", "--stop", "1us", "--threshold", "2") == (
        "None 2.0 -4096 1000000\n"
    )
    assert "'many' is not a whole number; or any" in told("--messages", "many")
    named = {option.name for option in tell.params}
    known = {key.option or key.name for section in ("machine", "network", "traffic")
             for key in keys.of(section)}  # fmt: skip
    assert named == known | {"seed"}


# -- the schema

TYPES = {"object": dict, "string": str, "boolean": bool, "integer": int, "number": int | float,
         "array": list}  # fmt: skip


def conforms(value: Any, to: Any = None) -> None:
    """Assert that a value is as a JSON Schema wants it, which uses no other words than these."""
    if to is None:
        to = SCHEMA
    assert {*to} <= {"$schema", "title", "description", "default", "type", "properties", "anyOf",
                     "additionalProperties", "enum", "const", "pattern", "minimum", "maximum",
                     "exclusiveMinimum", "minLength", "maxLength", "items", "minItems",
                     "required", "not"}  # fmt: skip
    if "type" in to:
        assert isinstance(value, TYPES[to["type"]]), value
        assert isinstance(value, bool) == (to["type"] == "boolean"), value
    if "anyOf" in to:
        assert any(fits(value, one) for one in to["anyOf"]), value
    assert "not" not in to or not {*to["not"]["required"]} <= {*value}
    assert {*to.get("required", ())} <= {*value} if "required" in to else True
    if to.get("type") == "array":
        assert len(value) >= to.get("minItems", 0)
        for item in value:
            conforms(item, to["items"])
    assert value in to.get("enum", [value])
    assert value == to.get("const", value)
    assert "pattern" not in to or re.search(to["pattern"], value), value
    if to.get("type") in ("integer", "number"):
        assert to.get("minimum", value) <= value <= to.get("maximum", value)
        assert "exclusiveMinimum" not in to or value > to["exclusiveMinimum"]
    if to.get("type") == "string":
        assert to.get("minLength", 0) <= len(value) <= to.get("maxLength", len(value))
    if to.get("type") == "object":
        assert to["additionalProperties"] is False
        for name, part in value.items():
            assert name in to["properties"]
            conforms(part, to["properties"][name])


def fits(value: Any, to: Any = None) -> bool:
    try:
        conforms(value, to)
    except AssertionError:
        return False
    return True


SCHEMA = json.loads(schema.to_json())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_schema_accepts_what_we_ship(path: Path) -> None:
    conforms(tomllib.loads(path.read_text()))


def test_the_schema_tells_every_key_and_its_default_conforms() -> None:
    for key in (*KEYS, *keys.JOB_KEYS):
        part = SCHEMA["properties"][key.section] if key.section else SCHEMA
        part = part.get("items", part)
        told = part["properties"][key.name]
        assert told["description"].startswith(key.about)
        assert told.get("default") == key.default
        if key.default is not None:
            conforms(key.default, told)


BEYOND = {'"0.5 ps"', '"1e30 s"', '"0.5 B"', '"1e99 GiB"', '"0 GB/s"', '"1e999 GB/s"'}
"""What no pattern can tell."""


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_the_schema_refuses_what_is_of_another_kind(key: Key) -> None:
    for value in WRONG[key.kind]:
        assert value in BEYOND or not fits(tomllib.loads(written({key.path: value}))), value


@pytest.mark.parametrize("key", [k for k in KEYS if k.kind in ("whole", "number")],
                         ids=lambda key: key.path)  # fmt: skip
def test_the_limits_in_the_schema_are_those_that_are_enforced(key: Key) -> None:
    def complaints(value: float) -> list[str]:
        jobs = "jobs = [{nodes = 2}]\n" * (key.section in keys.OF_JOBS)
        room = {"machine.links_per_pair": "1"} if key.section == "machine" else {}
        _, problems = attempt(jobs + written(room | {key.path: str(value)}))
        return [line for line in problems if f": {key.path} = " in line]

    for limit, step in ((key.least, -1), (key.above, 0), (key.most, 1)):
        if limit is not None:
            assert complaints(limit + step), limit
    if key.least is not None and key.path != "machine.global_links":
        assert not complaints(key.least)
    if key.above is not None:
        assert not complaints(key.above + 1e-3)


def test_the_template_loads_and_is_all_defaults() -> None:
    text = CliRunner().invoke(cli, ["schema", "--toml"]).stdout
    assert parse(text, "experiment.toml") == parse("", "experiment.toml")
    assert max(map(len, text.splitlines())) <= 100
    conforms(tomllib.loads(text))
    everything = re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE)
    assert parse(everything, "x.toml") == parse("", "experiment.toml")
    assert sum(map(len, tomllib.loads(everything).values())) > len(OPEN)
    shown = re.sub(r"^#(\w+ = |\[)", r"\1", text, flags=re.MULTILINE)
    jobs = re.sub(r"\[traffic\].*?(?=\n# A job)", "", shown, flags=re.DOTALL)
    made = parse(jobs, "x.toml").network.workload
    assert made == Workload((Job(16),))
    assert set(tomllib.loads(jobs)["jobs"][0]) == {key.name for key in keys.JOB_KEYS}


def test_the_table_tells_every_key() -> None:
    told = CliRunner().invoke(cli, ["schema"]).stdout
    everything = (*KEYS, *keys.JOB_KEYS)
    assert all(re.search(rf"^ *{key.name} ", told, re.MULTILINE) for key in everything)
    assert "[[jobs]]" in told
    assert all(f"[{section}]" in told for section in SECTIONS)
    assert json.loads(CliRunner().invoke(cli, ["schema", "--json"]).stdout) == SCHEMA
