"""What one point of a sweep gives: every figure of its run, and of each of its jobs.

Figures are the numbers of `odonata run --json`, by the names that they have there: `throughput`,
`links.global.utilisation`; those of jobs are `jobs.run_time_ps`. Numbers about the computer that
simulated (wall time, memory) are none. What a figure is called, and its unit, is in its name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from odonata.experiment.experiment import folded
from odonata.jobs.request import Job
from odonata.results.measured import simulated_facts
from odonata.results.register import flat, misleads
from odonata.results.steadiness import MARKED
from odonata.sweeps.plan import Point, identities
from pdes.errors import Fault
from pdes.transport import Serial

Figures = dict[str, float | None]

OF_THE_HOST = (
    "ranks", "protocol", "completed", "tick", "resumed_ps", "wall_seconds", "events_per_second",
    "compile_seconds", "build_seconds", "seconds", "kinds", "rounds", "peak_pending", "max_rss_mb",
    "checkpoint", "mpi", "jobs_per_second",
)  # fmt: skip
"""Facts of a run that depend on how and where it was simulated."""
OF_REQUESTS = ("number", "requested_ps")
JOBS = "jobs."
"""The first letters of the names of figures that each job has."""


@dataclass(frozen=True)
class SweepOutcome:
    """What a point gave: its figures, None where one is not defined; those of each job by its name;
    the digest of the run; or, if it failed, why."""

    figures: Figures = field(default_factory=dict)
    jobs: dict[str, Figures] = field(default_factory=dict)
    digest: str = ""
    failed: str = ""
    kinds: dict[str, str] = field(default_factory=dict)
    """What the jobs of one [[jobs]] are called together, by the name of each."""
    verdict: str = ""
    """Whether it is of a steady state (`odonata.results.steadiness`); "" where that was not
    asked."""
    why: str = ""
    judged: Figures = field(default_factory=dict)
    """The drifts by which that was found."""

    @property
    def marked(self) -> bool:
        """Tells whether its latencies are not means of a steady state."""
        return self.verdict in MARKED

    def misleads(self, figure: str) -> bool:
        """Tells whether a figure would be read as a mean of a steady state, and is none."""
        return misleads(self.verdict, figure)

    def of_kind(self, kind: str) -> list[Figures]:
        """Returns the figures of the jobs that are called so together."""
        return [figures for job, figures in self.jobs.items() if self.kinds.get(job, job) == kind]


def simulate(point: Point) -> SweepOutcome:
    """Returns what a point gives. A fault of the simulated machine, such as a deadlock, is an
    outcome too. Raises Fault where the files that it is read from have changed since."""
    made = point.experiment()
    if [*identities(made, [point.seed])] != [point.identity]:
        raise Fault(f"{point.file}, or a file that it names, has changed since this sweep began; "
                    "the same command goes on with what is there now")  # fmt: skip
    try:
        return outcome_of(simulated_facts(made, Serial()), getattr(made, "jobs", ()))
    except Fault as fault:
        return SweepOutcome(failed=str(fault))


def outcome_of(facts: Mapping[str, Any], asked: Sequence[Job] = ()) -> SweepOutcome:
    """Returns the figures among the facts of a run; `asked` are the jobs of its experiment."""
    known = {name: value for name, value in facts.items() if name not in OF_THE_HOST}
    jobs, found = known.pop("jobs", []), known.pop("steadiness", {})
    if not isinstance(jobs, list):
        known["jobs"], jobs = jobs, []
    names = _apart([job["name"] for job in jobs])
    by_job = {
        name: _figures({key: value for key, value in job.items() if key not in OF_REQUESTS})
        for name, job in zip(names, jobs, strict=True)
    }
    figures = _figures(known)
    if figures.get("measured_packets") == 0:  # whose latency is not 0, but unknown
        figures |= {name: None for name in figures if name.endswith("_latency_ns")}
    drifts = dict(flat(found))
    judged = found.get("verdict", ""), found.get("why", ""), drifts
    return SweepOutcome(figures, by_job, str(facts["digest"]), "", _kinds(names, asked), *judged)


def _figures(facts: Mapping[str, Any]) -> Figures:
    return {path: None if value is None else float(value) for path, value in flat(facts)}


def _kinds(names: list[str], asked: Sequence[Job]) -> dict[str, str]:
    """Returns what jobs that are alike are called together: as their section is, or else what they
    do and on how many nodes, which stays the same where other jobs are dropped."""
    sections = [*folded(asked)]
    called = _apart([job.name or f"{job.does} on {job.nodes} nodes" for job, _ in sections])
    each = (kind for kind, (_, count) in zip(called, sections, strict=True) for _ in range(count))
    return dict(zip(names, each, strict=True)) if asked else {}


def _apart(names: list[str]) -> list[str]:
    """Returns the names of jobs, with a number behind those that are not the first of a name."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return found


# -- how figures are shown


def plus_minus(mean: float, half: float) -> str:
    """Returns a mean and half of its interval, to two digits of the latter.

    >>> plus_minus(1234.5678, 3.456), plus_minus(0.25, math.nan), plus_minus(7.0, 0.0)
    ('1,234.6 ± 3.5', '0.25', '7 ± 0')
    """
    if math.isnan(mean):
        return "-"
    if math.isnan(half) or half == 0 or math.isinf(half):
        text = f"{mean:,.0f}" if abs(mean) >= 1e5 else f"{mean:,.6g}"
        return text + ("" if math.isnan(half) else " ± 0" if half == 0 else " ± ∞")
    digits = max(0, 1 - math.floor(math.log10(half)))
    if digits > 9:
        return f"{mean:.6g} ± {half:.2g}"
    return f"{mean:,.{digits}f} ± {half:,.{digits}f}"
