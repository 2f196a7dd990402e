"""The contract of a model with the engine, on one page; `pdes.phold` is its shortest example.

A model is a set of numbered **agents**. Agents are dealt to ranks in whole **units** (a dragonfly
group with its routers and nodes is one; in PHOLD every agent is its own), in order, so that a rank
has a contiguous range of both. Events happen at agents; what happens is the handler:

    @kernel
    def handle(sim, state, time, key, a, b): ...

compiled, called once per event in row order, allowed to change `state` of the agent it is called
for and to call `schedule(sim, time, key, a, b)` at most `fanout` times. It must be a function of
these alone: draw random numbers from `pdes.random` with a count kept in the agent's state. The
state on a rank has rows for that rank's agents only: `local(sim, key)` is the row of the agent that
an event is at. (Compiled code does not check its indices; with ``ODONATA_JIT=0`` it is not compiled
and does, on any number of ranks.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pdes.dealing import Dealing
from pdes.events import Rows
from pdes.jit import kernel
from pdes.log import Appended, Log
from pdes.partition import Partition
from pdes.stream import Table

Event = tuple[int, int, int, int]
"""An event: time, key and two words of the model's own."""
Made = Event | list[Event] | Rows
"""The events of a decision: one, some, or rows of them."""


class Decision(NamedTuple):
    """The events of a decision, and the rows that it appends to logs: each is the name of a log and
    the values of its columns, in order, without the time, which is that of the decision."""

    events: Made
    log: Appended = ()


class Tally(NamedTuple):
    """How much of a run is done, in things that its user counts, as jobs."""

    done: int
    of: int
    what: str


class Lookahead(NamedTuple):
    """The least time that an event for another rank can take, in ticks, and what sets it (named in
    errors)."""

    time: int
    cause: str
    one_rank: bool = False
    """Whether one rank has all there is to do, and nothing ever goes to another; then `cause` says
    what this rank has."""


@kernel
def nothing(sim: Any, state: Any, time: int, key: int, a: int, b: int) -> None:
    """A model that receives nothing."""


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

    alone: bool = False
    """Whether the first unit has rank 0 to itself, where there is more than one rank."""

    decisions: tuple[int, ...] = ()
    """The kinds of events, below 63, that `decide` handles, in Python; they bear no parcel."""

    notices: tuple[int, ...] = ()
    """The kinds, below 63, of a decision's events of which every rank gets one, at its first agent:
    what all have to know, and what changes no agent's state in the eyes of `fingerprint`."""

    perpetual: tuple[int, ...] = ()
    """The kinds of events that come again and again whatever happens, and cause none but these:
    where no other is left, a run without an end is over."""

    noted_every: int | None = None
    """After how many events at most `noted` is asked: a model whose handler notes down at most n
    rows per call needs room for n times as many. None: whenever it suits the engine."""

    def decide(self, state: Any, time: int, key: int, a: int, b: int) -> Made | Decision:
        """Returns the events of a decision: any number of events, of no kind that is received. One
        that bears no parcel may be a tuple (time, key, a, b), which is quickest, and several a list
        of these; or they are rows, with room for a parcel's words behind each if the model has
        parcels. The rules are those of a handler. A `Decision` has rows for logs besides. A model
        that has decisions has a `decide` of its own."""
        return []

    def parameters(self) -> Mapping[str, int | float | str]:
        """Returns everything that decides the outcome, under the user's names: by default the
        fields of a dataclass. A checkpoint is resumed only by a model with equal parameters."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    aside: tuple[str, ...] = ()
    """The parameters that decide nothing but how units are dealt to ranks: a checkpoint may be
    resumed with others."""

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
        """Returns fresh arrays for the agents first .. last - 1: a NamedTuple, defined at the top
        level of an importable module. All that a handler reads or writes is here and nothing else
        is."""

    @abstractmethod
    def start(self, state: Any, first: int, last: int) -> Rows:
        """Returns the first events of those agents, given the state made for them."""

    @abstractmethod
    def fingerprint(self, state: Any) -> npt.NDArray[Any]:
        """Returns a row for each of the agents that changes with anything in its state."""

    def assemble(self, parts: list[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Returns every rank's `fingerprint`, in rank order, as it is hashed. A model whose rows
        depend on the partition puts them into an order that does not."""
        return parts

    def dealing(self) -> Dealing | None:
        """Returns how each array of the state is dealt to ranks (`pdes.dealing`), which a
        checkpoint that goes on with another number of them needs. None: arrays with one row per
        agent are, and others do not change; a model with others has a `dealing` of its own."""
        return None

    def to_global(self, state: Any, pending: Rows, parcels: Rows, first: int, last: int) -> None:
        """Change what means something on one rank only (the number of a row there, say) into what
        means the same on every rank: in rows, events and parcels of the agents first .. last - 1,
        all of which a rank had. Rows of arrays `ByAgent` are those of some of these agents; other
        arrays are new ones."""
        return None

    def to_local(self, state: Any, pending: Rows, parcels: Rows, first: int, last: int) -> None:
        """Change it back, on a rank that has the agents first .. last - 1, given all of its
        state."""
        return None

    def outcome(
        self, state: Any, pending: Rows, parcels: Rows, time: int
    ) -> Mapping[str, npt.NDArray[Any]]:
        """Returns what a user wants to know in the end: arrays with a row for each of the agents
        (or of whatever: the run's `Result` has those of all ranks, one after the other). `pending`
        are the events that are left, in no order, `time` is the time that the run has reached."""
        return {}

    def tables(self, interval: int) -> Mapping[str, Table]:
        """Returns the tables that can be streamed while the run goes on, sampled at every such
        interval (`pdes.stream`), by name."""
        return {}

    def logs(self) -> Mapping[str, Log]:
        """Returns the logs to which decisions and handlers append rows (`pdes.log`), by name."""
        return {}

    def noted(self, state: Any) -> Appended:
        """Returns the rows of logs, as blocks, that handlers have noted down in the state since it
        was last asked, and takes them out of there. Asked before logs are written, and after every
        `noted_every` events. Where a handler runs out of room before that, it schedules a decision
        of the present instant, which answers with these rows."""
        return ()

    def rehearse(self, state: Any) -> None:
        """Call every kernel that `decide` calls, on a fresh state that is used for nothing else: so
        that they are compiled before the clock starts."""
        return None

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

    def over(self, state: Any) -> int | None:
        """Returns when the last of what `left` measures happened here: where a run has no end, the
        latest of these is the time that it has reached. None: when that was noticed."""
        return None

    def check(self, state: Any, pending: Rows, parcels: Rows) -> None:
        """Raise AssertionError where an invariant fails, given also the events that this rank has
        (in no order) and the parcels. After every event under debug, and at the end of every run.
        """
        return None
