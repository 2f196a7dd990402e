"""AQA (Zhang et al., 2021): what its bids come to on fourteen mixes of jobs, beside EnergyQARE and
tracking alone.

Reading order: `simulation`, `cases`, `printed`, `found`, `claims`, `beyond`, `figures`. What is
heavy is imported when it is needed, so that the study can be listed at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from odonata.study.contract import ALL, Option, Packaged

PARTS = ("mixes", "service", "signals", "margins", "gradient", "printed", "scale", "weights",
         "risk")  # fmt: skip


class Aqa(Packaged):
    name = "aqa"
    about = "Which bids keep their rules, and what do they save? (Zhang et al., AQA, 2021)"
    options = (
        Option("part", "The fourteen mixes, under three policies, in sample and held out, with "
               "every step of AQA, warmed hours and another signal (mixes); thresholds (service); "
               "bids for other signals (signals), with other margins (margins); the paper's "
               "descent (gradient); its printed bids (printed); 10,000 servers (scale); weights "
               "that adapt (weights); or bids at a stated risk (risk).", "all",
               choices=(ALL, *PARTS), field="parts"),
        Option("mixes", "The mixes, as W4,W5.", "all"),
        Option("hours", "Hours that bids are judged by.", 20, int),
        Option("candidates", "Bids that a search tries.", 500, int),
    )  # fmt: skip
    notes = (
        "In sample: a bid is judged by the hour that it was made for, as the paper's seem to be. "
        "Held out: it is made on six hours and judged on others. Kept: the tracking rule and the "
        "QoS of every type. After ± is half of a confidence interval of 95 % over the hours (of "
        "chances by Clopper and Pearson; of the hours of one mix, too). A printed number holds "
        "where the interval comes within a tenth of it, an inequality where the whole interval (of "
        "differences between the same hours) says so; in sign "
        "only where no more than the direction is right."
    )

    def ask(self, *args: Any, **options: Any) -> Any:
        """Returns the plan, with its mixes by their names."""
        asked = super().ask(*args, **options)
        return replace(asked, mixes=self._of("cases", "mixes_of")(asked.mixes))
