"""What a user of `odonata schedule` writes: policies with parameters, a machine, power, files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pdes.errors import Refused

if TYPE_CHECKING:
    from odonata.jobs.power import Power

MICROSECOND_PS = 10**6
"""The tick of the job model, in ps."""

Named = tuple[str, tuple[tuple[str, Any], ...]]
"""A policy's name, and its parameters."""


PARTS = {"size": "size", "user": "user", "project": "project", "account": "project",
         "group": "project", "application": "application"}  # fmt: skip
"""What `--by` takes, and by what jobs are then told apart: a project is Slurm's account and the
group of the Standard Workload Format."""


def part_of(text: str) -> str:
    """Returns one of PARTS, for `--by`."""
    if text in PARTS:
        return text
    why = ""
    if text in ("queue", "partition", "qos"):
        why = "; the simulated machine has no queues or partitions, and traces are read without"
    raise ValueError(f"{text!r}: one of {', '.join(PARTS)}{why}")


def several(text: str, kind: str, option: str) -> list[Named]:
    """Read 'fcfs,wfp:backfill=none'; a further parameter follows another colon. Times are given
    with their unit."""
    from odonata.experiment.policies import shell_parameters
    from policies.parameters import in_ticks
    from policies.register import REGISTERS

    found = []
    for word in text.split(","):
        name, *given = (part.strip() for part in word.split(":"))
        if not name:
            raise Refused(f"{option} {text}: names with commas between them, as fcfs,easy")
        values = shell_parameters(kind, name, given, option, long=True)
        entry = REGISTERS["scheduling" if kind == "order" else kind].named(name)
        found.append((name, tuple(in_ticks(entry.parameters, values, MICROSECOND_PS).items())))
    return found


def label(one: Sequence[Named], asked: Sequence[Sequence[Named]]) -> str:
    """Returns the words that tell a run from the others."""
    names = [words(named) for at, named in enumerate(one) if len({it[at] for it in asked}) > 1]
    return ", ".join(names) or words(one[0])


def powers_of(
    names: str | None, cap: str | None, changes: Sequence[str], demand: str
) -> dict[Named, Power | None]:
    """Returns what is asked for about power, by policy: nothing, if nothing is."""
    from odonata.experiment.experiment import BY_PATH
    from odonata.experiment.values import from_shell, nearest, plain, read
    from odonata.jobs.power import Power

    given: dict[str, Any] = {}
    for text in (*changes, *([f"cap={cap}"] if cap else [])):
        name, equals, value = (part.strip() for part in text.partition("="))
        key = BY_PATH.get(f"power.{name.removeprefix('power.')}")
        option = f"--cap {plain(value)}" if cap and text == f"cap={cap}" else f"--set {plain(text)}"
        if not equals or key is None or key.name == "policy":
            near = nearest(name, [it.name for it in BY_PATH.values() if it.section == "power"])
            meant = f"; did you mean {near}?" if near else ", such as idle='90 W'"
            raise Refused(f"{option}: a key of [power] and a value{meant}")
        try:
            given[key.field] = read(key, from_shell(value), long=True)
        except ValueError as error:
            raise Refused(f"{option}: {error}") from None
    if names is None:
        if given:
            option = "--cap" if cap else "--set"
            raise Refused(f"{option}: of which power policy? --power none only measures")
        return {("", ()): None}
    if "types" not in given:
        given.setdefault("demand", demand)
    return {named: Power(policy=named[0], policy_parameters=named[1], **given)
            for named in several(names, "power", "--power")}  # fmt: skip


def words(named: Named) -> str:
    name, parameters = named
    return name + "".join(f":{key}={value}" for key, value in parameters)


def machine_of(text: str) -> Any:
    """Returns the machine that was named, or described by four numbers."""
    from odonata.commands.options import chosen
    from topology import BadMachine, Dragonfly

    numbers = text.split(",")
    if len(numbers) == 4 and all(number.strip().isdigit() for number in numbers):
        p, a, h, g = map(int, numbers)
        try:
            return Dragonfly(p, a, h, g)
        except BadMachine as error:
            raise Refused(f"--machine {text}: {error}") from None
    return chosen(text, {}, {})


def check_outputs(csv: Path | None, swf: Path | None, plot: Path | None) -> None:
    """Refuse what cannot be written before anything is simulated."""
    for option, path in (("--csv", csv), ("--swf", swf)):
        if path is not None and not path.absolute().parent.is_dir():
            raise Refused(f"{option} {path}: there is no directory {path.parent}")
    if plot is not None:
        from odonata.figures.style import check_name

        check_name(plot)
