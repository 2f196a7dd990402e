"""Whatever is wrong with an experiment file is reported, all of it at once."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from files import refusal

from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.experiment.reading import LONGEST_FILE, load, parse
from pdes.errors import Refused
from policies.routing import ROUTINGS
from topology import BadMachine, Dragonfly, LinkClass


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
                                       "of ps, ns, us, ms, s, min, h, d; or done"),
        ('run.duration = ""', 'run.duration = "": not a time: a number and one of ps, ns, us, ms, '
                             "s, min, h, d; or done"),
        ('run.duration = "0 us"', 'run.duration = "0 us": above 0, or done'),
        ('run.checkpoint_every = "0 us"', 'run.checkpoint_every = "0 us": above 0, or never'),
        ('network.packet = "4 KB"', 'network.packet = "4 KB": not a size: a number and one of B, '
                                    "kB, KiB, MB, MiB, GB, GiB"),
        ('network.routing = "ugall"', 'network.routing = "ugall": '
                                      f"one of {', '.join(ROUTINGS)}; did you mean ugal-l?"
                                      "; one of your own: --plugin FILE, or plugins = [...]"),
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
        ("machine.zebra = 3", "machine.zebra: unknown; one of preset, nodes, routers, "
                               "global_links, groups, cabling, links_per_pair, terminal_bandwidth, "
                               "terminal_latency, local_bandwidth, local_latency, "
                               "global_bandwidth, global_latency"),
        ("network.load = 0.3", "network.load: unknown; it belongs in [traffic], as traffic.load"),
        ("seed = 3", "seed: unknown; it belongs in [run], as run.seed"),
        ("run.name = 'x'", "run.name: unknown; it belongs above all sections, as name"),
        ("[trafic]", "[trafic]: unknown; did you mean [traffic]?"),
        ("[watts]", "[watts]: unknown; one of [machine], [network], [traffic], [trace], [[jobs]], "
                    "[scheduler], [nic], [power], [market], [run], [metrics]"),
        ("[power]", "power.policy = \"none\" (by default): there are no [[jobs]] whose power it "
                    "could be"),
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
    problems = refusal(
        text, "machine.groups=41", "traffic.load=two", "foo", "machine=3", "load=0.2"
    )
    assert [line.split(":")[0] for line in problems] == [
        "demo.toml", "--set foo", "--set machine=3", "--set load=0.2", "demo.toml",
        "--set machine.groups=41", *["demo.toml"] * 5, "--set traffic.load=two", *["demo.toml"] * 5,
    ]  # fmt: skip
    named = [line.removeprefix("demo.toml: ").split(" ")[0] for line in problems
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
    ("text", "reason"),
    [
        ("a = 1\nb 2", "line 2, column 3: Expected '=' after a key in a key/value pair"),
        ("[run]\nseed = 1\nseed = 2\n[metrics]", "line 3, column 9: a key that was given before"),
        ("a = [\n\n", "line 2: Invalid value"),
        ("a = " + "[" * 9000, "nested too deeply"),
        ("\n[run]\nseed = " + "9" * 5000, "line 3: a number of 5000 digits"),
    ],
)
def test_broken_toml_is_told_with_its_line(text: str, reason: str) -> None:
    assert refusal(text)[0].startswith(f"demo.toml: {reason}")


def test_what_cannot_be_read_is_told_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"name = 'x'\nabout = '\xff'")
    (tmp_path / "large.toml").write_bytes(b"#" * (LONGEST_FILE + 1))
    for name, reason in (("none.toml", "No such file"), (".", "Is a directory"),
                         ("bytes.toml", "line 2: not text in UTF-8"), ("a\0b", "null byte"),
                         ("large.toml", "more than 33554432 bytes")):  # fmt: skip
        with pytest.raises(Refused, match=reason):
            load(tmp_path / name)
    (tmp_path / "windows.toml").write_bytes("\ufeff[run]\r\nseed = 4\r\n".encode())
    assert load(tmp_path / "windows.toml").run.seed == 4


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
    assert blamed == ["routing", "local_buffer", "traffic.0.stride"]
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
