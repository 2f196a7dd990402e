"""What the Level-Spread study depends on, where the thesis is silent or the model is ours.

    python scripts/sensitivity.py [-o DIR] [--jobs N] [--repeat 3] [--workloads 200]
    python scripts/sensitivity.py --settings

Every line changes one thing, everywhere, and tells the study's main numbers again, as a table of
Markdown. With `--settings` the whole study is run in each of the settings in which the authors may
have run SST, each in a directory of its own below DIR; the table has a line for everything that the
thesis says, with our value and whether it holds, and lines that count. `--report` simulates
nothing. With `--messages` it tells what 64-node jobs
gain with messages of several sizes, with either router and routing. Simulations are kept, as by
`odonata study level-spread --set ...`, which tells more of one. Under mpiexec, one simulation per
rank.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from odonata.results.statistics import interval
from odonata.studies.levelspread import LevelSpread
from odonata.studies.levelspread.cases import (
    LARGE_NODES,
    LEVEL_SPREAD,
    PATTERNS,
    POLICIES,
    RATIOS,
    SMALL_NODES,
    LevelSpreadPlan,
    homogeneous,
    random_workload,
)
from odonata.studies.levelspread.measures import Measured, mean, reduction, saved, times
from odonata.studies.levelspread.simulation import SMALL, LevelSpreadOutcome, Point
from odonata.study import store
from odonata.study.contract import Claim, Verdict
from odonata.study.filling import fill
from odonata.study.report import MARKS
from odonata.study.verdicts import percent
from pdes import rank

Outcomes = Mapping[str, LevelSpreadOutcome]
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

MINIMAL = (MERLIN, ("routing", "minimal"))
SETTINGS: Named = (
    ("ideal", ()),
    ("adaptive", (MERLIN,)),
    ("minimal", MINIMAL),
    ("hosts", (*MINIMAL, ("host", "sst"))),
    ("scripts", (*MINIMAL, ("host", "firefly"), ("packet_bytes", 2048), ("broadcast_factor", 8),
                 DRAWN)),
)  # fmt: skip
"""Ways in which the authors may have run SST, each a column and a directory: all but the first with
SST's router; the last three with minimal routing, of which the last is all that we read."""
ROUTINGS: Named = (
    SETTINGS[0],
    ("ideal-minimal", (("routing", "minimal"),)),
    *SETTINGS[1:3],
)
"""Either router with either routing."""
KILOBYTES = (1, 10, 100)


def asking(given: argparse.Namespace, changes: tuple[tuple[str, object], ...]) -> LevelSpreadPlan:
    """Returns what a line or a column asks for."""
    draw = "scripts" if DRAWN in changes else "pairs"
    points = tuple(change for change in changes if change != DRAWN)
    return LevelSpread().ask(workloads=given.workloads, repeat=given.repeat, draw=draw,
                             changes=points)  # fmt: skip


class Sensitivity(LevelSpread):
    """Returns the study, reduced to the simulations that its main numbers need."""

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


def saved_over_simple(asked: LevelSpreadPlan, outcomes: Outcomes) -> list[float]:
    """Returns what 64-node jobs save at a ratio of 1, by pattern."""
    return [
        reduction(*(mean(Measured(asked, outcomes),
                         homogeneous(asked, LARGE_NODES, pattern, 1.0, policy))
                    for policy in (LEVEL_SPREAD, "simple")))
        for pattern in PATTERNS
    ]  # fmt: skip


def line(name: str, asked: LevelSpreadPlan, outcomes: Outcomes) -> str:
    found = {claim.name: claim.values["mean"] for claim in LevelSpread().claims(asked, outcomes)
             if "mean" in claim.values}  # fmt: skip

    def part(which: str) -> str:
        return f"{100 * next(value for name, value in found.items() if which in name):.0f}"

    large = saved_over_simple(asked, outcomes)
    cells = [
        name,
        f"{part('compact over spreading, least')} .. {part('compact over spreading, most')}",
        " ".join(f"{100 * part:.0f}" for part in large),
        part("random: better"),
        part("random: worse"),
        part("random: mean"),
        part("random: best"),
    ]
    return f"| {' | '.join(cells)} |"


