"""What a field of a dataclass says of itself to users, its unit, its limits, what it is about; and
whether a value is that.

A key of an experiment file, its option on the command line, its line in `odonata schema` and the
check of its value are made from the field that it sets (`odonata.experiment.keys`), so that each is
declared once. This stands here because the machine has fields that users set, and the topology
imports nothing of ours.
"""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import Field, dataclass, field, fields
from functools import cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

HOME = "setting"
"""Where in a field's metadata its setting is."""
WHOLE = ("whole", "wholes", "labels", "time", "size", "signed size")
REAL = ("number", "numbers", "bandwidth", "power", "energy")
SEVERAL = ("wholes", "labels", "numbers")
"""The kinds that are numbers, and of these the ones that are lists: the limits are of each."""
FROM_ZERO = ("time", "size", "power", "energy")
"""The kinds that are not negative."""
NOUNS = {
    "whole": "a whole number", "number": "a number", "flag": "true or false", "text": "text",
    "wholes": "a list of whole numbers", "labels": "a list of whole numbers",
    "numbers": "a list of numbers", "time": "a time", "size": "a size", "signed size": "a size",
    "bandwidth": "a bandwidth", "power": "a power", "energy": "an energy",
}  # fmt: skip
UNITS = {"time": "ps", "size": "B", "signed size": "B", "bandwidth": "B/s", "power": "W",
         "energy": "J"}  # fmt: skip
