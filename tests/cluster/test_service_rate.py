"""Service-rate control in the job model, against the paper's recursion, written out naively.

The recursion is that of Rumyantsev et al. (2018), equations 1 to 12, with exact fractions: served
are the first customers that fit together, or those of one of the paper's other disciplines; an
epoch is the next arrival, departure or switch, and all servers have one rate. A discipline compares
work with work, so that rates do not matter to it. One correction: the workload falls by the rate of
all who are served (the printed time of the switch is right for one customer). The model counts
whole microseconds, and rounds ends and switches up to them, so its times may be off by one for
every epoch before; with rates of 1 and 2 and times that can be halved often, they are not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from clusters import trace_of
from naive import Job

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import Simulated, simulate
from odonata.jobs.power import Power
from odonata.studies.rumyantsev.measures import Epochs
from policies.power.service_rate import ENERGIES

SECOND = 10**6


class Epoch(NamedTuple):
    """What a rule is asked at an epoch: which event it is, and what is there after it."""

    arrival: bool
    departure: bool
    customers: int
    work: Fraction


Rule = Callable[[bool, Epoch], bool]
"""Returns whether servers are fast from now on, from whether they were, and the epoch."""


@dataclass
class Track:
    """A run of the recursion. Times are microseconds, energies watts times these."""

    start: dict[int, Fraction] = field(default_factory=dict)
    end: dict[int, Fraction] = field(default_factory=dict)
    switches: list[Fraction] = field(default_factory=list)
    energy: dict[int, Fraction] = field(default_factory=dict)
    idle: Fraction = Fraction(0)
    work_area: Fraction = Fraction(0)
    """The integral of the workload."""
    epochs: int = 0
    ties: int = 0
    """Epochs with two arrivals or departures: the paper does not say which comes first."""
    until: Fraction = Fraction(0)


def prefix(jobs: Sequence[Job], present: Sequence[int], servers: int) -> list[int]:
    """Returns the customers that are served: the longest prefix that fits (equation 1)."""
    served: list[int] = []
    for label in present:
        if sum(jobs[other].nodes for other in (*served, label)) > servers:
            break
        served.append(label)
    return served


class Present(NamedTuple):
    """Who is there at an epoch: in order of arrival, with the work that is left of each; who of
    them is served; and who has just arrived (-1: somebody has departed, -2: neither)."""

    labels: Sequence[int]
    left: Mapping[int, Fraction]
    served: Sequence[int]
    arrived: int

    def fill(self, jobs: Sequence[Job], servers: int, order: Sequence[int]) -> list[int]:
        """Returns who is served, if those of an order join them until one does not fit."""
        found = [*self.served]
        for label in order:
            if sum(jobs[other].nodes for other in (*found, label)) > servers:
                break
            found.append(label)
        return found


Serves = Callable[[Sequence[Job], int, Present], list[int]]
"""Returns who is served from now on."""


def fcfs(jobs: Sequence[Job], servers: int, here: Present) -> list[int]:
    return prefix(jobs, here.labels, servers)


def lcfs_pr(jobs: Sequence[Job], servers: int, here: Present) -> list[int]:
    return prefix(jobs, here.labels[::-1], servers)


def easy_strict(jobs: Sequence[Job], servers: int, here: Present) -> list[int]:
    """First come, first served; and then those with less work than has to pass before the first
    that waits can start."""
    served = here.fill(jobs, servers, [label for label in here.labels if label not in here.served])
    waiting = [label for label in here.labels if label not in served]
    free = servers - sum(jobs[label].nodes for label in served)
    if not waiting:
        return served
    there, passes = free, Fraction(0)
    for label in sorted(served, key=here.left.__getitem__):
        if there < jobs[waiting[0]].nodes:
            there, passes = there + jobs[label].nodes, here.left[label]
    for label in waiting[1:]:
        if jobs[label].nodes <= free and here.left[label] < passes:
            served.append(label)
            free -= jobs[label].nodes
    return served


def by_amount(sign: int) -> Serves:
    """Returns shortest (1) or longest (-1) processing time first, not preemptive, in a new order at
    departures; an arrival is served if it fits and nobody waits."""

    def serves(jobs: Sequence[Job], servers: int, here: Present) -> list[int]:
        waiting = [label for label in here.labels if label not in here.served]
        if here.arrived != -1 and waiting != [here.arrived]:
            return [*here.served]
        return here.fill(jobs, servers, sorted(waiting, key=lambda it: sign * here.left[it]))

    return serves


def recursion(
    jobs: Sequence[Job], servers: int, rates: tuple[Fraction, Fraction], rule: Rule,
    energies: str = "swapped", switch_at: Fraction | None = None, serves: Serves = fcfs,
) -> Track:  # fmt: skip
    """Returns the run of the recursion. `switch_at`: the workload at which fast servers become slow
    between two events, if there is one."""
    watts = {"low": ENERGIES[energies][0], "high": ENERGIES[energies][1],
             "idle low": ENERGIES[energies][2], "idle high": ENERGIES[energies][3]}  # fmt: skip
    e = {name: Fraction(value) for name, value in watts.items()}
    track, now, fast = Track(), Fraction(0), False
    present: list[int] = []
    left: dict[int, Fraction] = {}
    served: list[int] = []
    arrivals = [(Fraction(job.submit), job.number) for job in jobs]
    while arrivals or present:
        rate = rates[fast]
        moments: list[tuple[Fraction, str, int]] = []
        if arrivals:
            moments += [(time, "arrival", label) for time, label in arrivals[:2]]
        moments += [(now + left[label] / rate, "departure", label) for label in served]
        work = sum(left.values(), Fraction(0))
        if switch_at is not None and fast and served and work > switch_at:
            moments.append((now + (work - switch_at) / (rate * len(served)), "switch", -1))
        then, what, label = min(moments)
        track.ties += sum(at == then for at, kind, _ in moments if kind != "switch") > 1
        track.epochs += 1
        # what happens until then: equations 4, 9, 11 and 12
        passed = then - now
        busy = sum(jobs[other].nodes for other in served)
        for other in served:
            left[other] -= passed * rate
            power = e["high" if fast else "low"]
            track.energy[other] = (track.energy.get(other, Fraction(0))
                                   + jobs[other].nodes * power * passed)  # fmt: skip
        track.idle += (servers - busy) * e["idle high" if fast else "idle low"] * passed
        track.work_area += passed * (work + sum(left.values(), Fraction(0))) / 2
        now = then
        # equation 3
        if what == "arrival":
            arrivals.pop(0)
            present.append(label)
            left[label] = Fraction(jobs[label].run)
        elif what == "departure":
            assert left.pop(label) == 0
            present.remove(label)
            track.end[label] = now
        # equations 1, 6 and 5
        arrived = {"arrival": label, "departure": -1}.get(what, -2)
        served = [other for other in served if other in left]
        served = serves(jobs, servers, Present(present, left, served, arrived))
        for other in served:
            track.start.setdefault(other, now)
        epoch = Epoch(what == "arrival", what == "departure", len(present),
                      sum(left.values(), Fraction(0)))  # fmt: skip
        was, fast = fast, rule(fast, epoch)
        if was != fast:
            track.switches.append(now)
    track.until = now
    return track


# -- the rules, as the paper has them


def always(fast: bool) -> Rule:
    return lambda was, epoch: fast


def by_number(few: int, many: int) -> Rule:
    def rule(was: bool, epoch: Epoch) -> bool:
        if epoch.arrival and epoch.customers > many:
            return True
        return was and not (epoch.departure and epoch.customers <= few)

    return rule


def by_workload(little: Fraction, much: Fraction) -> Rule:
    def rule(was: bool, epoch: Epoch) -> bool:
        return epoch.work > much or (was and epoch.work > little)

    return rule


def randomised(up: float, down: float, seed: int) -> Rule:
    """A coin is drawn at each arrival, and at a departure if servers are fast: otherwise it has
    nothing to decide."""
    drawn = iter(range(10**9))

    def coin(probability: float) -> bool:
        stream = np.random.Generator(np.random.Philox(key=[seed, next(drawn)]))
        return bool(stream.random() < probability)

    def rule(was: bool, epoch: Epoch) -> bool:
        if epoch.arrival:
            return coin(up) or was
        return was and not (epoch.departure and coin(down))

    return rule


# -- the same in the model


def run(
    jobs: Sequence[Job], servers: int, policy: str, idle_w: float = 14.0, discipline: str = "fcfs",
    **parameters: Any
) -> Simulated:  # fmt: skip
    power = Power(policy, tuple(parameters.items()), demand="constant", idle_w=idle_w)
    return simulate(Cluster(trace_of(jobs), servers, discipline, overrun="extend", power=power))


def random_jobs(seed: int, count: int, grain: int) -> tuple[list[Job], int]:
    """Returns jobs on a machine that some of them fill, in multiples of `grain` microseconds."""
    rng = random.Random(seed)
    servers, submit, jobs = rng.randint(1, 12), 0, []
    longest = rng.choice((300, 1000, 3000))
    for number in range(count):
        submit += rng.randint(1, 900) * grain
        run_us = rng.randint(20, longest) * grain
        jobs.append(Job(number, submit, run_us, rng.randint(1, servers), run_us, 0))
    return jobs, servers


def compare(
    track: Track, found: Simulated, lag_us: int, rates: tuple[Fraction, Fraction],
    energies: str = "swapped",
) -> None:  # fmt: skip
    """Hold the model against the recursion: times to the given lag, energies to 1e-6, and as many
    switches; and the study's means over time, which it takes from a schedule and its switches."""
    schedule, power = found.schedule, found.power
    assert power is not None
    for label in range(len(schedule)):
        for mine, theirs in ((schedule.start_us, track.start), (schedule.end_us, track.end)):
            assert abs(int(mine[label]) - theirs[label]) <= lag_us
    times, changes = (column.tolist() for column in power.speed_changes)
    if changes[0] == float(rates[0]):  # the rate at the beginning, and no switch
        times = times[1:]
    assert len(times) == len(track.switches)
    for mine, then in zip(times, track.switches, strict=True):
        assert abs(mine - then) <= lag_us
    theirs_j = [float(track.energy[label]) / SECOND for label in range(len(schedule))]
    assert power.energy_j == pytest.approx(theirs_j, rel=1e-6)
    assert power.idle_j == pytest.approx(float(track.idle) / SECOND, rel=1e-6, abs=1e-3)
    assert abs(power.until - track.until) <= lag_us
    epochs = Epochs.of(schedule, power.speed_changes, *map(float, rates))
    assert epochs.mean_work == pytest.approx(
        float(track.work_area / track.until) / SECOND, rel=1e-6
    )
    drawn = track.idle + sum(track.energy.values())
    assert epochs.power_w(ENERGIES[energies]) == pytest.approx(float(drawn / track.until), rel=1e-6)
    assert epochs.energy_j(ENERGIES[energies]) == pytest.approx(power.energy_j, rel=1e-9)


