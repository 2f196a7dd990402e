"""Converts one value of an experiment file from TOML to that of its field; and describes values
that are not accepted, and keys that do not exist."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import Any

from odonata.experiment.experiment import COUNT, KEYS, SECTIONS, of
from odonata.experiment.keys import KINDS, READERS, SERIES, Key, quoted
from odonata.experiment.units import long_time_ps, size_bytes
from policies.register import OF_YOUR_OWN, REGISTERS
from topology.settings import Setting, meant


def words_of(key: Key) -> tuple[str, ...]:
    """Returns the words that a key accepts, with those registered since, and those of other
    packages."""
    if not key.how.register:
        return key.how.words
    register = REGISTERS[key.how.register]
    register.load()
    return tuple(name for name, entry in register.items() if not entry.missing)


def read(key: Key, value: Any, long: bool = False) -> Any:
    """Returns a value of TOML as the field has it; `long` times may be years, in whole
    microseconds. Raises ValueError saying what is accepted."""
    if key.none and value == key.none:
        return None
    if key.kind == "word":
        return _word(key, value)
    found = _read(key, value, long)
    if wrong := key.how.wrong(found):
        raise ValueError(wrong)
    return found


def _read(key: Key, value: Any, long: bool) -> Any:
    """Returns a value of the key's kind, whatever its limits."""
    accepted = KINDS[key.kind] + (f", or {key.none}" if key.none else "")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if key.kind == "labels" and isinstance(value, str):
        return _ranges(value, accepted)
    if key.kind in ("wholes", "labels", "texts", "numbers"):
        return _list(key, value)
    if key.kind == "types":
        return _rows(value, accepted)
    if key.kind == "stages":
        if isinstance(value, list | tuple) and all(isinstance(table, dict) for table in value):
            return tuple(value)
        raise ValueError(accepted)
    if key.kind == "mix":
        return _mix(value, accepted)
    if key.kind in SERIES:
        return _series(key, value, accepted)
    if key.kind == "flag" and isinstance(value, bool):
        return value
    if key.kind == "whole" and number and isinstance(value, int):
        if abs(value) >= 2**63:
            raise ValueError(f"{accepted}, below 2**63")
        return value
    if key.kind == "number" and number:
        if not abs(value) < 2**63:
            raise ValueError(f"{accepted}, finite and below 2**63")
        return float(value)
    if key.kind == "text" and isinstance(value, str):
        if not value.isascii() and any(0xD800 <= ord(letter) < 0xE000 for letter in value):
            raise ValueError("text in UTF-8")
        return value
    if key.kind == "date" and isinstance(value, str | date):  # TOML has them, too
        return value if isinstance(value, str) else value.isoformat()
    if key.kind == "zone" and isinstance(value, str):
        return value
    if key.kind in READERS and isinstance(value, str):
        return _quantity(key, value, long)
    if key.kind in READERS and number:
        raise ValueError(f"a bare number; {accepted}")
    raise ValueError(accepted)


def _series(key: Key, value: Any, accepted: str) -> Any:
    """Returns what may change over time as it was given, in tuples; it is read where the file is
    known."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(value, str) or (number and key.kind != "steps"):
        return value
    if isinstance(value, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in value
    ):
        return tuple(tuple(pair) for pair in value)
    raise ValueError(accepted)


def _mix(value: Any, accepted: str) -> tuple[tuple[int, float], ...]:
    """Returns sizes in bytes, each with its part of all messages."""
    pairs: Any = value if isinstance(value, list | tuple) else [None]
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise ValueError(accepted)
    found = []
    for size, part in pairs:
        number = isinstance(part, int | float) and not isinstance(part, bool)
        if not isinstance(size, str) or not number or not 0 < part < math.inf:
            raise ValueError(accepted)
        try:
            found.append((size_bytes(size), float(part)))
        except ValueError as error:
            raise ValueError(f"{accepted}: {error}") from None
    return tuple(found)


def _rows(value: Any, accepted: str) -> Any:
    """Returns a name or the path of a file as it was given, and tables as pairs of column and
    value; what they say is read by `odonata.traces.types`."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(row, dict) for row in value):
        cells = [cell for row in value for cell in row.values()]
        if all(
            isinstance(cell, str | int | float) and not isinstance(cell, bool) for cell in cells
        ):
            return tuple(tuple(row.items()) for row in value)
    raise ValueError(accepted)


def _list(key: Key, value: Any) -> tuple[Any, ...] | str:
    words = [*key.how.words, key.none] if key.none else [*key.how.words]
    if isinstance(value, str) and value in key.how.words:
        return value
    each = {"texts": "text", "numbers": "number"}.get(key.kind, "whole")
    one = replace(COUNT, how=Setting(each, ""))
    if isinstance(value, list | tuple):
        try:
            return tuple(read(one, item) for item in value)
        except ValueError:
            pass
    accepted = f"{', '.join(words)} or {KINDS[key.kind]}" if words else KINDS[key.kind]
    raise ValueError(accepted + meant(value, words))


