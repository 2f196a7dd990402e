"""Load-latency curves of a network: which loads, routings and patterns of traffic are asked for, as
the file of a sweep, and what theory says of each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from itertools import groupby
from pathlib import Path
from typing import Any

from odonata.agents.network import Network
from odonata.experiment.experiment import Experiment
from odonata.experiment.reading import parse
from odonata.experiment.sections import OF_NODES, NetworkSettings, NicSettings, RunSettings
from odonata.experiment.units import show_time
from odonata.results.statistics import Interval, interval
from odonata.study.contract import Claim
from odonata.study.verdicts import limits, yes_or_no
from odonata.sweeps.axes import toml
from odonata.sweeps.empty import phases, zero_load_ps
from odonata.sweeps.limits import Limit, limit
from odonata.sweeps.outcomes import plus_minus
from odonata.sweeps.plan import Plan, planned
from odonata.sweeps.saturating import LONGER, AtLoad, Curve
from pdes.clock import LATEST
from pdes.errors import require

NAME = "latency"
MOST_LOADS = 1000
LOW_LOAD = 0.05
NEAR = 0.05
"""The fraction by which latency at a low load may differ from the formula."""
WITHIN = 0.03
"""The fraction by which saturation may differ from theory."""


# -- what is asked for


def parse_loads(text: str) -> tuple[float, ...]:
    """Returns increasing loads from '0.05:0.95:0.05' (first, last, step), '0.1,0.5' or '0.3'.

    Computed in decimals, so that the third of 0.05:0.95:0.05 is 0.15. Raises ValueError saying what
    is accepted.
    """
    loads = sorted({load for part in text.split(",") for load in _range(part, text)})
    if len(loads) > MOST_LOADS:
        raise ValueError(f"{text!r}: at most {MOST_LOADS} loads")
    for load in loads:
        if not 0 < load <= 1:
            raise ValueError(f"{text!r}: a load of {float(load):g} is not above 0 and at most 1")
    return tuple(float(load) for load in loads)


def _range(part: str, text: str) -> list[Decimal]:
    try:
        numbers = [Decimal(number.strip()) for number in part.split(":")]
    except InvalidOperation:
        numbers = []
    if len(numbers) not in (1, 3) or not all(number.is_finite() for number in numbers):
        raise ValueError(
            f"{text!r} are no loads: start:stop:step (0.05:0.95:0.05), a list (0.1,0.5), or one"
        )
    if len(numbers) == 1:
        return numbers
    start, stop, step = numbers
    if step <= 0 or stop < start:
        raise ValueError(f"{text!r}: start:stop:step goes up, by a step above 0")
    if stop - start > MOST_LOADS * step:
        raise ValueError(f"{text!r}: at most {MOST_LOADS} loads")
    return [start + i * step for i in range(int((stop - start) / step) + 1)]


@dataclass(frozen=True)
class Asked:
    """Every pattern with every routing at every load, on one network; its traffic says how long to
    warm up and to measure at first, and `longest_ps` how long a run may be made. `beyond`: also far
    beyond saturation."""

    network: Network
    patterns: tuple[str, ...]
    routings: tuple[str, ...]
    loads: tuple[float, ...]
    drain_ps: int
    longest_ps: int
    seeds: int = 1
    resolution: float = 0.01
    beyond: bool = False
    plugins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what, ps in (("phases", self.end_ps), ("the longest run", self.longest_ps)):
            require(
                ps <= LATEST,
                f"{what} of {show_time(ps)} {'together' if what == 'phases' else ''}: at most "
                f"{show_time(LATEST)}",
            )
        require(
            self.longest_ps >= self.end_ps,
            f"longest = {show_time(self.longest_ps)}: at least the first run's "
            f"{show_time(self.end_ps)}",
        )
        for pattern in self.patterns:
            for routing in self.routings:  # what cannot be built is refused now
                self.at(pattern, routing)

    def at(self, pattern: str, routing: str) -> Network:
        """Returns the network with a pattern and a routing, at the lowest load."""
        (traffic,) = self.network.traffic
        changed = replace(traffic, pattern=pattern, load=self.loads[0])
        return replace(self.network, traffic=(changed,), routing=routing)

    @property
    def end_ps(self) -> int:
        (traffic,) = self.network.traffic
        return traffic.warmup_ps + (traffic.measure_ps or 0) + self.drain_ps

    # -- as a sweep

    def plan(self) -> Plan:
        return planned(Path(NAME), plugins=self.plugins, text=self.text())

    def text(self, beside: Path | None = None) -> str:
        """Returns the file of the sweep; its plug-ins are relative to what it is `beside`."""
        network, (traffic,) = self.network, self.network.traffic
        made = Experiment(
            NAME,
            machine=network.machine,
            network=_part(NetworkSettings, network, routing="minimal"),
            traffic=(replace(traffic, pattern="uniform", load=0.3),),
            nic=NicSettings(**{name: getattr(network, name) for name in OF_NODES}),
            run=RunSettings(end=self.end_ps, seed=network.seed),
        )
        plugins = [os.path.relpath(path, beside.parent) for path in self.plugins] if beside else []
        sweep = {
            "network.routing": [*self.routings], "traffic.pattern": [*self.patterns],
            "traffic.load": [*self.loads], "seeds": self.seeds, "saturation": self.resolution,
            "longest": show_time(self.longest_ps), **({"beyond": True} if self.beyond else {}),
            "plot": "mean_latency_ns:traffic.load:network.routing",
        }  # fmt: skip
        head = f"plugins = {toml(plugins)}\n\n" if plugins else ""
        lines = ["", "[sweep]", *(f"{name} = {toml(value)}" for name, value in sweep.items())]
        return head + _brief(made).lstrip("\n") + "\n".join(lines) + "\n"

    # -- what theory says

    def limit(self, pattern: str, routing: str) -> Limit | None:
        return limit(self.at(pattern, routing), routing)

    def zero_load_ps(self, pattern: str) -> float | None:
        return zero_load_ps(self.at(pattern, self.routings[0]))

    def title(self, pattern: str) -> str:
        """Returns the traffic and the machine in a line."""
        network, m, (traffic,) = self.network, self.network.machine, self.network.traffic
        size = f"packets of {min(network.packet_bytes, traffic.message_bytes)} B"
        if traffic.message_bytes > network.packet_bytes:
            size = f"messages of {traffic.message_bytes} B in {size}"
        return (f"{pattern} traffic, {size}, {m.n_nodes:,} nodes "
                f"(p={m.nodes} a={m.routers} h={m.global_links} g={m.groups})")  # fmt: skip


def asked(
    network: Network,
    patterns: Sequence[str],
    routings: Sequence[str],
    loads: Sequence[float],
    *,
    warmup_ps: int | None = None,
    measure_ps: int | None = None,
    drain_ps: int | None = None,
    longest_ps: int | None = None,
    **others: Any,
) -> Asked:
    """Returns what is asked for, with phases that suit the machine (`phases`) where none are given.
    Where one is, runs are made no longer unless `longest_ps` says so. The network's own routing,
    pattern, load and number of messages do not matter."""
    usual = phases(network)
    own = warmup_ps is None and measure_ps is None and drain_ps is None
    warmup_ps, measure_ps, drain_ps = (
        usually if given is None else given
        for given, usually in zip((warmup_ps, measure_ps, drain_ps), usual, strict=True)
    )
    (traffic,) = network.traffic
    traffic = replace(
        traffic, messages=None, stop_ps=None, warmup_ps=warmup_ps, measure_ps=measure_ps
    )
    if longest_ps is None:
        longest_ps = (warmup_ps + measure_ps + drain_ps) * (LONGER if own else 1)
    return Asked(
        replace(network, traffic=(traffic,)), tuple(dict.fromkeys(patterns)),
        tuple(dict.fromkeys(routings)), tuple(sorted(set(loads))), drain_ps, longest_ps, **others,
    )  # fmt: skip


def _part(made: Any, network: Network, **changes: Any) -> Any:
    found = {one.name: getattr(network, one.name) for one in fields(made)}
    return made(**found | changes)


def _brief(made: Experiment) -> str:
    """Returns an experiment as TOML with only what is not as usual, where that is the same."""
    usual = Experiment(made.name).written()
    preset = "machine.preset" in made.written()
    said = [
        (key, value)
        for key, value in made.settings()
        if (usual.get(key.path) != value or key.path == "traffic.message")
        and not (preset and key.section == "machine" and key.name != "preset")
    ]
    lines = []
    for section, keys in groupby(said, lambda it: it[0].section):
        lines += ["", f"[{section}]", *(f"{key.name} = {value}" for key, value in keys)]
    text = "\n".join(lines) + "\n"
    same = replace(parse(text, made.name), metrics=made.metrics) == made
    return text if same else made.to_toml()


# -- what was found


@dataclass(frozen=True)
class Bundle:
    """The curves of one pattern and one routing, one for each seed."""

    pattern: str
    routing: str
    curves: tuple[Curve, ...]

    @property
    def rows(self) -> Iterator[tuple[AtLoad, ...]]:
        """Returns what all seeds have at a load, by increasing load."""
        return zip(*(curve.points for curve in self.curves), strict=False)

    @property
    def saturation_load(self) -> Interval:
        return interval([curve.saturation_load for curve in self.curves])

    @property
    def throughput(self) -> Interval:
        """Returns the mean of the largest accepted loads of points that have settled."""
        return interval([curve.throughput for curve in self.curves])

    @property
    def saturated_at(self) -> float | None:
        """Returns the lowest saturated load that was asked for above which no seed was steady."""
        found = [curve.saturated_at for curve in self.curves]
        return None if None in found else max(load for load in found if load is not None)

    @property
    def reached(self) -> float:
        return max(at.load for curve in self.curves for at in curve.points)


def mean(points: Sequence[AtLoad], figure: str) -> Interval:
    """Returns the mean of a figure over seeds, and its interval."""
    return interval([at.figure(figure) for at in points])


def bundles(asked: Asked, curves: Sequence[Curve]) -> list[Bundle]:
    """Returns the curves by pattern and routing, those that have begun."""
    found = [
        Bundle(pattern, routing,
               tuple(curve for curve in curves if curve.labels == (routing, pattern)))
        for pattern in asked.patterns for routing in asked.routings
    ]  # fmt: skip
    return [bundle for bundle in found if bundle.curves]


def claims(asked: Asked, found: Sequence[Bundle]) -> list[Claim]:
    """Returns what theory says of each curve beside what was found: routings that do not adapt are
    saturated where the first link is full (`limits`): under adversarial traffic and minimal
    routing, the cables between two groups (Kim et al., 2008). At low load the latency is that of
    the minimal path through an empty network."""
    return [claim for bundle in found for claim in _about(asked, bundle)]


def _about(asked: Asked, bundle: Bundle) -> Iterator[Claim]:
    bound, saturated = asked.limit(bundle.pattern, bundle.routing), bundle.saturated_at is not None
    name = bundle.routing
    if len(asked.patterns) > 1:
        name = f"{bundle.pattern}, {name}"
    paper = "" if bound is None else str(bound)
    for what, found in (("load", bundle.saturation_load), ("throughput", bundle.throughput)):
        if not found.of and what == "load":
            continue
        holds, ours = None, plus_minus(found.mean, found.half) if found.of else "not settled"
        if found.of and not saturated:
            ours = f"{ours}, not saturated"
        elif found.of and bound is not None:
            holds = near_limit(found, bound)
        low, high = limits(found)
        facts = {what: found.mean, "low": low, "high": high} if found.of else {}
        yield Claim(f"{name}: saturation {what}", paper, ours, yes_or_no(holds), found.of, facts)
    zero, first = asked.zero_load_ps(bundle.pattern), next(bundle.rows, ())
    if first and bundle.routing == "minimal" and zero is not None and first[0].load <= LOW_LOAD:
        ns = mean(first, "mean_latency_ns").mean
        yield Claim(f"{name}: latency at load {first[0].load:g}", f"{zero / 1e3:.0f} ns",
                    f"{ns:.0f} ns", yes_or_no(abs(ns / (zero / 1e3) - 1) <= NEAR),
                    sum(int(at.figure("measured_packets")) for at in first),
                    {"mean_ns": ns})  # fmt: skip


def near_limit(found: Interval, bound: Limit) -> bool:
    """Tells whether saturation is where theory has it, or below a bound."""
    return abs(found.mean / bound.load - 1) <= WITHIN if bound.exact else found.mean <= bound.load
