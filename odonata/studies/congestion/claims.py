"""What the thesis says, and what came out here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from odonata.experiment.profiles import profile
from odonata.studies.congestion.cases import CongestionPlan
from odonata.studies.congestion.gpcnet import CANARIES
from odonata.studies.congestion.simulation import ALONE_ON, SETTINGS, CongestionOutcome
from odonata.study.contract import Claim
from odonata.study.verdicts import yes_or_no

Outcomes = Mapping[str, CongestionOutcome]
Floats = npt.NDArray[np.float64]

CLOSE, WITHIN = 0.02, 0.10
"""How far the part of time in communication and the bytes per second may be from the table's."""
SLOWED = {"hacc": (1.4, np.inf), "lammps": (1.4, np.inf), "milc": (1.4, np.inf),
          "miniamr": (1.4, np.inf), "minimd": (1.4, np.inf), "qmcpack": (1.03, 1.4),
          "hpcg": (0.9, 1.1), "graph500": (0.9, 1.1)}  # fmt: skip
"""The slowdown in setting IV against II that is taken for that of the thesis: at least, and at
most."""
PRINTED = {"hacc": "+40 % at least", "lammps": "+40 % at least", "milc": "+40 % at least",
           "miniamr": "+40 % at least", "minimd": "+40 % at least", "qmcpack": "+11 %",
           "hpcg": "within 10 %", "graph500": "within 10 %"}  # fmt: skip
MOST, MOST_TIMES = "lammps", 7.0
"""The application that the thesis has slowed down most, and by how much."""
FAR, CLEARLY = ("milc", "minimd"), 1.1
"""The applications that it has clearly slowed down in III too; by how much is in a figure only."""


def of_setting(
    asked: CongestionPlan, outcomes: Outcomes, name: str, setting: str
) -> list[CongestionOutcome]:
    """Returns the outcomes of all repetitions that there are."""
    found = (outcomes.get(asked.at(name, setting, shift).key)
             for shift in range(asked.repetitions))  # fmt: skip
    return [outcome for outcome in found if outcome is not None]


def times(asked: CongestionPlan, outcomes: Outcomes, name: str, setting: str) -> Floats:
    """Returns run times in seconds."""
    return np.array([it.run_time_s for it in of_setting(asked, outcomes, name, setting)])


def ratio(asked: CongestionPlan, outcomes: Outcomes, name: str, upper: str, lower: str) -> float:
    """Returns the ratio of median run times, NaN where there are none."""
    above, below = (times(asked, outcomes, name, setting) for setting in (upper, lower))
    return float(np.median(above) / np.median(below)) if len(above) and len(below) else np.nan


def of_application(asked: CongestionPlan, outcomes: Outcomes, name: str) -> list[CongestionOutcome]:
    """Returns the outcomes of all settings."""
    return [it for setting in SETTINGS for it in of_setting(asked, outcomes, name, setting)]


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
    asked: CongestionPlan, outcomes: Outcomes, canary: str
) -> list[tuple[int, float, float]]:
    """Returns for each pair of runs of GPCNeT alone: the nodes, the impact on a canary, and the
    stall-to-flit ratio with congestors."""
    found = []
    for nodes in ALONE_ON:
        for shift in asked.gpcnet_shifts:
            quiet, loud = (outcomes.get(asked.alone(canary, nodes, shift, congested).key)
                           for congested in (False, True))  # fmt: skip
            if quiet and loud:
                found.append((nodes, loud.run_time_s / quiet.run_time_s, loud.stall_to_flit))
    return found


def claims(asked: CongestionPlan, outcomes: Outcomes) -> list[Claim]:
    """Returns the claims that there are outcomes for."""
    names = [name for name in asked.applications if of_setting(asked, outcomes, name, "I")]
    return [
        *(claim for name in names for claim in _calibration(asked, outcomes, name)),
        *(claim for name in names for claim in _slowdown(asked, outcomes, name)),
        *(claim for name in names for claim in _counters(asked, outcomes, name)),
        *_gpcnet(asked, outcomes),
    ]


def _calibration(asked: CongestionPlan, outcomes: Outcomes, name: str) -> Iterator[Claim]:
    table, runs = profile(name).measured, of_setting(asked, outcomes, name, "I")
    if table is None:
        return
    share = float(np.median([it.communication for it in runs]))
    rate = float(np.median([it.node_bytes_per_s for it in runs]))
    yield Claim(
        f"{name}, setting I: time in communication", f"{table.communication:.1%}", f"{share:.1%}",
        yes_or_no(abs(share - table.communication) <= CLOSE), len(runs), {"communication": share},
    )  # fmt: skip
    yield Claim(
        f"{name}, setting I: bytes per second and node",
        f"{table.node_bytes_per_s / 1e6:,.0f} MB",
        f"{rate / 1e6:,.0f} MB",
        yes_or_no(abs(rate / table.node_bytes_per_s - 1) <= WITHIN),
        len(runs),
        {"node_bytes_per_s": rate},
    )
    together = float(np.median([collectives(it.operations) for it in runs]))
    yield Claim(
        f"{name}, setting I: time in allreduces and barriers",
        f"{collectives(dict(table.operations)):.1%}", f"{together:.1%}", None, len(runs),
        {"collectives": together},
    )  # fmt: skip


