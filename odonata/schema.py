"""`odonata schema`: what an experiment file may hold, for people, for editors, and as a file."""

from __future__ import annotations

import json
import textwrap
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from odonata import keys
from odonata.experiment import parse, words_of
from odonata.keys import SECTIONS, Key
from odonata.units import BANDWIDTHS, BYTES, PICOSECONDS

NUMBER = r"\s*\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*"
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
    for section in ("", *SECTIONS):
        if section:
            shown.add_section()
            shown.add_row(f"\\[{section}]", "", "", SECTIONS[section], style="bold")
        for key in keys.of(section):
            kind = f"{key.kind} or {key.none}" if key.none else key.kind
            shown.add_row(key.name, kind, key.shown_default(), _about(key, key.words))
    return shown


def to_json() -> str:
    """A JSON Schema, draft 2020-12; editors that know TOML take it."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Odonata experiment",
        "description": "A dragonfly to be simulated: machine, routers, traffic, how long.",
        "type": "object",
        "properties": _properties(""),
        "additionalProperties": False,
    }
    for section, about in SECTIONS.items():
        schema["properties"][section] = {
            "description": about,
            "type": "object",
            "properties": _properties(section),
            "additionalProperties": False,
        }
    return json.dumps(schema, indent=1, ensure_ascii=False)


def to_toml() -> str:
    """A file with every key at its default, explained. What depends on other keys is commented
    out, so that it goes on doing so."""
    defaults = parse("", "experiment.toml")
    lines = ["# An experiment of Odonata, with every key there is, at its default.",
             "# Run it: odonata run experiment.toml"]  # fmt: skip
    for section in ("", *SECTIONS):
        lines += ["", f"# {SECTIONS[section]}", f"[{section}]"] if section else [""]
        for key in keys.of(section):
            about = _about(key, words_of(key))
            if key.otherwise:
                about += f"; if not given, {key.otherwise}"
            setting = f"{key.name} = {key.write(defaults.value(key))}"
            lines += [*_wrapped(about), f"# {setting}" if key.otherwise else setting]
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


def _properties(section: str) -> dict[str, Any]:
    return {key.name: _property(key) for key in keys.of(section)}


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
        most = {"minLength": 1, "maxLength": keys.NAME_LENGTH} if key.name == "name" else {}
        return {"type": "string"} | most
    if key.kind == "word":
        return {"enum": list(words_of(key))}
    if key.kind == "flag":
        return {"type": "boolean"}
    if key.kind in UNITS:
        sign = r"\s*-?" if key.kind == "signed size" else ""
        return {"type": "string", "pattern": f"^{sign}{NUMBER}({'|'.join(UNITS[key.kind])})\\s*$"}
    limits = {"minimum": key.least, "exclusiveMinimum": key.above, "maximum": key.most}
    return {"type": "integer" if key.kind == "whole" else "number"} | {
        name: limit for name, limit in limits.items() if limit is not None
    }
