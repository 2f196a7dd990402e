"""How long each job of a run takes alone: on the same nodes, without other jobs and without any
traffic.

`measure` simulates that, and keeps it beside the run, in `alone.json`. The random numbers of a job
are the same as in the run, so a job that was alone there takes exactly as long again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from odonata.agents.network import Network
from odonata.jobs.board import BEGAN, OVER
from odonata.jobs.record import JobRecord
from pdes.checksum import is_intact, with_checksum
from pdes.driver import run
from pdes.errors import Refused
from pdes.replacing import write_whole
from pdes.transport import Serial

if TYPE_CHECKING:
    from odonata.results.run import Run

FILE = "alone.json"


def by_itself(network: Network, record: JobRecord) -> Network:
    """Returns the network with one of its jobs only, on the nodes that it had."""
    assert network.workload is not None
    job = replace(network.jobs[record.number], on=record.labels, arrival_ps=0, background=False)
    workload = replace(
        network.workload, jobs=(job,), numbers=(network.workload.number_of(record.number),),
        order="fcfs", order_parameters=(), allocation="simple", allocation_parameters=(),
        telemetry_ps=None,
    )  # fmt: skip
    return replace(network, traffic=(), workload=workload, power=None, dedicated_scheduler=False)


def alone_ps(network: Network, record: JobRecord) -> int:
    """Returns how long a job takes alone, in ps."""
    result = run(by_itself(network, record), None, transport=Serial())
    board = result.outcome["board"][0]
    return int(board[OVER] - board[BEGAN])


def measure(run_: Run, told: Callable[[JobRecord, int], None] = lambda job, ps: None) -> list[int]:
    """Simulate every job of a run that is done by itself, and keep how long each took. Returns
    these times in ps, -1 for jobs that are not done. `told` hears of each."""
    if run_.missing:
        raise Refused(f"{run_.path}: {run_.missing}")
    found = []
    for record in run_.job_records:
        found.append(alone_ps(run_.network, record) if record.end_ps is not None else -1)
        told(record, found[-1])
    text = json.dumps({"id": run_.attributes["id"], "alone_ps": found})
    write_whole(run_.path / FILE, with_checksum(text) + "\n")
    return found


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
