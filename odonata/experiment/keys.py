"""Keys of an experiment file, made from the fields that they set (`topology.settings`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, replace
from operator import attrgetter
from typing import Any

from odonata.experiment.units import (
    bandwidth,
    energy_j,
    exact_bandwidth,
    exact_energy,
    exact_power,
    power_w,
    show_size,
    show_time,
    signed_bytes,
    size_bytes,
    time_ps,
)
from odonata.jobs.request import Stage
from policies.parameters import Parameter
from policies.register import REGISTERS
from topology.dragonfly import Dragonfly
from topology.presets import PRESETS
from topology.settings import Setting, settings_of

KINDS = {
    "text": "text",
    "texts": "a list of texts",
    "files": "the name of a file, or a list of them",
    "word": "a word",
    "whole": "a whole number",
    "number": "a number",
    "flag": "true or false",
    "time": 'a time with its unit, as "1.5 us"',
    "size": 'a size with its unit, as "4 KiB"',
    "signed size": 'a size with its unit, as "4 KiB" or "-4 KiB"',
    "bandwidth": 'a bandwidth with its unit, as "25 GB/s"',
    "wholes": "a list of whole numbers, as [4, 4]",
    "numbers": "a list of numbers, as [1, 0.5]",
    "labels": 'a list of whole numbers, as [4, 5], or ranges of them, as "0-30:2, 40"',
    "stages": "tables, as [[jobs.stages]]",
    "mix": 'pairs of a size and a number above 0, as [["64 B", 9], ["4 KiB", 1]]',
    "types": 'a name, a CSV file, or tables, as [{ type = "a", power_max_w = 300, ... }]',
    "power": 'a power with its unit, as "90 W"',
    "energy": 'an energy with its unit, as "30 kJ"',
    "date": 'a date, as "2026-03-02T00:00" or "2026-03-02T00:00+01:00"',
    "zone": 'a time zone, as "Europe/Stockholm" or "+01:00"',
    "steps": 'a power with its unit, as "3000 kW", pairs of a time and a power, or a CSV file',
    "price": "a number, pairs of a time and a number, or a CSV file",
    "carbon": "a number, pairs of a time and a number, or a CSV file",
    "signal": "a number, pairs of a time and a number, a CSV file, or synthetic",
}
"""The kind of value that a key holds, and how it is named to a user."""

READERS: dict[str, Callable[[str], float]] = {
    "time": time_ps,
    "size": size_bytes,
    "signed size": signed_bytes,
    "bandwidth": bandwidth,
    "power": power_w,
    "energy": energy_j,
}
WRITERS: dict[str, Callable[[Any], str]] = {
    "time": show_time,
    "size": show_size,
    "signed size": show_size,
    "bandwidth": exact_bandwidth,
    "power": exact_power,
    "energy": exact_energy,
}
"""Functions that read and write quantities: from text, and exactly back."""

SERIES = {"steps": "power", "price": "price", "carbon": "carbon", "signal": "signal"}
"""The kinds of what may change over time, as `odonata.jobs.series_text.KINDS` names them."""

PRESET = "kim-1056"
"""The machine, if none is named."""
UNITS = ("_ps", "_bytes", "_w", "_j")
"""Suffixes that names of fields have, and names of keys do not."""


@dataclass(frozen=True)
class Key:
    """A key: one thing that can be set."""

    section: str
    """Empty for what stands above all sections; "jobs[0]" for the first of [[jobs]]."""
    name: str
    how: Setting
    default: Any = None
    """As a user would write it; None: it depends on something else, as `how.otherwise` says."""
    owner: str = ""
    """The part of a network that has its field: machine, traffic, workload, jobs, or network."""
    field: str = ""
    """The field there, or empty where there is none."""

    @property
    def path(self) -> str:
        return f"{self.section}.{self.name}" if self.section else self.name

    @property
    def kind(self) -> str:
        return self.how.kind

    @property
    def about(self) -> str:
        return self.how.about

    @property
    def none(self) -> str:
        return self.how.none

    @property
    def option(self) -> str:
        """Returns the name of its option on the command line, with underscores."""
        return self.how.option or self.name

    @property
    def parameters(self) -> str:
        """Returns the field beside a policy that has its parameters."""
        return f"{self.field}_parameters"

    def of(self, part: Any) -> Any:
        """Returns the value of the field, in the object that has it."""
        return attrgetter(self.field)(part)

    def write(self, value: Any) -> str:
        """Returns a value of the field, as TOML."""
        if value is None:
            return quoted(self.none)
        if self.kind in WRITERS:
            return quoted(WRITERS[self.kind](value))
        if isinstance(value, str):
            return quoted(value)
        if self.kind == "labels":
            return _labels(value)
        if self.kind == "stages":
            return f"[{', '.join(_stage(stage) for stage in value)}]"
        if self.kind == "types":
            return f"[{', '.join(_row(row) for row in value)}]"
        if isinstance(value, tuple):
            return _list(value)
        return repr(value).lower()

    def shown_default(self) -> str:
        """Returns a value for people, without the quotes of TOML."""
        if self.default is None:
            return self.how.otherwise
        if self.kind == "flag":
            return str(self.default).lower()
        return "empty" if self.default in ("", ()) else str(self.default)

    def within(self, section: str) -> Key:
        """Returns the same key in one of several sections of its kind."""
        return replace(self, section=section)


def _labels(values: tuple[int, ...]) -> str:
    """Returns whole numbers as TOML: where three or more are at one distance, as ranges.

    >>> print(_labels((9, 0, 2, 4, 6)), _labels((3, 1, 7)))
    "9, 0-6:2" [3, 1, 7]
    """
    parts, at = [], 0
    while at < len(values):
        first, last = values[at], at
        step = values[at + 1] - first if at + 1 < len(values) else 0
        while step > 0 and last + 1 < len(values) and values[last + 1] - values[last] == step:
            last += 1
        if last < at + 2:
            last = at
        distance = f":{step}" if step != 1 else ""
        parts.append(f"{first}-{values[last]}{distance}" if last > at else str(first))
        at = last + 1
    return quoted(", ".join(parts)) if len(parts) < len(values) else _list(values)


def _stage(stage: Stage) -> str:
    """Returns a stage as a table of TOML, without what is as usual."""
    given = [(key, key.of(stage)) for key in STAGE.values()]
    inner = (f"{key.name} = {key.write(value)}" for key, value in given
             if key.name == "pattern" or value != getattr(Stage, key.field))  # fmt: skip
    return f"{{ {', '.join(inner)} }}"


def _row(row: tuple[tuple[str, Any], ...]) -> str:
    """Returns pairs of a name and a text or number as a table of TOML."""
    inner = (f"{name} = {quoted(it) if isinstance(it, str) else repr(it)}" for name, it in row)
    return f"{{ {', '.join(inner)} }}"


def _list(values: tuple[Any, ...]) -> str:
    """Returns a list of TOML, of texts, numbers and lists."""
    inner = (_list(v) if isinstance(v, tuple) else quoted(v) if isinstance(v, str) else str(v)
             for v in values)  # fmt: skip
    return f"[{', '.join(inner)}]"


def quoted(text: str) -> str:
    """Returns a string of TOML, which is one of JSON but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def keys_of(section: str, owner: str, of: type, otherwise: str = "") -> Iterator[Key]:
    """Returns the keys of a section, from the fields of a class. With `otherwise`, none of them has
    a default of its own."""
    for one, how in settings_of(of):
        if how.kind == "links":
            for part in keys_of(section, owner, type(one.default), otherwise):
                named = replace(part.how, about=part.about.format(how.about))
                yield replace(part, name=f"{one.name.rstrip('_')}_{part.name}", how=named,
                              field=f"{one.name}.{part.field}")  # fmt: skip
        elif how.section in ("", section):
            if otherwise:
                how = replace(how, otherwise=otherwise)
            name = how.name or without_unit(one.name)
            yield Key(section, name, how, _default(how, one.default), owner, one.name)


