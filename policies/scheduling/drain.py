"""Draining before a cap that is known to come: which jobs may start now, so that the machine is
expected to stay within the cap until they end.

Every node of a job is expected to draw `Ahead.most_w`, every other one `Ahead.idle_w`, and a job to
run until its requested end. A cap in steps is broken, if at all, at the beginning of a step or now:
within one the machine only gets emptier, as far as anybody knows. The last cap that is known is
taken to hold for ever.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from policies.views import NEVER, Ahead, Request, View


class Drain:
    """The machine as it is expected to be at each step of the cap that is known, from now on."""

    def __init__(self, view: View, ahead: Ahead) -> None:
        assert ahead.cap is not None
        self._view, self._ahead = view, ahead
        self._begins, self._levels = ahead.cap
        self._nodes = view.free + sum(job.request.nodes for job in view.running)
        self._busy = [0] * len(self._begins)
        for job in view.running:
            end = job.requested_end
            self._hold(job.request.nodes, NEVER if end is None else max(end, view.time + 1))

    def lets(self, job: Request, released: int) -> bool:
        """Tells whether a job may start now that was released then: the machine is expected to stay
        within the cap at all times that are known until the job ends.

        A job that has been released for as long as is known ahead, and that would break the cap
        even alone whenever it started (as far as is known until its end), would wait for ever
        where caps come back every day. It may start as soon as the present cap feeds it, or at once
        if no cap that is known ever does."""
        end = self._end(job)
        if all(self._fits(step, job.nodes) for step in self._until(end)):
            return True
        now, until = self._view.time, self._ahead.until
        if now - released < until - now or self._fits_alone(job, end - now):
            return False
        fed = [self._within(step, job.nodes) for step in range(len(self._begins))]
        return self._fits(0, job.nodes) or not any(fed)

    def start(self, job: Request) -> None:
        """Count a job that starts now."""
        self._hold(job.nodes, self._end(job))

    def _end(self, job: Request) -> int:
        end = self._view.expected_end(job)
        return NEVER if end is None else min(end, NEVER)

    def _until(self, end: int) -> Iterable[int]:
        """Returns the steps that begin before a time."""
        return (step for step, begin in enumerate(self._begins) if begin < end)

    def _hold(self, nodes: int, end: int) -> None:
        for step in self._until(end):
            self._busy[step] += nodes

    def _within(self, step: int, busy: int) -> bool:
        """Tells whether so many busy nodes are within the cap of a step. More than there are draw
        what all of them do: it is not the cap then that keeps a job waiting."""
        idle_w, most_w, level = self._ahead.idle_w, self._ahead.most_w, self._levels[step]
        busy = min(busy, self._nodes)
        return level == math.inf or busy * most_w + (self._nodes - busy) * idle_w <= level

    def _fits(self, step: int, nodes: int) -> bool:
        return self._within(step, self._busy[step] + nodes)

    def _fits_alone(self, job: Request, length: int) -> bool:
        """Tells whether a job would be within the cap alone if it started now or with one of the
        steps that are known, and ended before what is not known."""
        begins, until = self._begins, self._ahead.until
        for start in begins:
            end = start + length
            steps = (step for step, begin in enumerate(begins)
                     if begin < end and (*begins, NEVER)[step + 1] > start)  # fmt: skip
            if end <= until and all(self._within(step, job.nodes) for step in steps):
                return True
        return False
