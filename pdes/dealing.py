"""How the state of a model is dealt to ranks, so that a checkpoint goes on with any number of them.

At a cut nothing is on its way between ranks, so what all ranks have saved is the whole: arrays, and
events that are pending. A rank that goes on reads the **parts** that hold any of its agents. Events
go to the rank that has their agent. What becomes of each array of the state, a model declares
(`Deals.dealing`): its rows belong to agents (`ByAgent`), or it is one of four kinds that do not
(`Other`). Parcels go with the event that bears them, or with the chain that they are in; they have
other numbers then.

For a model that declares nothing, an array with one row per agent is dealt by agent, and any other
must still be as `Model.state` made it; what is neither is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pdes.checkpoint import Checkpoint, SavedPart
from pdes.errors import Refused
from pdes.events import AGENT_MASK, KEY, KIND_SHIFT, PORT_BITS, A, Rows, no_rows
from pdes.model import Audits, Carries, Decides, Model, facet
from pdes.parcels import NEXT, TAKEN, Pool, new_pool, reserved
from pdes.partition import Partition, deal

Array = npt.NDArray[Any]
Views = Callable[[Array], Sequence[Array]]
"""Returns views of words in an array: what is assigned to one is assigned to the array."""


class ByAgent(NamedTuple):
    """An array with rows of agents, in the order of agents. What is in a row means the same on any
    rank, or `Deals.to_global` and `Deals.to_local` see to it."""

    before: Callable[[int], int] | None = None
    """Returns how many rows there are before those of an agent, which is the first of a unit, in
    the whole machine. None: each agent has one row."""
    axis: int = 0
    """The axis that counts rows."""
    heads: Views | None = None
    """The words that are the number of the first parcel of a chain, or -1."""
    tails: Views | None = None
    """The words that are the number of another parcel of a chain whose head is in this array or in
    another. Where the chain is empty, they mean nothing."""


class Other(Enum):
    """An array that has no rows of agents."""

    CONSTANT = "nothing changes what `Model.state` made"
    SAME = "it changes, and is the same on every rank at every cut"
    SUM = "it counts what happened on a rank: those of all ranks add up"
    FIRST = "the rank with the first agent has it; on others, it is as `Model.state` made it"


Dealing = Mapping[str, ByAgent | Other]
"""How each array of a state is dealt, by name."""


class Deals:
    """A facet of a model (`pdes.model`): it says how it is dealt to ranks."""

    alone: bool = False
    """Whether the first unit has rank 0 to itself, where there is more than one rank."""
    aside: tuple[str, ...] = ()
    """The parameters that decide nothing but how units are dealt to ranks: a checkpoint may be
    resumed with others."""

    def assemble(self, parts: list[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Returns every rank's `fingerprint`, in rank order, as it is hashed. A model whose rows
        depend on the partition puts them into an order that does not."""
        return parts

    def dealing(self) -> Dealing | None:
        """Returns how each array of the state is dealt. None: the model declares nothing."""
        return None

    def to_global(self, state: Any, pending: Rows, parcels: Rows, first: int, last: int) -> None:
        """Change what means something on one rank only (the number of a row there, say) into what
        means the same on every rank: in rows, events and parcels of the agents first .. last - 1,
        all of which a rank had. Rows of arrays `ByAgent` are those of some of these agents; other
        arrays are new ones."""

    def to_local(self, state: Any, pending: Rows, parcels: Rows, first: int, last: int) -> None:
        """Change it back, on a rank that has the agents first .. last - 1, given all of its
        state."""


EVERY = slice(None)


class Saved(Protocol):
    """The arrays that one rank has saved: "pending", "pool", "parcels", and those of its state, by
    their names behind "state."."""

    def read(self, name: str, axis: int = 0, rows: slice = EVERY) -> Array:
        """Returns an array, or some rows of it, which the caller may change."""


class Part(NamedTuple):
    """A rank's part of a checkpoint, and its agents, first .. last - 1."""

    first: int
    last: int
    saved: Saved


class Dealt(NamedTuple):
    """What a rank goes on with."""

    state: Any
    pending: Rows
    pool: Pool


