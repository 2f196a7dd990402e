"""What a user of `odonata schedule` writes: a sweep over policies with parameters, of a trace on a
machine, with its power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pdes.errors import Refused

if TYPE_CHECKING:
    from odonata.sweeps.axes import Axis
    from odonata.sweeps.drafts import Draft
    from topology import Dragonfly

MICROSECOND_PS = 10**6
"""The tick of the job model, in ps."""
WHERE = "odonata schedule"


class Named(NamedTuple):
    """A policy: its name, its parameters in ticks, and as they were written."""

    name: str
    parameters: tuple[tuple[str, Any], ...]
    given: Mapping[str, Any]

    def __str__(self) -> str:
        return self.name + "".join(f":{key}={value}" for key, value in self.parameters)

    @property
    def as_key(self) -> Any:
        """Returns it as the key of an experiment has it."""
        return {"name": self.name, **self.given} if self.given else self.name


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
    from odonata.experiment.values import from_shell
    from policies.parameters import in_ticks
    from policies.register import REGISTERS

    found = []
    for word in text.split(","):
        name, *given = (part.strip() for part in word.split(":"))
        if not name:
            raise Refused(f"{option} {text}: names with commas between them, as fcfs,easy")
        values = shell_parameters(kind, name, given, option, long=True)
        register = REGISTERS["scheduling" if kind == "order" else kind]
        ticks = in_ticks(register.named(name).parameters, values, MICROSECOND_PS)
        register.make(name, ticks)
        pairs = (part.partition("=") for part in given)
        raw = {key.strip(): from_shell(value.strip()) for key, _, value in pairs}
        found.append(Named(name, tuple(ticks.items()), raw))
    return [*{str(named): named for named in found}.values()]


def power_keys(names: str | None, cap: str | None, changes: Sequence[str]) -> dict[str, Any]:
    """Returns what is said of [power] besides its policy. Refused where that cannot be."""
    from odonata.experiment.experiment import BY_PATH
    from odonata.experiment.values import from_shell, nearest, plain, read

    given: dict[str, Any] = {}
    for text in (*changes, *([f"cap={cap}"] if cap else [])):
        name, equals, value = (part.strip() for part in text.partition("="))
        key = BY_PATH.get(f"power.{name.removeprefix('power.')}")
        option = f"--cap {plain(value)}" if cap and text == f"cap={cap}" else f"--set {plain(text)}"
        if not equals or key is None or key.name == "policy":
            near = nearest(name, [it.name for it in BY_PATH.values() if it.section == "power"])
            meant = f"; did you mean {near}?" if near else ", such as idle='90 W'"
            raise Refused(f"{option}: a key of [power] and a value{meant}")
        given[key.name] = from_shell(value)
        try:
            read(key, given[key.name], long=True)
        except ValueError as error:
            raise Refused(f"{option}: {error}") from None
    if names is None and given:
        raise Refused(f"{'--cap' if cap else '--set'}: of which power policy? --power none only "
                      "measures")  # fmt: skip
    return given


def machine_of(text: str) -> Dragonfly:
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


def draft_of(
    source: Any, machine: Dragonfly | None, policies: Mapping[str, Sequence[Named]],
    power: Mapping[str, Any], seeds: Sequence[int], plugins: Sequence[Path],
) -> Draft:  # fmt: skip
    """Returns the sweep that was asked for: `policies` are the axes, by their keys."""
    from odonata.experiment.experiment import is_preset, of, preset_of
    from odonata.experiment.values import from_shell
    from odonata.sweeps.axes import Axis, Value, toml
    from odonata.sweeps.drafts import Draft, text_of_sections
    from odonata.traces.source import Source

    trace = {key.name: from_shell(key.write(key.of(source))) for key in of("trace")
             if key.of(source) != key.of(Source())}  # fmt: skip
    if "file" in trace:
        trace["file"] = str(Path(source.file).absolute())
    placed: dict[str, Any] = {}
    if machine is not None:
        placed = {key.name: from_shell(key.write(key.of(machine))) for key in of("machine")[1:]}
        placed = {"preset": preset_of(machine)} if is_preset(machine) else placed
    sections: dict[str, dict[str, Any]] = {
        "": {"name": "schedule", "fidelity": "job",
             "plugins": [str(path.resolve()) for path in plugins] or None},
        "machine": placed, "trace": trace, "scheduler": {},
        "power": {key: _absolute(value) for key, value in power.items()},
        "run": {"seed": seeds[0]},
    }  # fmt: skip
    axes: list[Axis] = []
    for path, named in policies.items():
        section, _, key = path.partition(".")
        sections[section][key] = named[0].as_key
        if len(named) > 1:
            axes.append(Axis(path, tuple(Value(str(it), (f"{path}={toml(it.as_key)}",))
                                         for it in named)))  # fmt: skip
    return Draft(WHERE, text_of_sections(sections), axes, seeds)


def _absolute(value: Any) -> Any:
    """Returns the whole path of what names a file."""
    file = isinstance(value, str) and bool(Path(value).suffix) and Path(value).is_file()
    return str(Path(value).absolute()) if file else value
