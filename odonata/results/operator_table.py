"""The counters of `operator_counters` as files for programs, in the manner of LDMS, and as tables
for people."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from odonata.experiment.units import show_count
from odonata.results.derived import CLASSES
from odonata.results.job_table import seconds
from odonata.results.operator_counters import (
    KINDS,
    MATERIALS,
    Counters,
    JobCounters,
    Threshold,
    cumulative,
)
from pdes.shown import csv_cell

if TYPE_CHECKING:
    from rich.table import Table

    from odonata.jobs.record import JobRecord
    from topology import Dragonfly

COLUMNS = (
    "#Time", "component_id",
    *(f"N_FLIT_{made}" for made in MATERIALS.values()),
    *(f"{kind}_stalls_{made}" for kind in KINDS for made in MATERIALS.values()),
    "P_REQ_FLIT", "P_REQ_STALL", "stall_to_flit",
)  # fmt: skip
"""The columns of a row per sample and router: when, which router; cumulative counters, of its
electrical and of its optical network tiles and of its processor tiles; and, in the interval that
ends then, its ratio."""
JOB_COLUMNS = ("job_id", "name", "nodes", "routers", *JobCounters._fields)
MOST_SHOWN = 10
"""How many routers the table for people has: the most congested."""


def _readings(seen: Counters, nodes: int) -> list[Any]:
    """Returns the counters of each router at every sample, in the order of COLUMNS; stalls as whole
    cycles, as a counter shows them."""
    cycles = [
        np.floor(cumulative(seen.class_stall_ps(name, kind)) / seen.cycle_ps(name)).astype(np.int64)
        for kind in KINDS
        for name in CLASSES
    ]
    p_flit = seen.p_flit.reshape(len(seen.time_ps), -1, nodes).sum(axis=2)
    p_stall = np.floor(cumulative(seen.p_stall_ps) / seen.node_flit_ps).astype(np.int64)
    flits = [cumulative(seen.class_flits(name)) for name in CLASSES]
    return [*flits, *cycles, cumulative(p_flit), p_stall]


def write_routers(file: TextIO, seen: Counters, nodes: int, ratio: Any) -> None:
    """Write a row per sample and router; `nodes` a router, `ratio` by interval and router."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    readings = _readings(seen, nodes)
    routers = range(len(seen.lit))
    for i, time in enumerate(seen.time_ps.tolist()):
        columns = [values[i].tolist() for values in (*readings, ratio)]
        writer.writerows(zip([seconds(time)] * len(routers), routers, *columns, strict=True))


def router_facts(
    machine: Dragonfly, seen: Counters, threshold: Threshold, kind: str
) -> list[dict[str, Any]]:
    """Returns the routers for JSON: counters at the last sample, and the mean ratio over the run,
    of all tiles, of the electrical and of the optical ones."""
    ratios = {"stall_to_flit": seen.over_time(seen.stall_to_flit(threshold, kind))}
    for name, made in MATERIALS.items():
        some = seen.stall_to_flit(threshold, kind, [name])
        ratios[f"stall_to_flit_{made}"] = seen.over_time(some)
    last = [values[-1].tolist() for values in _readings(seen, machine.nodes)]
    rows = zip(*(values.tolist() for values in ratios.values()), *last, strict=True)
    return [
        {"router": router, "group": router // machine.routers,
         **dict(zip((*ratios, *COLUMNS[2:-1]), row, strict=True))}
        for router, row in enumerate(rows)
    ]  # fmt: skip


def router_table(facts: Sequence[dict[str, Any]], kind: str) -> Table:
    """Returns the most congested routers, for a terminal of 80 letters."""
    table = _table("router", "group", "stalls\nper flit", "elec-\ntrical", "\noptical",
                   "flits\nin", f"{kind}\nstalls", "flits to\nnodes", "stalls\nthere")  # fmt: skip
    for it in sorted(facts, key=lambda it: (-it["stall_to_flit"], it["router"]))[:MOST_SHOWN]:
        flits, stalls = (sum(it[f"{what}_{made}"] for made in MATERIALS.values())
                         for what in ("N_FLIT", f"{kind}_stalls"))  # fmt: skip
        parts = [it[f"stall_to_flit_{made}"] for made in MATERIALS.values()]
        counts = (flits, stalls, it["P_REQ_FLIT"], it["P_REQ_STALL"])
        table.add_row(f"{it['router']:,}", f"{it['group']:,}", f"{it['stall_to_flit']:.3f}",
                      *(f"{part:.3f}" for part in parts), *map(show_count, counts))  # fmt: skip
    return table


def job_rows(
    machine: Dragonfly, records: Sequence[JobRecord], found: Sequence[JobCounters]
) -> Iterator[tuple[Any, ...]]:
    """Yield a row per job, under JOB_COLUMNS; None for what no sample says."""
    for record, counters in zip(records, found, strict=True):
        routers = len({label // machine.nodes for label in record.labels})
        yield (record.number, record.name, record.nodes, routers,
               *(None if value is None or math.isnan(value) else value
                 for value in counters))  # fmt: skip


def write_jobs(file: TextIO, rows: Iterable[tuple[Any, ...]]) -> None:
    """Write a row per job; what is not known is empty."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows([JOB_COLUMNS, *(map(csv_cell, row) for row in rows)])


def job_table(rows: Iterable[tuple[Any, ...]]) -> Table:
    """Returns a row per job, for a terminal of 80 letters: names are cut off, numbers are not. The
    largest ratio of a router stands beside the number of that router."""
    from rich.text import Text

    table = _table("\n\njob", "\n\nnodes", "\nrout-\ners", "stalls\na flit\n(mean)",
                   "\n\nmedian", "\nlar-\ngest", "\nof\nrouter", "ntile\nstalls\na sec.",
                   "ptile\nstalls\na sec.", "flits\na node\na sec.")  # fmt: skip
    table.padding = 0
    for column in table.columns[1:]:
        column.no_wrap = True  # so that rich narrows that of names
    for _, name, nodes, routers, *ratios, router, ntile, ptile, flits in rows:
        table.add_row(Text(name, no_wrap=True, overflow="ellipsis"), f"{nodes:,}",
                      f"{routers:,}" if routers else "-",
                      *("-" if ratio is None else f"{ratio:.3f}" for ratio in ratios),
                      "-" if router is None else f"{router:,}",
                      *("-" if rate is None else show_count(rate)
                        for rate in (ntile, ptile, flits)))  # fmt: skip
    return table


def _table(*heads: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head in heads:
        left = head.strip() == "job"
        table.add_column(head, justify="left" if left else "right", max_width=28)
    return table
