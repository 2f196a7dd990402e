"""The arrays of the job model's state that are about power, at the start of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from odonata.cluster.layout import (
    BUSY_W,
    BY_INTERVAL,
    CAP_W,
    CAPS_LEFT,
    CHANGE_AT,
    CHANGE_TO,
    CONTROLS,
    ENERGY_WORDS,
    FACTOR,
    FACTOR_OF,
    HEAPS,
    IDLE_W,
    INTERVAL,
    LAST_W,
    LEAST_W,
    MACHINE_CAP_W,
    MEAN_W,
    METER_WORDS,
    NODE_W,
    NODE_WORDS,
    NOTES_KEPT,
    PEAK_W,
    POWERED,
    READING_WORDS,
    SLEEP_AFTER,
    SLEEP_W,
    SLOWDOWN,
    SPEED,
    SPREAD,
    STRETCHED_WORDS,
    STRETCHES,
    WAKE_TIME,
    WAKE_W,
)
from odonata.jobs.power import Power, efficiencies
from odonata.jobs.series import Steps
from odonata.traces.demand import Demand
from pdes.clock import TICKS
from pdes.events import Rows

TICK_PS = TICKS["us"]
"""The tick of the job model."""
USUAL_INTERVAL_PS = 240 * 10**12
"""Power is measured every 4 minutes where nobody says how often: so it is on Mira."""


def no_power() -> dict[str, Any]:
    """Returns the arrays where power is not simulated."""
    meter = np.zeros(METER_WORDS)
    meter[[MACHINE_CAP_W, BUSY_W, SPEED]] = np.inf, -1.0, 1.0
    return {
        "energy": np.zeros((0, ENERGY_WORDS)), "meter": meter, "caps": np.zeros(0),
        "idle": np.zeros((0, 2), np.int64), "node": np.zeros((0, NODE_WORDS)),
        "node_since": np.zeros((0, 2), np.int64),
        "readings": np.zeros((0, READING_WORDS), np.int64),
        "stretched": np.zeros((0, STRETCHED_WORDS)),
    }  # fmt: skip


def power_arrays(
    power: Power, demand: Demand, cap: Steps | None, ctl: Rows, nodes: int, placed: int, seed: int
) -> dict[str, Any]:
    """Returns the arrays, and sets the words of `ctl` that are about power. `placed` nodes have a
    label; 0: they are only counted."""
    policy, jobs = power.made(TICK_PS), len(demand)
    after = policy.sleep_after_s
    ctl[POWERED] = ctl[HEAPS] = 1
    ctl[INTERVAL] = power.interval(TICK_PS, USUAL_INTERVAL_PS)
    ctl[SLEEP_AFTER] = round(after * 1e12 / TICK_PS) if after >= 0 else -1
    ctl[WAKE_TIME] = power.wake_ps // TICK_PS
    ctl[STRETCHES], ctl[BY_INTERVAL] = power.limits == "stretch", power.passes == "intervals"
    ctl[CONTROLS] = policy.controls
    caps = np.zeros(0) if cap is None else cap.values.copy()
    meter = no_power()["meter"]
    meter[[IDLE_W, SLEEP_W, WAKE_W]] = power.idle, power.sleep, power.wake_w
    meter[[LEAST_W, SLOWDOWN, PEAK_W]] = power.least, power.slowdown, power.maximum
    meter[LAST_W] = nodes * power.idle  # before anything was measured
    meter[SPEED] = policy.first_rate
    if len(caps):
        meter[MACHINE_CAP_W] = caps[0]
        ctl[CAPS_LEFT] = len(caps) - 1
    energy = np.zeros((jobs, ENERGY_WORDS))
    energy[:, CAP_W], energy[:, FACTOR] = np.inf, 1.0
    energy[:, MEAN_W], energy[:, SPREAD] = demand.mean_w, demand.spread
    energy[:, CHANGE_AT], energy[:, CHANGE_TO] = demand.change_at, demand.change_to
    idle = np.zeros((nodes + 1, 2), np.int64)
    idle[0] = 0, nodes
    node = np.zeros((placed, NODE_WORDS))
    node[:, FACTOR_OF] = efficiencies(placed, power.variation, seed)
    node[:nodes, NODE_W] = power.idle
    return {
        "energy": energy, "meter": meter, "caps": caps, "idle": idle, "node": node,
        "node_since": np.zeros((placed, 2), np.int64),
        "readings": np.zeros((NOTES_KEPT + 2, READING_WORDS), np.int64),
        "stretched": np.tile([0.0, 0.0, 1.0], (jobs, 1)),
    }  # fmt: skip
