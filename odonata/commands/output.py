"""How commands print: a table for people, one JSON object for programs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odonata.results.opened import Opened


def print_json(facts: Any) -> None:
    """Print one JSON object (or list) on stdout."""
    print(json.dumps(facts, indent=1, ensure_ascii=False))


def say_missing(*runs: Opened) -> None:
    """Print on stderr which plug-ins of these runs are missing."""
    for run in runs:
        if run.missing:
            print(f"odonata: {run.path}: {run.missing}", file=sys.stderr)


def print_table(*parts: Any, least: int = 0, **how: Any) -> None:
    """Print tables, or whatever else rich can draw, on stdout, `least` columns wide or more: cells
    are cut off where a table is too narrow. `how` is for rich's console."""
    from rich.console import Console

    console = Console(**how)
    console.width = max(console.width, least)
    for part in parts:
        console.print(part)
