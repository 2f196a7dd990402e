"""Policies that keep a job together, or try to."""

from __future__ import annotations

import numpy as np

from policies.allocation.base import allocation, heap_by_heap
from policies.allocation.sources import BASELINE, JOKANOVIC, SLURM
from policies.views import Labels, Request, Sight


@allocation("simple", about="idle nodes in label order", source=BASELINE)
def simple(sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
    return sight.labels[: job.nodes]


@allocation(
    "slurm",
    about="the fullest router that holds the job; otherwise the fullest routers, one by one",
    source=f"{SLURM}; best fit, as in the code the authors published",
)
def slurm(sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
    counts = sight.by_router.ravel()
    fits = np.flatnonzero(counts >= job.nodes)
    if len(fits):
        return sight.of_router(fits[counts[fits].argmin()])[: job.nodes]
    return _fullest_routers(sight, job.nodes)


@allocation(
    "slurm-first-fit",
    about="the first router that holds the job; otherwise the fullest routers, one by one",
    source=f"{SLURM}; first fit, as in the text",
)
def slurm_first_fit(sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
    fits = sight.by_router.ravel() >= job.nodes
    first = int(fits.argmax())
    if fits[first]:
        return sight.of_router(first)[: job.nodes]
    return _fullest_routers(sight, job.nodes)


def _fullest_routers(sight: Sight, nodes: int) -> Labels:
    """From the fewest idle nodes up: a router that was taken has none left, so one sort will do."""
    counts = sight.by_router.ravel()
    small = np.uint16 if sight.machine.nodes < 2**16 else np.int32  # sorted by radix, which is fast
    order = np.argsort(counts.astype(small), kind="stable")
    order = order[len(counts) - np.count_nonzero(counts) :]
    return sight.labels[heap_by_heap(sight.router_starts, counts, order, nodes)]


@allocation(
    "jokanovic",
    about="small jobs into the first group that holds them; larger ones from the last node back",
    source=f"{JOKANOVIC}, as adapted to dragonflies",
)
def jokanovic(sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
    """Small is no larger than a whole group; where no group has room for it, label order. There is
    no boundary between small and large jobs that moves with what was allocated, as Jokanovic et al.
    have it: the thesis gives no rule for it, and the code the authors published has none."""
    if job.nodes > sight.machine.routers * sight.machine.nodes:
        return sight.labels[: -job.nodes - 1 : -1]
    fits = sight.by_group >= job.nodes
    first = int(fits.argmax())
    return (sight.of_group(first) if fits[first] else sight.labels)[: job.nodes]


@allocation(
    "jokanovic-published",
    about="jokanovic, but small jobs get the first idle nodes other than those it chose",
    source=f"{JOKANOVIC}, as in the code the authors published",
)
def jokanovic_published(sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
    """The published code chooses a group for a small job as `jokanovic` does, and then goes on to
    what it does where no group has room: nodes in label order, without those just chosen, which
    are kept only as far as no others are idle. So small jobs cross the ends of groups."""
    chosen = jokanovic(sight, job, rng)
    if len(chosen) > sight.machine.routers * sight.machine.nodes or not _fits(sight, job.nodes):
        return chosen
    others = np.setdiff1d(sight.labels, chosen)[: job.nodes]
    return np.concatenate([others, chosen[len(others) :]])


def _fits(sight: Sight, nodes: int) -> bool:
    """Tells whether some group has so many idle nodes."""
    return bool(sight.by_group.max() >= nodes)
