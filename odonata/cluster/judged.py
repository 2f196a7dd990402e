"""What a run's files need besides its logs so that hours of regulation can be judged: prices and
rules of the market, the types of its jobs, and what there is of these in the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.cluster import layout as w
from odonata.cluster.metrics import running_rows, series_table, standby_j
from odonata.jobs.floors import work_left
from odonata.jobs.market import PRICES
from pdes.stream import Column, Table, Total
from policies.power import floor as f
from policies.views.tracking import MEAN

if TYPE_CHECKING:
    from odonata.cluster.market import Trading
    from odonata.cluster.model import Cluster
    from odonata.jobs.floors import Kinds

ABOUT_PRICES = {
    "energy_price": ("1/kWh", "what is paid for a kWh of the average that was bid"),
    "reserve_price": ("1/kWh", "what is earned by a kW of reserve that is offered for an hour"),
    "error_price": ("1/kWh", "what is paid for a kWh by which the machine is off its target"),
}
RULES = {
    "hour_us": ("us", "for how long a bid holds"),
    "limit": ("1", "the error, as a part of the reserve, above which an interval is bad"),
    "share": ("1", "the share of bad intervals of an hour is to be below this"),
    "late": ("1", "which part of the jobs of a type may be at their threshold or beyond"),
    "violation": ("1", "what an hour costs on top whose share is not below that"),
    "mean_qos": ("1", "1: a type keeps its QoS if the mean degradation is below the threshold"),
    "warmup_us": ("us", "what is judged begins so long after the run"),
}
COLUMNS = {
    "power_max_w": ("W", "what a node draws without a cap"),
    "power_min_w": (
        "W",
        "what a node draws under the lowest cap; if that is not less, caps do nothing",
    ),
    "slowdown": ("1", "how many times as long a job takes under the lowest cap"),
    "q_threshold": ("1", "the degradation that jobs are to stay below; infinite: none"),
    "nodes": ("1", "nodes of a job that a model makes; nan: none known"),
    "time_min_s": ("s", "how long such a job takes without a cap; nan: not known"),
    "standby": ("1", "1: these are the jobs of which there always is another one"),
}


def _column(of: str, dim: str, name: str, unit: str, about: str, values: Any) -> Column:
    """Returns a constant of the rank that has the scheduler; the others have none of it."""
    return Column(f"{of}/{name}", dim, unit, about,
                  lambda state: values if len(state.jobs) else values[:0])  # fmt: skip


def tables(model: Cluster, jobs: Table) -> dict[str, Table]:
    """Returns all tables of a run by which it is judged; `jobs` with a column of types."""
    found: dict[str, Table] = {}
    if model.trading is not None:
        found |= market_tables(model.trading)
    if model.types is not None:
        of_job = _column("jobs", "job", "type", "1", "a row of types", model.types.of_job)
        found |= {"jobs": jobs._replace(columns=(*jobs.columns, of_job))}
        found |= type_tables(model.types)
    if model.regulates is not None:
        found |= end_tables(len(model.trace))
    return found


def market_tables(trading: Trading) -> Mapping[str, Table]:
    """Returns the prices over time, and the rules, which are a table of one row."""
    of = trading.settings
    values = {"hour_us": trading.length, "limit": of.limit, "share": of.share, "late": of.late,
              "violation": of.violation}  # fmt: skip
    if of.qos == MEAN:
        values["mean_qos"] = 1.0
    if of.warmup_ps:
        values["warmup_us"] = of.warmup_ps // w.TICK_PS
    found = {name: series_table(name, trading.series[name], *ABOUT_PRICES[name]) for name in PRICES}
    columns = tuple(_column("market", "rule", name, *about, np.array([values[name]]))
                    for name, about in RULES.items() if name in values)  # fmt: skip
    return {**found, "market": Table((), _nothing, columns)}


def type_tables(kinds: Kinds) -> Mapping[str, Table]:
    """Returns the types of the run, those of standby jobs last."""
    every = [*kinds.rows, *([kinds.standby] if kinds.standby is not None else [])]
    values: dict[str, Sequence[Any]] = {
        "power_max_w": [it.most_w for it in every],
        "power_min_w": [it.least_w for it in every],
        "slowdown": [it.slowdown for it in every],
        "q_threshold": [it.threshold for it in every],
        "nodes": [math.nan if it.nodes is None else it.nodes for it in every],
        "time_min_s": [math.nan if it.shortest_s is None else it.shortest_s for it in every],
        "standby": [it is kinds.standby and at == len(kinds.rows) for at, it in enumerate(every)],
    }
    names = np.array([it.name.encode() for it in every])
    columns = [_column("types", "type", "name", "1", "in UTF-8", names)]
    columns += [_column("types", "type", name, *about, np.array(values[name], np.float64))
                for name, about in COLUMNS.items()]  # fmt: skip
    return {"types": Table((), _nothing, tuple(columns))}


def end_tables(jobs: int) -> Mapping[str, Table]:
    """Returns what is left of jobs at the end of the run, and what standby jobs came to by then."""

    def of(what: Callable[[Any], float]) -> Callable[[Any], Any]:
        return lambda state: np.array([what(state) if len(state.jobs) else 0.0])

    totals = (
        Total("standby/started", ("scheduler",), "1", "standby jobs that started",
              of(lambda state: state.floor[f.STANDBYS])),
        Total("standby/ended", ("scheduler",), "1", "those that came to their end",
              of(lambda state: state.floor[f.STANDBYS_ENDED])),
        Total("standby/energy_j", ("scheduler",), "J", "what they took until the run's end",
              of(lambda state: standby_j(state, _now(state)))),
    )  # fmt: skip
    left = Total("left/left_us", ("job",), "us", "how long it would have gone on without a cap; 0 "
                 "of a job that does not hold nodes",
                 lambda state: left_us(state, jobs, _now(state)) if len(state.jobs)
                 else np.zeros(jobs))  # fmt: skip
    return {"standby": Table((), _nothing, (), totals), "left": Table((), _nothing, (), (left,))}


def left_us(state: Any, jobs: int, time: int) -> Any:
    """[job]: the work that is left of those that hold nodes, at a moment that no event lies
    before."""
    found = np.zeros(jobs)
    rows = running_rows(state)
    found[rows] = work_left(state, rows, time)
    return found


def _now(state: Any) -> int:
    """Returns the time up to which energies are counted, of idle nodes and of types."""
    return max(int(state.ctl[w.METERED]), int(state.tallies[:, f.SINCE].max(initial=0)))


def _nothing(state: Any, time: int) -> Sequence[Any]:
    return []
