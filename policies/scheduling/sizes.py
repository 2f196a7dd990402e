"""Disciplines that go by nothing but arrival and size."""

from __future__ import annotations

from collections.abc import Sequence

from policies.scheduling.base import Waiting, discipline

ORDERS = "Y. Zhang: Intelligent middleware for HPC systems, thesis, Boston University 2021, 3.4.5"


@discipline("fcfs", about="first come, first served", source="as everywhere")
def first_come(waiting: Sequence[Waiting]) -> list[int]:
    return list(range(len(waiting)))


@discipline("small-first", about="the fewest nodes first, then by arrival", source=ORDERS)
def small_first(waiting: Sequence[Waiting]) -> list[int]:
    return sorted(range(len(waiting)), key=lambda position: waiting[position].nodes)


@discipline("large-first", about="the most nodes first, then by arrival", source=ORDERS)
def large_first(waiting: Sequence[Waiting]) -> list[int]:
    return sorted(range(len(waiting)), key=lambda position: -waiting[position].nodes)
