"""Calibrate the application profiles in setting I of Zhang's thesis (section 3.6): the application
alone, on the first 64 nodes.

A profile says what its tasks do: the patterns, how many sends there are for each allreduce, what is
waited for. Table 3.4 and 3.5 give the part of the run time that the application spent in MPI and
the bytes that it transferred per second. Two numbers of the profile follow from these two: how long
its messages are, and how long it computes. An iteration is far shorter than that of the real
application, so that it can be simulated; bytes per second are kept. The shorter the messages, the
more of their time is latency; there is one length at which communication takes its part of it.
Where tasks compute for different times (`imbalance`), which they wait for, the length of an
iteration is given and the imbalance is found instead.

`--set table` does the same for profiles in which there are more exchanges for each allreduce, so
that the time in MPI is divided as in table 3.4. `--set real` is for those whose messages are as
long as the real ones, which are not changed: what an operation takes by the table beyond what the
network takes here is overhead, of exchanges and of allreduces, and bytes per second follow from how
long tasks compute.

Nothing of settings II to IV is looked at. Prints what each profile should have; `--write` changes
the files.

    python scripts/calibrate_profiles.py [--write] [--set table|real] [NAME ...]
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace

import numpy as np

from odonata.agents.profile import Profile
from odonata.experiment.profiles import HOME, built_in, profile_in
from odonata.experiment.sensitivity import operation_of
from odonata.jobs.request import Stage
from odonata.results.job_network import JobNetwork, added_up
from odonata.studies.congestion.claims import collectives
from odonata.studies.congestion.simulation import (
    NODES,
    SHIFTS,
    application_on,
    experiment_of,
    places,
)
from pdes.driver import run
from pdes.transport import Serial

ROUNDS = 12
CLOSE = 0.004, 0.02
"""How close to the table is close enough: the part of time, and bytes per second as a part."""
SMALL = 8
"""Messages of so many bytes are what they are, and are not scaled."""


@dataclass(frozen=True)
class Alone:
    """What an application has in setting I."""

    communication: float
    node_bytes_per_s: float
    iteration_s: float
    operations: dict[str, float]
    """The part of its tasks' time in each kind of MPI operation (`operation_of`)."""


def alone(found: Profile) -> Alone:
    """Returns what a profile, which need not be one of a file, has in setting I: medians over all
    shifts."""
    totals, parts, tasks = [], [], found.tasks_per_node or 2
    kinds = [operation_of(stage) for stage in found.stages]
    for shift in range(SHIFTS):
        mine, _ = places("I", shift, NODES)
        job = replace(application_on(found, mine, tasks), profile="")
        network = experiment_of([job], tasks).model()
        result = run(network, None, transport=Serial(), show_compiling=False)
        it = JobNetwork.of(network, result.outcome)[0]
        assert it.run_time_ps is not None
        seconds = it.run_time_ps * 1e-12
        totals.append((it.communication, it.bytes / it.nodes / seconds, seconds / job.iterations))
        parts.append([*added_up(kinds, it.in_stages).values()])
    communication, rate, iteration_s = np.median(totals, axis=0).tolist()
    operations = zip(dict.fromkeys(kinds), np.median(parts, axis=0).tolist(), strict=True)
    return Alone(communication, rate, iteration_s, dict(operations))


def with_numbers(
    found: Profile, length: float, compute: float, imbalance: float | None = None
) -> Profile:
    """Returns the profile with messages `length` times as long and computing `compute` times."""

    def changed(stage: Stage) -> Stage:
        size = stage.message_bytes
        mine = imbalance if stage.imbalance > 0 and imbalance is not None else stage.imbalance
        return replace(
            stage, imbalance=mine,
            message_bytes=size if size <= SMALL else max(SMALL + 1, round(size * length)),
            compute_ps=round(stage.compute_ps * compute / 1e3) * 1000,
            overhead_ps=round(stage.overhead_ps * compute / 1e3) * 1000,
        )  # fmt: skip

    return replace(found, stages=tuple(map(changed, found.stages)))


