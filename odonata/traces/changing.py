"""Changes to a trace: fewer jobs, another load, another machine.

Each returns a new trace; jobs that it leaves out are in the account of the new one, by reason. What
would leave no job is refused.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from odonata.traces.clock import SINCE_1970_US, WallClock
from odonata.traces.columns import LONGEST_US, MOST_NODES
from odonata.traces.trace import SECOND, UNKNOWN, Trace
from pdes.errors import Refused

NO_REQUEST = "no requested time: the run time is taken"
SINCE_1970 = "submitted at a time since 1970: counted from the first submission"


def first(trace: Trace, n: int) -> Trace:
    """Returns the first `n` jobs; all, if there are fewer."""
    if n < 1:
        raise Refused(f"the first {n} jobs of {trace.name}: at least 1")
    return _only(trace, np.arange(len(trace)) < n, f"not among the first {n:,}")


def limited(trace: Trace, nodes: int) -> Trace:
    """Returns the jobs that fit on a machine of so many nodes."""
    return _only(trace, trace.nodes <= nodes, f"larger than the machine of {nodes:,} nodes")


def between(trace: Trace, from_us: int, to_us: int) -> Trace:
    """Returns the jobs that were submitted from one time on and before another. Their times stay as
    they are; `from_zero` moves them."""
    inside = (trace.submit_us >= from_us) & (trace.submit_us < to_us)
    begin, end = from_us / SECOND, to_us / SECOND
    return _only(trace, inside, f"not submitted between {begin:,.0f} s and {end:,.0f} s")


def from_zero(trace: Trace) -> Trace:
    """Returns the same jobs, earlier by one time, so that the first is submitted at 0; on the wall
    clock they stay where they are."""
    if not len(trace):
        return trace
    begin = int(trace.submit_us[0])
    clock = None if trace.clock is None else trace.clock.moved(begin)
    return trace.where(slice(None), submit_us=trace.submit_us - begin, clock=clock)


def since_first(trace: Trace) -> Trace:
    """Returns the same jobs; where their times count from 1970 (`SINCE_1970_US`), from the first
    submission, whose date that is, and the account says so."""
    if not len(trace) or trace.submit_us[0] < SINCE_1970_US:
        return trace
    zone = None if trace.clock is None else trace.clock.zone
    account = trace.account.but(repaired={SINCE_1970: len(trace)})
    return replace(from_zero(replace(trace, clock=WallClock(0, zone))), account=account)


def rescaled(trace: Trace, load: float, nodes: int) -> Trace:
    """Returns the same jobs with all gaps between submissions longer or shorter by one factor, so
    that `Trace.load(nodes)` becomes `load`. The first submission stays where it is."""
    if not (math.isfinite(load) and load > 0):
        raise Refused(f"a load of {load}: a number above 0 is needed, such as 0.8")
    if nodes < 1:
        raise Refused(f"the load on {nodes} nodes: at least 1")
    now = trace.load(nodes)
    if math.isnan(now):
        raise Refused(f"{trace.name}: all jobs are submitted together, so no load can be set: "
                      "take a trace with gaps between submissions")  # fmt: skip
    if now == 0:
        raise Refused(f"{trace.name}: all run times are 0, so its load stays 0: take another trace")
    begin = int(trace.submit_us[0])
    after = (trace.submit_us - begin).astype(np.float64) * (now / load)
    if begin + after[-1] > LONGEST_US:
        raise Refused(f"{trace.name}: at a load of {load:g} on {nodes:,} nodes it would last for "
                      "more than 1,000 years: ask for a higher load or fewer nodes")  # fmt: skip
    if after[-1] < 1:
        raise Refused(f"{trace.name}: at a load of {load:g} on {nodes:,} nodes all jobs would be "
                      "submitted together: ask for a lower load or more nodes")  # fmt: skip
    submit_us = begin + np.rint(after).astype(np.int64)
    return trace.where(slice(None), submit_us=submit_us, rates=None)


def onto(trace: Trace, nodes: int, of: int | None = None) -> Trace:
    """Returns the same jobs for a machine of so many nodes: each has the same share of it as before
    of its own, rounded up. `of` is the size of its own machine, for a trace that does not tell."""
    own = of if of is not None else trace.machine_nodes
    if own is None:
        raise Refused(f"{trace.name}: it does not tell the size of its machine, so sizes of jobs "
                      "cannot be scaled: give that size (the largest job has "
                      f"{int(trace.nodes.max(initial=0)):,} nodes)")  # fmt: skip
    for size in (own, nodes):
        if not 1 <= size <= MOST_NODES:
            raise Refused(f"a machine of {size:,} nodes: from 1 to {MOST_NODES:,}")
    sizes = -(-trace.nodes * nodes // own)
    return trace.where(slice(None), nodes=sizes, machine_nodes=nodes)


def filled(trace: Trace) -> Trace:
    """Returns the same jobs, all with a requested time: where none is recorded, it is the run time
    (1 us for one of 0)."""
    lacking = trace.requested_us == UNKNOWN
    requested = np.where(lacking, np.maximum(trace.run_us, 1), trace.requested_us)
    account = trace.account.but(repaired={NO_REQUEST: int(lacking.sum())})
    return trace.where(slice(None), account, requested_us=requested)


def _only(trace: Trace, kept: Any, reason: str) -> Trace:
    """Returns these jobs; the others were dropped for a reason."""
    left_out = int(len(trace) - kept.sum())
    account = trace.account.but({reason: left_out})
    if left_out == len(trace):
        words = "; ".join(account.lines())
        raise Refused(f"{trace.name}: no job is left of {len(trace):,} ({words}): ask for less to "
                      "be left out")  # fmt: skip
    return trace.where(kept, account)
