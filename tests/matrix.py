"""Features of a packet run, crossed: which cases a test has to try, so that no two features meet
for the first time at a user's.

A **case** gives each factor one of its values. `crossed` begins with combinations that a test names
and completes them, so that every value of each factor meets every value of each other one in at
least one case (a covering array of strength 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

from odonata.agents.network import Network
from odonata.agents.routers import ROUTERS
from odonata.agents.traffic import Traffic
from odonata.agents.workload import Workload
from odonata.jobs.power import Power
from odonata.jobs.request import Job
from topology import Dragonfly, LinkClass


class Case(NamedTuple):
    """A combination of features. `knows`: what the scheduler hears of. `scheduler`: where it is:
    among groups, alone on rank 0 because a key says so, or there because there is one rank more
    than groups. `restart`: where the run goes on after a checkpoint: nowhere (there is none), from
    these ranks on one, from one on these, or on these with other groups for each. `kept`: whether
    series and the paths of packets are written."""

    inside: str
    load: str
    knows: str
    scheduler: str
    protocol: str
    restart: str
    kept: bool

    def __str__(self) -> str:
        return "-".join([*self[:-1], *["kept"] * self.kept])


INSIDE: dict[str, dict[str, Any]] = {
    "ideal": {},
    "merlin": {**ROUTERS["merlin"], "output_buffer": 1024},
    "booksim": {**ROUTERS["booksim"], "allocation_ps": 3_000, "credit_delay_ps": 5_000},
    "ejection": {"ejection": 3e9, "ejection_buffer": 1024},
    "crossbar+ejection": {"crossbar": 1.2, "arbiter": "age", "output_buffer": 1024,
                          "ejection": 3e9, "ejection_buffer": 1024},
    "half-duplex": {"crossbar": 1.5, "output_buffer": None, "duplex": "half", "ejection": 40e9,
                    "ejection_buffer": 16384},
}  # fmt: skip
"""What can be inside of routers and nodes; ideal routers, crossbars and finite ejection are the
kinds that users name, and the rest are the variants of kernels among them."""

FACTORS: dict[str, tuple[Any, ...]] = {
    "inside": (*INSIDE,),
    "load": ("traffic", "jobs", "both"),
    "knows": ("nothing", "telemetry", "power", "telemetry+power"),
    "scheduler": ("among", "alone", "extra"),
    "protocol": ("window", "null"),
    "restart": ("never", "on one", "from one", "otherwise"),
    "kept": (False, True),
}
assert (*FACTORS,) == Case._fields


def possible(case: Mapping[str, Any]) -> bool:
    """Tells whether there can be such a run: without jobs there is no scheduler."""
    if case.get("load") != "traffic":
        return True
    return case.get("knows", "nothing") == "nothing" and case.get("scheduler", "among") == "among"


Pair = tuple[tuple[str, Any], tuple[str, Any]]


def pairs_of(case: Mapping[str, Any]) -> set[Pair]:
    """Returns every two of the values that a case has."""
    return set(combinations([(name, case[name]) for name in FACTORS if name in case], 2))


def all_pairs() -> set[Pair]:
    """Returns every two values of two factors that can meet."""
    found = set()
    for one, other in combinations(FACTORS, 2):
        for a, b in product(FACTORS[one], FACTORS[other]):
            if possible({one: a, other: b}):
                found.add(((one, a), (other, b)))
    return found


def products(**values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Returns every combination of these values that is possible; other factors are open."""
    for chosen in product(*values.values()):
        case = dict(zip(values, chosen, strict=True))
        if possible(case):
            yield case


def crossed(*begun: Iterable[dict[str, Any]]) -> list[Case]:
    """Returns cases that have these combinations, and as many more as it takes for all pairs."""
    uncovered = all_pairs()
    cases = [_completed(case, uncovered) for cases in begun for case in cases]
    while uncovered:
        cases.append(_completed(dict(min(uncovered, key=repr)), uncovered))
    return cases


def _completed(case: dict[str, Any], uncovered: set[Pair]) -> Case:
    """Returns the case with, for each factor that it lacks, the value that covers the most pairs
    that no case has yet; these are taken out of `uncovered`."""
    for name in FACTORS:
        if name not in case:
            tried = [{**case, name: value} for value in FACTORS[name]]
            case = max(filter(possible, tried), key=lambda case: len(uncovered & pairs_of(case)))
    uncovered -= pairs_of(case)
    return Case(**case)


# -- the runs

END = 900_000
"""When every run ends, in ps."""
JOBS = (
    Job(3, "all-to-all", 500, exchange="pairwise", compute_ps=100_000),
    Job(2, "allreduce", 600, iterations=2, compute_ps=150_345, sensitive=True),
    Job(4, "halo2d", 700, arrival_ps=200_000, user="ann", sensitive=False),
)
"""Not all of them find nodes at once."""


def network_of(case: Case, ranks: int) -> Network:
    """Returns the network of a case, for so many ranks: it has a group less than there are ranks,
    or one more."""
    groups = ranks - 1 if case.scheduler == "extra" else ranks + 1
    machine = Dragonfly(
        1, 2, 3, max(1, groups), terminal=LinkClass(10e9, 7_000), local=LinkClass(12e9, 11_000),
        global_=LinkClass(8e9, 40_000), links_per_pair=None if groups < 2 else 6 // (groups - 1),
    )  # fmt: skip
    most = machine.n_nodes
    jobs = tuple(job for job in JOBS if job.nodes <= most)
    telemetry, power = "telemetry" in case.knows, "power" in case.knows
    how: dict[str, Any] = {"allocation": "rdn", "launch_ps": 60_000, "match_ps": 20_000}
    if telemetry:
        how |= {"allocation": "nedd", "telemetry_ps": 150_000, "telemetry_delay_ps": 60_000}
    return Network(
        machine,
        () if case.load == "jobs" else (Traffic("uniform", load=0.4, message_bytes=700),),
        workload=None if case.load == "traffic" else Workload(jobs, **how),
        power=Power("uniform", cap=f"{170 * most} W", interval_ps=200_000, variation=0.2)
        if power
        else None,
        routing="adaptive", terminal_buffer=2048, local_buffer=8192, global_buffer=8192,
        delay_ps=20_000, dedicated_scheduler=case.scheduler == "alone",
        trace_packets=2 if case.kept else None, **INSIDE[case.inside],
    )  # fmt: skip
