"""`odonata policies`: every policy there is, in one line, with its paper."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from policies.allocation import ALLOCATIONS
from policies.register import Register
from policies.routing import ROUTINGS
from policies.scheduling import DISCIPLINES


class Entry(NamedTuple):
    name: str
    about: str
    source: str


def catalogue() -> dict[str, list[Entry]]:
    """By kind; those of other packages too."""
    kinds = {"routing": [Entry(r.name, *_parts(r.about)) for r in ROUTINGS.values()]}
    for register in _registers():
        register.load()
        kinds[register.kind] = [Entry(p.name, p.about, p.source) for p in register.values()]
    return kinds


def broken() -> list[str]:
    """Entry points that did not load."""
    return [f"{register.kind} {name!r}: its {why}"
            for register in _registers() for name, why in register.broken.items()]  # fmt: skip


def report(as_json: bool) -> None:
    """What the command does."""
    kinds = catalogue()
    if as_json:
        told = {kind: [entry._asdict() for entry in entries] for kind, entries in kinds.items()}
        print(json.dumps(told, indent=1))
        return
    from rich.console import Console

    console = Console(highlight=False)
    console.print(table(kinds))
    for line in broken():
        console.print(line, style="red", markup=False)


def table(kinds: dict[str, list[Entry]]) -> Any:
    from rich.markup import escape
    from rich.table import Table

    rows = Table(box=None, pad_edge=False, padding=(0, 2), show_header=False)
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column(ratio=1)
    for kind, entries in kinds.items():
        rows.add_row(f"[blue]{kind}[/blue]", "")
        for entry in entries:
            name, about, source = map(escape, entry)
            rows.add_row(f"  {name}", f"{about}\n[dim]{source}[/dim]")
    return rows


def _registers() -> tuple[Register[Any], ...]:
    return (ALLOCATIONS, DISCIPLINES)


def _parts(about: str) -> tuple[str, str]:
    """A routing ends its line with the paper, in brackets."""
    words, _, source = about.removesuffix(")").rpartition(" (")
    return (words, source) if about.endswith(")") and words else (about, "")
