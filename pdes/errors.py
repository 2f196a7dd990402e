"""Two ways in which a run can go wrong, told apart because they end differently."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """One thing that is wrong with an object: the `fields` it is about, the one to blame first;
    what was `given` there; and the `rule` that breaks, which says what is accepted."""

    fields: tuple[str, ...]
    given: str
    rule: str

    def __str__(self) -> str:
        return f"{self.given}: {self.rule}"


class Refused(Exception):
    """Bad input, found before (or between) simulating and known to every rank alike.

    Raised on all ranks together: rank 0 says why, everyone leaves in order. Where an object was
    refused, `problems` are all that it has.
    """

    problems: tuple[Problem, ...] = ()


class Fault(Exception):
    """A model broke the engine's rules while simulating.

    Known to one rank only: that rank says why and takes the others down with it.
    """


def require(fine: bool, otherwise: str) -> None:
    """Refuse, unless it is fine."""
    if not fine:
        raise Refused(otherwise)


class Findings:
    """What is wrong with one object: all of it is looked for before it is refused."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def unless(self, fine: bool, given: str, rule: str, *fields: str) -> None:
        """Note a problem, unless it is fine; `fields` as in `Problem`."""
        if not fine:
            self.problems.append(Problem(fields, given, rule))

    def refuse(self) -> None:
        """Refuse, if anything was found: one problem a line, and none twice."""
        if self.problems:
            refusal = Refused("\n".join(dict.fromkeys(map(str, self.problems))))
            refusal.problems = tuple(self.problems)
            raise refusal
