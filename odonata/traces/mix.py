"""Mixes: jobs of several types, each of which arrives as a Poisson process of its own.

Y. Zhang et al. (*HPC data center participation in demand response*, 2021) state: each type has the
same share of the machine, and its rate follows from that share and its run time (equation 30). As
printed, that rate leaves out that a job has several nodes; here it does not, unless that is asked
for. Of the mixes W1 to W14 the rules are stated, and the marks of the table that lists them are
displaced: these are the lists that agree with the rules. (W11: mg.D.32 has a threshold of 5.0, and
the rule is above 5.) QoSG's three are those of the thesis (2021, section 2.5).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from odonata.traces.distributions import LONGEST_S, above, header, people, stream, whole_from
from odonata.traces.job_type import JobType
from odonata.traces.trace import LEAST_JOB_BYTES, SECOND, UNKNOWN, Account, Trace, Whole
from odonata.traces.types import Types
from odonata.traces.types_file import BUILT_IN
from pdes.arrays import host_memory
from pdes.errors import Refused

ARRIVALS, USERS = 200, 201
"""The purposes of random numbers; those of other models are below."""
BURSTS, THINNING = 203, 204
"""More purposes; 202 is that of `odonata.traces.long_jobs`."""
DAY_S, PEAK_S = 86400.0, 14 * 3600.0
"""A day, and when in it most jobs come, where their rate swings."""
MOST_BURST = 1000.0
CHUNK = 4096
"""How many arrivals are drawn at once; any number gives the same."""
MICRO_US = 1e-3
"""A run time in us is rounded up from here on: less is what the division of two numbers left."""
LOAD = 0.5
"""Stated: the share of the machine that is busy on average, of most mixes."""


@dataclass(frozen=True)
class Mix:
    """A mix by name: types of a table, and how much there is of them."""

    table: str
    types: tuple[str, ...]
    nodes: int
    """Those of the paper's machine."""
    load: float = LOAD
    shares: tuple[float, ...] | None = None
    """Of the load, one of each type; None: all alike."""
    standby: str | None = None
    """The type of which there is always another job, where the paper's machine has one."""

    @property
    def mean_w(self) -> float:
        """Returns what the paper's machine draws on average without caps, if all work is done as it
        arrives."""
        table = Types.of(self.table)
        busy_w = np.average([table[table.place(each)].most_w for each in self.types],
                            weights=self.shares)  # fmt: skip
        idle_w = table.idle_w or 0.0
        return float(self.nodes * (self.load * busy_w + (1.0 - self.load) * idle_w))


def _aqa(types: str, load: float = LOAD) -> Mix:
    return Mix("aqa", tuple(types.split()), 35, load)


def _like(table: str, nodes: int, shares: str) -> Mix:
    names, parts = zip(*(one.split("=") for one in shares.split()), strict=True)
    return Mix(table, names, nodes, 0.75, tuple(map(float, parts)))


def _qosg(*shares: float) -> Mix:
    types = ("fs", "sc", "bt", "lu", "mg", "sp")
    return Mix("qosg", types, 100, shares=shares or None, standby="ft")


