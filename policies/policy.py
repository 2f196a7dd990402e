"""What every policy has, whatever it decides: a name, a paper, parameters, and maybe a memory."""

from __future__ import annotations

import dataclasses
import inspect
from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from pdes.errors import Fault
from policies.memory import Memory, Sizes
from policies.parameters import check_arguments, parameters_of
from policies.register import REGISTERS, Entry, described

if TYPE_CHECKING:
    from policies.views import Ended

Arrays = Mapping[str, npt.NDArray[Any]]
Remembers = Callable[[Sizes], Arrays]
Learn = Callable[["Ended", Memory], None]


class Policy(ABC):
    """The part that is common to policies of all kinds.

    Its parameters are its dataclass fields. What it has to know from one question to the next, it
    keeps in the arrays that it declares, and nowhere else.
    """

    name: str
    about: str
    """One line."""
    source: str
    """The paper."""

    def __post_init__(self) -> None:
        for one in parameters_of(type(self)):
            one.checked(getattr(self, one.name), getattr(self, "name", type(self).__name__))

    def remembers(self, sizes: Sizes) -> Arrays:
        """Returns the arrays that it wants to keep, as they are at the start of a run. Numbers and
        flags only; the same arrays, of the same shapes, whenever it is asked."""
        return {}

    def learn(self, ended: Ended, memory: Memory) -> None:
        """Called once per job, when the scheduler hears of its end; only where it remembers."""
        return None


@dataclass(frozen=True)
class FunctionPolicy(Policy):
    """A policy that was written as a function."""

    name: str
    about: str
    source: str
    function: Callable[..., Any]
    values: Mapping[str, Any]
    """Its parameters."""
    memory: Remembers | None
    taught: Learn | None

    def __post_init__(self) -> None:
        """Does nothing: its values are checked where it is made."""

    def remembers(self, sizes: Sizes) -> Arrays:
        return {} if self.memory is None else self.memory(sizes)

    def learn(self, ended: Ended, memory: Memory) -> None:
        if self.taught is not None:
            self.taught(ended, memory)


def learn(kind: str, policy: Policy, ended: Ended, memory: Memory | None) -> None:
    """Have a policy that remembers learn of a job's end; a Fault names it if it fails."""
    if memory is None:
        return
    try:
        policy.learn(ended, memory)
    except BaseException as error:
        raise Fault(f"{kind} {policy.name} failed to learn from job {ended.request.number}: "
                    f"{described(error)}") from error  # fmt: skip


def enter(
    kind: str,
    base: type[Policy],
    written: Any,
    adapter: type[FunctionPolicy] | None,
    words: Mapping[str, Any],
    memory: Remembers | None = None,
    learn: Learn | None = None,
    **settings: Any,
) -> None:
    """Enter a class of policies, a subclass of `base`, or a function by way of its adapter, into
    the register of its kind. `words` are name, about and source; without an adapter only a class
    will do.

    A class without an `__init__` becomes a frozen dataclass: its fields are its parameters, and
    nothing of it can change between two questions.
    """
    home = f"{written.__module__}.{written.__qualname__}"
    build: Callable[..., Policy]
    if inspect.isclass(written):
        if memory or learn:
            raise TypeError(f"{home}: a class declares its memory by remembers() and learn()")
        _check_class(written, base, home)
        _make_fields(written, home)
        parameters = parameters_of(written)
        for name, value in {**words, **settings}.items():
            setattr(written, name, value)
        made: Any = written
        build, remembering = made, made.remembers is not Policy.remembers
    elif adapter is None:
        raise TypeError(f"{home}: a {kind} policy is a class")
    else:
        parameters = parameters_of(written)
        _check_function(written, base, memory, learn, home)

        def build(**values: Any) -> Policy:
            return adapter(**words, function=written, values=values, memory=memory, taught=learn,
                           **settings)  # fmt: skip

        remembering = memory is not None
    REGISTERS[kind].add(
        Entry(kind, **words, build=build, parameters=parameters, memory=remembering,
              home=home)
    )  # fmt: skip


def _check_class(written: type, base: type[Policy], home: str) -> None:
    if not issubclass(written, base):
        raise TypeError(f"{home}: derive it from {base.__name__}: class {written.__name__}"
                        f"({base.__name__})")  # fmt: skip
    if unwritten := sorted(getattr(written, "__abstractmethods__", ())):
        raise TypeError(f"{home}: {', '.join(unwritten)}: a subclass of {base.__name__} has to "
                        "define it")  # fmt: skip
    for name in (*base.__abstractmethods__, "remembers", "learn"):
        found = inspect.getattr_static(written, name)
        if inspect.isfunction(found):
            check_arguments(found, _arguments(base, name), f"{home}: its {name} is")


def _check_function(
    written: Callable[..., Any],
    base: type[Policy],
    memory: Remembers | None,
    learn: Learn | None,
    home: str,
) -> None:
    (asked,) = base.__abstractmethods__
    expected = _arguments(base, asked).removeprefix("self, ")
    check_arguments(written, expected, f"{home}:", parameters=True)
    if memory is not None:
        check_arguments(memory, "sizes", f"{home}: its memory is")
    if learn is not None:
        check_arguments(learn, "ended, memory", f"{home}: its learn is")
        if memory is None:
            raise TypeError(f"{home}: learn=... without memory=...: it has nothing to write to")


def _arguments(base: type[Policy], method: str) -> str:
    return ", ".join(inspect.signature(getattr(base, method)).parameters)


def _make_fields(written: type, home: str) -> None:
    """Make a class a dataclass, frozen as its parent or, if that is none, frozen; not one that has
    an `__init__` of its own, or that is one already."""
    of = next(each for each in written.__mro__ if "__init__" in vars(each))
    parent = vars(of).get("__dataclass_params__")
    if "__dataclass_params__" not in vars(written) and (parent or of is object):
        dataclass(frozen=parent.frozen if parent else True)(written)
    for each in written.__mro__:
        for name, value in vars(each).items():
            if isinstance(value, dataclasses.Field):
                raise TypeError(f"{home}: parameter {name} is of {each.__name__}, which has to be "
                                "a dataclass: @dataclass(frozen=True)")  # fmt: skip
