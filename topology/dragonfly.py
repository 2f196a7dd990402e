"""The canonical dragonfly of Kim et al. (ISCA 2008): its parameters, its numbering, its cabling.

All code uses this numbering:

- router R = group·a + r; node = R·p + k.
- The ports of a router: 0 … p−1 lead to its nodes; p … p+a−2 to the others of its group, in
  order; p+a−1 … p+a−1+h−1 out of the group.
- The global ports of a group: q = r·h + k.
- Each pair of groups is joined by K cables. A group numbers the others by slots 0 … g−2, in the
  order its cabling gives, and its cables by n = c·(g−1) + s: copy c towards slot s. Cable n leaves
  at q = ⌊n·a·h / (K·(g−1))⌋: parallel cables leave from different routers wherever that can be, and
  ports that are left over are dark, as many at one router as at the next.
- Copy c of i → j is the same cable as copy c of j → i.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from topology.settings import Broken, check, required, setting

Ints = npt.NDArray[np.int32]

CABLINGS = ("absolute", "relative", "circulant")
SLOWEST, FASTEST = 1e6, 1e13
LONGEST_PS = 10**12
MOST_PORTS = 2**31 - 1


class BadMachine(ValueError):
    """Raised where no such machine can be built. `problems` are all the rules it breaks, one per
    line of the text."""

    problems: tuple[Broken, ...] = ()


def refuse(problems: Iterable[Broken]) -> None:
    """Raise BadMachine, if there are problems."""
    if found := tuple(problems):
        bad = BadMachine("\n".join(map(str, found)))
        bad.problems = found
        raise bad


@dataclass(frozen=True)
class LinkClass:
    """The properties of one kind of cable. Bandwidth is in bytes per second and direction, latency
    in picoseconds."""

    bandwidth: float = field(
        metadata=required("bandwidth", "Bandwidth of {}, each way.", least=SLOWEST, most=FASTEST)
    )
    latency_ps: int = field(metadata=required("time", "Latency of {}.", most=LONGEST_PS))

    def __post_init__(self) -> None:
        refuse(check(self))


class Cable(NamedTuple):
    """One end of a cable, seen from a router: the far end is a node where the kind is terminal."""

    port: int
    far: int
    far_port: int
    kind: str


@dataclass(frozen=True)
class Dragonfly:
    """A machine. The letters of the literature are p, a, h, g, in the order of the fields.

    `links_per_pair` is how many cables join two groups; None means all a·h ports of a group, spread
    evenly over the g−1 others, which g−1 must then divide.

    The default links are of the Slingshot kind: 200 Gbit/s, copper in the group, fibre outside.
    """

    nodes: int = field(metadata=required("whole", "Nodes per router, p.", least=1, packets=2**8))
    routers: int = field(
        metadata=required("whole", "Routers per group, a.", least=1, packets=2**10)
    )
    global_links: int = field(
        metadata=required("whole", "Global links per router, h.", least=0, packets=2**8)
    )
    groups: int = field(metadata=required("whole", "Groups, g.", least=1, packets=2**14))
    cabling: str = setting(
        "absolute", "word", "In which order a group's cables go to the others.", words=CABLINGS
    )
    links_per_pair: int | None = setting(
        None, "whole", "Cables between two groups; all: as many as there are ports for.",
        least=1, packets=2**18, none="all",
    )  # fmt: skip
    terminal: LinkClass = setting(
        LinkClass(25e9, 50_000), "links", "the link between a node and its router"
    )
    local: LinkClass = setting(LinkClass(25e9, 50_000), "links", "each local link")
    global_: LinkClass = setting(LinkClass(25e9, 300_000), "links", "each global link")

    def __post_init__(self) -> None:
        problems = [*check(self)]
        shape = ("nodes", "routers", "global_links", "groups", "links_per_pair")
        if not any(problem.fields[0] in shape for problem in problems):
            problems += self._cabling_problems()
        refuse(problems)

    def _cabling_problems(self) -> Iterator[Broken]:
        """Find the first broken rule of a machine whose numbers are valid: the rules build on each
        other."""
        ports, others, pairs = self.global_ports, self.groups - 1, self.links_per_pair
        shape = ("groups", "routers", "global_links", "links_per_pair")
        if others == 0 and pairs is not None:
            yield Broken(
                ("links_per_pair", "groups"),
                f"links_per_pair = {pairs}",
                "one group has no pairs; leave it unset",
            )
        elif others and self.global_links == 0:
            yield Broken(
                ("global_links", "groups", "routers"),
                "global_links = 0",
                f"{self.groups} groups need at least {-(-others // self.routers)} a "
                "router; 0 is for a single group",
            )
        elif others > ports:
            yield Broken(
                shape[:3],
                f"groups = {self.groups}",
                f"at most routers·global_links + 1 = {ports + 1} groups can be cabled",
            )
        elif (count := self.n_routers * self.radix) > MOST_PORTS:
            largest = max(("nodes", *shape[:3]), key=lambda name: int(getattr(self, name)))
            yield Broken(
                (largest, "nodes", *shape),
                f"{largest} = {getattr(self, largest)}",
                f"groups·routers·radix = {count} ports: at most {MOST_PORTS} can be numbered",
            )
        elif pairs is not None and pairs * others > ports:
            yield Broken(
                ("links_per_pair", *shape[:3]),
                f"links_per_pair = {pairs}",
                f"{others} other groups need {pairs * others} ports and a group has "
                f"routers·global_links = {ports}; at most {ports // others}",
            )

    @property
    def n_routers(self) -> int:
        return self.groups * self.routers

    @property
    def n_nodes(self) -> int:
        return self.n_routers * self.nodes

    @property
    def radix(self) -> int:
        """Returns the number of ports of a router, dark ones included."""
        return self.nodes + self.routers - 1 + self.global_links

    @property
    def global_ports(self) -> int:
        """Returns the number of global ports of a group, a·h, dark ones included."""
        return self.routers * self.global_links

    @property
    def copies(self) -> int:
        """Returns the number of cables between any two groups, K; 0 where there is one group."""
        if self.groups == 1:
            return 0
        return self.links_per_pair or self.global_ports // (self.groups - 1)

    @property
    def dark(self) -> int:
        """Returns the number of global ports of a group without a cable."""
        return self.global_ports - self.copies * (self.groups - 1)

    @property
    def n_links(self) -> dict[str, int]:
        """Returns the number of cables of each kind; each carries its bandwidth in both directions
        at once."""
        return {
            "terminal": self.n_nodes,
            "local": self.groups * self.routers * (self.routers - 1) // 2,
            "global": self.copies * self.groups * (self.groups - 1) // 2,
        }

    def link(self, kind: str) -> LinkClass:
        """Returns the class of 'terminal', 'local' or 'global' cables."""
        return {"terminal": self.terminal, "local": self.local, "global": self.global_}[kind]

    def gates(self) -> Ints:
        """Returns [g, g, K]: the global port q of group i by which copy c towards group j leaves;
        −1 for j = i.

        The array is cached, shared and read-only, as is `far`.
        """
        return self._gates

    def far(self) -> Ints:
        """Returns [g, a·h]: group·(a·h) + q at the other end of the cable; −1 for dark ports."""
        return self._far

    @cached_property
    def _slots(self) -> Ints:
        """Returns [g, g]: the slot that group i gives to group j; meaningless for j = i."""
        g = self.groups
        i, j = np.ogrid[:g, :g]
        if self.cabling == "absolute":
            slots = j - (j > i)
        elif self.cabling == "relative":
            slots = (j - i - 1) % g
        else:  # circulant: +1, −1, +2, −2, …; half way round comes last, and once
            ahead = (j - i) % g
            slots = np.where(2 * ahead <= g, 2 * (ahead - 1), 2 * (g - ahead) - 1)
        return np.asarray(slots, np.int32)

    @cached_property
    def _gates(self) -> Ints:
        g, copies = self.groups, self.copies
        first = np.arange(copies, dtype=np.int32) * np.int32(g - 1)
        cables = self._slots[:, :, None].astype(np.int64) + first
        gates: Ints = (cables * self.global_ports // max(1, copies * (g - 1))).astype(np.int32)
        gates[np.arange(g), np.arange(g)] = -1
        return _frozen(gates)

    @cached_property
    def _far(self) -> Ints:
        g, ports = self.groups, self.global_ports
        far = np.full((g, ports), -1, np.int32)
        here, there = np.nonzero(~np.eye(g, dtype=bool))
        for copy in range(self.copies):
            out = self.gates()[:, :, copy]
            far[here, out[here, there]] = there * ports + out[there, here]
        return _frozen(far)

    def ends(self) -> npt.NDArray[np.int64]:
        """Returns [routers, radix − p]: the other end of each port to a router, as router · radix +
        port; −1 for dark ports."""
        p, a, h, radix = self.nodes, self.routers, self.global_links, self.radix
        ends = np.full((self.groups, a, radix - p), -1, np.int64)
        first = np.arange(self.groups)[:, None, None] * a
        r, j = np.arange(a)[None, :, None], np.arange(a - 1)[None, None, :]
        x = j + (j >= r)
        ends[:, :, : a - 1] = (first + x) * radix + p + r - (r > x)
        if h and self.groups > 1:
            far = self.far().reshape(self.groups, a, h).astype(np.int64)
            there, q = far // (a * h), far % (a * h)
            out = (there * a + q // h) * radix + p + a - 1 + q % h
            ends[:, :, a - 1 :] = np.where(far >= 0, out, -1)
        return ends.reshape(self.n_routers, radix - p)

    def global_cables(self) -> Ints:
        """Returns [cables, 4]: group i, port q, group j, port q' of each cable once, i < j."""
        i, j = np.triu_indices(self.groups, 1)
        gates = self.gates()
        i, j, c = (np.repeat(i, self.copies), np.repeat(j, self.copies),
                   np.tile(np.arange(self.copies), len(i)))  # fmt: skip
        return np.stack([i, gates[i, j, c], j, gates[j, i, c]], axis=1).astype(np.int32)

    def local_port(self, r: int, x: int) -> int:
        """Returns the port of router r of a group that leads to router x of it."""
        if r == x or not (0 <= r < self.routers and 0 <= x < self.routers):
            raise ValueError(f"routers {r} and {x}: two different ones of 0 … {self.routers - 1}")
        return self.nodes + (x if x < r else x - 1)

    def global_port(self, q: int) -> tuple[int, int]:
        """Returns the router of a group, and its port, that is global port q of the group."""
        if not 0 <= q < self.global_ports:
            raise ValueError(f"global port {q}: a group has 0 … {self.global_ports - 1}")
        r, k = divmod(q, self.global_links)
        return r, self.nodes + self.routers - 1 + k

    def where(self, node: int) -> tuple[int, int, int]:
        """Returns the group, the router in the group, and the place at the router, of a node."""
        if not 0 <= node < self.n_nodes:
            raise ValueError(f"node {node}: the machine has 0 … {self.n_nodes - 1}")
        router, k = divmod(node, self.nodes)
        group, r = divmod(router, self.routers)
        return group, r, k

    def neighbours(self, router: int) -> list[Cable]:
        """Returns what each port of a router is joined to, in order; dark ports are left out."""
        if not 0 <= router < self.n_routers:
            raise ValueError(f"router {router}: the machine has 0 … {self.n_routers - 1}")
        group, r = divmod(router, self.routers)
        cables = [Cable(k, router * self.nodes + k, 0, "terminal") for k in range(self.nodes)]
        for x in (*range(r), *range(r + 1, self.routers)):
            cables.append(
                Cable(self.local_port(r, x), router - r + x, self.local_port(x, r), "local")
            )
        for q in range(r * self.global_links, (r + 1) * self.global_links):
            if (end := int(self.far()[group, q])) >= 0:
                there, far_q = divmod(end, self.global_ports)
                x, far_port = self.global_port(far_q)
                port = self.global_port(q)[1]
                cables.append(Cable(port, there * self.routers + x, far_port, "global"))
        return cables


def _frozen(table: Ints) -> Ints:
    table.flags.writeable = False
    return table
