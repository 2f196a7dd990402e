"""Zhang (2021), sections 3.5 and 3.6: which applications suffer from network congestion, and which
counters show it.

Reading order: `options`, `gpcnet`, `simulation`, `cases`, `claims`, `figures`; and `sensitivity`,
of one application. What is heavy is imported when it is needed, so that the study can be listed at
once.
"""

from __future__ import annotations

from odonata.studies.congestion.options import CONGESTORS, MACHINE
from odonata.study.contract import ALL, Option, Packaged

PARTS = ("applications", "gpcnet", "table", "real", "background")
APPLICATIONS = ("graph500", "hacc", "hpcg", "lammps", "milc", "miniamr", "minimd", "qmcpack")


class Congestion(Packaged):
    name = "congestion"
    about = "Which applications does network congestion slow down, and what shows it? (Zhang, 2021)"
    options = (
        Option("part", "applications: eight in four settings (figures 3.17 to 3.19); gpcnet: it "
               "alone (figure 3.20); table: profiles whose time in MPI is divided as in table 3.4; "
               "real: profiles with messages as long as the real ones, and as many requests of "
               "GPCNeT as there are of 32 ranks per node; background: MILC and miniMD in I and III "
               "among other users, with as many requests.", "all", choices=(ALL, *PARTS),
               field="parts"),
        Option("application", "An application profile; all eight unless some are named.", (),
               several=True, metavar="NAME", field="applications"),
        Option("repetitions", "How often each setting is repeated, each time shifted.", 10, int),
        Option("congestor", "The congestor of GPCNeT.", CONGESTORS[0], choices=CONGESTORS),
        Option("tasks", "Tasks per node, of applications and of GPCNeT.", 2, int),
        Option("machine", "The preset of the machine.", MACHINE),
        Option("router", "ideal: routers without a crossbar, and nodes that accept everything, so "
               "that nothing waits behind packets of others.", "aries",
               choices=("aries", "ideal")),
        Option("requests", "In the part real: how many ranks a task of the congestor stands for, "
               "each of which gets 4 KiB at a time.", 16, int),
    )  # fmt: skip
    notes = (
        "I: the application on 64 consecutive nodes. II: on every other node of 128. III: as I, "
        "and GPCNeT on 64 nodes beside it. IV: as II, and GPCNeT on the nodes between. IV against "
        "II: how many times as long a run takes, both on the same nodes; median over the "
        "repetitions, with an interval of 95 % or more, from order statistics (there is none of "
        "fewer than six). r: Pearson's correlation of run time over the four settings, mean over "
        "the repetitions. Impact: how many times as long GPCNeT's canary takes with the congestor "
        "as without."
    )
