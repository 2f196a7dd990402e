"""`odonata schema`: what an experiment file may hold, for people, for editors, and as a file."""

from __future__ import annotations

import json
import textwrap
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from odonata.experiment import keys
from odonata.experiment.keys import ABOUT_JOBS, JOB_KEYS, JOBS, NOT_OF_JOBS, OF_JOBS, SECTIONS, Key
from odonata.experiment.reading import parse
from odonata.experiment.units import BANDWIDTHS, BYTES, PICOSECONDS
from odonata.experiment.values import words_of

NUMBER = r"\s*\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*"
NAMES = {"wholes": "whole numbers"}
UNITS = {
    "time": (*PICOSECONDS, "μs"),
    "size": tuple(BYTES),
    "signed size": tuple(BYTES),
    "bandwidth": tuple(BANDWIDTHS),
}


def table() -> Table:
    """For people."""
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name, width in (("key", None), ("kind", 14), ("default", 13), ("about", None)):
        shown.add_column(name, no_wrap=name == "key", max_width=width)
    for section, heading, about, those in sections():
        if section:
            shown.add_section()
            shown.add_row(escape(heading), "", "", escape(about), style="bold")
        for key in those:
            kind = NAMES.get(key.kind, key.kind)
            kind = f"{kind} or {key.none}" if key.none else kind
            shown.add_row(key.name, kind, key.shown_default(), _about(key, key.words))
    return shown


def sections() -> list[tuple[str, str, str, tuple[Key, ...]]]:
    """Of a file, in reading order: their names, as they are written, what for, and their keys."""
    told = [("", "", "", keys.of(""))]
    for section, about in SECTIONS.items():
        if section == OF_JOBS[0]:
            told.append((JOBS, f"[[{JOBS}]]", ABOUT_JOBS, JOB_KEYS))
        told.append((section, f"[{section}]", about, keys.of(section)))
    return told


def to_json() -> str:
    """A JSON Schema, draft 2020-12; editors that know TOML take it."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Odonata experiment",
        "description": "A dragonfly to be simulated: machine, routers, traffic, how long.",
        "type": "object",
        "properties": {key.name: _property(key) for key in keys.of("")},
        "additionalProperties": False,
    }
    for section, _, about, those in sections()[1:]:
        one: dict[str, Any] = {
            "description": about,
            "type": "object",
            "properties": {key.name: _property(key) for key in those},
            "additionalProperties": False,
        }
        if section == JOBS:
            one["required"] = ["nodes"]
            one = {"description": about, "type": "array", "minItems": 1, "items": one}
        schema["properties"][section] = one
    schema["not"] = {"required": [NOT_OF_JOBS[0], JOBS]}
    return json.dumps(schema, indent=1, ensure_ascii=False)


def to_toml() -> str:
    """A file with every key at its default, explained. What depends on other keys is commented
    out, so that it goes on doing so; and so is what is about jobs, of which there are none."""
    defaults = parse("", "experiment.toml")
    values = {key.path: value for key, value in defaults.settings()}
    examples = parse("[[jobs]]\nnodes = 16", "experiment.toml").written()
    lines = ["# An experiment of Odonata, with every key there is, at its default.",
             "# Run it: odonata run experiment.toml"]  # fmt: skip
    for section, heading, reason, those in sections():
        of_jobs = section in (JOBS, *OF_JOBS)
        lines += ["", f"# {reason}", "#" * of_jobs + heading] if section else [""]
        for key in those:
            about = _about(key, words_of(key))
            if key.otherwise and section != JOBS:
                about += f"; if not given, {key.otherwise}"
            path = f"{JOBS}[0].{key.name}" if section == JOBS else key.path
            value = examples[path] if of_jobs else key.write(values[path])
            out = "#" if of_jobs else "# " if key.otherwise else ""
            lines += [*_wrapped(about), f"{out}{key.name} = {value}"]
    return "\n".join(lines) + "\n"


def report(as_json: bool, as_toml: bool) -> None:
    if as_json:
        print(to_json())
    elif as_toml:
        print(to_toml(), end="")
    else:
        Console().print(table())


def _about(key: Key, words: tuple[str, ...]) -> str:
    return key.about.removesuffix(".") + (f": {', '.join(words)}" if words else "")


def _wrapped(about: str) -> list[str]:
    return textwrap.wrap(about, 98, initial_indent="# ", subsequent_indent="# ",
                         break_on_hyphens=False)  # fmt: skip


def _property(key: Key) -> dict[str, Any]:
    told: dict[str, Any] = {"description": key.about}
    told["description"] += f" Default: {key.shown_default()}." if key.otherwise else ""
    accepted = _accepted(key)
    told |= {"anyOf": [accepted, {"const": key.none}]} if key.none else accepted
    if key.default is not None:
        told["default"] = key.default
    return told


def _accepted(key: Key) -> dict[str, Any]:
    if key.kind == "text":
        limits = {"minLength": int(key.default is None), "maxLength": keys.NAME_LENGTH}
        return {"type": "string"} | (limits if key.name == "name" else {})
    if key.kind == "word":
        return {"enum": list(words_of(key))}
    if key.kind == "flag":
        return {"type": "boolean"}
    if key.kind == "wholes":
        numbers = {"type": "array", "items": {"type": "integer"}}
        return {"anyOf": [numbers, {"enum": list(key.words)}]} if key.words else numbers
    if key.kind in UNITS:
        sign = r"\s*-?" if key.kind == "signed size" else ""
        return {"type": "string", "pattern": f"^{sign}{NUMBER}({'|'.join(UNITS[key.kind])})\\s*$"}
    bounds = {"minimum": key.least, "exclusiveMinimum": key.above, "maximum": key.most}
    return {"type": "integer" if key.kind == "whole" else "number"} | {
        name: bound for name, bound in bounds.items() if bound is not None
    }
