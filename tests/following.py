"""A small machine of packets that follows a target, for tests; and what its files say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from machines import SMALL, US

from odonata.agents.network import Network
from odonata.agents.workload import Workload
from odonata.jobs.market import MarketSettings
from odonata.jobs.power import Power
from odonata.jobs.request import Job
from pdes.driver import Result, run
from pdes.join import join
from pdes.stream import Recording
from pdes.transport import Serial, Transport

LAUNCH, INTERVAL = 900_000, 5 * US
TABLES, LOGS = ("nodes", "jobs"), ("starts", "ends", "power", "caps", "bids", "tracking")
SIGNAL = [["0 s", 0.5], ["30 us", -1.0], ["65 us", 0.9], ["80 us", -0.7], ["120 us", 1.0]]
JOBS = (
    Job(20, "all-to-all", 1500, exchange="pairwise", compute_ps=19 * US, application="a"),
    Job(17, "allreduce", 900, iterations=6, compute_ps=6_012_345, application="b"),
    Job(9, "uniform", 600, iterations=10, compute_ps=4 * US, application="a"),
    Job(30, "halo3d26", 700, iterations=5, arrival_ps=1, compute_ps=8 * US, application="c"),
    Job(8, "tree-broadcast", 5000, iterations=3, arrival_ps=2 * US, application="b"),
    Job(1, "broadcast", 8, iterations=9, arrival_ps=2 * US, compute_ps=7 * US, application="d"),
    Job(11, "random-ring", 800, iterations=5, arrival_ps=27 * US, compute_ps=4 * US),
)
TYPES = (
    {"type": "a", "power_max_w": 310, "power_min_w": 150, "slowdown": 1.6},
    {"type": "b", "power_max_w": 220, "power_min_w": 140, "slowdown": 1.2},
    {"type": "any", "by": "any", "power_max_w": 260, "power_min_w": 130, "slowdown": 1.43},
)


def following(
    *jobs: Job,
    policy: str = "tracking-only",
    policy_parameters: tuple[tuple[str, Any], ...] = (("preemption", True),),
    bid_w: tuple[float, float] = (12_500.0, 4_500.0),
    signal: Any = SIGNAL,
    power: dict[str, Any] | None = None,
    market: dict[str, Any] | None = None,
    **given: Any,
) -> Network:
    """A machine that offers the same every hour, of 40 us."""
    names = Workload.__dataclass_fields__
    how = {"allocation": "rdn", "launch_ps": LAUNCH, "match_ps": 20_000, "host_ps": 30_000}
    how |= {name: given.pop(name) for name in [*given] if name in names}
    watts = {"interval_ps": INTERVAL, "communicating_w": 120.0} | (power or {})
    asked = {"hour_ps": 40 * US} | (market or {})
    average, reserve = bid_w
    offered = {"bidding": "fixed", "bidding_parameters": (("average", average),
                                                          ("reserve", reserve))}  # fmt: skip
    return Network(**{
        "machine": SMALL, "workload": Workload(jobs or JOBS, **how), "routing": "adaptive",
        "power": Power(policy, policy_parameters, **watts),
        "market": MarketSettings(**offered | {"signal": signal} | asked),
        "delay_ps": 20_000, "local_buffer": 2048, "global_buffer": 4096,
    } | given)  # fmt: skip


def recorded(
    model: Network,
    place: Path,
    transport: Transport | None = None,
    end: int | None = None,
    every: int = INTERVAL,
    **how: Any,
) -> Result:
    """Simulate, and write tables and logs to a directory."""
    record = Recording(place, every, TABLES, logs=LOGS)
    return run(model, end, record=record, transport=transport or Serial(), show_compiling=False,
               **how)  # fmt: skip


def columns(place: Path) -> dict[str, Any]:
    """Returns all that was written, by table and name."""
    join(place, place / "run.h5")
    found = {}
    with h5py.File(place / "run.h5") as file:
        for group in (*TABLES, *LOGS):
            found |= {f"{group}/{name}": column[:] for name, column in file[group].items()}
        found["time"] = np.asarray(file["time_ps"][:] if "time_ps" in file else 0)
    return found