ONE, TWO = Fraction(1), Fraction(2)
LOW, HIGH = Fraction(2), Fraction(266, 100)
CLASSES = {"always slow": (always(False), "rate-by-number", {"few": 10**9, "many": 10**9}),
           "one threshold": (by_number(3, 3), "rate-by-number", {"few": 3, "many": 3}),
           "two thresholds": (by_number(1, 4), "rate-by-number", {"few": 1, "many": 4}),
           "none but when empty": (by_number(0, 0), "rate-by-number", {"few": 0, "many": 0}),
           }  # fmt: skip


@pytest.mark.parametrize("control", CLASSES)
def test_at_rates_of_one_and_two_the_model_is_the_recursion_to_the_tick(control: str) -> None:
    rule, policy, parameters = CLASSES[control]
    compared = 0
    for seed in range(12):
        jobs, servers = random_jobs(seed, 18, 2**20)
        track = recursion(jobs, servers, (ONE, TWO), rule)
        if not track.ties:
            found = run(jobs, servers, policy, low=1.0, high=2.0, **parameters)
            compare(track, found, 0, (ONE, TWO))
            compared += 1
    assert compared >= 6


SCHEDULINGS: dict[str, Serves] = {"lcfs-pr": lcfs_pr, "easy-strict": easy_strict,
                                 "spf": by_amount(1), "lpf": by_amount(-1)}  # fmt: skip


