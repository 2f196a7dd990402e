"""What the jobs of the years draw, beside what the paper says of those of Mira.

It needs no simulation. The model of power was made with table I and figures 1 and 2 in view, so
that most of this is no evidence: it says how well the model is what it was made to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from odonata.results.statistics import interval
from odonata.studies.wallace.cases import WallacePlan
from odonata.studies.wallace.found import Floats
from odonata.studies.wallace.simulation import year
from odonata.study.contract import Claim
from odonata.study.verdicts import above, judged, near, percent
from odonata.traces.demand import RACK_NODES
from odonata.traces.mira import NODES
from policies.power.knapsack import best_fill

PAGE = "power-wallace.md#what-jobs-draw"
TABLE_1: dict[str, tuple[float, Callable[[Floats], float]]] = {
    "least": (36.48, lambda kw: float(kw.min())),
    "mean": (65.76, lambda kw: float(kw.mean())),
    "most": (160.60, lambda kw: float(kw.max())),
    "5th percentile": (56.60, lambda kw: float(np.percentile(kw, 5))),
    "25th percentile": (61.20, lambda kw: float(np.percentile(kw, 25))),
    "75th percentile": (71.03, lambda kw: float(np.percentile(kw, 75))),
    "95th percentile": (74.57, lambda kw: float(np.percentile(kw, 95))),
    "99th percentile": (77.99, lambda kw: float(np.percentile(kw, 99))),
    "standard deviation": (6.18, lambda kw: float(kw.std())),
}
"""The paper's table I, in kW per rack. Its most is above the peak of the machine, to which the
model holds every job."""
TIMES = 4.4
"""By how much the power of jobs differs in the paper: its most over its least."""
CAP_KW, RACKS = 3000.0, NODES // RACK_NODES


def racks_kw(seed: int, asked: WallacePlan) -> Floats:
    """Returns the mean power of each job of a year, in kW per rack."""
    return year(seed, asked.load, asked.days)[1].mean_w * (RACK_NODES / 1000)


def of_jobs(asked: WallacePlan) -> Iterator[Claim]:
    power = [racks_kw(seed, asked) for seed in asked.seeds]
    for name, (printed, of) in TABLE_1.items():
        ours = interval([of(kw) for kw in power])
        made = name != "most"
        yield judged(f"Jobs: power per rack, {name}", f"{printed:.2f} kW", f"{ours.mean:.2f} kW",
                     near(ours, printed), False, ours, "Wallace table 1", "" if made else PAGE,
                     calibrated=made)  # fmt: skip
    times = interval([float(kw.max() / kw.min()) for kw in power])
    yield judged("Jobs: the most power over the least", f"{TIMES:g} times",
                 f"{times.mean:.2f} times", near(times, TIMES), above(times, 1), times,
                 "Wallace 3", PAGE)  # fmt: skip
    between = interval([_between_projects(seed, asked) for seed in asked.seeds])
    yield judged("Jobs: variance of power that lies between projects", "most", percent(between),
                 above(between, 0.5), between.mean > 0.5, between, "Wallace 3",
                 calibrated=True)  # fmt: skip
    whole = interval([_above_the_cap(seed, asked) for seed in asked.seeds])
    yield judged("Jobs: those of 48 racks that draw more than 3,000 kW", "all", percent(whole, 0),
                 near(whole, 1), above(whole, 0.5), whole, "Wallace 8.2", PAGE)  # fmt: skip
    yield example()


def _between_projects(seed: int, asked: WallacePlan) -> float:
    kw, project = racks_kw(seed, asked), year(seed, asked.load, asked.days)[0].project
    jobs = np.maximum(np.bincount(project), 1)
    means = np.bincount(project, kw) / jobs
    return float(means[project].var() / kw.var())


def _above_the_cap(seed: int, asked: WallacePlan) -> float:
    """Returns the part of the jobs of the whole machine that alone exceed 3,000 kW; NaN where there
    is no such job."""
    largest = year(seed, asked.load, asked.days)[0].nodes == NODES
    alone = racks_kw(seed, asked)[largest] * RACKS > CAP_KW
    return float(alone.mean()) if len(alone) else float("nan")


def example() -> Claim:
    """The paper's example: four jobs, 6 racks, 230 kW."""
    racks, each_kw = np.array([3, 1, 5, 4]), np.array([60.0, 50.0, 30.0, 40.0])
    chosen = best_fill(racks, racks * each_kw, 6, 230.0)
    ours = ", ".join(f"J{job}" for job in chosen)
    return judged("Example: jobs that start on 6 racks under 230 kW", "J1, J2", ours,
                  chosen == [1, 2], False, interval([float(racks[chosen].sum())]),
                  "Wallace 4.1", calibrated=True)  # fmt: skip
