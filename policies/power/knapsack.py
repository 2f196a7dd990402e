"""The knapsack of Wallace: which waiting jobs fill the most nodes within the free power.

The value of a job and its weight in nodes are one number, so the least power that takes exactly so
many nodes is all that a table has to hold. That is exact, unlike the recurrence that the paper
prints, which keeps one set of jobs for each level of power and loses those that would have fitted
with fewer nodes.
"""

from __future__ import annotations

from math import floor, frexp, gcd, inf, ldexp
from typing import Any

import numpy as np
import numpy.typing as npt

from pdes.jit import entry

GRAINS = 50
"""The free power is divided into 2 to the power of this, or half as many, grains."""
NEVER = 1 << 62
"""The power of a number of nodes that no set of jobs within the free power takes, in grains."""


def best_fill(
    nodes: npt.NDArray[np.int64], watts: npt.NDArray[np.float64], free_nodes: int, free_w: float
) -> list[int]:
    """Returns the positions, ascending, of the jobs that start: of all sets of jobs that fit into
    the free nodes and the free power one that takes the most nodes, and of several such sets the
    one that has the first job if any has it, then the second, and so on.

    `watts` is the power of each whole job. A job whose power is infinite, negative or not a number
    never starts, even if the free power is infinite; nor does one of no nodes.

    Powers are rounded down to whole grains of the free power, less than two parts in 10^15 of it,
    and then added as whole numbers, in which no order of addition differs from another. So every
    set that fits in real numbers is seen to fit, and one that is taken for fitting exceeds the free
    power by less than a grain for each job: by less than 10^-12 of it for up to 500 jobs.

    The table has a row for each job and a column for each unit of nodes, which is the greatest
    common divisor of the jobs' nodes: with 20 jobs and 96 free midplanes it has 2,037 numbers.
    """
    if free_nodes <= 0 or not free_w >= 0.0:
        return []
    sizes = nodes.tolist()
    unit = gcd(*sizes)
    if unit == 0:
        return []
    units = min(int(free_nodes), sum(size for size in sizes if size > 0)) // unit
    jobs = len(sizes)
    least = np.empty((jobs + 1, units + 1), np.int64)
    grains = np.empty(jobs, np.int64)
    chosen = np.empty(jobs, np.int64)
    count = _fill(nodes, watts, float(free_w), unit, least, grains, chosen)
    return chosen[:count].tolist()  # type: ignore[no-any-return]


@entry
def _fill(
    nodes: Any, watts: Any, free_w: float, unit: int, least: Any, grains: Any, chosen: Any
) -> int:
    """Fill `chosen`, and return how many there are. `least[i, v]` becomes the least power, in
    grains, that takes exactly v units of nodes from the jobs i and after."""
    jobs, units = nodes.shape[0], least.shape[1] - 1
    bounded = free_w < inf
    exponent = 0
    free = 0
    if bounded:
        exponent = GRAINS - frexp(free_w)[1]
        free = floor(ldexp(free_w, exponent))
    for i in range(jobs):
        grains[i] = NEVER
        if nodes[i] > 0 and 0.0 <= watts[i] <= free_w and watts[i] < inf:
            grains[i] = floor(ldexp(watts[i], exponent)) if bounded else 0
    for v in range(1, units + 1):
        least[jobs, v] = NEVER
    least[jobs, 0] = 0
    for i in range(jobs - 1, -1, -1):
        size, power = nodes[i] // unit, grains[i]
        if power == NEVER:
            size = units + 1
        for v in range(min(size, units + 1)):
            least[i, v] = least[i + 1, v]
        for v in range(size, units + 1):
            with_it = power + least[i + 1, v - size]
            without = least[i + 1, v]
            least[i, v] = with_it if with_it <= free and with_it < without else without
    left = units
    while least[0, left] > free:
        left -= 1
    count = 0
    for i in range(jobs):
        size, power = nodes[i] // unit, grains[i]
        if power <= free and size <= left and power + least[i + 1, left - size] <= free:
            chosen[count] = i
            count += 1
            left -= size
            free -= power
    return count