@pytest.mark.parametrize("discipline", SCHEDULINGS)
def test_other_disciplines_are_the_recursion_to_the_tick_while_rates_change(
    discipline: str,
) -> None:
    """Also in who is suspended for how long: energies and the mean workload say that."""
    rule, policy, parameters = CLASSES["two thresholds"]
    serves, compared, others = SCHEDULINGS[discipline], 0, 0
    for seed in range(8):
        jobs, servers = random_jobs(500 + seed, 20, 2**20)
        track = recursion(jobs, servers, (ONE, TWO), rule, serves=serves)
        if not track.ties:
            found = run(jobs, servers, policy, discipline=discipline, low=1.0, high=2.0,
                        **parameters)  # fmt: skip
            compare(track, found, 0, (ONE, TWO))
            compared += 1
            others += track.start != recursion(jobs, servers, (ONE, TWO), rule).start
    assert compared >= 4
    assert others >= 2


@pytest.mark.parametrize("discipline", SCHEDULINGS)
def test_other_disciplines_at_the_papers_rates_by_workload(discipline: str) -> None:
    compared = 0
    for seed in range(3):
        jobs, servers = random_jobs(600 + seed, 30, 999_983)
        least, most = Fraction(300 * SECOND), Fraction(1500 * SECOND)
        track = recursion(jobs, servers, (LOW, HIGH), by_workload(least, most), "swapped", least,
                          SCHEDULINGS[discipline])  # fmt: skip
        if not track.ties:
            found = run(jobs, servers, "rate-by-workload", discipline=discipline, little=300.0,
                        much=1500.0)  # fmt: skip
            compare(track, found, track.epochs, (LOW, HIGH))
            compared += 1
    assert compared >= 2


