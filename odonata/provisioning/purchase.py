"""What a buyer's prices buy: machines, the times of jobs on them, and what they cost to run.

Each kind of node makes a **worst-case** machine, whose nodes can all draw their most at once, and
an **overprovisioned** one, whose nodes share the power budget; money bounds both. Where the money
buys so few that all of them have their most anyway, they are **at full power**.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from odonata.provisioning.cost import HOURS, Running, Sweep, energy_cost, falling, stepped, whole
from odonata.provisioning.prices import Application, Kind, Prices
from odonata.provisioning.scaling import ROUNDING, Curve, Line
from pdes.errors import Refused

BARELY = 1.1
"""The share of its least power below which a node is taken to have hardly any to compute with."""


@dataclass(frozen=True)
class Machine:
    """So many nodes of one kind."""

    kind: Kind
    overprovisioned: bool
    by_money: int
    """The nodes that the money buys, with their racks."""
    by_watts: int
    """The nodes that the power budget feeds: at their most, or, overprovisioned, at their least."""
    cost: float
    money_left: float
    watts_needed: float
    """What these nodes draw at that power; at full power, what they draw at their most."""
    watts_left: float
    watts_per_node: float | None
    """What each node has if all draw alike; None without nodes."""
    at_full_power: bool = False
    """Whether each node of an overprovisioned machine can draw its most, so that it is none."""

    @property
    def nodes(self) -> int:
        """Returns how many nodes there are."""
        return min(self.by_money, self.by_watts)

    @property
    def limited_by(self) -> str:
        """Returns what keeps the machine from having more nodes."""
        if self.by_money == self.by_watts:
            return "money and watts"
        return "money" if self.by_money < self.by_watts else "watts"

    @property
    def starved(self) -> bool:
        """Tells whether it has so many nodes that each can hardly draw more than its least."""
        if not self.overprovisioned or self.watts_per_node is None or self.kind.min_w is None:
            return False
        return self.watts_per_node < BARELY * self.kind.min_w

    @property
    def name(self) -> str:
        """Returns the key of the machine in what programs read."""
        return "overprovisioned" if self.overprovisioned else "worst_case"


def machine(prices: Prices, kind: Kind, overprovisioned: bool) -> Machine | None:
    """Returns the largest machine of a kind that both budgets allow; None where the file does not
    tell what a node of it draws at its most, or at its least."""
    each_w = kind.min_w if overprovisioned else kind.max_w
    if each_w is None:
        return None
    by_money = prices.rack.affordable(prices.money, kind.price)
    by_watts = whole(prices.power_w / each_w)
    nodes = min(by_money, by_watts)
    cost = prices.rack.cost(nodes, kind.price)
    share, full = prices.power_w / nodes if nodes else None, False
    if share is not None and kind.max_w is not None:
        full = overprovisioned and share >= kind.max_w * (1 - ROUNDING)
        share = min(share, kind.max_w)
        each_w = kind.max_w if full else each_w
    return Machine(kind, overprovisioned, by_money, by_watts, cost, prices.money - cost,
                   nodes * each_w, prices.power_w - nodes * each_w, share, full)  # fmt: skip


def compared(prices: Prices) -> tuple[Machine, Machine]:
    """Returns the worst-case machine of high-end nodes, and the overprovisioned one of cheaper
    nodes."""
    worst, over = machine(prices, prices.high_end, False), machine(prices, prices.cheaper, True)
    if worst is None or over is None:
        raise Refused("the most that a high-end node draws and the least that a cheaper node draws "
                      "are both needed")  # fmt: skip
    return worst, over


def machines(prices: Prices) -> list[Machine]:
    """Returns the two machines that are compared; then those of the other two that the file tells
    enough of: overprovisioned of high-end nodes, worst-case of cheaper ones."""
    others = machine(prices, prices.high_end, True), machine(prices, prices.cheaper, False)
    return [*compared(prices), *(one for one in others if one is not None)]


def share_w(prices: Prices, application: Application, one: Machine) -> float:
    """Returns what all nodes of a job may draw: its part of the power budget, or as much as they
    can (infinity) where that is enough for each to draw its most; or what the file says."""
    if application.bound_w is not None:
        return application.bound_w
    share = prices.power_w / application.jobs_at_once
    most = (one.kind.max_w or math.inf) * (one.nodes // application.jobs_at_once)
    return share if one.overprovisioned and share < most * (1 - ROUNDING) else math.inf


def times_of(prices: Prices, application: Application, one: Machine) -> Line | Curve:
    """Returns an application's times on cheaper nodes with the power of a machine: a line knows no
    power, a curve does."""
    line = application.line
    if isinstance(line, Line):
        return line
    return replace(line, bound_w=share_w(prices, application, one))


def job_time(
    prices: Prices, application: Application, one: Machine
) -> tuple[float, str] | tuple[None, str]:
    """Returns the time of one job on its share of a machine, in seconds; or None, and why."""
    line, nodes = times_of(prices, application, one), one.nodes // application.jobs_at_once
    if why_not := line.why_not(nodes):
        return None, f"{one.kind.name}: {why_not}"
    return line.time_s(nodes) * (1 - prices.r_p * (one.kind is prices.high_end)), ""


def mix_time(
    prices: Prices, one: Machine, name: str | None = None
) -> tuple[float, str] | tuple[None, str]:
    """Returns the seconds of a machine per job, on average over all applications by their weights,
    or those of one application by `name`; or None, and why. Jobs that run at once share them."""
    names = prices.applications if name is None else [name]
    total = weights = 0.0
    for each in names:
        application = prices.applications[each]
        time, why_not = job_time(prices, application, one)
        if time is None:
            return None, why_not if name else f"{each}: {why_not}"
        total += application.weight * time / application.jobs_at_once
        weights += application.weight
    return total / weights, ""


def speedup(prices: Prices, name: str | None = None) -> tuple[float | None, str]:
    """Returns how many times as fast the overprovisioned machine of cheaper nodes is as the
    worst-case one of high-end nodes; for one application, or for the mix. Or None, and why."""
    first, second = compared(prices)
    slow, why_not = mix_time(prices, first, name)
    fast, why_no_other = mix_time(prices, second, name)
    if slow is None or fast is None:
        return None, why_not or why_no_other
    return slow / fast, ""


def running_cost(prices: Prices, one: Machine) -> Running | None:
    """Returns what a machine costs over its life; None where running costs are not told."""
    told = prices.running
    if told is None or one.kind.cores is None or not one.nodes:
        return None
    upkeep = told.maintenance + told.maintenance_share * one.cost
    shared = one.overprovisioned and not one.at_full_power
    drawn = told.power_w if shared else min(told.power_w, one.watts_needed)
    return Running(one.cost, told.years, upkeep, energy_cost(drawn, told.price_per_kwh),
                   told.staff, one.nodes * one.kind.cores, told.utilisation)  # fmt: skip


def cost_per_job(prices: Prices, one: Machine, name: str | None = None) -> float | None:
    """Returns what one job costs, on average over the mix or for one application: the cost of a
    year over the jobs of a year. None where a part of it is not known."""
    running, (time, _) = running_cost(prices, one), mix_time(prices, one, name)
    if running is None or time is None:
        return None
    return running.per_year * time / (running.utilisation * HOURS * 3600)


SWEPT = {"money": True, "power_w": True, "price": False, "loss": False}
"""What of the prices can be swept (price: that of a cheaper node), and whether more of it is better
for overprovisioning."""


def price_sweep(prices: Prices, what: str, name: str | None = None) -> Sweep:
    """Returns how `speedup` changes with one of SWEPT, for an application or the mix."""
    if what == "loss":
        return falling(what, *speedup(replace(prices, r_p=0.0), name))
    names = prices.applications if name is None else [name]
    counts = {  # of nodes at which a job's share grows
        n
        for app in (prices.applications[each] for each in names)
        for n in range(app.jobs_at_once, (app.line.limit + 1) * app.jobs_at_once + 1,
                       app.jobs_at_once)
    }  # fmt: skip
    first, second = compared(prices)
    pairs = ((first, first.kind.max_w or 0.0), (second, second.kind.min_w or 0.0))
    if what == "price":
        fed = [n for n in counts if n <= second.by_watts]
        edges = {(prices.money - prices.rack.cost(n, 0.0)) / n for n in fed}
        low, high = prices.cheaper.price / 2, max(prices.high_end.price, prices.cheaper.price)
    elif what == "money":
        edges = {prices.rack.cost(n, one.kind.price) for one, _ in pairs
                 for n in counts if n <= one.by_watts}  # fmt: skip
        low, high = 0.0, max([prices.money, *edges]) * 1.05
    else:
        edges = {n * watts for one, watts in pairs for n in counts if n <= one.by_money}
        for each in names:
            edges |= _watt_edges(prices.applications[each], second)
        low, high = 0.0, max([prices.power_w, *edges]) * 1.05

    def at(value: float) -> tuple[float | None, str]:
        if what == "price":
            return speedup(replace(prices, cheaper=replace(prices.cheaper, price=value)), name)
        changed = (
            replace(prices, money=value) if what == "money" else replace(prices, power_w=value)
        )
        return speedup(changed, name)

    return stepped(what, [low, high, *(edge for edge in edges if low < edge < high)], at)


def _watt_edges(application: Application, one: Machine) -> set[float]:
    """Returns the power budgets of an overprovisioned machine at which a measured configuration
    comes within the share of a job. With fewer watts than its money buys nodes for, a machine has
    just as many as it can feed, and each of them has hardly more than its least."""
    line, jobs, least = application.line, application.jobs_at_once, one.kind.min_w or 0.0
    if isinstance(line, Line) or application.bound_w is not None:
        return set()
    most = one.by_money // jobs
    found = {jobs * nodes * each for nodes, some in zip(line.nodes, line.node_w, strict=True)
             for each in some}  # fmt: skip
    for nodes in range(line.from_nodes, min(most, line.limit) + 1):
        end = math.inf if nodes == most else (nodes + 1) * least
        each_w = line.near(nodes) | ({one.kind.max_w} if one.kind.max_w else set())
        found |= {jobs * nodes * each for each in each_w if nodes * each <= end}
    return found


# -- what to change, and what to know


def cure(prices: Prices, name: str) -> str:
    """Returns what to change where an application has no answer."""
    application, built = prices.applications[name], compared(prices)
    line, jobs = application.line, application.jobs_at_once
    few, many = sorted(one.nodes for one in built)
    if not few:
        return "more money or more watts are needed"
    least, most = many // (line.limit + 1) + 1, few // line.from_nodes
    if least <= jobs <= most:
        if isinstance(line, Line):
            return "set limit to the largest number of nodes that was measured"
        return "measure lower caps, or set fewer jobs_at_once"
    if least > most:
        return (f"measure on {few // least:,} nodes too, or fewer" if few // least
                else "measure on more nodes")  # fmt: skip
    if jobs < least:
        return f"set jobs_at_once to {least} or more" + (f", up to {most}" if most > least else "")
    return f"set jobs_at_once to {most} or less"


def remarks(prices: Prices, name: str) -> list[str]:
    """Returns what is to be known about an application's share of the two machines that are
    compared: nodes that no job has, nodes that a job leaves unused, and watts that cannot be."""
    application = prices.applications[name]
    line, jobs = application.line, application.jobs_at_once
    found = []
    for one in compared(prices):
        nodes, left = divmod(one.nodes, jobs)
        if nodes and left:
            found.append(f"{jobs} jobs at once have {nodes:,} {one.kind.name} each, which leaves "
                         f"{left} of {one.nodes:,} without a job")  # fmt: skip
        curve = times_of(prices, application, one)
        if isinstance(curve, Curve) and not curve.why_not(nodes):
            used, _ = curve.used(nodes)
            if used < nodes:
                within = "" if curve.bound_w == math.inf else f", within {curve.bound_w:,.0f} W"
                found.append(f"a job that has {nodes:,} {one.kind.name} is fastest on "
                             f"{used:,}{within}")  # fmt: skip
    highest = max(each[-1] for each in line.node_w) if isinstance(line, Curve) else 0.0
    if prices.cheaper.max_w is not None and highest > prices.cheaper.max_w * (1 + ROUNDING):
        found.append(f"its table has nodes that draw {highest:,.0f} W, and cheaper.power_max_w is "
                     f"{prices.cheaper.max_w:g}: is one of them wrong?")  # fmt: skip
    return found
