"""The arrays of the job model's state that are about power, at the start of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from odonata.cluster import layout as w
from odonata.jobs.power import Power, efficiencies
from odonata.jobs.series import Steps
from odonata.traces.demand import Demand
from pdes.events import Rows

NO_MARKET = {"market": np.zeros(0), "weights": np.zeros(0), "signal": np.zeros(0),
             "signal_times": np.zeros(0, np.int64)}  # fmt: skip
"""The arrays of a state whose machine takes part in no market."""


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
        "stretched": np.zeros((0, len(w.STRETCHED))), **NO_MARKET,
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
        "stretched": np.tile([0.0, 0.0, 1.0], (jobs, 1)), **NO_MARKET,
    }  # fmt: skip
