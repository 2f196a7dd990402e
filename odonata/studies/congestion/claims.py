"""What the thesis says, and what came out here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from odonata.experiment.profiles import profile
from odonata.results.statistics import Interval, interval
from odonata.studies.congestion.cases import BUNDLED, CROWD, REAL, TABLE, CongestionPlan, has
from odonata.studies.congestion.gpcnet import CANARIES
from odonata.studies.congestion.repeated import inside, less, median_of, over, times
from odonata.studies.congestion.simulation import ALONE_ON, SETTINGS, CongestionOutcome, Point
from odonata.study import measured
from odonata.study.contract import Claim
from odonata.study.verdicts import above, below, judged, near, percent, plus_minus, shown

Measured = measured.Measured[CongestionPlan, Point, CongestionOutcome]
Floats = npt.NDArray[np.float64]
Measure = Callable[[CongestionOutcome], float]

SLOWED = ("hacc", "lammps", "milc", "miniamr", "minimd")
"""The applications that the thesis has slowed down by 0.4 to 7 times their run time in setting IV
against II: they take 1.4 to 8 times as long. In other places it calls the same an extension by more
than 40 %, and by up to 7 times."""
LEAST, MOST = 1.4, 8.0
SLOWEST = "lammps"
"""The application that takes 8 times as long."""
MEDIUM, BY = "qmcpack", 0.11
"""The application in between, and what its run time is extended by."""
UNMOVED = ("graph500", "hpcg")
"""The applications that are not slowed down. Two rules of the profiles were looked for because
these were at first."""
LITTLE = 0.1
"""What the thesis calls a negligible difference of medians."""
FAR = ("milc", "minimd")
"""The only applications that it has significantly slowed down in III too."""
WITH = {
    BUNDLED: "",
    TABLE: ", divided as in table 3.4",
    REAL: ", real messages",
    CROWD: ", among other users",
}
"""What is added to the names of claims about other profiles."""
PAGE = "congestion.md#"
CAUSES = {BUNDLED: PAGE + "what-is-scaled-down", TABLE: PAGE + "which-operation-takes-the-time",
          REAL: PAGE + "real-messages-and-the-requests-of-32-ranks"}  # fmt: skip
"""Where differences of slowdowns are explained, by profiles."""
FAR_CAUSE = PAGE + "setting-iii"
PROFILES, TILES = PAGE + "what-is-simulated", PAGE + "which-tiles-stall"


def of_setting(
    m: Measured, name: str, setting: str, profiles: str = BUNDLED
) -> list[CongestionOutcome]:
    """Returns the outcomes of all repetitions that there are."""
    return m.there(m.asked.at(name, setting, shift, profiles)
                   for shift in range(m.asked.repetitions) if has(profiles, name))  # fmt: skip


def slowdowns(m: Measured, name: str, upper: str, lower: str,
              profiles: str = BUNDLED) -> list[float]:  # fmt: skip
    """Returns for each repetition how many times as long a run takes in one setting as in another;
    NaN where one of them is missing."""
    found = []
    for shift in range(m.asked.repetitions if has(profiles, name) else 0):
        above, below = (m.of(m.asked.at(name, setting, shift, profiles))
                        for setting in (upper, lower))  # fmt: skip
        found.append(above.run_time_s / below.run_time_s if above and below else np.nan)
    return found


def slowdown(m: Measured, name: str, upper: str, lower: str, profiles: str = BUNDLED) -> Interval:
    """Returns the median of the slowdowns of all repetitions."""
    return median_of(slowdowns(m, name, upper, lower, profiles))


def correlation(
    runs: Sequence[CongestionOutcome], of: Callable[[CongestionOutcome], float]
) -> float:
    """Returns Pearson's correlation of a figure with run time, NaN where one of them is constant.

    >>> some = ((1, 2), (2, 4), (3, 6))
    >>> r = [CongestionOutcome(t, 0, 0, 0, 0, 0, s, 0, 0, 0, 0) for t, s in some]
    >>> round(correlation(r, lambda it: it.stall_to_flit), 3)
    1.0
    """
    x, y = np.array([it.run_time_s for it in runs]), np.array([of(it) for it in runs])
    return pearson(x, y)


def pearson(x: Floats, y: Floats) -> float:
    """Returns the correlation of what is known of both; NaN of fewer than three pairs, and of
    constants."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def impacts(
    m: Measured, canary: str, shifts: Iterable[int] | None = None
) -> list[tuple[int, float, float]]:
    """Returns for each pair of runs of GPCNeT alone: the nodes, the impact on a canary, and the
    stall-to-flit ratio with congestors."""
    found = []
    for nodes in ALONE_ON:
        for shift in m.asked.gpcnet_shifts if shifts is None else shifts:
            quiet, loud = (m.of(m.asked.alone(canary, nodes, shift, congested))
                           for congested in (False, True))  # fmt: skip
            if quiet and loud:
                found.append((nodes, loud.run_time_s / quiet.run_time_s, loud.stall_to_flit))
    return found


