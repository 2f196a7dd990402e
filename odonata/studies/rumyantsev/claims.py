"""What the study found, beside what the paper says; it gives trends and no numbers.

A **trade-off** is a curve of mean power against mean workload or mean delay, one point per
threshold. Two controls are compared at the same mean power, between their points along straight
lines. The recorded trace is one, and the paper's own: what is said of it has no interval. What is
said of randomised traces and of streams of independent customers has one, over their seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from odonata.results.statistics import interval
from odonata.studies.rumyantsev.cases import (
    CONTROLLED,
    CUSTOMERS,
    DISCIPLINES,
    DRAW_LOADS,
    SATURATED,
    SOME_NUMBERS,
    TWO_THRESHOLDS,
    RumyantsevPlan,
)
from odonata.studies.rumyantsev.simulation import HIGH, LOW, RumyantsevOutcome, Run
from odonata.study import measured
from odonata.study.contract import Claim
from odonata.study.verdicts import above, below, judged, near, plus_minus, verdict, yes_or_no

PAGE = "power-rumyantsev.md"
ENERGIES_CAUSE, WEEKS_CAUSE, SWITCHES_CAUSE, FIGURE_2 = (
    f"{PAGE}#{heading}" for heading in
    ("the-printed-energies", "randomised-traces", "the-model", "figure-2")
)  # fmt: skip
"""The places in docs where differences are explained."""
HUGE = 40
"""Servers of a customer who is huge: half of them all."""
HEAVY = 0.1
"""Waiting per service that counts as heavy; the paper has no number for the word."""
Measured = measured.Measured[RumyantsevPlan, Run, RumyantsevOutcome]
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


def claims(m: Measured) -> list[Claim]:
    """Returns the claims that there are outcomes for."""
    return [*_figures_1_2(m), *_threshold(m), *_randomised(m), *_disciplines(m), *_comparison(m),
            *_stability(m), *_measures(m)]  # fmt: skip


def _all_or_some(name: str, part: float, of: int, source: str, cause: str) -> Claim:
    """Returns the claim that something is so of all of these, as the model was made so."""
    return Claim(name, "all", f"{part:.1%}", verdict(part == 1, part > 0.5), of, {"part": part},
                 source, calibrated=True, cause=cause)  # fmt: skip


# -- figures 1 and 2: the run that is kept


def _figures_1_2(m: Measured) -> Iterator[Claim]:
    run = m.of(m.asked.hysteresis)
    if run is None or "amount_us" not in run.track:
        return
    track = {name: np.array(values) for name, values in run.track.items()}
    at, fast = track["time_us"][1:], np.diff(track["fast"])
    up, down = at[fast > 0], at[fast < 0]
    if len(up):
        yield _all_or_some("Figure 1: switches to the high rate that are at an arrival",
                           float(np.isin(up, track["submit_us"]).mean()), len(up), "Rumyantsev 3",
                           SWITCHES_CAUSE)  # fmt: skip
    if len(down):
        events = np.concatenate([track["submit_us"], track["start_us"], track["end_us"]])
        between = float((~np.isin(down, events)).mean())
        yield Claim("Figure 1: switches to the low rate between arrivals and departures", "some",
                    f"{between:.1%}", yes_or_no(between > 0), len(down), {"part": between},
                    "Rumyantsev 3", calibrated=True, cause=SWITCHES_CAUSE)  # fmt: skip
        yield Claim("Figure 1: the rate is switched at thresholds 1e5 and 3e5", "yes",
                    f"{run.switches} times", verdict(True), len(down), {"switches": run.switches},
                    "Rumyantsev figure 1", calibrated=True)  # fmt: skip
    service = track["end_us"] - track["start_us"]
    within = (service >= track["amount_us"] / HIGH - 1) & (service <= track["amount_us"] / LOW + 1)
    yield _all_or_some("Service takes from the amount at the high rate to that at the low one",
                       float(within.mean()), len(service), "Rumyantsev 2",
                       SWITCHES_CAUSE)  # fmt: skip
    yield from _figure_2("Figure 2", track)
    high = m.of(m.asked.recorded_high)
    if high is not None and high is not run:
        of = {name: np.array(values) for name, values in high.track.items()}
        # Looked at as it is not met without it: the same sentences, which count once.
        yield from (
            replace(one, source="", cause="")
            for one in _figure_2("Figure 2, recorded at the high rate", of)
        )


def shown_customers(numbers: Sequence[int] | np.ndarray) -> slice:
    """Returns the places of the customers of figure 2: so many from a row of the trace on."""
    first, many = CUSTOMERS
    begin = int(np.searchsorted(np.asarray(numbers), first))
    return slice(begin, begin + many)


def _figure_2(title: str, track: Mapping[str, np.ndarray]) -> Iterator[Claim]:
    """Claims about what keeps the customers of figure 2 waiting, and who is served meanwhile."""
    rows = shown_customers(track["number"])
    submit, start, end, servers = (track[name] for name in
                                   ("submit_us", "start_us", "end_us", "servers"))  # fmt: skip
    if not len(submit[rows]):
        return
    since, until = submit[rows].min(), end[rows].max()
    times = np.unique(np.clip(np.concatenate([submit, start, end]), since, until))
    lengths, times = np.diff(times), times[:-1]
    waiting = _at(times, submit[rows], start[rows])
    huge = _at(times, start[servers >= HUGE], end[servers >= HUGE]) > 0
    busy, single = _at(times, start, end), _at(times, start[servers == 1], end[servers == 1])
    of_all = float(lengths[huge].sum() / lengths.sum())
    waited = float((waiting * lengths)[huge].sum() / max(1, (waiting * lengths).sum()))
    wait, service = (start - submit)[rows], (end - start)[rows]
    part, late = float(wait.sum() / service.sum()), int((wait > 0).sum())
    yield Claim(f"{title}: customers wait, on average and per mean service", "heavy waiting",
                f"{late} of {len(wait)} wait; {wait.mean() / 1e6:,.0f} s, {part:.1%}",
                verdict(part >= HEAVY), len(wait), {"part": part, "late": late},
                "Rumyantsev figure 2", cause=FIGURE_2)  # fmt: skip
    yield Claim(f"{title}: waiting while somebody with {HUGE} servers or more is served, and the "
                "part of the time at which one is", "much waiting is due to huge tasks",
                f"{waited:.0%} and {of_all:.0%}", verdict(waited > 0.5 and waited > of_all,
                waited > of_all), len(submit[rows]), {"waiting": waited, "time": of_all},
                "Rumyantsev figure 2", cause=FIGURE_2)  # fmt: skip
    alone = (single >= 2) & (2 * single > busy)
    some = float(lengths[alone].sum() / max(1, lengths[busy > 0].sum()))
    yield Claim(f"{title}: busy time at which most of several customers have one server",
                "many cases", f"{some:.0%}", verdict(some > 0.5, some > 0), len(submit[rows]),
                {"part": some}, "Rumyantsev figure 2", cause=FIGURE_2)  # fmt: skip


def _at(times: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Returns how many have begun and not ended at each of these times."""
    found: np.ndarray = np.searchsorted(np.sort(begin), times, "right") - np.searchsorted(
        np.sort(end), times, "right"
    )
    return found


