"""Power in the packet model: what a node draws, how a cap slows its tasks down, what it reports.

A node without a task is idle. While it has tasks it draws what they draw that communicate or wait
and, for each that **computes**, its part of what computing takes beyond that; all under the node's
cap. Computing stretches under a cap, and nothing else does: not the NIC, and not the network. Every
change of power ends one piece of a node's energy and begins another, in the order of the node's own
events, so that the sum is the same on any number of ranks.

When a task will have computed is predicted; a cap that comes in between counts the work that is
done, and predicts anew. A job that is suspended computes nothing and begins no phase: its nodes
are idle once all their tasks are stopped. Caps come from the scheduler, a launch latency after its
decision. At every interval a node reads its meter, and what it read is known to the scheduler a
launch latency later; so is what a job took, when its last task on the node has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.agents import layout as w
from odonata.agents.decided import Supply
from odonata.agents.layout import node_at_key
from odonata.agents.task import Hooks
from odonata.jobs.board import OF_JOB_BYTES, OF_JOB_J, OF_NODE_J, READ, REPORTED, Ledger
from odonata.jobs.power import bits, efficiencies, stretch
from pdes.errors import Findings
from pdes.events import agent_of, key_of, port_of
from pdes.jit import kernel
from pdes.loop import Sim, schedule
from policies.power import POWERS
from policies.power.service_rate import ServiceRate
from policies.scheduling import SCHEDULINGS, has_order

if TYPE_CHECKING:
    from odonata.agents.workload import Workload
    from odonata.jobs.power import Power
    from topology.dragonfly import Dragonfly

SECOND = 1e-12
"""A picosecond, in s."""
USUAL_INTERVAL_PS = 20_000_000
"""How often power is measured where nobody says."""
ELSEWHERE = -1
"""What `compute` returns where a task computes: its end is predicted, and may be predicted anew."""


@kernel
def number(word: int) -> float:
    """Returns the float that has the bits of an integer."""
    return np.int64(word).view(np.float64)  # type: ignore[no-any-return]


@kernel
def label_at_key(state: Any, key: int) -> int:
    """Returns the label of an event's node."""
    group, index, _ = node_at_key(state.shape, key)
    return group * state.traffic[0, w.GROUP_NODES] + index  # type: ignore[no-any-return]


# -- what a node draws


@kernel
def count(state: Any, row: int, time: int) -> None:
    """Count the energy of a node up to now."""
    meter, node = state.meters[row], state.holding[row]
    joules = meter[w.DRAW_W] * ((time - node[w.METERED]) * SECOND)
    meter[w.ENERGY_J] += joules
    if node[w.WHOSE] >= 0:
        meter[w.JOB_J] += joules
    else:
        meter[w.IDLE_J] += joules
    node[w.METERED] = time


@kernel
def at_rest(state: Any, row: int) -> bool:
    """Tells whether all tasks of a node are stopped."""
    still = state.halts[row]
    if still[w.HALTED] == 0:
        return False
    stopped = 0
    for slot in range(state.slots.shape[1]):
        stopped += still[w.STOPPED + slot] >= 0
    return stopped == state.holding[row, w.HELD]  # type: ignore[no-any-return]


@kernel
def set_draw(state: Any, row: int) -> None:
    """Find out what a node draws from now on."""
    meter, node = state.meters[row], state.holding[row]
    draws = state.draws[max(0, node[w.WHOSE])]
    if node[w.WHOSE] < 0 or at_rest(state, row):
        meter[w.DRAW_W] = draws[w.IDLE_W]
        return
    factor = meter[w.FACTOR]
    allowed = max(meter[w.CAP_W], factor * draws[w.LEAST_W])
    computing = min(factor * draws[w.ACTIVE_W], allowed)
    resting = computing
    if draws[w.COMMUNICATING_W] >= 0.0:
        resting = min(factor * draws[w.COMMUNICATING_W], computing)
    each = (computing - resting) / state.slots.shape[1]
    meter[w.DRAW_W] = resting + node[w.COMPUTING] * each


