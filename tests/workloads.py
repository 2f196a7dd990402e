"""Small networks with jobs, and a run of one to its end, for tests."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import pytest
from machines import SMALL, US

from odonata.agents.audit import conclude
from odonata.agents.metrics import COUNTERS
from odonata.agents.network import Network
from odonata.agents.workload import Workload
from odonata.jobs.record import JobRecord
from odonata.jobs.request import Job
from odonata.results.job_table import to_csv
from odonata.results.performance import job_energy, job_records, schedule_of
from pdes.driver import Result, run
from pdes.transport import Serial

LAUNCH, SEND, MATCH, HOST, DELAY = 2 * US, 30_000, 70_000, 90_000, 20_000
BYTES = COUNTERS.index("bytes")
SHORT = {"pattern": "permutation", "message_bytes": 100}
PER_GROUP = SMALL.routers * SMALL.nodes


def network(*jobs: Job, **given: Any) -> Network:
    """One task per node, in the order of their labels, unless given otherwise."""
    names = Workload.__dataclass_fields__
    how = {"tasks_per_node": 1, "allocation": "simple", "launch_ps": LAUNCH, "send_ps": SEND,
           "match_ps": MATCH, "host_ps": HOST}  # fmt: skip
    how |= {name: given.pop(name) for name in [*given] if name in names}
    jobs = tuple(
        dataclasses.replace(job, mapping="linear") if job.mapping == "random" else job
        for job in jobs
    )
    return Network(**{"machine": SMALL, "workload": Workload(jobs, **how), "routing": "adaptive",
                      "delay_ps": DELAY} | given)  # fmt: skip


class Ran(NamedTuple):
    network: Network
    result: Result
    jobs: list[JobRecord]
    state: Any

    def csv(self) -> str:
        """Returns its table of jobs."""
        schedule = schedule_of(self.network, self.result)
        return to_csv(schedule, "w", job_energy(self.network, self.result, schedule))


def go(model: Network, end: int | None = None, **how: Any) -> Ran:
    """To its end, on one rank; with the state that it ends in. Nothing may be lost on the way."""
    states = []
    original = Network.outcome

    def remembering(self: Network, state: Any, *rest: Any) -> Any:
        states.append(state)
        return original(self, state, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Network, "outcome", remembering)
        result = run(model, end, transport=Serial(), show_compiling=False, **how)
    assert conclude(model, result.outcome) is None
    return Ran(model, result, job_records(model, result), states[0])


def took(*jobs: Job, **given: Any) -> list[int | None]:
    return [job.run_time_ps for job in go(network(*jobs, **given)).jobs]
