"""Disciplines that go by nothing but arrival and size."""

from __future__ import annotations

from collections.abc import Sequence

from policies.scheduling.base import discipline
from policies.views import Request

ORDERS = "Y. Zhang: Intelligent middleware for HPC systems, thesis, Boston University 2021, 3.4.5"


@discipline("fcfs", about="first come, first served", source="as everywhere")
def first_come(queue: Sequence[Request]) -> list[int]:
    return list(range(len(queue)))


@discipline("small-first", about="the fewest nodes first, then by arrival", source=ORDERS)
def small_first(queue: Sequence[Request]) -> list[int]:
    return sorted(range(len(queue)), key=lambda position: queue[position].nodes)


@discipline("large-first", about="the most nodes first, then by arrival", source=ORDERS)
def large_first(queue: Sequence[Request]) -> list[int]:
    return sorted(range(len(queue)), key=lambda position: -queue[position].nodes)