"""In which unit Python has a quantity."""
LARGER = {
    "ps": {"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3},
    "B": {"TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10},
    "B/s": {"PB/s": 10**15, "TB/s": 10**12, "GB/s": 10**9, "MB/s": 10**6},
    "W": {"GW": 10**9, "MW": 10**6, "kW": 10**3},
}
"""The larger units in which a limit is told that is a whole number of them."""
SUFFIXES = ("_ps", "_bytes", "_w", "_j")
"""Ends that names of fields have, and names of keys do not."""


@dataclass(frozen=True)
class Setting:
    """How a user sets a field. `kind` is one of `odonata.experiment.keys.KINDS`, or "links" for a
    field that is itself made of settings."""

    kind: str
    about: str
    name: str = ""
    """The name of its key; by default the field's, without a unit at its end."""
    section: str = ""
    """The section its key is in, where that is not the one of its class."""
    words: tuple[str, ...] = ()
    """The words that are accepted; in place of a list of numbers, if the kind is that."""
    register: str = ""
    """The kind of policies whose names are accepted."""
    none: str = ""
    """The word that stands for None."""
    otherwise: str = ""
    """What it is if not given, where that depends on something else; in words."""
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    """The limits of a number, in the unit of its field."""
    packets: int | None = None
    """The most that a run of packets can number, where that is less."""
    unit: str = ""
    """What a bare number counts, as nodes."""
    rule: Callable[[Any], object] | None = None
    """Raises ValueError, saying what is accepted, where a value of its kind and within its limits
    is not."""
    accepted: str = ""
    """What is accepted, in words, where the limits do not say why."""
    option: str = ""
    """The name of its option on the command line, where that differs from the key's."""

    @property
    def lowest(self) -> float | None:
        """The least that is accepted, None where there is another lower limit, or none."""
        open_below = self.least is None and self.above is None
        return 0 if open_below and self.kind in FROM_ZERO else self.least

    @property
    def limits(self) -> str:
        """Says in words within which limits a number must be, or which words there are."""
        if self.accepted:
            return self.accepted
        if self.words and self.kind not in SEVERAL:
            return f"one of {', '.join(self.words)}"
        low, above, most, below = (
            None if limit is None else shown(limit, "" if self.unit else UNITS.get(self.kind, ""))
            for limit in (self.lowest, self.above, self.most, self.below)
        )
        if low is not None and most is not None:
            return f"{low} .. {most}"
        words = (("at least", low), ("above", above), ("at most", most), ("below", below))
        return ", ".join(f"{word} {limit}" for word, limit in words if limit is not None)

    @property
    def kinds(self) -> str:
        """Says in words what it may be, whatever its limits."""
        of_unit = f" of {self.unit}" if self.unit and self.kind not in UNITS else ""
        either = "".join(f"{word} or " for word in self.words) if self.kind in SEVERAL else ""
        return f"{either}{NOUNS.get(self.kind, '')}{of_unit}"

    @property
    def all_accepted(self) -> str:
        """Says in words all that is accepted."""
        return ", ".join(filter(None, (self.kinds, self.limits)))

    def wrong(self, value: Any) -> str:
        """Says what would be accepted in place of a value, nothing where it is accepted."""
        either = f", or {self.none}" if self.none else ""
        if value is None and self.none:
            return ""
        if self.words and (isinstance(value, str) or self.kind == "word"):
            words = self.kinds if self.kind in SEVERAL else self.limits
            return "" if value in self.words else words + either + meant(value, self.words)
        if not self._is_of_kind(value):
            return self.told(value)
        if not self._is_within(value):
            return self.limits + either
        try:
            if self.rule is not None:
                self.rule(value)
        except ValueError as error:
            return str(error)
        return ""

    def told(self, value: Any) -> str:
        """Says in words all that is accepted in place of a value: where this is a quantity as a
        file gives it, in which unit Python does."""
        either = f", or {self.none}" if self.none else ""
        unit = self.unit or UNITS.get(self.kind, "")
        text = self.kind in UNITS and isinstance(value, str)
        return self.all_accepted + either + (f"; in Python, a number of {unit}" if text else "")

    def _is_of_kind(self, value: Any) -> bool:
        if self.kind in SEVERAL:
            test = _is_whole if self.kind in WHOLE else _is_number
            return isinstance(value, list | tuple) and all(map(test, value))
        if self.kind in WHOLE:
            return _is_whole(value)
        if self.kind in REAL:
            return _is_number(value)
        accepted = {"flag": bool, "text": str, "word": str}.get(self.kind, object)
        return isinstance(value, accepted)

    def _is_within(self, value: Any) -> bool:
        if self.kind not in (*WHOLE, *REAL) or value in ((), []):
            return True
        low, high = (min(value), max(value)) if self.kind in SEVERAL else (value, value)
        return (
            (self.lowest is None or low >= self.lowest)
            and (self.above is None or low > self.above)
            and (self.most is None or high <= self.most)
            and (self.below is None or high < self.below)
        )


def _is_whole(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool | np.bool_ | np.ndarray)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    return isinstance(value, int) or math.isfinite(value)


def shown(limit: float, unit: str = "") -> str:
    """Returns a limit for people: a large power of two as that, a quantity in a unit that fits."""
    for larger, size in LARGER.get(unit, {}).items():
        if limit and limit % size == 0:
            return f"{limit // size:,g} {larger}"
    for off in (0, 1) if isinstance(limit, int) else ():
        power = int(abs(limit)) + off
        if power >= 2**20 and power.bit_count() == 1:
            sign, end = "-" * (limit < 0), f" {'-+'[limit < 0]} 1" * off
            return f"{sign}2**{power.bit_length() - 1}{end} {unit}".strip()
    number = f"{limit:,}" if isinstance(limit, int) else f"{limit:g}"
    return f"{number} {unit}".strip() if limit else "0"


def meant(word: Any, words: Iterable[str], before: str = "") -> str:
    """Returns a hint at the word that may have been meant, with what is to be said before it; an
    empty one if none is like this."""
    near = difflib.get_close_matches(word.lower(), [*words], 1) if isinstance(word, str) else ()
    return f"; did you mean {before}{near[0]}?" if near else ""


def required(kind: str, about: str, **more: Any) -> dict[str, Setting]:
    """The metadata of a field without a default: `nodes: int = field(metadata=required(...))`."""
    return {HOME: Setting(kind, about, **more)}


def setting(default: Any, kind: str, about: str, **more: Any) -> Any:
    """A field that has a default and that a user can set."""
    return field(default=default, metadata={HOME: Setting(kind, about, **more)})


@cache
def _settings_of(owner: type) -> tuple[tuple[Field[Any], Setting], ...]:
    return tuple((one, one.metadata[HOME]) for one in fields(owner) if HOME in one.metadata)


def settings_of(owner: type) -> Iterator[tuple[Field[Any], Setting]]:
    """The fields of a dataclass that a user can set, in their order."""
    return iter(_settings_of(owner))


def key_of(field_name: str, how: Setting) -> str:
    """Returns the name of the key that sets a field."""
    name = how.name or field_name
    for suffix in () if how.name else SUFFIXES:
        name = name.removesuffix(suffix)
    return name


class Broken(NamedTuple):
    """A rule that an object breaks: the `fields` it is about, the most likely cause first; the
    value `given` there; and what would be accepted."""

    fields: tuple[str, ...]
    given: str
    rule: str

    def __str__(self) -> str:
        return f"{self.given}: {self.rule}"


def check(thing: Any, but: Iterable[str] = ()) -> Iterator[Broken]:
    """Finds the fields of a dataclass that are not as they are declared, `but` for some. Sound
    numbers of numpy become those of Python."""
    for one, how in settings_of(type(thing)):
        value = getattr(thing, one.name)
        if one.name in but or (value is None and one.default is None):
            continue
        if how.kind == "links":
            kind = type(one.default)
            wrong = "" if isinstance(value, kind) else f"a {kind.__name__}"
        else:
            wrong = how.wrong(value)
        if wrong:
            yield Broken((one.name,), f"{key_of(one.name, how)} = {_given(how, value)}", wrong)
        elif how.kind in WHOLE and type(value) is not int and _is_whole(value):
            object.__setattr__(thing, one.name, operator.index(value))
        elif how.kind in REAL and type(value) is not float and _is_number(value):
            object.__setattr__(thing, one.name, float(value))


def _given(how: Setting, value: Any) -> str:
    if isinstance(value, Real) and not isinstance(value, bool):
        number = f"{value:.10g}" if how.kind in REAL else f"{value}"
        return f"{number} {UNITS.get(how.kind, '')}".strip()
    plain = isinstance(value, str) and how.kind not in NOUNS
    return value if plain else repr(value)
