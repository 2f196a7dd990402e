"""Other months of the same machine: the weeks of a trace drawn anew, by the moving-block bootstrap.

One trace is one sample: its means would be others in another year. What they might have been is
learned from its own weeks. A **replicate** is a trace as long as the recorded one (in whole weeks),
of blocks that are drawn from it with replacement: the moving-block bootstrap (H. Künsch, Ann.
Statist. 17, 1989; R. Liu, K. Singh 1992), in which what was submitted together stays together. A
block is put only where it begins at the same time of the week as it did, so that nights and
weekends stay where they are (A. Dudek et al., J. Time Ser. Anal. 35, 2014), and the last week is
followed by the first, so that all count alike (D. Politis, J. Romano 1992).

What is drawn is what users submitted, and not what became of it. The jobs of a replicate are
simulated from its beginning to its end: the queue that one block leaves is what the next one finds.
"""

from __future__ import annotations

import numpy as np

from odonata.traces.trace import SECOND, Trace
from pdes.errors import Refused

DAY_US = 86_400 * SECOND
WEEK_US = 7 * DAY_US
LEAST_WEEKS = 2


def resampled(trace: Trace, block_us: int, seed: int) -> Trace:
    """Returns a replicate of a trace: as many weeks as it has whole ones, of blocks of this length.
    Weeks are counted from time 0 or, where nothing is submitted in the first, from the first
    submission. Jobs are numbered from 1."""
    begin = int(trace.submit_us[0])
    begin = begin if begin >= WEEK_US else 0
    weeks = (int(trace.submit_us[-1]) - begin) // WEEK_US
    if weeks < LEAST_WEEKS or block_us > weeks * WEEK_US:
        raise Refused(f"{trace.name}: blocks of {block_us / DAY_US:g} d are drawn from its whole "
                      f"weeks, of which there are {weeks:,}: at least {LEAST_WEEKS} are needed, "
                      "and a block is no longer than all of them")  # fmt: skip
    length, times = weeks * WEEK_US, trace.submit_us - begin
    to = np.arange(0, length, block_us)
    drawn = np.random.default_rng(seed).integers(0, weeks, len(to))
    places, moved = [], []
    for at, week in zip(to.tolist(), drawn.tolist(), strict=True):
        source = at % WEEK_US + week * WEEK_US
        end = source + min(block_us, length - at)
        for first, last, shift in ((source, min(end, length), at - source),
                                   (0, end - length, at - source + length)):  # fmt: skip
            place = np.arange(*np.searchsorted(times, (first, max(first, last))))
            places.append(place)
            moved.append(trace.submit_us[place] + shift)
    kept = np.concatenate(places)
    if not len(kept):
        raise Refused(f"{trace.name}: of seed {seed}, no block that was drawn has a job")
    drawn_from = f"drawn anew, from {weeks:,} weeks in blocks of {block_us / DAY_US:g} d"
    return trace.where(kept, trace.account.but(noted={drawn_from: len(kept)}),
                       submit_us=np.concatenate(moved), number=np.arange(1, len(kept) + 1),
                       rates=None)  # fmt: skip
