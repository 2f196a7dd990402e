"""The state of a job run before anything has happened, and its first events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.cluster import layout as w
from odonata.cluster.dispatch import launch_now
from odonata.cluster.layout import State
from odonata.cluster.scheduling import BID_KEY, CONTROL_KEY, END_KEY
from odonata.jobs.floors import NO_FLOOR, Kinds, floor_arrays
from odonata.jobs.machine import AGAIN
from odonata.jobs.power import Power, efficiencies
from odonata.jobs.series import Steps
from odonata.traces.demand import Demand
from odonata.traces.trace import Trace
from pdes.events import Rows, pack
from policies.power.steering import given_of
from policies.scheduling.compiled import Compiled
from policies.scheduling.desk import NEVER, OF_RULE, new_desk

if TYPE_CHECKING:
    from odonata.cluster.model import Cluster

NO_MARKET = {"market": np.zeros(0), "weights": np.zeros(0), "signal": np.zeros(0),
             "signal_times": np.zeros(0, np.int64)}  # fmt: skip
"""The arrays of a state whose machine takes part in no market."""
NO_TYPES = {"limits": np.zeros((0, len(w.LIMIT))), **NO_FLOOR}
"""Those of one whose jobs have no types."""


def fresh_state(model: Cluster, here: bool) -> State:
    """Returns the state of a machine that is idle and has all jobs before it; where it is not
    `here` but on another rank, one without jobs."""
    trace, nodes, discipline = model.trace, model.nodes, model.policies[0]
    jobs = len(trace) if here else 0
    own = discipline.remembers(model.sizes) if isinstance(discipline, Compiled) else {}
    desk = new_desk(
        jobs, nodes, len(w.JOB),
        discipline.words(model.tick) if isinstance(discipline, Compiled)
        else np.zeros(len(OF_RULE), np.int64),
        np.array(own.get("whole", ()), np.int64), np.array(own.get("real", ()), np.float64),
        len(w.CTL),
    )  # fmt: skip
    placed = model.machine.n_nodes if model.machine and here else 0
    owner = np.full(placed, -1)
    owner[nodes:] = w.NOBODYS
    ctl = desk.ctl
    ctl[w.KILLS], ctl[w.PREEMPTS] = model.overrun == "kill", discipline.preemptive
    ctl[w.COMPILED], ctl[w.PASS_AT] = model.compiled, model.passes.pass_at
    if here:
        _fill(desk.jobs, trace)
        if model.power is not None and model.power.limits == "stretch":
            desk.pace[0] = 1.0 / model.power.made(w.TICK_PS).first_rate
    most = min(jobs, nodes)
    room = w.NOTES_KEPT + w.NOTES_PER_JOB * most + w.FANOUT
    if model.types is not None:
        room += len(model.types.rows) + 1
    return State(
        *desk,
        work=trace.run_us[:jobs].astype(np.float64),
        pace=np.ones(jobs),
        slowdown=np.ones(jobs),
        owner=owner,
        after=np.full(placed, -1),
        notes=np.zeros((room, w.NOTE_WORDS), np.int64),
        ended=np.zeros(0 if model.compiled or model.regulates else most + 1, np.int64),
        ending=np.zeros((max(1, most), 2), np.int64),
        alarms=np.zeros(w.ALARMS_KEPT, np.int64),
        memory=model.remembered[0].copy() if here else np.zeros(0, np.uint8),
        **_of_power(model, ctl, here, placed),
    )


def _fill(jobs: Rows, trace: Trace) -> None:
    jobs[:, w.NODES], jobs[:, w.SUBMIT], jobs[:, w.USER] = trace.nodes, trace.submit_us, trace.user
    asked = np.minimum(trace.requested_us, NEVER)
    jobs[:, w.REQUESTED] = np.where(asked < 0, NEVER, asked)
    jobs[:, w.NUMBER] = np.arange(len(trace))
    jobs[:, w.RUN] = trace.run_us
    jobs[:, [w.START, w.OVER, w.SINCE, w.NODE, w.MOLD, w.HEAP_AT]] = -1


def _of_power(model: Cluster, ctl: Rows, here: bool, placed: int) -> dict[str, Any]:
    """Returns the arrays that are about power, and sets what `ctl` has to say of it."""
    if model.power is None or not here:
        ctl[w.SLEEP_AFTER] = -1
        return no_power()
    ctl[w.CONTROL_AT] = model.passes.control_at | model.passes.observe_at
    ctl[w.NOISE_SEED] = model.seed
    found = power_arrays(model.power, model.demand, model.cap, ctl, model.nodes, placed, model.seed)
    found |= model.trading.arrays() if model.trading else {}
    if model.trading is not None:
        ctl[w.PERIOD], ctl[w.RUN_UNTIL] = model.trading.period, model.until_us or 0
    if model.types is None:
        return found
    found["limits"] = limits_of(model.types)
    policy = model.power_policy
    if policy is None or policy.regulate is None:
        return found
    ctl[w.PASS_AT] = ctl[w.CONTROL_AT] = 0  # it is asked in another way
    given = [float(value) for value in given_of(policy)]
    return found | floor_arrays(model.types, model.trace.run_us, model.trace.nodes,
                                model.trace.submit_us, model.nodes, model.power.idle,
                                given)  # fmt: skip


def limits_of(kinds: Kinds) -> Any:
    """[job, LIMIT]: what the lowest cap of a job's type does to it."""
    rows = np.zeros((len(kinds.rows), len(w.LIMIT)))
    rows[:, w.LOW_W] = [min(each.least_w, each.most_w) for each in kinds.rows]
    rows[:, w.LONGER] = [each.slowdown for each in kinds.rows]
    return rows[kinds.of_job]