# -- tasks come, compute and leave: the hooks of `odonata.agents.task`


@kernel
def come(sim: Sim, state: Any, time: int, key: int, job: int) -> None:
    """Note that a task of a job is here; with its first one the node is the job's, without a
    cap."""
    _, _, row = node_at_key(state.shape, key)
    meter, node = state.meters[row], state.holding[row]
    if node[w.HELD] == 0:
        count(state, row, time)
        node[w.WHOSE], node[w.COMPUTING], node[w.RECEIVED] = job, 0, 0
        meter[w.JOB_J], meter[w.CAP_W], meter[w.STRETCH] = 0.0, np.inf, 1.0
        state.halts[row, w.HALTED] = 0
        set_draw(state, row)
    node[w.HELD] += 1


@kernel
def leave(sim: Sim, state: Any, time: int, key: int) -> None:
    """Note that a task has ended; after the last one the node is idle, and tells what the job took
    and received here."""
    _, _, row = node_at_key(state.shape, key)
    meter, node = state.meters[row], state.holding[row]
    node[w.HELD] -= 1
    if node[w.HELD] > 0:
        if state.halts[row, w.HALTED] != 0:
            count(state, row, time)
            set_draw(state, row)
        return
    count(state, row, time)
    heard, label = time + state.nic[w.LAUNCH], label_at_key(state, key)
    schedule(sim, heard, key_of(w.REPORT, w.SCHEDULER, OF_JOB_J), label, bits(meter[w.JOB_J]))
    schedule(sim, heard, key_of(w.REPORT, w.SCHEDULER, OF_JOB_BYTES), label, node[w.RECEIVED])
    meter[w.PAID_J] += meter[w.JOB_J]
    meter[w.JOB_J], meter[w.CAP_W], meter[w.STRETCH] = 0.0, np.inf, 1.0
    node[w.WHOSE] = -1
    state.halts[row, w.HALTED] = 0
    set_draw(state, row)


@kernel
def predict(sim: Sim, state: Any, row: int, slot: int, agent: int) -> None:
    """Find out when a task will have computed, from the work that is left and from its node's
    cap."""
    effort = state.efforts[row, slot]
    left = np.int64(np.ceil(state.work[row, slot] * state.meters[row, w.STRETCH]))
    effort[w.UNTIL] = effort[w.FROM] + left
    effort[w.SERIAL] += 1
    schedule(sim, effort[w.UNTIL], key_of(w.STEP, agent, slot), w.COMPUTED, effort[w.SERIAL])


@kernel
def compute(sim: Sim, state: Any, time: int, key: int, pause: int, work: int) -> int:
    """Have a task compute, if it has to; then its NIC prepares a message. A task whose job is
    suspended does neither until that goes on."""
    _, _, row = node_at_key(state.shape, key)
    slot = port_of(key)
    if state.halts[row, w.HALTED] != 0:
        count(state, row, time)
        state.efforts[row, slot, w.NEXT_PAUSE], state.work[row, slot] = pause, work
        state.halts[row, w.STOPPED + slot] = time
        set_draw(state, row)
        return ELSEWHERE
    if work <= 0:
        return pause
    count(state, row, time)
    state.holding[row, w.COMPUTING] += 1
    set_draw(state, row)
    effort = state.efforts[row, slot]
    effort[w.FROM], effort[w.NEXT_PAUSE] = time, pause
    state.work[row, slot] = work
    predict(sim, state, row, slot, agent_of(key))
    return ELSEWHERE


HOOKS = Hooks(pausing=compute, coming=come, leaving=leave)


