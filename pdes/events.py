"""The 32-byte row that is an event.

An event is four int64 words: when (in ticks of the model, `pdes.clock`), where (the key: which kind
of event, at which agent, at which of its ports) and two words of payload that only the model reads.

Events happen in the order of their rows, compared word by word. Two events that compare equal are
the same 32 bytes and therefore interchangeable, so the order is total for any model, and it says
nothing of ranks. A model whose payload depends on the partition (a slot in a local pool, say) must
make (time, key) unique by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pdes.jit import kernel

Rows = npt.NDArray[np.int64]

TIME, KEY, A, B = range(4)
WORDS = 4
FOREVER = 2**63 - 1
"""Later than every event: the time at which an empty queue's next event happens."""

PORT_BITS, AGENT_BITS, KIND_BITS = 16, 40, 7
PORTS, AGENTS, KINDS = 1 << PORT_BITS, 1 << AGENT_BITS, 1 << KIND_BITS
AGENT_MASK, PORT_MASK = AGENTS - 1, PORTS - 1
KIND_SHIFT = AGENT_BITS + PORT_BITS


def pack(kind: int, agent: Any, port: Any) -> Any:
    """Returns a key, or an array of them."""
    return (kind << KIND_SHIFT) | (agent << PORT_BITS) | port


key_of = kernel(pack)


@kernel
def kind_of(key: int) -> int:
    return key >> KIND_SHIFT


@kernel
def agent_of(key: int) -> int:
    return (key >> PORT_BITS) & AGENT_MASK


@kernel
def port_of(key: int) -> int:
    return key & PORT_MASK


def unpack(key: int) -> tuple[int, int, int]:
    """Returns kind, agent and port of a key. This is for Python, like `pack`; the others are for
    kernels."""
    return key >> KIND_SHIFT, (key >> PORT_BITS) & AGENT_MASK, key & PORT_MASK


def no_rows(words: int = WORDS) -> Rows:
    return np.empty((0, words), np.int64)
