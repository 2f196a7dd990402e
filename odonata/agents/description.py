"""A network as a user describes it: the machine, its routers, its traffic and its jobs; and the
numbers that follow from these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from odonata.agents.expected import check as check_market
from odonata.agents.expected import draws_of, exchange
from odonata.agents.following import Exchange
from odonata.agents.layout import ARBITERS, CREDITS, VIAS
from odonata.agents.link import RATE_BITS
from odonata.agents.packet import PARCEL
from odonata.agents.power import check as check_power
from odonata.agents.reports import Telemetry
from odonata.agents.tracing import TRACED_PARCEL
from odonata.agents.traffic import Traffic
from odonata.agents.workload import Workload
from odonata.jobs.market import MarketSettings
from odonata.jobs.power import Power
from odonata.jobs.request import Job
from pdes.errors import Findings
from policies.register import check
from policies.routing import ROUTINGS
from topology.dragonfly import SLOWEST, Dragonfly, LinkClass
from topology.settings import setting, settings_of

EJECTION_BUFFER = 16384
FORWARDINGS, VCS = ("cut-through", "flit", "store"), ("hops", "one")
SIGHTS, DUPLEXES = ("far", "output"), ("full", "half")
MOST_SEED = 2**63 - 1
SEEDED = ("placement", "mapping", "traffic")
"""What may have a seed of its own."""


def _own_seed(what: str, about: str) -> Any:
    return setting(None, "whole", about, section="run", name=f"seed.{what}", least=0,
                   most=MOST_SEED, otherwise="that of run.seed")  # fmt: skip


def power_of_two(number: int) -> None:
    if number & (number - 1):
        raise ValueError("a power of two, at most 1 MiB")


@dataclass(frozen=True)
class NetworkDescription:
    """A network. Buffers are bytes per virtual channel, at the end of a link of that class;
    `delay_ps` is the delay of a router's pipeline. `threshold` and `bias` (bytes) are the routing's
    own unless given. `via`: non-minimal paths lead through a random third "group", a random
    "router" of one, or as in BookSim any router "anywhere" (a minimal path if that is in the
    packet's own group). `vcs`: "hops", or "one" for all, which deadlocks and is there to show it.
    What is inside a router, from `crossbar` on, and what nodes accept is explained in
    docs/router.md. With `dedicated_scheduler` rank 0 has the scheduler and no groups."""

    machine: Dragonfly
    traffic: tuple[Traffic, ...] = ()
    """Several, or one without a tuple around it."""
    routing: str = setting(
        "minimal", "word", "Routing policy: which path packets take.", register="routing"
    )
    via: str = setting(
        "group", "word", "What a non-minimal path leads through, chosen at random.", words=VIAS
    )
    threshold: float | None = setting(
        None, "number", "Adaptive routings: how many times worse the minimal path must look; auto: "
        "the routing's own.", least=0, most=1e6, none="auto",
    )  # fmt: skip
    bias: int | None = setting(
        None, "signed size", "Adaptive routings: by how much the minimal path must look worse in "
        "addition to the threshold; auto: the routing's own.", none="auto",
        above=-(2**40), below=2**40,
    )  # fmt: skip
    packet_bytes: int = setting(
        512, "size", "The largest packet; longer messages are cut.", least=1, most=2**20
    )
    flit_bytes: int = setting(
        16,
        "size",
        "A flit: the unit of counters, and of routers that handle flits; a power of two.",
        least=1, most=2**20, accepted="a power of two, at most 1 MiB", rule=power_of_two,
    )  # fmt: skip
    terminal_buffer: int = setting(
        16384, "size", "Buffer of each virtual channel at the end of a node's link.", below=2**40
    )
    local_buffer: int = setting(
        16384, "size", "Buffer of each virtual channel at the end of a local link.", below=2**40
    )
    global_buffer: int = setting(
        32768, "size", "Buffer of each virtual channel at the end of a global link.", below=2**40
    )
    delay_ps: int = setting(50_000, "time", "Delay of a router's pipeline.", most=10**12)
    forwarding: str = setting(
        "cut-through", "word", "What of a packet must have arrived before a router handles it: its "
        "head, its first flit, or all of it (store).",
        words=FORWARDINGS,
    )  # fmt: skip
    vcs: str = setting(
        "hops", "word", "Virtual channels: another for each hop; one for all deadlocks.", words=VCS
    )
    crossbar: float | None = setting(
        None, "number", "Bandwidth of a router's crossbar, in units of a local link's; ideal: it "
        "is never the bottleneck, and packets wait for their own output only.",
        above=0, most=1e3, none="ideal",
    )  # fmt: skip
    arbiter: str = setting(
        "round-robin", "word", "Which of several waiting packets crosses next.", words=ARBITERS
    )
    output_buffer: int | None = setting(
        16384, "size", "Buffer of each virtual channel between crossbar and link; none: a packet "
        "crosses when there is room at the far end of the link.", none="none", below=2**40,
    )  # fmt: skip
    credits: str = setting(
        "packet", "word", "When room is given back: once a packet has left, flit by flit, or all "
        "of it when the head leaves.", words=CREDITS,
    )  # fmt: skip
    credit_delay_ps: int = setting(
        0, "time", "How long a credit takes beside the latency of its link.", most=10**12
    )
    allocation_ps: int = setting(
        0, "time", "The time in which a router assigns an output channel to a packet, before that "
        "competes for the crossbar; 0: packets need no assignment.", most=10**12,
    )  # fmt: skip
    sight: str = setting(
        "far", "word", "Which buffer `adaptive` looks at: at the far end of the link, or the "
        "router's own output buffer.", words=SIGHTS,
    )  # fmt: skip
    detours: bool = setting(
        False, "flag", "Whether routings choose between two paths within a group too, the other "
        "through a third router.",
    )  # fmt: skip
    ejection: float | None = setting(
        None, "bandwidth", "The rate at which a node drains its ejection buffer.", section="nic",
        least=SLOWEST, most=1e15, none="unlimited",
    )  # fmt: skip
    ejection_buffer: int = setting(
        EJECTION_BUFFER, "size", "A node's ejection buffer, where there is a rate.", section="nic",
        below=2**40,
    )  # fmt: skip
    injection_channels: int = setting(
        1, "whole", "Virtual channels of a node's link that its packets choose from.",
        section="nic", least=1, most=5,
    )  # fmt: skip
    duplex: str = setting(
        "full", "word", "Half: a node drains nothing while it has something to send.",
        section="nic", words=DUPLEXES,
    )  # fmt: skip
    seed: int = setting(
        1, "whole", "Seed of all random numbers, but those that have one of their own: "
        "seed = { others = 7, placement = 3 }.", section="run", least=0, most=MOST_SEED,
    )  # fmt: skip
    placement_seed: int | None = _own_seed(
        "placement", "Seed of what allocation policies draw: on which nodes jobs are."
    )
    mapping_seed: int | None = _own_seed(
        "mapping", "Seed of which task is where among the nodes of its job (jobs.mapping = random)."
    )
    traffic_seed: int | None = _own_seed(
        "traffic", "Seed of what is sent: when, to whom, and on which of several paths."
    )
    workload: Workload | None = None
    dedicated_scheduler: bool = setting(
        False, "flag", "Give rank 0 the scheduler and no groups, where jobs run on several ranks.",
        section="run",
    )  # fmt: skip
    power: Power | None = None
    """What nodes draw, and who keeps them below a cap; None: nobody cares."""
    market: MarketSettings | None = None
    """What the grid asks, and who bids for it; None: it asks nothing."""
    trace_packets: int | None = setting(
        None, "whole", "Trace every so many-th packet of each node, hop by hop; none: no packet.",
        section="metrics", least=1, most=2**63 - 1, none="none",
    )  # fmt: skip

    def __post_init__(self) -> None:
        if isinstance(self.traffic, Traffic):
            object.__setattr__(self, "traffic", (self.traffic,))
        if isinstance(self.traffic, Workload):
            raise TypeError("jobs are given as workload=Workload(...), traffic as Traffic(...)")
        m, found = self.machine, Findings()
        unless = found.unless
        check(self, found)
        for one, how in settings_of(Dragonfly):
            value = getattr(m, one.name)
            fine = how.packets is None or value is None or value <= how.packets
            unless(fine, f"{one.name} = {value}", f"at most {how.packets} can be simulated",
                   f"machine.{one.name}")  # fmt: skip
        self._check_routers(found)
        unless(
            bool(self.traffic) or self.workload is not None,
            "no traffic and no jobs",
            "at least one of both",
            "traffic",
        )
        windows = {(t.warmup_ps, t.measure_ps) for t in self.traffic}
        unless(
            len(windows) <= 1,
            "several measurements",
            "one for all: the same warmup and measure in every traffic",
            "traffic.1.warmup_ps",
        )
        for number, traffic in enumerate(self.traffic):
            traffic.check_on(m, f"traffic.{number}", found)
        if self.workload:
            self.workload.check_on(m, found)
        if self.power:
            check_power(self.power, self.workload, m, found)
        check_market(self.market, self.power, self.workload, found)
        found.refuse()

    def _check_routers(self, found: Findings) -> None:
        """Find what is wrong with crossbars, credits and ejection."""
        unless, packet = found.unless, self.packet_bytes
        slowest = (self.crossbar or 1) * self.machine.local.bandwidth
        unless(slowest >= SLOWEST, f"crossbar = {self.crossbar}", "of a local link's bandwidth, "
               f"this is {slowest:g} B/s; from 1 MB/s on", "crossbar")  # fmt: skip
        if self.crossbar is None:
            for name, usual in (("arbiter", "round-robin"), ("allocation_ps", 0)):
                value = getattr(self, name)
                unless(value == usual, f"{name} = {value}", "needs routers with a crossbar", name,
                       "crossbar")  # fmt: skip
        unless(self.ejection is not None or self.ejection_buffer == EJECTION_BUFFER,
               f"ejection_buffer = {self.ejection_buffer} B", "needs nodes with a rate of ejection",
               "ejection_buffer", "ejection")  # fmt: skip
        buffers = ["terminal_buffer", "local_buffer", "global_buffer"]
        buffers += ["ejection_buffer"] * (self.ejection is not None)
        buffers += ["output_buffer"] * self.buffered
        for name in buffers:
            size = getattr(self, name)
            unless(packet <= size, f"{name} = {size} B",
                   f"must hold a packet of {packet} B, all of it", name,
                   "packet_bytes")  # fmt: skip
        unless(self.sight == "far" or self.buffered, f"sight = {self.sight}",
               "needs routers with a crossbar and output buffers", "sight", "crossbar",
               "output_buffer")  # fmt: skip
        lanes, most = self.injection_channels, 1
        if self.routing in ROUTINGS and self.duplex == "full":
            most = self.channels
        unless(lanes <= most, f"injection_channels = {lanes}",
               f"1 .. {most}, the virtual channels of this routing (and 1 where nodes are half "
               "duplex)", "injection_channels", "routing", "duplex")  # fmt: skip
        unless(self.duplex == "full" or self.ejection is not None, f"duplex = {self.duplex}",
               "needs nodes with a rate of ejection", "duplex", "ejection")  # fmt: skip

    @property
    def switched(self) -> bool:
        """Tells whether routers have a crossbar that packets wait for."""
        return self.crossbar is not None

    @property
    def buffered(self) -> bool:
        """Tells whether there are output buffers behind the crossbar."""
        return self.crossbar is not None and self.output_buffer is not None

    @property
    def crossbar_rate(self) -> int:
        """Returns the picoseconds per byte of a crossbar, times 2**16."""
        return rate_at(self.machine.local.bandwidth * (self.crossbar or 1.0))

    def seed_of(self, what: str) -> int:
        """Returns the seed of placement, mapping or traffic: its own, or else that of the run."""
        own: int | None = getattr(self, f"{what}_seed")
        return self.seed if own is None else own

    # -- what is expected of jobs

    @cached_property
    def exchange(self) -> Exchange | None:
        """Returns the market in which the machine takes part, None where it does in none."""
        if self.market is None:
            return None
        assert self.power is not None
        assert self.workload is not None
        return exchange(self.market, self.power, self.workload, self.seed)

    @cached_property
    def draws(self) -> Any:
        """[job, POWER]: what nodes of jobs draw."""
        assert self.power is not None
        assert self.workload is not None
        return draws_of(self.power, self.workload)

    # -- when

    @property
    def warmup_ps(self) -> int:
        """Returns when the measurement begins, in ps."""
        return self.traffic[0].warmup_ps if self.traffic else 0

    @property
    def measure_ps(self) -> int | None:
        """Returns how long the measurement takes, in ps; None: to the end of the run."""
        return self.traffic[0].measure_ps if self.traffic else None

    @property
    def jobs(self) -> tuple[Job, ...]:
        return self.workload.jobs if self.workload else ()

    @property
    def telemetry(self) -> Telemetry | None:
        """Returns how the scheduler hears of the network; None where it does not."""
        return self.workload.telemetry if self.workload else None

    @property
    def ends(self) -> bool:
        """Tells whether everything that is asked for ends by itself."""
        endless = any(job.background for job in self.jobs)
        return all(traffic.ends for traffic in self.traffic) and not endless

    @property
    def packet_words(self) -> int:
        """Returns the words of a packet."""
        return PARCEL if self.trace_packets is None else TRACED_PARCEL

    # -- where: agents

    @property
    def agent_bits(self) -> int:
        """Returns the number of bits of an agent's number that count within its group."""
        return (self.machine.routers * (1 + self.machine.nodes) - 1).bit_length()

    @property
    def offset(self) -> int:
        """By how much a group's number is less than that of its unit: the first unit is the
        scheduler's, where there is one."""
        return int(self.workload is not None)

    def groups_of(self, first: int, last: int) -> tuple[int, int]:
        """Returns the first group among the agents first .. last - 1, and the first after them."""
        g0, g1 = ((agent >> self.agent_bits) - self.offset for agent in (first, last))
        return max(0, g0), max(0, g1)

    def has_scheduler(self, first: int) -> bool:
        """Tells whether the scheduler is among the agents from `first` on."""
        return self.workload is not None and first == 0

    # -- channels and links

    @property
    def bases(self) -> tuple[int, int, int, int]:
        """Returns the first local VC of each leg (`odonata.agents.packet`)."""
        if ROUTINGS.named(self.routing).always_minimal:
            return 0, 0, 0, 1
        return 0, 1, 2, 3 if self.via == "group" else 4

    @property
    def first_bytes(self) -> int:
        """Returns how many bytes of a packet must have arrived before a router handles it."""
        return {"cut-through": 0, "flit": self.flit_bytes, "store": 1 << 40}[self.forwarding]

    @property
    def channels(self) -> int:
        """Returns the number of virtual channels of a port."""
        return 1 if self.vcs == "one" else self.bases[3] + 1

    @property
    def least_packet(self) -> int:
        """Returns the size of the smallest packet of any message, in bytes."""
        parts = (*self.traffic, *((self.workload,) if self.workload else ()))
        return int(min(part.least_packet(self.packet_bytes) for part in parts))

    def serialisation(self, link: LinkClass, size: int) -> int:
        """Returns the serialisation time of so many bytes on such a link, in ps, as the kernel
        computes it."""
        return _duration(rate_of(link), size)

    @property
    def shortest_ps(self) -> int:
        """Returns the least time after which room is given back for a packet that begins to leave a
        buffer, in ps."""
        if self.credits != "packet":
            return 0
        m = self.machine
        rates = [rate_of(link) for link in (m.terminal, m.local, m.global_)]
        if self.switched:
            rates = [self.crossbar_rate]
        return min(_duration(rate, self.least_packet) for rate in rates)


def rate_of(link: LinkClass) -> int:
    """Returns the picoseconds per byte, times 2**16."""
    return rate_at(link.bandwidth)


def rate_at(bandwidth: float) -> int:
    """Returns the picoseconds per byte at so many bytes per second, times 2**16."""
    return max(1, round(1e12 / bandwidth * (1 << RATE_BITS)))


def _duration(rate: int, size: int) -> int:
    return max(1, (size * rate + (1 << (RATE_BITS - 1))) >> RATE_BITS)
