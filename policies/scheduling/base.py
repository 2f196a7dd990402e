"""What a queue discipline is asked and answers, and the register of those there are."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from pdes.errors import Fault
from policies.register import Register


class Waiting(NamedTuple):
    """A job in the queue."""

    number: int
    nodes: int
    arrival_ps: int


class SchedulingPolicy(ABC):
    """Says in which order waiting jobs are tried.

    Of jobs of 8, 2 and 4 nodes, in order of arrival, `small-first` answers [1, 2, 0]: the job at
    position 1 is tried first.
    """

    name: str
    about: str
    """One line."""
    source: str
    """The paper."""
    strict: bool = True
    """Nobody passes a job that does not fit: the first that does not ends the round. Where this is
    False, those behind it are tried as well."""

    @abstractmethod
    def order(self, waiting: Sequence[Waiting]) -> list[int]:
        """Positions in `waiting`, each once. `waiting` is in order of arrival, jobs that came
        together in order of their numbers; called by `order_of` alone, which checks the answer."""


Order = Callable[[Sequence[Waiting]], list[int]]
Written = TypeVar("Written", bound=Order | type[SchedulingPolicy])

DISCIPLINES: Register[SchedulingPolicy] = Register("scheduling")


@dataclass(frozen=True)
class Plain(SchedulingPolicy):
    """A discipline that is a function."""

    name: str
    about: str
    source: str
    function: Order
    strict: bool = True

    def order(self, waiting: Sequence[Waiting]) -> list[int]:
        return self.function(waiting)


def discipline(
    name: str, *, about: str, source: str, strict: bool | None = None
) -> Callable[[Written], Written]:
    """Register what it stands above, a function `order(waiting)` or a subclass of
    `SchedulingPolicy` that needs no arguments; which stays what it is."""

    def register(written: Written) -> Written:
        what: Any = written
        if inspect.isclass(written):
            what.name, what.about, what.source = name, about, source
            if strict is not None:
                what.strict = strict
            policy = what()
        else:
            policy = Plain(name, about, source, what, strict is not False)
        DISCIPLINES.add(policy, (what.__module__, what.__qualname__))
        return written

    return register


def discipline_named(name: str) -> SchedulingPolicy:
    """Refused where there is none, with those whose names are near."""
    return DISCIPLINES.named(name)


def order_of(policy: SchedulingPolicy, waiting: Sequence[Waiting]) -> list[int]:
    """The one way to ask: a Fault if it does not name every waiting job once."""
    try:
        order = [int(position) for position in policy.order(waiting)]
    except Exception as error:
        raise Fault(f"scheduling {policy.name} failed: {type(error).__name__}: {error}") from error
    if sorted(order) != list(range(len(waiting))):
        raise Fault(f"scheduling {policy.name}, of {len(waiting)} jobs: {order} does not name each "
                    "position once")  # fmt: skip
    return order
