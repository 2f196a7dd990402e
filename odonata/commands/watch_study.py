"""What `odonata watch` shows of a sweep or a study: how far it is, what is under way, what came
last."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odonata.experiment.progress import bar, show_seconds, time_left
from odonata.study.store import every_path_in
from odonata.study.under_way import EVERY, RUNNING, Told, told_in

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

LAST, MOST_NAMES, MOST_FIGURES, TAIL = 5, 6, 4, 1 << 20
"""How many of the last results are shown, with how many words and figures; in how many bytes they
are found."""
ASIDE = ("key", "point", "crc32", "digest", "seconds")
"""What is in a line of results and is no figure."""
QUIET = 10
"""Times `EVERY`: after that, a study that has told nothing may well be dead."""


def of_study(path: Path) -> tuple[RenderableType, bool]:
    """Returns what is shown of the sweep or the study in a directory, and whether it is over."""
    from rich.console import Group
    from rich.text import Text

    plan = _plan(path)
    last = [*_last(path, plan)]
    told = told_in(path)
    there = sum(one.there for one in told) if told else _counted(path)
    wanted = max(sum(one.wanted for one in told), len(set(plan.get("points", ()))))
    running = [one for one in told if one.state == RUNNING]
    over = bool(told) and not any(one.alive for one in running)
    name = "sweep" if plan else told[0].study if told else _head(path)
    state = _state(running, over, there >= wanted > 0)
    far = (
        f"{bar(there / wanted)}  {there:,} of {wanted:,} points" if wanted else f"{there:,} points"
    )
    rows: list[RenderableType] = [
        Text.assemble((f"{name} in {path}", "bold"), "  ", state),
        Text(far + _pace(told, running)),
    ]
    if failed := sum(one.failed for one in told):
        rows.append(Text(f"{failed:,} failed", "red"))
    under_way = [case for one in running if one.alive for case in one.under_way]
    if under_way:
        rows.append(Text("under way: " + "; ".join(under_way), overflow="ellipsis", no_wrap=True))
    return Group(*rows, *last), over


def _state(running: list[Told], over: bool, whole: bool) -> Text:
    from rich.text import Text

    if whole and not running:
        return Text("complete", "green")
    if running and over:
        return Text("died; the same command goes on", "red")
    if over:
        return Text("stopped; the same command goes on", "yellow")
    if not running:
        return Text("whether it goes on is not known", "yellow")
    age = time.time() - max(one.now for one in running)
    if age > QUIET * EVERY:
        return Text(f"nothing told for {show_seconds(age)}: in a long simulation, or dead", "red")
    return Text("running", "cyan")


def _pace(told: list[Told], running: list[Told]) -> str:
    """Returns how many points are simulated per second, and how long the rest takes."""
    rates = [(one.there - one.kept) / max(one.now - one.began, 1e-9) for one in running or told]
    left = [time_left(one.now - one.began, 0.0, one.done) for one in running]
    pace = f"  {sum(rates):.2g}/s" if any(rates) else ""
    return pace + (f"  {max(left, key=len)}" if any(left) else "")


def _plan(path: Path) -> Mapping[str, Any]:
    from odonata.sweeps.study import PLAN

    try:
        return json.loads((path / PLAN).read_text())  # type: ignore[no-any-return]
    except (OSError, ValueError):
        return {}


def _counted(path: Path) -> int:
    """Returns how many outcomes there are, of a study that tells nothing."""
    return sum(max(0, each.read_bytes().count(b"\n") - 1) for each in every_path_in(path))


def _head(path: Path) -> str:
    with every_path_in(path)[0].open() as file:
        return str(json.loads(file.readline()).get("study", "study"))


def _last(path: Path, plan: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yields a table of the last results: what they are of, as far as that differs, and figures."""
    from rich.table import Table
    from rich.text import Text

    newest = max(every_path_in(path), key=lambda each: each.stat().st_mtime)
    with newest.open("rb") as file:
        file.seek(max(0, newest.stat().st_size - TAIL))
        lines = file.read().split(b"\n")[1:-1][-LAST:]
    every = [json.loads(line) for line in lines]
    if not every:
        return
    of = [_flat(each.get("point", {})) for each in every]
    differ = [name for name in of[-1] if len({str(each.get(name)) for each in of}) > 1]
    names = ([*of[-1]] if plan else differ or [*of[-1]])[:MOST_NAMES]
    found = [_flat({name: value for name, value in each.items() if name not in ASIDE})
             for each in every]  # fmt: skip
    figures = _figures(found, plan)
    shown = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in names:
        shown.add_column(Text(name))
    for name in figures:
        shown.add_column(Text(name.removeprefix("figures.")), justify="right")
    for case, values in zip(of, found, strict=True):
        cells = [str(case.get(name, "")) for name in names]
        cells += [f"{values[name]:,.6g}" if isinstance(values.get(name), int | float) else "-"
                  for name in figures]  # fmt: skip
        shown.add_row(*map(Text, cells))
    yield Text("last results:", "dim")
    yield shown


def _figures(found: list[dict[str, Any]], plan: Mapping[str, Any]) -> list[str]:
    """Returns the names of the figures that are shown: those that a sweep shows, or the first."""
    from odonata.results.register import USUAL

    asked = [*plan.get("wanted", {}).get("figures", ()), *USUAL]
    have = [name for values in found for name, value in values.items()
            if isinstance(value, int | float) and not isinstance(value, bool)]  # fmt: skip
    named = [f"figures.{name}" for name in asked if f"figures.{name}" in have]
    return [*dict.fromkeys(named or have)][:MOST_FIGURES]


def _flat(facts: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Returns the single values of a JSON object by their paths."""
    flat: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{before}{name}.")
        elif not isinstance(value, list):
            flat[before + name] = value
    return flat