@kernel
def computed(state: Any, time: int, key: int, serial: int) -> int:
    """End a task's computing, if this is its latest prediction. Returns for how long the NIC
    prepares a message then; below 0: this is not."""
    _, _, row = node_at_key(state.shape, key)
    slot = port_of(key)
    effort = state.efforts[row, slot]
    if effort[w.SERIAL] != serial:
        return -1
    count(state, row, time)
    state.holding[row, w.COMPUTING] -= 1
    set_draw(state, row)
    effort[w.FROM] = -1
    state.work[row, slot] = 0.0
    return effort[w.NEXT_PAUSE]  # type: ignore[no-any-return]


@kernel
def halt(state: Any, row: int, time: int) -> None:
    """Suspend the job of a node: tasks that compute stop, and others do before their next phase."""
    meter, node, still = state.meters[row], state.holding[row], state.halts[row]
    if still[w.HALTED] != 0:
        return
    count(state, row, time)
    still[w.HALTED] = 1
    for slot in range(state.efforts.shape[1]):
        effort = state.efforts[row, slot]
        if effort[w.FROM] >= 0:
            done = (time - effort[w.FROM]) / meter[w.STRETCH]
            state.work[row, slot] = max(0.0, state.work[row, slot] - done)
            effort[w.FROM] = -1
            effort[w.SERIAL] += 1
            node[w.COMPUTING] -= 1
            still[w.STOPPED + slot] = time
    set_draw(state, row)


@kernel
def go_on(sim: Sim, state: Any, row: int, time: int, key: int) -> None:
    """Have the suspended job of a node go on: its tasks that are stopped do what they were about
    to, and the time for which they were stopped counts as nothing that they did."""
    node, still, agent = state.holding[row], state.halts[row], agent_of(key)
    if still[w.HALTED] == 0:
        return
    count(state, row, time)
    still[w.HALTED] = 0
    for slot in range(state.efforts.shape[1]):
        since = still[w.STOPPED + slot]
        if since >= 0:
            still[w.STOPPED + slot] = -1
            state.slots[row, slot, w.TURN] += time - since
            effort = state.efforts[row, slot]
            if state.work[row, slot] > 0.0:
                node[w.COMPUTING] += 1
                effort[w.FROM] = time
                predict(sim, state, row, slot, agent)
            else:
                then = time + effort[w.NEXT_PAUSE]
                schedule(sim, then, key_of(w.STEP, agent, slot), w.PAUSED, 0)
    set_draw(state, row)


@kernel
def cap(sim: Sim, state: Any, time: int, key: int, job: int, word: int) -> None:
    """Give a node a cap, if the job that it is for is still here; or suspend that (a cap below 0),
    or have it go on (nan)."""
    _, _, row = node_at_key(state.shape, key)
    if state.holding[row, w.WHOSE] != job:
        return
    if number(word) < 0.0:
        halt(state, row, time)
        return
    if np.isnan(number(word)):
        go_on(sim, state, row, time, key)
        return
    meter, draws = state.meters[row], state.draws[job]
    count(state, row, time)
    before, meter[w.CAP_W] = meter[w.STRETCH], number(word)
    after = stretch(
        meter[w.CAP_W] / meter[w.FACTOR], draws[w.ACTIVE_W], draws[w.LEAST_W], draws[w.SLOWDOWN]
    )
    meter[w.STRETCH] = after
    set_draw(state, row)
    if after == before:
        return
    for slot in range(state.efforts.shape[1]):
        effort = state.efforts[row, slot]
        if effort[w.FROM] >= 0 and effort[w.UNTIL] > time:
            done = (time - effort[w.FROM]) / before
            state.work[row, slot] = max(0.0, state.work[row, slot] - done)
            effort[w.FROM] = time
            predict(sim, state, row, slot, agent_of(key))


# -- measuring