def without_unit(name: str) -> str:
    for unit in UNITS:
        name = name.removesuffix(unit)
    return name


def _default(how: Setting, value: Any) -> Any:
    if how.otherwise or value is MISSING:
        return None
    if value is None:
        return how.none
    if how.kind in WRITERS:
        return WRITERS[how.kind](value)
    return value


def parameter_keys(key: Key, policy: str) -> dict[str, Key]:
    """Returns the keys of a policy's parameters, by name; `key` is the one that names the policy.
    None if its plug-in is missing."""
    entry = REGISTERS[key.how.register].get(policy)
    return {one.name: _parameter_key(key, one) for one in (entry.parameters if entry else ())}


def _parameter_key(key: Key, one: Parameter) -> Key:
    how = one.setting
    return Key(key.path, one.name, how, _default(how, one.default), key.owner, one.name)


MACHINE_KEYS = (
    Key("machine", "preset",
        Setting("word", "The machine to start from; `odonata topology --list` has them.",
                words=tuple(PRESETS)), PRESET),
    *keys_of("machine", "machine", Dragonfly, otherwise="the preset's"),
)  # fmt: skip
"""Returns the keys of [machine]; the first sets no field: it is where the others start from."""


STAGE = {key.name: key for key in keys_of("stages", "", Stage)}
"""The keys of a stage, by name."""
