"""Random hours of demand response on small machines.

Half of the settings are of powers, averages and reserves that are multiples of 1/8 watt, and of
signals that are multiples of 1/64: sums of those are exact, so equal powers are equal whatever the
order in which they are added. In the others nothing is, and ties are improbable.
"""

from __future__ import annotations

import math
import random

from regulation_naive import SECOND, Job, Setting, Type

POLICIES = ("tracking-only", "energy-qare", "qosg")


def with_options(setting: Setting, seed: int) -> Setting:
    """Returns the machine under `aqa`, with every option on or off."""
    dice = random.Random(f"options {seed}")
    flags = ("weighted", "sharing", "parts", "capping", "planned", "gaps", "preemption")
    given = {name: dice.random() < (0.8 if name == "weighted" else 0.5) for name in flags}
    gain = dice.choice((0.0, 0.5, 1.0, 8.0))
    return setting._replace(policy="aqa", gain=gain, **given)


def random_setting(seed: int) -> Setting:
    dice = random.Random(seed)
    exact = dice.random() < 0.5

    def watts(low: float, high: float) -> float:
        value = dice.uniform(low, high)
        return round(value * 8) / 8 if exact else value

    nodes = dice.choice((2, 3, 4, 8, 16, 27, 40, dice.randint(2, 40)))
    idle_w = watts(10, 100)
    end_s = 6 * dice.randint(50, 300)
    hour_s = 6 * dice.randint(20, 100)
    interval = dice.choice((500_000, 2 * SECOND, 3 * SECOND)) if dice.random() < 0.15 else SECOND

    # Types, and of which there are standby jobs
    types, sizes = [], []
    for j in range(dice.randint(1, 6)):
        most = watts(idle_w + 10, idle_w + 250)
        if dice.random() < 0.08:
            most = watts(0.5 * idle_w, idle_w)  # busy nodes draw less than idle ones
        least = watts(min(idle_w, most), most)
        if dice.random() < 0.15:
            least = watts(most, most + 50)  # caps do nothing
        elif dice.random() < 0.15:
            least = watts(0.5 * min(idle_w, most), min(idle_w, most))
        slowdown = 1.0 if dice.random() < 0.15 else dice.uniform(1, 2.5)
        threshold = math.inf if dice.random() < 0.25 else round(dice.uniform(0.05, 6), 2)
        types.append(Type(f"type{j}", most, least, slowdown, threshold))
        widest = dice.choice((1, 1, 2, 4, nodes))
        sizes.append((min(nodes, widest), dice.random() < 0.3))
    standby = dice.randrange(len(types)) if dice.random() < 0.5 else None
    kinds = [j for j in range(len(types)) if j != standby]

    # Jobs: so many that they would keep this share of the nodes busy, and in bursts or one by one
    jobs: list[Job] = []
    if kinds and dice.random() < 0.95:
        load = dice.choice((0.1, 0.4, 0.7, 0.9, 1.0, 1.3, 2.5))
        longest_s = dice.choice((5, 20, 60, 200))
        work, most_jobs = load * nodes * end_s * SECOND, dice.choice((10, 100, 300))
        rows = []
        burst = dice.random() < 0.3
        instant = dice.random() < 0.3
        submit = 0
        while work > 0 and len(rows) < most_jobs:
            kind = dice.choice(kinds)
            size, varies = sizes[kind]
            size = dice.randint(1, size) if varies else size
            run = dice.choice((dice.randint(1, longest_s) * SECOND,
                               dice.randint(1, longest_s * SECOND)))  # fmt: skip
            if not (burst and rows and dice.random() < 0.7):
                submit = dice.randrange(end_s * SECOND)
                submit -= submit % SECOND if instant or dice.random() < 0.2 else 0
            rows.append(Job(submit, run, size, kind))
            work -= run * size
        jobs = sorted(rows, key=lambda job: job.submit_us)

    # What is asked of the machine: from below what it draws when idle to above what it can draw
    bottom = nodes * idle_w
    top = nodes * max(idle_w, *(kind.most_w for kind in types))
    bids: list[tuple[float, float, list[float]]] = []
    same = dice.random() < 0.3
    for hour in range(math.ceil(end_s / hour_s)):
        average = watts(bottom + dice.choice((-0.05, 0.05, 0.3)) * (top - bottom),
                        bottom + dice.choice((0.6, 0.9, 1.05)) * (top - bottom))  # fmt: skip
        reserve = min(average, watts(0, dice.choice((0.2, 0.6, 1.0)) * (top - bottom)))
        if dice.random() < 0.1:
            reserve = 0.0
        weights: list[float] = []
        if kinds and dice.random() < 0.75:
            weights = [round(dice.random(), 3) if dice.random() < 0.8 else 0.0 for _ in types]
            if standby is not None:
                weights[standby] = 0.0
            if not any(weights):
                weights[dice.choice(kinds)] = 1.0
        bids.append(bids[0] if same and hour else (average, reserve, weights))

    # The signal wanders, or is new at each step
    step = dice.choice((1, 2, 4, None))  # seconds, or at any microsecond
    memory = dice.choice((0.0, 0.8, 0.95))
    signal, time, y = [], 0, 0.0
    while time < end_s * SECOND:
        y = memory * y + (1 - memory**2) ** 0.5 * dice.uniform(-1.2, 1.2)
        y = max(-1.0, min(1.0, y))
        signal.append((time, round(64 * y) / 64 if exact else y))
        time += step * SECOND if step else dice.randint(1, 5 * SECOND)

    # fmt: off
    return Setting(
        nodes, idle_w, types, jobs, dice.choice(POLICIES), hour_s * SECOND, bids, signal,
        end_s * SECOND, interval, preemption=dice.random() < 0.5, standby=standby,
        standby_run_us=dice.choice((SECOND, dice.randint(1, 60 * SECOND), 30 * SECOND)),
        standby_nodes=1 if dice.random() < 0.7 else dice.randint(1, nodes),
        limit=0.3 if dice.random() < 0.8 else round(dice.uniform(0.1, 1), 2),
    )
    # fmt: on
