"""Load–latency curves: how long packets take as the load grows, and where a network saturates.

Reading order: `simulation`, `cases`, `claims`, `figures`. `odonata latency` asks for them
(`odonata.commands.latency`). What is heavy is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odonata.study.contract import Claim, Study

if TYPE_CHECKING:
    from odonata.studies.loadlatency.cases import Sweep
    from odonata.studies.loadlatency.simulation import AtLoad, Point


class LoadLatency(Study["Sweep", "AtLoad", "Point"]):
    """Sequential: a curve ends a few points past saturation."""

    name = "load-latency"
    about = "Latency and throughput over the offered load, for any machine, routing and traffic"
    notes = "paper: what the structure of the machine allows."
    sequential = True

    def ask(self, *args: Any, **options: Any) -> Sweep:
        """As `odonata.studies.loadlatency.cases.sweep`."""
        from odonata.studies.loadlatency.cases import sweep

        return sweep(*args, **options)

    def cases(self, asked: Sweep, outcomes: Mapping[str, Point]) -> Sequence[AtLoad]:
        from odonata.studies.loadlatency.cases import wanted

        return wanted(asked, outcomes)

    def mark(self) -> str:
        """Returns a constant mark: routings are the user's choice, and each takes a while to
        compile, so every case has a mark of its own (`simulation.mark`)."""
        return "per case"

    def simulate(self, case: AtLoad) -> Point:
        from odonata.studies.loadlatency.simulation import simulate

        return simulate(case)

    def revive(self, fields: dict[str, Any]) -> Point:
        from odonata.studies.loadlatency.simulation import revive

        return revive(fields)

    def claims(self, asked: Sweep, outcomes: Mapping[str, Point]) -> list[Claim]:
        from odonata.studies.loadlatency.claims import claims

        return claims(asked, outcomes)

    def figures(
        self, asked: Sweep, outcomes: Mapping[str, Point], directory: Path, pdf: bool
    ) -> list[Path]:
        from odonata.studies.loadlatency.figures import draw

        return draw(asked, outcomes, directory, pdf)
