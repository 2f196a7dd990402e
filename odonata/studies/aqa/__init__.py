"""AQA (Zhang et al., 2021): what its bids come to on fourteen mixes of jobs, beside EnergyQARE and
tracking alone.

Reading order: `simulation`, `cases`, `printed`, `found`, `claims`, `beyond`, `figures`. What is
heavy is imported when it is needed, so that the study can be listed at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from odonata.study.contract import Option, Packaged

if TYPE_CHECKING:
    from odonata.studies.aqa.cases import AqaPlan
    from odonata.studies.aqa.simulation import AqaOutcome, Offer

PARTS = ("mixes", "service", "signals", "margins", "gradient", "printed", "scale", "weights",
         "risk")  # fmt: skip


class Aqa(Packaged["AqaPlan", "Offer", "AqaOutcome"]):
    name = "aqa"
    about = "Which bids keep their rules, and what do they save? (Zhang et al., AQA, 2021)"
    options = (
        Option("part", "The fourteen mixes, under three policies, in sample and held out, with "
               "every step of AQA, warmed hours and another signal (mixes); thresholds (service); "
               "bids for other signals (signals), with other margins (margins); the paper's "
               "descent (gradient); its printed bids (printed); 10,000 servers (scale); weights "
               "that adapt (weights); or bids at a stated risk (risk).", "all",
               choices=("all", *PARTS)),
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

    def ask(
        self, part: str = "all", mixes: str = "all", hours: int = 20, candidates: int = 500
    ) -> AqaPlan:  # fmt: skip
        from odonata.studies.aqa.cases import AqaPlan, mixes_of

        parts = PARTS if part == "all" else (part,)
        return AqaPlan(parts, mixes_of(mixes), hours, candidates)

    def cases(self, asked: AqaPlan, outcomes: Mapping[str, AqaOutcome]) -> Sequence[Offer]:
        from odonata.studies.aqa.cases import cases

        return cases(asked)
