"""Traffic patterns in which every node has one fixed partner, to which all its messages go.

Besides permutations at random these are the patterns of the field (W. Dally and B. Towles,
Principles and Practices of Interconnection Networks, section 3.2; BookSim and CODES have them under
the same names), on the labels of nodes, 0 .. N - 1. Where the textbook needs a power of two, the
rule here is the one that is equal to it for powers of two, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pdes.events import Rows
from topology.dragonfly import Dragonfly

DALLY = "Dally and Towles, 2004, section 3.2"
KIM = "Kim et al., ISCA 2008"


class Fixed(NamedTuple):
    """A pattern: what it is, where it is from, the partner of each node, and what is wrong with a
    machine that cannot have it, "" if nothing is."""

    about: str
    source: str
    partners: Callable[[Dragonfly, int], Rows]
    problem: Callable[[Dragonfly], str] = lambda machine: ""


def permutation(machine: Dragonfly, seed: int) -> Rows:
    """Returns one cycle through all nodes, drawn at random: nobody sends to itself."""
    order = np.random.Generator(np.random.Philox(key=seed)).permutation(machine.n_nodes)
    to = np.empty(machine.n_nodes, np.int64)
    to[order] = np.roll(order, -1)
    return to


def transpose(machine: Dragonfly, seed: int) -> Rows:
    """Returns, of nodes as the most nearly square matrix, row by row, the same place in its
    transpose."""
    n = machine.n_nodes
    rows = next(r for r in range(int(n**0.5), 0, -1) if n % r == 0)
    node = np.arange(n)
    return (node % (n // rows)) * rows + node // (n // rows)


def tornado(machine: Dragonfly, seed: int) -> Rows:
    """Returns the node of the same place in the group that is ⌈g/2⌉ - 1 further on: as far as it
    can be on a ring of groups without the other way being shorter."""
    per_group = machine.routers * machine.nodes
    further = (machine.groups + 1) // 2 - 1
    return (np.arange(machine.n_nodes) + further * per_group) % machine.n_nodes


def bit_complement(machine: Dragonfly, seed: int) -> Rows:
    """Returns N - 1 - node, which is every bit inverted where N is a power of two."""
    return machine.n_nodes - 1 - np.arange(machine.n_nodes)


def bit_reverse(machine: Dragonfly, seed: int) -> Rows:
    """Returns the bits of each label in reverse order."""
    node, bits = np.arange(machine.n_nodes), machine.n_nodes.bit_length() - 1
    to = np.zeros_like(node)
    for bit in range(bits):
        to |= ((node >> bit) & 1) << (bits - 1 - bit)
    return to


def shuffle(machine: Dragonfly, seed: int) -> Rows:
    """Returns the perfect shuffle: twice the label, less N - 1 for the upper half, which is the
    bits rotated by one where N is a power of two."""
    node, n = np.arange(machine.n_nodes), machine.n_nodes
    return np.where(node < n // 2, 2 * node, 2 * node - (n - 1))


def neighbour(machine: Dragonfly, seed: int) -> Rows:
    """Returns the next node; that of the last is the first."""
    return (np.arange(machine.n_nodes) + 1) % machine.n_nodes


def _not_even(machine: Dragonfly) -> str:
    n = machine.n_nodes
    return f"an even number of nodes; this machine has {n:,}" if n % 2 else ""


def _no_power_of_two(machine: Dragonfly) -> str:
    n = machine.n_nodes
    if n & (n - 1) == 0:
        return ""
    below = 1 << (n.bit_length() - 1)
    return f"a power of two of nodes, as {below:,} or {2 * below:,}; this machine has {n:,}"


def _too_few_groups(machine: Dragonfly) -> str:
    few = machine.groups < 3
    return f"three groups at least; this machine has {machine.groups}" if few else ""


FIXED = {
    "permutation": Fixed("to a node drawn at random once", KIM, permutation),
    "transpose": Fixed("to the transposed place in a matrix of all nodes", KIM, transpose),
    "tornado": Fixed("to the same place almost half of the groups further on", DALLY, tornado,
                     _too_few_groups),
    "bit-complement": Fixed("to N - 1 - node: every bit of the label inverted", DALLY,
                            bit_complement),
    "bit-reverse": Fixed("to the label with its bits in reverse order", DALLY, bit_reverse,
                         _no_power_of_two),
    "shuffle": Fixed("to the label with its bits rotated by one, a perfect shuffle", DALLY, shuffle,
                     _not_even),
    "neighbour": Fixed("to the next node", DALLY, neighbour),
}  # fmt: skip
"""The patterns by name."""
