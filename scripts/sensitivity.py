"""What the Level-Spread study depends on, where the thesis is silent or the model is ours.

    python scripts/sensitivity.py [-o DIR] [--jobs N] [--repeat 3] [--workloads 200]

Every line changes one thing, everywhere, and tells the study's main numbers again, as a table of
Markdown. Simulations are kept in DIR, as by `odonata study level-spread --set ...`, which tells
more of a line. Under mpiexec, one simulation per rank.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from odonata.studies.levelspread import LevelSpread
from odonata.studies.levelspread.cases import (
    LEVEL_SPREAD,
    PATTERNS,
    POLICIES,
    RATIOS,
    Asked,
    homogeneous,
    random_workload,
)
from odonata.studies.levelspread.claims import claims, mean, reduction
from odonata.studies.levelspread.simulation import Outcome, Point
from odonata.study.sweep import fill
from pdes import rank

LINES: tuple[tuple[str, tuple[tuple[str, object], ...]], ...] = (
    ("as it is", ()),
    ("exchanges posted at once", (("exchange", "posted"),)),
    ("broadcast by the root alone", (("broadcast", "broadcast"),)),
    ("ten iterations", (("iterations", 10),)),
    ("linear task mapping", (("mapping", "linear"),)),
    ("packets of 512 B", (("packet_bytes", 512),)),
    ("packets of 256 B", (("packet_bytes", 256),)),
    ("buffers of 4 KiB", (("buffer_bytes", 4096),)),
    ("buffers of 28 KiB", (("buffer_bytes", 28672),)),
    ("buffers of 56 KiB", (("buffer_bytes", 57344),)),
    ("adaptive threshold 1", (("threshold", 1.0),)),
    ("adaptive threshold 4", (("threshold", 4.0),)),
    ("28 KiB and threshold 4", (("buffer_bytes", 28672), ("threshold", 4.0))),
    ("minimal routing", (("routing", "minimal"),)),
    ("ugal-l routing", (("routing", "ugal-l"),)),
    ("node links 4 times as fast", (("terminal", 4.0),)),
    ("routers of 20 ns", (("delay_ps", 20_000),)),
)


class Sensitivity(LevelSpread):
    """Returns the study, reduced to the simulations that its main numbers need."""

    def cases(self, asked: Asked, outcomes: Mapping[str, Outcome]) -> list[Point]:
        alike = [
            point
            for nodes, ratios in ((16, RATIOS), (64, (1.0,)))
            for ratio in ratios
            for pattern in PATTERNS
            for policy in POLICIES
            for point in homogeneous(asked, nodes, pattern, ratio, policy)
        ]
        return alike + [
            random_workload(asked, which, policy)
            for which in range(asked.workloads)
            for policy in POLICIES
        ]


def line(name: str, asked: Asked, outcomes: Mapping[str, Outcome]) -> str:
    found = {claim.name: claim.values for claim in claims(asked, outcomes)}

    def part(which: str, key: str) -> str:
        return f"{100 * next(v for n, v in found.items() if which in n)[key]:.0f}"

    large = [
        reduction(*(mean(outcomes, homogeneous(asked, 64, pattern, 1.0, policy))
                    for policy in (LEVEL_SPREAD, "simple")))
        for pattern in PATTERNS
    ]  # fmt: skip
    cells = [
        name,
        f"{part('compact over spreading', 'least')} .. {part('compact over spreading', 'most')}",
        " ".join(f"{100 * saved:.0f}" for saved in large),
        part("random: better", "better"),
        part("random: worse", "worse"),
        part("random: mean", "mean"),
        part("random: best", "best"),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="What the Level-Spread study depends on.")
    parser.add_argument("-o", "--out", type=Path, default=Path("out/sensitivity"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--workloads", type=int, default=200)
    given = parser.parse_args()
    if rank() == 0:
        print("| | 16 nodes, compact over spreading | 64 nodes, over Simple: "
              f"{', '.join(PATTERNS)} | better | worse | mean | best |", flush=True)  # fmt: skip
        print("|---|---|---|---|---|---|---|", flush=True)
    for name, changes in LINES:
        asked = Asked(given.workloads, given.repeat, changes=changes)
        ran, kept = fill(Sensitivity(), asked, given.out, given.jobs)
        if ran.stopped:
            return
        if rank() == 0:
            print(line(name, asked, kept.outcomes), flush=True)


if __name__ == "__main__":
    main()
