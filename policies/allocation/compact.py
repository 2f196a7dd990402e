"""Policies that keep a job together, or try to."""

from __future__ import annotations

import numpy as np

from policies.allocation.base import Floor, Labels, allocation, heap_by_heap
from policies.allocation.sources import BASELINE, JOKANOVIC, SLURM


@allocation("simple", about="idle nodes in label order", source=BASELINE)
def simple(floor: Floor, nodes: int, rng: np.random.Generator) -> Labels:
    return floor.labels[:nodes]


@allocation(
    "slurm",
    about="the fullest router that holds the job; otherwise the fullest routers, one by one",
    source=f"{SLURM}; best fit, as in the code the authors published",
)
def slurm(floor: Floor, nodes: int, rng: np.random.Generator) -> Labels:
    counts = floor.by_router.ravel()
    fits = np.flatnonzero(counts >= nodes)
    if len(fits):
        return floor.of_router(fits[counts[fits].argmin()])[:nodes]
    return _fullest_routers(floor, nodes)


@allocation(
    "slurm-first-fit",
    about="the first router that holds the job; otherwise the fullest routers, one by one",
    source=f"{SLURM}; first fit, as in the text",
)
def slurm_first_fit(floor: Floor, nodes: int, rng: np.random.Generator) -> Labels:
    fits = floor.by_router.ravel() >= nodes
    first = int(fits.argmax())
    if fits[first]:
        return floor.of_router(first)[:nodes]
    return _fullest_routers(floor, nodes)


def _fullest_routers(floor: Floor, nodes: int) -> Labels:
    """From the fewest idle nodes up: a router that was taken has none left, so one sort will do."""
    counts = floor.by_router.ravel()
    small = np.uint16 if floor.machine.nodes < 2**16 else np.int32  # sorted by radix, which is fast
    order = np.argsort(counts.astype(small), kind="stable")
    order = order[len(counts) - np.count_nonzero(counts) :]
    return floor.labels[heap_by_heap(floor.router_starts, counts, order, nodes)]


@allocation(
    "jokanovic",
    about="small jobs into the first group that holds them; larger ones from the last node back",
    source=f"{JOKANOVIC}, as adapted to dragonflies",
)
def jokanovic(floor: Floor, nodes: int, rng: np.random.Generator) -> Labels:
    """Small is no larger than a whole group; where no group has room for it, label order."""
    if nodes > floor.machine.routers * floor.machine.nodes:
        return floor.labels[: -nodes - 1 : -1]
    fits = floor.by_group >= nodes
    first = int(fits.argmax())
    return (floor.of_group(first) if fits[first] else floor.labels)[:nodes]