def claims(m: Measured) -> list[Claim]:
    """Returns the claims that there are outcomes for."""
    return [
        *(once(claim, profiles) for profiles in WITH for claim in _slower(m, profiles)),
        *_counters(m),
        *_gpcnet(m),
        *(once(claim, profiles) for profiles in CAUSES for claim in _calibration(m, profiles)),
    ]


def once(claim: Claim, profiles: str) -> Claim:
    """Returns a claim, without its source where it is of other than the bundled profiles: on the
    page of all papers each printed number stands once."""
    return claim if profiles == BUNDLED else replace(claim, source="", cause="")


# -- setting I


def _calibration(m: Measured, profiles: str) -> Iterator[Claim]:
    for name in m.asked.applications:
        table = profile(name).measured
        runs = of_setting(m, name, "I", profiles)
        if table is None or not runs:
            continue
        where = f"setting I{WITH[profiles]}: {name}"
        share = interval([it.communication for it in runs])
        yield judged(f"{where}, time in MPI", f"{table.communication:.1%}", percent(share),
                     near(share, table.communication, 0.0005), False, share, "Zhang table 3.4",
                     PROFILES, calibrated=True)  # fmt: skip
        rate = interval([it.node_bytes_per_s for it in runs])
        yield judged(f"{where}, bytes per second and node",
                     f"{table.node_bytes_per_s / 1e6:,.0f} MB", f"{rate.mean / 1e6:,.0f} MB",
                     near(rate, table.node_bytes_per_s), False, rate, "Zhang table 3.5", PROFILES,
                     calibrated=True)  # fmt: skip
        printed = collectives(dict(table.operations))
        together = interval([collectives(it.operations) for it in runs])
        yield judged(f"{where}, time in allreduces and barriers",
                     f"{printed:.1%}" if printed else f"< {NONE_OF:.1%}", percent(together),
                     near(together, printed, 0.0005) if printed else below(together, NONE_OF),
                     False, together, "Zhang table 3.4", CAUSES[TABLE], calibrated=bool(profiles)
        )  # fmt: skip


NONE_OF = 0.001
"""What the table calls less than 0.1 %."""


def collectives(operations: Mapping[str, float]) -> float:
    """Returns the part of the time in collective operations.

    >>> round(collectives({"allreduce": 0.2, "barrier": 0.1, "wait": 0.5}), 3)
    0.3
    """
    return sum(operations.get(name, 0.0) for name in ("allreduce", "barrier"))


# -- settings II, III and IV


def _slower(m: Measured, profiles: str) -> Iterator[Claim]:
    near_ = {name: it for name in m.asked.applications
             if (it := slowdown(m, name, "IV", "II", profiles)).of}  # fmt: skip
    far = {name: it for name in m.asked.applications
           if (it := slowdown(m, name, "III", "I", profiles)).of}  # fmt: skip
    said = "Zhang 3.6.2"

    def one(what: str, paper: str, it: Interval, holds: bool, sign: bool, away: bool = False,
            ours: str = "", calibrated: bool = False) -> Claim:  # fmt: skip
        cause = FAR_CAUSE if away else CAUSES[profiles]
        return judged(what, paper, ours or times(it), holds, sign, it, said, cause,
                      calibrated=calibrated)  # fmt: skip

    beside = f"IV against II{WITH[profiles]}"
    for name, it in near_.items():
        what = f"{beside}: {name}"
        if name == SLOWEST:
            yield one(what, f"more than {MOST:g} times", it, above(it, MOST), over(it, 1))
        elif name in SLOWED:
            yield one(what, f"at least {LEAST:g} times", it, above(it, LEAST), over(it, 1))
        elif name == MEDIUM:
            yield one(what, f"{1 + BY:g} times", it, near(less(it, 1), BY, 0.005), over(it, 1))
        elif name in UNMOVED:
            yield one(what, f"within {LITTLE:.0%}", it, inside(it, 1 - LITTLE, 1 + LITTLE), False,
                      calibrated=True)  # fmt: skip
        else:
            yield shown(what, "", times(it), it)
    if near_.keys() >= {*SLOWED}:
        five = {name: near_[name] for name in SLOWED}
        least, most = (pick(five, key=lambda name: five[name].mean) for pick in (min, max))
        yield one(f"{beside}: the least of the five", f"{LEAST:g} times", five[least],
                  near(five[least], LEAST, 0.05), False,
                  ours=f"{least}, {times(five[least])}")  # fmt: skip
        yield one(f"{beside}: the most of the five", f"{SLOWEST}, {MOST:g} times", five[most],
                  most == SLOWEST and near(five[most], MOST, 0.5), most == SLOWEST,
                  ours=f"{most}, {times(five[most])}")  # fmt: skip
    if near_.keys() >= {MEDIUM, *UNMOVED}:
        medium, *unmoved = (np.array(slowdowns(m, name, "IV", "II", profiles))
                            for name in (MEDIUM, *UNMOVED))  # fmt: skip
        it = median_of((medium - np.maximum(*unmoved)).tolist())
        yield one(f"{beside}: {MEDIUM} more than {' and '.join(UNMOVED)}", "more", it, above(it, 0),
                  over(it, 0), ours=f"by {it.mean:.2f} times", calibrated=True)  # fmt: skip
    yield from _far(far, near_, one, profiles)
    if not profiles:
        it = slowdown(m, "hacc", "II", "I")
        if it.of:
            yield one("II against I: hacc", "slightly below 1", it,
                      below(it, 1) and above(it, 1 - LITTLE), below(it, 1))  # fmt: skip
        if "hpcg" in near_:
            it = near_["hpcg"]
            yield one("IV against II: hpcg, which way", "slightly below 1", it,
                      below(it, 1) and above(it, 1 - LITTLE), below(it, 1))  # fmt: skip


