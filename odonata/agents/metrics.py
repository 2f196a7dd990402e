"""The series that a network streams while it runs, and how they are computed from its state.

Ports, nodes and groups are in machine order. A counter's value at a time is exact: stalls and waits
count as far as they lie before it (`odonata.agents.link.waited_by`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from odonata.agents import layout as w
from odonata.agents.description import NetworkDescription
from odonata.agents.flows import by_level
from odonata.agents.link import used_by, waited_by
from odonata.agents.power import energy_at
from pdes.jit import entry
from pdes.log import Field, Log
from pdes.stream import Column, Series, Table, Total

COUNTERS = ("packets", "flits", "bytes", "stall_ps", "wait_ps")
SHORT = 10**8
"""The longest interval, in picoseconds, in which no counter of a port grows beyond 32 bits. (Times
grow by at most the interval per channel, bytes by what all the ports of a router can bring.)"""

_ABOUT = {
    "packets": ("1", "packets that were granted the link"),
    "flits": ("1", "their flits"),
    "bytes": ("B", "their bytes"),
    "stall_ps": ("ps", "a packet waited, the link was free, there was no credit; summed over VCs"),
    "wait_ps": ("ps", "a packet waited, the link was busy; summed over VCs"),
    "busy_ps": ("ps", "the link was in use"),
}
_INPUTS = {
    "switch_ps": ("ps", "the first packet of a queue waited for the crossbar; summed over VCs"),
    "room_ps": ("ps", "it waited for room at an output to a router; summed over VCs"),
    "eject_ps": ("ps", "it waited for room at an output to a node; summed over VCs"),
}
_NODES = {
    "sent_messages": (w.GENERATED, "1", "messages generated"),
    "sent_bytes": (w.GENERATED_BYTES, "B", "bytes of messages generated"),
    "received_packets": (w.DELIVERED, "1", "packets delivered"),
    "received_bytes": (w.DELIVERED_BYTES, "B", "bytes delivered"),
    "latency_ps": (w.LATENCY_SUM, "ps",
                   "sum of their latencies, from the generation of the message"),
    "hops": (w.HOPS, "1", "sum of the routers that they visited"),
}  # fmt: skip
_GROUPS = {
    "offered_bytes": (w.OFFERED, "B", "generated during the measurement"),
    "injected_bytes": (w.INJECTED, "B", "whose sending began during the measurement"),
    "accepted_bytes": (w.ACCEPTED, "B", "delivered during the measurement"),
    "measured_made": (w.MEASURED_GENERATED, "1", "packets generated during the measurement"),
    "measured_packets": (w.MEASURED, "1", "of these, those delivered"),
    "measured_latency_ps": (w.MEASURED_LATENCY, "ps", "sum of their latencies"),
}


@entry
def tally(state: Any, time: int, by_channel: int, counters: Any, busy: Any) -> None:
    """Returns COUNTERS by counter, port row and channel (or their sum), and for how long each
    port's link was in use, in ps, from the beginning until `time`."""
    flit = state.flit[0] + 1
    counters[:] = 0
    for row in range(state.ports.shape[0]):
        port = state.ports[row, 0]
        used = used_by(port, time)
        busy[row] = used
        for vc in range(state.slow.shape[1]):
            channel, slow = state.ports[row, 1 + vc], state.slow[row, vc]
            if channel[w.PACKETS] == 0 and channel[w.HEAD] < 0:
                continue
            stall, wait = waited_by(channel, slow, used, time)
            at = vc if by_channel else 0
            counters[0, row, at] += channel[w.PACKETS]
            counters[1, row, at] += (channel[w.BYTES] + slow[w.PADDING]) // flit
            counters[2, row, at] += channel[w.BYTES]
            counters[3, row, at] += stall
            counters[4, row, at] += wait


INPUT_COUNTERS = ("switch_ps", "room_ps", "eject_ps", "longest_ps")
"""Counters of an input queue, where routers have crossbars."""


