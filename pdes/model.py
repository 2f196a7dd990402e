"""The contract of a model with the engine; `pdes.phold` is its shortest example.

A model is a set of numbered **agents**. Agents are dealt to ranks in whole **units** (a dragonfly
group with its routers and nodes is one; in PHOLD every agent is its own), in order, so that a rank
has a contiguous range of both. Events happen at agents; what happens is the handler:

    @kernel
    def handle(sim, state, time, key, a, b): ...

compiled, called once per event in row order, allowed to change `state` of the agent it is called
for and to call `schedule(sim, time, key, a, b)` at most `fanout` times. It must be a function of
these alone: draw random numbers from `pdes.random` with a count kept in the agent's state. The
state on a rank has rows for that rank's agents only: `local(sim, key)` is the row of the agent that
an event is at. (With ``ODONATA_JIT=0`` it is not compiled, and checks its indices.)

What every model gives is in `Model`; what has a default there, it may leave. Whatever else a model
does is a **facet**, which it takes by inheriting it too: `class Phold(Model, Streams, Audits)`.
There are `Carries`, `Decides`, `Streams`, `Ends`, `Audits`, and `Deals`, in `pdes.dealing`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pdes.errors import Refused
from pdes.events import Rows
from pdes.jit import kernel
from pdes.log import Appended, Array, Log
from pdes.partition import Partition
from pdes.stream import Table


class Lookahead(NamedTuple):
    """The least time in ticks that an event for another rank can take, and what sets it."""

    time: int
    cause: str
    one_rank: bool = False
    """Whether one rank has all there is to do, and nothing ever goes to another; then `cause` says
    what this rank has."""


class Model(ABC):
    name: str
    """An identifier, for messages and checkpoints."""
    handle: Callable[..., None]
    """The handler, a `pdes.jit.kernel` (as a staticmethod)."""
    fanout: int
    """The largest number of events that one call of the handler schedules."""
    kinds: tuple[str, ...]
    """A word for each kind of event, in order, for messages and profiles."""
    tick: str = "ps"
    """The unit in which the model counts time, one of `pdes.clock.TICKS`: every time that the
    engine handles (of events, the end, intervals, the lookahead) is a whole number of it."""
    variant: str = ""
    """The name of this one of several variants in which one model is compiled."""

    @abstractmethod
    def units(self) -> npt.NDArray[np.int64]:
        """Returns the first agent of each unit, and last the number of agents: unit u has the
        agents units[u] .. units[u + 1] - 1."""

    def weights(self) -> npt.NDArray[np.float64]:
        """Returns how much work each unit is, for an even partition."""
        return np.ones(len(self.units()) - 1)

    @abstractmethod
    def lookahead(self, partition: Partition) -> Lookahead:
        """Returns the lookahead under this partition. Asked only where there are several ranks."""

    @abstractmethod
    def state(self, first: int, last: int) -> NamedTuple:
        """Returns fresh arrays for the agents first .. last - 1, of all that a handler reads or
        writes: a NamedTuple, defined at the top level of an importable module."""

    @abstractmethod
    def start(self, state: Any, first: int, last: int) -> Rows:
        """Returns the first events of those agents, given the state made for them."""

    @abstractmethod
    def fingerprint(self, state: Any) -> Array:
        """Returns a row for each of the agents that changes with anything in its state."""

    def parameters(self) -> Mapping[str, int | float | str]:
        """Returns everything that decides the outcome, under the user's names: by default the
        fields of a dataclass. A checkpoint is resumed only by a model with equal parameters."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    def outcome(self, state: Any, pending: Rows, parcels: Rows, time: int) -> Mapping[str, Array]:
        """Returns what a user wants to know in the end: arrays with a row for each of the agents
        (or of whatever: the run's `Result` has those of all ranks, one after the other). `pending`
        are the events that are left, in no order, `time` is the time that the run has reached."""
        return {}


@kernel
def nothing(sim: Any, state: Any, time: int, key: int, a: int, b: int) -> None:
    """A model that receives nothing."""


class Carries:
    """Some events carry more than two words, or are received ahead of their time."""

    parcel: int = 0
    """Words of a parcel, where events carry more than two words (`pdes.parcels`)."""
    bearers: tuple[int, ...] = ()
    """The kinds of events, below 63, that bear one."""
    takes: int = 0
    """The largest number of parcels that one call of the handler takes."""
    receipts: tuple[int, ...] = ()
    """The kinds of events, below 63, that `receive` accepts when they come from another rank."""
    receive: Callable[..., None] = staticmethod(nothing)
    """Called for these, once, before the event's time has come, instead of `handle` at that time.
    For what only has to be noted down, dated, to be read by handlers later: nothing may depend on
    when it was called. It may take one parcel, and schedule one event on this rank."""


Event = tuple[int, int, int, int]
"""An event: time, key and two words of the model's own."""
Made = Event | list[Event] | Rows
"""The events of a decision: one, some, or rows of them."""


