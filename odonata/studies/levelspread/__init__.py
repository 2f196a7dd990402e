"""The Level-Spread study: Y. Zhang's thesis (Boston University, 2021), chapter 3.

Reading order: `simulation`, `cases`, `measures`, `claims`, `claims_random`, `figures`. What is
heavy is imported when it is needed, so that the study can be listed at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odonata.study.contract import Option, Packaged
from pdes.errors import require

if TYPE_CHECKING:
    from odonata.studies.levelspread.cases import LevelSpreadPlan
    from odonata.studies.levelspread.simulation import LevelSpreadOutcome, Point

PARTS = ("motivation", "homogeneous", "heterogeneous", "random", "order", "jokanovic", "patterns",
         "utilisation", "large-messages")  # fmt: skip
DRAWS = ("pairs", "scripts")
"""How random workloads are drawn: every pair of numbers of jobs as likely as any other, or as in
the authors' scripts."""


def _change(text: str) -> tuple[str, Any]:
    from odonata.studies.levelspread.cases import parse_change

    return parse_change(text)


class LevelSpread(Packaged["LevelSpreadPlan", "Point", "LevelSpreadOutcome"]):
    name = "level-spread"
    about = "Do jobs communicate faster where Level-Spread places them? (Zhang, thesis, chapter 3)"
    options = (
        Option("part", "Which of its experiments.", "all", choices=("all", *PARTS)),
        Option("workloads", "Number of random workloads.", 1000, int),
        Option("repeat", "Repetitions of all others, with other seeds.", 10, int),
        Option("seed", "The first.", 1, int),
        Option("draw", "How random workloads are drawn: every pair of numbers of jobs as likely as "
               "any other, or as the authors' scripts do it.", DRAWS[0], choices=DRAWS),
        Option("changes", "Otherwise than the study has it, everywhere: iterations=10; terminal=4, "
               "times the bandwidth of a local link; router=merlin, SST's; host=sst, with the "
               "costs of its hosts.", (), _change, several=True, flag="set",
               metavar="FIELD=VALUE"),
    )  # fmt: skip
    notes = (
        "Level-Spread's reduction of communication time, unless another policy is named. better, "
        "worse: small and large jobs both; of pairs of a workload and a baseline. Intervals are of "
        "95 %, over repetitions or random workloads."
    )

    def ask(
        self, part: str = "all", workloads: int = 1000, repeat: int = 10, seed: int = 1,
        draw: str = DRAWS[0], changes: tuple[tuple[str, Any], ...] = (),
    ) -> LevelSpreadPlan:  # fmt: skip
        from odonata.studies.levelspread.cases import LevelSpreadPlan

        require(draw in DRAWS, f"draw = {draw!r}: one of {', '.join(DRAWS)}")
        parts = PARTS if part == "all" else (part,)
        return LevelSpreadPlan(workloads, repeat, seed, changes, parts, draw)

    def cases(
        self, asked: LevelSpreadPlan, outcomes: Mapping[str, LevelSpreadOutcome]
    ) -> Sequence[Point]:
        from odonata.studies.levelspread.cases import checked

        return checked(asked)