def counted_inputs(state: Any, time: int) -> Any:
    """Returns INPUT_COUNTERS by port row, VC and counter, from the beginning until `time`, in ps.
    A packet that waits counts with what it has waited so far."""
    queues = state.queues
    waited, room, eject, longest = (
        queues[:, :, word].copy() for word in (w.Q_WAITED, w.Q_ROOM, w.Q_EJECT, w.Q_LONGEST)
    )
    so_far = np.where(queues[:, :, w.Q_WANTS] >= 0, time - queues[:, :, w.Q_SINCE], 0)
    lacked = np.where(queues[:, :, w.Q_LACKS] >= 0, time - queues[:, :, w.Q_LACKS], 0)
    to_node = queues[:, :, w.Q_WANTS] >> w.VC_BITS < state.shape[w.NODES]
    room += np.where(to_node, 0, lacked)
    eject += np.where(to_node, lacked, 0)
    before = np.where(so_far > 0, queues[:, :, w.Q_LACKED], 0)
    longest = np.maximum(longest, so_far - lacked - before)
    return np.stack((waited + so_far - room - eject, room, eject, longest), axis=-1)


def counted(state: Any, time: int, channels: int = 0) -> tuple[Any, Any]:
    """Returns the counters by counter, port row and channel, and busy times by port row, in ps;
    with 0 channels they are summed."""
    counters = np.empty((len(COUNTERS), len(state.ports), max(1, channels)), np.int64)
    busy = np.empty(len(state.ports), np.int64)
    tally(state, time, int(channels > 0), counters, busy)
    return counters, busy


FLOWS = (
    "by the length of a span, 2**(10 + level) ps; words: B generated, injected and delivered in "
    "it; packets generated in it, those of them delivered, and the sum of their latencies in ps"
)

LOGS = {
    "starts": Log(
        (Field("job", "1", "its number"),
         Field("start_ps", "ps", "when it was to start: a launch latency after the decision"),
         Field("labels", "1", "its nodes, in the order in which it was given them", "i4", True)),
        "a row when the scheduler has decided that a job starts",
    ),
    "ends": Log(
        (Field("job", "1", "its number"), Field("end_ps", "ps", "when its last task ended")),
        "a row when the scheduler was notified of the end of a job's last task",
    ),
}  # fmt: skip


POWERED_ENDS = Log(
    (*LOGS["ends"].columns,
     Field("energy_j", "J", "the energy that its nodes took while they had tasks of it", "f8"),
     Field("received_bytes", "B", "what its tasks received from other nodes")),
    LOGS["ends"].about,
)  # fmt: skip


def of_jobs(network: NetworkDescription) -> Table:
    """Returns the constant properties of every job, on the rank that has the scheduler."""
    jobs = network.jobs

    def column(name: str, unit: str, about: str, values: Sequence[Any]) -> Column:
        def of(state: Any) -> Any:
            return np.array(values)[: len(state.board)]

        return Column(f"jobs/{name}", "job", unit, about, of)

    def of_stages(name: str, about: str, values: Sequence[Any]) -> Column:
        def of(state: Any) -> Any:
            return np.array(values)[: len(values) if len(state.board) else 0]

        return Column(f"stages/{name}", "stage", "1", about, of)

    stages = [(n, stage) for n, job in enumerate(jobs) for stage in job.parts]
    names = [(job.name or f"job {n}").encode() for n, job in enumerate(jobs)]
    return Table(
        (),
        lambda state, time: [],
        (column("name", "1", "what it is called, in UTF-8", names),
         column("pattern", "1", "communication pattern, or application profile",
                [job.does.encode() for job in jobs]),
         column("nodes", "1", "nodes that it asked for", [job.nodes for job in jobs]),
         column("arrival_ps", "ps", "when it joined the queue", [job.arrival_ps for job in jobs]),
         column("requested_ps", "ps", "run time that its user asked for; -1: unknown",
                [-1 if job.requested_ps is None else job.requested_ps for job in jobs]),
         column("user", "1", "who submitted it, in UTF-8", [job.user.encode() for job in jobs]),
         column("project", "1", "on whose account it ran, in UTF-8",
                [job.project.encode() for job in jobs]),
         column("application", "1", "the program that it ran, in UTF-8",
                [job.application.encode() for job in jobs]),
         of_stages("job", "the job that the stage is of", [n for n, _ in stages]),
         of_stages("pattern", "its communication pattern",
                   [stage.pattern.encode() for _, stage in stages]),
         of_stages("name", "what it is called, in UTF-8",
                   [(stage.name or stage.pattern).encode() for _, stage in stages])),
        (*_totals(),),
    )  # fmt: skip


