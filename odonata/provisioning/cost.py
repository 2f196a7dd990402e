"""Is it worth buying more nodes than can be powered? The cost model of T. Patki's thesis (2015,
chapter 4): equations 4.1 to 4.7, their break-even points, prices of racks and of core hours.

A **worst-case** machine has as many high-end nodes as the power budget feeds at their maximum. An
**overprovisioned** machine has cheaper nodes for the same money, as many as the budget feeds at
their minimum. An application's time falls along a **line** with the number of nodes, or follows a
**curve** through measured times; `s_ovp` is its time on the first machine over that on the second,
and above 1 overprovisioning is faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from odonata.provisioning.scaling import NO_NODE, ROUNDING, Line
from pdes.errors import Findings

HOURS = 8760
"""The hours of a year."""


def whole(count: float) -> int:
    """Returns how many whole things there are in a count. One that only the rounding of a division
    kept below a whole number is that number: 0.3 / 0.1 is 3."""
    return math.floor(count + ROUNDING)


# -- the model


@dataclass(frozen=True)
class Inputs:
    """What the model takes, by the thesis's table 4.7; an application's line comes beside it."""

    r_c: float = 1.7
    """The effective cost of a high-end node, in those of a cheaper one."""
    r_p: float = 0.27
    """The share of a cheaper node's time that a high-end one saves."""
    power_w: float = 7000.0
    """The power budget of all nodes, P_sys."""
    node_max_w: float = 380.0
    """The most that a high-end node draws."""
    node_min_w: float = 180.0
    """The least that a cheaper node draws."""

    def __post_init__(self) -> None:
        wrong = Findings()
        for name in ("r_c", "power_w", "node_max_w", "node_min_w"):
            value = getattr(self, name)
            fine = 0 < value < math.inf
            wrong.unless(fine, f"{name} = {value:g}", "a number above 0", name)
        fine = 0 <= self.r_p < 1
        rule = "a share from 0 to below 1, as 0.27 for 27 %"
        wrong.unless(fine, f"r_p = {self.r_p:g}", rule, "r_p")
        wrong.refuse()


@dataclass(frozen=True)
class MachineComparison:
    """Both machines for the same money, and the times on them, under the thesis's names."""

    n_wc: float
    n_lim: float
    c_wc: float
    n_ovp: float
    t_ovp: float
    t_wc: float
    s_ovp: float | None
    """None where the line does not hold."""
    why_not: str = ""
    """Why it does not."""


def provision(inputs: Inputs, line: Line, floors: bool = True) -> MachineComparison:
    """Returns both machines and the times on them. `floors`: whether nodes are whole, as in the
    thesis; without them break-even points have no steps."""
    down: Callable[[float], float] = whole if floors else float
    n_wc = down(inputs.power_w / inputs.node_max_w)
    n_lim = down(inputs.power_w / inputs.node_min_w)
    c_wc = n_wc * inputs.r_c
    n_ovp = min(n_lim, down(c_wc))
    t_ovp = line.time_s(n_ovp)
    t_wc = line.time_s(n_wc) * (1 - inputs.r_p)
    why_not = line.why_not(n_wc) or line.why_not(n_ovp)
    s_ovp = None if why_not else t_wc / t_ovp
    return MachineComparison(n_wc, n_lim, c_wc, n_ovp, t_ovp, t_wc, s_ovp, why_not)


def r_c_bound(inputs: Inputs) -> float:
    """Returns the cost ratio from which on watts bind, not money: a larger one changes nothing."""
    return whole(inputs.power_w / inputs.node_min_w) / max(
        1, whole(inputs.power_w / inputs.node_max_w)
    )


# -- one input at a time


@dataclass(frozen=True)
class Step:
    """A stretch of an input over which `s_ovp` is one number, or falls straight to `s_end`; None
    where the line does not hold."""

    low: float
    high: float
    s: float | None
    s_end: float | None
    why_not: str = ""


