"""The study of S. Wallace et al.: A data driven scheduling approach for power management on HPC
systems (SC 2016), on a synthetic year of Mira.

Reading order: `simulation`, `cases`, `found`, `jobs`, `claims`, `figures_of_jobs`, `figures`. What
is heavy is imported when it is needed, so that the study can be listed at once.
"""

from __future__ import annotations

from odonata.study.contract import ALL, Option, Packaged

PARTS, RUNS = ("caps", "year", "causes"), ("months", "year")


class Wallace(Packaged):
    name = "wallace"
    about = (
        "Does a learner of power profiles keep Mira below a cap, and what do jobs wait for it? "
        "(Wallace et al., 2016)"
    )
    options = (
        Option("part", "caps: waits and utilisation under three caps; year: capping success and "
               "learning rate; causes: the same with one thing changed at a time.", "all",
               choices=(ALL, *PARTS), field="parts"),
        Option("runs", "Twelve runs of a month each, which begin with an empty machine, or one run "
               "of the year, whose queue grows from month to month.", "months", choices=RUNS),
        Option("seed", "Of the first year of jobs.", 1, int),
        Option("years", "How many years of jobs there are, each of a seed of its own; causes are "
               "measured in the first.", 5, int),
        Option("load", "The offered load.", 0.83, float),
        Option("days", "The length of the year.", 365, int),
        Option("months", "How many equal parts it has.", 12, int),
    )  # fmt: skip
    notes = (
        "learner: the paper's policy. Wait and utilisation relative to a run without a cap, in "
        "strict order; a gain is the difference of naive and learner, both so. A mean over months "
        "is one value a year: ± is the interval of 95 % over years, which are independent. In "
        "brackets the least and the most of all months."
    )
