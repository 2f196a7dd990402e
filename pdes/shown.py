"""Text of others (names of jobs, users and files, values in a file), made harmless where it is
shown: on a terminal, and in a cell of a spreadsheet."""

from __future__ import annotations

import re
import sys
from typing import Any

HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What a terminal obeys rather than shows: control characters (ESC begins commands) other than
the tabulator and the end of a line, and marks that turn the direction of writing around."""
FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""How a cell begins that a spreadsheet computes; or one that `csv_cell` has changed."""
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


def plain(text: str) -> str:
    """Returns the text with every character that a terminal would obey written out, as \\x1b."""
    return HIDDEN.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def say(words: str) -> None:
    """Print a message on stderr."""
    print(f"odonata: {plain(words)}", file=sys.stderr, flush=True)


def csv_cell(value: Any) -> Any:
    """Returns the value of a cell of CSV: text that a spreadsheet would compute (`=cmd|...`) behind
    an apostrophe, so that it is shown as it is; numbers, and other text, unchanged. `csv_text`
    returns what it was."""
    if isinstance(value, str) and FORMULA.match(value) and not NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def csv_text(cell: str) -> str:
    """Returns the text of a cell that `csv_cell` has made."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell
