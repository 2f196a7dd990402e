"""Wallace's dynamic learner: what power a waiting or a running job is expected to draw.

Every running job is sampled. Its samples go to the history of the jobs alike (those of one project,
user and application) and to that of its project; of each the latest are kept. A waiting job is
given the profile of its own history, else that of its project, else the maximum of the device.
Once a run has enough samples, a two-sample t-test compares them with those behind its profile; a
profile that no longer stands for the job gives way to the project's, or to the maximum.

All watts here are watts per node, so that runs of different sizes share a profile. Everything that
is known is in arrays, `Learned`, which a policy declares as its memory (`new`) and takes from there
again. The functions that Python calls are entries; a caller that calls them a million times has
`pdes.jit.direct` compile them for its arrays.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pdes.errors import Refused
from pdes.jit import entry, kernel

UNKNOWN, OWN, PROJECT, REJECTED = range(4)
"""Where a profile comes from: nothing is known, so it is the device's maximum; from the history of
the jobs alike; from that of the project; neither stands for the job, so it is the maximum."""

HIGHS = ("p95", "max", "mean+2sd")
P95, MAX, MEAN_2SD = range(len(HIGHS))
"""What of the latest samples is the profile: the 95th percentile (interpolated linearly, as numpy
does), the largest, or the mean and two standard deviations."""

LEAST, HIGH, WINDOW, MAXIMUM_W, RELEARN, SETTING_WORDS = range(6)
"""Words of `Settings.words`: how many samples a history needs to be known and a run to be tested;
one of HIGHS; of how many latest samples that is taken; the device's maximum; and whether (1) a job
for which nothing stands gets a profile of its own run, or (0) keeps the maximum."""

N, MEAN, VARIANCE, REFERENCE_WORDS = range(4)
"""Words of `Learned.reference`; the variance is the unbiased one."""

SAME = 1e-9
"""Means that differ by less than this part of the greater are equal: that is how sums round, and
it would reject a job of constant power, the variance of which is 0."""


class Settings(NamedTuple):
    """How is learned. `new_settings` makes it."""

    words: Any
    critical: Any
    """The t above which the means of two samples differ, by degrees of freedom."""


class Learned(NamedTuple):
    """All that is known. A ring holds the latest samples: the one with the number s (from 0) is at
    s modulo its length."""

    own_w: Any
    """A ring for each set of jobs alike, and the samples that were ever put into it."""
    own_seen: Any
    project_w: Any
    """A ring for each project, and the samples that were ever put into it."""
    project_seen: Any
    run_w: Any
    """A ring for each slot of a running job: the samples since its profile last changed."""
    run_since: Any
    """Samples since the profile last changed, by slot."""
    run_total: Any
    """Samples of this run, by slot."""
    free_slots: Any
    """A stack of slots. Its last word is how many there are on it."""
    slot_of: Any
    """The slot of each job, -1 while it does not run."""
    profile_w: Any
    """The profile of each job that runs or has run."""
    source: Any
    """Where it comes from: UNKNOWN, OWN, PROJECT or REJECTED."""
    reference: Any
    """N, MEAN and VARIANCE of the samples behind it, by job; N is 0 where there are none."""
    alike_project: Any
    """The project of each set of jobs alike; -1 as long as none of its jobs was seen."""


def new(
    jobs: int, alike: int, projects: int, most_running: int, kept: int = 100
) -> dict[str, npt.NDArray[Any]]:
    """Returns the arrays of a learner that knows nothing, by the fields of `Learned`. Each history
    and each run keeps its `kept` latest samples."""
    return Learned(
        own_w=np.zeros((alike, kept)),
        own_seen=np.zeros(alike, np.int64),
        project_w=np.zeros((projects, kept)),
        project_seen=np.zeros(projects, np.int64),
        run_w=np.zeros((most_running, kept)),
        run_since=np.zeros(most_running, np.int64),
        run_total=np.zeros(most_running, np.int64),
        free_slots=np.append(np.arange(most_running)[::-1], most_running),
        slot_of=np.full(jobs, -1, np.int64),
        profile_w=np.zeros(jobs),
        source=np.zeros(jobs, np.int64),
        reference=np.zeros((jobs, REFERENCE_WORDS)),
        alike_project=np.full(alike, -1, np.int64),
    )._asdict()


def new_settings(
    maximum_w: float,
    *,
    least: int = 20,
    high: str = HIGHS[P95],
    window: int = 20,
    alpha: float = 0.01,
    relearn: bool = False,
    kept: int = 100,
) -> Settings:
    """Returns settings, with Wallace's values where none is given. `maximum_w` is the most that a
    node can draw, `alpha` the part of samples of equal means that a test rejects by mistake, and
    `kept` what `new` was given."""
    if not 0.0 < maximum_w < inf:
        raise Refused(f"maximum_w = {maximum_w}: the most watts of a node, above 0")
    if not 2 <= least <= kept:
        raise Refused(f"least = {least}: 2 to {kept} samples, for a variance needs two and "
                      f"{kept} are kept")  # fmt: skip
    if not 1 <= window <= kept:
        raise Refused(f"window = {window}: 1 to {kept} samples, for so many are kept")
    if high not in HIGHS:
        raise Refused(f"high = {high!r}: one of {', '.join(HIGHS)}")
    words = np.zeros(SETTING_WORDS)
    words[LEAST], words[HIGH], words[WINDOW] = least, HIGHS.index(high), window
    words[MAXIMUM_W], words[RELEARN] = maximum_w, relearn
    return Settings(words, critical(alpha, 2 * kept))


def critical(alpha: float, most: int) -> npt.NDArray[np.float64]:
    """Returns the 1 - alpha/2 quantile of Student's t for 0 to `most` degrees of freedom (infinite
    for 0), rounded to 10 digits, for libraries differ in the last ones."""
    if not 0.0 < alpha < 1.0:
        raise Refused(f"alpha = {alpha}: the significance of a test lies between 0 and 1 (0.01)")
    from scipy.special import stdtrit  # type: ignore[import-untyped]

    found = stdtrit(np.arange(1, most + 1), 1.0 - alpha / 2.0)
    return np.array([inf, *(float(f"{each:.10g}") for each in found)])


@kernel
def _statistics(ring: Any, seen: int) -> Any:
    """Returns N, MEAN and VARIANCE of what a ring holds. Taken as differences from one sample, the
    mean of equal samples is exactly theirs, and their variance exactly 0."""
    n = min(seen, ring.shape[0])
    total = 0.0
    for i in range(n):
        total += ring[i] - ring[0]
    mean = ring[0] + total / max(n, 1)
    squares = 0.0
    for i in range(n):
        squares += (ring[i] - mean) * (ring[i] - mean)
    return n, mean, squares / max(n - 1, 1)


@kernel
def _high(ring: Any, seen: int, words: Any) -> Any:
    """Returns the profile that the latest samples of a ring give, at most the device's maximum."""
    kept = ring.shape[0]
    n = min(seen, kept, int(words[WINDOW]))
    how = words[HIGH]
    if how == MEAN_2SD:
        start = ring[(seen - 1) % kept]
        total = 0.0
        for i in range(n):
            total += ring[(seen - 1 - i) % kept] - start
        mean = start + total / n
        squares = 0.0
        for i in range(n):
            off = ring[(seen - 1 - i) % kept] - mean
            squares += off * off
        return min(mean + 2.0 * sqrt(squares / max(n - 1, 1)), words[MAXIMUM_W])
    # From the largest down, each time the one before (value, place): no array has to be sorted.
    rank = (n - 1) * 0.95 if how == P95 else n - 1.0
    below = int(rank)
    above_w, found_w, at = inf, inf, n
    for _ in range(n - below):
        above_w = found_w
        best_w, best = -inf, -1
        for i in range(n):
            each = ring[(seen - 1 - i) % kept]
            if (each < found_w or (each == found_w and i < at)) and each >= best_w:
                best_w, best = each, i
        found_w, at = best_w, best
    part = rank - below
    result = found_w
    if part > 0.0:  # as numpy rounds it
        gap = above_w - found_w
        result = found_w + gap * part if part < 0.5 else above_w - gap * (1.0 - part)
    return min(result, words[MAXIMUM_W])


@kernel
def _differ(n1: Any, mean1: Any, variance1: Any, n2: Any, mean2: Any, variance2: Any,
            critical: Any) -> bool:  # fmt: skip
    """Tells whether two samples have different means, by the pooled two-sample t-test."""
    gap = abs(mean1 - mean2)
    if gap <= SAME * max(abs(mean1), abs(mean2)):
        return False
    freedom = n1 + n2 - 2
    pooled = ((n1 - 1) * variance1 + (n2 - 1) * variance2) / freedom
    if pooled == 0.0:
        return True
    error = sqrt(pooled) * sqrt(1.0 / n1 + 1.0 / n2)
    return gap > critical[int(freedom)] * error  # type: ignore[no-any-return]


@kernel
def _estimate(learned: Learned, alike: int, project: int, words: Any) -> Any:
    """Returns the profile of a job that waits, and where it comes from."""
    if learned.own_seen[alike] >= words[LEAST]:
        return _high(learned.own_w[alike], learned.own_seen[alike], words), OWN
    if learned.project_seen[project] >= words[LEAST]:
        return _high(learned.project_w[project], learned.project_seen[project], words), PROJECT
    return words[MAXIMUM_W], UNKNOWN


@kernel
def _adopt(
    learned: Learned, job: int, profile_w: Any, source: int, n: Any, mean: Any, variance: Any
) -> None:
    """Change the profile of a running job, and begin anew to collect what it is tested by."""
    learned.profile_w[job] = profile_w
    learned.source[job] = source
    learned.reference[job, N] = n
    learned.reference[job, MEAN] = mean
    learned.reference[job, VARIANCE] = variance
    learned.run_since[learned.slot_of[job]] = 0


