"""One value of an experiment file, from TOML to what its field has; and what to say of one that is
none, or of a key that there is not."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable
from typing import Any

from odonata.experiment import keys
from odonata.experiment.keys import JOB_KEYS, JOBS, KEYS, KINDS, OF_JOBS, READERS, SECTIONS, Key
from policies.allocation import ALLOCATIONS
from policies.register import Register
from policies.routing import ROUTINGS
from policies.scheduling import DISCIPLINES
from topology.presets import PRESETS


def words_of(key: Key) -> tuple[str, ...]:
    """Of a word: those accepted, with what was registered since, and what other packages bring."""
    registers: dict[str, Iterable[str]] = {
        "machine.preset": PRESETS, "network.routing": ROUTINGS,
        "scheduler.allocation": ALLOCATIONS, "scheduler.order": DISCIPLINES,
    }  # fmt: skip
    register = registers.get(key.path, ())
    if isinstance(register, Register):
        register.load()
    return tuple(dict.fromkeys((*key.words, *register)))


def read(key: Key, value: Any) -> Any:
    """From TOML to what the field has. Raises ValueError saying what is accepted."""
    if key.none and value == key.none:
        return None
    accepted = KINDS[key.kind] + (f", or {key.none}" if key.none else "")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if key.kind == "word":
        known = isinstance(value, str) and value in key.words
        return value if known else _word(words_of(key), value)
    if key.kind == "wholes":
        return _wholes(key, value)
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
    if key.kind in READERS and isinstance(value, str):
        return _quantity(key, value)
    if key.kind in READERS and number:
        raise ValueError(f"a bare number; {accepted}")
    raise ValueError(accepted)


def _wholes(key: Key, value: Any) -> tuple[int, ...] | str:
    if isinstance(value, str) and value in key.words:
        return value
    one = Key("", "", "whole", None, "", "")
    if isinstance(value, list):
        try:
            return tuple(read(one, item) for item in value)
        except ValueError:
            pass
    words = [*key.words, key.none] if key.none else [*key.words]
    near = nearest(value, words) if isinstance(value, str) else None
    raise ValueError(f"{', '.join(words)} or {KINDS[key.kind]}"
                     + (f"; did you mean {near}?" if near else ""))  # fmt: skip


def _quantity(key: Key, text: str) -> float:
    try:
        return READERS[key.kind](text)
    except ValueError as error:  # which begins with the text, as we do
        rule = str(error).removeprefix(repr(text)).removeprefix(":").strip()
        raise ValueError(rule.removeprefix("is ") + (f"; or {key.none}" * bool(key.none))) from None


def _word(words: tuple[str, ...], value: Any) -> str:
    if isinstance(value, str) and value in words:
        return value
    near = nearest(value, words) if isinstance(value, str) else None
    raise ValueError(f"one of {', '.join(words)}" + (f"; did you mean {near}?" if near else ""))


def show(value: Any) -> str:
    """A value of TOML, as in a file, but short."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _short(keys.quoted(value))
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
    """A name that need not be one, on one line."""
    return _short(name if name.isprintable() and name else keys.quoted(name))


# -- what was meant


def unknown(path: str) -> str:
    """What to say of a key that there is not: the nearest that there is."""
    section, _, name = path.rpartition(".")
    if section.startswith(f"{JOBS}["):
        names = [key.name for key in JOB_KEYS]
        near = nearest(name.replace("-", "_"), names)
        return "unknown; " + (f"did you mean {section}.{near}?" if near
                              else f"one of {', '.join(names)}")  # fmt: skip
    home = next((key for key in KEYS if key.name == name.lower().replace("-", "_")), None)
    if home and section in ("", *SECTIONS) and home.section != section:
        place = f"in [{home.section}]" if home.section else "above all sections"
        return f"unknown; it belongs {place}, as {home.path}"
    if home is None:
        names = [key.name for key in keys.of(section)] if section in ("", *SECTIONS) else []
        near = nearest(name, names) or nearest(name, [key.name for key in KEYS])
        home = next((key for key in KEYS if key.name == near), None)
    if home:
        return f"unknown; did you mean {home.path}?"
    if section in SECTIONS:
        return f"unknown; one of {', '.join(key.name for key in keys.of(section))}"
    return f"unknown; name, about, or a section: {section_names()}"


def nearest(name: str, names: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name.lower(), list(names), 1)), None)


def section_names() -> str:
    names = [*SECTIONS]
    names.insert(names.index(OF_JOBS[0]), JOBS)
    return ", ".join(map(bracketed, names))


def bracketed(section: str) -> str:
    return f"[[{section}]]" if section == JOBS else f"[{section}]"


def from_shell(text: str) -> Any:
    """Of a `--set`: as TOML where it is, else as text."""
    try:
        tree = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return tree["value"] if len(tree) == 1 else text


def syntax(message: str, text: str) -> str:
    """What tomllib says, the line first."""
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    if match:
        said = match[1].replace("Cannot overwrite a value", "a key that was given before")
        return f"line {match[2]}, column {match[3]}: {said}"
    if digits := re.search(r"\d{4300,}", text):  # which Python does not even try to read
        line = text.count("\n", 0, digits.start()) + 1
        return f"line {line}: a number of {len(digits[0])} digits"
    line = text.count("\n") + (not text.endswith("\n"))
    return f"line {line}: {message.removesuffix(' (at end of document)')}"
