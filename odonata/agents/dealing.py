"""How the state of a network is dealt to ranks, array by array, so that a checkpoint goes on with
any number of them.

Most words mean the same on any rank: times, bytes, keys, addresses, ports of a router. Three kinds
do not. Numbers of parcels are changed by `pdes.dealing`, which is told here where they are. The
word FAR of a port is the row of another port, or -1 where that is on another rank; it follows from
the machine. The word CAME of a packet names the input that it occupies by the row of the port that
feeds it, if that is on the same rank, and else by its own row: `to_global` names it by its own row
in the whole machine. A packet that moves towards a router has yet to occupy an input; which it will
be is in the event that bears it.

A credit on its way is in the chain of its channel on any ranks: at a cut, also one that came from
another rank has been received.
"""

from __future__ import annotations

import numpy as np

from odonata.agents import layout as w
from odonata.agents.description import NetworkDescription
from odonata.agents.following import Dealings
from odonata.agents.layout import State
from odonata.agents.link import FEEDER_BITS, FEEDER_HERE
from odonata.agents.packet import CAME
from odonata.agents.ports import far_here, far_rows
from odonata.agents.switch import CAME_MASK
from odonata.agents.tracing import NOTES
from pdes.dealing import ByAgent, Dealing, Other, Views, chained
from pdes.events import AGENT_MASK, KEY, KIND_SHIFT, PORT_BITS, PORT_MASK, A, Rows
from pdes.words import Row


def dealing(network: NetworkDescription) -> Dealing:
    """Returns how each array of `State` is dealt."""
    m = network.machine
    port, node = m.routers * (m.radix + m.nodes), m.routers * m.nodes
    jobs, power = network.workload is not None, network.power is not None
    constant = dict.fromkeys(
        ("shape", "gates", "latencies", "rates", "threshold", "delay", "largest", "flit", "whole",
         "measured", "traffic", "pace", "partners", "nic", "jobs", "stages", "friends", "expected",
         "draws", "telemetry"),
        Other.CONSTANT,
    )  # fmt: skip
    of_scheduler = dict.fromkeys(
        ("board", "owner", "labels", "memory", "ledger", "accounts", "readings", "measured_w",
         "heard", *Dealings._fields),
        Other.FIRST,
    )  # fmt: skip

    def rows(
        per_group: int, heads: Views | None = None, tails: Views | None = None, axis: int = 0
    ) -> ByAgent:
        def before(agent: int) -> int:
            return network.groups_of(0, agent)[1] * per_group

        return ByAgent(before, axis, heads, tails)

    def chained_rows(per_group: int, row: Row) -> ByAgent:
        return rows(per_group, lambda array: _ends(array, row, "head"),
                    lambda array: _ends(array, row, "tail"))  # fmt: skip

    return {
        **constant,
        "ports": rows(port, lambda ports: _ends(ports[:, 1:], w.CHANNEL, "head")),
        "slow": chained_rows(port, w.SLOW),
        "crossing": rows(port * network.switched),
        "queues": chained_rows(port * network.switched, w.QUEUE),
        "rooms": rows(port * network.buffered, lambda rooms: (rooms[:, :, w.RETURNS],)),
        "routers": rows(m.routers * network.switched),
        "requests": rows(m.routers * network.switched),
        "ejection": chained_rows(node * (network.duplex == "half"), w.DRAIN),
        "nodes": rows(node),
        "drawn": rows(node, axis=1),
        "history": rows(node),
        "histogram": rows(1),
        "received": rows(1),
        "flows": rows(1),
        "span_bits": rows(1),
        "places": Other.SAME,  # every rank is noticed of them at the same instant
        "slots": chained_rows(node * jobs, w.OF_SLOT),
        "matching": rows(node * jobs),
        "spent": Other.SUM,
        "by_job": Other.SUM,
        "job_latencies": Other.SUM,
        "metering": Other.SAME,  # likewise
        "meters": rows(node * power),
        "holding": rows(node * power),
        "efforts": rows(node * power),
        "work": rows(node * power),
        "halts": rows(node * power),
        **of_scheduler,
        # Whatever was noted of packets is written before a checkpoint is.
        **(dict.fromkeys(NOTES, Other.CONSTANT) if network.trace_packets else {}),
    }  # fmt: skip


