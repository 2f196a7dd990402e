"""Reads application profiles: those that come with this package by name, and a user's from TOML.

A profile file has `about`, `source`, `iterations`, `tasks_per_node`, `nodes`, `sensitive`, a table
`[measured]` of what was measured of the application itself, and one or more `[[stages]]`.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from odonata.agents.profile import Measured, Profile
from odonata.agents.workload import check_stage
from odonata.experiment.keys import STAGE, Key, keys_of
from odonata.experiment.values import plain, read, show, syntax
from odonata.jobs.request import Stage
from pdes.errors import Findings, Refused
from topology.settings import meant, setting

HOME = Path(__file__).resolve().parent.parent / "profiles"
"""The directory of the profiles that come with this package."""
SUFFIX = ".toml"


@dataclass(frozen=True)
class _Head:
    """The keys of a profile file that stand above its tables."""

    about: str = setting("", "text", "What the application is, in a line.")
    source: str = setting("", "text", "Where its numbers come from.")
    iterations: int = setting(
        1, "whole", "Iterations of a job that asks for no number.", least=1, most=2**23 - 1
    )
    tasks_per_node: int | None = setting(
        None, "whole", "Tasks per node for which messages are as large as given; with others, a "
        "node sends as many bytes.", least=1, most=128, none="any",
    )  # fmt: skip
    nodes: int | None = setting(
        None, "whole", "Nodes for which its compute times were calibrated.", least=1, none="unknown"
    )
    sensitive: bool = setting(False, "flag", "Whether it suffers from network congestion.")


HEAD = {key.name: key for key in keys_of("", "", _Head)}
"""The keys of a profile file that stand above its tables, by name."""
MEASURED = ("run_time_s", "communication", "rank_bytes_per_s", "sends_per_s", "allreduces_per_s",
            "ranks_per_node", "operations")  # fmt: skip
OPERATIONS = ("allreduce", "bcast", "p2p", "wait", "test", "barrier", "other")
"""The kinds of MPI operations, as `Measured.operations` names them."""


def built_in() -> tuple[str, ...]:
    """Returns the names of the profiles that come with this package."""
    return tuple(sorted(path.stem for path in HOME.glob(f"*{SUFFIX}")))


def profile(name: str, home: Path | None = None) -> Profile:
    """Returns a profile: one of `built_in`, or that of a file whose name ends in .toml, relative to
    `home`. Refused with everything that is wrong with it."""
    return profile_in(path_of(name, home))


def path_of(name: str, home: Path | None = None) -> Path:
    """Returns the file of a profile. Refused where there is none."""
    if name in built_in():
        return HOME / f"{name}{SUFFIX}"
    path = ((home or Path()) / name).absolute()
    if name.endswith(SUFFIX) and path.is_file():
        return path
    if name.endswith(SUFFIX):
        raise Refused(f"profile {plain(name)}: there is no such file")
    raise Refused(f"profile {plain(name)}: one of {', '.join(built_in())}, or a file that ends in "
                  f"{SUFFIX}{meant(name, built_in())}")  # fmt: skip


def profile_in(path: Path) -> Profile:
    """Returns the profile of a file. Refused with everything that is wrong with it."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path}: cannot be read: {error}") from error
    return parsed(text, path.stem, str(path))


@lru_cache(maxsize=256)
def parsed(text: str, name: str, where: str) -> Profile:
    """Returns the profile that a text of TOML describes."""
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{where}: {syntax(str(error), text)}") from error
    problems: list[str] = []
    stages = tree.pop("stages", [])
    measured = tree.pop("measured", None)
    head = fields_of(HEAD, tree, where, "", problems)
    if not isinstance(stages, list) or not stages:
        problems.append(f"{where}: needs at least one [[stages]]")
        stages = []
    found = stages_of(stages, where, "stages", problems)
    facts = _measured(measured, where, problems)
    if problems:
        raise Refused("\n".join(problems))
    return Profile(name, found, measured=facts, **head)


def stages_of(
    tables: Iterable[Any], where: str, path: str, problems: list[str]
) -> tuple[Stage, ...]:
    """Returns the stages that tables of TOML describe, without what is wrong, which is noted."""
    found = []
    for number, table in enumerate(tables):
        if not isinstance(table, dict):
            problems.append(f"{where}: {path} = {show(table)}: tables, as [[{path}]]")
            continue
        given = fields_of(STAGE, table, where, f"{path}[{number}].", problems)
        found.append(Stage(**{STAGE[key].field: value for key, value in given.items()}))
    return tuple(found)


def unfit(
    stages: Sequence[Stage], nodes: int, tasks_per_node: int, where: str, path: str
) -> Iterator[str]:
    """Returns what is wrong with these stages on so many nodes, line by line."""
    for number, stage in enumerate(stages):
        found = Findings()
        check_stage(stage, str, nodes, tasks_per_node, found)
        yield from (f"{where}: {path}[{number}].{problem}" for problem in found.problems)


def fields_of(
    keys: Mapping[str, Key], given: Mapping[str, Any], where: str, prefix: str, problems: list[str]
) -> dict[str, Any]:
    """Returns the values of a table by key, without those that are wrong, which are noted."""
    found = {}
    for name, value in given.items():
        if name not in keys:
            hint = meant(name.replace("-", "_"), keys) or f"; one of {', '.join(keys)}"
            problems.append(f"{where}: {plain(prefix + name)}: unknown{hint}")
            continue
        key = keys[name]
        try:
            found[name] = read(key, value)
        except ValueError as error:
            problems.append(f"{where}: {prefix}{name} = {show(value)}: {error}")
    return found


def _measured(given: Any, where: str, problems: list[str]) -> Measured | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        problems.append(f"{where}: measured = {show(given)}: a table")
        return None
    for name in given.keys() - {*MEASURED}:
        problems.append(f"{where}: measured.{plain(name)}: unknown; one of {', '.join(MEASURED)}")
    numbers = {name: given.get(name) for name in MEASURED if name != "operations"}
    numbers["ranks_per_node"] = given.get("ranks_per_node", 1)
    for name, value in numbers.items():
        _check_number(value, 1 if name == "communication" else math.inf, where, f"measured.{name}",
                      problems)  # fmt: skip
    operations = operations_of(given.get("operations", {}), where, "measured.operations", problems)
    if problems:
        return None
    return Measured(**numbers, operations=operations)  # type: ignore[arg-type]


def operations_of(
    given: Any, where: str, path: str, problems: list[str]
) -> tuple[tuple[str, float], ...]:
    """Returns the parts of a time that a table of TOML has, by kind of operation; what is wrong is
    noted."""
    if not isinstance(given, dict):
        problems.append(f"{where}: {path} = {show(given)}: a table")
        return ()
    for name, value in given.items():
        if name not in OPERATIONS:
            problems.append(f"{where}: {path}.{plain(name)}: unknown; one of "
                            f"{', '.join(OPERATIONS)}")  # fmt: skip
        _check_number(value, 1, where, f"{path}.{plain(name)}", problems)
    return tuple(given.items())


def _check_number(value: Any, most: float, where: str, path: str, problems: list[str]) -> None:
    """Note what is no number from 0 to `most`."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= most or value == math.inf:
        rule = "a number, 0 .. 1" if most == 1 else "a number, at least 0"
        problems.append(f"{where}: {path} = {show(value)}: {rule}")
