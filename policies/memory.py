"""What policies remember: arrays that they declare, kept in one buffer of the model's state.

The buffer is in every checkpoint and in the digest. So a policy that keeps what it knows there, and
nowhere else, gives the same answers after a restart; `odonata.check_policy` finds those that do
not. A policy is handed its arrays as a `Memory`, by their names; what it writes into them stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pdes.errors import Refused
from policies.register import described

Buffer = npt.NDArray[np.uint8]
ALIGNED = 8
"""Every array begins at a multiple of so many bytes."""


class Sizes(NamedTuple):
    """How many there are of what a policy may want to index an array by."""

    jobs: int
    nodes: int
    groups: int
    routers: int
    """Counts the routers of the whole machine."""
    users: int
    projects: int = 1
    alike: int = 1
    """Counts the sets of jobs that are alike (`policies.views.Request`)."""
    running: int = 1
    """The most jobs that can run at one time."""


class Field(NamedTuple):
    """One array of a policy, and where in the buffer it begins."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int


class Layout(NamedTuple):
    """The arrays of one policy in the buffer that all policies of a run share."""

    fields: tuple[Field, ...]


class Memory:
    """The arrays of one policy, by name: views onto the buffer, so what is written into them stays.

    `memory.count[3] += 1` writes one number, `memory.count = 0` writes all of the array.
    """

    def __init__(self, layout: Layout, buffer: Buffer) -> None:
        arrays = vars(self)
        for field in layout.fields:
            size = np.dtype(field.dtype).itemsize * int(np.prod(field.shape))
            part = buffer[field.offset : field.offset + size]
            arrays[field.name] = part.view(field.dtype).reshape(field.shape)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in vars(self):
            raise AttributeError(f"memory.{name}: no such array was declared; {self!r}")
        vars(self)[name][...] = value

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        raise AttributeError(f"memory.{name}: no such array was declared; {self!r}")

    def __repr__(self) -> str:
        return f"memory of {', '.join(vars(self))}"


class Declares(Protocol):
    """Any policy: it says what it remembers."""

    name: str

    def remembers(self, sizes: Sizes) -> Mapping[str, npt.NDArray[Any]]: ...


def remembered(
    policies: Sequence[Declares], sizes: Sizes
) -> tuple[Buffer, tuple[Layout | None, ...]]:
    """Returns a fresh buffer for what these policies remember, and the layout of each (None where
    one declares nothing). Called again it returns the same."""
    buffers: list[Buffer] = [np.zeros(0, np.uint8)]
    layouts: list[Layout | None] = []
    end = 0
    for policy in policies:
        fields = []
        for name, given in _declared(policy, sizes):
            array = np.asarray(given)
            if not name.isidentifier() or name.startswith("_"):
                raise Refused(f"{policy.name} remembers {name!r}: a name, as of a variable")
            if array.dtype.kind not in "biuf":
                raise Refused(f"{policy.name} remembers {name} as {array.dtype}: numbers only")
            fields.append(Field(name, array.dtype.str, array.shape, end))
            room = -(-array.nbytes // ALIGNED) * ALIGNED
            buffers.append(np.zeros(room, np.uint8))
            buffers[-1][: array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
            end += room
        layouts.append(Layout(tuple(fields)) if fields else None)
    return np.concatenate(buffers), tuple(layouts)


def _declared(policy: Declares, sizes: Sizes) -> list[tuple[str, Any]]:
    try:
        return [*policy.remembers(sizes).items()]
    except BaseException as error:
        raise Refused(f"{policy.name}: what it remembers: {described(error)}") from error


def memory_of(layout: Layout | None, buffer: Buffer) -> Memory | None:
    """Returns what one policy remembers, None where it declares nothing."""
    return None if layout is None else Memory(layout, buffer)


def copy_of(memory: Memory | None) -> Memory | None:
    """Returns a memory with copies of the arrays."""
    if memory is None:
        return None
    found = Memory(Layout(()), np.zeros(0, np.uint8))
    vars(found).update({name: array.copy() for name, array in vars(memory).items()})
    return found
