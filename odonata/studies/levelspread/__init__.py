"""The Level-Spread study: Y. Zhang's thesis (Boston University, 2021), chapter 3.

Reading order: `simulation`, `cases`, `measures`, `claims`, `claims_random`, `figures`. What is
heavy is imported when it is needed, so that the study can be listed at once.
"""

from __future__ import annotations

from typing import Any

from odonata.study.contract import ALL, Option, Packaged

PARTS = ("motivation", "homogeneous", "heterogeneous", "random", "order", "jokanovic", "patterns",
         "utilisation", "large-messages")  # fmt: skip
DRAWS = ("pairs", "scripts")
"""How random workloads are drawn: every pair of numbers of jobs as likely as any other, or as in
the authors' scripts."""


def _change(text: str) -> tuple[str, Any]:
    from odonata.studies.levelspread.cases import parse_change

    return parse_change(text)


class LevelSpread(Packaged):
    name = "level-spread"
    about = "Do jobs communicate faster where Level-Spread places them? (Zhang, thesis, chapter 3)"
    options = (
        Option("part", "Which of its experiments.", "all", choices=(ALL, *PARTS), field="parts"),
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
