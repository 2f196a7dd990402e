"""`odonata sweep --optimise`: the best values of some keys, instead of all combinations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from odonata.commands.output import print_json, print_table
from odonata.results.register import figure as figure_of
from odonata.study.filling import fill
from odonata.sweeps.optimising import TRIALS, Search, SearchPlan, asked_of
from odonata.sweeps.outcomes import plus_minus
from pdes.errors import Fault
from pdes.replacing import write_whole
from pdes.transport import together, world

MOST_TRIALS = 10
"""How many of the best trials are shown."""


class Wish(NamedTuple):
    """What is looked for: the least or the greatest value of a figure, in so many trials of so many
    seeds, as many as the file says if None."""

    figure: str
    direction: str
    trials: int
    seeds: int | None


def optimise(
    file: Path, changes: Sequence[str], plugins: Sequence[Path], wish: Wish, out: Path, jobs: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Look for the best values, and show the best trials on one rank."""
    asked: SearchPlan = together(world(), lambda: asked_of(
        file, changes, plugins, wish.seeds, wish.figure, wish.direction, wish.trials
    ))  # fmt: skip
    study = Search(asked)
    ran, kept = fill(study, asked, out, jobs)
    if world().rank > 0:
        return
    ranked = study.ranked(kept.outcomes)
    if not ranked:
        raise Fault(f"none of {len(study.done):,} trials has a {asked.figure}")
    write_whole(out / TRIALS, study.to_csv(kept.outcomes))
    best = ranked[:MOST_TRIALS]
    if as_json:
        print_json({
            "out": str(out), "figure": asked.figure, "direction": asked.direction,
            "trials": asked.trials, **asdict(ran),
            "best": [{"trial": number, "values": dict(trial.values),
                      **{name: None if value != value else value
                         for name, value in mean._asdict().items()},
                      "steady_state": study.verdict(trial, kept.outcomes)}
                     for number, trial, mean in best],
        })  # fmt: skip
    else:
        starred = [study.misleads(trial, kept.outcomes) for _, trial, _ in best]
        print_table(_table(asked, best, starred), least=100, highlight=False, markup=False)
        cut = f" (it was stopped by {ran.stopped}: {asked.trials:,} were asked for)"
        print(f"the best {len(best)} of {len(ranked):,} trials{cut * bool(ran.stopped)}; all are "
              f"in {out / TRIALS}\n{ran}")  # fmt: skip
        if any(starred):
            print("* not of a steady state (trials.csv says which): no mean to choose by")
    if ran.failures:
        raise Fault(f"{len(ran.failures):,} simulations have failed; the ranking is of the others")


def _table(asked: SearchPlan, best: Sequence[Any], starred: Sequence[bool]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    keys, how = [space.key for space in asked.spaces], figure_of(asked.figure)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head in ("trial", *keys, how.title, "of"):
        table.add_column(Text(head), justify="left" if head in keys else "right", no_wrap=True)
    for (number, trial, mean), star in zip(best, starred, strict=True):
        words = [trial.values[space.key] if space.values else _short(trial.values[space.key])
                 for space in asked.spaces]  # fmt: skip
        text = plus_minus(mean.mean * how.scale, mean.half * how.scale) + " *" * star
        table.add_row(f"{number}", *map(Text, words), text, f"{mean.of}")
    return table


def _short(value: str) -> str:
    """Returns a number to six digits; any other word as it is."""
    try:
        return f"{float(value):.6g}"
    except ValueError:
        return value
