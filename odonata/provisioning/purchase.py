"""What a buyer's prices buy: machines, the times of jobs on them, and what they cost to run.

Each kind of node makes a **worst-case** machine, whose nodes can all draw their most at once, and
an **overprovisioned** one, whose nodes share the power budget; money bounds both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from odonata.provisioning.cost import HOURS, Running, Sweep, energy_cost, falling, stepped, whole
from odonata.provisioning.prices import Application, Kind, Prices
from pdes.errors import Refused


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
    """What these nodes draw at that power."""
    watts_left: float
    watts_per_node: float | None
    """What each node has if all draw alike; None without nodes."""

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
    share = prices.power_w / nodes if nodes else None
    if share is not None and kind.max_w is not None:
        share = min(share, kind.max_w)
    return Machine(kind, overprovisioned, by_money, by_watts, cost, prices.money - cost,
                   nodes * each_w, prices.power_w - nodes * each_w, share)  # fmt: skip


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


def job_time(
    prices: Prices, application: Application, one: Machine
) -> tuple[float, str] | tuple[None, str]:
    """Returns the time of one job on its share of a machine, in seconds; or None, and why."""
    line, nodes = application.line, one.nodes // application.jobs_at_once
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
    drawn = told.power_w if one.overprovisioned else min(told.power_w, one.watts_needed)
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
        low, high = 0.0, max([prices.power_w, *edges]) * 1.05

    def at(value: float) -> tuple[float | None, str]:
        if what == "price":
            return speedup(replace(prices, cheaper=replace(prices.cheaper, price=value)), name)
        changed = (
            replace(prices, money=value) if what == "money" else replace(prices, power_w=value)
        )
        return speedup(changed, name)

    return stepped(what, [low, high, *(edge for edge in edges if low < edge < high)], at)