@dataclass(frozen=True)
class Sweep:
    """The steps of `s_ovp` as one input grows and all others stay."""

    name: str
    steps: tuple[Step, ...]

    @property
    def valid(self) -> tuple[Step, ...]:
        """Returns the steps at which the line holds; they are next to each other."""
        return tuple(step for step in self.steps if step.s is not None)

    @property
    def stops(self) -> tuple[tuple[float, str], ...]:
        """Returns where the line ceases to hold, and why, at the lower and the upper end."""
        found = []
        for one, other in pairwise(self.steps):
            if (one.s is None) != (other.s is None):
                found.append((other.low, one.why_not or other.why_not))
        return tuple(found)

    @property
    def benefits(self) -> tuple[tuple[float, float], ...]:
        """Returns the ranges, each from and to a value of the input, in which overprovisioning is
        at least as fast; there are several where `s_ovp` saws through 1."""
        found: list[tuple[float, float]] = []
        for step in self.valid:
            if step.s is None or step.s_end is None or max(step.s, step.s_end) < 1:
                continue
            low, high = step.low, step.high
            if step.s < 1 or step.s_end < 1:
                cross = low + (high - low) * (1 - step.s) / (step.s_end - step.s)
                low, high = (cross, high) if step.s < 1 else (low, cross)
            if found and found[-1][1] == low:
                low = found.pop()[0]
            found.append((low, high))
        return tuple(found)


RISING = {"r_c": True, "r_p": False, "power_w": True, "node_max_w": False, "node_min_w": False}
"""Inputs that can be swept, and whether more of one is better for overprovisioning. Of node_max_w
less is better only until watts bind, so that its benefits may end below as well."""


@dataclass(frozen=True)
class BreakEven:
    """Where overprovisioning begins to be worth it as one input changes."""

    value: float | None
    """The value of an input that is better high (RISING) from which on overprovisioning stays as
    fast or faster, as far as the line holds; of another input, the highest value at which it is as
    fast. None where there is none."""
    why_none: str
    """Why there is none: it is "always" worth it where the line holds, never, or not for good."""
    benefits: tuple[tuple[float, float], ...]
    """Every range in which it is at least as fast: whole nodes make `s_ovp` saw."""


def stepped(
    name: str, edges: Iterable[float], at: Callable[[float], tuple[float | None, str]]
) -> Sweep:
    """Returns the sweep that changes at these values of the input only; `at` a value is `s_ovp`, or
    None and why. Every step is computed in its middle, so that no rounding can move an edge."""
    at_edges = sorted(set(edges))
    steps: list[Step] = []
    for low, high in pairwise(at_edges):
        s, why_not = at((low + high) / 2)
        if steps and steps[-1].s == s:
            low = steps[-1].low
            why_not = why_not if len(steps) == 1 else steps[-1].why_not  # next to what holds
            steps.pop()
        steps.append(Step(low, high, s, s, why_not))
    return Sweep(name, tuple(steps))


def falling(name: str, s: float | None, why_not: str) -> Sweep:
    """Returns the sweep of a performance loss from 0, where `s_ovp` is given, to 1, where it is
    0."""
    return Sweep(name, (Step(0.0, 1.0, s, None if s is None else 0.0, why_not),))


def sweep(inputs: Inputs, line: Line, name: str) -> Sweep:
    """Returns how `s_ovp` changes with one input, one of RISING, over all that can matter."""

    def at(value: float) -> tuple[float | None, str]:
        found = provision(replace(inputs, **{name: value}), line)
        return found.s_ovp, found.why_not

    own, most = getattr(inputs, name), line.limit + 2
    here = provision(inputs, line)
    if name == "r_p":
        return falling(name, *at(0.0))
    if name == "r_c":
        n_wc, last = max(1, here.n_wc), min(int(here.n_lim), line.limit) + 1
        edges = {k / n_wc for k in range(1, last + 1)}
        low, high = min(1.0, own), max(own, last / n_wc)
    elif name == "power_w":
        edges = {k * inputs.node_max_w for k in range(1, most)}
        edges |= {k * inputs.node_min_w for k in range(1, most)}
        low, high = min(inputs.node_max_w, own), most * inputs.node_max_w
    elif name == "node_max_w":
        edges = {inputs.power_w / k for k in range(1, most + 1)}
        low, high = min(own, inputs.node_min_w), max(own * 2, inputs.node_min_w * 2)
    else:
        edges = {inputs.power_w / k for k in range(1, most + 1)}
        low, high = min(own, inputs.power_w / max(1.0, here.c_wc)) / 1.25, inputs.power_w
        high = min(high, max(own, inputs.node_max_w))
    return stepped(name, [low, high, *(edge for edge in edges if low < edge < high)], at)


