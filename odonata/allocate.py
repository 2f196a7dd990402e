"""`odonata allocate`: who gets which nodes, without simulating anything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pdes.errors import Refused
from policies.allocation import (
    AllocationPolicy,
    Floor,
    Labels,
    allocate,
    allocation_named,
    rng_for,
)
from policies.scheduling import Waiting, discipline_named, order_of
from topology import Dragonfly

MOST_RANGES = 8
"""Of node labels, in the table."""


@dataclass(frozen=True)
class Placement:
    """Jobs on a machine."""

    machine: Dragonfly
    policy: AllocationPolicy
    jobs: list[Labels]
    """The nodes of each job, in allocation order; jobs in the order in which they were given."""
    busy: npt.NDArray[np.bool_]
    """By node label: busy before the first came."""

    @property
    def free(self) -> int:
        """Nodes that are idle afterwards."""
        taken = int(self.busy.sum()) + sum(map(len, self.jobs))
        return self.machine.n_nodes - taken


def place(
    machine: Dragonfly,
    sizes: Sequence[int],
    policy: str = "level-spread",
    *,
    order: str = "fcfs",
    seed: int = 1,
    busy: Sequence[tuple[int, int]] = (),
) -> Placement:
    """Place jobs of these sizes, which came together, one after another; all of them, or it is
    refused. `busy`: first and last label of ranges of nodes that nobody gets.

    A job's random numbers are its own, so another job's size does not change them.
    """
    chooser, discipline = allocation_named(policy), discipline_named(order)
    for number, nodes in enumerate(sizes, 1):
        if nodes < 1:
            raise Refused(f"job {number} of {nodes} nodes: at least 1")
        if nodes > machine.n_nodes:
            raise Refused(f"job {number} of {nodes} nodes: the machine has {machine.n_nodes}")
    taken = _marked(machine, busy)
    idle = ~taken
    jobs: list[Labels] = [np.empty(0, np.int64)] * len(sizes)
    for position in order_of(discipline, [Waiting(i, n, 0) for i, n in enumerate(sizes)]):
        floor, nodes = Floor(machine, idle), sizes[position]
        if nodes > floor.free:
            raise Refused(f"job {position + 1} of {nodes} nodes: only {floor.free} of "
                          f"{machine.n_nodes} are idle")  # fmt: skip
        jobs[position] = allocate(chooser, floor, nodes, rng_for(seed, position))
        idle[jobs[position]] = False
    return Placement(machine, chooser, jobs, taken)


def _marked(machine: Dragonfly, ranges: Sequence[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    marked = np.zeros(machine.n_nodes, bool)
    for first, last in ranges:
        if last >= machine.n_nodes:
            raise Refused(f"busy node {last}: the machine has 0 … {machine.n_nodes - 1}")
        marked[first : last + 1] = True
    return marked


# -- what a user writes


def parse_sizes(text: str) -> list[int]:
    """'4,8,54'."""
    return [_whole(word, "--jobs 4,8,54") for word in text.split(",")]


def parse_labels(text: str) -> list[tuple[int, int]]:
    """'0-15,40', as first and last of each range."""
    ranges = []
    for word in text.split(",") if text.strip() else []:
        first, dash, last = word.partition("-")
        low = _whole(first, "--busy 0-15,40")
        high = _whole(last, "--busy 0-15,40") if dash else low
        if high < low:
            raise ValueError(f"{word.strip()!r} ends before it begins; as in --busy 0-15,40")
        ranges.append((low, high))
    return ranges


def _whole(word: str, example: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise ValueError(f"{word.strip()!r} is not a whole number; as in {example}") from None


# -- what a user reads


def report(
    machine: Dragonfly,
    jobs: Sequence[int],
    policy: str,
    order: str,
    seed: int,
    busy: Sequence[tuple[int, int]],
    plot: Path | None,
    as_json: bool,
) -> None:
    """What the command does."""
    if plot is not None:
        check_name(plot)
    placed = place(machine, jobs, policy, order=order, seed=seed, busy=busy)
    if plot is not None:
        from odonata.seats import draw

        draw(placed, plot)
    if as_json:
        print(to_json(placed))
    else:
        from rich.console import Console

        Console(highlight=False).print(table(placed))


def check_name(path: Path) -> None:
    """Refuse what cannot be drawn to."""
    from odonata.draw import FORMATS

    if path.suffix.lstrip(".").lower() not in FORMATS:
        raise Refused(f"--plot {path}: the name must end in .{', .'.join(FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise Refused(f"--plot {path}: there is no directory {path.parent}")


def to_json(placed: Placement) -> str:
    """Labels in allocation order."""
    return json.dumps({"jobs": [labels.tolist() for labels in placed.jobs]})


def table(placed: Placement) -> Any:
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    machine = placed.machine
    rows = Table(box=None, pad_edge=False, padding=(0, 2))
    for name in ("job", "nodes", "routers", "groups", "nodes a group"):
        rows.add_column(name, justify="right", no_wrap=True)
    rows.add_column("labels", ratio=1)
    for number, labels in enumerate(placed.jobs, 1):
        groups = np.unique(labels // (machine.routers * machine.nodes), return_counts=True)[1]
        routers = len(np.unique(labels // machine.nodes))
        least, most = int(groups.min()), int(groups.max())
        each = f"{least}" if least == most else f"{least}–{most}"
        rows.add_row(f"{number}", f"{len(labels):,}", f"{routers:,}", f"{len(groups):,}", each,
                     ranges(labels))  # fmt: skip
    busy = f"{int(placed.busy.sum()):,} busy before; " if placed.busy.any() else ""
    about = f"[bold]{escape(placed.policy.name)}[/bold]: {escape(placed.policy.about)}"
    shape = (f"p={machine.nodes}, a={machine.routers}, g={machine.groups}: "
             f"{machine.n_nodes:,} nodes; {busy}{placed.free:,} idle afterwards")  # fmt: skip
    return Group(about, f"[dim]{shape}[/dim]", "", rows)


def ranges(labels: Labels, most: int = MOST_RANGES) -> str:
    """'0–3, 8, 12–15', ascending; of many ranges the first, and how many more there are."""
    ordered = np.sort(labels)
    breaks = np.flatnonzero(np.diff(ordered) != 1) + 1
    runs = [(int(run[0]), int(run[-1])) for run in np.split(ordered, breaks)]
    words = [f"{low}" if low == high else f"{low}–{high}" for low, high in runs]
    if len(words) > most + 1:
        left = sum(high - low + 1 for low, high in runs[most:])
        words = [*words[:most], f"… {left:,} more"]
    return ", ".join(words)