# -- figure 3


def _threshold(m: Measured) -> Iterator[Claim]:
    runs = m.every(m.asked.by_workload)
    if not runs:
        return
    where = "Rumyantsev figure 3"
    title = "Figure 3, recorded trace"
    yield _trend(f"{title}: mean workload over k", "rises", runs, workload, "s", 1, where)
    yield _trend(f"{title}: mean power over k, energies as printed", "falls", runs,
                 power("printed"), "W", -1, where, ENERGIES_CAUSE)  # fmt: skip
    yield _trend(f"{title}: mean power over k, energies swapped", "falls", runs, power("swapped"),
                 "W", -1, where, calibrated=True)  # fmt: skip


def _trend(
    name: str, paper: str, runs: Sequence[RumyantsevOutcome], of: Measure, unit: str, sign: int,
    source: str = "", cause: str = "", calibrated: bool = False,
) -> Claim:  # fmt: skip
    """Returns whether a measure falls (-1) or rises (1) at every step; in sign only where it does
    from end to end."""
    values = [of(run) for run in runs]
    steps = np.diff(values)
    up, down = int((steps > 0).sum()), int((steps < 0).sum())
    how = "rises" if up >= down else "falls"
    ours = f"{values[0]:,.0f} to {values[-1]:,.0f} {unit}, {how} at {max(up, down)} of {len(steps)}"
    said = verdict(bool((sign * steps > 0).all()), sign * (values[-1] - values[0]) > 0)
    return Claim(name, paper, ours, said, len(runs),
                 {"first": values[0], "last": values[-1], "rises": up, "falls": down}, source,
                 calibrated, cause)  # fmt: skip


