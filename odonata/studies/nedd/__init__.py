"""Zhang (2021), sections 3.7 and 3.8: an allocation that reads the network's counters, and its
rivals; and beyond the thesis, a mixed queue, and counters that are old.

Reading order: `floor`, `simulation`, `cases`, `claims`, `figures`. What is heavy is imported when
it is needed, so that the study can be listed at once.
"""

from __future__ import annotations

from odonata.study.contract import ALL, Option, Packaged

PARTS = ("application", "sets", "causes", "queue", "age")
APPLICATIONS = ("minimd", "lammps", "milc", "miniamr", "qmcpack", "hpcg")
"""Those of figure 3.24."""


class NeDD(Packaged):
    name = "nedd"
    about = "Does a scheduler that reads the network place jobs better? (Zhang, 2021)"
    options = (
        Option("part", "application: one beside GPCNeT under each allocation (figure 3.24); sets: "
               "the same with idle nodes in fewer or more pieces; causes: the same with other ways "
               "to congest, ten runs at most; queue: sensitive and insensitive jobs among "
               "congestors; age: the same with old counters.", "all",
               choices=(ALL, *PARTS), field="parts"),
        Option("application", "An application profile of the first part; all six unless some are "
               "named.", (), several=True, metavar="NAME", field="applications"),
        Option("repetitions", "Runs of each case, with other nodes and other jobs.", 20, int),
        Option("sets", "Contiguous sets that the 200 idle nodes are in.", 50, int),
        Option("tasks", "Tasks per node of the application, of GPCNeT and of other users' jobs.",
               2, int),
        Option("ranks", "Ranks per node of GPCNeT, each with a request of its own; none: as many "
               "as tasks.", None, int),
        Option("hot", "Nodes from which GPCNeT gets, each from a part of its nodes.", 1, int),
    )  # fmt: skip
    notes = (
        "Run times are means over the repetitions, of which each has its own idle nodes, other "
        "users' jobs and congestor nodes, the same for every allocation. No congestor: by "
        "fewer-router, while GPCNeT does not run. After ± is half of a confidence interval of 95 % "
        "over repetitions: of a ratio of two means; of queues, sets and ages of the mean of "
        "differences between two runs that have all but the allocation in common."
    )
