"""A sweep as a study: its points are cases, so they are simulated on processes or MPI ranks, kept
one by one, and resumed, as those of every study are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odonata.study.contract import Claim, Study, digest
from odonata.study.sources import sources
from odonata.sweeps.outcomes import SweepOutcome, simulate
from odonata.sweeps.plan import Plan, Point
from pdes.checksum import with_checksum
from pdes.driver import run
from pdes.replacing import write_whole
from pdes.transport import Serial

PLAN = "sweep.json"


@dataclass(frozen=True)
class Sweep(Study[Plan, Point, SweepOutcome]):
    """The study of one plan; of a `part` of it, the I-th of N, if it is shared among jobs of a
    cluster."""

    plan: Plan
    part: tuple[int, int] | None = None
    name = "sweep"
    about = "Experiments of one file that differ in some keys and in their seeds."
    tolerant = True
    outcome = SweepOutcome

    def ask(self, *args: Any, **options: Any) -> Plan:
        return self.plan

    @property
    def share(self) -> str:  # type: ignore[override]
        return f"{self.part[0]:04d}-of-{self.part[1]:04d}" if self.part else ""

    def cases(self, asked: Plan, outcomes: Mapping[str, SweepOutcome]) -> Sequence[Point]:
        every = [*{point.key: point for point in asked.points}.values()]
        return every[self.part[0] - 1 :: self.part[1]] if self.part else every

    def simulate(self, case: Point) -> SweepOutcome:
        return simulate(case)

    def mark(self) -> str:
        return mark_of(self.plan.variants)

    def begin(self, asked: Plan, directory: Path) -> None:
        _write(self.plan.facts(), directory)

    def facts(self, outcomes: Mapping[str, SweepOutcome]) -> dict[str, Any]:
        """Returns what is kept beside the outcomes, from which `odonata.sweeps.kept` makes the
        results."""
        return self.plan.facts()

    def conclude(self, outcomes: Mapping[str, SweepOutcome], directory: Path) -> None:
        """Write what is to be known of the sweep when its results are opened."""
        _write(self.facts(outcomes), directory)

    def claims(self, asked: Plan, outcomes: Mapping[str, SweepOutcome]) -> list[Claim]:
        return []


def _write(facts: Mapping[str, Any], directory: Path) -> None:
    write_whole(directory / PLAN, with_checksum(json.dumps(facts, indent=1)) + "\n")


def mark_of(points: Sequence[Point]) -> str:
    """Returns a digest of the simulator's sources: an outcome may depend on any of them. The
    programs that these points need are compiled."""
    for point in points:
        run(point.experiment().model(), 1, transport=Serial())
    return digest([sources()])
