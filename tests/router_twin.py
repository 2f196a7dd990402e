"""A second network of packets, written from docs/network.md and docs/router.md, to be read and not
to be fast: one object per packet, one event per thing that can happen, counters computed at the end
from lists of intervals. It shares no line with the kernels, which are held against it packet by
packet (`tests/agents/test_router_twin.py`).

    Twin(network).run(until_ps)

gives `deliveries` (per node), `counters`, `busy_ps` and `queues` in the order of the kernels'
outcome, and `jobs.board`. What the twin is made of is in `twin_parts`, the choice of paths in
`twin_routing`, and what sends messages in `twin_sources`.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np
from twin_parts import (
    NEVER,
    Agent,
    Channel,
    Delivery,
    Node,
    Packet,
    Place,
    Port,
    Rate,
    Room,
    Router,
    length,
    overlap,
    union,
)
from twin_patterns import below, mix
from twin_routing import Paths
from twin_sources import ARBITRATE, ARRIVE, CREDIT, DELIVER, TAIL, Jobs, Message, Source


class Twin:
    def __init__(self, network: Any) -> None:
        self.network, self.machine = network, network.machine
        self.events: list[Any] = []
        self.sequence = 0
        m = self.machine
        self.crossbar = network.crossbar
        if self.crossbar is not None:
            self.cross = Rate(self.crossbar * m.local.bandwidth)
        self.ejects = network.ejection
        self.half = self.ejects is not None and network.duplex == "half"
        self.drain = Rate(self.ejects) if self.ejects is not None else None
        self.allocation = network.allocation_ps
        agents = [(g, i) for g in range(m.groups) for i in range(m.routers)]
        self.routers = {agent: Router() for agent in agents}
        self.nodes = [Node() for _ in range(m.n_nodes)]
        self.ports: dict[tuple[Agent, int], Port] = {}
        self._cable()
        self.paths = Paths(network, self.ports)
        self.deliveries: list[list[Delivery]] = [[] for _ in range(m.n_nodes)]
        self.generated = [0] * m.n_nodes
        self.sources = [Source(self, number) for number in range(len(network.traffic))]
        self.jobs = Jobs(self) if network.workload else None

    def _cable(self) -> None:
        m, n = self.machine, self.network
        sizes = {"terminal": n.ejection_buffer if self.ejects else None,
                 "local": n.local_buffer, "global": n.global_buffer}  # fmt: skip
        for router in range(m.n_routers):
            here = divmod(router, m.routers)
            for cable in m.neighbours(router):
                terminal = cable.kind == "terminal"
                there = self.agent_of(cable.far) if terminal else divmod(cable.far, m.routers)
                far = there, 0 if terminal else cable.far_port
                port = Port(here, cable.port, m.link(cable.kind), far)
                self._add(port, sizes[cable.kind])
        for node in range(m.n_nodes):
            here, router = self.agent_of(node), divmod(node // m.nodes, m.routers)
            self._add(Port(here, 0, m.terminal, (router, node % m.nodes)), n.terminal_buffer)

    def _add(self, port: Port, size: int | None) -> None:
        at_router = port.agent[1] < self.machine.routers
        for vc in range(self.network.channels):
            channel = Channel(port, vc, size)
            if at_router and self.crossbar is not None and self.network.output_buffer is not None:
                channel.buffer = Room(self.network.output_buffer)
            port.channels.append(channel)
        self.ports[port.agent, port.number] = port

    def agent_of(self, node: int) -> Agent:
        """Returns the agent of a node: a group's are its routers, then its nodes."""
        m = self.machine
        group, index = divmod(node, m.routers * m.nodes)
        return group, m.routers + index

    # -- events

    def at(self, time: int, kind: int, agent: Agent, port: Any, do: Any, *what: Any) -> None:
        self.sequence += 1
        heapq.heappush(self.events, (time, kind, agent, port, self.sequence, do, what))

    def run(self, until: int) -> Twin:
        """Handle all events before this time, and count up to it."""
        for source in self.sources:
            source.begin()
        if self.jobs:
            self.jobs.begin()
        while self.events and self.events[0][0] < until:
            time, _, _, _, _, do, what = heapq.heappop(self.events)
            do(time, *what)
        self._count(until)
        return self

    # -- a channel and its link

    def send(self, now: int, message: Message) -> None:
        """A message joins the source queue of its node."""
        self.generated[message.source] += 1
        port = self.ports[self.agent_of(message.source), 0]
        port.channels[0].blocked.append(message)
        self.inject(now, port)

    def request(self, now: int, packet: Packet) -> None:
        """A packet requests the link of the channel that it wants."""
        channel = packet.wants
        assert channel is not None
        packet.ready = now
        channel.blocked.append(packet)
        self.serve(now, channel)

    def serve(self, now: int, channel: Channel) -> None:
        """Grant the link to the packets of a router's channel that have credit, in order."""
        while channel.blocked and channel.credit.has(now, channel.blocked[0].size):
            packet = channel.blocked.popleft()
            assert isinstance(packet, Packet)
            channel.credit.take(now, packet.size)
            self.grant(now, packet, channel)

    def inject(self, now: int, port: Port) -> None:
        """Cut messages of a node's source queue, which is in its channel 0, into packets, and grant
        them the link, as long as one of the channels that a packet may take has credit for it."""
        queue, lanes = port.channels[0].blocked, self.network.injection_channels
        while queue:
            message = queue[0]
            assert isinstance(message, Message)
            size = min(message.left, self.network.packet_bytes)
            rest = message.left - size
            packet = Packet(message, size, mix(message.word, rest) if rest else message.word)
            favourite = below(mix(packet.word, 4), lanes)
            order = [port.channels[(favourite + i) % lanes] for i in range(lanes)]
            able = [lane for lane in order if lane.credit.has(now, size)]
            if not able:
                return
            able[0].credit.take(now, size)
            message.left = rest
            start = self.grant(now, packet, port.channels[0])
            packet.came = able[0]
            if rest == 0:
                queue.popleft()
                if message.task is not None:
                    assert self.jobs is not None
                    self.jobs.sent(start, message)
            if self.half and not queue:
                self.drain_next(now, message.source)

    def grant(self, now: int, packet: Packet, channel: Channel) -> int:
        """Reserve the link, and send the packet on. Returns when it begins to leave."""
        port = channel.port
        start = max(now, port.busy)
        end = max(start + port.rate.time(packet.size), packet.tail)
        port.busy = end
        port.uses.append((start, end))
        channel.waits.append((packet.ready, start))
        channel.lacks.append((packet.ready, now))
        channel.packets += 1
        channel.bytes += packet.size
        channel.flits += -(-packet.size // self.network.flit_bytes)
        came, packet.came = packet.came, channel
        if channel.buffer is not None:
            room = self.given_back(start, end, packet.size, self.cross)
            channel.buffer.give(room, packet.size)
            self.at(room, ARBITRATE, port.agent, (0,), self.arbitrate, port.agent)
        elif self.crossbar is None and came is not None:
            self.give_credit(came, start, end, packet.size)
        agent, number = port.far
        if agent[1] >= self.machine.routers:
            self.eject(end + port.latency, packet)
            return start
        delay = port.latency + self.network.delay_ps
        packet.tail = end + delay
        head = start + delay
        first = self.first_part(packet.size)
        if first == packet.size:
            head = packet.tail
        elif first > 0:
            head += port.rate.time(first)
        self.at(head, ARRIVE, agent, (number,), self.arrive, packet)
        return start

    def first_part(self, size: int) -> int:
        """Returns how many bytes of a packet must have arrived before a router handles it."""
        ways = {"cut-through": 0, "flit": min(size, self.network.flit_bytes), "store": size}
        return ways[self.network.forwarding]

    def given_back(self, start: int, left: int, size: int, rate: Rate) -> int:
        """Returns when the room that a packet leaves is given back, if it is filled at a rate."""
        how = self.network.credits
        if how == "packet":
            return left
        if how == "head":
            return start
        flit = min(size, self.network.flit_bytes)
        last = rate.time(size - flit) if size > flit else 0
        return max(start + (left - start) * flit // size, left - last)

    def give_credit(self, channel: Channel, start: int, left: int, size: int) -> None:
        """A packet leaves the buffer at the far end of a channel."""
        port = channel.port
        date = self.given_back(start, left, size, port.rate) + port.latency
        date += self.network.credit_delay_ps
        channel.credit.give(date, size)
        self.at(date, CREDIT, port.agent, (port.number, channel.vc), self.credit_due, channel)
        if self.crossbar is not None and port.agent in self.routers and channel.buffer is None:
            self.at(date, ARBITRATE, port.agent, (0,), self.arbitrate, port.agent)

    def credit_due(self, now: int, channel: Channel) -> None:
        if channel.port.agent in self.routers:
            self.serve(now, channel)
        else:
            self.inject(now, channel.port)

    # -- a router

    def arrive(self, now: int, packet: Packet) -> None:
        """A packet's head has passed the pipeline of a router."""
        came = packet.came
        assert came is not None
        here, number = came.port.far
        packet.visited += 1
        packet.wants = self.paths.route(now, here, packet)
        if self.crossbar is None:
            self.request(now, packet)
            return
        router, key = self.routers[here], (number, came.vc)
        queue = router.queues.setdefault(key, deque())
        queue.append(Place(packet, packet.wants, now))
        if len(queue) == 1:
            queue[0].first = max(now, router.queue_free.get(key, 0))
            if self.can_be_assigned(now, router, key):
                self.assign(router, key)
            if self.can_cross(now, router, key):
                self.begin(now, here, router, key)

    def can_be_assigned(self, now: int, router: Router, key: tuple[int, int]) -> bool:
        if not self.allocation or not router.queues[key]:
            return False
        first = router.queues[key][0]
        if first.first > now or first.holds:
            return False
        return router.channel_free.get(self.output_channel(first), 0) <= now

    def output_channel(self, place: Place) -> tuple[int, int]:
        """Returns the output port, and which of its channels is to be assigned: of two at a node,
        the second is for packets from other groups."""
        port, message = place.channel.port, place.packet.message
        if port.far[0] in self.routers:
            return port.number, place.channel.vc
        return port.number, int(self.agent_of(message.source)[0] != self.agent_of(message.to)[0])

    def assign(self, router: Router, key: tuple[int, int]) -> None:
        first = router.queues[key][0]
        first.holds = True
        channel = self.output_channel(first)
        router.channel_free[channel] = NEVER
        router.last_assigned[channel] = key

    def can_cross(self, now: int, router: Router, key: tuple[int, int]) -> bool:
        if not router.queues[key] or router.queues[key][0].began != NEVER:
            return False
        first = router.queues[key][0]
        return (
            first.first <= now
            and (first.holds or not self.allocation)
            and router.inputs.get(key[0], 0) <= now
            and router.outputs.get(first.channel.port.number, 0) <= now
            and first.channel.room.has(now, first.packet.size)
        )

    def arbitrate(self, now: int, here: Agent) -> None:
        router = self.routers[here]
        for key, queue in router.queues.items():
            if queue and queue[0].crossed <= now:
                router.gone.setdefault(key, []).append(queue.popleft())
                if queue:
                    queue[0].first = router.queue_free[key]
        while able := [key for key in router.queues if self.can_be_assigned(now, router, key)]:
            last = {key: router.last_assigned.get(self.output_channel(router.queues[key][0]))
                    for key in able}  # fmt: skip
            self.assign(router, min(able, key=lambda key: self.order(router, key, last[key])))
        while able := [key for key in router.queues if self.can_cross(now, router, key)]:
            last = {key: router.last_crossed.get(router.queues[key][0].channel.port.number)
                    for key in able}  # fmt: skip
            first = min(able, key=lambda key: self.order(router, key, last[key]))
            self.begin(now, here, router, first)

    def order(
        self, router: Router, key: tuple[int, int], last: tuple[int, int] | None
    ) -> tuple[int, int, int]:
        """Returns what queues are sorted by; `last` is the queue that what this one waits for has
        served last."""
        arbiter = self.network.arbiter
        if arbiter == "round-robin":
            if last is None:
                return (16 * key[0] + key[1], *key)
            places = 16 * self.machine.radix
            return ((16 * (key[0] - last[0]) + key[1] - last[1] - 1) % places, *key)
        if arbiter == "least-recent":
            return (router.began.get(key, -1), *key)
        if arbiter == "age":
            return (router.queues[key][0].packet.message.born, *key)
        return (0, *key)

    def begin(self, now: int, here: Agent, router: Router, key: tuple[int, int]) -> None:
        """The first packet of a queue begins to cross."""
        place = router.queues[key][0]
        packet, channel, size = place.packet, place.channel, place.packet.size
        place.began = now
        part = self.first_part(size)
        after = self.cross.time(part) if part > 0 else 0
        place.crossed = max(now + self.cross.time(size), packet.tail + after)
        router.last_crossed[channel.port.number] = key
        router.inputs[key[0]] = router.outputs[channel.port.number] = place.crossed
        router.began[key] = now
        again = place.crossed + self.allocation
        router.queue_free[key] = again
        if self.allocation:
            router.channel_free[self.output_channel(place)] = again
        for time in (place.crossed, again):
            self.at(time, ARBITRATE, here, (0,), self.arbitrate, here)
        assert packet.came is not None
        self.give_credit(packet.came, now, place.crossed, size)
        packet.tail = place.crossed
        channel.room.take(now, size)
        if channel.buffer is not None:
            self.request(now, packet)
        else:
            packet.ready = now
            self.grant(now, packet, channel)

    # -- a node

    def eject(self, tail: int, packet: Packet) -> None:
        """A packet's last byte will arrive at its node at this time."""
        to = packet.message.to
        where, node = self.agent_of(to), self.nodes[to]
        if self.drain is None:
            self.at(tail, DELIVER, where, (0,), self.deliver, packet)
        elif self.half:
            self.at(tail, TAIL, where, (0,), self.tail, packet)
        else:
            self.begin_draining(max(tail, node.drained), packet)

    def begin_draining(self, start: int, packet: Packet) -> None:
        to, came = packet.message.to, packet.came
        assert self.drain is not None
        assert came is not None
        drained = start + self.draining(packet)
        self.nodes[to].drained = drained
        self.give_credit(came, start, drained, packet.size)
        self.at(drained, DELIVER, self.agent_of(to), (0,), self.deliver, packet)

    def draining(self, packet: Packet) -> int:
        """Returns how long a packet takes to drain: one of a request, as its part of the reply on
        the node's link at least."""
        message = packet.message
        assert self.drain is not None
        own = self.drain.time(packet.size)
        if message.reply == 0:
            return own
        link = self.ports[self.agent_of(message.to), 0].rate
        return max(own, link.time(message.reply * packet.size // message.size))

    def tail(self, now: int, packet: Packet) -> None:
        self.nodes[packet.message.to].arrived.append(packet)
        self.drain_next(now, packet.message.to)

    def drain_next(self, now: int, number: int) -> None:
        """Begin to drain a packet, if a half-duplex node has one and may: from the instant on at
        which the one before has been drained, if it arrives just then even before that one is
        delivered (and perhaps answered)."""
        node, source = self.nodes[number], self.ports[self.agent_of(number), 0].channels[0]
        if node.arrived and node.drained <= now and not source.blocked:
            self.begin_draining(now, node.arrived.popleft())

    def deliver(self, now: int, packet: Packet) -> None:
        message = packet.message
        self.deliveries[message.to].append(
            Delivery(
                now,
                message.source,
                message.to,
                message.born,
                packet.size,
                packet.visited,
                message.job,
                packet.through is not None,
            )
        )
        message.missing -= packet.size
        if message.missing == 0 and message.job is not None:
            assert self.jobs is not None
            self.jobs.complete(now, message)
        if self.half:
            self.drain_next(now, message.to)

    # -- counters

    def _count(self, until: int) -> None:
        m, vcs = self.machine, self.network.channels
        rows = m.routers * (m.radix + m.nodes)
        self.counters = np.zeros((m.groups, rows, vcs, 5), np.int64)
        self.busy_ps = np.zeros((m.groups, rows), np.int64)
        self.queues = np.zeros((m.groups, m.routers * m.radix, vcs, 4), np.int64)
        for port in self.ports.values():
            group, index = port.agent
            row = index * m.radix + port.number
            if index >= m.routers:
                row = m.routers * m.radix + index - m.routers
            busy = union(port.uses, until)
            self.busy_ps[group, row] = length(busy)
            for channel in port.channels:
                left = [(self.since(each), until) for each in channel.blocked]
                waits = union([*channel.waits, *left], until)
                lacks = union([*channel.lacks, *left], until)
                self.counters[group, row, channel.vc] = (
                    channel.packets, channel.flits, channel.bytes,
                    length(lacks) - overlap(lacks, busy), overlap(waits, busy),
                )  # fmt: skip
        for (group, index), router in self.routers.items():
            for (number, vc), queue in router.queues.items():
                row = self.queues[group, index * m.radix + number, vc]
                self._count_queue(row, [*router.gone.get((number, vc), []), *queue], until)

    def since(self, waiting: Packet | Message) -> int:
        return waiting.born if isinstance(waiting, Message) else waiting.ready

    def _count_queue(self, row: Any, places: Iterable[Place], until: int) -> None:
        """Count switch_ps, room_ps, eject_ps and longest_ps of an input queue."""
        for place in places:
            if place.first >= until:
                continue
            since, began = place.first, min(place.began, until)
            lacked = place.channel.room.lacking(since, began, place.packet.size)
            to_node = place.channel.port.far[0][1] >= self.machine.routers
            row[0] += began - since - lacked
            row[2 if to_node else 1] += lacked
            row[3] = max(row[3], began - since - lacked)
