"""How long each job of a run takes alone: on the same nodes, without other jobs and without any
traffic.

`odonata slowdown` simulates that, and it is kept beside the run, in `alone.json`. The random
numbers of a job are the same as in the run, so a job that was alone there takes exactly as long
again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from odonata.experiment.experiment import Experiment
from odonata.jobs.record import JobRecord
from pdes.checksum import is_intact, with_checksum
from pdes.replacing import write_whole

if TYPE_CHECKING:
    from odonata.results.run import Run

FILE = "alone.json"


def alone(made: Experiment, record: JobRecord) -> Experiment:
    """Returns the experiment in which a job of a run is by itself, on the nodes that it had."""
    number = made.model().workload
    assert number is not None
    job = replace(made.jobs[record.number], on=record.labels, arrival_ps=0, background=False,
                  number=number.number_of(record.number))  # fmt: skip
    scheduler = replace(made.scheduler, order="fcfs", order_parameters=(), allocation="simple",
                        allocation_parameters=(), telemetry_ps=None)  # fmt: skip
    run = replace(made.run, end=None, dedicated_scheduler=False)
    return replace(made, jobs=(job,), traffic=(), scheduler=scheduler, run=run, power=None,
                   market=None, metrics=replace(made.metrics, trace_packets=None))  # fmt: skip


def keep(run: Run, alone_ps: Sequence[int]) -> None:
    """Keep how long each job of a run takes alone, beside it."""
    text = json.dumps({"id": run.attributes["id"], "alone_ps": [*alone_ps]})
    write_whole(run.path / FILE, with_checksum(text) + "\n")


def measured(path: Path, run_id: str, jobs: int) -> list[int] | None:
    """Returns what `measure` has kept of this run; None where there is nothing, or where that has
    been changed."""
    try:
        text = (path / FILE).read_bytes()
        kept = json.loads(text) if is_intact(text) is not False else {}
        times = [int(ps) for ps in kept["alone_ps"]] if kept["id"] == run_id else []
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return times if len(times) == jobs else None


def slowdowns(records: Sequence[JobRecord], alone: Sequence[int] | None) -> list[float | None]:
    """Returns the run time of each job as a multiple of what it takes alone; None where one of the
    two is not known."""
    if alone is None:
        return [None] * len(records)
    return [record.run_time_ps / ps if record.run_time_ps is not None and ps > 0 else None
            for record, ps in zip(records, alone, strict=True)]  # fmt: skip
