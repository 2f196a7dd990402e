"""`odonata policies`: every policy in one line, or a description of one."""

from __future__ import annotations

import difflib
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import json_option, plugin_option
from odonata.experiment.terminal import plain_console
from pdes import launcher
from pdes.errors import Refused

if TYPE_CHECKING:
    from policies.parameters import Parameter
    from policies.register import Entry

FILLED_BY = ("odonata.agents.patterns", "odonata.agents.traffic")
"""Modules that register the built-in patterns when they are imported."""


@click.command("policies", context_settings=SETTINGS)
@click.argument("name", required=False)
@plugin_option
@json_option
def command(name: str | None, plugins: tuple[Path, ...], as_json: bool) -> None:
    """List the policies there are, of every kind; or tell all about the one of a NAME: its
    parameters with their units and defaults, its paper, whether it remembers, where it comes from.
    """
    from policies.register import load_plugin

    if launcher.rank() == 0:
        for path in plugins:
            load_plugin(path)
        report(name, as_json)


def catalogue() -> dict[str, list[Entry]]:
    """Returns the policies by kind, those of plug-ins too; kinds that have none are left out."""
    from policies.register import BUILT_IN, REGISTERS

    for module in (*BUILT_IN, *FILLED_BY):
        importlib.import_module(module)
    for register in REGISTERS.values():
        register.load()
    kinds = {kind: [*register.values()] for kind, register in REGISTERS.items()}
    return {kind: entries for kind, entries in kinds.items() if entries}


def broken() -> list[str]:
    """Returns a sentence for each entry point that did not load."""
    from policies.register import REGISTERS

    return [
        f"{register.kind} {name!r}: its {why}"
        for register in REGISTERS.values()
        for name, why in register.broken.items()
    ]


def report(name: str | None, as_json: bool) -> None:
    """List all policies, or describe those of one name (of several kinds, if it is in several)."""
    kinds = catalogue()
    if name is not None:
        kinds = _only(name, kinds)
    if as_json:
        listed = {kind: [described(entry) for entry in kinds[kind]] for kind in kinds}
        print(json.dumps(listed, indent=1))
        return
    console = plain_console(highlight=False)
    if name is not None:
        for entries in kinds.values():
            console.print("\n".join(sentences(entries[0])), markup=False, soft_wrap=True)
        return
    console.print(policy_table(kinds))
    for line in broken():
        console.print(line, style="red", markup=False)


def described(entry: Entry) -> dict[str, Any]:
    """Returns what is known of a policy, as JSON has it."""
    return {
        "name": entry.name,
        "about": entry.about,
        "source": entry.source,
        "parameters": [
            {**each._asdict(), "type": each.type.__name__, "accepted": each.accepted}
            for each in entry.parameters
        ],
        "memory": entry.memory,
        "plugin": entry.plugin,
        **({"settings": settings} if (settings := _settings(entry)) else {}),
    }


def sentences(entry: Entry) -> Iterator[str]:
    """Yields what is known of a policy, line by line."""
    yield f"{entry.kind} {entry.name}: {entry.about}"
    yield f"  source      {entry.source}"
    yield f"  comes from  {entry.plugin or 'built in'}, {entry.home}"
    yield f"  memory      {'it remembers' if entry.memory else 'none'}"
    for number, each in enumerate(entry.parameters):
        yield f"  {'parameters' if number == 0 else '':10}  {_parameter(each)}"
    settings = _settings(entry)
    for number, one in enumerate(settings):
        words = f"traffic.{one['name']} = {one['default']}: {one['about']}"
        yield f"  {'settings' if number == 0 else '':10}  {words}"
    if not entry.parameters and not settings:
        yield "  parameters  none"


def _settings(entry: Entry) -> list[dict[str, Any]]:
    """Returns the keys of an experiment's [traffic] that are about this pattern of traffic only."""
    from odonata.agents.traffic import Traffic, TrafficPattern
    from topology.settings import settings_of

    names = entry.settings if isinstance(entry, TrafficPattern) else ()
    return [
        {"name": field.name, "default": field.default, "about": setting.about}
        for field, setting in settings_of(Traffic)
        if field.name in names
    ]


def policy_table(kinds: dict[str, list[Entry]]) -> Any:
    from rich.markup import escape
    from rich.table import Table

    rows = Table(box=None, pad_edge=False, padding=(0, 2), show_header=False)
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column(ratio=1)
    for kind, entries in kinds.items():
        rows.add_row(f"[blue]{kind}[/blue]", "")
        for entry in entries:
            name, about, source = map(escape, (entry.name, entry.about, entry.source))
            rows.add_row(f"  {name}", f"{about}\n[dim]{source}[/dim]")
    return rows


def _parameter(each: Parameter) -> str:
    about = f": {each.about}" if each.about else ""
    unit = {"time": " ticks", "size": " B"}.get(each.unit, "")
    return f"{each.name} = {each.default}{unit} ({each.accepted}){about}"


def _only(name: str, kinds: dict[str, list[Entry]]) -> dict[str, list[Entry]]:
    found = {kind: [entry for entry in entries if entry.name == name]
             for kind, entries in kinds.items()}  # fmt: skip
    found = {kind: entries for kind, entries in found.items() if entries}
    if not found:
        names = [entry.name for entries in kinds.values() for entry in entries]
        near = difflib.get_close_matches(name, names, 3, 0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise Refused(f"policy {name!r}: there is none; `odonata policies` lists them{hint}"
                      "; one of your own: --plugin FILE")  # fmt: skip
    return found
