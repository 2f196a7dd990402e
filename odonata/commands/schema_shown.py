"""What `odonata schema` shows of the keys of an experiment file, for people and for editors."""

from __future__ import annotations

import textwrap
from typing import Any

from odonata.experiment.experiment import (
    BY_PATH,
    NAME_LENGTH,
    OTHERS,
    REPEATED,
    ROUTER_KEY,
    SECTIONS,
    SEED,
    SENSITIVITY_KEY,
    SWEEP,
    is_own_seed,
    needs_jobs,
    of,
)
from odonata.experiment.given import PARAMETRISED
from odonata.experiment.keys import SERIES, STAGE, Key, quoted
from odonata.experiment.reading import parse
from odonata.experiment.units import BANDWIDTHS, BYTES, JOULES, PICOSECONDS, WATTS
from odonata.experiment.values import RANGE, bracketed, words_of
from odonata.traces.job_type import COLUMNS

NUMBER = r"\s*\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*"
NAMES = {"wholes": "whole numbers", "labels": "whole numbers or ranges", "texts": "list of texts",
         "files": "file or files", "mix": "sizes and parts", "numbers": "list of numbers",
         "types": "name, file or tables", "stages": "tables"}  # fmt: skip
UNITS = {
    "time": (*PICOSECONDS, "μs"),
    "size": tuple(BYTES),
    "signed size": tuple(BYTES),
    "bandwidth": tuple(BANDWIDTHS),
    "power": tuple(WATTS),
    "energy": tuple(JOULES),
}


def key_table() -> Any:
    """Returns the schema as a table for people."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name, width in (("key", None), ("kind", 14), ("default", 13), ("about", None)):
        shown.add_column(name, no_wrap=name == "key", max_width=width)
    for section in ("", *SECTIONS):
        if section:
            shown.add_section()
            shown.add_row(escape(bracketed(section)), "", "", escape(SECTIONS[section]),
                          style="bold")  # fmt: skip
        for key in of(section):
            kind = NAMES.get(key.kind, key.kind)
            kind = f"{kind} or {key.none}" if key.none else kind
            words = () if key.name == "preset" else words_of(key)
            shown.add_row(*map(escape, (key.name, kind, key.shown_default(), _about(key, words))))
    return shown


def json_schema() -> dict[str, Any]:
    """Returns a JSON Schema, draft 2020-12, which editors that know TOML accept."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Odonata experiment",
        "description": "A dragonfly to be simulated: machine, routers, traffic, jobs, how long.",
        "type": "object",
        "properties": {key.name: _property(key) for key in of("")},
        "additionalProperties": False,
    }
    for section, about in SECTIONS.items():
        one: dict[str, Any] = {
            "description": about,
            "type": "object",
            "properties": {key.name: _property(key) for key in of(section) if not is_own_seed(key)},
            "additionalProperties": False,
        }
        if section == "run":
            one["properties"]["seed"] = _seeds()
        if section == "jobs":
            one["required"] = ["nodes"]
        if section in REPEATED:
            several = {"description": about, "type": "array", "minItems": 1, "items": one}
            one = several if section == "jobs" else {"anyOf": [one, several]}
        schema["properties"][section] = one
    schema["properties"][SWEEP] = {
        "description": "What `odonata sweep` varies: keys with lists of values, names with tables "
        "of labels and changes, seeds, and what is shown.",
        "type": "object",
        "properties": {},
        "additionalProperties": True,
    }
    return schema


def template() -> str:
    """Returns a file with every key at its default, explained. What depends on other keys is
    commented out, so that it goes on doing so; and so is what is about jobs, of which there are
    none, about traces and markets, which are of the other fidelity, and about power, which nobody
    needs."""
    defaults = parse("", "experiment.toml").written()
    examples = parse("[[jobs]]\nnodes = 16", "experiment.toml").written()
    traced = parse('fidelity = "job"', "experiment.toml", stand_in=True).written()
    powered = parse("[power]\n[[jobs]]\nnodes = 16", "experiment.toml", stand_in=True).written()
    traded = parse('fidelity = "job"\n[power]\n[market]', "experiment.toml",
                   stand_in=True).written()  # fmt: skip
    lines = ["# An experiment of Odonata, with every key there is, at its default.",
             "# Run it: odonata run experiment.toml"]  # fmt: skip
    for section in ("", *SECTIONS):
        of_jobs = section in ("jobs", "power", "market", "scheduler")
        lines += [""]
        out_of_it = "#  " if section in ("trace", "power", "market") else "#" * of_jobs
        if section:
            lines += [f"# {SECTIONS[section]}", out_of_it + bracketed(section)]
        for key in of(section):
            about = _about(key, words_of(key))
            if key.how.otherwise and section != "jobs":
                about += f"; if not given, {key.how.otherwise}"
            path = f"jobs[0].{key.name}" if section == "jobs" else key.path
            known = {"trace": traced, "power": powered, "market": traded}.get(section, examples)
            ours = known if of_jobs or section == "trace" or needs_jobs(key) else defaults
            value = ours.get(path, "[]")
            if key in (ROUTER_KEY, SENSITIVITY_KEY):
                value = quoted(key.default)
            if is_own_seed(key):  # in place of the line above
                name, _, what = key.name.partition(".")
                lines += [*_wrapped(about), f"#   {name} = {{ {OTHERS} = 1, {what} = 1 }}"]
                continue
            out = out_of_it or ("#" if needs_jobs(key) else "# " if key.how.otherwise else "")
            lines += [*_wrapped(about), f"{out}{key.name} = {value}"]
    return "\n".join(lines) + "\n"


