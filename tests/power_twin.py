"""A second account of power, written to be read and not to be fast: from who held nodes when, and
from the logged changes of caps and service rates, it tells what every node drew at every time. It
shares no line with the model, which is held against it.

A node that no job holds is idle; once it has been so for long enough it is asleep, from that tick
on. Of the idle nodes a job gets those that became idle last, unless it is told where the job was
placed. If some of them are asleep these wake up, and for that time the job's other nodes draw idle
power and no work is done. Then every node draws what the job demands but no more than its cap, and
no less than the least that it can be held to; idle power while the job is suspended; or what the
service rate of the machine has busy nodes draw. Where nodes differ, all watts of a node's job are
multiplied with its factor, and the one of the largest factor tells how fast the job gets on.

Times are whole ticks of a microsecond.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

INFINITE = math.inf


class Watts(NamedTuple):
    """What the nodes of a machine are like."""

    nodes: int
    idle_w: float
    active_w: float
    least_w: float
    slowdown: float
    sleep_w: float = 0.0
    wake_w: float = 0.0
    wake_us: int = 0
    sleep_after_us: int | None = None
    factors: tuple[float, ...] = ()
    """[node]; empty: all are 1."""
    speeds: Mapping[float, tuple[float, float]] = {}
    """The watts of a busy and of an idle node, by service rate."""


class Held(NamedTuple):
    """A segment: from when to when a job held nodes; on which, where that is known."""

    job: int
    begin: int
    end: int
    labels: tuple[int, ...] | None = None


class Piece(NamedTuple):
    """So many watts from one time to another."""

    begin: int
    end: int
    watts: float


Pieces = list[Piece]


class Moment(NamedTuple):
    """What holds for a job from a time on."""

    begin: int
    cap_w: float
    suspended: bool
    rate: float | None
    """None: nobody has set one yet."""


@dataclass
class Rebuilt:
    """What was drawn: by each job, by idle nodes, by sleeping nodes; and by each node, whatever it
    was for. And how much work each job has done, and at which pace it ended."""

    by_job: list[Pieces]
    idle: Pieces
    asleep: Pieces
    by_node: list[Pieces]
    work: list[float]
    last_pace: list[float]
    wakes: int

    @property
    def everything(self) -> Pieces:
        return [piece for pieces in self.by_node for piece in pieces]


def joules(pieces: Sequence[Piece], begin: int = 0, end: int = 2**62) -> float:
    """Returns the energy of these between two times."""
    return math.fsum(
        piece.watts * (min(piece.end, end) - max(piece.begin, begin)) / 1e6
        for piece in pieces
        if piece.begin < end and piece.end > begin
    )


def stretched(cap_w: float, watts: Watts) -> float:
    """Returns how many times as long work takes: 1 at `active` watts or more, `slowdown` at `least`
    watts or less, and linear in between."""
    cap_w = min(max(cap_w, watts.least_w), watts.active_w)
    if cap_w == watts.active_w:
        return 1.0
    missing = (watts.active_w - cap_w) / (watts.active_w - watts.least_w)
    return 1.0 + (watts.slowdown - 1.0) * missing


def drawn_w(factor: float, now: Moment, watts: Watts) -> float:
    """Returns what a node of a job draws that is awake."""
    if now.suspended:
        return idle_w(now.rate, watts)
    if now.rate is not None:
        return watts.speeds[now.rate][0]
    wanted, least = factor * watts.active_w, factor * watts.least_w
    return wanted if now.cap_w >= wanted else max(now.cap_w, least)


def idle_w(rate: float | None, watts: Watts) -> float:
    return watts.idle_w if rate is None else watts.speeds[rate][1]


def pace(factor: float, now: Moment, watts: Watts) -> float:
    """Returns the ticks that a tick of work takes on nodes of which this is the worst factor."""
    if now.suspended:
        return INFINITE
    return stretched(now.cap_w / factor, watts) / (1.0 if now.rate is None else now.rate)


def moments(
    held: Held, caps: Sequence[tuple[int, int, float]], speeds: Sequence[tuple[int, float]]
) -> list[Moment]:
    """Returns what holds in a segment, from each time on at which something changes. A segment
    begins without a cap, and not suspended; what is changed at its first tick holds from there."""
    happened: list[tuple[int, str, float]] = []
    for time, job, cap_w in caps:
        if job == held.job and held.begin <= time < max(held.end, held.begin + 1):
            happened.append((time, "cap", cap_w))
    for time, rate in speeds:
        if time < held.end:
            happened.append((time, "rate", rate))
    happened.sort(key=lambda one: one[0])
    now = Moment(held.begin, INFINITE, False, None)
    found = [now]
    for time, what, value in happened:
        begin = max(time, held.begin)
        if what == "rate":
            now = now._replace(begin=begin, rate=value)
        elif math.isnan(value):
            now = now._replace(begin=begin, suspended=False)
        elif value < 0:
            now = now._replace(begin=begin, suspended=True)
        else:
            now = now._replace(begin=begin, cap_w=value)
        found.append(now)
    return found


def places(segments: Sequence[Held], sizes: Sequence[int], watts: Watts) -> list[tuple[int, ...]]:
    """Returns the nodes of each segment: given, or those that became idle last."""
    since = dict.fromkeys(range(watts.nodes), 0)
    found: list[tuple[int, ...]] = [()] * len(segments)
    for now in sorted({held.begin for held in segments} | {held.end for held in segments}):
        for number, held in enumerate(segments):
            if held.end == now > held.begin:
                since.update(dict.fromkeys(found[number], now))
        for number, held in enumerate(segments):
            if held.begin == now:
                labels = held.labels
                if labels is None:
                    assert sizes[held.job] <= len(since), "a job gets more nodes than are idle"
                    latest = sorted(since, key=lambda node: -since[node])
                    labels = tuple(latest[: sizes[held.job]])
                for node in labels:
                    del since[node]
                found[number] = labels
                if held.end == now:
                    since.update(dict.fromkeys(labels, now))
    return found


def rebuild(
    segments: Sequence[Held],
    sizes: Sequence[int],
    watts: Watts,
    until: int,
    caps: Sequence[tuple[int, int, float]] = (),
    speeds: Sequence[tuple[int, float]] = (),
) -> Rebuilt:
    """Returns what was drawn up to a time, of segments in the order in which they began."""
    labels = places(segments, sizes, watts)
    factors = watts.factors or (1.0,) * watts.nodes
    rates: list[tuple[int, float | None]] = [(0, None), *speeds]
    built = Rebuilt([[] for _ in sizes], [], [], [[] for _ in range(watts.nodes)],
                    [0.0] * len(sizes), [1.0] * len(sizes), 0)  # fmt: skip

    def draw(node: int, begin: int, end: int, watts_: float, into: Pieces) -> None:
        end = min(end, until)
        if begin < end:
            into.append(Piece(begin, end, watts_))
            built.by_node[node].append(Piece(begin, end, watts_))

    def draw_idle(node: int, begin: int, end: int, into: Pieces) -> None:
        for (since, rate), (to, _) in pairwise([*rates, (2**62, None)]):
            draw(node, max(begin, since), min(end, to), idle_w(rate, watts), into)

    free_since = [0] * watts.nodes
    order = sorted(range(len(segments)), key=lambda number: segments[number].begin)
    for number in order:
        held, nodes = segments[number], labels[number]
        waking = []
        for node in nodes:
            idle_since = free_since[node]
            assert idle_since <= held.begin, f"two jobs hold node {node} at {held.begin}"
            if fell_asleep(node, idle_since, held.begin, watts, draw_idle, draw, built):
                waking.append(node)
            free_since[node] = held.end
        built.wakes += len(waking)
        ready = held.begin + (watts.wake_us if waking else 0)
        pieces = built.by_job[held.job]
        for node in nodes:
            if node in waking:
                draw(node, held.begin, min(ready, held.end), watts.wake_w, pieces)
            else:
                draw_idle(node, held.begin, min(ready, held.end), pieces)
        worst = max(factors[node] for node in nodes)
        known = moments(held, caps, speeds)
        for now, after in pairwise([*known, known[-1]._replace(begin=held.end)]):
            begin, end = max(now.begin, ready), min(after.begin, held.end)
            if begin < end:
                built.work[held.job] += (end - begin) / pace(worst, now, watts)
            built.last_pace[held.job] = pace(worst, now, watts)
            for node in nodes:
                draw(node, begin, end, drawn_w(factors[node], now, watts), pieces)
    for node, since in enumerate(free_since):
        fell_asleep(node, since, until, watts, draw_idle, draw, built)
    return built


def fell_asleep(
    node: int, since: int, now: int, watts: Watts, draw_idle: Any, draw: Any, built: Rebuilt
) -> bool:
    """Have a node be idle from one time to another, and asleep for the last part of it if that is
    long enough. Returns whether it is asleep in the end."""
    after = watts.sleep_after_us
    if after is None or since + after > now:
        draw_idle(node, since, now, built.idle)
        return False
    draw_idle(node, since, since + after, built.idle)
    draw(node, since + after, now, watts.sleep_w, built.asleep)
    return True


# -- what the model says, in these words


def held_in(schedule: Any, until: int) -> list[Held]:
    """Returns the segments of a schedule; one that goes on is held until then."""
    first = None if schedule.labels is None else schedule.first_label.tolist()
    found = []
    for number, job in enumerate(schedule.segment_job.tolist()):
        begin, end = (int(each[number]) for each in
                      (schedule.segment_from_us, schedule.segment_to_us))  # fmt: skip
        labels = None
        if first is not None:
            at = first[number]
            labels = tuple(schedule.labels[at : at + int(schedule.trace.nodes[job])].tolist())
        found.append(Held(job, begin, until if end < 0 else end, labels))
    return found


def caps_in(record: Any) -> list[tuple[int, int, float]]:
    """Returns the logged caps of jobs."""
    columns = (column.tolist() for column in record.cap_changes)
    return [row for row in zip(*columns, strict=True) if row[1] >= 0]


def speeds_in(record: Any) -> list[tuple[int, float]]:
    times, rates = record.speed_changes
    return list(zip(times.tolist(), rates.tolist(), strict=True))


def mean_of_steps(steps: Sequence[tuple[int, float]], begin: int, end: int) -> float:
    """Returns the mean of a value that changes at times (the first is 0) between two times."""
    total = [value * (min(to, end) - max(since, begin))
             for (since, value), (to, _) in pairwise([*steps, (2**62, 0.0)])
             if since < end and to > begin]  # fmt: skip
    return math.fsum(total) / (end - begin)