PRICES = {
    "energy_price": "what is paid for a kWh of the average that was bid",
    "reserve_price": "what is earned by a kW of reserve that is offered for an hour",
    "error_price": "what is paid for a kWh by which the machine is off its target",
}


def of_market(network: NetworkDescription) -> dict[str, Table]:
    """Returns the prices of a market over time, on the rank that has the scheduler."""
    exchange = network.exchange
    if exchange is None:
        return {}

    def column(name: str, unit: str, about: str, values: Any) -> Column:
        dim = name.partition("/")[0]
        return Column(name, dim, unit, about,
                      lambda state: values if len(state.board) else values[:0])  # fmt: skip

    found = {}
    for name, about in PRICES.items():
        steps = exchange.trade.series[name]
        found[name] = Table((), lambda state, time: [], (
            column(f"{name}/since_ps", "ps", "since when it holds", steps.times),
            column(f"{name}/value", "1/kWh", about, steps.values),
        ))  # fmt: skip
    return found


BY_JOB = {
    "packets": (w.BY_PACKETS, "1", "packets that were delivered to it through the network"),
    "bytes": (w.BY_BYTES, "B", "their bytes"),
    "latency_ps": (w.BY_LATENCY, "ps", "sum of their latencies"),
    "hops": (w.BY_HOPS, "1", "sum of the routers that they visited"),
    "non_minimal_packets": (w.BY_NON_MINIMAL, "1", "those of them on non-minimal paths"),
    "non_minimal_hops": (w.BY_NON_MINIMAL_HOPS, "1", "sum of the routers that those visited"),
}
"""What is counted of each job's packets: the word of `State.by_job`, the unit, and what it is."""
SPENT = {
    "computed_ps": (w.COMPUTED_PS, "how long its tasks computed; summed over tasks"),
    "overhead_ps": (w.OVERHEAD_PS, "how long they were in MPI without waiting for the network"),
    "sent_ps": (w.SENT_PS, "how long they were sending"),
    "waited_ps": (w.WAITED_PS, "how long they waited"),
}
"""What the tasks of each stage did with their time: the word of `State.spent`, and what it is."""


def _totals() -> Iterator[Total]:
    """Returns what is known of jobs and stages when a run is over."""
    for name, (word, unit, words) in BY_JOB.items():
        yield Total(f"jobs/{name}", ("job",), unit, words, _word("by_job", word))
    yield Total("jobs/latencies", ("job", "bin"), "1",
                "measured packets by latency, as in groups/latencies",
                lambda state: state.job_latencies)  # fmt: skip
    for name, (word, words) in SPENT.items():
        yield Total(f"stages/{name}", ("stage",), "ps", words, _word("spent", word))


def _word(array: str, word: int) -> Callable[[Any], Any]:
    return lambda state: getattr(state, array)[:, word]