@kernel
def read_meter(sim: Sim, state: Any, time: int, key: int) -> None:
    """Tell the scheduler what a node has drawn so far, and what its job has."""
    if state.metering[w.METERS_ARE_OFF] != 0:
        return
    _, _, row = node_at_key(state.shape, key)
    meter, node = state.meters[row], state.holding[row]
    joules = meter[w.DRAW_W] * ((time - node[w.METERED]) * SECOND)
    heard, label = time + state.nic[w.LAUNCH], label_at_key(state, key)
    in_all, of_job = bits(meter[w.ENERGY_J] + joules), bits(meter[w.JOB_J] + joules)
    schedule(sim, heard, key_of(w.REPORT, w.SCHEDULER, OF_NODE_J), label, in_all)
    if node[w.WHOSE] >= 0:
        schedule(sim, heard, key_of(w.REPORT, w.SCHEDULER, OF_JOB_J), label, of_job)
    schedule(sim, time + state.metering[w.INTERVAL], key, 0, 0)


@kernel
def note_report(sim: Sim, state: Any, time: int, key: int, label: int, word: int) -> None:
    """Note what a node reports, for the scheduler; when all have told what they drew, it has to
    decide."""
    what = port_of(key)
    if what == OF_JOB_BYTES:
        state.readings[label, what] = word
        return
    state.readings[label, what] = number(word)
    if what == OF_NODE_J:
        state.ledger[REPORTED] += 1
        if state.ledger[REPORTED] == state.readings.shape[0]:
            state.ledger[REPORTED] = 0
            state.ledger[READ] = 1
            schedule(sim, time, key_of(w.DECIDE, w.SCHEDULER, 0), w.HAPPENED, 0)


# -- in Python


def check(power: Power, workload: Workload | None, machine: Dragonfly, found: Findings) -> None:
    """Find what of [power] a run of packets cannot do."""
    unless = found.unless
    unless(workload is not None, f"power.policy = {power.policy}",
           "only nodes of jobs draw more than idle power, and there are no [[jobs]]",
           "power.policy")  # fmt: skip
    unless(power.demand in (None, "constant"), f"power.demand = {power.demand}",
           'packets are of jobs that are written down, not of a trace: "constant"',
           "power.demand")  # fmt: skip
    for name in ("price", "carbon", "applications"):
        unless(getattr(power, name) is None, f"power.{name} = {getattr(power, name)}",
               'only with fidelity = "job"', f"power.{name}")  # fmt: skip
    unless(power.limits == "stretch", f"power.limits = {power.limits}",
           'jobs of packets have no limit; only with fidelity = "job"', "power.limits")  # fmt: skip
    interval = power.interval(1, USUAL_INTERVAL_PS)
    unless(interval >= SHORTEST_PS, f"power.interval = {interval} ps",
           f"at least {SHORTEST_PS} ps", "power.interval_ps")  # fmt: skip
    if POWERS.named(power.policy).missing:
        return
    policy = power.made(1)
    of_jobs = 'which only a run with fidelity = "job" can do'
    unless(not isinstance(policy, ServiceRate), f"power.policy = {power.policy}",
           f"it sets a service rate, {of_jobs}", "power.policy")  # fmt: skip
    unless(not policy.molds, f"power.policy = {power.policy}", f"it molds jobs, {of_jobs}",
           "power.policy")  # fmt: skip
    unless(policy.sleep_after_s < 0, f"power.policy.sleep_after_s = {policy.sleep_after_s:g}",
           f"it puts nodes to sleep, {of_jobs}; below 0: never", "power.policy")  # fmt: skip
    if workload is not None and policy.selects:
        discipline = SCHEDULINGS.make(workload.order, workload.order_parameters)
        unless(has_order(discipline), f"power.policy = {power.policy}",
               f"it chooses jobs in the order of a discipline, and {workload.order} has none; "
               "fcfs and wfp have, for example", "power.policy", "workload.order")  # fmt: skip
    if not found.problems:
        power.checked_cap(machine.n_nodes, 1)


SHORTEST_PS = 1000
"""The shortest interval between measurements, in ps."""


