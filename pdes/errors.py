"""Two ways in which a run can go wrong, told apart because they end differently."""

from __future__ import annotations


class Refused(Exception):
    """Bad input, found before (or between) simulating and known to every rank alike.

    Raised on all ranks together: rank 0 says why, everyone leaves in order.
    """


class Fault(Exception):
    """A model broke the engine's rules while simulating.

    Known to one rank only: that rank says why and takes the others down with it.
    """


def require(fine: bool, otherwise: str) -> None:
    """Refuse, unless it is fine."""
    if not fine:
        raise Refused(otherwise)
