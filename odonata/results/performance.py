"""The performance of a network in a run: latency, throughput, utilisation, saturation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from odonata.agents import flows
from odonata.agents.audit import conclude
from odonata.agents.computing import cap_stretches
from odonata.agents.layout import (
    ACCEPTED,
    BIN_BITS,
    BIN_ONE,
    DELIVERED,
    GENERATED,
    HOPS,
    INJECTED,
    LAST_IN,
    LONGEST,
    MEASURED,
    MEASURED_GENERATED,
    MEASURED_LATENCY,
    OFFERED,
)
from odonata.agents.metrics import COUNTERS
from odonata.agents.network import Network
from odonata.experiment.units import show_time
from odonata.jobs.board import JOB_BYTES, JOB_ENERGY_J
from odonata.jobs.metering import JobEnergy
from odonata.jobs.record import JobRecord
from odonata.jobs.schedule import Schedule
from odonata.results.input_waits import by_port, input_waits
from odonata.results.steadiness import SATURATED, Steadiness, of_run
from pdes.errors import Fault

if TYPE_CHECKING:
    from pdes.driver import Result
    from pdes.events import Rows


@dataclass(frozen=True)
class Performance:
    """The performance of a network. Latencies are from the generation of a message to the arrival
    of a packet's last byte, over the packets generated during the measurement and delivered; loads
    are fractions of the injection bandwidth (that of the nodes' links)."""

    nodes: int
    messages: int
    """Messages generated, in the whole run."""
    packets: int
    """Packets delivered, in the whole run."""
    packet_hops: int
    """Routers visited by those packets."""
    mean_hops: float
    measured_packets: int
    undelivered_packets: int
    """Packets generated during the measurement and not delivered at the end."""
    mean_latency_ns: float
    median_latency_ns: float
    """The median and the 99th percentile are read from a histogram with bins of at most 1.6 %."""
    p99_latency_ns: float
    max_latency_ns: float
    last_arrival_ns: float
    """When the last packet was delivered."""
    offered: float
    throughput: float
    """The accepted load: what was delivered to the nodes during the measurement."""
    backlog_growth: float
    """The fraction of the offered load by which the source queues grew."""
    saturated: bool
    """Whether that is the verdict of `steadiness`."""
    steadiness: Steadiness
    """Whether all this is of a steady state (`odonata.results.steadiness`)."""
    links: Mapping[str, Mapping[str, float]]
    """By class: mean and largest utilisation, and stall-to-flit ratio (flit times per flit)."""
    inputs: Mapping[str, Any]
    """What first packets waited for in input queues, where routers have crossbars
    (`odonata.results.input_waits.Waits`); else empty."""


def performance(network: Network, result: Result) -> Performance:
    """Returns the performance of a run. Raises Fault where the network is deadlocked,
    AssertionError where a byte was lost."""
    cycle = conclude(network, result.outcome)
    if cycle:
        raise Fault(f"deadlock: {cycle} (found at {show_time(result.time_ps)})")
    if network.workload and not result.outcome["pending"].sum():
        for record in job_records(network, result):
            if record.end_ps is None:
                how = (
                    "never ended"
                    if record.start_ps is not None
                    else f"never started: scheduling {network.workload.order} has left it waiting"
                )
                if network.power and record.start_ps is None:
                    how += f", or power {network.power.policy} has"
                raise Fault(f"{record.name} {how}, and nothing is left to happen")
    nodes, outcome = result.outcome["nodes"], result.outcome
    total = nodes.sum(axis=0).tolist()
    return summarise(
        network,
        result.time_ps,
        Totals(
            messages=total[GENERATED], packets=total[DELIVERED], hops=total[HOPS],
            offered=total[OFFERED],
            injected=total[INJECTED], accepted=total[ACCEPTED], made=total[MEASURED_GENERATED],
            measured=total[MEASURED], latency_ps=total[MEASURED_LATENCY],
            longest_ps=int(nodes[:, LONGEST].max()), last_in_ps=int(nodes[:, LAST_IN].max()),
        ),
        outcome["histogram"].sum(axis=0),
        outcome["flows"].sum(axis=0),
        outcome["counters"].sum(axis=2),
        outcome["busy_ps"],
        _inputs(network, outcome) if network.switched else None,
    )  # fmt: skip


def _inputs(network: Network, outcome: Mapping[str, Any]) -> Any:
    m, counters = network.machine, outcome["inputs"]
    return by_port(counters).reshape(m.n_routers, m.radix, counters.shape[-1])


class Totals(NamedTuple):
    """Sums over all nodes; those from `offered` to `latency_ps` over the measurement only."""

    messages: int
    packets: int
    hops: int
    offered: int
    injected: int
    accepted: int
    made: int
    measured: int
    latency_ps: int
    longest_ps: int
    last_in_ps: int


def summarise(
    network: Network,
    time_ps: int,
    total: Totals,
    histogram: Rows,
    levels: Rows | None,
    counters: Any,
    busy_ps: Any,
    inputs: Any = None,
) -> Performance:
    """Returns the performance of a run that has reached `time_ps`. `levels` (flows by level, span
    and word) may be None while a run goes on, `counters` (by group, port and counter) and `busy_ps`
    where ports were not recorded, and so may `inputs` (by router, port and counter), also where
    there are no crossbars."""
    start = min(network.warmup_ps, time_ps)
    end = min(time_ps, start + (network.measure_ps or time_ps))
    end = min(end, active_ps(network, time_ps, total.last_in_ps))
    span = max(1, end - start)
    full = network.machine.n_nodes * network.machine.terminal.bandwidth * span / 1e12
    growth = max(0.0, (total.offered - total.injected) / total.offered) if total.offered else 0.0
    elapsed = active_ps(network, time_ps, total.last_in_ps)
    flowed, span_ps = (None, 1) if levels is None else flows.total(levels)
    mean_ps = total.latency_ps / max(1, total.measured)
    found = of_run(network, flowed, span_ps, time_ps, mean_ps)
    return Performance(
        nodes=network.machine.n_nodes,
        messages=total.messages,
        packets=total.packets,
        packet_hops=total.hops,
        mean_hops=total.hops / max(1, total.packets),
        measured_packets=total.measured,
        undelivered_packets=total.made - total.measured,
        mean_latency_ns=mean_ps / 1e3,
        median_latency_ns=min(total.longest_ps, quantile(histogram, 0.5)) / 1e3,
        p99_latency_ns=min(total.longest_ps, quantile(histogram, 0.99)) / 1e3,
        max_latency_ns=total.longest_ps / 1e3,
        last_arrival_ns=total.last_in_ps / 1e3,
        offered=total.offered / full,
        throughput=total.accepted / full,
        backlog_growth=growth,
        saturated=found.verdict == SATURATED,
        steadiness=found,
        links=_links(network, counters, busy_ps, elapsed) if counters is not None else {},
        inputs={} if inputs is None else input_waits(network, inputs, elapsed)._asdict(),
    )


def active_ps(network: Network, time_ps: int, last_in_ps: int) -> int:
    """Returns the time over which means are taken, in ps: what was simulated or, where sources stop
    by themselves, until the last packet was delivered."""
    return min(time_ps, last_in_ps) if network.ends else time_ps


def quantile(histogram: Rows, part: float) -> float:
    """Returns a percentile in picoseconds, interpolated within a bin at most 1.6 % wide."""
    if not histogram.any():
        return 0.0
    sums = np.cumsum(histogram)
    target = part * sums[-1]
    which = int(np.searchsorted(sums, max(target, 1e-9)))
    low, high = ((np.arange(which, which + 2) + BIN_ONE) << BIN_BITS).view(np.float64)
    inside = (target - (sums[which] - histogram[which])) / histogram[which]
    return float(low + (high - low) * inside)


def _links(network: Network, counters: Any, busy: Any, until: int) -> dict[str, dict[str, float]]:
    elapsed = max(1, until)
    classes = {}
    for kind, (rows, link) in ports_by_class(network).items():
        if not rows.any():
            continue
        some = counters[:, rows].reshape(-1, len(COUNTERS)).sum(axis=0)
        flits, stall = (int(some[COUNTERS.index(name)]) for name in ("flits", "stall_ps"))
        flit_ps = network.flit_bytes * 1e12 / link.bandwidth
        classes[kind] = {
            "utilisation": float(busy[:, rows].mean() / elapsed),
            "max_utilisation": float(busy[:, rows].max() / elapsed),
            "stall_to_flit": stall / flit_ps / max(1, flits),
        }
    return classes


def schedule_of(network: Network, result: Result, name: str = "") -> Schedule:
    """Returns the table of the jobs of a run."""
    outcome = result.outcome
    return Schedule.of_board(name, network.jobs, outcome["board"], outcome["labels"],
                             network.machine, result.time_ps)  # fmt: skip


def job_energy(network: Network, result: Result, schedule: Schedule) -> JobEnergy | None:
    """Returns what its jobs took; None where no power was simulated."""
    outcome, order = result.outcome, schedule.trace.number
    if not network.power or not network.workload:
        return None
    energy_j, received = outcome["accounts"][order][:, [JOB_ENERGY_J, JOB_BYTES]].T
    stretch = cap_stretches(network.workload, network.seed_of("traffic"),
                            outcome["spent"].sum(axis=0))  # fmt: skip
    return JobEnergy(energy_j, received.astype(np.int64), np.array(stretch)[order])


def job_records(network: Network, result: Result) -> list[JobRecord]:
    """Returns a record per job, in the order of the workload."""
    schedule = schedule_of(network, result)
    return schedule.records(job_energy(network, result, schedule))


def node_energy_j(result: Result) -> Any:
    """Returns the energy of each node over a run that has simulated power, by label."""
    outcome = result.outcome
    seconds = (result.time_ps - outcome["node_since_ps"]) * 1e-12
    return outcome["node_j"] + outcome["node_w"] * seconds


class Link(NamedTuple):
    """One direction of a cable between two routers, and its counters over the whole run."""

    kind: str
    router: int
    port: int
    to_router: int
    to_port: int
    utilisation: float
    packets: int
    flits: int
    bytes: int
    stall_ps: int
    wait_ps: int


def links(network: Network, result: Result) -> list[Link]:
    """Returns every link between routers, in order of router and port. (As a table:
    ``pandas.DataFrame(odonata.links(network, result))``.)"""
    m = network.machine
    far = m.ends()
    ports = slice(0, m.routers * m.radix)
    shape = (m.n_routers, m.radix)
    used = result.outcome["busy_ps"][:, ports].reshape(shape) / max(1, result.time_ps)
    counters = result.outcome["counters"].sum(axis=2)[:, ports].reshape(*shape, len(COUNTERS))
    found = []
    for router, tile in np.argwhere(far >= 0).tolist():
        port, (to_router, to_port) = tile + m.nodes, divmod(int(far[router, tile]), m.radix)
        kind = "local" if tile < m.routers - 1 else "global"
        found.append(Link(kind, router, port, to_router, to_port, float(used[router, port]),
                         *counters[router, port].tolist()))  # fmt: skip
    return found


def ports_by_class(network: Network) -> dict[str, tuple[Any, Any]]:
    """Returns which of a group's ports are of which class, and their link. A group's ports are
    those of its routers, one router after the other, then its nodes' (which inject)."""
    m = network.machine
    port = np.arange(m.radix)
    kinds = np.where(port < m.nodes, 0, np.where(port < m.nodes + m.routers - 1, 1, 2))
    kinds = np.concatenate((np.tile(kinds, m.routers), np.full(m.routers * m.nodes, 3)))
    lit = np.ones(len(kinds), bool)
    if m.groups > 1:
        lit[np.flatnonzero(kinds == 2)] = m.far()[0] >= 0
    else:
        lit[kinds == 2] = False
    links = {"eject": m.terminal, "local": m.local, "global": m.global_, "inject": m.terminal}
    return {name: ((kinds == i) & lit, link) for i, (name, link) in enumerate(links.items())}
