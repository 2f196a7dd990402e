"""Parameters of a policy: what a user may set, with its unit, its range and its default.

A class declares them as dataclass fields, a function as keyword-only arguments; `parameter` adds
what a bare default cannot say::

    @dataclass(frozen=True)
    class Snug(AllocationPolicy):
        spare: int = parameter(2, unit="nodes", about="left idle in a group", least=0)

    def snug(sight, job, rng, *, spare=parameter(2, unit="nodes", about="left idle", least=0)):
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pdes.errors import Refused
from topology.settings import Setting

ACCEPTED = {bool: "flag", int: "whole", float: "number", str: "text"}
"""The types that a parameter may have, and the kinds of settings that these are."""
TICKS_AND_BYTES = {"time": "ticks", "size": "bytes"}
"""What Python gives where a file gives text."""

Values = Mapping[str, Any] | Iterable[tuple[str, Any]]
"""The parameters of a policy, by name."""


class Parameter(NamedTuple):
    """One parameter. Its type is that of its default. `unit` is "time" (ticks of the model), "size"
    (bytes), both of which an experiment file gives as text such as "5 us"; or any other word, which
    is only shown. Text may be one of some `words`."""

    name: str
    type: type
    default: Any
    unit: str = ""
    about: str = ""
    least: float | None = None
    most: float | None = None
    words: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Returns its kind, as a `Setting` has it."""
        return self.unit if self.unit in TICKS_AND_BYTES else ACCEPTED[self.type]

    @property
    def setting(self) -> Setting:
        """Returns the same as what a key is made of."""
        unit = TICKS_AND_BYTES.get(self.unit, self.unit)
        return Setting("word" if self.words else self.kind, self.about, words=self.words,
                       least=self.least, most=self.most, unit=unit)  # fmt: skip

    @property
    def accepted(self) -> str:
        """Says in words what it may be."""
        return self.setting.all_accepted

    def checked(self, value: Any, whose: str) -> Any:
        """Returns the value, a whole number as a float where one is wanted; refused if it is not
        what is accepted."""
        if self.setting.wrong(value):
            raise Refused(f"{whose}: {self.name} = {value!r}: {self.setting.told(value)}")
        return self.type(value)


def in_ticks(parameters: Iterable[Parameter], values: Values, tick_ps: int) -> dict[str, Any]:
    """Returns values in which times, which a file gives in picoseconds, are ticks of a model."""
    times = {one.name for one in parameters if one.unit == "time"}
    return {name: value // tick_ps if name in times and tick_ps > 1 else value
            for name, value in dict(values).items()}  # fmt: skip


def parameter(
    default: Any,
    *,
    unit: str = "",
    about: str = "",
    least: float | None = None,
    most: float | None = None,
    words: Iterable[str] = (),
) -> Any:
    """Declares a parameter, as the default of a dataclass field or of a keyword-only argument."""
    said = {"unit": unit, "about": about, "least": least, "most": most, "words": tuple(words)}
    return dataclasses.field(default=default, metadata=said)


def check_word(name: str, word: str, words: Iterable[str]) -> None:
    """Raises ValueError where a parameter that is one of some words is none of them."""
    if word not in words:
        raise ValueError(f"{name} = {word!r}: one of {', '.join(words)}")


def parameters_of(written: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Lists what a class of policies has as dataclass fields, or a function as keyword-only
    arguments. Raises ValueError where one has no default, or one of another type."""
    return tuple(_parameter(name, default, written.__name__) for name, default in _given(written))


def check_arguments(
    function: Callable[..., Any], expected: str, what: str, parameters: bool = False
) -> None:
    """Raises TypeError where a function cannot be called with the arguments that are `expected`, or
    has keyword-only ones that nobody gives it: only policies written as functions have
    `parameters`."""
    signature = inspect.signature(getattr(function, "py_func", function))
    own = [each for each in signature.parameters.values() if each.kind is each.KEYWORD_ONLY]
    bound = isinstance(function, functools.partial)
    try:
        signature.bind(*expected.split(", "))
        fits = parameters or bound or not own
    except TypeError:
        fits = False
    if not fits:
        more = ", then * and its parameters" if parameters else ", and has no parameters of its own"
        raise TypeError(f"{what} a function of ({expected}){more}")


def _given(written: Callable[..., Any]) -> Iterable[tuple[str, Any]]:
    if inspect.isclass(written):
        if dataclasses.is_dataclass(written):
            yield from ((field.name, field) for field in dataclasses.fields(written) if field.init)
        return
    for name, argument in inspect.signature(written).parameters.items():
        if argument.kind is argument.KEYWORD_ONLY:
            yield name, argument.default


def _parameter(name: str, default: Any, whose: str) -> Parameter:
    said: dict[str, Any] = {}
    if isinstance(default, dataclasses.Field):
        default, said = default.default, dict(default.metadata)
    if type(default) not in ACCEPTED:
        kinds = ", ".join(kind.__name__ for kind in ACCEPTED)
        raise ValueError(f"{whose}: parameter {name} needs a default that is {kinds}")
    return Parameter(name, type(default), default, **said)