def _randomised(m: Measured) -> Iterator[Claim]:
    """Figure 3 of traces whose weeks are drawn anew, which the paper proposes and leaves."""
    drawn = [runs for seed in m.asked.seeds if (runs := m.every(m.asked.drawn(seed)))]
    recorded = m.every(m.asked.by_workload)
    if not drawn:
        return
    title = "Figure 3, randomised traces"  # which the paper does not draw, so without a source
    for name, of, sign, unit, source, cause, made in (
        ("mean workload over k", workload, 1, "s", "", "", False),
        ("mean power over k, energies as printed", power("printed"), -1, "W", "", "", False),
        ("mean power over k, energies swapped", power("swapped"), -1, "W", "", "", True),
    ):  # fmt: skip
        curves = np.array([[of(run) for run in runs] for runs in drawn])
        ends = [interval(curves[:, place].tolist()) for place in (0, -1)]
        change, steps = interval((curves[:, -1] - curves[:, 0]).tolist()), np.diff(curves.mean(0))
        side = above(change, 0) if sign > 0 else below(change, 0)
        word = "rises" if sign > 0 else "falls"
        more = plus_minus(change, sign="+")
        ours = (f"{plus_minus(ends[0])} to {plus_minus(ends[1])} {unit}, by {more}; the mean "
                f"{word} at {int((sign * steps > 0).sum())} of {len(steps)}")  # fmt: skip
        yield judged(f"{title}: {name}", word, ours, side and bool((sign * steps > 0).all()), side,
                     change, source, cause, calibrated=made)  # fmt: skip
    curves = np.array([[workload(run) for run in runs] for runs in drawn])
    rough, mean = interval([roughness(curve) for curve in curves]), roughness(curves.mean(0))
    if recorded and rough.of > 1:
        alone = roughness([workload(run) for run in recorded])
        yield judged(f"{title}: roughness of mean workload, all together", "less than of one trace",
                     f"{mean:.3f}; {plus_minus(rough, 3)} of one, {alone:.3f} of the recorded",
                     above(rough, mean) and mean < alone, above(rough, mean), rough, "Rumyantsev 4",
                     WEEKS_CAUSE)  # fmt: skip


def roughness(curve: Sequence[float] | np.ndarray) -> float:
    """Returns how much the steps of a curve go up and down, as a part of what it rises or falls: 0
    where it bends to one side only, however much it bends."""
    values = np.asarray(curve, np.float64)
    bends = np.diff(values, 2)
    there_and_back = float(np.abs(bends).sum() - abs(bends.sum()))
    return there_and_back / max(1e-12, abs(float(values[-1] - values[0])))


# -- control by number against control by workload


def at_power(runs: Sequence[RumyantsevOutcome], of: Measure, watts: float) -> float | None:
    """Returns a measure at a mean power, between the two points of a trade-off on either side of
    it; None beyond its ends. Energies are `swapped`."""
    order = sorted(runs, key=power("swapped"))
    powers = [power("swapped")(run) for run in order]
    if not powers[0] <= watts <= powers[-1]:
        return None
    return float(np.interp(watts, powers, [of(run) for run in order]))


def _comparison(m: Measured) -> Iterator[Claim]:
    by_workload = m.every(m.asked.by_workload)
    by_number = m.every(m.asked.by_number)
    if not by_workload or not by_number:
        return
    for name, of in (("power", power("swapped")), ("workload", workload)):
        ours, theirs = of(by_workload[0]), of(by_number[0])
        unit = "W" if name == "power" else "s"
        yield Claim(f"Number or workload: mean {name} at k = 0, the same", "",
                    f"{ours:,.0f} and {theirs:,.0f} {unit}", yes_or_no(ours == theirs), 2,
                    {"workload": ours, "number": theirs})  # fmt: skip
    for name, of in (("workload", workload), ("delay", delay)):
        for watts in AT_POWERS_W:
            one, other = (at_power(runs, of, watts) for runs in (by_workload, by_number))
            if one is None or other is None:
                continue
            yield Claim(f"Number or workload: mean {name} at {watts:,.0f} W", "",
                        f"{one:,.0f} and {other:,.0f} s ({_change(one, other)})", None,
                        len(by_workload) + len(by_number), {"workload": one, "number": other}
                        )  # fmt: skip


# -- disciplines other than first come, first served


