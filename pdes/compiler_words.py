"""What the compiler says of a kernel that it cannot compile, in one sentence.

Numba's own message tells of every kernel on the way from the loop to the mistake: a hundred lines,
the reason first and the loop last. Of these, the reason and its line are what the author needs.
"""

from __future__ import annotations

import re

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PLACE = re.compile(r"(?:at|Raised from) (\S+\.py) \((\d+)\)")
FILE = re.compile(r'File "([^"]+)", line (\d+)')
FUNCTION = re.compile(r"resolving callee type: .*<function (\S+) at ")
UNCLEAR = ("Failed in ", "During: ", "File ", "Return of: ")
"""Lines that begin so give no reason."""
PLAINLY = {
    "NRT required but not enabled": "it allocates (a list, a text, an array), and a kernel may not",
}


def explained(error: Exception) -> str:
    """Returns the reason, and where it was found: the file and line, or at least the function."""
    lines = [line.strip() for line in COLOUR.sub("", str(error)).splitlines()]
    calls = [number for number, line in enumerate(lines) if FUNCTION.search(line)]
    inner = "\n".join(lines[: calls[0]] if calls else lines)
    reason = next((line for line in lines if line and not line.startswith(UNCLEAR)), "no reason")
    reason = PLAINLY.get(reason, PLACE.sub("", reason).rstrip(". :"))
    if found := PLACE.search(inner) or FILE.search(inner):
        return f"{reason} ({found[1]}, line {found[2]})"
    name = FUNCTION.search(lines[calls[0]]) if calls else None
    return f"{reason} (in {name[1]})" if name else reason
