"""The two ways in which a run can fail, kept apart because they end differently."""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

CURES = {
    errno.EISDIR: "a file is needed: name one in it",
    errno.ENOTDIR: "a part of this path is a file: name another place",
    errno.EEXIST: "a directory is needed: remove the file, or name another place",
    errno.ENOENT: "the file, or the directory it would be in, must be there: check the path",
    errno.EACCES: "change its permissions (chmod), or name another place",
    errno.EPERM: "change its permissions (chmod), or name another place",
    errno.EROFS: "name another place",
    errno.ENOSPC: "make room, or name another place",
    errno.EDQUOT: "make room, or name another place",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}
"""What a user can do about an error of the operating system."""


class Problem(NamedTuple):
    """One thing that is wrong with an object: the `fields` it is about, the most likely cause
    first; the value `given` there; and the broken `rule`, which says what is accepted."""

    fields: tuple[str, ...]
    given: str
    rule: str

    def __str__(self) -> str:
        return f"{self.given}: {self.rule}"


class Refused(Exception):
    """Bad input, found before (or between) simulating and known to every rank alike.

    It is raised on all ranks together: rank 0 prints the reason, all leave in order. Where an
    object was refused, `problems` are all that it has.
    """

    problems: tuple[Problem, ...] = ()


class Fault(Exception):
    """A model broke the engine's rules while simulating.

    It is known to one rank only: that rank prints the reason and ends the others.
    """


def os_words(error: OSError) -> str:
    """Returns a sentence for what the operating system refused: the path, the problem, the cure."""
    if error.errno is None:
        return str(error) or type(error).__name__
    path = "" if error.filename is None else f"{os.fspath(error.filename)!s}: "
    cure = CURES.get(error.errno)
    return f"{path}{error.strerror or os.strerror(error.errno)}" + (f"; {cure}" if cure else "")


def require(fine: bool, otherwise: str) -> None:
    """Refuse, unless the condition holds."""
    if not fine:
        raise Refused(otherwise)


class Findings:
    """The problems of one object: all of them are collected before it is refused."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def unless(self, fine: bool, given: str, rule: str, *fields: str) -> None:
        """Note a problem, unless the condition holds; `fields` as in `Problem`."""
        if not fine:
            self.problems.append(Problem(fields, given, rule))

    def refuse(self) -> None:
        """Refuse, if anything was found: one problem per line, and none twice."""
        if self.problems:
            refusal = Refused("\n".join(dict.fromkeys(map(str, self.problems))))
            refusal.problems = tuple(self.problems)
            raise refusal
