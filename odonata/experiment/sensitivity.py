"""Which applications network congestion slows down: a rule, and a table of what is known.

The table is a TOML file with a table for each application, under the name of its profile:

    [milc]
    sensitive = true
    how = "rule"
    why = "allreduce + bcast 19.1% > 5%; p2p + wait 43.2% > 10%"
    nodes = 64
    machine = "aries-group"
    operations = { allreduce = 0.191, wait = 0.432 }

Only `sensitive` is needed. `odonata profile` writes such a file, and `scheduler.sensitivity` names
it. Applications that it does not have are unknown to it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from odonata.agents.workload import is_pairwise
from odonata.experiment.keys import keys_of, quoted
from odonata.experiment.profiles import OPERATIONS, fields_of, operations_of
from odonata.experiment.values import plain, show, syntax
from odonata.jobs.request import Stage
from pdes.errors import Refused
from pdes.replacing import write_whole
from topology.settings import setting

PATTERNS = {"allreduce": "allreduce", "broadcast": "bcast", "tree-broadcast": "bcast"}
"""The patterns that are collective operations."""
COLLECTIVES, BLOCKING = ("allreduce", "bcast"), ("p2p", "wait")
"""The two groups of operations of the rule."""


# -- the rule


@dataclass(frozen=True)
class Limits:
    """Above what an application is sensitive: the parts of its time in collective operations and in
    exchanges that it waits for, 0 .. 1; or how many times as long it takes beside a congestor."""

    collectives: float = 0.05
    blocking: float = 0.10
    slower: float = 1.1


USUAL = Limits()


def operation_of(stage: Stage) -> str:
    """Returns the kind of MPI operation that a stage is: the one it is named after, or else what
    its tasks wait for.

    >>> operation_of(Stage("halo3d")), operation_of(Stage("halo3d", exchange="pairwise"))
    ('wait', 'p2p')
    >>> operation_of(Stage("uniform", wait="nothing")), operation_of(Stage("tree-broadcast"))
    ('test', 'bcast')
    >>> operation_of(Stage("allreduce", name="barrier"))
    'barrier'
    """
    if stage.name in OPERATIONS:
        return stage.name
    if stage.pattern in PATTERNS:
        return PATTERNS[stage.pattern]
    if stage.waits == "nothing":
        return "test"
    return "p2p" if is_pairwise(stage) or stage.waits == "departures" else "wait"


def reasons(operations: Mapping[str, float], limits: Limits = USUAL) -> tuple[str, ...]:
    """Returns why an application is sensitive to congestion, by the parts of its time in each kind
    of operation; nothing where it is not. Time in MPI_Test and in barriers does not count. Of the
    eight applications of Zhang's thesis, this is right about all (table 3.4, section 3.6.2):

    >>> from odonata.experiment.profiles import profile
    >>> for name in "graph500 hacc hpcg lammps milc miniamr minimd qmcpack".split():
    ...     why = reasons(dict(profile(name).measured.operations))
    ...     print(f"{name:8}", bool(why) == profile(name).sensitive, *why)
    graph500 True
    hacc     True p2p + wait 66.4% > 10%
    hpcg     True
    lammps   True allreduce + bcast 25.4% > 5% p2p + wait 20.8% > 10%
    milc     True p2p + wait 59.1% > 10%
    miniamr  True allreduce + bcast 9.2% > 5% p2p + wait 14.7% > 10%
    minimd   True p2p + wait 82.5% > 10%
    qmcpack  True allreduce + bcast 5.4% > 5%
    """
    parts = ((COLLECTIVES, limits.collectives), (BLOCKING, limits.blocking))
    sums = [(kinds, sum(operations.get(kind, 0.0) for kind in kinds), most)
            for kinds, most in parts]  # fmt: skip
    return tuple(f"{' + '.join(kinds)} {part:.1%} > {100 * most:g}%"
                 for kinds, part, most in sums if part > most)  # fmt: skip


# -- the table


@dataclass(frozen=True)
class Known:
    """What a table has of an application."""

    sensitive: bool = setting(False, "flag", "Whether congestion in the network slows it down.")
    how: str = setting("", "text", "How that was found: rule or slowdown.")
    why: str = setting("", "text", "What decided it.")
    slowdown: float | None = setting(
        None, "number", "How many times as long it takes beside a congestor.", none="unknown"
    )
    nodes: int | None = setting(None, "whole", "On how many nodes it ran.", none="unknown")
    machine: str = setting("", "text", "On which machine.")
    operations: tuple[tuple[str, float], ...] = ()
    """The part of its time in each kind of operation, 0 .. 1."""


KEYS = {key.name: key for key in keys_of("", "", Known)}
Table = dict[str, Known]
"""What is known, by the name of the application."""


def read_table(path: Path) -> Table:
    """Returns the table of a file. Refused with everything that is wrong with it."""
    try:
        text = path.read_text("utf-8")
        tree = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path}: cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path}: {syntax(str(error), text)}") from error
    problems: list[str] = []
    found = {name: _known(name, entry, str(path), problems) for name, entry in tree.items()}
    if problems:
        raise Refused("\n".join(problems))
    return found


def _known(name: str, entry: Any, where: str, problems: list[str]) -> Known:
    if not isinstance(entry, dict):
        problems.append(f"{where}: {plain(name)} = {show(entry)}: a table, [{plain(name)}], with "
                        "sensitive")  # fmt: skip
        return Known()
    if "sensitive" not in entry:
        problems.append(f"{where}: {plain(name)}.sensitive: must be given: true or false")
    given = dict(entry)
    operations = operations_of(given.pop("operations", {}), where, f"{plain(name)}.operations",
                               problems)  # fmt: skip
    return Known(
        **fields_of(KEYS, given, where, f"{plain(name)}.", problems), operations=operations
    )


def write_table(path: Path, table: Table) -> None:
    """Write a table, its applications by name; whoever reads the file meanwhile has the old one."""
    lines = ["# Whether network congestion slows an application down, as `odonata profile` found."]
    for name in sorted(table):
        lines += ["", f"[{_name(name)}]", *_lines(table[name])]
    write_whole(path, "\n".join(lines) + "\n")


def _lines(known: Known) -> Iterator[str]:
    """Returns what is known of an application as TOML, without what is not known."""
    for name, value in asdict(known).items():
        if name == "operations" and value:
            parts = (f"{_name(kind)} = {part!r}" for kind, part in value)
            yield f"{name} = {{ {', '.join(parts)} }}"
        elif name == "sensitive" or (name in KEYS and value not in ("", None)):
            yield f"{name} = {KEYS[name].write(value)}"


def _name(name: str) -> str:
    """Returns a name as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)