def taken_up(
    model: Model, found: Checkpoint, partition: Partition, rank: int, fresh: Any
) -> Dealt:  # fmt: skip
    """Returns what a rank goes on with from a checkpoint: what it has saved itself, where units are
    dealt as they were then, and else its part of what all have saved. `fresh` is a new state of the
    rank."""
    if found.first_units is None:
        before = deal(model.units(), model.weights(), found.ranks, facet(model, Deals).alone)
    else:
        starts = np.array(found.first_units, np.int64)
        before = Partition(starts, np.asarray(model.units(), np.int64)[starts])
    with ExitStack() as opened:
        if np.array_equal(before.unit_starts, partition.unit_starts):
            saved = opened.enter_context(found.part(rank))
            _check(found.place, saved, fresh)
            arrays = saved.read_all()
            pending, pool = arrays.pop("pending"), Pool(arrays.pop("pool"), arrays.pop("parcels"))
            state = {name.removeprefix("state."): array for name, array in arrays.items()}
            return Dealt(type(fresh)(**state), pending, pool)
        first, last = partition.block(rank)
        parts = []
        for other in range(before.ranks):
            begin, end = before.block(other)
            if begin < last and first < end:
                saved = opened.enter_context(found.part(other))
                _check(found.place, saved, fresh)
                parts.append(Part(begin, end, saved))
        return dealt(model, parts, fresh, first, last)


def _check(place: Path, saved: SavedPart, fresh: Any) -> None:
    """Refuse arrays that are not those of the model."""
    theirs = {name.removeprefix("state."): kind for name, kind in saved.kinds().items()
              if name.startswith("state.")}  # fmt: skip
    if theirs != {name: (array.dtype, array.ndim) for name, array in fresh._asdict().items()}:
        raise Refused(f"{place}: its arrays {[*theirs]} are not the model's {[*fresh._fields]}")


def dealt(model: Model, parts: Sequence[Part], fresh: Any, first: int, last: int) -> Dealt:
    """Returns what a rank with the agents first .. last - 1 goes on with. `parts` are all that
    hold any of them, in order; `fresh` is a new state for these agents, whose arrays are used."""
    arrays, deals, carries = fresh._asdict(), facet(model, Deals), facet(model, Carries)
    declared = deals.dealing()
    how = _guessed(model, parts, fresh) if declared is None else declared
    if {*how} != {*arrays}:
        wrong = sorted({*how} ^ {*arrays})
        raise Refused(f"{model.name}: `dealing` and `state` do not name the same arrays: {wrong}")
    pieces = [
        _piece(model, how, part, fresh, first, last, notices=n == 0) for n, part in enumerate(parts)
    ]
    held = 0
    for part, piece in zip(parts, pieces, strict=True):
        for name, way in how.items():
            if isinstance(way, ByAgent):
                _shift(way, piece.arrays[name], held)
                begin, end = _rows(way, first, max(first, part.first), min(last, part.last))
                if begin < end:  # a rank without rows may have fewer words in each, too
                    arrays[name][(*[EVERY] * way.axis, slice(begin, end))] = piece.arrays[name]
        piece.pending[_bears(carries, piece.pending), A] += held
        piece.parcels[:, NEXT] += np.where(piece.parcels[:, NEXT] >= 0, held, 0)
        held += len(piece.parcels)
    for name, way in how.items():
        if way is Other.SAME or (way is Other.FIRST and first == 0):
            arrays[name] = parts[0].saved.read(f"state.{name}")
        elif way is Other.SUM:
            for part in parts:
                if first <= part.first:  # another rank has the first of its agents, otherwise
                    arrays[name] = arrays[name] + part.saved.read(f"state.{name}")
    pending = np.concatenate([no_rows(), *(piece.pending for piece in pieces)])
    parcels = np.concatenate([piece.parcels for piece in pieces])
    state = type(fresh)(**arrays)
    deals.to_local(state, pending, parcels, first, last)
    pool = reserved(new_pool(carries.parcel), len(parcels))
    pool.rows[: len(parcels)] = parcels  # taken by the numbers 0 and following
    pool.ctl[:] = len(parcels)
    facet(model, Audits).check(state, pending, pool.rows)
    return Dealt(state, pending, pool)


class _Piece(NamedTuple):
    """What one part has for this rank: rows of arrays, events, and the parcels of both, by the
    numbers 0 and following."""

    arrays: dict[str, Array]
    pending: Rows
    parcels: Rows


def _piece(
    model: Model, how: Dealing, part: Part, fresh: Any, first: int, last: int, notices: bool
) -> _Piece:
    """Returns what a part has for the agents first .. last - 1; of `notices`, which every rank got,
    one part is enough."""
    low, high = max(first, part.first), min(last, part.last)
    rows: dict[str, Array] = {}
    for name, way in how.items():
        if isinstance(way, ByAgent):
            begin, end = _rows(way, part.first, low, high)
            rows[name] = part.saved.read(f"state.{name}", way.axis, slice(begin, end))
    pending = _events(facet(model, Decides), part.saved.read("pending"), first, low, high, notices)
    parcels = _own(facet(model, Carries), how, rows, pending, part.saved.read("parcels"))
    state = type(fresh)(**{**fresh._asdict(), **rows})
    facet(model, Deals).to_global(state, pending, parcels, part.first, part.last)
    return _Piece(rows, pending, parcels)