def _far(far: Mapping[str, Interval], near_: Mapping[str, Interval], one: Callable[..., Claim],
         profiles: str) -> Iterator[Claim]:  # fmt: skip
    away = f"III against I{WITH[profiles]}"
    for name, it in far.items():
        if name in FAR:
            yield one(f"{away}: {name}", f"more than {1 + LITTLE:g} times", it,
                      above(it, 1 + LITTLE), over(it, 1), True)  # fmt: skip
    others = {name: it for name, it in far.items() if name not in FAR}
    if others:
        most = max(others, key=lambda name: others[name].mean)
        it = others[most]
        yield one(f"{away}: all others", f"less than {1 + LITTLE:g} times", it,
                  all(below(each, 1 + LITTLE) for each in others.values()), False, True,
                  ours=f"{most} most, {times(it)}")  # fmt: skip
    both = [name for name in (*SLOWED, MEDIUM) if name in far and name in near_]
    if both:
        apart = {name: near_[name].low - far[name].high for name in both}
        sign = all(near_[name].mean > far[name].mean for name in both)
        closest = min(both, key=lambda name: near_[name].mean / far[name].mean)
        it, further = near_[closest], far[closest]
        ours = f"{closest} closest, {further.mean:.2f} and {it.mean:.2f} times"
        yield one(f"{away}: less than IV against II, each of the six", "less", it,
                  all(gap > 0 for gap in apart.values()), sign, True, ours)  # fmt: skip


# -- counters


def _counters(m: Measured) -> Iterator[Claim]:
    """Judges the correlations of those applications that congestion slows down: the figures with
    their panels are not in the text, but it says that they are of these."""
    kinds: tuple[tuple[str, str, str, int, Measure], ...] = (
        ("stall-to-flit of network tiles", "positive", "Zhang 3.18", 1,
         lambda it: it.stall_to_flit),
        ("stalls per second of network tiles", "positive", "Zhang 3.19", 1,
         lambda it: it.ntile_stalls_per_s),
        ("stalls per second of processor tiles", "negative", "Zhang 3.19", -1,
         lambda it: it.ptile_stalls_per_s),
        ("flits per second of processor tiles", "negative", "Zhang 3.6.3", -1,
         lambda it: it.ptile_flits_per_s),
    )  # fmt: skip
    for words, paper, source, side, of in kinds:
        for name in m.asked.applications:
            it = by_repetition(m, name, of)
            if not it.of:
                continue
            what, ours = f"run time and {words}: {name}", f"r = {plus_minus(it, 2)}"
            if not profile(name).sensitive:
                yield shown(what, "", ours, it)
                continue
            holds = above(it, 0) if side > 0 else below(it, 0)
            yield judged(what, paper, ours, holds, side * it.mean > 0, it, source, TILES)


def by_repetition(m: Measured, name: str, of: Measure) -> Interval:
    """Returns the correlation of run time with a figure over the four settings, mean over the
    repetitions. Of one whose settings are not all there it is not known."""
    found = []
    for shift in range(m.asked.repetitions):
        runs = [m.of(m.asked.at(name, setting, shift)) for setting in SETTINGS]
        known = [run for run in runs if run is not None]
        found.append(correlation(known, of) if len(known) == len(SETTINGS) else np.nan)
    return interval(found)


def _gpcnet(m: Measured) -> Iterator[Claim]:
    for canary in CANARIES:
        found = impacts(m, canary)
        if len(found) < 3:
            continue
        by_size = {nodes: float(np.median([i for n, i, _ in found if n == nodes]))
                   for nodes in ALONE_ON if any(n == nodes for n, _, _ in found)}  # fmt: skip
        shifts = [[(i, r) for _, i, r in impacts(m, canary, [shift])]
                  for shift in m.asked.gpcnet_shifts]  # fmt: skip
        it = interval([pearson(*np.array(pairs, float).T) if pairs else np.nan for pairs in shifts])
        what = f"GPCNeT: impact on {canary} and stall-to-flit"
        ours = (f"r = {plus_minus(it, 2)}; {', '.join(f'{i:.2f}' for i in by_size.values())} times "
                f"on {', '.join(map(str, by_size))} nodes")  # fmt: skip
        if canary == "bandwidth":
            yield judged(what, "rises", ours, above(it, 0), it.mean > 0, it, "Zhang 3.20",
                         PAGE + "gpcnet-alone")  # fmt: skip
        else:
            yield shown(what, "", ours, it)
