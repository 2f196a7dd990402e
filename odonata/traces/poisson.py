"""Jobs that arrive at random, independent of each other: a Poisson process.

With its defaults (jobs of one node, exponential run times) it offers the queue M/M/c, c being the
number of nodes, whose mean wait time is known exactly.
"""

from __future__ import annotations

import numpy as np

from odonata.traces.distributions import (
    Exact,
    Exponential,
    Requests,
    Runs,
    Sizes,
    above,
    header,
    microseconds,
    people,
    same_size,
    stream,
    whole_from,
)
from odonata.traces.trace import UNKNOWN, Account, Trace
from pdes.errors import require

ARRIVALS, SIZES, RUNS, REQUESTS, USERS = range(5)
"""The purposes of random numbers."""


def poisson(
    jobs: int,
    nodes: int,
    *,
    load: float = 0.7,
    seed: int = 1,
    sizes: Sizes | None = None,
    runs: Runs | None = None,
    requests: Requests | None = None,
    users: int = 1,
) -> Trace:
    """Returns jobs with exponential times between submissions, the first at 0.

    The rate is such that the offered load on `nodes` is *expected* to be `load`: load·nodes /
    (mean size · mean run time). A load of 1 or more is allowed; its queue grows. `sizes`: all of
    one node unless given; `runs`: exponential with a mean of an hour; `requests`: exact.
    """
    whole_from(1, jobs=jobs, nodes=nodes)
    whole_from(0, seed=seed)
    above(0, load=load)
    sizes, runs = sizes or same_size(1), runs or Exponential(3600.0)
    requests = requests or Exact()
    require(sizes.largest <= nodes,
            f"sizes = {sizes}: sizes up to nodes = {nodes} are accepted")  # fmt: skip
    people_of = people(stream(seed, USERS), jobs, users)
    gap_s = sizes.mean * runs.mean / (load * nodes)
    gaps = stream(seed, ARRIVALS).standard_exponential(jobs)
    gaps[0] = 0.0
    run_us = microseconds(runs.draw(stream(seed, RUNS), jobs))
    zeros = np.zeros(jobs, np.int64)
    return Trace(
        name="poisson",
        number=np.arange(1, jobs + 1),
        submit_us=microseconds(np.cumsum(gaps) * gap_s),
        run_us=run_us,
        nodes=sizes.draw(stream(seed, SIZES), jobs),
        requested_us=requests.draw(stream(seed, REQUESTS), run_us),
        application=zeros,
        applications=("application 1",),
        wait_us=np.full(jobs, UNKNOWN),
        machine_nodes=int(nodes),
        header=header("Poisson arrivals", seed, jobs=jobs, nodes=nodes, load=load, sizes=sizes,
                      runs=runs, requests=requests, users=users),
        account=Account(records=jobs),
        **people_of,
    )  # fmt: skip
