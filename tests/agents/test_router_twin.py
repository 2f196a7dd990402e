"""Random networks, each run twice: by the kernels, and by the twin that was written from the
documentation alone (`tests/router_twin.py`). Every delivery and every counter must be the same.

Many more than the suite has time for:

    ODONATA_JIT=0 python tests/agents/test_router_twin.py 0 2000
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
import pytest
from random_networks import PATTERNS, ROUTINGS, duration, random_network
from router_twin import Twin

from odonata.agents.layout import (
    ARBITERS,
    CREDITS,
    DELIVERED,
    DELIVERED_BYTES,
    GENERATED,
    HOPS,
    LAST_IN,
    LATENCY_SUM,
)
from odonata.agents.metrics import COUNTERS
from odonata.agents.network import Network
from odonata.agents.packet import GROUP_SHIFT, ROUTER_SHIFT
from odonata.agents.workload import Workload
from odonata.jobs.board import BEGAN, OVER
from odonata.jobs.request import WAITS, Job, Stage
from pdes.driver import run
from pdes.transport import Serial
from topology import Dragonfly, LinkClass
from topology.dragonfly import CABLINGS

QUEUE_TIMES = ("switch_ps", "room_ps", "eject_ps", "longest_ps")
WORD, GOLDEN = (1 << 64) - 1, 0x9E3779B97F4A7C15


# -- both, compared


class Watched(Network):
    """A network whose outcome has the histories of its nodes too, and that goes on when it is
    deadlocked, as the twin does."""

    watches = False

    def outcome(self, state: Any, *rest: Any) -> dict[str, Any]:
        return {**super().outcome(state, *rest), "history": state.history.copy()}


def by_kernels(network: Network, until: int) -> Any:
    fields = {f.name: getattr(network, f.name) for f in dataclasses.fields(network)}
    return run(Watched(**fields), until, transport=Serial(), show_compiling=False).outcome


def address(network: Network, node: int) -> int:
    group, router, place = network.machine.where(node)
    return (group << GROUP_SHIFT) | (router << ROUTER_SHIFT) | place


def difference(network: Network, until: int, twin: Twin) -> str | None:
    """Returns in a line what differs first between kernels and twin, or None."""
    real = by_kernels(network, until)
    nodes = real["nodes"]
    for node, packets in enumerate(twin.deliveries):
        history = 0
        for packet in packets:
            ends = (address(network, packet.source) << 32) | address(network, packet.to)
            mixed = packet.time ^ ((ends * GOLDEN) & WORD) ^ ((packet.born << 20) & WORD)
            history = ((history ^ mixed ^ packet.size) * GOLDEN) & WORD
        ours = (
            twin.generated[node], len(packets), sum(p.size for p in packets),
            sum(p.time - p.born for p in packets), sum(p.routers for p in packets),
            packets[-1].time if packets else 0, history,
        )  # fmt: skip
        words = (GENERATED, DELIVERED, DELIVERED_BYTES, LATENCY_SUM, HOPS, LAST_IN)
        theirs = (*nodes[node, words].tolist(), int(real["history"][node]))
        if ours != theirs:
            names = ("generated", "delivered", "bytes", "latency", "routers", "last", "history")
            return _named(f"node {node}", names, theirs, ours)
    if network.workload:
        assert twin.jobs is not None
        for job, row in enumerate(real["board"][:, [BEGAN, OVER]].tolist()):
            ours = twin.jobs.board.jobs[job, [BEGAN, OVER]].tolist()
            if ours != row:
                return _named(f"job {job}", ("start", "end"), row, ours)
        if found := by_job(real, twin) or by_stage(real, twin):
            return found
    for place in np.argwhere((real["counters"] != twin.counters).any(axis=3))[:1].tolist():
        where = "group {}, port {}, VC {}".format(*place)
        return _named(where, COUNTERS, real["counters"][*place], twin.counters[*place])
    for place in np.argwhere(real["busy_ps"] != twin.busy_ps)[:1].tolist():
        where = "group {}, port {}".format(*place)
        return _named(where, ["busy_ps"], [real["busy_ps"][*place]], [twin.busy_ps[*place]])
    if network.crossbar is None:
        return None
    for place in np.argwhere((real["inputs"] != twin.queues).any(axis=3))[:1].tolist():
        where = "input of group {}, port {}, VC {}".format(*place)
        return _named(where, QUEUE_TIMES, real["inputs"][*place], twin.queues[*place])
    return None


def by_job(real: Any, twin: Twin) -> str | None:
    """Returns what differs in what was delivered to jobs."""
    packets = [packet for node in twin.deliveries for packet in node]
    for job, row in enumerate(real["by_job"].sum(0).tolist()):
        mine = [packet for packet in packets if packet.job == job]
        others = [packet for packet in mine if packet.non_minimal]
        ours = (
            len(mine), sum(p.size for p in mine), sum(p.time - p.born for p in mine),
            sum(p.routers for p in mine), len(others), sum(p.routers for p in others),
        )  # fmt: skip
        if ours != tuple(row):
            names = ("packets", "bytes", "latency", "routers", "non-minimal", "their routers")
            return _named(f"job {job}", names, row, ours)
    return None


def by_stage(real: Any, twin: Twin) -> str | None:
    """Returns what differs in what tasks did with their time."""
    assert twin.jobs is not None
    for row, theirs in enumerate(real["spent"].sum(0).tolist()):
        if theirs != twin.jobs.spent[row]:
            names = ("computed", "overhead", "sent", "waited")
            return _named(f"stage {row} of all jobs", names, theirs, twin.jobs.spent[row])
    return None


def _named(where: str, names: Any, theirs: Any, ours: Any) -> str:
    parts = [f"{name} {a} (twin {b})" for name, a, b in zip(names, theirs, ours, strict=True)
             if a != b]  # fmt: skip
    return f"{where}: {', '.join(parts)}"


def campaign(
    first: int, last: int, packets: int = 1000, enough: int = 1000, kind: type[Twin] = Twin,
    **given: Any,
) -> dict[str, int]:  # fmt: skip
    """Compare the networks of many seeds, and print those that differ, until that is `enough`.
    Returns how many `differ`, how many packets were delivered, and in how many networks each kind
    of waiting was seen."""
    seen: Counter[str] = Counter(packets=0, differ=0)
    for seed in range(first, last):
        if seen["differ"] >= enough:
            break
        network = random_network(seed, **given)
        until = duration(network, seed, packets)
        try:
            twin = kind(network).run(until)
            found = difference(network, until, twin)
        except Exception as error:
            found = f"{type(error).__name__}: {str(error)[:300]}"
        else:
            seen["packets"] += sum(map(len, twin.deliveries))
            seen.update(waits(twin))
        if found:
            seen["differ"] += 1
            print(f"seed {seed} ({describe(network)}): {found}", flush=True)
    print(f"{last - first} networks, {seen['packets']} packets, {seen['differ']} networks differ")
    return dict(seen)


def waits(twin: Twin) -> list[str]:
    """Returns the kinds of waiting that there were."""
    times = dict(zip(COUNTERS[3:], (twin.counters[..., 3], twin.counters[..., 4]), strict=True))
    times |= {name: twin.queues[..., n] for n, name in enumerate(QUEUE_TIMES)}
    return [name for name, values in times.items() if values.any()]


def describe(network: Network) -> str:
    names = ("routing", "via", "forwarding", "vcs", "crossbar", "arbiter", "output_buffer",
             "allocation_ps", "credit_delay_ps", "credits", "sight", "detours", "ejection",
             "duplex", "injection_channels")  # fmt: skip
    plain = {f.name: f.default for f in dataclasses.fields(network)}
    parts = [f"{name}={getattr(network, name)}" for name in names
             if getattr(network, name) != plain[name]]  # fmt: skip
    parts += ["traffic"] * bool(network.traffic) + ["jobs"] * bool(network.workload)
    return " ".join(parts)


# -- the suite's share


HERE = Path(__file__).parent
SHARES = ((0, 15), (15, 30), (30, 60), (60, 90), (90, 120))
"""Which of the random networks are simulated in one process."""
APART = "import json, sys; sys.path[:0] = sys.argv[1:3]; from test_router_twin import *; "
"""For a process without the compiler: a variant of the kernels takes longer to compile than many
small networks take to simulate without."""


@pytest.mark.parametrize(
    ("first", "end"),
    [SHARES[0], *(pytest.param(*share, marks=pytest.mark.long) for share in SHARES[1:])],
)
def test_kernels_and_twin_agree_on_every_packet(
    python: Callable[..., str], first: int, end: int
) -> None:
    code = f"print(json.dumps(campaign({first}, {end}, 600)))"
    *lines, last = python(APART + code, str(HERE), str(HERE.parent)).splitlines()
    seen = json.loads(last)
    assert seen["differ"] == 0, "\n".join(lines)
    assert seen["packets"] > 50 * (end - first)
    assert min(seen[name] for name in (*COUNTERS[3:], *QUEUE_TIMES)) >= (end - first) / 10


def test_the_suite_has_every_feature() -> None:
    networks = [random_network(seed) for seed in range(SHARES[-1][1])]
    for name, values in {
        "routing": ROUTINGS, "via": ("group", "router", "anywhere"), "credits": CREDITS,
        "forwarding": ("cut-through", "flit", "store"), "vcs": ("hops", "one"), "arbiter": ARBITERS,
        "sight": ("far", "output"), "duplex": ("full", "half"), "detours": (False, True),
    }.items():  # fmt: skip
        assert {getattr(network, name) for network in networks} == {*values}
    for name in ("crossbar", "output_buffer", "ejection", "workload"):
        assert {getattr(network, name) is None for network in networks} == {False, True}
    for name in ("allocation_ps", "credit_delay_ps"):
        assert {getattr(network, name) == 0 for network in networks} == {False, True}
    loads = [network.workload for network in networks if network.workload]
    stages = [stage for load in loads for job in load.jobs for stage in job.stages]
    assert {stage.wait for stage in stages} == {*WAITS}
    assert {stage.pattern for stage in stages} == {*PATTERNS, "halo4d"}
    asking = [network for network in networks if network.workload
              and any(it.wait == "replies" for job in network.workload.jobs for it in job.stages)
             ]  # fmt: skip
    assert {(network.ejection is None, network.duplex) for network in asking} == {
        (True, "full"), (False, "full"), (False, "half")
    }  # fmt: skip
    assert {bool(job.on) for load in loads for job in load.jobs} == {False, True}
    assert {network.injection_channels for network in networks} == {1, 2, 3, 4, 5}
    assert {network.machine.cabling for network in networks} == {*CABLINGS}
    assert {network.machine.copies > 1 for network in networks} == {False, True}


@pytest.mark.parametrize(
    ("name", "body", "first"),
    [
        ("order", "return (Twin.order(self, *what)[0], -what[1][0], what[1][1])", 0),
        ("given_back", "return what[1]", 0),
        ("begin_draining", "Twin.begin_draining(self, what[0] + 1, what[1])", 0),
        ("draining", "return self.drain.time(what[0].size)", 9),
    ],
    ids=["arbiter", "credits", "ejection", "requests"],
)
def test_a_twin_that_does_otherwise_is_found_out(
    python: Callable[..., str], name: str, body: str, first: int
) -> None:
    """From the first seed on that tells, as things are."""
    code = (
        f"exec('class Other(Twin):\\n  def {name}(self, *what): {body}');"
        f"print(json.dumps(campaign({first}, 40, 500, enough=1, kind=Other)))"
    )
    said = python(APART + code, str(HERE), str(HERE.parent)).splitlines()[-1]
    assert json.loads(said)["differ"] > 0


IN_STAGES = {
    "who asks down a tree has its replies": (Stage("tree-broadcast", 64, wait="replies"),),
    "overhead does not grow with imbalance": (
        Stage("permutation", 64, compute_ps=100_000, imbalance=1, overhead_ps=50_000),
    ),
    "the host has no part in a request": (Stage("incast", 64, wait="replies"),),
    "two messages at once to one task": (Stage("random-ring", 150, wait="nothing"),),
    "two phases at once": (Stage("permutation", 150, wait="nothing", repeat=2),),
    "two stages at once": (
        Stage("permutation", 150, wait="nothing"), Stage("permutation", 350, wait="nothing"),
    ),
}  # fmt: skip
"""Jobs of two tasks on two routers; packets overtake each other on the way."""


def in_stages(name: str) -> list[str]:
    """Returns what differs where a job has these stages."""
    local, found = LinkClass(1e9, 1000), []
    machine = Dragonfly(1, 4, 0, 1, "absolute", None, LinkClass(25e9, 1000), local, local)
    jobs = (Job(2, stages=IN_STAGES[name], mapping="linear", on=(0, 3)),)
    load = Workload(jobs, tasks_per_node=1, launch_ps=0, send_ps=0)
    for seed in range(8):
        network = Network(machine, workload=load, packet_bytes=100, routing="valiant",
                          detours=True, seed=seed)  # fmt: skip
        found.append(difference(network, 10_000_000, Twin(network).run(10_000_000)))
    return [each for each in found if each]


def test_small_jobs_in_stages_agree(python: Callable[..., str]) -> None:
    code = "print(json.dumps({name: in_stages(name) for name in IN_STAGES}))"
    found = json.loads(python(APART + code, str(HERE), str(HERE.parent)).splitlines()[-1])
    assert found == {name: [] for name in IN_STAGES}


def test_compiled_kernels_and_twin_agree_too() -> None:
    seen = campaign(0, 10, what="traffic", inside=False, routing="par")
    assert seen["differ"] == 0
    assert seen["packets"] > 1000


@pytest.mark.long
@pytest.mark.parametrize("share", range(20))
def test_more_networks_agree(python: Callable[..., str], share: int) -> None:
    first = SHARES[-1][1] + 50 * share
    code = f"print(json.dumps(campaign({first}, {first + 50})))"
    *lines, last = python(APART + code, str(HERE), str(HERE.parent)).splitlines()
    assert json.loads(last)["differ"] == 0, "\n".join(lines)


if __name__ == "__main__":
    sys.exit(campaign(int(sys.argv[1]), int(sys.argv[2]))["differ"] > 0)