def tables(network: NetworkDescription, interval: int) -> Mapping[str, Table]:
    m = network.machine
    own, behind = m.routers * m.radix, m.routers * m.nodes
    narrow = "i4" if interval <= SHORT else "i8"

    def of_routers(values: Any) -> Any:
        """Returns the rows without the nodes' own ports, which follow those of their group's
        routers."""
        rest = values.shape[1:]
        groups = values.reshape(-1, own + behind, *rest)[:, :own]
        return groups.reshape(-1, m.radix, *rest)

    def of_nodes(values: Any) -> Any:
        return values.reshape(-1, own + behind)[:, own:].reshape(-1)

    def ports(state: Any, time: int) -> Sequence[Any]:
        counters, busy = counted(state, time)
        return [of_routers(values) for values in (*counters[:, :, 0], busy)]

    def channels(state: Any, time: int) -> Sequence[Any]:
        return [of_routers(values) for values in counted(state, time, network.channels)[0]]

    def nodes(state: Any, time: int) -> Sequence[Any]:
        counters, busy = counted(state, time)
        injected = (
            counters[0, :, 0],
            counters[1, :, 0],
            counters[3, :, 0],
            counters[4, :, 0],
            busy,
        )
        drawn = [energy_at(state, time)] if network.power else []
        return [*(state.nodes[:, word] for word, _, _ in _NODES.values()),
                *map(of_nodes, injected), *drawn]  # fmt: skip

    def groups(state: Any, time: int) -> Sequence[Any]:
        words = state.nodes.reshape(-1, behind, state.nodes.shape[1])
        sums = words.sum(axis=1)
        return [*(sums[:, word] for word, _, _ in _GROUPS.values()),
                words[:, :, w.LONGEST].max(axis=1), words[:, :, w.LAST_IN].max(axis=1),
                state.received, state.histogram]  # fmt: skip

    def series(table: str, dims: tuple[str, ...], names: Mapping[str, tuple[str, str]], dtype: str,
               prefix: str = "") -> list[Series]:  # fmt: skip
        return [Series(f"{table}/{prefix}{name}", dims, unit, about, dtype)
                for name, (unit, about) in names.items()]  # fmt: skip

    def inputs(state: Any, time: int) -> Sequence[Any]:
        found = of_routers(counted_inputs(state, time))
        return [*np.moveaxis(found[..., :3].sum(axis=2), -1, 0), found[..., 3].max(axis=2)]

    of_channel = {name: _ABOUT[name] for name in COUNTERS}
    inject = {name: _ABOUT[name] for name in ("packets", "flits", "stall_ps", "wait_ps", "busy_ps")}
    wide = {"nodes": _NODES, "groups": _GROUPS}
    node, group = ({name: what[1:] for name, what in wide[t].items()} for t in ("nodes", "groups"))
    jobs = {"jobs": of_jobs(network)} if network.workload else {}
    jobs |= of_market(network)
    energy = [Series("nodes/energy_j", ("node",), "J", "energy since the beginning of the run",
                     "f8", level=True)] * (network.power is not None)  # fmt: skip
    waits = [*series("inputs", ("router", "port"), _INPUTS, narrow),
             Series("inputs/longest_ps", ("router", "port"), "ps",
                    "the longest that any packet has waited for the crossbar while it had room",
                    level=True)]  # fmt: skip
    switches = {"inputs": Table((*waits,), inputs)} if network.switched else {}
    return jobs | switches | {
        "ports": Table((*series("ports", ("router", "port"), _ABOUT, narrow),), ports),
        "channels": Table(
            (*series("channels", ("router", "port", "vc"), of_channel, narrow),), channels
        ),
        "nodes": Table(
            (*series("nodes", ("node",), node, "i8"),
             *series("nodes", ("node",), inject, narrow, "inject_"), *energy),
            nodes,
        ),
        "groups": Table(
            (*series("groups", ("group",), group, "i8"),
             Series("groups/longest_latency_ps", ("group",), "ps",
                    "the longest of any measured packet so far", level=True),
             Series("groups/last_received_ps", ("group",), "ps",
                    "when the last packet so far was delivered", level=True),
             Series("groups/traffic_bytes", ("group", "source_group"), "B",
                    "bytes delivered, by the group that they come from"),
             Series("groups/latencies", ("group", "bin"), "1",
                    "measured packets by latency: 64 bins an octave, from 1 ps", narrow,
                    tile=w.OCTAVE)),
            groups,
            totals=(Total("flows/levels", ("level", "span", "word"), "1", FLOWS,
                          lambda state: by_level(state.flows, state.span_bits)),),
        ),
    }  # fmt: skip


assert w.BINS % w.OCTAVE == 0
