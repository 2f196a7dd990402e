"""Reads an experiment file: every problem it has is found before anything runs.

It is TOML; what it may hold is in `experiment.KEYS`, and `odonata schema` shows it. A key that is
not given has its default. All that is wrong is shown at once, one problem per line: the file (or
the `--set`), the key, the value, and what is accepted. A problem between two keys is shown unless
one of them is wrong already.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from odonata.experiment.building import Building
from odonata.experiment.experiment import INCLUDE_KEY, Experiment, JobExperiment
from odonata.experiment.keys import KINDS
from odonata.experiment.values import show, syntax
from pdes.errors import Refused

LONGEST_FILE = 2**25
"""The largest file, in bytes; room for as many jobs as there may be, with every key of each."""


def load(
    path: Path,
    changes: Sequence[str] = (),
    plugins: Sequence[Path | str] = (),
    stand_in: bool = False,
) -> Experiment | JobExperiment:
    """Returns the experiment in a file, with `changes` such as "machine.groups=33" and with more
    `plugins` than it names itself; `stand_in` as in `parse`. Refused with all that is wrong."""
    return parse(text_of(path), str(path), changes, plugins, stand_in)


def text_of(path: Path) -> str:
    """Returns the text of a file; refused where it has none."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(LONGEST_FILE + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise Refused(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        hint = f"; a file of jobs? odonata schedule {path}" if str(path).endswith(".gz") else ""
        raise Refused(f"{path}: line {line}: not text in UTF-8, which TOML is{hint}") from None
    except ValueError as error:
        raise Refused(f"{str(path)!r}: {error}") from None
    if len(content) > LONGEST_FILE:
        raise Refused(f"{path}: more than {LONGEST_FILE} bytes: this is no experiment")
    return text


def parse(
    text: str,
    where: str,
    changes: Sequence[str] = (),
    plugins: Sequence[Path | str] = (),
    stand_in: bool = False,
) -> Experiment | JobExperiment:
    """Returns the experiment in a text; `where` it is from is shown with problems. With `stand_in`
    no plug-in is loaded, and an entry without a kernel stands in for each that is missing: the
    results of a run can be opened without the plug-ins that ran."""
    tree = tree_of(text, where)
    building = Building(where, plugins, stand_in)
    for included, file in with_included(tree, where, building.note):
        building.take_file(included, file)
    for change in changes:
        building.take_change(change)
    building.drop()
    return building.experiment()


def with_included(
    tree: dict[str, Any], where: str, note: Callable[[str], None], including: tuple[str, ...] = ()
) -> Iterator[tuple[dict[str, Any], str]]:
    """Returns what files say, each after those that it includes; `including` are the files that
    led to this one. Files that cannot be read are noted as problems."""
    names = tree.get(INCLUDE_KEY.name, [])
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        note(f"{where}: include = {show(names)}: {KINDS[INCLUDE_KEY.kind]}")
        names = []
    including = (*including, os.path.realpath(where))
    for name in names:
        path = Path(where).parent / name
        if os.path.realpath(path) in including:
            note(f"{where}: include = {show(name)}: it includes this file in turn")
            continue
        try:
            included = tree_of(text_of(path), str(path))
        except Refused as refusal:
            note(f"{where}: include = {show(name)}: {refusal}")
        else:
            yield from with_included(included, str(path), note, including)
    yield tree, where


def tree_of(text: str, where: str) -> dict[str, Any]:
    """Returns what a text of TOML says; refused with the line where it is none."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise Refused(f"{where}: nested too deeply: sections, and keys in them, are all") from None
    except ValueError as error:  # of which TOMLDecodeError is one
        of_jobs = where.removesuffix(".gz").endswith((".swf", ".json", ".csv", ".sacct"))
        hint = f"; a file of jobs? odonata schedule {where}" if of_jobs else ""
        raise Refused(f"{where}: {syntax(str(error), text)}{hint}") from None
