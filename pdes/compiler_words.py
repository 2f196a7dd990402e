"""What the compiler says of a kernel that it cannot compile, in one sentence.

Numba's own message tells of every kernel on the way from the loop to the mistake: a hundred lines,
the reason first and the loop last. Of these, the reason and the line of the kernel at fault are
what its author needs.
"""

from __future__ import annotations

import dis
import os
import re
from collections.abc import Mapping
from types import FunctionType

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PLACE = re.compile(r"(?:at|Raised from) (\S+\.py) \((\d+)\)")
FILE = re.compile(r'File "([^"]+)", line (\d+)')
CALLED = re.compile(r"resolving callee type: type\(CPUDispatcher\(<function \S+ at (0x[0-9a-f]+)>")
ASKED = re.compile(r">>> (.+)")
UNDEFINED = re.compile(r"name '(\w+)' is not defined")
UNCLEAR = ("Failed in ", "During: ", "File ", "Return of: ")
"""Lines that begin so give no reason."""
ENDING = re.compile(r"[.:]* *(Raised from .*|, defined( at .*)?)?[.:]*$")
FIELDS = re.compile(r"(Unknown attribute '\w+' of type \w+)\(.*\)")
"""What is said of a NamedTuple ends with the types of all its fields."""
ALLOCATES = "it allocates (a list, a dict, a text, an array), and a kernel may not"
ALLOCATION = re.compile(
    r"NRT required|Invalid use of dict|"
    r"function (zeros|empty|ones|full|array|arange|linspace|zeros_like|empty_like)>"
)

Functions = Mapping[int, FunctionType]
"""What was compiled, by its `id`, by which the compiler's messages name it."""


def explained(
    error: Exception, known: Functions | None = None, asked: FunctionType | None = None
) -> str:
    """Returns the reason, and the file and line where it was found, if they can be told. `asked` is
    what was called, if Python called it."""
    lines = [line.strip() for line in COLOUR.sub("", str(error)).splitlines()]
    calls = [number for number, line in enumerate(lines) if CALLED.search(line)]
    inner = "\n".join(lines[: calls[0]] if calls else lines)
    if calls and (match := CALLED.search(lines[calls[0]])):
        asked = (known or {}).get(int(match[1], 16), asked)
    if "missing a required argument" in inner or "too many positional arguments" in inner:
        inner, asked = "\n".join(lines), None  # it is the caller who is wrong
    where = _place(inner, asked)
    return f"{_reason(lines)} ({where})" if where else _reason(lines)


def _reason(lines: list[str]) -> str:
    reason = next((line for line in lines if line and not line.startswith(UNCLEAR)), "no reason")
    if ALLOCATION.search(reason):
        return ALLOCATES
    call = next((match for line in lines if (match := ASKED.match(line))), None)
    if reason.startswith("No implementation of function") and call:
        return f"no implementation of {call[1]}"
    reason = ENDING.sub("", reason) or reason
    return FIELDS.sub(r"\1", reason)


def _place(text: str, asked: FunctionType | None) -> str:
    places = [*PLACE.findall(text), *FILE.findall(text)]
    own = [(os.path.abspath(path), int(line)) for path, line in places if not _compilers(path)]
    if asked is not None:
        code = asked.__code__
        mine = [line for path, line in own if path == os.path.abspath(code.co_filename)]
        line = mine[0] if mine else _first_use(asked, text) or code.co_firstlineno
        return f"{code.co_filename}, line {line}"
    return f"{own[0][0]}, line {own[0][1]}" if own else ""


def _compilers(path: str) -> bool:
    """Tells whether a file is of the compiler itself, and not of a kernel."""
    return "numba" in path.split(os.sep)


def _first_use(function: FunctionType, text: str) -> int | None:
    """Returns the line in which a function uses a name that the text says is not defined."""
    name, line = UNDEFINED.search(text), None
    for step in dis.get_instructions(function):
        line = step.starts_line or line
        if name and step.argval == name[1]:
            return line
    return None
