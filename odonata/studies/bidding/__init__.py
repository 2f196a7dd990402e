"""Zhang (2021), section 2.9: which bids a machine can keep, hour after hour, whose jobs run for
hours on many nodes, and what it saves.

Reading order: `simulation`, `cases`, `found`, `claims`, `figures`. What is heavy is imported when
it is needed, so that the study can be listed at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from odonata.study.contract import ALL, Option, Packaged

PARTS = ("table", "busy", "causes", "fes")


class Bidding(Packaged):
    name = "bidding"
    about = "Which bids can a machine keep whose jobs run for hours? (Zhang, 2021)"
    sequential = True
    options = (
        Option("part", "The combinations of table 2.7 (table), the same on a machine that is 90 % "
               "busy (busy), why EnergyQARE keeps its QoS or does not (causes), or FES where it "
               "tries each bid in six days instead of one (fes).", "all",
               choices=(ALL, *PARTS), field="parts"),
        Option("days", "Days of each case: seeds of jobs and signal, the same in all cases.", 8,
               int),
        Option("deviation", "Standard deviation of the signal.", 0.40, float),
    )  # fmt: skip
    notes = (
        "A day is the fifth of a run; jobs are those that were submitted in it. After ± is half of "
        "a confidence interval of 95 % over the days. Off: the part of the day in which the "
        "machine is off its target by more than 0.3 of the reserve, to be below 10 %. Q: the "
        "largest mean degradation of a type, to be below 2. The thesis has one day of each of "
        "three traces that are not public; ours are made to be like them."
    )

    def cases(self, asked: Any, outcomes: Mapping[str, Any]) -> Sequence[Any]:
        """Returns the days that are known: some have a bid that a search is to find first."""
        return self._of("cases", "cases")(asked, outcomes)  # type: ignore[no-any-return]
