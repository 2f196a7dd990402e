"""The numbers of the study, each beside the one that the paper gives.

A **change** is that of a month's mean wait or utilisation relative to a run without a cap, in
strict order: 0 is none, 1 is twice as much. A **gain** is by how much the learner's change is
better than the naive policy's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.studies.wallace.cases import (
    CAPS,
    CAUSES,
    HIGH,
    LOADS,
    LOW,
    MIDDLE,
    ORDERS,
    PEAK,
    SOME,
    VARIANTS,
    WallacePlan,
)
from odonata.studies.wallace.simulation import LEARNER, NAIVE, NONE, VARIABLE, Part, WallaceOutcome
from odonata.study.contract import Claim
from odonata.study.verdicts import yes_or_no

Outcomes = Mapping[str, WallaceOutcome]
Floats = npt.NDArray[np.float64]

WAIT, UTILISATION = "wait_s", "utilisation"
SUCCESS, VARIABLE_SUCCESS, NEAR = 0.99, 0.992, 0.005
"""The paper's capping success, above it at 3,000 kW and about it under the variable cap; ours is
about it where it is no further off than half a point."""
LEARNED, LEARNED_DAY, LEARNED_NEAR = 0.94, 26, 0.03
"""The paper's learning rate, after how many days, and how far off ours may be."""
GAINS = {
    (WAIT, "fcfs"): (0.42, 1.88),
    (WAIT, "wfp"): (0.36, 1.77),
    (UTILISATION, "fcfs"): (0.03, 0.21),
    (UTILISATION, "wfp"): (0.08, 0.21),
}
"""The paper's ranges. It does not say of what: of months, or of means over months."""
HIGHEST = 15.0
"""The paper's largest change of wait: in month 5, FCFS, 2,000 kW."""
DEGRADED = 0.01
"""At 4,000 kW the paper's learner costs less than this."""
BETTER = 4
"""Months in which the paper's learner has shorter waits than a run without a cap."""
SAVED_S = 100.0
"""By how much WFP's mean wait is shorter in the paper: almost so much."""
WORDS = {WAIT: "wait", UTILISATION: "utilisation"}
TIE = 1e-3
"""A month in which the learner is not better, but behind by less than this, is even."""


# -- by month


def by_month(asked: WallacePlan, outcomes: Outcomes, cell: tuple[Part, ...], name: str) -> Floats:
    """Returns a measure of every month of a cell, NaN where there is no outcome yet."""
    rows = [
        getattr(outcomes[part.key], name) if part.key in outcomes
        else (np.nan,) * (asked.months if part.month is None else 1)
        for part in cell
    ]  # fmt: skip
    return np.array([value for row in rows for value in row], np.float64)


def change(
    asked: WallacePlan, outcomes: Outcomes, name: str, order: str, policy: str, cap: str = MIDDLE,
    **how: Any,
) -> Floats:  # fmt: skip
    """Returns the change of every month; `how` is what else the run is different by, or of `every`
    how many months it is."""
    same = {word: how[word] for word in ("load", "every") if word in how}
    without = by_month(asked, outcomes, asked.cell(order, NONE, **same), name)
    return by_month(asked, outcomes, asked.cell(order, policy, cap, **how), name) / without - 1


def gain(
    asked: WallacePlan, outcomes: Outcomes, name: str, order: str, cap: str, **how: Any
) -> Floats:  # fmt: skip
    """Returns the gain of every month, above 0 where the learner is better."""
    naive, ours = (change(asked, outcomes, name, order, policy, cap, **how)
                   for policy in (NAIVE, LEARNER))  # fmt: skip
    return naive - ours if name == WAIT else ours - naive


def learning_rate(outcome: WallaceOutcome) -> Floats:
    """Returns by day the part of the jobs that have started with a known profile."""
    known, unknown = np.array(outcome.known), np.array(outcome.unknown)
    rate: Floats = known / np.maximum(known + unknown, 1)
    return rate


def sets_known(outcome: WallaceOutcome) -> Floats:
    """Returns by day the part of the sets of jobs alike whose profile is known."""
    part: Floats = np.array(outcome.sets_known) / np.maximum(np.array(outcome.sets_seen), 1)
    return part


# -- claims


def claims(asked: WallacePlan, outcomes: Outcomes) -> list[Claim]:
    """Returns the claims that there are outcomes for."""
    found: list[Claim] = []
    for order in ORDERS:
        found += _of_year(asked, outcomes, order)
    for order in ORDERS:
        found += _of_caps(asked, outcomes, order)
    found += _of_orders(asked, outcomes)
    for order in CAUSES if "causes" in asked.parts else ():
        found += _of_causes(asked, outcomes, order)
        for load in LOADS:
            found += _of_load(asked, outcomes, order, load)
    return found


def _of_year(asked: WallacePlan, outcomes: Outcomes, order: str) -> Iterator[Claim]:
    """Claims about one run of the whole year."""
    title = order.upper()
    steady, variable, without = (
        outcomes.get(asked.part(order, policy, cap).key)
        for policy, cap in ((LEARNER, MIDDLE), (LEARNER, VARIABLE), (NONE, MIDDLE))
    )
    if steady:
        success = steady.capping_success
        yield _success(f"{title}: within 3,000 kW", "> 99 %", steady, success > SUCCESS)
    if without:
        yield _success(f"{title}: the same without control", "", without, None)
    if variable:
        near = abs(variable.capping_success - VARIABLE_SUCCESS) <= NEAR
        yield _success(f"{title}: within the variable cap", "99.2 %", variable, near)
    if steady and len(steady.known) >= LEARNED_DAY:
        day = LEARNED_DAY - 1
        started = steady.known[day] + steady.unknown[day]
        rate = float(learning_rate(steady)[day])
        yield Claim(
            f"{title}: jobs with a known profile, after 26 days",
            "94 %",
            _percent(rate, 1),
            yes_or_no(abs(rate - LEARNED) <= LEARNED_NEAR),
            started,
            {"rate": rate},
        )
        rate = float(sets_known(steady)[day])
        yield Claim(f"{title}: sets of jobs alike that are known", "", _percent(rate, 1), None,
                    steady.sets_seen[day], {"rate": rate})  # fmt: skip


def _success(name: str, paper: str, outcome: WallaceOutcome, holds: bool | None) -> Claim:
    shares = {cause: count / max(1, outcome.intervals)
              for cause, count in outcome.violations.items()}  # fmt: skip
    success = outcome.capping_success
    return Claim(name, paper, _percent(success, 2), yes_or_no(holds), outcome.intervals,
                 {"capping_success": success, **shares})  # fmt: skip


def _of_caps(asked: WallacePlan, outcomes: Outcomes, order: str) -> Iterator[Claim]:
    """Claims about waits and utilisations, by month."""
    title = order.upper()
    for name in (WAIT, UTILISATION):
        how = "less wait" if name == WAIT else "more utilisation"
        for cap in CAPS:
            gains = _there(gain(asked, outcomes, name, order, cap))
            if not len(gains):
                continue
            won, even = int((gains > 0).sum()), int(((gains <= 0) & (gains > -TIE)).sum())
            ours = f"{won}, and {even} even" if even else f"{won}"
            yield Claim(
                f"{title} {_kw(cap)}: months of {how} than naive",
                "all",
                ours,
                yes_or_no(won == len(gains)),
                len(gains),
                {"won": won, "even": even},
            )
        low, high = GAINS[name, order]
        for cap in CAPS:
            gains = _there(gain(asked, outcomes, name, order, cap))
            if len(gains):
                within = bool(low <= gains.mean() <= high)
                yield Claim(
                    f"{title} {_kw(cap)}: gain in {WORDS[name]}",
                    f"{100 * low:.0f} .. {_percent(high)}",
                    _range(gains),
                    yes_or_no(within),
                    len(gains),
                    _three(gains),
                )
    yield from _of_ratios(asked, outcomes, order)
    highest = _there(change(asked, outcomes, WAIT, order, NAIVE, LOW))
    if len(highest) and order == "fcfs":
        most = float(highest.max())
        yield Claim(f"{title} {_kw(LOW)}: largest change of wait, naive", f"{HIGHEST:g}",
                    f"{most:.1f}", yes_or_no(HIGHEST / 2 <= most <= HIGHEST * 2), len(highest),
                    _three(highest))  # fmt: skip
    for name, worse in ((WAIT, 1), (UTILISATION, -1)):
        changes = _there(change(asked, outcomes, name, order, LEARNER, HIGH))
        if len(changes):
            paper, degraded = "< 1 %" if worse > 0 else "> -1 %", worse * float(changes.mean())
            yield Claim(f"{title} {_kw(HIGH)}: change of {WORDS[name]}", paper, _range(changes),
                        yes_or_no(degraded < DEGRADED), len(changes), _three(changes))  # fmt: skip
    easy = change(asked, outcomes, WAIT, order, NONE, backfill="easy")
    for cap in CAPS:
        changes = change(asked, outcomes, WAIT, order, LEARNER, cap)
        better, than_easy = (_there(changes - other) < 0 for other in (0.0, easy))
        if len(better):
            paper, won = f"{BETTER}" if order == "fcfs" and cap != HIGH else "", int(better.sum())
            yield Claim(f"{title} {_kw(cap)}: months of less wait than without a cap", paper,
                        f"{won}", yes_or_no(abs(won - BETTER) <= 2 if paper else None), len(better),
                        {"better": won})  # fmt: skip
        if len(than_easy):
            won = int(than_easy.sum())
            yield Claim(f"{title} {_kw(cap)}: and than EASY without a cap", "", f"{won}", None,
                        len(than_easy), {"better": won})  # fmt: skip


