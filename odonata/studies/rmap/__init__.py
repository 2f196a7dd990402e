"""The study of T. Patki: The case for hardware overprovisioned supercomputers (thesis, 2015), of
its chapters 3 to 5, on models of its applications and on traces as it describes them.

Reading order: `measures`, `readings`, `simulation`, `prediction`, `cases`, `printed`, `claims`,
`figures`. What
is heavy is imported when it is needed, so that the study can be listed at once.
"""

from __future__ import annotations

from odonata.study.contract import ALL, Option, Packaged

PARTS = ("traces", "choices", "naive", "options", "prediction", "printed")
KINDS = ("small", "large", "random")
BOUNDS_W = (6500.0, 8000.0, 10000.0, 12000.0, 14000.0, 14720.0)
TRACES, GAP_S = 100, 100.0


def _bounds(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise ValueError("watts, with commas between them, as 6500,14000") from None


class Rmap(Packaged):
    name = "rmap"
    about = (
        "Who gains when jobs share power fairly and run in the configuration that makes the most "
        "of it? (Patki, 2015)"
    )
    options = (
        Option("part", "traces: three policies under every bound; choices: what the thesis leaves "
               "open, changed one at a time; naive: what could make naive so slow; options: "
               "priorities, a partition for small jobs, nodes that differ; prediction: errors of "
               "the model; printed: what chapters 3 and 4 print, without simulation.", "all",
               choices=(ALL, *PARTS), field="parts"),
        Option("traces", "Traces of 30 jobs of each kind.", TRACES, int),
        Option("kind", "Small, large or random jobs.", "all", choices=(ALL, *KINDS),
               field="kinds"),
        Option("bounds", "Power bounds, in W.", ",".join(f"{it:g}" for it in BOUNDS_W), _bounds,
               metavar="W,W,...", field="bounds_w"),
        Option("gap", "The mean time between submissions, in s.", GAP_S, float,
               field="gap_s"),
        Option("requests", "The times that users request: somewhat more than their job takes on "
               "the nodes that they ask for (packed), or what it takes there in any configuration "
               "(recorded).", "packed", choices=("packed", "recorded")),
        Option("seed", "Of the first trace; those after it have the next ones.", 1, int),
    )  # fmt: skip
    notes = (
        "Turnaround: from submission to end, the mean of a trace's jobs. A change is that of a "
        "trace, relative to the policy after 'against': the mean of all traces with its confidence "
        "interval, by which is judged, and in brackets 5 to 95 % of them. Traditional and naive "
        "know what was measured, adaptive what the model predicts, unless it says oracle. All "
        "bounds: the mean over 6,500 .. 14,000 W, as the thesis has it."
    )