W1 = "is.D.32 bt.D.49 mg.D.8 is.D.4 ep.D.100 is.D.64 lu.D.112 mg.D.32"
MEGGIE_LIKE = (
    "job01.14=5.5 job02.7=8.6 job03.2=1.3 job04.16=4 job05.4=2.3 job06.42=13.5 "
    "job07.22=7.6 job08.2=3.5 job09.1=3.1 job10.4=2 job11.3=3.8 job12.7=5.3 job13.3=2.7 "
    "job14.1=2.1 job15.6=3.5 job16.1=2.4 job17.48=30.9 job18.1=2.9 job19.2=5.8 "
    "job20.2=2.4"
)
EMMY_LIKE = (
    "job01.16=13.3 job02.2=5.3 job03.44=7.2 job04.2=2.6 job05.19=5.5 job06.6=5.3 "
    "job07.6=9.8 job08.2=2.5 job09.31=12.1 job10.30=12.2 job11.20=5.7 job12.2=1.5 "
    "job13.2=1.8 job14.13=11.6 job15.3=5.9 job16.12=11.4 job17.1=3.5 job18.2=1.1 "
    "job19.13=3 job20.11=11"
)
"""What a share of the work types of long jobs have: `odonata.traces.long_jobs.shares_of`."""
MIXES: Mapping[str, Mix] = {
    "W1": _aqa(W1),
    "W2": _aqa("bt.C.16 bt.C.25 sp.C.16 bt.D.25 mg.D.8 sp.D.16 cg.D.16 lu.C.28"),
    "W3": _aqa("ep.D.88 sp.D.100 lu.D.224 ft.D.128 sp.D.196 cg.D.128 ep.D.100 is.D.64"),
    "W4": _aqa("mg.D.16 is.D.32 ep.D.64 lu.D.224 cg.C.4 lu.C.28 is.D.64 mg.D.32"),
    "W5": _aqa("bt.D.49 sp.D.100 ep.D.28 bt.D.25 mg.D.8 is.D.4 cg.D.128 cg.D.32"),
    "W6": _aqa("bt.C.36 lu.D.28"),
    "W7": _aqa("bt.C.16 bt.C.25 mg.D.16 sp.C.16 is.D.32 bt.C.36 bt.D.49 ep.D.64 sp.D.100 bt.D.25 "
               "mg.D.8 sp.D.16 cg.D.16 ft.D.64 ft.D.128 mg.D.32"),
    "W8": _aqa("bt.C.16 is.D.32 bt.C.36 cg.C.4 mg.D.8 cg.D.16 cg.D.128 cg.D.32"),
    "W9": _aqa("mg.D.16 sp.C.16 bt.D.49 ep.D.64 sp.D.100 ep.D.28 bt.D.25 mg.D.32"),
    "W10": _aqa("bt.C.16 mg.D.16 bt.C.36 bt.D.25 mg.D.8 ft.D.64 ep.D.100 lu.D.112"),
    "W11": _aqa("sp.C.16 is.D.32 bt.D.49 lu.D.224 sp.D.16 cg.D.16 cg.D.32 mg.D.32"),
    "W12": _aqa(W1, load=0.25),
    "W13": _aqa(W1, load=0.9),
    "W14": _aqa("ep.D.56 sp.C.64 bt.C.16"),
    "qosg": _qosg(),
    "qosg-W1": _qosg(1, 1, 3, 1, 3, 3),
    "qosg-W3": _qosg(3, 3, 1, 3, 1, 1),
    "meggie-like": _like("meggie-like", 728, MEGGIE_LIKE),
    "emmy-like": _like("emmy-like", 560, EMMY_LIKE),
}  # fmt: skip


def table_for(names: Sequence[str]) -> Types:
    """Returns the table, of those that come with this package, that has all these types."""
    for table in map(Types.of, BUILT_IN):
        if set(names) <= set(table.names):
            return table
    raise Refused(f"mix = {', '.join(names)}: none of {', '.join(BUILT_IN)} has all these types; "
                  "power.types names another table")  # fmt: skip


def per_second(
    types: Sequence[JobType], nodes: int, load: float, shares: Sequence[float] | None, sized: bool
) -> list[float]:
    """Returns how many jobs of each type are expected per s, on so many nodes: such that all of
    them together keep `load` of the nodes busy, each type its share of that. `sized` False: as if
    every job had one node, which is equation 30 as printed."""
    parts = [1.0] * len(types) if shares is None else list(shares)
    if len(parts) != len(types):
        raise Refused(f"shares = {', '.join(f'{it:g}' for it in parts)}: one of each of "
                      f"{len(types)} types: {', '.join(it.name for it in types)}")  # fmt: skip
    for part in parts:
        above(0, shares=part)
    found = []
    for one, part in zip(types, parts, strict=True):
        given = {"time_min_s": one.shortest_s, "nodes": one.nodes}
        missing = " and no ".join(column for column, value in given.items() if value is None)
        if missing:
            raise Refused(f"mix: {one.name}: its type has no {missing}, without which no jobs "
                          "of it can be made")  # fmt: skip
        assert one.shortest_s is not None
        assert one.nodes is not None
        size = one.nodes if sized else 1
        found.append(load * nodes * (part / math.fsum(parts)) / (one.shortest_s * size))
    return found