def supply(power: Power, machine: Dragonfly) -> Supply:
    """Returns the power of the machine, and who divides it."""
    return Supply(
        power.made(1), power.checked_cap(machine.n_nodes, 1), power.idle, power.least_of_all,
        power.maximum, power.passes == "intervals",
    )  # fmt: skip


def arrays(
    power: Power,
    draws: Any,
    nodes: Any,
    total: int,
    tasks_per_node: int,
    seed: int,
    ledger: Ledger,
) -> dict[str, Any]:
    """Returns the arrays of `State` that are about power, for a rank with these nodes, by label,
    of so many in all; `draws` is by job."""
    meters = np.zeros((len(nodes), len(w.METERS)))
    meters[:, w.FACTOR] = efficiencies(total, power.variation, seed)[nodes]
    meters[:, w.CAP_W], meters[:, w.STRETCH], meters[:, w.DRAW_W] = np.inf, 1.0, power.idle
    holding = np.zeros((len(nodes), len(w.HOLDING)), np.int64)
    holding[:, w.WHOSE] = -1
    efforts = np.zeros((len(nodes), tasks_per_node, len(w.EFFORT)), np.int64)
    efforts[:, :, w.FROM] = -1
    halts = np.full((len(nodes), w.STOPPED + tasks_per_node), -1)
    halts[:, w.HALTED] = 0
    return {
        "draws": draws,
        "metering": np.array([power.interval(1, USUAL_INTERVAL_PS), 0]),
        "meters": meters,
        "holding": holding,
        "efforts": efforts,
        "work": np.zeros((len(nodes), tasks_per_node)),
        "halts": halts,
        **ledger._asdict(),
    }


def no_power() -> dict[str, Any]:
    """Returns the same arrays where no power is simulated."""
    return {
        "draws": np.zeros((0, len(w.POWER))),
        "metering": np.zeros(0, np.int64),
        "meters": np.zeros((0, len(w.METERS))),
        "holding": np.zeros((0, len(w.HOLDING)), np.int64),
        "efforts": np.zeros((0, 1, len(w.EFFORT)), np.int64),
        "work": np.zeros((0, 1)),
        "halts": np.zeros((0, w.STOPPED + 1), np.int64),
        **Ledger.fresh(0, 0)._asdict(),
    }


def outcome(state: Any) -> dict[str, Any]:
    """Returns the energy of each node up to the last change of what it draws, when that was, and
    what it draws since then; the parts of that energy that were of jobs that have ended, and of
    nobody; and the accounts of jobs."""
    meters = state.meters
    return {
        "node_j": meters[:, w.ENERGY_J], "node_since_ps": state.holding[:, w.METERED],
        "node_w": meters[:, w.DRAW_W], "node_jobs_j": meters[:, w.PAID_J],
        "node_idle_j": meters[:, w.IDLE_J], "accounts": state.accounts,
    }  # fmt: skip


def energy_at(state: Any, time: int) -> Any:
    """Returns the energy of each node of a rank up to a time, which is not before its last
    change."""
    meters = state.meters
    since = (time - state.holding[:, w.METERED]) * SECOND
    return meters[:, w.ENERGY_J] + meters[:, w.DRAW_W] * since


def check_energy(state: Any) -> None:
    """Raise AssertionError where energy was lost: all that a node took was of jobs, or idle."""
    meters = state.meters
    parts = meters[:, w.IDLE_J] + meters[:, w.PAID_J] + meters[:, w.JOB_J]
    close = np.abs(meters[:, w.ENERGY_J] - parts) <= 1e-9 * meters[:, w.ENERGY_J]
    assert close.all(), "the energy of a node is not that of its jobs and its idle time"
    computing = (state.efforts[:, :, w.FROM] >= 0).sum(axis=1)
    assert (state.holding[:, w.COMPUTING] == computing).all(), "a node computes for nobody"
    held = (state.slots[:, :, w.JOB] >= 0).sum(axis=1)
    assert (state.holding[:, w.HELD] == held).all(), "a node is held by a task that has ended"