def _ends(array: Rows, row: Row, which: str) -> list[Rows]:
    """Returns views of the words of such rows that are heads, or tails, of chains of parcels."""
    return [array[..., word] for word in row.chains(which)]


def to_global(
    network: NetworkDescription, state: State, pending: Rows, parcels: Rows, first: int, last: int
) -> None:
    """Name the input that each packet occupies by its row in the whole machine."""
    g0, g1 = network.groups_of(first, last)
    arriving, numbers, came = _packets(state, pending, parcels)
    rows, here = (came & CAME_MASK) >> FEEDER_BITS, came & FEEDER_HERE != 0
    inputs = rows + _first_row(network, g0)
    inputs[here] = far_rows(network, g0, g1)[rows[here]]
    parcels[numbers, CAME] = _others(came) | (inputs << FEEDER_BITS) | FEEDER_HERE
    parcels[arriving[:, A], CAME] = 0


def to_local(
    network: NetworkDescription, state: State, pending: Rows, parcels: Rows, first: int, last: int
) -> None:
    """Find the far ends of ports, and name inputs as `odonata.agents.link` does on a rank."""
    g0, g1 = network.groups_of(first, last)
    far = far_here(network, g0, g1)
    state.ports[:, 0, w.FAR] = far
    arriving, numbers, came = _packets(state, pending, parcels)
    rows = ((came & CAME_MASK) >> FEEDER_BITS) - _first_row(network, g0)
    parcels[numbers, CAME] = _others(came) | _feeders(far, rows, rows << FEEDER_BITS)
    rows = _inputs(network, arriving) - _first_row(network, g0)
    parcels[arriving[:, A], CAME] = _feeders(far, rows, np.zeros(len(rows), np.int64))


def _packets(state: State, pending: Rows, parcels: Rows) -> tuple[Rows, Rows, Rows]:
    """Returns the events that bear packets to routers; and, of other packets that have been sent
    over a link, the numbers and the words CAME. (In an output buffer that word is 0, and in the
    node that it comes from below 0.)"""
    kinds = pending[:, KEY] >> KIND_SHIFT
    heads = (state.ports[:, 1:, w.HEAD], state.queues[:, :, w.Q_HEAD], state.ejection[:, w.E_HEAD],
             state.slots[:, :, w.EARLY], state.slots[:, :, w.PARTS])  # fmt: skip
    chains = [chained(parcels, head.reshape(-1))[1] for head in heads]
    borne = pending[(kinds == w.REACH) | (kinds == w.DELIVER), A]
    numbers = np.concatenate([borne, *chains])
    numbers = numbers[parcels[numbers, CAME] > 0]
    return pending[kinds == w.ARRIVE], numbers, parcels[numbers, CAME]


def _feeders(far: Rows, inputs: Rows, otherwise: Rows) -> Rows:
    """Returns the feeding ports of inputs, as in the word CAME; where the feeder is on another
    rank, `otherwise`."""
    feeders = far[inputs]
    return np.where(feeders >= 0, (feeders << FEEDER_BITS) | FEEDER_HERE, otherwise)


def _others(came: Rows) -> Rows:
    """Returns the words CAME without port and FEEDER_HERE."""
    return came & (~CAME_MASK | (FEEDER_HERE - 1))


def _inputs(network: NetworkDescription, arriving: Rows) -> Rows:
    """Returns the rows of the inputs that packets arrive at, in the whole machine."""
    agents, ports = (arriving[:, KEY] >> PORT_BITS) & AGENT_MASK, arriving[:, KEY] & PORT_MASK
    group = (agents >> network.agent_bits) - network.offset
    router = agents & ((1 << network.agent_bits) - 1)
    m = network.machine
    return group * m.routers * (m.radix + m.nodes) + router * m.radix + ports  # type: ignore[no-any-return]


def _first_row(network: NetworkDescription, group: int) -> int:
    """Returns the row of the first port of a group in the whole machine."""
    m = network.machine
    return group * m.routers * (m.radix + m.nodes)