@pytest.mark.parametrize(("up", "down"), [(0.5, 0.5), (0.2, 0.9), (1.0, 1.0)])
def test_coins_switch_the_rate_at_arrivals_and_departures(up: float, down: float) -> None:
    compared = switched = 0
    for seed in range(8):
        jobs, servers = random_jobs(100 + seed, 18, 2**20)
        track = recursion(jobs, servers, (ONE, TWO), randomised(up, down, seed))
        if not track.ties:
            found = run(jobs, servers, "rate-randomised", low=1.0, high=2.0, up=up, down=down,
                        seed=seed)  # fmt: skip
            compare(track, found, 0, (ONE, TWO))
            compared += 1
            switched += len(track.switches)
    assert compared >= 4
    assert switched > 2 * compared


@pytest.mark.parametrize("energies", ["swapped", "printed"])
@pytest.mark.parametrize(("little", "much"), [(0, 0), (700, 700), (300, 1500), (2000, 2000)])
def test_control_by_workload_switches_when_the_work_is_reached(
    energies: str, little: int, much: int
) -> None:
    """Between two events too, at the time that counts all who are served."""
    between = compared = 0
    for seed in range(6):
        jobs, servers = random_jobs(200 + seed, 30, 999_983)
        least, most = Fraction(little * SECOND), Fraction(much * SECOND)
        rule = by_workload(least, most)
        track = recursion(jobs, servers, (LOW, HIGH), rule, energies, least)
        if track.ties:
            continue
        found = run(jobs, servers, "rate-by-workload", little=float(little), much=float(much),
                    energies=energies)  # fmt: skip
        compare(track, found, track.epochs, (LOW, HIGH), energies)
        compared += 1
        events = {*track.start.values(), *track.end.values(), *(Fraction(j.submit) for j in jobs)}
        between += sum(then not in events for then in track.switches)
    assert compared >= 4
    assert between > 0 or little == 0


@pytest.mark.parametrize(("few", "many"), [(0, 0), (2, 2), (2, 6)])
def test_control_by_number_at_the_papers_rates(few: int, many: int) -> None:
    compared = 0
    for seed in range(6):
        jobs, servers = random_jobs(300 + seed, 30, 999_983)
        track = recursion(jobs, servers, (LOW, HIGH), by_number(few, many))
        if not track.ties:
            found = run(jobs, servers, "rate-by-number", few=few, many=many)
            compare(track, found, track.epochs, (LOW, HIGH))
            compared += 1
    assert compared >= 4


def test_the_printed_time_of_the_switch_is_right_for_one_customer_only() -> None:
    """Two customers of 100 s each on two servers, at 2.66: 200 s of work become 120 s after 80 /
    (2 · 2.66) s = 15.04 s, and not after 80 / 2.66 s."""
    jobs = [Job(number, number, 100 * SECOND, 1, 100 * SECOND, 0) for number in (0, 1)]
    found = run(jobs, 2, "rate-by-workload", little=120.0, much=120.0)
    assert found.power is not None
    (times, rates) = found.power.speed_changes
    assert rates.tolist() == [2.0, 2.66, 2.0]
    assert times[2] / SECOND == pytest.approx(80 / (2 * 2.66), abs=3e-6)


def test_no_threshold_and_an_infinite_one_are_no_control() -> None:
    """But that an empty machine is slow at a threshold of 0, by number as by workload."""
    jobs, servers = random_jobs(400, 30, 999_983)
    number = run(jobs, servers, "rate-by-number", few=0, many=0)
    work = run(jobs, servers, "rate-by-workload", little=0.0, much=0.0)
    assert number.schedule.end_us.tolist() == work.schedule.end_us.tolist()
    assert number.power is not None
    assert work.power is not None
    assert number.power.total_j == work.power.total_j
    slow = run(jobs, servers, "rate-by-workload", little=1e9, much=1e9)
    assert slow.power is not None
    assert slow.power.speed_changes[1].tolist() == [2.0]
    took = slow.schedule.end_us - slow.schedule.start_us
    assert took.tolist() == [-(-job.run // 2) for job in jobs]
