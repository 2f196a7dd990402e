"""The machine's network and its traffic, as a model for the engine."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from odonata.agents.dispatch import handler, receive
from odonata.agents.jobs import NO_JOBS, Workload
from odonata.agents.link import (
    ARRIVE,
    BUSY,
    BYTES,
    CAPACITY,
    CREDIT,
    CREDIT_DUE,
    DECIDE,
    DELIVER,
    FAR,
    FAR_KEY,
    GENERATE,
    GRANTS,
    HEAD,
    LATENCY,
    LINE,
    PACKETS,
    PADDING,
    PLACE,
    RATE,
    RATE_BITS,
    RETURNS,
    SOONEST,
    STALL,
    STARTED,
    UNLIMITED,
    USED,
    WAIT,
    WAKE,
)
from odonata.agents.metrics import COUNTERS, counted, tables
from odonata.agents.node import (
    BINS,
    GOT_BYTES,
    LAST_IN,
    MADE_BYTES,
    NODE_WORDS,
    STOP,
    first_messages,
)
from odonata.agents.packet import MOST_GROUPS, MOST_NODES, MOST_ROUTERS, PARCEL
from odonata.agents.router import GATE_BITS, VIAS
from odonata.agents.scheduler import arrivals, decide
from odonata.agents.task import (
    DONE,
    EARLY,
    OVER,
    STATUS,
)
from odonata.agents.traffic import Traffic
from pdes.arrays import aligned
from pdes.errors import Findings
from pdes.events import (
    FOREVER,
    KEY,
    KIND_SHIFT,
    Rows,
    no_rows,
    pack,
)
from pdes.model import Lookahead, Model
from pdes.partition import Partition
from pdes.stream import Table
from policies.routing import ROUTINGS
from topology.dragonfly import Dragonfly, LinkClass

FORWARDINGS, VCS = ("cut-through", "store"), ("hops", "one")


class State(NamedTuple):
    shape: Any  # odonata.agents.router
    traffic: Any  # odonata.agents.node
    gates: Any  # by group of this rank, other group, cable
    threshold: Any
    pace: Any  # mean gap in ps, or per slot
    measured: Any  # from, until
    delay: Any  # of a router's pipeline
    largest: Any  # packet
    flit: Any  # bytes - 1
    whole: Any  # store and forward?
    latencies: Any  # of a link, by class
    ports: Any  # by port: its own line, then those of its channels: odonata.agents.link
    slow: Any  # by port and VC
    nodes: Any  # by node: odonata.agents.node
    partners: Any
    history: Any  # of what a node took in
    histogram: Any  # of latencies, by group
    received: Any  # bytes, by group and the group they come from
    nic: Any  # odonata.agents.link
    jobs: Any  # odonata.agents.patterns
    friends: Any  # by task of any job
    places: Any  # likewise: odonata.agents.task
    slots: Any  # by node
    matching: Any  # by node: until when its NIC is busy with that
    board: Any  # where the scheduler is, by job
    owner: Any  # and by node of the machine: its job, or -1
    labels: Any  # and of all jobs, one after the other: their nodes


@dataclass(frozen=True)
class Network(Model):
    """Buffers are bytes of each virtual channel, at the end of a link of that class; `delay_ps` is
    a router's pipeline. `threshold` and `bias` (bytes) are the routing's own unless given. `via`:
    detours lead through a random third "group", a random "router" of one, or as in BookSim any
    router "anywhere" (straight on if that is in the packet's own group). `vcs`: "hops", or "one"
    for all, which deadlocks and is there to show it.
    """

    machine: Dragonfly
    traffic: Traffic | Workload
    routing: str = "minimal"
    via: str = "group"
    threshold: float | None = None
    bias: int | None = None
    packet_bytes: int = 512
    flit_bytes: int = 16
    terminal_buffer: int = 16384
    local_buffer: int = 16384
    global_buffer: int = 32768
    delay_ps: int = 50_000
    forwarding: str = "cut-through"
    vcs: str = "hops"
    seed: int = 1

    name = "dragonfly"
    parcel, bearers, receipts = PARCEL, (ARRIVE, DELIVER, PLACE), (CREDIT_DUE,)
    decisions, notices = (DECIDE,), (PLACE,)
    receive = staticmethod(receive)
    fanout, takes = 2 * GRANTS + 2, GRANTS + 1

    def __post_init__(self) -> None:
        m, found = self.machine, Findings()
        unless, one_of = found.unless, ", ".join
        for name, most in (
            ("nodes", MOST_NODES),
            ("routers", MOST_ROUTERS),
            ("global_links", 1 << GATE_BITS),
            ("groups", MOST_GROUPS),
        ):
            unless(
                getattr(m, name) <= most,
                f"{name} = {getattr(m, name)}",
                f"at most {most} can be simulated",
                f"machine.{name}",
            )
        unless(
            ROUTINGS.known(self.routing) or self.routing in ROUTINGS,
            f"routing = {self.routing!r}",
            f"one of {one_of(sorted(ROUTINGS))}",
            "routing",
        )
        unless(self.via in VIAS, f"via = {self.via}", f"one of {one_of(VIAS)}", "via")
        unless(
            self.threshold is None or 0 <= self.threshold <= 1e6,
            f"threshold = {self.threshold}",
            "0 .. 1e6",
            "threshold",
        )
        unless(
            self.bias is None or abs(self.bias) < 2**40,
            f"bias = {self.bias} B",
            "below 2**40 bytes",
            "bias",
        )
        flit, packet = self.flit_bytes, self.packet_bytes
        unless(1 <= packet <= 2**20, f"packet = {packet} B", "1 .. 2**20 bytes", "packet_bytes")
        unless(
            0 < flit <= 2**20 and flit & (flit - 1) == 0,
            f"flit = {flit} B",
            "a power of two, at most 2**20 bytes",
            "flit_bytes",
        )
        for name in ("terminal_buffer", "local_buffer", "global_buffer"):
            size = getattr(self, name)
            unless(
                packet <= size,
                f"{name} = {size} B",
                f"must hold a packet of {packet} B, all of it",
                name,
                "packet_bytes",
            )
            unless(size < 2**40, f"{name} = {size} B", "below 2**40 bytes", name)
        unless(0 <= self.delay_ps <= 10**12, f"delay = {self.delay_ps} ps", "0 .. 1 s", "delay_ps")
        unless(
            self.forwarding in FORWARDINGS,
            f"forwarding = {self.forwarding}",
            " or ".join(FORWARDINGS),
            "forwarding",
        )
        unless(self.vcs in VCS, f"vcs = {self.vcs}", " or ".join(VCS), "vcs")
        unless(0 <= self.seed < 2**63, f"seed = {self.seed}", "0 .. 2**63 - 1", "seed")
        self.traffic.check_on(m, found)
        found.refuse()

    def parameters(self) -> dict[str, Any]:
        told = asdict(self)
        for part in ("machine", "traffic"):
            for name, value in told.pop(part).items():
                told[f"{part}.{name}"] = value
        if "traffic.jobs" in told:
            told["traffic.jobs"] = json.dumps(told["traffic.jobs"])
        return told

    @property
    def runs_jobs(self) -> bool:
        return isinstance(self.traffic, Workload)

    @property
    def workload(self) -> Workload:
        """Where it runs jobs."""
        assert isinstance(self.traffic, Workload)
        return self.traffic

    @property
    def open_loop(self) -> Traffic:
        """Its traffic, where it does not."""
        assert isinstance(self.traffic, Traffic)
        return self.traffic

    @property
    def handle(self) -> Any:  # type: ignore[override]
        return handler(ROUTINGS.named(self.routing), self.runs_jobs)

    @property
    def kinds(self) -> tuple[str, ...]:  # type: ignore[override]
        own = "step" if self.runs_jobs else "generate"
        return ("credit", "arrive", "deliver", "place", "start", own, "ended", "decide")

    @property
    def variant(self) -> str:  # type: ignore[override]
        return f"{self.routing} routing" + " of jobs" * self.runs_jobs

    # -- numbers

    @property
    def agent_bits(self) -> int:
        last = self.scheduler if self.runs_jobs else self.scheduler - 1
        return last.bit_length()

    @property
    def scheduler(self) -> int:
        """The agent, where jobs run: behind the nodes of group 0."""
        return self.machine.routers * (1 + self.machine.nodes)

    @property
    def bases(self) -> tuple[int, int, int, int]:
        """The first local VC of each leg (`odonata.agents.packet`)."""
        if ROUTINGS.named(self.routing).always_minimal:
            return 0, 0, 0, 1
        return 0, 1, 2, 3 if self.via == "group" else 4

    @property
    def channels(self) -> int:
        """Virtual channels of a port."""
        return 1 if self.vcs == "one" else self.bases[3] + 1

    def slot_ps(self) -> float:
        """What a message of its traffic takes on its node's link, exactly."""
        return self.open_loop.slot_ps(self.machine)

    def serialisation(self, link: LinkClass, size: int) -> int:
        """Of so many bytes on such a link, as `odonata.agents.link` has it."""
        return max(1, (size * rate_of(link) + (1 << (RATE_BITS - 1))) >> RATE_BITS)

    # -- for the engine

    def units(self) -> Rows:
        return np.arange(self.machine.groups + 1) << self.agent_bits

    def lookahead(self, partition: Partition) -> Lookahead:
        """A packet takes the link's latency and the far router's pipeline; a credit the latency,
        after a packet's serialisation."""
        m, last = self.machine, int(partition.unit_starts[1]) - 1
        least = self.traffic.least_packet(self.packet_bytes)
        shortest = min(self.serialisation(link, least) for link in (m.terminal, m.local, m.global_))
        packet = Lookahead(
            m.global_.latency_ps + min(self.delay_ps, shortest),
            f"a packet over the global cable from group {last} to group {last + 1}",
        )
        if self.runs_jobs:
            command = Lookahead(self.workload.launch_ps, "a command of the scheduler's (launch)")
            return min(packet, command)
        return packet

    def state(self, first: int, last: int) -> State:
        m, t = self.machine, self.traffic
        g0, g1 = first >> self.agent_bits, last >> self.agent_bits
        how = ROUTINGS.named(self.routing)
        n0, n1 = g0 * m.routers * m.nodes, g1 * m.routers * m.nodes
        ports = self._ports(g0, g1)
        slow = np.zeros((len(ports), self.channels, PADDING + 1), np.int64)
        slow[:, :, WAKE] = FOREVER
        bias = how.bias * self.packet_bytes if self.bias is None else self.bias
        gates = m.gates()[g0:g1]
        return State(
            shape=np.array(
                [m.nodes, m.routers, m.groups, m.radix, self.agent_bits, g0,
                 m.routers * (m.radix + m.nodes), m.copies, *self.bases,
                 int(self.channels > 2), -1 if self.vcs == "hops" else 0, VIAS.index(self.via),
                 bias]
            ),
            gates=((gates // max(1, m.global_links)) << GATE_BITS) | gates % max(1, m.global_links),
            threshold=np.array([how.threshold if self.threshold is None else self.threshold]),
            delay=np.array([self.delay_ps]),
            largest=np.array([self.packet_bytes]),
            flit=np.array([self.flit_bytes - 1]),
            whole=np.array([int(self.forwarding == "store")]),
            latencies=np.array([link.latency_ps for link in (m.terminal, m.local, m.global_)]),
            ports=ports,
            slow=slow,
            nodes=np.zeros((n1 - n0, NODE_WORDS), np.int64),
            history=np.zeros(n1 - n0, np.uint64),
            histogram=np.zeros((g1 - g0, BINS), np.int64),
            received=np.zeros((g1 - g0, m.groups), np.int64),
            **{**NO_JOBS, **t.arrays(m, self.seed, g0, g1)},
        )  # fmt: skip

    def _ports(self, g0: int, g1: int) -> Rows:
        """A group's rows: the ports of its routers, one router after the other, then its nodes'."""
        m = self.machine
        p, a, radix, groups = m.nodes, m.routers, m.radix, g1 - g0
        per_group = a * (radix + p)
        lines = aligned((groups, per_group, 1 + self.channels, LINE))
        rows = np.zeros((groups, per_group, LINE), np.int64)
        base = np.arange(groups)[:, None, None] * per_group
        agents = (np.arange(g0, g1) << self.agent_bits)[:, None, None]
        r = np.arange(a)[None, :, None]
        ports = np.zeros((groups, a, radix, LINE), np.int64)

        k = np.arange(p)[None, None, :]
        part = ports[:, :, :p]
        _fill(part, m.terminal, UNLIMITED)
        part[..., FAR_KEY] = pack(DELIVER, agents + a + r * p + k, 0)
        part[..., FAR] = base + a * radix + r * p + k

        _fill(ports[:, :, p : p + a - 1], m.local, self.local_buffer)
        _fill(ports[:, :, p + a - 1 :], m.global_, self.global_buffer)
        ends = m.ends()[g0 * a : g1 * a].reshape(groups, a, radix - p)
        far, far_port = ends // radix, ends % radix
        group, place = far // a, far % a
        lit, here = ends >= 0, (group >= g0) & (group < g1)
        to = pack(ARRIVE, (group << self.agent_bits) + place, far_port)
        there = (group - g0) * per_group + place * radix + far_port
        ports[:, :, p:, FAR_KEY] = np.where(lit, to, 0)
        ports[:, :, p:, FAR] = np.where(lit & here, there, -1)

        nics = rows[:, a * radix :]
        i = np.arange(a * p)[None, :]
        _fill(nics, m.terminal, self.terminal_buffer)
        nics[..., FAR_KEY] = pack(ARRIVE, agents[:, :, 0] + i // p, i % p)
        nics[..., FAR] = base[:, :, 0] + (i // p) * radix + i % p
        rows[:, : a * radix] = ports.reshape(groups, a * radix, LINE)
        lines[:, :, 0] = rows
        lines[:, :, 1:, CREDIT] = rows[:, :, None, CAPACITY]
        lines[:, :, 1:, RETURNS] = lines[:, :, 1:, HEAD] = -1
        lines[:, :, 1:, SOONEST] = FOREVER
        return lines.reshape(-1, 1 + self.channels, LINE)

    def start(self, state: State, first: int, last: int) -> Rows:
        m = self.machine
        g0, g1 = first >> self.agent_bits, last >> self.agent_bits
        if self.runs_jobs:
            return arrivals(self) if g0 == 0 else no_rows()
        groups = np.arange(g0, g1)[:, None] << self.agent_bits
        keys = pack(GENERATE, groups + m.routers + np.arange(m.routers * m.nodes), 0).reshape(-1)
        rows = np.zeros((len(keys), 4), np.int64)
        first_node = g0 * m.routers * m.nodes
        first_messages(state, rows, keys, first_node)
        sends = np.full(len(rows), self.open_loop.messages != 0)
        sends &= rows[:, 0] < state.traffic[STOP]
        if self.open_loop.pattern in ("permutation", "transpose"):
            sends &= state.partners != np.arange(first_node, first_node + len(rows))
        return rows[sends]  # type: ignore[no-any-return]

    def decide(self, state: State, time: int, key: int, a: int, b: int) -> Rows:
        return decide(self, state, time)

    def fingerprint(self, state: State) -> Any:
        """Of each group: the counters of every port, and what its nodes have seen."""
        parts: tuple[Any, ...] = (state.ports[:, 1:, [STARTED, PACKETS, BYTES, WAIT]],
                 state.slow[:, :, [STALL, PADDING]], state.ports[:, 0, [BUSY, USED]],
                 state.nodes, state.history, state.histogram)  # fmt: skip
        groups = len(state.histogram)
        if self.runs_jobs:
            seen = np.zeros((groups, 1), np.uint64)
            if len(state.board):  # the scheduler's is in group 0
                content = (state.board, state.owner, state.labels)
                seen[0] = zlib.crc32(b"".join(array.tobytes() for array in content))
            told = (state.slots[:, :, :EARLY], state.matching)  # chains are numbered as it comes
            parts = (*parts, *told, seen)
        flat = [np.ascontiguousarray(part).reshape(groups, -1) for part in parts]
        return np.hstack([part.view(np.uint64) for part in flat])

    def outcome(self, state: State, pending: Rows, parcels: Rows, time: int) -> dict[str, Any]:
        from odonata.agents.audit import findings

        counters, busy = counted(state, time, self.channels)
        groups = len(state.histogram)
        return {
            "counters": np.moveaxis(counters, 0, 2).reshape(
                groups, -1, self.channels, len(COUNTERS)
            ),
            "busy_ps": busy.reshape(groups, -1),
            "nodes": state.nodes,
            "histogram": state.histogram,
            "board": state.board,
            "labels": state.labels,
            "pending": np.array([len(pending)]),
            **findings(self, state, pending, parcels),
        }

    def tables(self, interval: int) -> Mapping[str, Table]:
        return tables(self, interval)

    def left(self, state: State, pending: Callable[[], Rows]) -> int:
        """Bytes under way, as far as this rank can tell, and messages yet to be made, or jobs that
        are not done."""
        made, got = state.nodes[:, [MADE_BYTES, GOT_BYTES]].sum(axis=0).tolist()
        if self.runs_jobs:
            return int(made - got) + (int((state.board[:, STATUS] != DONE).sum()) << 40)
        if self.open_loop.messages is None and self.open_loop.stop_ps is None:
            return 1
        to_come = int((pending()[:, KEY] >> KIND_SHIFT == GENERATE).sum())
        return int(made - got) + (to_come << 40)

    def over(self, state: State) -> int:
        """When the last packet was taken in, and the last task ended."""
        return int(max(state.nodes[:, LAST_IN].max(), state.board[:, OVER].max(initial=0)))

    def check(self, state: State, pending: Rows, parcels: Rows) -> None:
        from odonata.agents.audit import check

        check(self, state, pending, parcels)


def rate_of(link: LinkClass) -> int:
    """Picoseconds a byte, times 2**16."""
    return max(1, round(1e12 / link.bandwidth * (1 << RATE_BITS)))


def _fill(part: Rows, link: LinkClass, capacity: int) -> None:
    part[..., RATE], part[..., LATENCY], part[..., CAPACITY] = (
        rate_of(link), link.latency_ps, capacity
    )  # fmt: skip