def _of_ratios(asked: WallacePlan, outcomes: Outcomes, order: str) -> Iterator[Claim]:
    """By how much the naive policy's wait exceeds the learner's: another way to read the range that
    the paper gives for the gain in wait."""
    for cap in CAPS:
        naive, ours = (by_month(asked, outcomes, asked.cell(order, policy, cap), WAIT)
                       for policy in (NAIVE, LEARNER))  # fmt: skip
        more = _there(naive / ours - 1)
        if len(more):
            yield Claim(f"{order.upper()} {_kw(cap)}: naive's wait beyond the learner's", "",
                        _range(more), None, len(more), _three(more))  # fmt: skip


def _of_orders(asked: WallacePlan, outcomes: Outcomes) -> Iterator[Claim]:
    """The claim that WFP has the shorter waits, under the learner."""
    for cap in CAPS:
        fcfs, wfp = (by_month(asked, outcomes, asked.cell(order, LEARNER, cap), WAIT)
                     for order in ORDERS)  # fmt: skip
        shorter = _there(fcfs - wfp)
        if len(shorter):
            mean = float(shorter.mean())
            near = SAVED_S / 2 <= mean <= SAVED_S * 2
            yield Claim(
                f"{_kw(cap)}: wait that WFP saves over FCFS",
                f"{SAVED_S:.0f} s",
                f"{mean:,.0f} s",
                yes_or_no(near),
                len(shorter),
                {"mean_s": mean},
            )


def _of_causes(asked: WallacePlan, outcomes: Outcomes, order: str) -> Iterator[Claim]:
    """What is left when one thing is different; the paper has no numbers for it."""
    title = order.upper()
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("no cap, EASY", MIDDLE, {"policy": NONE, "backfill": "easy"}),
        ("learner, window of 20, cap at the peak", PEAK, {"policy": LEARNER}),
    ]
    for cap in CAPS:
        rows.append((f"{_kw(cap)}, naive", cap, {"policy": NAIVE}))
        rows += [(f"{_kw(cap)}, {words}", cap, variant) for words, variant in VARIANTS.items()]
        rows.append((f"{_kw(cap)}, learner", cap, {"policy": LEARNER}))
    for words, cap, how in rows:
        wait, used = (_there(change(asked, outcomes, name, order, cap=cap, every=SOME, **how))
                      for name in (WAIT, UTILISATION))  # fmt: skip
        if len(wait):
            yield _pair(f"{title}: {words}", wait, used)


def _of_load(asked: WallacePlan, outcomes: Outcomes, order: str, load: float) -> Iterator[Claim]:
    for cap in CAPS:
        wait, used = (_there(gain(asked, outcomes, name, order, cap, load=load, every=SOME))
                      for name in (WAIT, UTILISATION))  # fmt: skip
        if len(wait):
            yield _pair(f"{order.upper()}: gains at a load of {load:g}, {_kw(cap)}", wait, used)


def _pair(name: str, wait: Floats, used: Floats) -> Claim:
    """Returns the means over months of wait and utilisation, as a claim that nobody made."""
    ours = f"wait {_signed(wait.mean())}, used {_signed(used.mean(), 1)}"
    values = {"wait": float(wait.mean()), "utilisation": float(used.mean())}
    return Claim(name, "", ours, None, len(wait), values)


# -- words


def _there(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def _three(values: Floats) -> dict[str, float]:
    return {"least": float(values.min()), "mean": float(values.mean()), "most": float(values.max())}


def _range(values: Floats) -> str:
    digits = 1 if np.abs(values).max() < 0.5 else 0
    least, mean, most = (f"{100 * value:,.{digits}f}" for value in _three(values).values())
    return f"{least} .. {most} % ({mean} %)"


def _percent(value: float, digits: int = 0) -> str:
    return f"{100 * value:,.{digits}f} %"


def _signed(value: float, digits: int = 0) -> str:
    return f"{100 * value:+,.{digits}f} %"


def _kw(cap: str) -> str:
    return f"{int(cap.split()[0]):,} kW"