MOST_LABELS = 10**7
RANGE = re.compile(r"\s*(\d{1,18})(?:\s*-\s*(\d{1,18})(?:\s*:\s*([1-9]\d{0,17}))?)?\s*", re.ASCII)
"""A number; or the first and the last, which is included; and the distance from one to the next."""


def _ranges(text: str, accepted: str) -> tuple[int, ...]:
    """Returns the numbers of a text such as "0-30:2, 40"."""
    numbers: list[int] = []
    for part in text.split(","):
        found = RANGE.fullmatch(part)
        if not found:
            raise ValueError(accepted)
        first, last, step = (None if word is None else int(word) for word in found.groups())
        assert first is not None
        last, step = first if last is None else last, 1 if step is None else step
        if last < first:
            raise ValueError(f"{accepted}; {part.strip()} has no numbers")
        if len(numbers) + (last - first) // step >= MOST_LABELS:
            raise ValueError(f"{accepted}, at most {MOST_LABELS:,}")
        numbers += range(first, last + 1, step)
    return tuple(numbers)


def _quantity(key: Key, text: str, long: bool = False) -> float:
    reader = long_time_ps if long and key.kind == "time" else READERS[key.kind]
    try:
        return reader(text)
    except ValueError as error:  # which begins with the text, as we do
        rule = str(error).removeprefix(repr(text)).removeprefix(":").strip()
        raise ValueError(rule.removeprefix("is ") + (f"; or {key.none}" * bool(key.none))) from None


def _word(key: Key, value: Any) -> str:
    if not key.how.register:
        if wrong := key.how.wrong(value):
            raise ValueError(wrong)
    elif not isinstance(value, str) or not REGISTERS[key.how.register].known(value):
        words, own = words_of(key), OF_YOUR_OWN if isinstance(value, str) else ""
        raise ValueError(f"one of {', '.join(words)}{meant(value, words)}{own}")
    return str(value)


def show(value: Any) -> str:
    """Returns a value as TOML, as in a file, but short."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _short(quoted(value))
    if value and all_are(value, str):
        return _short(f"[{', '.join(map(quoted, value))}]")
    if value and all_are(value, int):
        return _short(str(value))
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a table"
    if isinstance(value, int) and abs(value) >= 10**30:
        return f"about 2**{abs(value).bit_length()}"
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return _short(str(value))


def all_are(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def plain(name: str) -> str:
    """Returns a name, of whatever type, on one line."""
    return _short(name if name.isprintable() and name else quoted(name))


# -- what was meant


def unknown(path: str) -> str:
    """Returns what to print about a key that does not exist: the nearest one."""
    section, _, name = path.rpartition(".")
    kind = section.partition("[")[0]
    if kind != section:  # one of several: what it may hold is all that can be meant
        names = [key.name for key in of(kind)]
        near = nearest(name.replace("-", "_"), names)
        return "unknown; " + (f"did you mean {section}.{near}?" if near
                              else f"one of {', '.join(names)}")  # fmt: skip
    known = section in ("", *SECTIONS)
    name = name.lower().replace("-", "_")
    own = [key for key in of(section) if key.name == name] if known else []
    homes = own or [key for key in KEYS if key.name == name]
    if homes and known and homes[0].section != section:
        home = homes[0]
        place = f"in {bracketed(home.section)}" if home.section else "above all sections"
        return f"unknown; it belongs {place}, as {home.path}"
    if not homes:
        names = [key.name for key in of(section)] if known else []
        near = nearest(name, names)
        homes = [key for key in of(section) if key.name == near] if near else []
        near = near or nearest(name, [key.name for key in KEYS])
        homes = homes or [key for key in KEYS if key.name == near]
    if homes:
        return f"unknown; did you mean {homes[0].path}?"
    if section in SECTIONS:
        return f"unknown; one of {', '.join(key.name for key in of(section))}"
    return f"unknown; {', '.join(key.name for key in of(''))}, or a section: {section_names()}"


def nearest(name: str, names: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name.lower(), list(names), 1)), None)


def section_names() -> str:
    return ", ".join(map(bracketed, SECTIONS))


def bracketed(section: str) -> str:
    return f"[[{section}]]" if section == "jobs" else f"[{section}]"


def from_shell(text: str) -> Any:
    """Returns the value of a `--set`: as TOML if it is that, else as text."""
    try:
        tree = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return tree["value"] if len(tree) == 1 else text


def syntax(message: str, text: str) -> str:
    """Returns the message of tomllib, the line first."""
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    if match:
        said = match[1].replace("Cannot overwrite a value", "a key that was given before")
        return f"line {match[2]}, column {match[3]}: {said}"
    if digits := re.search(r"\d{4300,}", text):  # which Python does not even try to read
        line = text.count("\n", 0, digits.start()) + 1
        return f"line {line}: a number of {len(digits[0])} digits"
    line = text.count("\n") + (not text.endswith("\n"))
    return f"line {line}: {message.removesuffix(' (at end of document)')}"
