"""What the Level-Spread study depends on, where the thesis is silent or the model is ours.

    python scripts/sensitivity.py [-o DIR] [--jobs N] [--repeat 3] [--workloads 200]
    python scripts/sensitivity.py --settings

Every line changes one thing, everywhere, and tells the study's main numbers again, as a table of
Markdown. With `--settings` the table has a column for each of the settings in which the authors
may have run SST, and a line for every number that the thesis prints. Simulations are kept in DIR,
as by `odonata study level-spread --set ...`, which tells more of one. Under mpiexec, one simulation
per rank.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from odonata.studies.levelspread import LevelSpread
from odonata.studies.levelspread.cases import (
    JOKANOVIC,
    LARGE_NODES,
    LARGER,
    LEVEL_SPREAD,
    PATTERNS,
    POLICIES,
    RATIOS,
    SMALL_NODES,
    SPREADING,
    LevelSpreadPlan,
    heterogeneous,
    homogeneous,
    motivation,
    random_workload,
)
from odonata.studies.levelspread.claims import Outcomes, claims, mean, reduction
from odonata.studies.levelspread.simulation import Point
from odonata.study.filling import fill
from pdes import rank

Named = tuple[tuple[str, tuple[tuple[str, object], ...]], ...]
MERLIN = ("router", "merlin")
DRAWN = ("draw", "scripts")
"""Not a field of a point, but of what is asked for."""

LINES: Named = (
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
    ("broadcasts of 8 KiB", (("broadcast_factor", 8),)),
    ("host costs", (("host", "sst"),)),
    ("workloads drawn as in the scripts", (DRAWN,)),
    ("SST's router", (MERLIN,)),
    ("SST's router, crossbar 64 times as fast", (MERLIN, ("crossbar", 64.0))),
    ("SST's router, crossbar twice as fast", (MERLIN, ("crossbar", 2.0))),
    ("SST's router, sees the far end", (MERLIN, ("sight", "far"))),
    ("SST's router, no detours", (MERLIN, ("detours", False))),
    ("SST's router, node links 4 times as fast", (MERLIN, ("terminal", 4.0))),
    ("SST's router, broadcasts of 8 KiB", (MERLIN, ("broadcast_factor", 8))),
    ("the same, packets of 2,048 B", (MERLIN, ("broadcast_factor", 8), ("packet_bytes", 2048))),
    ("SST's router, host costs", (MERLIN, ("host", "sst"))),
    ("SST's router, all costs of hosts", (MERLIN, ("host", "firefly"))),
)

SETTINGS: Named = (
    ("ideal", ()),
    ("SST's router", (MERLIN,)),
    ("and host costs", (MERLIN, ("host", "sst"))),
    ("minimal, host costs, 2,048 B",
     (MERLIN, ("host", "sst"), ("routing", "minimal"), ("packet_bytes", 2048))),
    ("all that we read",
     (MERLIN, ("host", "firefly"), ("routing", "minimal"), ("packet_bytes", 2048),
      ("broadcast_factor", 8), DRAWN)),
)  # fmt: skip
"""Ways in which the authors may have run SST, each a column."""


def asking(given: argparse.Namespace, changes: tuple[tuple[str, object], ...]) -> LevelSpreadPlan:
    """Returns what a line or a column asks for."""
    draw = "scripts" if DRAWN in changes else "pairs"
    points = tuple(change for change in changes if change != DRAWN)
    return LevelSpread().ask(workloads=given.workloads, repeat=given.repeat, draw=draw,
                             changes=points)  # fmt: skip


class Sensitivity(LevelSpread):
    """Returns the study, reduced to the simulations that its main numbers need."""

    def _of(self, module: str, name: str) -> Any:
        """Returns a part of the study's package: this script is none."""
        return LevelSpread()._of(module, name)

    def cases(self, asked: LevelSpreadPlan, outcomes: Outcomes) -> list[Point]:
        alike = [
            point
            for nodes, ratios in ((SMALL_NODES, RATIOS), (LARGE_NODES, (1.0,)))
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


class Printed(Sensitivity):
    """Returns the study, reduced to the simulations that the thesis prints a number of."""

    def cases(self, asked: LevelSpreadPlan, outcomes: Outcomes) -> list[Point]:
        more: list[Point] = []
        for pattern in PATTERNS:
            for policy in ("rdn", "rdg"):
                more += motivation(asked, True, pattern, policy)
            for policy in (LEVEL_SPREAD, *SPREADING):
                more += heterogeneous(asked, pattern, policy, machine=LARGER[-1])
            for which in range(asked.single):
                more += [random_workload(asked, which, policy, pattern=pattern)
                         for policy in POLICIES]  # fmt: skip
        more += [random_workload(asked, which, JOKANOVIC) for which in range(asked.workloads)]
        return super().cases(asked, outcomes) + more


def saved_over_simple(asked: LevelSpreadPlan, outcomes: Outcomes) -> list[float]:
    """Returns what 64-node jobs save at a ratio of 1, by pattern."""
    return [
        reduction(*(mean(outcomes, homogeneous(asked, LARGE_NODES, pattern, 1.0, policy))
                    for policy in (LEVEL_SPREAD, "simple")))
        for pattern in PATTERNS
    ]  # fmt: skip


def line(name: str, asked: LevelSpreadPlan, outcomes: Outcomes) -> str:
    found = {claim.name: claim.values for claim in claims(asked, outcomes)}

    def part(which: str, key: str) -> str:
        return f"{100 * next(v for n, v in found.items() if which in n)[key]:.0f}"

    large = saved_over_simple(asked, outcomes)
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


def column(asked: LevelSpreadPlan, outcomes: Outcomes) -> dict[tuple[str, str], str]:
    """Returns, by name and number of the thesis, every number that it prints: ours, and whether it
    is in its band. Those of 64-node jobs also by pattern."""
    cells = {}
    for claim in claims(asked, outcomes):
        if not claim.paper:
            continue
        cells[claim.name, claim.paper] = f"{claim.ours} {'✓' if claim.holds else '✗'}"
        if claim.name.startswith("3.4b"):
            for pattern, saved in zip(PATTERNS, saved_over_simple(asked, outcomes), strict=True):
                cells[f"3.4b   {pattern}", ""] = f"{100 * saved:.0f} %"
    return cells


def settings(given: argparse.Namespace) -> None:
    """Print the table of settings."""
    columns = []
    for _, changes in SETTINGS:
        asked = asking(given, changes)
        ran, kept = fill(Printed(), asked, given.out, given.jobs)
        if ran.stopped:
            return
        columns.append(column(asked, kept.outcomes) if rank() == 0 else {})
    if rank() == 0:
        print(f"| | thesis | {' | '.join(name for name, _ in SETTINGS)} |")
        print("|---|---|" + "---|" * len(columns))
        for name, thesis in columns[0]:
            cells = " | ".join(of[name, thesis] for of in columns)
            print(f"| {name} | {thesis} | {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="What the Level-Spread study depends on.")
    parser.add_argument("-o", "--out", type=Path, default=Path("out/sensitivity"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--workloads", type=int, default=200)
    parser.add_argument("--settings", action="store_true", help="every printed number, by setting")
    given = parser.parse_args()
    if given.settings:
        return settings(given)
    if rank() == 0:
        print("| | 16 nodes, compact over spreading | 64 nodes, over Simple: "
              f"{', '.join(PATTERNS)} | better | worse | mean | best |", flush=True)  # fmt: skip
        print("|---|---|---|---|---|---|---|", flush=True)
    for name, changes in LINES:
        asked = asking(given, changes)
        ran, kept = fill(Sensitivity(), asked, given.out, given.jobs)
        if ran.stopped:
            return
        if rank() == 0:
            print(line(name, asked, kept.outcomes), flush=True)


if __name__ == "__main__":
    main()