def mix(
    types: Types,
    names: Sequence[str],
    nodes: int,
    *,
    load: float = LOAD,
    span_s: float = 3600.0,
    seed: int = 1,
    shares: Sequence[float] | None = None,
    sized: bool = True,
    burst: float = 1.0,
    swing: float = 0.0,
    name: str = "mix",
) -> Trace:
    """Returns the jobs of these types that arrive on a machine of so many nodes from 0 on, before
    `span_s`, at the rates of `per_second`. Each runs for its T_min and asks for its T_max. The
    random numbers of a type depend on the seed and on its name: with other types beside it its jobs
    come in the same pattern, at another rate. Jobs come in groups of `burst` on average, of random
    sizes, and the rate at which groups come rises and falls over the day by `swing` of its mean."""
    whole_from(1, nodes=nodes)
    whole_from(0, seed=seed)
    above(0, load=load, span_s=span_s)
    if not (1.0 <= burst <= MOST_BURST and 0.0 <= swing <= 1.0):
        raise Refused(f"burst = {burst:g}, swing = {swing:g}: burst is 1 .. {MOST_BURST:g}, and "
                      "swing 0 .. 1")  # fmt: skip
    if span_s > LONGEST_S:
        raise Refused(f"span_s = {span_s:g}: at most {LONGEST_S:g}")
    chosen = _chosen(types, names, nodes, name)
    rates = per_second(chosen, nodes, load, shares, sized)
    expected = span_s * math.fsum(rates)
    need, have = expected * LEAST_JOB_BYTES, host_memory()
    if need > have:
        raise Refused(f"{name}: {expected:,.0f} jobs are expected within {span_s:,.0f} s; they "
                      f"need {need / 1e9:,.0f} GB of memory or more, and there are "
                      f"{have / 1e9:,.0f} GB: give a shorter span")  # fmt: skip
    arrivals = [_bursts(one.name, rate, span_s, seed, burst, swing)
                for one, rate in zip(chosen, rates, strict=True)]  # fmt: skip
    counts = [len(each) for each in arrivals]
    jobs = sum(counts)
    if not jobs:
        raise Refused(f"{name}: no job arrives within {span_s:g} s, where {expected:.2g} are "
                      "expected: give a longer span, a higher load or another seed")  # fmt: skip
    submit_us, code = np.concatenate(arrivals), np.repeat(np.arange(len(chosen)), counts)
    order = np.argsort(submit_us, kind="stable")
    code = code[order]
    uneven = {"burst": burst, "swing": swing} if (burst, swing) != (1.0, 0.0) else {}
    return Trace(
        name=name,
        number=np.arange(1, jobs + 1),
        submit_us=submit_us[order],
        run_us=_column([_us(one.shortest_s) for one in chosen])[code],
        nodes=_column([one.nodes or 1 for one in chosen])[code],
        requested_us=_column([_us(one.longest_s) for one in chosen])[code],
        application=code,
        applications=tuple(one.name for one in chosen),
        wait_us=np.full(jobs, UNKNOWN),
        machine_nodes=int(nodes),
        header=header("mix of types of jobs", seed, types=" ".join(names), table=types.name,
                      nodes=nodes, load=load, span_s=span_s, shares=shares, sized=sized, **uneven),
        account=Account(records=jobs),
        rates={one.name: 3600.0 * rate for one, rate in zip(chosen, rates, strict=True)},
        **people(stream(seed, USERS), jobs, 1),
    )  # fmt: skip


def _chosen(types: Types, names: Sequence[str], nodes: int, name: str) -> list[JobType]:
    """Returns the types of these names; refused where they cannot be jobs of such a machine."""
    if not names:
        raise Refused(f"{name}: no type: name at least one of {', '.join(types.names)}")
    twice = [one for at, one in enumerate(names) if one in names[:at]]
    if twice:
        raise Refused(f"{name}: {twice[0]} is there twice: name it once, and give it a larger "
                      "share")  # fmt: skip
    chosen = [types[types.place(one)] for one in names]
    for one in chosen:
        if one.by != "application":
            raise Refused(f"{name}: {one.name} is matched by {one.by}: a mix has types that are "
                          "matched by application")  # fmt: skip
    large = [f"{one.name} ({one.nodes:,})" for one in chosen if one.nodes and one.nodes > nodes]
    if large:
        raise Refused(f"{name}: the machine has {nodes:,} nodes, and these types need more: "
                      f"{', '.join(large)}; leave them out, or take a larger machine")  # fmt: skip
    return chosen


def _bursts(name: str, rate: float, span_s: float, seed: int, burst: float, swing: float) -> Whole:
    """Returns when jobs of a type arrive, in us, in groups and by the time of day."""
    groups = _arrivals(name, rate * (1.0 + swing) / burst, span_s, seed)
    if swing > 0.0:
        dice = np.random.default_rng([seed, THINNING, _key(name)]).random(len(groups))
        around = np.cos(2.0 * math.pi * (groups / SECOND - PEAK_S) / DAY_S)
        groups = groups[dice * (1.0 + swing) < 1.0 + swing * around]
    if burst > 1.0:
        rng = np.random.default_rng([seed, BURSTS, _key(name)])
        groups = np.repeat(groups, rng.geometric(1.0 / burst, len(groups)))
    return groups


def _key(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def _arrivals(name: str, rate: float, span_s: float, seed: int) -> Whole:
    """Returns when jobs of a type arrive, in us."""
    rng = np.random.default_rng([seed, ARRIVALS, _key(name)])
    last, found = 0.0, []
    while last < span_s:
        times = last + np.cumsum(rng.standard_exponential(CHUNK)) / rate
        last = float(times[-1])
        found.append(times[times < span_s])
    return np.asarray(np.floor(np.concatenate(found) * SECOND), np.int64)


def _us(seconds: float | None) -> int:
    """Returns a time in us, rounded up."""
    assert seconds is not None
    return max(1, math.ceil(seconds * SECOND - MICRO_US))


def _column(values: list[int]) -> Whole:
    return np.array(values, np.int64)
