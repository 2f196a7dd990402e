"""`odonata topology`, and the units and options it brought."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from odonata.commands.options import machine_options
from odonata.commands.topology import command as topology
from odonata.commands.topology_shown import share
from odonata.experiment.units import bandwidth, show_bandwidth, size_bytes
from odonata.figures.machine import draw
from pdes.errors import Refused
from topology import Dragonfly
from topology.presets import PRESETS

Run = Callable[..., subprocess.CompletedProcess[str]]


def run(*words: str) -> str:
    result = CliRunner().invoke(topology, words)
    if result.exception:
        raise result.exception
    return " ".join(result.stdout.split())


def ask(*words: str) -> Any:
    return json.loads(run(*words, "--json"))


def test_a_machine_is_described_in_a_table() -> None:
    table = run("kim-1056", "--ranks", "4")
    for words in ("264 routers of 15 ports", "528 of 25 GB/s and 300 ns", "6.8 TB/s each way",
                  "diameter 3", "a packet visits 3.696 routers", "ISCA 2008",
                  "on 4 ranks 8 or 9 groups each", "lookahead at least 300 ns"):  # fmt: skip
        assert words in table


def test_the_same_as_json() -> None:
    printed = ask("frontier", "--ranks", "2")
    assert printed["counts"]["nodes"] == 37_888
    assert printed["counts"]["dark_ports"] == 74 * 220
    assert printed["machine"]["global"] == {"bandwidth": 25e9, "latency_ps": 300_000}
    assert printed["measures"]["diameter"] == 3
    assert printed["ranks"]["crossing"] == 37 * 37 * 4
    assert not printed["changed"]


def test_what_is_given_overrides_the_preset() -> None:
    printed = ask("theta", "--groups", "5", "--links-per-pair", "all", "--cabling", "circulant",
               "--global-bandwidth", "8 Gbit/s", "--local-latency", "7ns")  # fmt: skip
    assert printed["changed"]
    assert printed["counts"]["links_per_pair"] == 240
    assert printed["machine"]["cabling"] == "circulant"
    assert printed["machine"]["global"] == {"bandwidth": 1e9, "latency_ps": 100_000}
    assert printed["machine"]["local"] == {"bandwidth": 5.25e9, "latency_ps": 7000}


def test_every_preset_is_listed_with_its_source() -> None:
    table = run("--list")
    assert all(name in table for name in PRESETS)
    assert set(ask("--list")) == set(PRESETS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--groups", "40"], r"groups = 40: at most routers·global_links \+ 1 = 33"),
        (["frontir"], "preset 'frontir': one of .* did you mean frontier"),
        (["theta", "--preset", "frontier"], "two presets, theta and frontier: name one"),
        (["--local-bandwidth", "1 kB/s"], r"local bandwidth = 1000 B/s: 1 MB/s"),
        (["--global-latency", "2s"], "global latency = 2000000000000 ps: 0 .. 1 s"),
        (["--ranks", "34"], "34 ranks: this model has 33 partitions"),
        (["--ranks", "0"], "0 ranks: at least one"),
        (["--plot", "x.gif"], r"--plot x\.gif: the name must end in \.png, \.svg, \.pdf"),
    ],
)
def test_bad_requests_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        run(*words)


def test_a_refusal_is_one_line_and_status_two(odonata: Run) -> None:
    done = odonata("topology", "--groups", "40")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("odonata: groups = 40: ")


def test_a_value_without_meaning_names_the_option() -> None:
    for option, value in (("--links-per-pair", "x"), ("--local-bandwidth", "8"),
                          ("--local-latency", "soon")):  # fmt: skip
        result = CliRunner().invoke(topology, [option, value])
        assert result.exit_code == 2
        assert option in result.output


@pytest.mark.parametrize("name", ["kim-72", "frontier"])
def test_a_picture_is_drawn(name: str, tmp_path: Path) -> None:
    draw(PRESETS[name].machine, tmp_path / "m.png")
    picture = (tmp_path / "m.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 50_000


@pytest.mark.parametrize(
    "machine",
    [
        Dragonfly(1, 1, 0, 1),
        Dragonfly(4, 8, 0, 1),
        Dragonfly(1, 1, 1, 2),
        Dragonfly(4, 30, 0, 1),
        Dragonfly(1, 1, 50, 51),
        pytest.param(Dragonfly(1, 1600, 0, 1), marks=pytest.mark.long),
    ],
)
def test_even_odd_machines_can_be_drawn(machine: Dragonfly, tmp_path: Path) -> None:
    draw(machine, tmp_path / "m.svg")
    assert b"<svg" in (tmp_path / "m.svg").read_bytes()


def test_the_command_draws_and_exports(tmp_path: Path) -> None:
    run("kim-72", "--plot", str(tmp_path / "m.pdf"), "--graphml", str(tmp_path / "m.graphml"))
    assert (tmp_path / "m.pdf").read_bytes().startswith(b"%PDF")
    assert "graphml" in (tmp_path / "m.graphml").read_text()[:200]


def test_cables_that_cross_ranks_are_counted() -> None:
    m = Dragonfly(1, 4, 4, 5)
    owner = [0, 0, 1, 1, 1] if share(m, 2).groups == [2, 3] else [0, 0, 0, 1, 1]
    crossing = sum(owner[i] != owner[j] for i, _, j, _ in m.global_cables().tolist())
    assert share(m, 2).crossing == crossing
    assert share(m, 1).crossing == 0


def test_any_command_can_ask_for_a_machine() -> None:
    @click.command()
    @machine_options
    @click.option("--load", default=0.5)
    def simulate(machine: Dragonfly, preset: str, load: float) -> None:
        print(machine.n_nodes, load)

    assert CliRunner().invoke(simulate, ["--preset", "kim-72"]).stdout == "72 0.5\n"
    assert CliRunner().invoke(simulate, ["--load", "1"]).stdout == "1056 1.0\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8 Gbit/s", 1e9),
        ("25GB/s", 25e9),
        ("5.25 GiB/s", 5.25 * 2**30),
        ("1e3 kB/s", 1e6),
        ("2 B/s", 2.0),
    ],
)
def test_bandwidths_are_bytes_per_second(text: str, value: float) -> None:
    assert bandwidth(text) == value


@pytest.mark.parametrize("text", ["8", "8 Gb/s", "GB/s", "8 GB", "nan GB/s", ""])
def test_what_is_not_a_bandwidth_is_told_so(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a bandwidth: .*Gbit/s, GB/s, GiB/s"):
        bandwidth(text)


@pytest.mark.parametrize("text", ["0 GB/s", "-1 GB/s", "1e400 GB/s", "1e9999999999999999999 B/s"])
def test_a_bandwidth_is_positive_and_finite(text: str) -> None:
    with pytest.raises(ValueError, match="more than zero, and finite"):
        bandwidth(text)


def test_sizes_are_whole_bytes() -> None:
    assert [size_bytes(t) for t in ("4 KiB", "2048B", "1.5 kB", "0 B")] == [4096, 2048, 1500, 0]
    for text, why in (("4", "is not a size"), ("-1 B", "not negative"), ("0.5 B", "whole number"),
                      ("1e30 GB", "the largest size")):  # fmt: skip
        with pytest.raises(ValueError, match=why):
            size_bytes(text)


def test_bandwidths_are_shown_with_four_figures() -> None:
    shown = [show_bandwidth(b) for b in (25e9, 5.25 * 2**30, 1e6, 270.1e12, 12.0, 0)]
    assert shown == ["25 GB/s", "5.637 GB/s", "1 MB/s", "270.1 TB/s", "12 B/s", "0 B/s"]
