"""Starts that wait for a cheaper or a cleaner hour: a job is held for a while, and then scheduled
by any other discipline.

When a job is first seen, its start is **planned**: for the time, from now up to its bound, at which
it would cost least, of those at which the machine is expected to have room for it. If that is not
the first time with room, the job is **held** until then: the discipline behind is not shown it, so
that it has no reservation and is in nobody's way. Any other job, and one whose time has come, is
**released**, for good. docs/howto/cheaper-hours.md says what that saves, and when it does not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pdes.clock import TICKS
from pdes.errors import Fault
from policies.memory import Memory, Sizes
from policies.parameters import parameter
from policies.policy import Arrays
from policies.scheduling.base import SCHEDULINGS, SchedulingPolicy, scheduling, select
from policies.scheduling.drain import Drain
from policies.views import NEVER, Ahead, Course, Ended, Request, View

SOURCE = "ours; docs/howto/cheaper-hours.md has the exact rule"
UNSEEN = -1
"""The release of a job that has not been seen yet."""


Spell = tuple[int, int]
"""From when until when."""


def full(now: int, idle: int, held: Iterable[tuple[int, int, int]]) -> list[Spell]:
    """Returns when more than `idle` nodes are held, from now on, of jobs that are given by begin,
    end and nodes.

    >>> full(0, 3, [(0, 10, 2), (5, 20, 2), (10, 15, 2)])
    [(5, 15)]
    """
    changes: dict[int, int] = {}
    for begin, end, nodes in held:
        changes[max(begin, now)] = changes.get(max(begin, now), 0) + nodes
        changes[end] = changes.get(end, 0) - nodes
    found: list[Spell] = []
    since: int | None = None
    busy = 0
    for time in sorted(changes):
        busy += changes[time]
        if busy > idle and since is None:
            since = time
        elif busy <= idle and since is not None:
            found.append((since, time))
            since = None
    return found


def cheapest(
    course: Course,
    now: int,
    latest: int,
    length: int,
    until: int,
    spells: Sequence[Spell] = (),
    least_saving: float = 0.0,
) -> tuple[int, int] | None:
    """Returns the first of the starts from `now` to `latest` at which there is room for `length`
    ticks, outside of all `spells`, and the first of those at which they cost least. The latter is
    the former, unless that saves more than a part of what it would cost (of its amount, where a
    price is below 0). None: there is room at no time. What is known ends at `until`: behind it, the
    mean of what is known is expected. Costs are compared exactly, so that equal ones are equal.

    What a start costs is linear between those at which it or its end meets a change of price: so
    the least is at one of these, or where room begins or ends.

    >>> day = Course((0, 10, 20), (3.0, 1.0, 2.0))
    >>> cheapest(day, 0, 99, 5, 30), cheapest(day, 0, 99, 12, 30), cheapest(day, 0, 7, 5, 30)
    ((0, 10), (0, 10), (0, 7))
    >>> cheapest(day, 0, 99, 5, 30, [(2, 12)]), cheapest(day, 0, 99, 5, 30, least_saving=0.7)
    ((12, 12), (0, 0))
    """
    begins, whole = _whole(course, now, until)
    sums = [0]
    for place in range(1, len(begins)):
        sums.append(sums[-1] + whole[place - 1] * (begins[place] - begins[place - 1]))

    def cost(start: int) -> int:
        first, last = bisect_right(begins, start) - 1, bisect_right(begins, start + length) - 1
        until = sums[last] + whole[last] * (start + length - begins[last])
        return until - sums[first] - whole[first] * (start - begins[first])

    meets = {time - shift for time in begins for shift in (0, length)}
    meets.update(end for _, end in spells)
    meets.update(begin - length for begin, _ in spells)
    starts = sorted({now, latest, *(time for time in meets if now < time < latest)})
    place, found = 0, []
    for start in starts:
        while place < len(spells) and spells[place][1] <= start:
            place += 1
        if place == len(spells) or start + length <= spells[place][0]:
            found.append(start)
    if not found:
        return None
    costs = [cost(start) for start in found]
    best = costs.index(min(costs))
    if costs[0] - costs[best] <= Fraction(least_saving) * abs(costs[0]):
        best = 0
    return found[0], found[best]


def _whole(course: Course, now: int, until: int) -> tuple[list[int], list[int]]:
    """Returns a course with the mean of what is known behind it, as whole numbers: all levels times
    one factor."""
    ratios = [level.as_integer_ratio() for level in course.levels]
    scale = max(below for _, below in ratios)
    begins = [*course.begins, until]
    whole = [above * (scale // below) for above, below in ratios]
    if until <= now:
        return begins[:-1], whole
    total = sum(level * (begins[place + 1] - begins[place]) for place, level in enumerate(whole))
    return begins, [*(level * (until - now) for level in whole), total]


@dataclass(frozen=True)
class Cheaper(SchedulingPolicy):
    """Holds each job until the time, within its bound, at which it would cost least by what is
    known ahead and the machine is expected to have room for it; from then on it is scheduled by
    another discipline, and never held again."""

    always = True
    _goes_by = ""
    """Which series of `Ahead` it goes by."""

    rule: str = parameter("easy", about="discipline by which released jobs start")
    bound: float = parameter(
        6.0, unit="hours", about="for which a job is held at most", least=0, most=8784
    )
    part: float = parameter(
        1.0, about="of its requested time, for which a job is held at most; 0: whatever that is",
        least=0, most=1e6,
    )  # fmt: skip
    least_saving: float = parameter(
        0.0, about="part of the cost of a start now that holding has to exceed in savings",
        least=0, most=1,
    )  # fmt: skip
    horizon: float = parameter(
        24.0, unit="hours", about="for which price, carbon intensity and cap are known ahead",
        least=0, most=8784,
    )  # fmt: skip
    drain: bool = parameter(
        False, about="jobs do not start that are expected to break a cap that is known ahead"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        base = self._base
        if base.preemptive or isinstance(base, Cheaper):
            why = "takes nodes from running jobs" if base.preemptive else "holds jobs itself"
            raise ValueError(f"rule = {self.rule!r}: a discipline that only starts jobs, such as "
                             f"easy, fcfs or conservative; it {why}")  # fmt: skip

    @cached_property
    def _base(self) -> SchedulingPolicy:
        """Returns the discipline by which released jobs start."""
        base: SchedulingPolicy = SCHEDULINGS.make(self.rule)
        return base

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        own = (self._goes_by, "cap") if self.drain else (self._goes_by,)
        return (*own, *(name for name in self._base.needs if name not in own))

    def remembers(self, sizes: Sizes) -> Arrays:
        """Returns when each job is planned to start and when it is released, and what the
        discipline behind remembers."""
        own = {name: np.full(sizes.jobs, UNSEEN) for name in ("planned", "released")}
        behind = self._base.remembers(sizes)
        if both := sorted({*own} & {*behind}):
            raise ValueError(f"rule = {self.rule!r}: it remembers {both[0]}, as this policy does")
        return {**own, **behind}

    def learn(self, ended: Ended, memory: Memory) -> None:
        self._base.learn(ended, memory)

    def select(self, view: View) -> Sequence[int]:
        assert view.memory is not None
        released, planned = view.memory.released, view.memory.planned
        for job in view.queue:
            at = job.number
            if released[at] == UNSEEN:
                planned[at], released[at] = self._plan(view, job, planned)
        queue = [job for job in view.queue if released[job.number] <= view.time]
        drain = self._drain(view)
        if drain is not None:
            queue = [job for job in queue if drain.lets(job, released[job.number])]
        if not self._base.always and not (queue and view.free > 0):
            return []
        chosen = select(self._base, view._replace(queue=queue))
        if drain is None:
            return chosen
        jobs, admitted = {job.number: job for job in queue}, []
        for number in chosen:
            if drain.lets(jobs[number], released[number]):
                drain.start(jobs[number])
                admitted.append(number)
        return admitted

    def again(self, view: View) -> int | None:
        """Returns when the next job is released, where jobs wait for another cap, when that changes
        or one has been released for long enough, or when the discipline behind wants to be asked,
        whichever comes first."""
        assert view.memory is not None
        now, cap = view.time, self._ahead(view).cap
        times = [int(view.memory.released[job.number]) for job in view.queue]
        later = [time for time in times if time > now]
        if self.drain and cap is not None and len(later) < len(times):
            long = _ticks(view, self.horizon)
            later += [time + long for time in times if time <= now < time + long]
            later += cap.begins[1:2]
        released = [job for job in view.queue if view.memory.released[job.number] <= now]
        behind = self._base.again(view._replace(queue=released))
        later += [] if behind is None else [behind]
        return min(later, default=None)

    def _plan(self, view: View, job: Request, planned: Any) -> tuple[int, int]:
        """Returns for when the start of a job is planned that is seen for the first time, and when
        it is released."""
        now, asked = view.time, job.requested
        if asked is None:
            return now, now
        bound = _ticks(view, self.bound)
        if self.part > 0.0:
            bound = min(bound, int(self.part * asked))
        latest = job.submit + bound
        ahead = self._ahead(view)
        course: Course | None = getattr(ahead, self._goes_by)
        if latest <= now or course is None:
            return now, now
        nodes = view.free + sum(run.request.nodes for run in view.running)
        spells = full(now, nodes - job.nodes, _held(view, planned))
        found = cheapest(course, now, latest, asked, ahead.until, spells, self.least_saving)
        if found is None:
            return now, now
        first, best = found
        return best, best if best > first else now

    def _drain(self, view: View) -> Drain | None:
        """Returns what says which jobs would break a cap to come, None where nobody asks that."""
        ahead = self._ahead(view) if self.drain else None
        return None if ahead is None or ahead.cap is None else Drain(view, ahead)

    def _ahead(self, view: View) -> Ahead:
        if view.ahead is None:
            raise Fault("it goes by prices, carbon intensities and caps, and the view has none")
        return view.ahead(_ticks(view, self.horizon))


def _held(view: View, planned: Any) -> Iterator[tuple[int, int, int]]:
    """Yields from when until when each job that runs or was planned is expected to hold how
    many nodes."""
    now = view.time
    for run in view.running:
        end = run.requested_end
        yield now, NEVER if end is None else max(end, now + 1), run.request.nodes
    for job in view.queue:
        if planned[job.number] != UNSEEN:
            begin = max(now, int(planned[job.number]))
            yield begin, NEVER if job.requested is None else begin + job.requested, job.nodes


def _ticks(view: View, hours: float) -> int:
    return round(hours * 3600e12 / TICKS[view.tick])


@scheduling("price-aware", about="jobs are held for a cheaper hour, within a bound, and then start "
            "by another discipline", source=SOURCE)  # fmt: skip
class PriceAware(Cheaper):
    __doc__ = Cheaper.__doc__
    _goes_by = "price"


@scheduling("carbon-aware", about="jobs are held for a cleaner hour, within a bound, and then "
            "start by another discipline", source=SOURCE)  # fmt: skip
class CarbonAware(Cheaper):
    __doc__ = Cheaper.__doc__
    _goes_by = "carbon"