def is_number(claim: Claim) -> bool:
    """Tells whether the thesis prints a number, and not a sentence."""
    return any(letter.isdigit() for letter in claim.paper)


def counted(found: list[Claim], numbers: bool) -> str:
    """Returns how many of the numbers, or sentences, hold, and how many in sign only."""
    said = [claim.verdict for claim in found if is_number(claim) == numbers]
    return f"{said.count(Verdict.HOLDS)} + {said.count(Verdict.SIGN)} of {len(said)}"


def settings(given: argparse.Namespace) -> None:
    """Print the table of settings. What a column lacks is left out of all counts, and so is what a
    column was made with in view."""
    names: list[str] = []
    columns: list[dict[str, Claim]] = []
    for name, changes in SETTINGS:
        asked, where = asking(given, changes), given.out / name
        if given.report and not store.path_in(where).exists():
            continue
        names.append(name)
        if not given.report:
            ran, _ = fill(LevelSpread(), asked, where, given.jobs)
            if ran.stopped:
                return
        if rank() == 0:
            found = LevelSpread().claims(asked, store.read(where, LevelSpread()).outcomes)
            columns.append({claim.name: claim for claim in found if claim.paper})
    if rank() == 0:
        print(f"| | thesis | {' | '.join(names)} |")
        print("|---|---|" + "---|" * len(columns))
        for name, claim in columns[0].items():
            cells = (f"{of[name].ours} {MARKS[of[name].verdict]}" if name in of else ""
                     for of in columns)  # fmt: skip
            print(f"| {name} | {claim.paper} | {' | '.join(cells)} |")
        shared = [name for name, claim in columns[0].items()
                  if all(name in of for of in columns) and not claim.calibrated]  # fmt: skip
        for numbers, what in ((True, "numbers"), (False, "sentences")):
            cells = (counted([of[name] for name in shared], numbers) for of in columns)
            print(f"| {what} that hold + in sign only | | {' | '.join(cells)} |")


class Sizes(Sensitivity):
    """Returns the study, reduced to 64-node jobs with messages of several sizes."""

    def cases(self, asked: LevelSpreadPlan, outcomes: Outcomes) -> list[Point]:
        return [point for cells in sizes(asked).values() for cell in cells for point in cell]


def sizes(asked: LevelSpreadPlan) -> dict[tuple[str, int], tuple[tuple[Point, ...], ...]]:
    """Returns, by pattern and kilobytes, the cells of Level-Spread and of Simple."""
    return {
        (pattern, kilobytes): tuple(
            homogeneous(asked, LARGE_NODES, pattern, 1.0, policy, kilobytes=kilobytes)
            for policy in (LEVEL_SPREAD, "simple")
        )
        for pattern in PATTERNS for kilobytes in KILOBYTES
    }  # fmt: skip


def messages(given: argparse.Namespace) -> None:
    """Print what 64-node jobs save over Simple, by size of messages, router and routing."""
    if rank() == 0:
        print("| | KB | " + " | ".join(PATTERNS) + " |")
        print("|---|---|" + "---|" * len(PATTERNS), flush=True)
    for name, changes in ROUTINGS:
        asked, where = asking(given, changes), given.out / name
        if not given.report and fill(Sizes(), asked, where, given.jobs)[0].stopped:
            return
        if rank() > 0:
            continue
        outcomes = store.read(where, LevelSpread()).outcomes
        for kilobytes in KILOBYTES:
            cells = (
                percent(interval(saved(*(times(Measured(asked, outcomes), cell, SMALL)
                                         for cell in sizes(asked)[pattern, kilobytes]))), 0)
                for pattern in PATTERNS
            )  # fmt: skip
            print(f"| {name} | {kilobytes} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="What the Level-Spread study depends on.")
    parser.add_argument("-o", "--out", type=Path, default=Path("out/sensitivity"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--workloads", type=int, default=200)
    parser.add_argument("--settings", action="store_true", help="all that is printed, by setting")
    parser.add_argument("--messages", action="store_true", help="of 1, 10 and 100 KB, by routing")
    parser.add_argument("--report", action="store_true", help="of what there is (--settings)")
    given = parser.parse_args()
    if given.messages:
        return messages(given)
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
