"""What the study found, beside what the paper says; it gives trends and no numbers.

A **trade-off** is a curve of mean power against mean workload or mean delay, one point per
threshold. Two controls are compared at the same mean power, between their points along straight
lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from odonata.studies.rumyantsev.cases import DISCIPLINES, TWO_THRESHOLDS, RumyantsevPlan
from odonata.studies.rumyantsev.simulation import RumyantsevOutcome, Run
from odonata.study.contract import Claim
from odonata.study.verdicts import yes_or_no

Outcomes = Mapping[str, RumyantsevOutcome]
Measure = Callable[[RumyantsevOutcome], float]
AT_POWERS_W = (1500.0, 1475.0, 1450.0, 1425.0, 1400.0)
"""Mean powers at which two controls are compared, with the energies `swapped`."""
AT_POWER_W = 1450.0
"""The one at which disciplines are."""


def workload(outcome: RumyantsevOutcome) -> float:
    return outcome.system["workload"]


def delay(outcome: RumyantsevOutcome) -> float:
    return outcome.per_customer["delay"]["mean"]


def waiting(outcome: RumyantsevOutcome) -> float:
    return outcome.per_customer["waiting"]["mean"]


def power(preset: str) -> Measure:
    """Returns what gives the mean power with these energies, in W."""
    return lambda outcome: outcome.power_w[preset]


def found(outcomes: Outcomes, cases: Sequence[Run]) -> list[RumyantsevOutcome]:
    """Returns the outcomes of these cases; none of them, unless all are there."""
    there = [outcomes[case.key] for case in cases if case.key in outcomes]
    return there if len(there) == len(cases) else []


def claims(asked: RumyantsevPlan, outcomes: Outcomes) -> list[Claim]:
    """Returns the claims that there are outcomes for."""
    return [*_threshold(asked, outcomes), *_comparison(asked, outcomes),
            *_disciplines(asked, outcomes), *_measures(asked, outcomes)]  # fmt: skip


# -- figure 3


def _threshold(asked: RumyantsevPlan, outcomes: Outcomes) -> Iterator[Claim]:
    runs = found(outcomes, asked.by_workload)
    if not runs:
        return
    yield _trend("swapped: mean power over k", "falls", runs, power("swapped"), "W", -1)
    yield _trend("mean workload over k", "rises", runs, workload, "s", 1)
    yield _trend("printed: mean power from k = 1e5 on", "falls", runs[1:], power("printed"), "W",
                 None)  # fmt: skip


def _trend(
    name: str,
    paper: str,
    runs: Sequence[RumyantsevOutcome],
    of: Measure,
    unit: str,
    sign: int | None,
) -> Claim:
    """Returns whether a measure falls (-1) or rises (1) at every step; with None, nothing is to
    hold."""
    values = [of(run) for run in runs]
    steps = np.diff(values)
    up, down = int((steps > 0).sum()), int((steps < 0).sum())
    how = "rises" if up >= down else "falls"
    ours = f"{values[0]:,.0f} to {values[-1]:,.0f} {unit}, {how} at {max(up, down)} of {len(steps)}"
    holds = None if sign is None else bool((sign * steps > 0).all())
    return Claim(name, paper, ours, yes_or_no(holds), len(runs),
                 {"first": values[0], "last": values[-1], "rises": up, "falls": down})  # fmt: skip


# -- control by number against control by workload


def at_power(runs: Sequence[RumyantsevOutcome], of: Measure, watts: float) -> float | None:
    """Returns a measure at a mean power, between the two points of a trade-off on either side of
    it; None beyond its ends. Energies are `swapped`."""
    order = sorted(runs, key=power("swapped"))
    powers = [power("swapped")(run) for run in order]
    if not powers[0] <= watts <= powers[-1]:
        return None
    return float(np.interp(watts, powers, [of(run) for run in order]))


def _comparison(asked: RumyantsevPlan, outcomes: Outcomes) -> Iterator[Claim]:
    by_workload = found(outcomes, asked.by_workload)
    by_number = found(outcomes, asked.by_number)
    if not by_workload or not by_number:
        return
    for name, of in (("power", power("swapped")), ("workload", workload)):
        ours, theirs = of(by_workload[0]), of(by_number[0])
        unit = "W" if name == "power" else "s"
        yield Claim(f"mean {name} at k = 0: the same", "", f"{ours:,.0f} and {theirs:,.0f} {unit}",
                    yes_or_no(ours == theirs), 2, {"workload": ours, "number": theirs})  # fmt: skip
    for name, of in (("workload", workload), ("delay", delay)):
        for watts in AT_POWERS_W:
            one, other = (at_power(runs, of, watts) for runs in (by_workload, by_number))
            if one is None or other is None:
                continue
            yield Claim(f"mean {name} at {watts:,.0f} W", "",
                        f"{one:,.0f} and {other:,.0f} s ({_change(one, other)})", None,
                        len(by_workload) + len(by_number), {"workload": one, "number": other}
                        )  # fmt: skip


# -- disciplines other than first come, first served


def _disciplines(asked: RumyantsevPlan, outcomes: Outcomes) -> Iterator[Claim]:
    first: dict[str, float] = {}
    for name in ("fcfs", *DISCIPLINES):
        by_workload, by_number = (found(outcomes, asked.under(name, control))
                                  for control in ("workload", "number"))  # fmt: skip
        two = outcomes.get(asked.two_thresholds(name).key)
        if not by_workload or not by_number or two is None:
            continue
        yield _trend(f"{name}: mean power over k", "", by_workload, power("swapped"), "W", -1)
        yield _trend(f"{name}: mean workload over k", "", by_workload, workload, "s", 1)
        ours, theirs = ([power("swapped")(runs[0]), workload(runs[0]), waiting(runs[0])]
                        for runs in (by_workload, by_number))  # fmt: skip
        yield Claim(
            f"{name}: the same by workload and by number at k = 0",
            "",
            f"{ours[0]:,.0f} W, {ours[1]:,.0f} s, {ours[2]:,.0f} s without service",
            yes_or_no(ours == theirs),
            2,
            {"workload": ours[1], "number": theirs[1]},
        )
        yield Claim(f"{name}: two thresholds", "",
                    f"{power('swapped')(two):,.0f} W, {workload(two):,.0f} s, {two.switches} "
                    "switches", None, two.customers, {"switches": two.switches})  # fmt: skip
        for what, of in (("workload", workload), ("time without service", waiting)):
            one, other = (at_power(runs, of, AT_POWER_W) for runs in (by_workload, by_number))
            if one is None or other is None:
                continue
            than = f"; fcfs {first[what]:,.0f} s" if what in first else ""
            if name == "fcfs":
                first[what] = one
            yield Claim(f"{name}: mean {what} at {AT_POWER_W:,.0f} W", "",
                        f"{one:,.0f} and {other:,.0f} s ({_change(one, other)}){than}", None,
                        len(by_workload) + len(by_number), {"workload": one, "number": other}
                        )  # fmt: skip


def _change(one: float, other: float) -> str:
    return f"{100 * (other / one - 1):+.1f} %" if one else "nobody waits"


# -- the measures of one run


def _measures(asked: RumyantsevPlan, outcomes: Outcomes) -> Iterator[Claim]:
    run = outcomes.get(asked.hysteresis.key)
    if run is None:
        return
    lower, upper = TWO_THRESHOLDS
    where = f"{lower:.0e} and {upper:.0e}".replace("e+0", "e")
    yield Claim(f"thresholds {where}: mean power", "",
                f"{run.power_w['swapped']:,.0f} and {run.power_w['printed']:,.0f} W", None,
                run.customers, dict(run.power_w))  # fmt: skip
    yield Claim("switches of the rate, and time at the high one", "",
                f"{run.switches:,} and {100 * run.system['time at the high rate']:.1f} %", None,
                run.customers, {"switches": run.switches})  # fmt: skip
    for name, value in run.system.items():
        if name == "workload":
            yield Claim("mean workload", "", f"{value:,.0f} s", None, run.customers, {name: value})
        elif name != "time at the high rate":
            yield Claim(f"mean {name}", "", f"{value:,.2f}", None, run.customers, {name: value})
    for name, values in run.per_customer.items():
        unit = "" if name == "slowdown" else " kJ" if name.startswith("energy") else " s"
        scale = 1e-3 if unit == " kJ" else 1.0
        mean, most = (_short(values[which] * scale) for which in ("mean", "p99"))
        shown = "time without service" if name == "waiting" else name
        yield Claim(f"{shown}: mean, 99 %", "", f"{mean}, {most}{unit}", None,
                    run.customers, dict(values))  # fmt: skip


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"