def _about(key: Key, words: tuple[str, ...]) -> str:
    return key.about.removesuffix(".") + (f": {', '.join(words)}" if words else "")


def _wrapped(about: str) -> list[str]:
    return textwrap.wrap(about, 98, initial_indent="# ", subsequent_indent="# ",
                         break_on_hyphens=False)  # fmt: skip


def _property(key: Key) -> dict[str, Any]:
    found: dict[str, Any] = {"description": key.about}
    found["description"] += f" Default: {key.shown_default()}." if key.how.otherwise else ""
    accepted = _accepted(key)
    found |= {"anyOf": [accepted, {"const": key.none}]} if key.none else accepted
    if key.default is not None:
        found["default"] = [*key.default] if isinstance(key.default, tuple) else key.default
    return found


def _seeds() -> dict[str, Any]:
    """Returns the property run.seed: a number, or a table of seeds."""
    one = _property(BY_PATH[SEED])
    about = {name: one.pop(name) for name in ("description", "default")}
    own = {key.name.partition(".")[2]: _property(key) for key in of("run") if is_own_seed(key)}
    table = {"type": "object", "properties": {OTHERS: {**one, **about}, **own}, "minProperties": 1,
             "additionalProperties": False}  # fmt: skip
    return {**about, "anyOf": [one, table]}


def _accepted(key: Key) -> dict[str, Any]:
    how = key.how
    if key.kind == "text":
        limits = {"minLength": int(key.default is None), "maxLength": NAME_LENGTH}
        return {"type": "string"} | (limits if key.name == "name" else {})
    if key.kind == "date":
        return {"type": "string", "pattern": r"^\s*[0-9]{4}-?[0-9W]"}
    if key.kind == "zone":
        return {"type": "string", "minLength": 1}
    if key.kind == "word":
        names = {"enum": list(words_of(key))}
        if how.register not in PARAMETRISED:
            return names
        table = {
            "description": "Its name, and its parameters.",
            "type": "object",
            "properties": {"name": names},
            "required": ["name"],
            "additionalProperties": True,
        }
        return {"anyOf": [names, table]}
    if key.kind == "flag":
        return {"type": "boolean"}
    if key.kind == "texts":
        texts = {"type": "array", "items": {"type": "string"}}
        return {"anyOf": [texts, {"enum": list(how.words)}]} if how.words else texts
    if key.kind == "numbers":
        return {"type": "array", "items": {"type": "number"}}
    if key.kind == "types":
        row = {"type": "object", "additionalProperties": False, "required": ["type", "power_max_w"],
               "properties": {it: {"type": ["string", "number"]} for it in COLUMNS}}  # fmt: skip
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": row, "minItems": 1}]}
    if key.kind == "files":
        name = {"type": "string"}
        return {"anyOf": [name, {"type": "array", "items": name}]}
    if key.kind == "wholes":
        numbers = {"type": "array", "items": {"type": "integer"}}
        return {"anyOf": [numbers, {"enum": list(how.words)}]} if how.words else numbers
    if key.kind == "labels":
        ranges = {"type": "string", "pattern": f"^{RANGE.pattern}(,{RANGE.pattern})*$"}
        return {"anyOf": [{"type": "array", "items": {"type": "integer"}}, ranges]}
    if key.kind == "stages":
        stage = {"type": "object", "additionalProperties": False,
                 "properties": {each.name: _property(each) for each in STAGE.values()}}  # fmt: skip
        return {"type": "array", "items": stage}
    if key.kind == "mix":
        either: Any = {"anyOf": [{"type": "string"}, {"type": "number"}]}
        pair = {"type": "array", "items": either, "minItems": 2, "maxItems": 2}
        return {"type": "array", "items": pair}
    if key.kind in SERIES:
        cell = {"anyOf": [{"type": "string"}, {"type": "number"}]}
        pair = {"type": "array", "items": cell, "minItems": 2, "maxItems": 2}
        one = {"type": "string"} if key.kind == "steps" else cell
        return {"anyOf": [one, {"type": "array", "items": pair, "minItems": 1}]}
    if key.kind in UNITS:
        sign = r"\s*-?" if key.kind == "signed size" else ""
        return {"type": "string", "pattern": f"^{sign}{NUMBER}({'|'.join(UNITS[key.kind])})\\s*$"}
    bounds = {"minimum": how.least, "exclusiveMinimum": how.above,
              "maximum": how.packets or how.most, "exclusiveMaximum": how.below}  # fmt: skip
    return {"type": "integer" if key.kind == "whole" else "number"} | {
        name: bound for name, bound in bounds.items() if bound is not None
    }