def _disciplines(m: Measured) -> Iterator[Claim]:
    first: dict[str, float] = {}
    for name in ("fcfs", *DISCIPLINES):
        by_workload, by_number = (m.every(m.asked.under(name, control))
                                  for control in ("workload", "number"))  # fmt: skip
        two = m.of(m.asked.two_thresholds(name))
        if not by_workload or not by_number or two is None:
            continue
        yield from _constant(name, by_number)
        yield from _own(name, two)
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


def _constant(name: str, by_number: list[RumyantsevOutcome]) -> Iterator[Claim]:
    """The claim that thresholds of no customers and of more than there ever are mean no control."""
    none, ever = by_number[0], by_number[-1]
    rate = none.system["effective load"] / none.system["busy servers"]
    yield Claim(f"{name}: service rate while busy, one threshold of 0 customers", f"{HIGH:g}",
                f"{rate:.4g}", verdict(abs(rate - HIGH) < 1e-6), none.customers, {"rate": rate},
                "Rumyantsev 3", calibrated=True, cause=SWITCHES_CAUSE)  # fmt: skip
    yield Claim(f"{name}: switches of the rate, one threshold of {SOME_NUMBERS[-1]} customers", "0",
                f"{ever.switches}", verdict(ever.switches == 0), ever.customers,
                {"switches": ever.switches}, "Rumyantsev 3", calibrated=True,
                cause=SWITCHES_CAUSE)  # fmt: skip


def _own(name: str, two: RumyantsevOutcome) -> Iterator[Claim]:
    """What the paper says of one discipline."""
    if name == "fcfs":
        waste = two.system["waste"]
        yield Claim("fcfs: service that idle servers could give while somebody waits", "some",
                    f"{waste:.2f}", verdict(waste > 0), two.customers, {"waste": waste},
                    "Rumyantsev 2", calibrated=True, cause=SWITCHES_CAUSE)  # fmt: skip
    if name == "lcfs-pr":
        late, suspended = two.per_customer["delay"]["max"], waiting(two)
        yield Claim("lcfs-pr: longest time until a customer is first served", "0 s",
                    f"{late:,.0f} s", verdict(late == 0), two.customers, {"longest": late},
                    "Rumyantsev 3", calibrated=True, cause=SWITCHES_CAUSE)  # fmt: skip
        yield Claim("lcfs-pr: mean time for which customers are suspended", "some",
                    f"{suspended:,.0f} s", verdict(suspended > 0), two.customers,
                    {"mean": suspended}, "Rumyantsev 3", calibrated=True,
                    cause=SWITCHES_CAUSE)  # fmt: skip


def _change(one: float, other: float) -> str:
    return f"{100 * (other / one - 1):+.1f} %" if one else "nobody waits"


# -- when a queue is stable


def _stability(m: Measured) -> Iterator[Claim]:
    """Throughput and growth near the boundary that theory gives; the paper prints none of it."""
    full = m.every(m.asked.independent(SATURATED))
    if full:
        it, limit = interval([3600 * run.per_s for run in full]), 3600 * full[0].boundary_per_s
        yield judged("Stability: served per hour while somebody always waits, and by the criterion",
                     "", f"{plus_minus(it, digits=3)} and {limit:.3f}", near(it, limit), False,
                     it)  # fmt: skip
    for load in DRAW_LOADS:
        yield from _growth(f"load {load:g}", m.every(m.asked.independent(load)), load < 1)
    yield from _growth(f"load {CONTROLLED:g}, always slow",
                       m.every(m.asked.independent(CONTROLLED)), False)  # fmt: skip
    much = TWO_THRESHOLDS[1]
    yield from _growth(f"load {CONTROLLED:g}, fast above 3e5",
                       m.every(m.asked.independent(CONTROLLED, much)), True)  # fmt: skip


def _growth(words: str, runs: Sequence[RumyantsevOutcome], stable: bool) -> Iterator[Claim]:
    """Returns whether there are more customers at the end of arrivals than half-way."""
    if runs:
        more = interval([run.in_system[-1] - run.in_system[4] for run in runs])
        there = interval([float(run.in_system[-1]) for run in runs])
        holds = not above(more, 0) if stable else above(more, 0)
        yield judged(f"Stability, {words}: customers at the end, and more than half-way", "",
                     f"{plus_minus(there)}, {plus_minus(more, sign='+')}", holds, False,
                     more)  # fmt: skip


# -- the measures of one run


def _measures(m: Measured) -> Iterator[Claim]:
    run = m.of(m.asked.hysteresis)
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
