from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from machines import PARALLEL, PATTERNS, ROUTINGS, SMALL, US, alone, network
from threads import go

from odonata.agents.audit import conclude
from odonata.agents.layout import (
    CAPACITY,
    CREDIT,
    DELIVER,
    DELIVERED,
    DELIVERED_BYTES,
    FAR,
    GENERATED,
    GENERATED_BYTES,
    HEAD,
    HOPS,
    LAST_IN,
    LATENCY_SUM,
    LONGEST,
    MEASURED,
    MEASURED_GENERATED,
    RETURNS,
)
from odonata.agents.network import COUNTERS, Network
from odonata.results.aries import aries
from odonata.results.performance import links, performance, ports_by_class
from pdes.errors import Refused
from topology import BadMachine, Dragonfly, LinkClass

PACKETS, FLITS, BYTES, STALL, WAIT = range(len(COUNTERS))


def sent(model: Network, outcome: Any, kind: str) -> Any:
    rows, _ = ports_by_class(model)[kind]
    return outcome["counters"][:, rows].reshape(-1, len(COUNTERS)).sum(axis=0)


# -- nothing is lost

DRAINED = 200 * US


@examples(20)
@given(
    st.sampled_from(ROUTINGS),
    st.sampled_from(PATTERNS),
    st.sampled_from((SMALL, PARALLEL, Dragonfly(3, 2, 2, 5), Dragonfly(2, 3, 2, 1))),
    st.sampled_from((1, 511, 512, 513, 3000)),
    st.sampled_from(("cut-through", "store")),
    st.sampled_from(("group", "router", "anywhere")),
    st.integers(0, 2**63 - 1),
)
def test_whatever_is_made_arrives_and_every_credit_returns(
    routing: str, pattern: str, machine: Dragonfly, size: int, forwarding: str, via: str, seed: int
) -> None:
    if machine.groups == 1 and pattern == "adversarial":
        pattern = "uniform"
    model = network(
        machine, routing=routing, pattern=pattern, message_bytes=size, forwarding=forwarding,
        via=via, seed=seed, messages=20, load=0.9,
    )  # fmt: skip
    state: Any = None
    original = Network.outcome

    def remembering(self: Network, s: Any, pending: Any, parcels: Any, time: int) -> Any:
        nonlocal state
        state = s, pending, parcels
        return original(self, s, pending, parcels, time)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Network, "outcome", remembering)
        result = alone(model, DRAINED)
    nodes = result.outcome["nodes"].sum(axis=0)
    assert nodes[GENERATED] >= 20 * (machine.n_nodes - 12)
    assert nodes[DELIVERED_BYTES] == nodes[GENERATED_BYTES] == nodes[GENERATED] * size
    assert nodes[DELIVERED] == nodes[GENERATED] * -(-size // model.packet_bytes)
    assert nodes[MEASURED] == nodes[MEASURED_GENERATED] == nodes[DELIVERED]
    last, pending, parcels = state
    assert len(pending) == 0
    channels, ports = last.ports[:, 1:], last.ports[:, 0]
    limited = ports[:, FAR] >= 0
    returning = np.zeros(channels.shape[:2], np.int64)
    for row, vc in np.argwhere(channels[:, :, RETURNS] >= 0):
        number = channels[row, vc, RETURNS]
        while number >= 0:
            returning[row, vc] += parcels[number, 2]
            number = parcels[number, 0]
    into_routers = limited & (ports[:, CAPACITY] < 2**50)
    back = (channels[:, :, CREDIT] + returning)[into_routers]
    assert (back == ports[into_routers, CAPACITY, None]).all()
    assert (channels[:, :, HEAD] < 0).all()
    for kind in ("inject", "eject"):
        assert sent(model, result.outcome, kind)[BYTES] == nodes[GENERATED_BYTES]
    routers = sum(
        sent(model, result.outcome, kind)[PACKETS]
        for kind in ("eject", "local", "global")
        if kind in ports_by_class(model)
    )
    assert routers == nodes[HOPS]


@pytest.mark.parametrize("routing", ROUTINGS)
def test_bytes_are_conserved_when_a_run_is_cut_short(routing: str) -> None:
    model = network(routing=routing, pattern="adversarial", load=1.0)
    result = alone(model)
    assert conclude(model, result.outcome) is None
    moving, blocked = result.outcome["bytes"].sum(axis=0)
    assert moving > 0
    assert blocked > 0


def test_a_lost_byte_is_noticed() -> None:
    model = network()
    outcome = dict(alone(model).outcome)
    outcome["nodes"] = outcome["nodes"].copy()
    outcome["nodes"][3, DELIVERED_BYTES] -= 1
    with pytest.raises(AssertionError, match="bytes were generated"):
        conclude(model, outcome)


@pytest.mark.parametrize("word", ["credit", "blocked", "size"])
def test_the_books_do_not_balance_after_a_forgery(word: str) -> None:
    """The audit can fail: change one number in a state that passes it."""
    from odonata.agents.audit import check
    from odonata.agents.layout import WAITING

    model = network(load=1.0, pattern="adversarial")
    seen: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Network, "check", lambda self, *rest: seen.append((self, *rest)))
        alone(model)
    model, state, pending, parcels = seen[-1]
    check(model, state, pending, parcels)
    if word == "credit":
        row = int(np.flatnonzero((state.ports[:, 0, FAR] >= 0) & (
            state.ports[:, 0, CAPACITY] < 2**50))[0])  # fmt: skip
        state.ports[row, 1, CREDIT] -= 1
    elif word == "blocked":
        state.slow[5, 0, WAITING] += 1
    else:
        head = state.ports[:, 1:, HEAD].max()
        parcels[head, 3] += 1
    with pytest.raises(AssertionError):
        check(model, state, pending, parcels)


