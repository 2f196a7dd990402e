"""Places jobs for `odonata allocate`, and shows the nodes that they get."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from odonata.commands.output import print_json, print_table
from odonata.jobs.placement import Placement, place, ranges
from pdes.errors import Refused, require
from policies.allocation import ALLOCATIONS
from policies.views import Counters, Labels
from topology import Dragonfly

COLUMNS = {"node": ("sent", "received"), "router": ("stall", "wait")}
"""What a file of counters may tell of each node, or of each router."""
MOST = 10**15
"""The largest number in such a file: so large that sums cannot overflow."""


def report(
    machine: Dragonfly,
    jobs: Sequence[int],
    policy: str,
    parameters: Sequence[str],
    order: str,
    seed: int,
    busy: Sequence[tuple[int, int]],
    told: Sequence[Path],
    sensitive: bool | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Place the jobs, and print and draw the placement."""
    if plot is not None:
        from odonata.figures.style import check_name

        check_name(plot)
    given = _read(policy, parameters) if parameters else {}
    counters = read_counters(told, machine) if told else None
    placed = place(machine, jobs, policy, order=order, seed=seed, busy=busy, parameters=given,
                   counters=counters, sensitive=sensitive)  # fmt: skip
    reads = ALLOCATIONS.make(policy, given).reads
    require(reads > 0 or not told, f"--counters {' '.join(map(str, told))}: {policy} reads none")
    if plot is not None:
        from odonata.figures.placement import draw

        draw(placed, plot)
    if as_json:
        print_json({"jobs": [labels.tolist() for labels in placed.jobs]})
    else:
        print_table(placement_table(placed), highlight=False)
        if reads and not told:
            print_table(f"Without --counters, all routers are equal to {policy}.", highlight=False)


def _read(policy: str, parameters: Sequence[str]) -> dict[str, Any]:
    from odonata.experiment.policies import shell_parameters

    return shell_parameters("allocation", policy, parameters)


def read_counters(files: Sequence[Path], machine: Dragonfly) -> Counters:
    """Read what the network reported of a second. Nodes and routers that are not named have 0."""
    found: dict[str, Any] = {}
    for path in files:
        for name, values in _read_file(path, machine).items():
            if name in found:
                raise Refused(f"--counters {path}: {name} is in another file as well")
            found[name] = values
    return Counters.of_interval(machine, **found)


def _read_file(path: Path, machine: Dragonfly) -> dict[str, Labels]:
    try:
        rows = [row for row in csv.reader(path.read_text("utf-8-sig").splitlines()) if row]
    except UnicodeError as error:
        raise Refused(f"--counters {path}: it is not a text file in UTF-8") from error
    except (OSError, csv.Error) as error:
        raise Refused(f"--counters {path}: {getattr(error, 'strerror', None) or error}") from error
    first, *names = [word.strip() for word in rows[0]] if rows else [""]
    known = COLUMNS.get(first, ())
    if not names or len({*names}) < len(names) or not {*names} <= {*known}:
        expected = " or ".join(",".join((whose, *of)) for whose, of in COLUMNS.items())
        raise Refused(f"--counters {path}: its first line is {expected}, or a part of it")
    count = machine.n_nodes if first == "node" else machine.n_routers
    found, seen = np.zeros((len(names), count), np.int64), set()
    for number, row in enumerate(rows[1:], 2):
        where = f"--counters {path}, row {number}"
        if len(row) != 1 + len(names) or not all(word.strip().isdecimal() for word in row):
            raise Refused(f"{where}: {','.join(row)}: {1 + len(names)} whole numbers, at least 0")
        label, *values = map(int, row)
        if label >= count:
            raise Refused(f"{where}: {first} {label}: the machine has 0 … {count - 1}")
        if label in seen:
            raise Refused(f"{where}: {first} {label} was there before")
        if max(values) > MOST:
            raise Refused(f"{where}: {max(values)}: at most {MOST}")
        seen.add(label)
        found[:, label] = values
    return dict(zip(names, found, strict=True))


def placement_table(placed: Placement) -> Any:
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