def break_even(swept: Sweep, rising: bool) -> BreakEven:
    """Returns where a sweep passes 1; `rising` as in RISING."""
    valid, benefits = swept.valid, swept.benefits
    if not valid:
        why = swept.steps[-1].why_not if swept.steps else NO_NODE
        return BreakEven(None, f"the line does not hold: {why}", ())
    first, last = valid[0].low, valid[-1].high
    if not benefits:
        most = max(max(step.s or 0, step.s_end or 0) for step in valid)
        words = f"s_ovp is at most {most:.3g}, from {first:,.5g} to {last:,.5g}"
        above = [why for at, why in swept.stops if at == last]
        return BreakEven(None, "; ".join([words, *(f"above: {why}" for why in above)]), ())
    low, high = benefits[-1]
    if (low, high) == (first, last):
        return BreakEven(None, "always", benefits)
    if rising and high < last:
        why = f"not for good: above {high:,.5g} it falls below 1 again"
        return BreakEven(None, why, benefits)
    if not rising and high == last:
        return BreakEven(None, f"from {low:,.5g} on, up to {last:,.5g} at least", benefits)
    return BreakEven(low if rising else high, "", benefits)


def break_evens(inputs: Inputs, line: Line) -> dict[str, BreakEven]:
    """Returns the break-even point of every input, with whole nodes as the thesis has them."""
    return {name: break_even(sweep(inputs, line, name), up) for name, up in RISING.items()}


def hundredth_up(value: float) -> float:
    """Returns the first number of two digits that is not below a value: 31/18 is 1.73. This is what
    a table in steps of 0.01 finds."""
    return math.ceil(value * 100 - ROUNDING) / 100


def without_floors(inputs: Inputs, line: Line) -> dict[str, float | None]:
    """Returns the break-even points of the model with fractions of nodes, where t_wc = t_ovp can be
    solved; None where it cannot, or the solution is out of bounds. They lie below or above those
    with whole nodes by what rounding takes from either machine."""
    here, kept = provision(inputs, line, floors=False), 1 - inputs.r_p
    m, c = line.slope, line.intercept
    found: dict[str, float | None] = dict.fromkeys(RISING)
    if m == 0 or here.s_ovp is None:
        return found
    needed = (here.t_wc - c) / m  # cheaper nodes that take as long
    enough = line.from_nodes <= needed <= line.limit
    if enough and needed <= here.n_lim:
        found["r_c"] = needed / here.n_wc
    if enough and needed <= here.c_wc:
        found["node_min_w"] = inputs.power_w / needed
    if here.t_ovp <= line.time_s(here.n_wc):
        found["r_p"] = 1 - here.t_ovp / line.time_s(here.n_wc)
    more = min(inputs.r_c, inputs.node_max_w / inputs.node_min_w)
    if kept != more:
        n = c * inputs.r_p / (m * (kept - more))
        if n * min(1.0, more) >= line.from_nodes and n * max(1.0, more) <= line.limit:
            found["power_w"] = n * inputs.node_max_w
    if kept != inputs.r_c:
        n = c * inputs.r_p / (m * (kept - inputs.r_c))
        most = min(line.limit, here.n_lim)
        if n * min(1.0, inputs.r_c) >= line.from_nodes and n * max(1.0, inputs.r_c) <= most:
            found["node_max_w"] = inputs.power_w / n
    return found


# -- racks


