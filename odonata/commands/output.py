"""How commands print: a table for people, one JSON object for programs."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odonata.experiment.terminal import plain_console
from pdes.shown import HIDDEN, say

if TYPE_CHECKING:
    from odonata.results.run import Run


def print_json(facts: Any) -> None:
    """Print one JSON object (or list) on stdout; what a terminal would obey is written out, as JSON
    does."""
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    print(HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def beside(path: Path, label: str) -> Path:
    """Returns the name of a file that is one of several: the label stands before the suffix, which
    is what follows the last dot, or two of them where the file is compressed.

    >>> beside(Path("a-1.0.csv"), "wfp:backfill=none").name, beside(Path("a.swf.gz"), "easy").name
    ('a-1.0-wfp-backfill-none.csv', 'a-easy.swf.gz')
    """
    stem, suffix = os.path.splitext(path.name)
    if suffix.lower() == ".gz":
        stem, inner = os.path.splitext(stem)
        suffix = inner + suffix
    safe = "-".join(re.findall(r"[\w.+-]+", label))
    return path.with_name(f"{stem}-{safe}{suffix}")


def command_seconds() -> float | None:
    """Returns for how long this process has been there, the start of Python and all imports
    included, as `time` tells it; None where the system does not tell (Linux does, in /proc)."""
    try:
        *_, fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")
        began = int(fields.split()[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - began
    except (OSError, AttributeError, ValueError, IndexError):
        return None


def say_missing(*runs: Run) -> None:
    """Print on stderr which plug-ins of these runs are missing."""
    for run in runs:
        if run.missing:
            say(f"{run.path}: {run.missing}")


def print_table(*parts: Any, least: int = 0, **how: Any) -> None:
    """Print tables, or whatever else rich can draw, on stdout, `least` columns wide or more: cells
    are cut off where a table is too narrow. `how` is for rich's console."""
    console = plain_console(**how)
    console.width = max(console.width, least)
    for part in parts:
        console.print(part)