def calibrated(found: Profile) -> Profile:
    """Returns the profile that has the table's numbers in setting I."""
    target = found.measured
    assert target is not None
    before: tuple[float, float] | None = None
    for _ in range(ROUNDS):
        seen = alone(found)
        share = seen.communication - target.communication
        rate = seen.node_bytes_per_s / target.node_bytes_per_s - 1
        print(f"  {found.name}: communication {seen.communication:.3f}, "
              f"{seen.node_bytes_per_s / 1e6:,.1f} MB/s per node, {seen.iteration_s * 1e6:,.1f} us "
              "per iteration", flush=True)  # fmt: skip
        if abs(share) < CLOSE[0] and abs(rate) < CLOSE[1]:
            return found
        if imbalance := next((it.imbalance for it in found.stages if it.imbalance), 0.0):
            slope = seen.communication / imbalance  # at first; the secant, then
            if before and before[0] != imbalance:
                slope = (seen.communication - before[1]) / (imbalance - before[0])
            before = (imbalance, seen.communication)
            wanted = imbalance - share / max(slope, 1e-3)
            length = target.node_bytes_per_s / seen.node_bytes_per_s
            found = with_numbers(found, length, 1.0, round(max(0.001, wanted), 4))
            continue
        mean = seen.iteration_s * seen.node_bytes_per_s  # bytes per iteration
        spent = seen.communication * seen.iteration_s
        slope = 0.04e-9
        if before and abs(before[0] / mean - 1) > 0.02:
            slope = (spent - before[1]) / (mean - before[0])
        needed = target.communication / target.node_bytes_per_s  # seconds per byte
        slope = min(max(slope, 0.0), 0.9 * needed)
        wanted = max(spent - slope * mean, 0.1 * spent) / (needed - slope)
        before = (mean, spent)
        length = min(max(wanted / mean, 0.25), 4.0)
        whole = length * mean / target.node_bytes_per_s
        computed = (1 - seen.communication) * seen.iteration_s
        found = with_numbers(found, length, (1 - target.communication) * whole / computed)
    raise SystemExit(f"{found.name}: not calibrated in {ROUNDS} rounds")


def filled(found: Profile) -> Profile:
    """Returns the profile of messages as long as the real ones that has the table's numbers in
    setting I. What its exchanges leave for its allreduces to wait for may be more than the table
    has: then nothing is added to these."""
    target = found.measured
    assert target is not None
    together = collectives(dict(target.operations))
    apart = target.communication - together
    for _ in range(ROUNDS):
        seen = alone(found)
        reduced = collectives(seen.operations)
        exchanged = seen.communication - reduced
        rate = seen.node_bytes_per_s / target.node_bytes_per_s
        print(f"  {found.name}: exchanges {exchanged:.3f} ({apart:.3f}), allreduces {reduced:.3f} "
              f"({together:.3f}), bytes per second {rate:.3f} times", flush=True)  # fmt: skip
        off = (exchanged - apart, reduced - together, rate - 1)
        if all(abs(it) < limit for it, limit in zip(off, FILLED, strict=True)):
            return found
        whole = seen.iteration_s * rate * 1e12  # ps, at the table's bytes per second
        here = seen.iteration_s * 1e12
        missing = {True: together * whole - reduced * here, False: apart * whole - exchanged * here}
        stages, given = [], set()
        for stage in found.stages:
            kind = stage.pattern == "allreduce"
            more = 0.0 if kind in given else missing[kind] / stage.repeat
            given.add(kind)
            computed = (1 - target.communication) * whole / stage.repeat
            stages.append(replace(
                stage, overhead_ps=max(0, round((stage.overhead_ps + more) / 1e3) * 1000),
                compute_ps=round(computed / 1e3) * 1000 if stage.compute_ps else 0,
            ))  # fmt: skip
        if tuple(stages) == found.stages:
            return found
        found = replace(found, stages=tuple(stages))
    return found


FILLED = 0.004, 0.003, 0.015
"""How close is close enough there: the parts of time of exchanges and of allreduces, and bytes per
second as a part."""


def rewritten(text: str, found: Profile) -> str:
    """Returns a profile file with the numbers of its stages."""
    head, *stages = text.split("[[stages]]")
    for number, stage in enumerate(found.stages):
        for key, value in (("message", f'"{stage.message_bytes} B"'),
                           ("compute", f'"{stage.compute_ps / 1e6:g} us"'),
                           ("overhead", f'"{stage.overhead_ps / 1e6:g} us"'),
                           ("imbalance", f"{stage.imbalance:g}")):  # fmt: skip
            stages[number] = re.sub(
                rf"(?m)^{key} = [^#\n]*?(\s*#.*)?$", rf"{key} = {value}\1", stages[number]
            )
    return "[[stages]]".join([head, *stages])


def main() -> None:
    words = sys.argv[1:]
    write, home, find = "--write" in words, HOME, calibrated
    if "--set" in words:
        at = words.index("--set")
        home, find = HOME / words[at + 1], filled if words[at + 1] == "real" else calibrated
        del words[at : at + 2]
    names = [word for word in words if not word.startswith("-")]
    for name in names or built_in():
        path = home / f"{name}.toml"
        if not path.is_file() or profile_in(path).measured is None:
            continue
        found = find(profile_in(path))
        for stage in found.stages:
            print(f"{name}: {stage.pattern} {stage.message_bytes} B, compute "
                  f"{stage.compute_ps / 1e6:g} us, overhead {stage.overhead_ps / 1e6:g} us, "
                  f"imbalance {stage.imbalance:g}")  # fmt: skip
        if write:
            path.write_text(rewritten(path.read_text(), found))


if __name__ == "__main__":
    main()
