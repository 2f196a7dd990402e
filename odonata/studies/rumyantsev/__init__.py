"""Rumyantsev et al. (2018): one service rate for all servers of a cluster, and when to change it.

Reading order: `measures`, `streams`, `simulation`, `cases`, `claims`, `figures`. What is heavy is
imported when it is needed, so that the study can be listed at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from odonata.study.contract import ALL, Option, Packaged

PARTS = ("hysteresis", "threshold", "comparison", "disciplines", "randomised", "stability")


class Rumyantsev(Packaged):
    name = "rumyantsev"
    about = "What do slower servers save while little work is there? (Rumyantsev et al., 2018)"
    options = (
        Option("trace", "The Karelian trace, a CSV file: data set HPC_KRC2 of the R package "
               "hpcwld.", "krc2.csv", metavar="FILE"),
        Option("part", "Figures 1 and 2 (hysteresis), figure 3 (threshold), control by workload "
               "against control by number (comparison), other disciplines than first come, first "
               "served (disciplines), figure 3 of weeks drawn anew (randomised), or when a queue "
               "is stable (stability).", "all", choices=(ALL, *PARTS), field="parts"),
        Option("draws", "How many randomised traces there are, and streams at each load.", 10,
               int),
        Option("recorded_rate", "The service rate at which service times were recorded: a job "
               "amount is the recorded time times this. 2.66: the high rate.", 1.0, float),
        Option("zero_gap_ms", "By how many ms a customer comes later who is recorded to have come "
               "together with the one before.", 1.0, float),
    )  # fmt: skip
    notes = (
        "k: the one threshold of figure 3, in s of work at a service rate of 1. swapped, printed: "
        "the energies of a busy server. ± is the interval of 95 % over randomised traces, or over "
        "streams; the recorded trace is one. Power is that of all 80 servers; of two values at one "
        "power the first is under control by workload, the second by number of customers. Below "
        "the thresholds: figure 1's run, over time and over its customers; loads are service rates "
        "times servers, and of two powers the first is swapped."
    )

    def ask(self, *args: Any, **options: Any) -> Any:
        """Returns the plan, with a digest of the trace."""
        asked = super().ask(*args, **options)
        return replace(asked, data=self._of("simulation", "digest_of")(asked.trace))