def no_power() -> dict[str, Any]:
    """Returns the arrays where power is not simulated."""
    meter = np.zeros(len(w.METER))
    meter[[w.MACHINE_CAP_W, w.BUSY_W, w.SPEED]] = np.inf, -1.0, 1.0
    return {
        "energy": np.zeros((0, len(w.ENERGY))), "meter": meter, "caps": np.zeros(0),
        "cap_times": np.zeros(0, np.int64),
        "idle": np.zeros((0, 2), np.int64), "node": np.zeros((0, len(w.OF_NODE))),
        "node_since": np.zeros((0, 2), np.int64),
        "readings": np.zeros((0, w.READING_WORDS), np.int64),
        "stretched": np.zeros((0, len(w.STRETCHED))), **NO_MARKET, **NO_TYPES,
    }  # fmt: skip


def power_arrays(
    power: Power, demand: Demand, cap: Steps | None, ctl: Rows, nodes: int, placed: int, seed: int
) -> dict[str, Any]:
    """Returns the arrays, and sets the words of `ctl` that are about power. `placed` nodes have a
    label; 0: they are only counted."""
    policy, jobs = power.made(w.TICK_PS), len(demand)
    after = policy.sleep_after_s
    ctl[w.POWERED] = ctl[w.HEAPS] = 1
    ctl[w.INTERVAL] = power.interval(w.TICK_PS, w.USUAL_INTERVAL_PS)
    ctl[w.SLEEP_AFTER] = round(after * 1e12 / w.TICK_PS) if after >= 0 else -1
    ctl[w.WAKE_TIME] = power.wake_ps // w.TICK_PS
    ctl[w.STRETCHES] = power.limits == "stretch"
    ctl[w.CONTROLS] = policy.controls
    caps = np.zeros(0) if cap is None else cap.values.copy()
    times = np.zeros(0, np.int64) if cap is None else cap.times.copy()
    meter = no_power()["meter"]
    meter[[w.IDLE_W, w.SLEEP_W, w.WAKE_W]] = power.idle, power.sleep, power.wake_w
    meter[[w.LEAST_W, w.SLOWDOWN, w.PEAK_W]] = power.least, power.slowdown, power.maximum
    meter[w.LAST_W] = nodes * power.idle  # before anything was measured
    meter[w.SPEED] = policy.first_rate
    if len(caps):
        meter[w.MACHINE_CAP_W] = caps[0]
        ctl[w.CAPS_LEFT] = len(caps) - 1
    energy = np.zeros((jobs, len(w.ENERGY)))
    energy[:, w.CAP_W], energy[:, w.FACTOR] = np.inf, 1.0
    energy[:, w.MEAN_W], energy[:, w.SPREAD] = demand.mean_w, demand.spread
    energy[:, w.CHANGE_AT], energy[:, w.CHANGE_TO] = demand.change_at, demand.change_to
    idle = np.zeros((nodes + 1, 2), np.int64)
    idle[0] = 0, nodes
    node = np.zeros((placed, len(w.OF_NODE)))
    node[:, w.FACTOR_OF] = efficiencies(placed, power.variation, seed)
    node[:nodes, w.NODE_W] = power.idle
    return {
        "energy": energy, "meter": meter, "caps": caps, "cap_times": times, "idle": idle,
        "node": node,
        "node_since": np.zeros((placed, 2), np.int64),
        "readings": np.zeros((w.NOTES_KEPT + 2, w.READING_WORDS), np.int64),
        "stretched": np.tile([0.0, 0.0, 1.0], (jobs, 1)), **NO_MARKET, **NO_TYPES,
    }  # fmt: skip


# -- what happens first


def first_events(model: Cluster, state: State) -> Rows:
    """Returns the first events."""
    rows, policy = _begin(model, state), model.power_policy
    if state.ctl[w.NEXT] < len(state.jobs):
        first_us = model.trace.submit_us[state.ctl[w.NEXT]]
        rows.append((first_us, pack(w.ARRIVE, w.SCHEDULER, 0), 0, 0))
    regulated = policy is not None and policy.regulate is not None
    if regulated:
        rows.append((0, CONTROL_KEY, 0, 0))
    elif policy is not None and policy.reads:  # which may have something to say before a job
        state.ctl[w.HAPPENED] = AGAIN
        rows.append((0, CONTROL_KEY, 0, 0))
    if model.power is not None:
        rows.append((state.ctl[w.INTERVAL], pack(w.MEASURE, w.SCHEDULER, 0), 0, 0))
        if state.ctl[w.CAPS_LEFT] > 0:
            rows.append((state.cap_times[1], pack(w.CAP, w.SCHEDULER, 0), 1, 0))
        if state.ctl[w.SLEEP_AFTER] >= 0:
            rows.append((state.ctl[w.SLEEP_AFTER], pack(w.SLEEP, w.SCHEDULER, 0), 0, 0))
    if model.trading is not None:
        rows.append((0, BID_KEY, 0, 0))
        rows.append((0, pack(w.SIGNAL, w.SCHEDULER, 0), 0, 0))
    return np.array(rows, np.int64)


def _begin(model: Cluster, state: State) -> list[Any]:
    """Start the jobs that run when an hour begins in which a bid is tried. Returns the event of the
    first of their ends, if any will end."""
    if model.begun is None:
        return []
    count = len(model.begun.caps_w)
    state.energy[:count, w.CAP_W] = model.begun.caps_w
    state.chosen[:count] = np.arange(count)
    state.ctl[w.NEXT] = state.ctl[w.CHOSEN] = count
    alarm = launch_now(state, 0)
    return [(alarm, END_KEY, 0, 0)] if alarm >= 0 else []
