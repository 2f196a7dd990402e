"""What is hashed of a network's state: all that handlers have counted, and nothing that depends on
the partition into ranks or on whether packets are traced."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.agents import layout as w
from odonata.agents.description import NetworkDescription
from odonata.agents.following import Dealings
from odonata.agents.layout import State
from odonata.jobs.board import Ledger


def fingerprint(network: NetworkDescription, state: State) -> Any:
    """Returns a row per group: the counters of every port, and those of its nodes. The
    scheduler's part is in the last word of group 0; a rank that has the scheduler and not that
    group has it in a row of its own, which `assemble` puts there. Which words a row has follows
    from the network, and not from what a rank has of it."""
    m, groups = network.machine, len(state.histogram)
    ports, nodes = m.routers * (m.radix + m.nodes), m.routers * m.nodes
    parts: list[tuple[npt.NDArray[Any], int]] = [
        (state.ports[:, 1:, w.CHANNEL.hashed], ports),
        (state.slow[:, :, w.SLOW.hashed], ports),
        (state.ports[:, 0, w.PORT.hashed], ports),
        (state.nodes, nodes),
        (state.history, nodes),
        (state.histogram, 1),
    ]
    if network.switched:
        parts.append((state.queues[:, :, w.QUEUE.hashed], ports))
    if len(state.drawn):  # a row per stream, on every rank
        parts.append((state.drawn.T, nodes))
    if network.workload:  # without the chains, whose numbers depend on the rank
        parts += [(state.slots[:, :, w.OF_SLOT.hashed], nodes), (state.matching, nodes)]
    if network.power:
        power = (state.meters, state.holding, state.efforts, state.work)
        parts += [(array, nodes) for array in power]
    if network.market:
        parts.append((state.halts, nodes))
    flat = [_by_group(part, groups, rows) for part, rows in parts]
    if network.workload is None:
        return np.hstack(flat)
    seen = np.zeros((max(groups, len(state.board[:1])), 1), np.uint64)
    if len(state.board):
        content = (state.board, state.owner, state.labels, state.memory,
                   *(Ledger.of(state) if network.power else ()),
                   *((state.heard,) if network.telemetry else ()),
                   *(Dealings.of(state).hashed if network.market else ()))  # fmt: skip
        seen[0] = zlib.crc32(b"".join(array.tobytes() for array in content))
    if groups == 0 and len(seen):
        flat = [np.zeros((1, part.shape[1]), np.uint64) for part in flat]
    return np.hstack([*flat, seen])


def assemble(network: NetworkDescription, parts: list[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    if (
        network.workload is None
        or len(parts) == 1
        or sum(map(len, parts)) == network.machine.groups
    ):
        return parts
    scheduler, first, *rest = parts
    first = first.copy()
    first[0, -1] = scheduler[0, -1]
    return [first, *rest]


def _by_group(part: npt.NDArray[Any], groups: int, rows: int) -> npt.NDArray[Any]:
    """Returns an array that has so many rows per group as one row of words per group."""
    words = rows * int(np.prod(part.shape[1:]))
    return np.ascontiguousarray(part).reshape(groups, words).view(np.uint64)
