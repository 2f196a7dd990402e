"""Experiment files for tests: those that are shipped, values that are wrong, and a check against
the JSON Schema."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from odonata.commands.schema_shown import json_schema
from odonata.experiment.experiment import KEYS, Experiment, needs_jobs
from odonata.experiment.reading import parse
from pdes.errors import Refused
from policies.register import ENVIRONMENT, PLUGINS, REGISTERS

FILES = sorted((Path(__file__).parents[1] / "scripts" / "experiments").glob("*.toml"))
OPEN = tuple(
    key
    for key in KEYS
    if key.section not in ("jobs", "trace", "power", "market") and not needs_jobs(key)
)
"""The keys that have nothing to do with jobs."""


def attempt(text: str, *changes: str) -> tuple[Experiment | None, list[str]]:
    """What it makes, or the problems it has, one per line. Nothing but Refused is caught."""
    try:
        return parse(text, "demo.toml", changes), []
    except Refused as refused:
        return None, str(refused).split("\n")


def refusal(text: str, *changes: str) -> list[str]:
    """The problems of what must be refused."""
    made, problems = attempt(text, *changes)
    assert made is None
    return problems


def forget_plugins(*names: str) -> None:
    """Take out of all registers what plug-ins, or placeholders of these names, have entered."""
    entered = [pair for plugin in PLUGINS.values() for pair in plugin.registered]
    for kind, name in (*entered, *((kind, name) for kind in REGISTERS for name in names)):
        REGISTERS[kind].pop(name, None)
    PLUGINS.clear()
    os.environ.pop(ENVIRONMENT, None)


def written(settings: dict[str, str]) -> str:
    """A file, from TOML values by path."""
    lines = [f"{path} = {value}" for path, value in settings.items() if "." not in path]
    for section in dict.fromkeys(path.split(".")[0] for path in settings if "." in path):
        lines.append(f"[{section}]")
        lines += [f"{_within(path, settings)} = {value}" for path, value in settings.items()
                  if path.startswith(f"{section}.")]  # fmt: skip
    return "\n".join(lines)


def _within(path: str, settings: dict[str, str]) -> str:
    """The name of a key in its section: TOML has none that is a number and a table of numbers."""
    table = any(other.startswith(f"{path}.") for other in settings)
    return path.partition(".")[2] + ".others" * table


WRONG = {
    "files": ["1", "true", "[1]", "{}", '["a.toml", 2]'],
    "texts": ["1", "true", '"mine.py"', "[1]", "{}", '["a.py", 2]'],
    "wholes": ["1", "true", '"mine"', "[1.5]", "{}", '["a"]'],
    "numbers": ["1", "true", '"mine"', "{}", '["a"]', "[true]"],
    "types": ["1", "true", "{}", "[1]", '["aqa"]', "[{ watt = 3 }]", "[]"],
    "labels": ["1", "true", '""', '"mine"', '"1,"', '"1-5:0"', '"-1"', '"0-1e9"', "[1.5]", "{}",
               '["1-2"]'],
    "mix": ["1", "true", '"64 B"', "[1]", '["64 B", 1]', '[["64 B"]]', '[["64 B", 1, 2]]', "{}"],
    "stages": ["1", "true", '"halo3d"', "[1]", "{}", "[[]]"],
    "text": ["1", "true", "1979-05-27", "[]", "{}", "nan"],
    "date": ["1", "true", "[]", "{}", "nan", "07:32:00", '""', '"yesterday"', '"March 2026"'],
    "zone": ["1", "true", "[]", "{}", "1979-05-27", '""'],
    "word": ["1", "true", "[]", '""', '"besst"', "{ a = 1 }", "1979-05-27T07:32:00Z"],
    "whole": ["1.5", "nan", "inf", "true", '""', '"3"', "[1]", "{}", "1979-05-27", str(2**64),
              f"-{10**40}"],
    "number": ["nan", "inf", "-inf", "true", '"0.5"', '""', "[0.5]", "{}", "07:32:00", "1" * 400],
    "flag": ["1", "0", '"yes"', '""', "[]", "{}", "0.0"],
    "time": ["5", "5.0", "nan", '"5"', '""', '"5 lightyears"', '"-5 ns"', '"0.5 ps"', '"1e30 s"',
             '"ns"', '"nan s"', "true", "[]", "{}", '"1 KiB"'],
    "size": ["5", '"5"', '""', '"5 KB"', '"-5 B"', '"0.5 B"', '"1e99 GiB"', '"1 us"', "true", "{}"],
    "signed size": ["5", '"5"', '""', '"5 KB"', '"--5 B"', '"0.5 B"', '"1e99 GiB"', "true", "[]"],
    "bandwidth": ["5", '"5"', '""', '"5 Gb/s"', '"-5 GB/s"', '"0 GB/s"', '"1e999 GB/s"', "false",
                  '"5 GB"', "{}"],
    "power": ["5", "5.0", '"5"', '""', '"5 kWh"', '"-5 W"', '"1e999 MW"', "true", "[]", "{}"],
    "energy": ["5", '"5"', '""', '"5 kW"', '"-5 J"', '"1e999 MWh"', "false", "[]", "{}"],
    "steps": ["5", "5.0", "true", "{}", "[1]", '["5 W"]', '[["0 s"]]', '[["0 s", "5 W", 1]]'],
    "price": ["true", "{}", "[1]", "[[0]]", '[["0 s", 1, 2]]'],
    "carbon": ["false", "{}", "[1]", "[[0]]", '[["0 s", 1, 2]]'],
    "signal": ["true", "{}", "[1]", "[[0]]", '[["0 s", 1, 2]]', "nan"],
}  # fmt: skip


TYPES = {"object": dict, "string": str, "boolean": bool, "integer": int, "number": int | float,
         "array": list}  # fmt: skip


def conforms(value: Any, to: Any = None) -> None:
    """Assert that a value is as a JSON Schema wants it, which uses no other words than these."""
    if to is None:
        to = SCHEMA
    assert {*to} <= {"$schema", "title", "description", "default", "type", "properties", "anyOf",
                     "additionalProperties", "enum", "const", "pattern", "minimum", "maximum",
                     "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "items",
                     "minItems", "maxItems", "required"}  # fmt: skip
    if "type" in to:
        assert isinstance(value, TYPES[to["type"]]), value
        assert isinstance(value, bool) == (to["type"] == "boolean"), value
    if "anyOf" in to:
        assert any(fits(value, one) for one in to["anyOf"]), value
    assert {*to.get("required", ())} <= {*value} if "required" in to else True
    if to.get("type") == "array":
        assert to.get("minItems", 0) <= len(value) <= to.get("maxItems", len(value))
        for item in value:
            conforms(item, to["items"])
    assert value in to.get("enum", [value])
    assert value == to.get("const", value)
    assert "pattern" not in to or re.search(to["pattern"], value), value
    if to.get("type") in ("integer", "number"):
        assert to.get("minimum", value) <= value <= to.get("maximum", value)
        assert "exclusiveMinimum" not in to or value > to["exclusiveMinimum"]
    if to.get("type") == "string":
        assert to.get("minLength", 0) <= len(value) <= to.get("maxLength", len(value))
    if to.get("type") == "object":
        for name, part in value.items():
            assert name in to["properties"] or to["additionalProperties"]
            if name in to["properties"]:
                conforms(part, to["properties"][name])


def fits(value: Any, to: Any = None) -> bool:
    try:
        conforms(value, to)
    except AssertionError:
        return False
    return True


SCHEMA = json_schema()
