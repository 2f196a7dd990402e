"""The paths of traced packets (`odonata.open(out).packet_trace`): as tables, as CSV, in words.

A packet is **generated** with its message, **injected** when its node sends the first byte of it,
then at each router **arrives** (its head has passed the pipeline), waits, and **leaves** (the first
byte is sent); it is **delivered** when its last byte is at its destination, and has been drained
where nodes push back. `odonata.agents.tracing` numbers packets.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt
import xarray as xr

from odonata.agents.tracing import LOGS
from odonata.experiment.units import show_time
from pdes.errors import Refused
from pdes.log import Field
from topology import Dragonfly

if TYPE_CHECKING:
    from odonata.results.run import Run

Words = npt.NDArray[np.int64]

WAITS = {
    "input_ps": "behind others in the input queue",
    "room_ps": "for room at the output",
    "switch_ps": "for the crossbar",
    "behind_ps": "behind others in its channel",
    "credit_ps": "for credit",
    "link_ps": "for the link",
}
"""What a packet waits for, in the order in which it does: columns of a hop, and their words."""
SENDING, DRAINING = "being sent", "until the node has drained it"
"""What else takes time at a place."""


class Hop(NamedTuple):
    """One hop of a packet: it leaves its node, or a router. Times are picoseconds."""

    router: int
    """-1: it leaves its node."""
    port: int
    vc: int
    arrived_ps: int
    waits_ps: dict[str, int]
    """By column of WAITS, without those that are 0."""
    start_ps: int
    left_ps: int
    next_ps: int
    to: str
    """Where it goes: "node 5" or "router 17"."""

    @property
    def place(self) -> str:
        return "" if self.router < 0 else f"router {self.router}"


class Stay(NamedTuple):
    """What a packet does at a place for a while: it waits, is being sent, or is drained."""

    place: int
    """Which one on its path: 0 is its node, the last its destination."""
    what: str
    begin_ps: int
    end_ps: int


@dataclass(frozen=True)
class PacketPath:
    """The path of one packet. Times are picoseconds."""

    number: int
    source: int
    destination: int
    bytes: int
    generated_ps: int
    hops: tuple[Hop, ...]
    delivered_ps: int | None
    """None: it had not been delivered when the run ended."""
    non_minimal: bool | None
    """None where that is not known, before it is delivered."""
    job: str
    """The name of its job; empty: it is of open-loop traffic, or has not been delivered."""
    machine: Dragonfly

    @property
    def latency_ps(self) -> int | None:
        """Returns the time from the generation of its message to its delivery."""
        return None if self.delivered_ps is None else self.delivered_ps - self.generated_ps

    @property
    def kind_of_path(self) -> str:
        """Returns minimal or non-minimal; empty where that is not known."""
        return "" if self.non_minimal is None else "non-minimal" if self.non_minimal else "minimal"

    @property
    def places(self) -> list[str]:
        """Returns where it was: its node, the routers, and where it went last."""
        return [f"node {self.source}", *(hop.place for hop in self.hops[1:]), self.hops[-1].to]

    def stays(self) -> list[Stay]:
        """Returns what it did at each place; in between it was on a link or in a pipeline."""
        found = []
        for place, hop in enumerate(self.hops):
            at = hop.arrived_ps
            for cause, took in hop.waits_ps.items():
                found.append(Stay(place, WAITS[cause], at, at + took))
                at += took
            found.append(Stay(place, SENDING, hop.start_ps, hop.left_ps))
        if self.delivered_ps is not None and self.delivered_ps > self.hops[-1].next_ps:
            last = self.hops[-1].next_ps
            found.append(Stay(len(self.hops), DRAINING, last, self.delivered_ps))
        return found

    def words(self) -> list[str]:
        """Returns its path as lines for people; the first says which packet it is."""
        about = f"packet {self.number}: {self.bytes:,} B from {_node(self.machine, self.source)} "
        about += f"to {_node(self.machine, self.destination)}"
        about += f", of job {self.job}" * bool(self.job)
        about += f", on a {self.kind_of_path} path" * bool(self.kind_of_path)
        lines = [(self.generated_ps, f"generated at node {self.source}")]
        for hop in self.hops:
            waited = ", ".join(f"{show_time(took)} {WAITS[cause]}"
                               for cause, took in hop.waits_ps.items())  # fmt: skip
            after = f" after waiting {waited}" if waited else " at once"
            by = f"to {hop.to} on VC {hop.vc}{after}; sent in "
            by += show_time(hop.left_ps - hop.start_ps)
            if hop.router < 0:
                lines.append((hop.start_ps, f"injected {by}"))
            else:
                group = hop.router // self.machine.routers
                lines.append((hop.arrived_ps, f"arrived at {hop.place} (group {group})"))
                lines.append((hop.start_ps, f"left it by port {hop.port} {by}"))
        if self.delivered_ps is None:
            lines.append((self.hops[-1].next_ps, f"arrives at {self.hops[-1].to}; no more is known "
                          "of it: it waits there, or the run ended before"))  # fmt: skip
        else:
            if self.delivered_ps > self.hops[-1].next_ps:
                lines.append((self.hops[-1].next_ps, f"at node {self.destination}, {DRAINING}"))
            lines.append((self.delivered_ps, f"delivered to node {self.destination}: "
                          f"{show_time(self.delivered_ps - self.generated_ps)} after it was "
                          f"generated, {len(self.hops) - 1} routers visited"))  # fmt: skip
        width = max(len(show_time(time)) for time, _ in lines)
        return [about, *(f"{show_time(time):>{width}}  {words}" for time, words in lines)]


def _node(machine: Dragonfly, node: int) -> str:
    router = node // machine.nodes
    return f"node {node} (router {router}, group {router // machine.routers})"


class PacketTrace:
    """The paths of all packets that were traced.

    `hops` has a row per packet and hop, in the order of packets and then of hops, and `deliveries`
    one per packet that was delivered, in the order of packets: datasets with the columns of the
    logs `packet_hops` and `packet_deliveries` (docs/results.md), with the node that each packet
    comes from, and with the input port and VC of each hop.
    """

    def __init__(
        self, machine: Dragonfly, every: int, jobs: list[str],
        hops: dict[str, Words], deliveries: dict[str, Words],
    ) -> None:  # fmt: skip
        self.machine, self.every = machine, every
        self._jobs = jobs
        order = np.lexsort((hops["hop"], hops["packet"]))
        columns = {name: values[order] for name, values in hops.items()}
        columns["from_node"] = columns["packet"] % machine.n_nodes
        columns["in_port"], columns["in_vc"] = self._inputs(columns)
        self.hops = _dataset("packet_hops", columns, "granted_ps")
        order = np.argsort(deliveries["packet"])
        columns = {name: values[order] for name, values in deliveries.items()}
        columns["from_node"] = columns["packet"] % machine.n_nodes
        self.deliveries = _dataset("packet_deliveries", columns, "delivered_ps")

    def _inputs(self, hops: dict[str, Words]) -> tuple[Words, Words]:
        """Returns the port and the VC by which each packet came to the router that it leaves; of
        its node, -1."""
        m, first = self.machine, hops["hop"] == 0
        before = np.where(first, 0, np.arange(len(first)) - 1)
        router, port = hops["router"][before], hops["port"][before]
        ends = np.full((m.n_routers, m.radix), -1)
        ends[:, m.nodes :] = m.ends()
        came = np.where(hops["hop"] == 1, hops["from_node"] % m.nodes,
                        ends[router, port] % m.radix)  # fmt: skip
        return np.where(first, -1, came), np.where(first, -1, hops["vc"][before])

    @property
    def packets(self) -> Words:
        """Returns the numbers of the packets."""
        return np.unique(self.hops["packet"].data)

    def packet(self, number: int) -> PacketPath:
        """Returns the path of a packet; refused if it was not traced."""
        m, all_of_it = self.machine, self.hops["packet"].data
        rows = self.hops.isel(row=slice(*np.searchsorted(all_of_it, [number, number + 1])))
        if not len(rows.row):
            raise Refused(self._not_traced(number))
        hops = []
        for row in range(len(rows.row)):
            one = {str(name): int(rows[name].data[row]) for name in rows}
            waits = {cause: one[cause] for cause in WAITS if one[cause]}
            hops.append(Hop(one["router"], one["port"], one["vc"], one["arrived_ps"], waits,
                            one["start_ps"], one["left_ps"], one["next_ps"],
                            leads_to(m, one["router"], one["port"], number)))  # fmt: skip
        of_delivery = self.deliveries["packet"].data
        at = int(np.searchsorted(of_delivery, number))
        done: dict[str, int] | None = None
        if at < len(of_delivery) and of_delivery[at] == number:
            done = {str(name): int(self.deliveries[name].data[at]) for name in self.deliveries}
        return PacketPath(
            number, number % m.n_nodes, int(rows["to_node"][0]), int(rows["bytes"][0]),
            int(rows["arrived_ps"][0]), tuple(hops),
            done["delivered_ps"] if done else None, bool(done["non_minimal"]) if done else None,
            self._jobs[done["job"]] if done and done["job"] >= 0 else "", m,
        )  # fmt: skip

    def _not_traced(self, number: int) -> str:
        node, count = number % self.machine.n_nodes, number // self.machine.n_nodes
        words = f"packet {number}, which is packet {count} of node {node}"
        if (count + node) % self.every:
            return f"{words}, was not traced: trace_packets = {self.every}; 1 traces every packet"
        mine = self.packets[self.packets % self.machine.n_nodes == node]
        last = f"the last of that node is packet {mine[-1]}" if len(mine) else "that node sent none"
        return f"{words}, was not sent in this run: of those traced, {last}"

    def slowest(self, count: int) -> Words:
        """Returns the numbers of the packets that took longest, the slowest first."""
        took = self.deliveries["delivered_ps"].data - self.deliveries["generated_ps"].data
        order = np.argsort(-took, kind="stable")
        return self.deliveries["packet"].data[order[:count]]  # type: ignore[no-any-return]

    def write_csv(self, file: TextIO) -> None:
        """Write a row per packet and hop; `delivered_ps` is empty until it is known."""
        out = csv.writer(file, lineterminator="\n")
        names = [*self.hops]
        out.writerow([*names, "delivered_ps"])
        done = self.deliveries["packet"].data
        columns = [self.hops[name].data for name in names]
        at = np.searchsorted(done, columns[0])
        known = np.append(done, -1)[at] == columns[0]
        when = np.append(self.deliveries["delivered_ps"].data, -1)[at]
        delivered = [str(time) if here else "" for time, here in
                     zip(when.tolist(), known.tolist(), strict=True)]  # fmt: skip
        out.writerows(zip(*(column.tolist() for column in columns), delivered, strict=True))


def leads_to(machine: Dragonfly, router: int, port: int, packet: int) -> str:
    """Returns where a port leads; of router -1, the node of the packet."""
    if router < 0:
        return f"router {packet % machine.n_nodes // machine.nodes}"
    if port < machine.nodes:
        return f"node {router * machine.nodes + port}"
    return f"router {machine.ends()[router, port - machine.nodes] // machine.radix}"


ADDED = {
    "from_node": Field("from_node", "1", "the node that it comes from"),
    "in_port": Field("in_port", "1", "the port by which it came; -1: it leaves its node"),
    "in_vc": Field("in_vc", "1", "the virtual channel on which it came; -1: it leaves its node"),
    "granted_ps": Field("granted_ps", "ps", "when it was granted the link"),
    "delivered_ps": Field("delivered_ps", "ps", "when it was delivered"),
}
"""Columns that a dataset has beside those of its log."""


def _dataset(log: str, columns: dict[str, Words], clock: str) -> xr.Dataset:
    """Returns columns of a log as a dataset, in order; `clock` is the time of the log."""
    columns[clock] = columns.pop("time_ps")
    fields = {field.name: field for field in LOGS[log].columns}
    fields = {"packet": fields.pop("packet"), **ADDED, **fields}
    return xr.Dataset({name: ("row", columns[name], {"unit": field.unit, "about": field.about})
                       for name, field in fields.items() if name in columns})  # fmt: skip


def packet_trace(run: Run) -> PacketTrace:
    """Returns the paths of the packets of a run that were traced; refused where none were."""
    every = run.experiment.metrics.trace_packets
    if every is None or "packet_hops" not in run.file:
        raise Refused(f"{run.path}: no packets were traced: odonata run --trace-packets N keeps "
                      "the path of every N-th packet of each node")  # fmt: skip
    names = [job.name or f"job {number}" for number, job in enumerate(run.network.jobs)]
    return PacketTrace(run.machine, every, names, run.log("packet_hops"),
                       run.log("packet_deliveries"))  # fmt: skip