@dataclass(frozen=True)
class Rack:
    """A rack that holds so many nodes, and what it costs without them: switch, power supplies."""

    nodes: int = 16
    price: float = 12_000.0

    def cost(self, nodes: int, node_price: float) -> float:
        """Returns what so many nodes cost with the racks they need."""
        return nodes * node_price + -(-nodes // self.nodes) * self.price

    def affordable(self, money: float, node_price: float) -> int:
        """Returns how many nodes a sum buys, with the racks that they need."""
        full = self.nodes * node_price + self.price
        racks = whole(money / full)
        rest = whole((money - racks * full - self.price) / node_price)
        return racks * self.nodes + max(0, min(self.nodes, rest))

    def mean_of_racks(self, nodes: int, node_price: float) -> float:
        """Returns the mean, over racks, of the cost per node of each: as the thesis averages, which
        counts the nodes of a rack that is not full more than others."""
        racks, rest = divmod(nodes, self.nodes)
        costs = [self.cost(self.nodes, node_price) / self.nodes] * racks
        costs += [self.cost(rest, node_price) / rest] if rest else []
        return math.fsum(costs) / len(costs)


@dataclass(frozen=True)
class CostRatio:
    """The effective cost ratio of two kinds of nodes, for a sum of money."""

    money: float
    high_end_nodes: int
    cheaper_nodes: int
    high_end_each: float
    cheaper_each: float
    """What a node costs with its part of the racks."""
    cheaper_mean_of_racks: float

    @property
    def by_node(self) -> float:
        """Returns the ratio of what is paid per node."""
        return self.high_end_each / self.cheaper_each

    @property
    def by_rack(self) -> float:
        """Returns the ratio with the mean of the racks, as the thesis averages."""
        return self.high_end_each / self.cheaper_mean_of_racks


def cost_ratio(money: float, high_end: float, cheaper: float, rack: Rack) -> CostRatio | None:
    """Returns the ratio that a sum gives with nodes of these prices; None where it does not buy one
    of each."""
    many, more = rack.affordable(money, high_end), rack.affordable(money, cheaper)
    if not many or not more:
        return None
    return CostRatio(money, many, more, rack.cost(many, high_end) / many,
                     rack.cost(more, cheaper) / more,
                     rack.mean_of_racks(more, cheaper))  # fmt: skip


def limit_ratio(high_end: float, cheaper: float, rack: Rack) -> float:
    """Returns the ratio for so many racks that the last one does not matter."""
    return rack.cost(rack.nodes, high_end) / rack.cost(rack.nodes, cheaper)


# -- core hours


@dataclass(frozen=True)
class Running:
    """What a machine costs over its life, in money, and what it gives for it."""

    acquisition: float
    years: float
    maintenance: float
    """Per year, as are those that follow."""
    power: float
    staff: float
    cores: int
    utilisation: float
    """The share of core hours that jobs use."""

    @property
    def per_year(self) -> float:
        """Returns the cost of a year."""
        return self.acquisition / self.years + self.maintenance + self.power + self.staff

    @property
    def core_hours(self) -> float:
        """Returns the core hours of a year that jobs use."""
        return self.cores * self.utilisation * HOURS

    @property
    def per_core_hour(self) -> float:
        """Returns the cost of a core hour in use."""
        return self.per_year / self.core_hours


def energy_cost(power_w: float, per_kwh: float) -> float:
    """Returns what a year of this power costs."""
    return power_w / 1000 * HOURS * per_kwh


# -- what the thesis prints

APPLICATIONS = {
    "SPhot": Line(-1.114, 73.07),
    "SP-MZ": Line(-0.112, 7.00),
    "BT-MZ": Line(-0.069, 8.50),
    "LU-MZ": Line(-0.542, 25.93),
}
"""Table 4.8."""
PRINTED = {
    "SPhot": MachineComparison(18, 50, 30.6, 30, 39.64, 38.70, 0.98),
    "SP-MZ": MachineComparison(18, 50, 30.6, 30, 3.51, 3.61, 1.02),
    "BT-MZ": MachineComparison(18, 50, 30.6, 30, 6.41, 5.29, 0.83),
    "LU-MZ": MachineComparison(18, 50, 30.6, 30, 9.66, 11.80, 1.22),
}
"""Table 4.9. Its n_lim is that of nodes of 140 W; 180 W, as in table 4.7, give 38."""
HIGH_END_PRICE, CHEAPER_PRICE = 3300.0, 1700.0
"""US dollars per node (table 4.3)."""
SCORES = 17_812.0, 13_985.0
"""PassMark scores of both (table 4.3)."""
HOPPER = Running(52e6, 4, 5.2e6, 2.6e6, 0.3e6, 153_408, 0.85)
"""Table 4.1, in US dollars. 2.6 MW at 10 cents per kWh would be 2.28 million a year, not 2.6."""
HOPPER_PER_CORE_HOUR = 0.018
TWO_RACKS, MANY_RACKS = 1.45, 1.7
"""The effective cost ratios that section 4.4.2 prints."""