# -- one answer


@pytest.mark.parametrize("routing", [
    each if each == "adaptive" else pytest.param(each, marks=pytest.mark.long)
    for each in ROUTINGS
])  # fmt: skip
def test_without_the_compiler_the_answer_is_the_same_and_the_invariants_hold(
    routing: str, odonata: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    words = ("bench", "dragonfly", "--nodes", "2", "--routers", "3", "--global-links", "2",
             "--groups", "7", "--routing", routing, "--traffic", "adversarial", "--load", "0.8",
             "--message", "1200 B", "--terminal-buffer", "1 KiB", "--local-buffer", "1 KiB",
             "--global-buffer", "1 KiB", "--duration", "800ns", "--json")  # fmt: skip
    compiled = json.loads(odonata(*words).stdout)
    debugged = json.loads(odonata(*words, "--debug", ODONATA_JIT="0").stdout)
    assert compiled["digest"] == debugged["digest"]
    assert compiled["packets"] == debugged["packets"] > 0
    assert compiled["kinds"]["credit"]["events"] > 0


@pytest.mark.parametrize("routing", ["minimal", "par"])
def test_a_run_resumed_from_a_checkpoint_ends_the_same(routing: str, tmp_path: Any) -> None:
    model = network(routing=routing)
    whole = alone(model)
    alone(model, 1 * US + 7, checkpoint_dir=tmp_path, checkpoint_every=US)
    resumed = alone(model, checkpoint_dir=tmp_path, resume=tmp_path)
    assert resumed.resumed_ps == US
    assert resumed.digest == whole.digest


def test_another_seed_gives_another_digest_and_the_same_seed_the_same() -> None:
    assert alone(network(seed=1)).digest == alone(network(seed=1)).digest
    assert alone(network(seed=1)).digest != alone(network(seed=2)).digest


# -- zero load


def path_latency(model: Network, source: int, goal: int) -> int:
    """Returns the latency of one packet on an empty network: links, pipelines, slowest link."""
    m = model.machine
    per_group = m.routers * m.nodes
    (g0, r0), (g1, r1) = ((n // per_group, n % per_group // m.nodes) for n in (source, goal))
    links, routers = [m.terminal], 1
    if g0 == g1:
        if r0 != r1:
            links, routers = [*links, m.local], 2
    else:
        gate, landing = (int(m.gates()[a, b, 0]) // m.global_links for a, b in ((g0, g1), (g1, g0)))
        steps = [m.local] * (gate != r0) + [m.global_] + [m.local] * (landing != r1)
        links, routers = [*links, *steps], 1 + len(steps)
    links.append(m.terminal)
    size = model.traffic[0].message_bytes
    each = [model.serialisation(link, size) for link in links]
    tail = sum(each) if model.forwarding == "store" else max(each)
    if model.forwarding == "flit":
        flits = [model.serialisation(link, model.flit_bytes) for link in links]
        tail = max(sum(flits[:at]) + whole for at, whole in enumerate(each))
    return sum(link.latency_ps for link in links) + routers * model.delay_ps + tail


@pytest.mark.parametrize("forwarding", ["cut-through", "flit", "store"])
@pytest.mark.parametrize("cabling", ["absolute", "relative", "circulant"])
def test_zero_load_latency_is_its_formula_for_every_pair(cabling: str, forwarding: str) -> None:
    """Each node sends to one other, at another time; different seeds, other pairs."""
    machine = dataclasses.replace(SMALL, cabling=cabling)
    seen = set()
    for seed in range(12):
        model = network(
            machine, pattern="permutation", messages=1, load=1e-5, message_bytes=512, seed=seed,
            forwarding=forwarding,
        )  # fmt: skip
        result = alone(model, 10**13)
        assert result.outcome["counters"][..., [STALL, WAIT]].sum() == 0, "two packets met"
        partners = model.traffic[0].partners(machine, seed, 0, machine.n_nodes)
        expected = np.zeros(machine.n_nodes, np.int64)
        for source, goal in enumerate(partners.tolist()):
            expected[goal] = path_latency(model, source, goal)
            seen.add(int(expected[goal]))
        assert (result.outcome["nodes"][:, LATENCY_SUM] == expected).all()
        assert (result.outcome["nodes"][:, LONGEST] == expected).all()
    paths = 6 if forwarding == "flit" else 5
    assert len(seen) == paths, "same router, same group, and g, lg or gl, lgl between groups"


# -- counters


def test_counters_add_up() -> None:
    model = network(routing="ugal-l", load=0.9)
    result = alone(model)
    counters, used = result.outcome["counters"], result.outcome["busy_ps"]
    assert (counters >= 0).all()
    assert (counters[..., BYTES] <= counters[..., FLITS] * model.flit_bytes).all()
    assert (counters[..., BYTES] <= counters[..., PACKETS] * model.packet_bytes).all()
    # a channel waits or stalls at most all the time; it may be ahead by what is reserved
    assert (counters[..., STALL] <= result.time_ps).all()
    assert counters[..., STALL].sum() > 0
    assert counters[..., WAIT].sum() > 0
    assert (used >= 0).all()
    assert (used <= result.time_ps).all()
    assert used.max() > 0.8 * result.time_ps


def test_a_link_is_used_for_exactly_what_it_carries() -> None:
    link = LinkClass(8e9, 10_000)
    machine = Dragonfly(2, 4, 2, 9, terminal=link, local=link, global_=link)
    model = network(machine, messages=5, message_bytes=512)
    result = alone(model, DRAINED)
    packets = result.outcome["counters"][..., PACKETS].sum(axis=2)
    assert (result.outcome["busy_ps"] == packets * model.serialisation(link, 512)).all()


def starved() -> Network:
    """Two nodes send each other ten packets, with a buffer of one."""
    link = LinkClass(1e9, 100_000)
    machine = Dragonfly(2, 1, 0, 1, terminal=link, local=link, global_=link)
    return network(
        machine, terminal_buffer=512, message_bytes=512 * 10, messages=1, pattern="permutation",
        load=0.9, delay_ps=30_000,
    )  # fmt: skip


def test_stall_is_time_without_credit_while_the_link_is_free() -> None:
    """One sender, a buffer of one packet: it stalls from the end of each packet until the credit
    for it is back."""
    model = starved()
    result = alone(model, DRAINED)
    inject = result.outcome["counters"][0, 2:, 0]
    # start, head at the router after latency and pipeline, leaves at once, tail a packet later, and
    # the credit comes back: a packet every 100 + 30 + 512 + 100 ns, of which 512 the link is busy
    assert inject[:, STALL].tolist() == [9 * 230_000] * 2
    assert inject[:, WAIT].tolist() == [9 * 512_000] * 2


def test_a_credit_takes_the_latency_of_the_link_it_returns_over() -> None:
    """The same over a global cable with a buffer of one packet, all latencies different: the cable
    idles from the end of a packet until the credit for it is back."""
    machine = Dragonfly(
        1, 1, 1, 2, terminal=LinkClass(1e9, 7_000), local=LinkClass(1e9, 11_000),
        global_=LinkClass(1e9, 130_000),
    )  # fmt: skip
    model = network(
        machine, terminal_buffer=10**6, global_buffer=512, message_bytes=512 * 10, messages=1,
        load=0.9, delay_ps=30_000,
    )  # fmt: skip
    result = alone(model, DRAINED)
    rows, _ = ports_by_class(model)["global"]
    cable = result.outcome["counters"][:, rows].sum(axis=(1, 2))
    assert cable[:, PACKETS].tolist() == [10, 10]
    assert cable[:, STALL].tolist() == [9 * (130_000 + 30_000 + 130_000)] * 2


def test_a_stall_that_goes_on_at_the_end_is_counted() -> None:
    model = starved()
    start = int(alone(model, DRAINED).outcome["nodes"][:, LAST_IN].min()) - (
        9 * 742_000 + 512_000 + 230_000
    )
    for after, stalled, waited in (
        (512_000 + 200_000, 200_000, 512_000),
        (600_000, 88_000, 512_000),
        (742_000 + 100_000, 230_000, 612_000),
    ):
        inject = alone(model, start + after).outcome["counters"][0, 2:, 0]
        assert (stalled, waited) in zip(inject[:, STALL], inject[:, WAIT], strict=True)


@pytest.mark.parametrize(("first", "last"), [(1, 16), pytest.param(16, 40, marks=pytest.mark.long)])
def test_packets_of_one_channel_stay_in_order(first: int, last: int) -> None:
    """Between two nodes all packets take the same channels: large and small ones, much blocked."""
    link = LinkClass(1e9, 50_000)
    machine = Dragonfly(2, 2, 1, 3, terminal=link, local=link, global_=LinkClass(3e8, 90_000))
    model = network(machine, pattern="permutation", message_bytes=700, load=1.0)
    times: dict[tuple[int, int], list[int]] = {}
    original = Network.check

    def watching(self: Network, state: Any, pending: Any, parcels: Any) -> None:
        original(self, state, pending, parcels)
        for row in pending[pending[:, 1] >> 56 == DELIVER]:
            packet = parcels[row[2]]
            seen = times.setdefault((int(packet[1]), int(row[0])), [])
            seen.append(int(packet[2]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Network, "check", watching)
        for end in range(first * US, last * US, 90_000):
            alone(model, end)
    born: dict[int, int] = {}
    for (ends, _), made in sorted(times.items(), key=lambda item: item[0][1]):
        assert made[0] >= born.get(ends, 0)
        born[ends] = made[0]
    assert len(times) > 50


def test_a_saturated_run_costs_no_more_events_the_longer_it_lasts() -> None:
    model = network(load=1.0, message_bytes=512, terminal_buffer=16384, local_buffer=16384)
    for end in (20 * US, 160 * US):
        kinds = alone(model, end).kinds
        assert kinds["credit"]["events"] < 2 * kinds["arrive"]["events"]


def test_parallel_cables_carry_equal_shares() -> None:
    model = network(PARALLEL, message_bytes=512, load=0.3)
    figures = links(model, alone(model, 100 * US))
    packets = np.array([link.packets for link in figures if link.kind == "global"])
    assert packets.min() > 0.75 * packets.mean()


def test_aries_counters_are_ours_seen_from_the_other_end() -> None:
    model = network(PARALLEL, routing="valiant", load=0.9)
    result = alone(model)
    seen = aries(model, result.outcome)
    for kind, tiles in (("local", slice(0, 3)), ("global", slice(3, 6))):
        assert seen.n_flit[:, tiles].sum() == sent(model, result.outcome, kind)[FLITS]
    assert seen.p_req_flit.sum() == sent(model, result.outcome, "eject")[FLITS]
    ratio = seen.stall_to_flit()
    assert ratio.shape == (PARALLEL.n_routers,)
    assert (ratio >= 0).all()
    assert ratio.max() > 0
    assert not seen.p_req_stall.any()


# -- what is reported


def test_latencies_of_the_histogram_agree_with_the_mean() -> None:
    model = network(load=0.2)
    figures = performance(model, alone(model, 20 * US))
    assert figures.median_latency_ns < figures.p99_latency_ns <= figures.max_latency_ns * 1.07
    assert figures.median_latency_ns == pytest.approx(figures.mean_latency_ns, rel=0.3)
    assert not figures.saturated
    assert figures.throughput == pytest.approx(figures.offered, rel=0.05)


def test_sources_that_cannot_keep_up_are_called_saturated() -> None:
    model = network(pattern="adversarial", load=0.5, warmup_ps=2 * US)
    figures = performance(model, alone(model, 20 * US))
    assert figures.saturated
    assert figures.throughput < 0.2
    assert figures.backlog_growth > 0.5


def test_bernoulli_arrivals_come_in_slots() -> None:
    link = LinkClass(16e9, 1_000)
    machine = Dragonfly(2, 4, 2, 9, terminal=link, local=link, global_=link)
    model = network(machine, arrivals="bernoulli", load=0.25, message_bytes=16, packet_bytes=16)
    result = alone(model, 50 * US)
    made = result.outcome["nodes"][:, GENERATED]
    slots = 50 * US // 1_000
    assert made.mean() == pytest.approx(0.25 * slots, rel=0.01)
    spread = np.sqrt(slots * 0.25 * 0.75)
    assert made.std() == pytest.approx(spread, rel=0.35)


# -- refusals


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"routing": "best"}, "routing = best: one of adaptive, minimal"),
        ({"via": "node"}, "via = node: one of group, router, anywhere"),
        ({"local_buffer": 511}, "local_buffer = 511 B: must hold a packet of 512 B"),
        ({"flit_bytes": 12}, "flit = 12 B: a power of two"),
        ({"load": 0.0}, "load = 0: above 0"),
        ({"load": 1.5}, "load = 1.5: above 0, at most 1"),
        ({"pattern": "random"}, "pattern = random: one of uniform"),
        ({"pattern": "adversarial", "stride": 9}, "stride = 9: adversarial traffic goes to anoth"),
        ({"arrivals": "weekly"}, "arrivals = weekly: one of poisson, bernoulli"),
        ({"forwarding": "wormhole"}, "forwarding = wormhole: one of cut-through, flit, store"),
        ({"seed": -1}, "seed = -1"),
        ({"messages": 10**23}, "messages = 100000000000000000000000: 0 .. 2**62"),
        ({"load": 1e-20, "arrivals": "bernoulli"}, "load = 1e-20: a message every"),
        (
            {"terminal_buffer": 2**50},
            "terminal_buffer = 1125899906842624 B: at least 0, below 1 TiB",
        ),
        ({"threshold": float("nan")}, "threshold = nan: a number, 0 .. 1e+06"),
        ({"packet_bytes": 0}, "packet = 0 B: 1 B .. 1 MiB"),
        ({"flit_bytes": 2**62}, "flit = 4611686018427387904 B: a power of two, at most"),
        ({"delay_ps": -5}, "delay = -5 ps"),
    ],
)
def test_nonsense_is_refused_with_the_rule(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused) as refusal:
        network(**given)
    assert reason in str(refusal.value)


def test_a_machine_without_lookahead_is_refused_on_two_ranks() -> None:
    machine = dataclasses.replace(SMALL, global_=LinkClass(25e9, 0))
    with pytest.raises(Refused, match="global cable from group 3 to group 4"):
        go(network(machine, delay_ps=0), US, 2)


@pytest.mark.long
def test_it_is_refused_in_one_line_that_one_of_two_processes_says(
    odonata: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = odonata("bench", "dragonfly", "--preset", "kim-72", "--global-latency", "0ns",
                   "--delay", "0ns", ranks=2)  # fmt: skip
    assert done.returncode == 2
    assert "global cable from group 3 to group 4" in done.stderr
    assert done.stderr.count("odonata:") == 1


def test_bad_machines_are_bad_machines() -> None:
    with pytest.raises(BadMachine, match="at most"):
        Dragonfly(2, 4, 2, 40)


def test_the_module_runs_without_a_compiler_in_sight() -> None:
    """Importing the command line imports no kernel."""
    words = (
        "import sys, odonata.commands.cli; print('numba' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_every_link_is_told_with_both_its_ends() -> None:
    model = network(Dragonfly(2, 3, 2, 4, links_per_pair=1), routing="valiant")
    result = alone(model)
    figures = links(model, result)
    m = model.machine
    assert len(figures) == 2 * (m.n_links["local"] + m.n_links["global"])
    ends = {(link.router, link.port): (link.to_router, link.to_port) for link in figures}
    assert all(ends[there] == here for here, there in ends.items())
    for router in range(m.n_routers):
        for cable in m.neighbours(router):
            if cable.kind != "terminal":
                assert ends[router, cable.port] == (cable.far, cable.far_port)
    for kind in ("local", "global"):
        carried = sum(link.bytes for link in figures if link.kind == kind)
        assert carried == sent(model, result.outcome, kind)[BYTES]
    assert 0 < max(link.utilisation for link in figures) <= 1
