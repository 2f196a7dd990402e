"""Where everything is: the kinds of events, the words of every array, and the state itself.

A job is **to come**, **waiting**, **running**, **finished** or **killed**
(`odonata.jobs.schedule`); one that was preempted is waiting again. All that happens at one instant
is known before jobs are chosen: first jobs end, then jobs arrive, then there is one **pass** of the
scheduler.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pdes.events import key_of
from pdes.jit import kernel
from policies.scheduling.desk import CTL_WORDS as DESK_WORDS
from policies.scheduling.desk import JOB_WORDS as DESK_JOB_WORDS
from policies.scheduling.desk import Desk

KINDS = ("drain", "end", "arrive", "launch", "pass")
DRAIN, END, ARRIVE, LAUNCH, PASS = range(len(KINDS))
"""The kinds of events, in the order in which they are handled at one instant: the notes are full;
a job ends (its row, and which of its segments it was); the next job arrives; more of the chosen
jobs start; the scheduler chooses."""

SCHEDULER = 0
"""The agent that has all of it."""

RUN, LEFT, STATUS, START, OVER, SEGMENT, NODE, PICKED, SHORT = range(
    DESK_JOB_WORDS, DESK_JOB_WORDS + 9
)
"""Words of a job behind those of a desk: its run time when nothing slows it down; what is left of
that; its state; when it first started; when it was over; how many segments it has begun; the first
of its nodes, if it is placed; the pass that picked it; and whether its segment ends before its
work does, because it is killed then."""
JOB_WORDS = SHORT + 1

NEXT, PASSING, LAUNCHED, PASSES, NOTES, ENDED, DONE, LAST_END, KILLS, PREEMPTS = range(
    DESK_WORDS, DESK_WORDS + 10
)
"""Words of the control array behind those of a desk: the job that arrives next; whether a pass is
due at this instant; how many of the chosen have started; passes so far; notes that nobody has
collected; jobs that ended and of which no policy has learned; jobs that are over; when the last of
them ended; whether jobs are killed at their requested time; whether the discipline preempts."""
CTL_WORDS = PREEMPTS + 1

STARTED = 0
"""What a note is about: a start, or FINISHES, KILLS or SUSPENDS of `odonata.jobs.schedule`."""
NOTE_WORDS = 3
"""Words of a note: the time, the job, what happened."""

NOBODYS = 1 << 62
"""The owner of a node that no job gets, as only the first of the machine's nodes are used."""

AT_ONCE = 32
"""Jobs that one event starts at most; the others of a pass follow at the same instant."""
FANOUT = AT_ONCE + 2
NOTES_KEPT = 1 << 14
"""Notes after which they are collected, whatever else happens."""


class State(NamedTuple):
    """The arrays of a desk, then those of the model."""

    ctl: Any
    rule: Any
    jobs: Any
    queue: Any
    running: Any
    whole: Any
    real: Any
    chosen: Any
    heap: Any
    keys: Any
    times: Any
    room: Any
    slowdown: Any
    """[job], float64: how many times as long as its run time it takes."""
    owner: Any
    """[node]: its job, -1, or NOBODYS; empty where nodes are only counted."""
    after: Any
    """[node]: the next node of the same job, in the order in which it was given them, or -1."""
    notes: Any
    """[note, NOTE_WORDS]"""
    ended: Any
    """Jobs of which no policy has learned."""
    memory: Any
    """What policies that are written in Python remember."""


@kernel
def desk_of(state: State) -> Desk:
    """Returns the part of the state that a discipline works on."""
    return Desk(
        state.ctl, state.rule, state.jobs, state.queue, state.running, state.whole, state.real,
        state.chosen, state.heap, state.keys, state.times, state.room,
    )  # fmt: skip


@kernel
def key(kind: int) -> Any:
    return key_of(kind, SCHEDULER, 0)
