"""The choice of paths of the twin (`router_twin`), from docs/network.md and docs/router.md."""

from __future__ import annotations

from typing import Any

from twin_parts import Agent, Channel, Packet, Port
from twin_patterns import below, mix

from policies.routing import ROUTINGS


class Paths:
    """The routing of a network. A packet is on the `leg` of its path that network.md calls so, on
    which it has made so many local `hops`; it goes `through` a group, or a router of one, which it
    has `reached` or not."""

    def __init__(self, network: Any, ports: dict[tuple[Agent, int], Port]) -> None:
        self.network, self.machine, self.ports = network, network.machine, ports
        self.gates = self.machine.gates()
        self.minimal = network.routing == "minimal"
        self.bases = dict(zip("sdme", network.bases, strict=True))

    def route(self, now: int, here: Agent, packet: Packet) -> Channel:
        """Choose a path, if that is done here. Returns the channel of the next hop."""
        m, (group, router) = self.machine, here
        source = packet.message.source // (m.routers * m.nodes)
        to_router, to_place = divmod(packet.message.to, m.nodes)
        to = divmod(to_router, m.routers)
        if here == to and (packet.through is None or packet.reached):
            return self.channel(here, to_place, 0)
        first = packet.visited == 1
        if packet.through is None and not self.minimal and group == source:
            if group == to[0]:
                if first and self.network.detours:
                    self.consider_detour(now, here, to, packet)
            elif first or self.network.routing == "par":
                self.consider(now, here, to, packet)
        if packet.through is not None and not packet.reached:
            through, place = packet.through
            packet.reached = group == through and place in (None, router)
            if packet.reached and group == source:  # of a detour: the second hop is on d
                packet.leg, packet.hops = "d", 0
            if here == to and packet.reached:
                return self.channel(here, to_place, 0)
        aim: tuple[int, int | None] = to
        if packet.through is not None and not packet.reached:
            aim = packet.through
        if aim[0] == group:
            assert aim[1] is not None
            return self.local_hop(here, aim[1], packet)
        gate, port = self.gate(group, aim[0], packet)
        if gate != router:
            return self.local_hop(here, gate, packet)
        before = packet.through is not None and not packet.reached
        packet.leg, packet.hops = "m" if before else "e", 0
        return self.channel(here, port, self.global_vc(before))

    def channel(self, here: Agent, port: int, vc: int) -> Channel:
        return self.ports[here, port].channels[vc if self.network.vcs == "hops" else 0]

    def global_vc(self, before: bool) -> int:
        """Returns the VC of a global hop: before the intermediate group, or the last."""
        return 0 if before or self.minimal else 1

    def local_hop(self, here: Agent, to: int, packet: Packet) -> Channel:
        packet.hops += 1
        port = self.machine.local_port(here[1], to)
        return self.channel(here, port, self.bases[packet.leg] + packet.hops - 1)

    def gate(self, group: int, to: int, packet: Packet) -> tuple[int, int]:
        """Returns the router of a group, and its port, that has the packet's cable to another."""
        cable = below(packet.word, self.machine.copies)
        return self.machine.global_port(int(self.gates[group, to, cable]))

    def consider(self, now: int, here: Agent, to: Agent, packet: Packet) -> None:
        """Draw a candidate for a non-minimal path to another group, and decide."""
        m, via = self.machine, self.network.via
        u = mix(packet.word, 2 + packet.hops)
        groups = [g for g in range(m.groups) if via == "anywhere" or g not in (here[0], to[0])]
        if not groups:
            return
        group = groups[below(u, len(groups))]
        if group == here[0]:
            return
        router = None if via == "group" else below(mix(u, 1), m.routers)
        if self.prefers(
            now, self.way(here, to[0], "s", packet), self.way(here, group, "d", packet)
        ):
            packet.through = group, router
            packet.leg, packet.hops = "d", 0

    def way(self, here: Agent, group: int, leg: str, packet: Packet) -> Channel:
        """Returns the channel that a routing looks at, on the way to another group."""
        gate, port = self.gate(here[0], group, packet)
        vc = self.global_vc(leg == "d")
        if here[1] != gate and self.network.routing != "ugal-g":
            gate, port, vc = here[1], self.machine.local_port(here[1], gate), self.bases[leg]
        return self.channel((here[0], gate), port, vc)

    def consider_detour(self, now: int, here: Agent, to: Agent, packet: Packet) -> None:
        routers = [r for r in range(self.machine.routers) if r not in (here[1], to[1])]
        if not routers:
            return
        other = routers[below(mix(packet.word, 2), len(routers))]
        ports = [self.machine.local_port(here[1], router) for router in (to[1], other)]
        ways = [self.channel(here, port, self.bases["s"]) for port in ports]
        if self.prefers(now, *ways):
            packet.through = here[0], other

    def prefers(self, now: int, minimal: Channel, other: Channel) -> bool:
        """Tells whether the routing takes the non-minimal path."""
        n = self.network
        how = ROUTINGS.named(n.routing)
        threshold = how.threshold if n.threshold is None else n.threshold
        bias = how.bias * n.packet_bytes if n.bias is None else n.bias
        if n.routing == "valiant":
            return True
        if n.routing == "adaptive":
            return bool(self.free(now, other) > threshold * self.free(now, minimal))
        same = minimal.port is other.port
        queued = [way.port.queued(now, way.vc if same else None) for way in (minimal, other)]
        return bool(queued[0] > threshold * queued[1] + bias)

    def free(self, now: int, channel: Channel) -> float:
        room = channel.credit
        if self.network.sight == "output":
            assert channel.buffer is not None
            room = channel.buffer
        assert room.size is not None
        return room.at(now) / room.size