class Decision(NamedTuple):
    """The events of a decision, and the rows that it appends to logs: each is the name of a log and
    the values of its columns, in order, without the time, which is that of the decision."""

    events: Made
    log: Appended = ()


class Decides:
    """Some kinds of events are handled in Python (`pdes.decisions`)."""

    decisions: tuple[int, ...] = ()
    """The kinds of events, below 63, that `decide` handles, in Python; they bear no parcel."""
    notices: tuple[int, ...] = ()
    """The kinds, below 63, of a decision's events of which every rank gets one, at its first agent:
    what all have to know, and what changes no agent's state in the eyes of `fingerprint`."""

    def decide(self, state: Any, time: int, key: int, a: int, b: int) -> Made | Decision:
        """Returns what comes of an event, in one of the forms of `pdes.decisions`: any number of
        events, by the rules of a handler, of no kind that is received."""
        return []

    def rehearse(self, state: Any) -> None:
        """Call every kernel that `decide` calls, on a fresh state that is used for nothing else: so
        that they are compiled before the clock starts."""


class Streams:
    """Something can be recorded while the run goes on (`pdes.stream`, `pdes.log`)."""

    noted_every: int | None = None
    """After how many events at most `noted` is asked: a model whose handler notes down at most n
    rows per call needs room for n times as many. None: whenever it suits the engine."""

    def tables(self, interval: int) -> Mapping[str, Table]:
        """Returns, by name, the tables that can be sampled at every such interval."""
        return {}

    def logs(self) -> Mapping[str, Log]:
        """Returns, by name, the logs to which decisions and handlers append rows."""
        return {}

    def noted(self, state: Any) -> Appended:
        """Returns the rows of logs, as blocks, that handlers have noted down in the state since it
        was last asked, and takes them out of there. Asked before logs are written, and after every
        `noted_every` events. Where a handler runs out of room before that, it schedules a decision
        of the present instant, which answers with these rows."""
        return ()


class Tally(NamedTuple):
    """How much of a run is done, in things that its user counts, as jobs."""

    done: int
    of: int
    what: str


class Ends:
    """The model knows what is left to do, so that a run needs no end."""

    perpetual: tuple[int, ...] = ()
    """The kinds of events that come again and again whatever happens, and cause none but these:
    where no other is left, a run without an end is over."""

    def left(self, state: Any, pending: Callable[[], Rows]) -> int:
        """Returns what is left to happen here, in any measure that sums to 0 over all ranks when
        nothing measurable is, and not before: then streams end. It may not depend on the partition.
        By default streams go on to the end of the run."""
        return 1

    def tally(self, state: Any) -> Tally | None:
        """Returns how much is done, for the progress that a user is shown, as far as the first rank
        knows; None where there is nothing to count. Asked on that rank alone, now and then."""
        return None

    def earliest(self) -> int:
        """Returns a time before which a run without an end is not over, in ticks: until then nobody
        looks whether it is."""
        return 0

    def goal(self, state: Any, pending: Callable[[], Rows]) -> int:
        """Returns what a run without an end goes on for, in any measure that sums to 0 over all
        ranks when it has come to that: by default all that is left."""
        return self.left(state, pending)

    def conclude(self, state: Any, time: int) -> None:
        """Close the books of a run that has come to its end at this time, before what is left of
        it is written: for what happens at the end itself, as events before it are handled alone."""
        return None

    def over(self, state: Any) -> int | None:
        """Returns when the last of what `left` measures happened here: where a run has no end, the
        latest of these is the time that it has reached. None: when that was noticed."""
        return None


class Audits:
    """The model can tell that something is wrong with it."""

    watches: bool = False
    """Whether it may come to a standstill that its events do not show, which is then looked for at
    fixed times while it runs (`suspects`)."""

    def suspects(self, state: Any, time: int) -> int:
        """Returns how much here looks as if it will never go on. If that is anything on any rank,
        all are asked for `evidence`."""
        return 0

    def evidence(self, state: Any, pending: Rows, parcels: Rows) -> Any:
        """Returns what `stuck` needs to know of this rank."""
        return None

    def stuck(self, evidence: Sequence[Any]) -> bool:
        """Tells, from the evidence of all ranks, whether something will never go on: then the run
        ends here."""
        return False

    def check(self, state: Any, pending: Rows, parcels: Rows) -> None:
        """Raise AssertionError where an invariant fails, given this rank's events, in no order, and
        parcels. Called after every event under debug, and at the end of every run."""


Facet = TypeVar("Facet")


def facet(model: Model, kind: type[Facet]) -> Facet:
    """Returns the model, if it takes this facet, or else the facet by itself, with its defaults."""
    if isinstance(model, kind):
        return model
    for name in vars(kind):
        if not name.startswith("_") and hasattr(type(model), name):
            raise Refused(f"{model.name}: has `{name}`, so its class must inherit "
                          f"`{kind.__module__}.{kind.__name__}`, too")  # fmt: skip
    return kind()
