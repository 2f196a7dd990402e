"""What a routing is, and the register of those there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

from pdes.errors import Refused
from pdes.jit import kernel
from policies.parameters import Parameter, check_arguments
from policies.register import MISSING, REGISTERS, Entry, Register

SIGHTS = ("nothing", "port", "cable")

Decision = Callable[["Outlook", "Outlook", float, int, int], bool]
Written = TypeVar("Written", bound=Callable[..., Any])


class Outlook(NamedTuple):
    """The state of one path. `queued`: bytes that wait at its port, because they have reserved the
    link or have no credit; where both paths leave by one port, only those in its own channel.
    `free`: which part (0 to 1) of the buffer at its channel's far end is known to be free. `used`:
    bytes that all channels of that port have sent, or are about to, and that were not yet paid
    back; so even an idle network shows what is on the wire."""

    queued: Any
    free: Any
    used: Any


@dataclass(frozen=True)
class Routing(Entry):
    """A routing by name. It chooses between the minimal and a non-minimal path at the first router
    or, if it `revises`, at every router of the source's group until the packet leaves it."""

    decision: Decision | None = None
    """The kernel, as `routing` describes it."""
    sees: str = "nothing"
    always_minimal: bool = False
    """It never takes a non-minimal path: fewer virtual channels will do."""
    revises: bool = False

    @property
    def non_minimal(self) -> Decision:
        """Returns the kernel; refused where its plug-in is missing."""
        if self.decision is None:
            raise Refused(f"routing {self.name}: {MISSING}; give it with --plugin FILE")
        return self.decision

    @property
    def threshold(self) -> float:
        """How many times worse the minimal path may look, unless the user says otherwise."""
        return float(self._default("threshold", 1.0))

    @property
    def bias(self) -> int:
        """How many packets worse, in addition."""
        return int(self._default("bias", 0))

    def _default(self, name: str, otherwise: Any) -> Any:
        return next((each.default for each in self.parameters if each.name == name), otherwise)


ROUTINGS: Register[Routing] = cast(Any, REGISTERS["routing"])
ROUTINGS.entry = Routing


def routing(
    name: str,
    *,
    about: str,
    source: str,
    sees: str = "nothing",
    always_minimal: bool = False,
    revises: bool = False,
    threshold: float | None = None,
    bias: int | None = None,
) -> Callable[[Written], Written]:
    """Register the function it stands above as a routing; which stays what it is.

    `non_minimal(minimal, valiant, threshold, bias, word)` is compiled as a kernel and returns
    whether the packet takes the non-minimal path. `minimal` and `valiant` are the `Outlook`s of the
    minimal path and of one by a random intermediate, `word` is 32 random bits. A routing that goes
    by a threshold, or by a bias (in bytes; its default is in packets), gives their defaults here.
    """
    if sees not in SIGHTS:
        raise ValueError(f"sees = {sees!r}: one of {', '.join(SIGHTS)}")
    parameters = [
        Parameter(each, type(default), default, unit, words, least)
        for each, default, unit, words, least in (
            ("threshold", threshold, "", "how many times worse the minimal path may look", 0.0),
            ("bias", bias, "packets", "how much worse it may look in addition", None),
        )
        if default is not None
    ]

    def decorate(written: Written) -> Written:
        check_arguments(
            written, "minimal, valiant, threshold, bias, word", f"{written.__name__}: a routing is"
        )
        ROUTINGS.add(
            Routing(
                "routing", name, about, source,
                parameters=tuple(parameters),
                home=f"{written.__module__}.{written.__qualname__}",
                decision=written if hasattr(written, "py_func") else kernel(written),
                sees=sees, always_minimal=always_minimal, revises=revises,
            )
        )  # fmt: skip
        return written

    return decorate
