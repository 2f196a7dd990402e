"""Rumyantsev et al. (2018): one service rate for all servers of a cluster, and when to change it.

Reading order: `measures`, `streams`, `simulation`, `cases`, `claims`, `figures`. What is heavy is
imported when it is needed, so that the study can be listed at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from odonata.study.contract import Option, Packaged

if TYPE_CHECKING:
    from odonata.studies.rumyantsev.cases import RumyantsevPlan
    from odonata.studies.rumyantsev.simulation import RumyantsevOutcome, Run

PARTS = ("hysteresis", "threshold", "comparison", "disciplines", "randomised", "stability")


class Rumyantsev(Packaged["RumyantsevPlan", "Run", "RumyantsevOutcome"]):
    name = "rumyantsev"
    about = "What do slower servers save while little work is there? (Rumyantsev et al., 2018)"
    options = (
        Option("trace", "The Karelian trace, a CSV file: data set HPC_KRC2 of the R package "
               "hpcwld.", "krc2.csv", metavar="FILE"),
        Option("part", "Figures 1 and 2 (hysteresis), figure 3 (threshold), control by workload "
               "against control by number (comparison), other disciplines than first come, first "
               "served (disciplines), figure 3 of weeks drawn anew (randomised), or when a queue "
               "is stable (stability).", "all", choices=("all", *PARTS)),
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

    def ask(
        self, trace: str = "krc2.csv", part: str = "all", draws: int = 10,
        recorded_rate: float = 1.0, zero_gap_ms: float = 1.0,
    ) -> RumyantsevPlan:  # fmt: skip
        from odonata.studies.rumyantsev.cases import RumyantsevPlan
        from odonata.studies.rumyantsev.simulation import digest_of

        parts = PARTS if part == "all" else (part,)
        return RumyantsevPlan(trace, digest_of(trace), recorded_rate, zero_gap_ms, parts, draws)

    def cases(
        self, asked: RumyantsevPlan, outcomes: Mapping[str, RumyantsevOutcome]
    ) -> Sequence[Run]:
        from odonata.studies.rumyantsev.cases import cases
        from odonata.studies.rumyantsev.simulation import customers_of, trace_of

        first, *_ = found = cases(asked)
        trace_of(first.file, first.data, first.recorded_rate, first.zero_gap_us)  # refused now
        for part in ("weeks", "independent"):
            some = [case for case in found if case.stream == part]
            for case in some[:1]:
                customers_of(case)
        return found
