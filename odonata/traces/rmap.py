"""Jobs as the evaluation of RMAP has them: 30 of eight applications, of which all is measured.

T. Patki (2015, section 5.5) states: each trace has 30 jobs, drawn at random from the recorded
configurations, and a Poisson process of sparse arrivals, so that queues are short in general. Small
jobs ask for up to 24 nodes, large ones for at least 40, random ones for up to 64. All that is not
stated was **chosen**, and stands in the constants below.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from odonata.provisioning.fitted import tables
from odonata.provisioning.table import Table
from odonata.traces.distributions import above, header, microseconds, people, stream, whole_from
from odonata.traces.trace import UNKNOWN, Account, Trace
from pdes.errors import Refused, require

JOBS, NODES = 30, 64
"""Stated: the jobs of a trace, and the nodes of the machine."""
KINDS = {"small": (1, 24), "large": (40, 64), "random": (1, 64)}
"""Stated: the nodes that jobs ask for."""
GAP_S = 100.0
"""Chosen: the mean time between submissions, in s. With it jobs wait about as long as they run, or
less, under the traditional policy at 6,500 W."""
OVERESTIMATE = 0.2
"""Stated: users ask for up to so much more than the time that their job takes (P954). Chosen: by a
uniform share of it, of the time on the nodes that they ask for, with all cores and no cap."""
REQUESTS = ("packed", "recorded")
ARRIVALS, APPLICATIONS, SIZES, REQUESTED, USERS = range(5)
"""The purposes of random numbers."""
PATTERNS, TRIED = ("poisson", "early", "even"), 100
"""How jobs arrive. Stated: of two random traces of one Poisson process one has many jobs early, and
the other has them more evenly. Chosen: these are, of so many processes, the one whose jobs come the
earliest on average, as a part of the time from the first to the last, and the one whose jobs are
nowhere far from where they would be if they came at equal gaps."""


def rmap(
    kind: str,
    jobs: int = JOBS,
    nodes: int = NODES,
    *,
    seed: int = 1,
    load: float | None = None,
    gap_s: float = GAP_S,
    requests: str = "packed",
    arrivals: str = "poisson",
    measured: Mapping[str, Table] | None = None,
) -> Trace:
    """Returns moldable jobs of a kind, small, large or random, whose applications were `measured`
    (those of cab unless given).

    An application is as likely as any other, and so is each number of nodes that it was measured
    on. Requested times: `packed`, somewhat more than the job takes with all cores and no cap on the
    nodes that it asks for; or `recorded`, what it takes there in any of its configurations.
    `arrivals`: as they come (`poisson`), many of them `early`, or `even`. `load` is the offered
    load that is expected of jobs as they were requested, in place of a gap.
    """
    whole_from(1, jobs=jobs, nodes=nodes)
    whole_from(0, seed=seed)
    above(0, gap_s=gap_s, **({} if load is None else {"load": load}))
    require(kind in KINDS, f"kind = {kind}: one of {', '.join(KINDS)}")
    require(requests in REQUESTS, f"requests = {requests}: one of {', '.join(REQUESTS)}")
    require(arrivals in PATTERNS, f"arrivals = {arrivals}: one of {', '.join(PATTERNS)}")
    known = tables("cab") if measured is None else measured
    least, most = KINDS[kind]
    most = min(most, nodes)
    names = tuple(known)
    sizes = [np.unique(it.nodes[(it.nodes >= least) & (it.nodes <= most)]) for it in known.values()]
    if not names or not all(map(len, sizes)):
        which = next((name for name, of in zip(names, sizes, strict=True) if not len(of)), "none")
        raise Refused(f"{kind} jobs ask for {least} to {KINDS[kind][1]} nodes of {nodes}, and "
                      f"{which} was measured on no such number")  # fmt: skip

    drawn = stream(seed, APPLICATIONS).integers(len(names), size=jobs)
    place = stream(seed, SIZES).random(jobs)
    asked = np.array([sizes[it][int(u * len(sizes[it]))]
                      for it, u in zip(drawn.tolist(), place, strict=True)])  # fmt: skip
    run_s, requested_s, rng = np.empty(jobs), np.empty(jobs), stream(seed, REQUESTED)
    for at, (which, size) in enumerate(zip(drawn.tolist(), asked.tolist(), strict=True)):
        table, share = known[names[which]], rng.random()
        run_s[at] = packed_s(table, size)
        here = np.flatnonzero(table.nodes == size)
        requested_s[at] = run_s[at] * (1.0 + OVERESTIMATE * share)
        if requests == "recorded":
            requested_s[at] = table.seconds[here[int(share * len(here))]]
    if load is not None:
        means = [np.mean([size * packed_s(known[name], size) for size in of])
                 for name, of in zip(names, sizes, strict=True)]  # fmt: skip
        gap_s = float(np.mean(means)) / (load * nodes)
    gaps = _gaps(stream(seed, ARRIVALS), jobs, arrivals)
    return Trace(
        name=f"rmap-{kind}",
        number=np.arange(1, jobs + 1),
        submit_us=microseconds(np.cumsum(gaps) * gap_s),
        run_us=np.maximum(1, microseconds(run_s)),
        nodes=asked.astype(np.int64),
        requested_us=np.maximum(1, microseconds(requested_s)),
        application=drawn.astype(np.int64),
        applications=names,
        wait_us=np.full(jobs, UNKNOWN),
        machine_nodes=int(nodes),
        header=header(f"{kind} moldable jobs", seed, jobs=jobs, nodes=nodes, gap_s=gap_s,
                      requests=requests, **({} if arrivals == "poisson"
                                            else {"arrivals": arrivals})),
        account=Account(records=jobs),
        **people(stream(seed, USERS), jobs, 1),
    )  # fmt: skip


def _gaps(rng: np.random.Generator, jobs: int, arrivals: str) -> npt.NDArray[np.float64]:
    """Returns the times between submissions, of 1 on average; the first is 0."""
    if arrivals == "poisson":
        gaps = rng.standard_exponential(jobs)
        gaps[0] = 0.0
        return gaps
    every = rng.standard_exponential((TRIED, jobs))
    every[:, 0] = 0.0
    times = np.cumsum(every, axis=1)
    places = times / np.maximum(times[:, -1:], 1e-12)
    if arrivals == "early":
        found: npt.NDArray[np.float64] = every[places.mean(axis=1).argmin()]
    else:
        found = every[np.abs(places - np.linspace(0.0, 1.0, jobs)).max(axis=1).argmin()]
    return found


def packed_s(table: Table, nodes: int) -> float:
    """Returns the seconds that an application takes on so many nodes with the most cores and the
    highest cap that were measured there."""
    here = np.flatnonzero(table.nodes == nodes)
    best = here[np.lexsort((table.cap_w[here], table.cores[here]))[-1]]
    return float(table.seconds[best])
