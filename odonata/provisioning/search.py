"""The search for an application's configurations within a power bound: packed and spread, each with
the highest cap and the lowest, the best, and what a machine for the absolute worst case would run.

A configuration is **within** a bound if all its nodes together draw at most so many watts. A bound
may be infinite: power is unlimited.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.provisioning.table import Point, Table
from pdes.errors import Refused

UNLIMITED = math.inf
SOCKETS, SOCKET_W, MEMORY_W = 2, 115.0, 30.0
"""A node of rzmerl has two sockets; each can draw 115 W at most, and its memory 30 W."""


class Machine(NamedTuple):
    """What a machine of the thesis was measured under."""

    node_w: float
    """The most that a node can draw, as far as its power was measured."""
    bounds_w: tuple[float, ...]


def peak_w(socket_w: float = SOCKET_W, memory_w: float = MEMORY_W, sockets: int = SOCKETS) -> float:
    """Returns the watts that a node draws at most, by what its parts are rated for."""
    return sockets * (socket_w + memory_w)


MACHINES = {
    "rzmerl": Machine(peak_w(), (2500.0, 3000.0, 3500.0, 4000.0, 4500.0, UNLIMITED)),
    "cab": Machine(peak_w(memory_w=0.0), (6500.0, 8000.0, 10000.0, 12000.0, 14000.0, 14720.0)),
}
"""By name. On cab the power of memory could not be measured, so it is in neither side of a bound:
64 nodes draw at most 14,720 W."""

PACKED_MAX, PACKED_MIN, SPREAD_MAX, SPREAD_MIN = FORMS = (
    "packed-max",
    "packed-min",
    "spread-max",
    "spread-min",
)
"""Packed: all cores of each node; spread: the fewest that were measured. Max: the highest cap,
which stands for none; min: the lowest."""


# -- one configuration


def check_bound(bound_w: float) -> float:
    """Returns a bound that is above 0; refuses any other."""
    if not bound_w > 0:
        raise Refused(f"a power bound of {bound_w:g} W: it must be above 0, or inf for none")
    return float(bound_w)


def canonical(table: Table, form: str, bound_w: float) -> Point | None:
    """Returns the configuration of this form on the largest number of nodes within the bound; None
    if there is none (`why_none`)."""
    fits = _has_form(table, form) & (table.watts <= check_bound(bound_w))
    places = np.flatnonzero(fits)
    return table.point(int(places[-1])) if len(places) else None  # nodes ascend


def _has_form(table: Table, form: str) -> npt.NDArray[np.bool_]:
    """Returns which points have the cores and the cap of a form."""
    if not len(table):
        return np.zeros(0, np.bool_)
    cores, cap_w = form_of(table, form)
    has: npt.NDArray[np.bool_] = (table.cores == cores) & (table.cap_w == cap_w)
    return has


def form_of(table: Table, form: str) -> tuple[int, float]:
    """Returns the cores per node and the cap of a form."""
    packed, highest = form.startswith("packed"), form.endswith("max")
    cores = table.cores.max() if packed else table.cores.min()
    return int(cores), float(table.cap_w.max() if highest else table.cap_w.min())


def packed_max(table: Table, bound_w: float) -> Point | None:
    """Returns what worst-case provisioning gives this application: all cores, no cap."""
    return canonical(table, PACKED_MAX, bound_w)


def packed_min(table: Table, bound_w: float) -> Point | None:
    """Returns the most nodes within the bound with all cores under the lowest cap."""
    return canonical(table, PACKED_MIN, bound_w)


def spread_max(table: Table, bound_w: float) -> Point | None:
    """Returns the most nodes within the bound with the fewest cores and no cap."""
    return canonical(table, SPREAD_MAX, bound_w)


def spread_min(table: Table, bound_w: float) -> Point | None:
    """Returns the most nodes within the bound with the fewest cores under the lowest cap."""
    return canonical(table, SPREAD_MIN, bound_w)


def best(table: Table, bound_w: float) -> Point | None:
    """Returns the configuration within the bound that takes the least time; of several the one that
    draws least, then the one on fewest nodes, with fewest cores, and with the lowest cap."""
    ranked = _ranked(table, bound_w)
    return table.point(int(ranked[0])) if len(ranked) else None


def best_at_each_n(table: Table, bound_w: float) -> list[Point]:
    """Returns the best configuration within the bound for each number of nodes that was measured,
    in order of these; numbers at which nothing is within it are left out."""
    ranked = _ranked(table, bound_w)
    _, first = np.unique(table.nodes[ranked], return_index=True)
    return [table.point(int(at)) for at in ranked[first]]


def _ranked(table: Table, bound_w: float) -> npt.NDArray[np.intp]:
    """Returns the places of the points within the bound, the best first."""
    within = np.flatnonzero(table.watts <= check_bound(bound_w))
    keys = (table.cap_w, table.cores, table.nodes, table.watts, table.seconds)
    return within[np.lexsort(tuple(key[within] for key in keys))]


# -- the absolute worst case


def worst_case_nodes(bound_w: float, node_w: float | None = None) -> float:
    """Returns how many nodes could all draw their peak within the bound: a whole number, or
    infinity. `node_w` is what a node draws at most, by default `peak_w()`."""
    node_w = peak_w() if node_w is None else node_w
    if not 0 < node_w < math.inf:
        raise Refused(f"a node that draws {node_w:g} W at most: it must be above 0, and finite")
    bound_w = check_bound(bound_w)
    if math.isinf(bound_w):
        return bound_w
    return float(math.floor(bound_w / node_w + 1e-9))  # 0.3 / 0.1 is 3


def worst_case(table: Table, bound_w: float, node_w: float | None = None) -> Point | None:
    """Returns how the application runs on a machine of `worst_case_nodes`, with all cores and no
    cap: on so many nodes, or the next smaller number that was measured. None if there is none, or
    if it draws more than the bound, so that `node_w` is too low."""
    nodes = worst_case_nodes(bound_w, node_w)
    places = np.flatnonzero(_has_form(table, PACKED_MAX) & (table.nodes <= nodes))
    if not len(places):
        return None
    point = table.point(int(places[-1]))
    return point if point.watts <= bound_w else None


# -- all of them


@dataclass(frozen=True)
class Found:
    """What the search finds for an application within a bound; None where nothing fits."""

    application: str
    bound_w: float
    forms: dict[str, Point | None]
    """By the names in FORMS."""
    best: Point | None
    worst_case: Point | None
    worst_case_nodes: float
    """How many nodes a machine for the absolute worst case has; those of the point may be fewer."""

    @property
    def points(self) -> dict[str, Point | None]:
        """Returns all six by name: the four forms, the best and the worst case."""
        return {**self.forms, "best": self.best, "worst-case": self.worst_case}

    @property
    def degree(self) -> float | None:
        """Returns the degree of overprovisioning: the nodes of the best configuration, per node of
        a machine for the absolute worst case under the same bound. Below 1 the application would
        rather have fewer nodes. None where power is unlimited, or where that machine has none."""
        if self.best is None or not 0 < self.worst_case_nodes < math.inf:
            return None
        return self.best.nodes / self.worst_case_nodes

    def speedup(self, name: str, over: str = PACKED_MAX) -> float | None:
        """Returns how many times as fast one of `points` is as another."""
        one, other = self.points[name], self.points[over]
        return None if one is None or other is None else other.seconds / one.seconds

    def wasted(self, name: str) -> float | None:
        """Returns the part of the bound that one of `points` leaves unused; None where power is
        unlimited."""
        point = self.points[name]
        return None if point is None else wasted(point, self.bound_w)


def wasted(point: Point, bound_w: float) -> float | None:
    """Returns the part of a bound that a configuration leaves unused; None where there is none."""
    return None if math.isinf(bound_w) else 1.0 - point.watts / bound_w


def search(table: Table, bound_w: float, node_w: float | None = None) -> Found:
    """Returns all that there is to find for an application within a bound."""
    return Found(
        table.application,
        check_bound(bound_w),
        {form: canonical(table, form, bound_w) for form in FORMS},
        best(table, bound_w),
        worst_case(table, bound_w, node_w),
        worst_case_nodes(bound_w, node_w),
    )


# -- the reason


def why_none(table: Table, name: str, bound_w: float, node_w: float | None = None) -> str:
    """Returns why one of `Found.points` is None, as a sentence without its end; nothing where it is
    not."""
    found = search(table, bound_w, node_w)
    if found.points[name] is not None:
        return ""
    if not len(table):
        return f"the table of {table.application} is empty"
    if name == "best":
        least = table.point(int(np.argmin(table.watts)))
        return (f"the least that was measured of {table.application} is {least.watts:,.0f} W, by "
                f"{least.name}")  # fmt: skip
    form = PACKED_MAX if name == "worst-case" else name
    cores, cap_w = form_of(table, form)
    places = np.flatnonzero(_has_form(table, form))
    if not len(places):
        return (f"no configuration of {table.application} with {cores} cores and a cap of "
                f"{cap_w:g} W was measured")  # fmt: skip
    if name == "worst-case":
        fewest = int(table.nodes[places[0]])
        if found.worst_case_nodes < fewest:
            return (f"{found.worst_case_nodes:,.0f} nodes could draw their peak at once, and with "
                    f"{cores} cores and a cap of {cap_w:g} W {table.application} was measured on "
                    f"{fewest:,} or more")  # fmt: skip
        on = table.point(int(places[table.nodes[places] <= found.worst_case_nodes][-1]))
        return (f"{on.name} of {table.application} draws {on.watts:,.0f} W, so a node draws more "
                "at its peak than was assumed")  # fmt: skip
    least = table.point(int(places[np.argmin(table.watts[places])]))
    return (f"the least that was measured of {table.application} with {cores} cores and a cap of "
            f"{cap_w:g} W is {least.watts:,.0f} W, by {least.name}")  # fmt: skip
