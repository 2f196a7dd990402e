"""`odonata debug`, in a process of its own whose stdin is a script for pdb."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PATIENCE, clean_environment
from machines import network

from odonata.agents import node
from odonata.commands.stops import Stops
from odonata.results.run import open as open_run
from pdes.errors import Refused

FILE = """
name = "small"
[machine]
nodes = 2
routers = 3
global_links = 1
groups = 4
[network]
routing = "adaptive"
terminal_buffer = "1 KiB"
local_buffer = "1 KiB"
global_buffer = "1 KiB"
[traffic]
pattern = "hotspot"
load = 0.9
messages = 2
message = "1200 B"
[[jobs]]
name = "ring"
nodes = 4
pattern = "halo2d"
iterations = 1
arrival = "2 us"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "mine.toml").write_text(FILE)
    return tmp_path


@pytest.fixture
def debug(place: Path) -> Callable[..., str]:
    """Debug the experiment with these commands of pdb, and return what is printed."""

    def run(script: str, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "odonata", "debug", "mine.toml", *words],
            input=script, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=place,
            env=clean_environment(),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def quickly(place: Path, python: Callable[..., str]) -> Callable[..., str]:
    """Do the same in a process that is forked with everything imported."""

    def run(script: str, *words: str) -> str:
        return python(
            f"import io, sys; sys.stdin = io.StringIO({script!r})\n"
            "from odonata.commands.cli import cli\n"
            f"cli.main(['debug', 'mine.toml', *{words!r}], standalone_mode=False)"
        )

    return run


def stops_in(printed: str) -> list[tuple[int, str]]:
    """Returns when it stopped, in ps, and what is printed of the event."""
    units = {"ps": 1, "ns": 1000, "us": 1_000_000}
    found = re.findall(r"^(?:\(odonata\) )*--- ([\d.]+) (\w+): (.*)$", printed, re.MULTILINE)
    return [(round(float(time) * units[unit]), words) for time, unit, words in found]


def frames_in(printed: str) -> list[tuple[str, str]]:
    """Returns the module and the function in which it stopped."""
    return re.findall(r"^(?:\(odonata\) )*> .*/(\w+)\.py\(\d+\)(\w+)\(\)", printed, re.MULTILINE)


def test_it_stops_wherever_a_packet_is_handled_and_comes_to_the_same_end(
    debug: Callable[..., str], place: Path, go: Callable[..., str]
) -> None:
    """A packet that waits for credit at a router: it stops there twice. All of its times are those
    of its trace, and `c` goes on to the end with the digest of an ordinary run."""
    run = json.loads(go("run", "mine.toml", "--trace-packets", 1, "--json", "-o", "out",
                        ODONATA_JIT="0"))  # fmt: skip
    with open_run(place / "out") as opened:
        trace = opened.packet_trace
        hops = trace.hops
        waited = (hops["credit_ps"] > 0) & (hops["hop"] > 0)
        number = int(hops["packet"].data[waited][0])
        path = trace.packet(number)
    assert path.delivered_ps is not None
    script = "c\np int(sim.pool.rows[number, 8]), int(time)\n" + "c\n" * 40
    printed = debug(script, "--packet", str(number), "--no-checks")
    stops, frames = stops_in(printed), frames_in(printed)

    expected = [f"a packet is granted the link at node {path.source} ("]
    inside, times = [("link", "launch")], [path.generated_ps]
    for hop in path.hops[1:]:
        expected.append(f"a packet arrives at {hop.place} (")
        inside.append(("router", "arrive"))
        times.append(hop.arrived_ps)
        if hop.waits_ps.get("credit_ps"):
            expected.append(f"a packet is granted the link at {hop.place} (")
            inside.append(("link", "launch"))
            times.append(-1)
    expected.append(f"a packet is delivered to node {path.destination} (")
    inside.append(("dispatch", "hand_over"))
    times.append(path.delivered_ps)
    assert len(stops) == len(expected)
    assert frames == inside
    for (time, words), what, when in zip(stops[1:], expected[1:], times[1:], strict=True):
        assert words.startswith(what)
        assert when in (time, -1)
    assert f"({number}, {path.hops[1].arrived_ps})" in printed
    assert f"packet {number}: {path.bytes:,} B from node {path.source} to node" in printed
    assert f"digest {run['digest'][:12]}" in printed.splitlines()[-1]


@pytest.mark.long
def test_it_steps_from_event_to_event_and_stops_at_breakpoints_of_the_user(
    quickly: Callable[..., str],
) -> None:
    """It stops at the first event; from there by `n` out of the handler, to the next event."""
    ways_out = ["n"] * 60
    lines = Path(node.__file__).read_text(encoding="utf-8").splitlines()
    line = 1 + next(at for at, text in enumerate(lines) if "tally[DELIVERED] += 1" in text)
    printed = quickly("\n".join([*ways_out, f"b odonata/agents/node.py:{line}", "c",
                                 "p int(born)", "cl 1", "c"]) + "\n")  # fmt: skip
    stops = stops_in(printed)
    assert len(stops) >= 2
    assert stops[0][1].startswith("a message is generated at node")
    assert frames_in(printed)[0] == ("node", "generate")
    assert ("node", "deliver") in frames_in(printed)
    assert "digest" in printed.splitlines()[-1]


def test_it_stops_at_routers_and_nodes_with_what_waits_there(quickly: Callable[..., str]) -> None:
    printed = quickly("c\n" * 40 + "q\n", "--break-at", "router:3", "--break-at", "node:5")
    places = [words for _, words in stops_in(printed)]
    assert len(places) == 41
    assert all("router 3 (group 1)" in words or "node 5 (router 2," in words for words in places)
    assert {"router 3", "node 5"} == {re.search("(router 3|node 5) ", words)[1] for words in places}  # type: ignore[index]
    assert re.search(r"port \d \(to (router|node) \d+\), VC \d: \d+ wait, [\d,]+ B", printed)
    assert "credit for" in printed
    assert "next, unless the routing chooses another path: by port" in printed
    assert "odonata: left before the end" in printed


def test_it_stops_at_tasks_of_a_job_and_at_the_scheduler(quickly: Callable[..., str]) -> None:
    printed = quickly("c\n" * 9 + "q\n", "--break-at", "scheduler", "--break-at", "job:ring",
                      "--no-checks")  # fmt: skip
    stops, frames = stops_in(printed), frames_in(printed)
    assert stops[0] == (2_000_000, "the scheduler decides")
    assert frames[0] == ("network", "decide")
    assert "a task starts on node" in stops[1][1]
    assert ("task", "command") in frames
    assert ("task", "proceed") in frames
    assert "task 0 of ring, phase 0" in printed


def test_a_place_at_which_nothing_happens_is_said(quickly: Callable[..., str]) -> None:
    printed = quickly("", "--packet", "999999999", "--no-checks")
    assert "it never stopped: nothing happened there" in printed


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("router:36", "--break-at router:36: routers are 0 .. 35"),
        ("node:99", "--break-at node:99: nodes are 0 .. 71"),
        ("job:fft", "--break-at job:fft: the jobs are none"),
        ("scheduler", "--break-at scheduler: there are no"),
        ("time:3", "is not a time"),
        ("here", "a place is router:17, node:5, job:NAME"),
    ],
)
def test_a_place_that_is_none_is_refused(place: str, message: str) -> None:
    with pytest.raises(Refused, match=re.escape(message)):
        Stops(network(trace_packets=1), [place], [])
