"""What a routing is, and the register of those there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

SIGHTS = ("nothing", "port", "cable")


class Outlook(NamedTuple):
    """Of one way. `queued`: bytes that wait at its port, because they have reserved the link or
    have no credit; where both ways leave by one port, only those in its own channel. `free`: which
    part (0 to 1) of the buffer at its channel's far end is known to be free. `used`: bytes that all
    channels of that port have sent, or are about to, and that were not yet paid back; so even an
    idle network shows what is on the wire."""

    queued: Any
    free: Any
    used: Any


@dataclass(frozen=True)
class Routing:
    """A routing by name. It has a detour decided at the first router or, if `revises`, at every
    router of the source's group until the packet leaves it."""

    name: str
    detours: Callable[[Outlook, Outlook, float, int, int], bool]
    sees: str = "nothing"
    always_straight: bool = False
    """Never detours: fewer virtual channels will do."""
    revises: bool = False
    threshold: float = 1.0
    """How many times worse the straight way may look, unless the user says otherwise."""
    bias: int = 0
    """How many packets worse, in addition."""
    about: str = ""
    """One line: what it is, and the paper it comes from."""

    def __post_init__(self) -> None:
        if self.sees not in SIGHTS:
            raise ValueError(f"sees = {self.sees!r}: one of {', '.join(SIGHTS)}")
        ROUTINGS[self.name] = self


ROUTINGS: dict[str, Routing] = {}


def routing(name: str) -> Routing:
    if name not in ROUTINGS:
        raise ValueError(f"routing = {name!r}: one of {', '.join(sorted(ROUTINGS))}")
    return ROUTINGS[name]