def _events(
    decides: Decides, pending: Rows, first: int, low: int, high: int, notices: bool
) -> Rows:  # fmt: skip
    """Returns the events of the agents low .. high - 1, and the notices, as they come to the agent
    `first`."""
    agents = (pending[:, KEY] >> PORT_BITS) & AGENT_MASK
    noticed = np.isin(pending[:, KEY] >> KIND_SHIFT, decides.notices)
    mine = pending[(agents >= low) & (agents < high) & ~noticed]
    if not notices or not noticed.any():
        return mine
    copies = pending[noticed]
    copies[:, KEY] &= ~(AGENT_MASK << PORT_BITS)
    copies[:, KEY] |= first << PORT_BITS
    return np.concatenate((copies, mine))


def _own(
    carries: Carries, how: Dealing, rows: Mapping[str, Array], pending: Rows, parcels: Rows
) -> Rows:  # fmt: skip
    """Returns the parcels of these events and rows, to which both refer by their new numbers from
    now on."""
    if not carries.parcel:
        return parcels[:0]
    borne = pending[_bears(carries, pending), A]
    chains = [np.zeros(0, np.int64)]
    for name, way in how.items():
        if isinstance(way, ByAgent) and way.heads:
            chains += [chained(parcels, view.reshape(-1))[1] for view in way.heads(rows[name])]
    kept = np.unique(np.concatenate((borne, *chains)))
    numbers = np.full(len(parcels) + 1, -1)
    numbers[kept] = np.arange(len(kept))
    for name, way in how.items():
        if isinstance(way, ByAgent):
            for view in way.heads(rows[name]) if way.heads else ():
                view[...] = numbers[view]
            for view in way.tails(rows[name]) if way.tails else ():
                view[...] = np.maximum(0, numbers[view])
    pending[_bears(carries, pending), A] = numbers[borne]
    links, own = parcels[:, NEXT].copy(), parcels[kept]
    links[borne] = -1  # of a parcel in no chain, the word is anything
    own[:, NEXT] = numbers[links[kept]]
    return own  # type: ignore[no-any-return]


def chained(parcels: Rows, heads: Rows) -> tuple[Rows, Rows]:
    """Returns every parcel in the chains that begin at `heads` (-1: none), and whose chain it is
    in: the second, then the first of these."""
    which, numbers = [], []
    here = np.flatnonzero(heads >= 0)
    at = heads[here]
    while len(at):
        which.append(here)
        numbers.append(at)
        at = parcels[at, NEXT]
        here, at = here[at >= 0], at[at >= 0]
    if not which:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate(which), np.concatenate(numbers)


def _shift(way: ByAgent, array: Array, by: int) -> None:
    """Raise the numbers of the parcels that these rows refer to."""
    for view in way.heads(array) if way.heads else ():
        view[...] += np.where(view >= 0, by, 0)
    for view in way.tails(array) if way.tails else ():
        view[...] += by


def _bears(carries: Carries, pending: Rows) -> Array:
    return np.isin(pending[:, KEY] >> KIND_SHIFT, carries.bearers)


def _rows(way: ByAgent, origin: int, low: int, high: int) -> tuple[int, int]:
    """Returns where the rows of the agents low .. high - 1 begin and end in an array whose first
    row is that of the agent `origin`."""
    before = way.before or int
    return before(low) - before(origin), before(high) - before(origin)


def _guessed(model: Model, parts: Sequence[Part], fresh: Any) -> Dealing:
    """Returns how arrays are dealt of a model that does not say so."""
    units, carries = model.units(), facet(model, Carries)
    blocks = [(int(units[0]), int(end)) for end in units[1:3]]
    tried = [(end - begin, model.state(begin, end)._asdict()) for begin, end in blocks]
    by_agent = {name for name in fresh._asdict()
                if all(a[name].ndim and len(a[name]) == n for n, a in tried)}  # fmt: skip
    for part in parts:
        began = model.state(part.first, part.last)._asdict()
        for name in {*began} - by_agent:
            saved = part.saved.read(f"state.{name}")
            if saved.shape != began[name].shape or (saved != began[name]).any():
                raise Refused(f"{model.name}: its array {name} has not one row per agent, and has "
                              f"changed: {CURE}")  # fmt: skip
        if carries.parcel:
            borne = int(_bears(carries, part.saved.read("pending")).sum())
            if int(part.saved.read("pool")[TAKEN]) != borne:
                raise Refused(f"{model.name}: its state refers to parcels: {CURE}")
    return {name: ByAgent() if name in by_agent else Other.CONSTANT for name in fresh._asdict()}


CURE = (
    "how it is dealt to another number of ranks, the model has to say (`Deals.dealing`); or go on "
    "with as many as before"
)
