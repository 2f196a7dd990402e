"""Turns decisions into events: the commands to the nodes of jobs, and where each task is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odonata.agents.decided import Decided, Start
from odonata.agents.description import NetworkDescription
from odonata.agents.layout import (
    AGAIN,
    BASE,
    CAP,
    DECIDE,
    HOUR,
    METERS_OFF,
    PLACE,
    PLACE_BITS,
    PLACES,
    SCHEDULER,
    START,
    State,
)
from odonata.agents.packet import GROUP_SHIFT, PARCEL, ROUTER_SHIFT
from odonata.agents.patterns import MAPPING, generator_of
from odonata.agents.workload import Workload
from odonata.jobs import board as b
from pdes.events import KEY, PORT_MASK, TIME, WORDS, A, B, Rows, no_rows, pack


def events_of(network: NetworkDescription, state: State, starts: Sequence[Start]) -> Rows:
    """Returns the events of these Starts, with their parcels."""
    rows = [commands(network, state, start) for start in starts]
    return np.concatenate([no_rows(WORDS + network.packet_words), *rows])


def agents_of(network: NetworkDescription, labels: Rows) -> Rows:
    """Returns the agents of nodes."""
    m = network.machine
    group, index = np.divmod(labels, m.routers * m.nodes)
    return ((group + network.offset) << network.agent_bits) + m.routers + index  # type: ignore[no-any-return]


def power_events(network: NetworkDescription, state: State, time: int, decided: Decided) -> Rows:
    """Returns the events by which a power policy has its way: the caps of the nodes of jobs, and
    whether these are suspended, when it wants to be asked again, when the next hour of the market
    begins, and the end of all measuring. Of caps that reach a node in one
    instant, that of the latest decision is the last."""
    workload, words = network.workload, state.ledger
    assert workload is not None
    heard, rows = time + workload.launch_ps, [no_rows(WORDS + network.packet_words)]
    for job, cap_w in [*decided.caps.items(), *decided.moves.items()]:
        agents = agents_of(network, np.flatnonzero(state.owner == job))
        some = np.zeros((len(agents), WORDS + network.packet_words), np.int64)
        some[:, TIME], some[:, KEY] = heard, pack(CAP, agents, words[b.PASSES] & PORT_MASK)
        some[:, A], some[:, B] = job, np.float64(cap_w).view(np.int64)
        rows.append(some)
    more = []
    if decided.again is not None:
        more.append((decided.again, pack(DECIDE, SCHEDULER, 0), AGAIN, words[b.AGAINS]))
    if decided.hour is not None:
        more.append((decided.hour, pack(DECIDE, SCHEDULER, 0), HOUR, 0))
    if decided.ends_metering:
        more.append((heard, pack(METERS_OFF, SCHEDULER, 0), 0, 0))
    others = np.zeros((len(more), WORDS + network.packet_words), np.int64)
    others[:, :WORDS] = np.array(more, np.int64).reshape(-1, WORDS)
    return np.concatenate([*rows, others])


def places_of(workload: Workload, seed: int, job: int) -> Rows:
    """Returns the place of each task among those of its job, node by node."""
    mapping, tasks = workload.jobs[job].mapping, workload.jobs[job].nodes * workload.tasks_per_node
    if mapping == "linear":
        return np.arange(tasks)
    if mapping == "random":
        return generator_of(seed, MAPPING, workload.number_of(job)).permutation(tasks)
    return np.array(mapping, np.int64)


def commands(network: NetworkDescription, state: State, start: Start) -> Rows:
    """Returns the events that start a job: one for every rank, with the places of all its tasks,
    and one for every slot, with the task that it runs."""
    workload, (job, labels, time) = network.workload, start
    assert workload is not None
    m, each = network.machine, workload.tasks_per_node
    place_of_task = places_of(workload, network.seed_of("mapping"), job)
    node, slot = labels[place_of_task // each], place_of_task % each
    group, index = np.divmod(node, m.routers * m.nodes)
    router, place = np.divmod(index, m.nodes)
    where = (group << GROUP_SHIFT) | (router << ROUTER_SHIFT) | place
    entries = np.full((-(-len(where) // PLACES), PLACES), -1)
    entries.reshape(-1)[: len(where)] = (where << PLACE_BITS) | slot

    place_rows = np.zeros((len(entries), WORDS + network.packet_words), np.int64)
    part = np.arange(len(entries))
    place_rows[:, TIME] = time
    place_rows[:, KEY] = pack(PLACE, SCHEDULER, part & PORT_MASK)
    place_rows[:, B] = state.jobs[job, BASE] + part * PLACES
    place_rows[:, WORDS + 1 : WORDS + PARCEL] = entries
    start_rows = np.zeros((len(node), WORDS + network.packet_words), np.int64)
    start_rows[:, TIME] = time
    start_rows[:, KEY] = pack(START, agents_of(network, node), slot)
    start_rows[:, A], start_rows[:, B] = job, np.arange(len(node))
    return np.concatenate((place_rows, start_rows))