@kernel
def _adopt_estimate(learned: Learned, job: int, alike: int, project: int, words: Any) -> None:
    """Give a running job the profile of a waiting one."""
    profile_w, source = _estimate(learned, alike, project, words)
    n, mean, variance = 0, 0.0, 0.0
    if source == OWN:
        n, mean, variance = _statistics(learned.own_w[alike], learned.own_seen[alike])
    elif source == PROJECT:
        n, mean, variance = _statistics(learned.project_w[project], learned.project_seen[project])
    _adopt(learned, job, profile_w, source, n, mean, variance)


@kernel
def _review(learned: Learned, job: int, alike: int, project: int, settings: Settings) -> None:
    """Test the profile of a running job, now that it has one more sample."""
    words, slot = settings.words, learned.slot_of[job]
    least, source = words[LEAST], learned.source[job]
    if learned.run_total[slot] < least:
        return
    if source == UNKNOWN:
        _adopt_estimate(learned, job, alike, project, words)
        return
    if learned.run_since[slot] < least:
        return
    ring = learned.run_w[slot]
    n, mean, variance = _statistics(ring, learned.run_since[slot])
    if source != REJECTED:
        behind = learned.reference[job]
        if not _differ(behind[N], behind[MEAN], behind[VARIANCE], n, mean, variance,
                       settings.critical):  # fmt: skip
            return
    # The project's samples contain those of this very run. The paper does not take them out.
    whole, seen = learned.project_w[project], learned.project_seen[project]
    if seen >= least:
        its_n, its_mean, its_variance = _statistics(whole, seen)
        if not _differ(its_n, its_mean, its_variance, n, mean, variance, settings.critical):
            _adopt(learned, job, _high(whole, seen, words), PROJECT, its_n, its_mean, its_variance)
            return
    if source != REJECTED:
        _adopt(learned, job, words[MAXIMUM_W], REJECTED, 0, 0.0, 0.0)
    elif words[RELEARN] != 0.0:
        profile_w = _high(ring, learned.run_since[slot], words)
        _adopt(learned, job, profile_w, OWN, n, mean, variance)