def collectives(operations: Mapping[str, float]) -> float:
    """Returns the part of the time in collective operations.

    >>> round(collectives({"allreduce": 0.2, "barrier": 0.1, "wait": 0.5}), 3)
    0.3
    """
    return sum(operations.get(name, 0.0) for name in ("allreduce", "barrier"))


def _slowdown(asked: CongestionPlan, outcomes: Outcomes, name: str) -> Iterator[Claim]:
    near, far = (ratio(asked, outcomes, name, *pair) for pair in (("IV", "II"), ("III", "I")))
    if np.isnan(near) or np.isnan(far):
        return
    of = len(times(asked, outcomes, name, "IV"))
    least, most = SLOWED.get(name, (0.0, np.inf))
    yield Claim(
        f"{name}: IV against II, routers shared with GPCNeT",
        PRINTED.get(name, ""),
        f"{near:.2f} times",
        yes_or_no(least <= near <= most if name in SLOWED else None),
        of,
        {"near": near},
    )
    if name == MOST:
        yield Claim(
            f"{name}: slowed down most of all",
            f"more than {MOST_TIMES:g} times",
            f"{near:.2f} times",
            yes_or_no(near > MOST_TIMES),
            of,
            {"near": near},
        )
    sensitive = profile(name).sensitive
    yield Claim(
        f"{name}: III against I, routers not shared", "less than with shared routers",
        f"{far:.2f} times", yes_or_no(near > far if sensitive else None), of, {"far": far},
    )  # fmt: skip
    if name in FAR:
        yield Claim(f"{name}: III against I", "clearly slowed down", f"{far:.2f} times",
                    yes_or_no(far >= CLEARLY), of, {"far": far})  # fmt: skip


def _counters(asked: CongestionPlan, outcomes: Outcomes, name: str) -> Iterator[Claim]:
    runs = of_application(asked, outcomes, name)
    sensitive = bool(profile(name).sensitive)
    network = correlation(runs, lambda it: it.stall_to_flit)
    if np.isnan(network):
        return
    yield Claim(
        f"{name}: run time with network-tile stall-to-flit", "positive", f"r = {network:.2f}",
        yes_or_no(network > 0 if sensitive else None), len(runs), {"r": network},
    )  # fmt: skip
    means = [np.array([[it.run_time_s, it.stall_to_flit]
                       for it in of_setting(asked, outcomes, name, setting)])
             for setting in SETTINGS]  # fmt: skip
    by_setting = np.array([each.mean(axis=0) for each in means if len(each)])
    r = pearson(*by_setting.T)
    yield Claim(
        f"{name}: the same of the means of the settings, as in figure 3.18",
        "positive",
        f"r = {r:.2f}",
        yes_or_no(r > 0 if sensitive and not np.isnan(r) else None),
        len(by_setting),
        {"r": r},
    )
    flits = correlation(runs, lambda it: it.ptile_flits_per_s)
    yield Claim(
        f"{name}: run time with processor-tile flits per second", "negative", f"r = {flits:.2f}",
        yes_or_no(flits < 0 if sensitive else None), len(runs), {"r": flits},
    )  # fmt: skip
    own = correlation(runs, lambda it: it.own_ptile_stalls_per_s)
    around = correlation(runs, lambda it: it.ptile_stalls_per_s)
    never = all(it.own_ptile_stalls_per_s == 0 for it in runs)
    yield Claim(
        f"{name}: run time with processor-tile stalls per second, of its own nodes", "negative",
        "its nodes never stall a tile" if never else f"r = {own:.2f}",
        yes_or_no(own < 0 if sensitive and not np.isnan(own) else None), len(runs), {"r": own},
    )  # fmt: skip
    yield Claim(
        f"{name}: the same, of all nodes of its routers",
        "negative",
        f"r = {around:.2f}",
        yes_or_no(around < 0 if sensitive and not np.isnan(around) else None),
        len(runs),
        {"r": around},
    )


def _gpcnet(asked: CongestionPlan, outcomes: Outcomes) -> Iterator[Claim]:
    for canary in CANARIES:
        found = impacts(asked, outcomes, canary)
        if len(found) < 3:
            continue
        _, impact, ratio_ = (np.array(column, float) for column in zip(*found, strict=True))
        r = pearson(impact, ratio_)
        by_size = {nodes: float(np.median([i for n, i, _ in found if n == nodes]))
                   for nodes in ALONE_ON if any(n == nodes for n, _, _ in found)}  # fmt: skip
        printed = canary == "bandwidth"
        yield Claim(
            f"GPCNeT: impact on {canary} with stall-to-flit", "rises" * printed,
            f"r = {r:.2f}; {', '.join(f'{i:.2f}' for i in by_size.values())} times on "
            f"{', '.join(map(str, by_size))} nodes",
            yes_or_no(r > 0 if printed and not np.isnan(r) else None), len(found), {"r": r},
        )  # fmt: skip
