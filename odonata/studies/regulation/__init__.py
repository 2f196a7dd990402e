"""Zhang (2021), sections 2.5.2 and 2.5.3: what a machine saves that regulates its power by QoSG.

Reading order: `simulation`, `cases`, `found`, `claims`, `figures`. What is heavy is imported when
it is needed, so that the study can be listed at once.
"""

from __future__ import annotations

from odonata.study.contract import ALL, Option, Packaged

PARTS = ("default", "policies", "load", "size", "level", "mix", "types", "signals", "standby",
         "rates", "refitted", "warm")  # fmt: skip


class Regulation(Packaged):
    name = "regulation"
    about = "What does a machine save that regulates its power, and who waits? (Zhang, 2021)"
    options = (
        Option("part", "The default setting (default), rival policies, other utilisations (load), "
               "sizes, levels of service, mixes, single types, signals, no standby jobs (standby), "
               "stricter conditions (rates), those fitted anew (refitted), or an hour that begins "
               "with jobs (warm).", "all",
               choices=(ALL, *PARTS), field="parts"),
        Option("hours", "Hours of each case: seeds of jobs and signal, the same in all cases.", 10,
               int),
        Option("deviation", "Standard deviation of the signal.", 0.40, float),
        Option("slow_memory", "Time constant of the first of the signal's two filters, in s.", 90,
               int, field="slow_s"),
        Option("fast_memory", "That of the second one.", 20, int, field="fast_s"),
    )  # fmt: skip
    notes = (
        "After ± is half of a confidence interval of 95 % over the hours. A printed number holds "
        "where the interval comes within a tenth of it; an inequality where the whole interval (of "
        "differences between hours with the same seed) says so. In sign only: no more "
        "than the direction is right. Late: jobs at their threshold or beyond it, of the type "
        "with most. Marked c: our conditions or thresholds come from that number, or it follows "
        "from such a bid but for the error, so that it is no evidence. Work left: when the hour is "
        "over, as a part of an hour's."
    )