@entry
def estimates(
    learned: Learned,
    jobs: Any,
    alike_of: Any,
    project_of: Any,
    settings: Settings,
    watts_out: Any,
    source_out: Any,
) -> None:
    """Write the profile of each of these waiting jobs, in watts per node, and its source.

    `jobs` are job numbers, which index `alike_of` and `project_of`; the answers have the positions
    of `jobs`.
    """
    for i in range(jobs.shape[0]):
        alike, project = alike_of[jobs[i]], project_of[jobs[i]]
        learned.alike_project[alike] = project
        watts_out[i], source_out[i] = _estimate(learned, alike, project, settings.words)


@entry
def begin(learned: Learned, job: int, alike: int, project: int, settings: Settings) -> int:
    """Give a job that starts its profile, with what it will be tested against, and a slot.

    Returns the slot; -1, and nothing is done, where as many jobs run as there are slots.
    """
    slot = learned.slot_of[job]
    if slot < 0:
        last = learned.free_slots.shape[0] - 1
        if learned.free_slots[last] == 0:
            return -1
        learned.free_slots[last] -= 1
        slot = learned.free_slots[learned.free_slots[last]]
        learned.slot_of[job] = slot
    learned.run_total[slot] = 0
    learned.alike_project[alike] = project
    _adopt_estimate(learned, job, alike, project, settings.words)
    return slot  # type: ignore[no-any-return]


@entry
def take_samples(
    learned: Learned, jobs: Any, watts: Any, alike_of: Any, project_of: Any, settings: Settings
) -> int:
    """Take one sample of each of these running jobs: one after the other, each is kept and then
    tested, so the samples of the first are known to the second.

    Returns how many were taken. A sample that is infinite, negative or not a number is none, nor is
    one of a job that has no slot.
    """
    kept, taken = learned.run_w.shape[1], 0
    for i in range(jobs.shape[0]):
        job, each = jobs[i], watts[i]
        slot = learned.slot_of[job]
        if slot < 0 or not 0.0 <= each < inf:
            continue
        alike, project = alike_of[job], project_of[job]
        learned.run_w[slot, learned.run_since[slot] % kept] = each
        learned.run_since[slot] += 1
        learned.run_total[slot] += 1
        learned.own_w[alike, learned.own_seen[alike] % kept] = each
        learned.own_seen[alike] += 1
        learned.project_w[project, learned.project_seen[project] % kept] = each
        learned.project_seen[project] += 1
        _review(learned, job, alike, project, settings)
        taken += 1
    return taken


@entry
def finish(learned: Learned, job: int) -> None:
    """Free the slot of a job that has ended, if it has one. Its profile stays to be read."""
    slot = learned.slot_of[job]
    if slot >= 0:
        last = learned.free_slots.shape[0] - 1
        learned.free_slots[learned.free_slots[last]] = slot
        learned.free_slots[last] += 1
        learned.slot_of[job] = -1


@entry
def known(learned: Learned, settings: Settings) -> Any:
    """Returns of how many sets of jobs alike a profile is known, their own or their project's, and
    how many were seen: the learning rate is their ratio."""
    found = seen = 0
    least = settings.words[LEAST]
    for alike in range(learned.alike_project.shape[0]):
        project = learned.alike_project[alike]
        if project >= 0:
            seen += 1
            if learned.own_seen[alike] >= least or learned.project_seen[project] >= least:
                found += 1
    return found, seen
