"""The scheduler: it holds the queue and asks who is next, and where it goes.

It is the one agent whose decisions are plain Python: the engine calls `decide` when a job arrives,
and when it hears that one has ended. It sees what a real one sees, which is what jobs asked for and
which have ended; and it keeps all it knows on its board, in arrays, so that a run can be resumed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from odonata.agents.link import DECIDE, PLACE, START
from odonata.agents.packet import GROUP_SHIFT as ADDRESS_GROUP
from odonata.agents.packet import PARCEL, ROUTER_SHIFT
from odonata.agents.patterns import BASE
from odonata.agents.task import BEGAN, LEFT, PLACE_BITS, PLACES, QUEUED, RUNNING, STATUS
from pdes.events import KEY, PORT_MASK, TIME, WORDS, A, B, Rows, pack
from policies.allocation import Floor, allocate, allocation_named
from policies.scheduling import Waiting, discipline_named, order_of

if TYPE_CHECKING:
    from odonata.agents.jobs import Workload
    from odonata.agents.network import Network, State

ALLOCATE, MAP = 2, 3
"""What a job's random numbers are for; `odonata.agents.patterns.ring` has 1."""


def chance(seed: int, purpose: int, job: int) -> np.random.Generator:
    """A job's own random numbers, so that nothing depends on who came before it."""
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, purpose, job]))


def arrivals(network: Network) -> Rows:
    """The events at which jobs arrive."""
    times = sorted({job.arrival_ps for job in network.workload.jobs})
    rows = np.zeros((len(times), WORDS), np.int64)
    rows[:, TIME] = times
    rows[:, KEY], rows[:, A] = pack(DECIDE, network.scheduler, 0), -1
    return rows


def decide(network: Network, state: State, time: int, ended: int) -> Rows:
    """Take a job off the machine, if one has `ended`, and start those that can be; returns the
    events that tell the nodes so, with their parcels."""
    workload = network.workload
    board, owner = state.board, state.owner
    if ended >= 0:
        owner[owner == ended] = -1
    queue = [
        Waiting(number, workload.jobs[number].nodes, workload.jobs[number].arrival_ps)
        for number in np.flatnonzero(board[:, STATUS] == QUEUED).tolist()
        if workload.jobs[number].arrival_ps <= time
    ]
    queue.sort(key=lambda job: (job.arrival_ps, job.number))
    discipline, policy = discipline_named(workload.order), allocation_named(workload.allocation)
    told = [np.zeros((0, WORDS + PARCEL), np.int64)]
    for place in order_of(discipline, queue):
        job = queue[place]
        floor = Floor(network.machine, owner < 0)
        if job.nodes > floor.free:
            if discipline.strict:
                break
            continue
        rng = chance(network.seed, ALLOCATE, job.number)
        labels = allocate(policy, floor, job.nodes, rng)
        owner[labels] = job.number
        first = int(state.jobs[job.number, BASE]) // workload.tasks_per_node
        state.labels[first : first + job.nodes] = labels
        board[job.number, [STATUS, LEFT, BEGAN]] = (
            RUNNING, job.nodes * workload.tasks_per_node, time + workload.launch_ps
        )  # fmt: skip
        told.append(commands(network, state, job.number, labels, time + workload.launch_ps))
    return np.concatenate(told)


def seats(workload: Workload, seed: int, job: int) -> Rows:
    """The place of each task among those of its job, node by node."""
    mapping, tasks = workload.jobs[job].mapping, workload.jobs[job].nodes * workload.tasks_per_node
    if mapping == "linear":
        return np.arange(tasks)
    if mapping == "random":
        return chance(seed, MAP, job).permutation(tasks)
    return np.array(mapping, np.int64)


def commands(network: Network, state: State, job: int, labels: Rows, time: int) -> Rows:
    """What the nodes of a job are told: every group of it, where all its tasks are; every slot,
    which task it has."""
    m, each = network.machine, network.workload.tasks_per_node
    seat = seats(network.workload, network.seed, job)
    node, slot = labels[seat // each], seat % each
    group, index = np.divmod(node, m.routers * m.nodes)
    router, place = np.divmod(index, m.nodes)
    where = (group << ADDRESS_GROUP) | (router << ROUTER_SHIFT) | place
    entries = np.full((-(-len(where) // PLACES), PLACES), -1)
    entries.reshape(-1)[: len(where)] = (where << PLACE_BITS) | slot

    groups = np.unique(group)
    place_rows = np.zeros((len(groups), len(entries), WORDS + PARCEL), np.int64)
    part = np.arange(len(entries))
    there = (groups << network.agent_bits) + network.scheduler
    place_rows[..., TIME] = time
    place_rows[..., KEY] = pack(PLACE, there[:, None], part & PORT_MASK)
    place_rows[..., B] = state.jobs[job, BASE] + part * PLACES
    place_rows[..., WORDS + 1 :] = entries
    start_rows = np.zeros((len(node), WORDS + PARCEL), np.int64)
    start_rows[:, TIME] = time
    agents = (group << network.agent_bits) + m.routers + index
    start_rows[:, KEY] = pack(START, agents, slot)
    start_rows[:, A], start_rows[:, B] = job, np.arange(len(node))
    return np.concatenate((place_rows.reshape(-1, WORDS + PARCEL), start_rows))
