"""The outcomes of a plan, from which claims and figures are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic

from odonata.study.contract import C, O, P


@dataclass(frozen=True)
class Measured(Generic[P, C, O]):
    """What was asked for, and the outcomes that there are of it, by key."""

    asked: P
    outcomes: Mapping[str, O]

    def of(self, case: C) -> O | None:
        """Returns the outcome of a case; None where there is none yet."""
        return self.outcomes.get(case.key)

    def there(self, cases: Iterable[C]) -> list[O]:
        """Returns the outcomes that there are of these cases."""
        return [self.outcomes[case.key] for case in cases if case.key in self.outcomes]

    def every(self, cases: Iterable[C]) -> list[O]:
        """Returns the outcomes of these cases; none of them, unless all are there."""
        found = [self.of(case) for case in cases]
        return [] if None in found else [it for it in found if it is not None]

    def each(self, cases: Iterable[C], value: Callable[[O], float | None]) -> list[float | None]:
        """Returns a value of each of these cases; None of one that has no outcome yet."""
        return [None if it is None else value(it) for it in map(self.of, cases)]
