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
from odonata.agents.patterns import BASE, MAPPING, luck
from odonata.agents.task import BEGAN, DONE, LEFT, PLACE_BITS, PLACES, QUEUED, RUNNING, STATUS
from pdes.events import KEY, PORT_MASK, TIME, WORDS, A, B, Rows, pack
from policies.allocation import ALLOCATIONS, allocate, rng_for
from policies.scheduling import DISCIPLINES, select
from policies.views import Sight, View

if TYPE_CHECKING:
    from odonata.agents.jobs import Workload
    from odonata.agents.network import Network, State


def arrivals(network: Network) -> Rows:
    """The events at which jobs arrive."""
    times = np.unique(network.workload.arrivals)
    rows = np.zeros((len(times), WORDS), np.int64)
    rows[:, TIME] = times
    rows[:, KEY] = pack(DECIDE, network.scheduler, 0)
    return rows


def decide(network: Network, state: State, time: int) -> Rows:
    """Take the jobs that are done off the machine, and start those that can be; returns the events
    that tell the nodes so, with their parcels. Asked again in the same instant, it has no more."""
    workload, board, owner = network.workload, state.board, state.owner
    owner[(owner >= 0) & (board[owner, STATUS] == DONE)] = -1
    arrived = workload.by_arrival[: np.searchsorted(workload.arrivals, time, "right")]
    queue = [workload.waiting[n] for n in arrived[board[arrived, STATUS] == QUEUED].tolist()]
    told = [np.zeros((0, WORDS + PARCEL), np.int64)]
    if not queue or (owner >= 0).all():
        return told[0]
    scheduling = DISCIPLINES.make(workload.order)
    policy = ALLOCATIONS.make(workload.allocation)
    sight = Sight(network.machine, owner < 0)
    for number in select(scheduling, View(time, queue, (), sight.free, sight)):
        job = workload.waiting[number]
        sight = Sight(network.machine, owner < 0)
        labels = allocate(policy, sight, job, rng_for(network.seed, job.number))
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
        return luck(seed, MAPPING, job).permutation(tasks)
    return np.array(mapping, np.int64)


def commands(network: Network, state: State, job: int, labels: Rows, time: int) -> Rows:
    """What the nodes of a job are told: everybody, where all its tasks are; every slot, which task
    it has."""
    m, each = network.machine, network.workload.tasks_per_node
    seat = seats(network.workload, network.seed, job)
    node, slot = labels[seat // each], seat % each
    group, index = np.divmod(node, m.routers * m.nodes)
    router, place = np.divmod(index, m.nodes)
    where = (group << ADDRESS_GROUP) | (router << ROUTER_SHIFT) | place
    entries = np.full((-(-len(where) // PLACES), PLACES), -1)
    entries.reshape(-1)[: len(where)] = (where << PLACE_BITS) | slot

    place_rows = np.zeros((len(entries), WORDS + PARCEL), np.int64)
    part = np.arange(len(entries))
    place_rows[:, TIME] = time
    place_rows[:, KEY] = pack(PLACE, network.scheduler, part & PORT_MASK)
    place_rows[:, B] = state.jobs[job, BASE] + part * PLACES
    place_rows[:, WORDS + 1 :] = entries
    start_rows = np.zeros((len(node), WORDS + PARCEL), np.int64)
    start_rows[:, TIME] = time
    agents = (group << network.agent_bits) + m.routers + index
    start_rows[:, KEY] = pack(START, agents, slot)
    start_rows[:, A], start_rows[:, B] = job, np.arange(len(node))
    return np.concatenate((place_rows, start_rows))
