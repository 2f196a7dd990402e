"""What `odonata bid` prints for people: the bid, what it came to where it was trained and where it
is judged, and how likely an hour fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from odonata.bids.chance import Chance
from odonata.bids.plan import BidPlan, Found
from odonata.bids.risk import Point, undominated
from odonata.bids.training import Report
from odonata.commands.regulate_asked import Asked
from odonata.experiment.units import show_power
from odonata.results.register import money
from policies.bidding.judging import TRACKING
from policies.bidding.known import mean_w
from policies.views import Market
from policies.views.tracking import SHARE

if TYPE_CHECKING:
    from odonata.experiment.experiment import JobExperiment

NEXT = 200
"""The number of hours of which it is said how many will fail."""
MOST_ROWS = 10
"""Bids of the front that are listed."""
TERMS = (
    "Trained on: hours that the search knew. Judged on: others, which say what to expect. A failed "
    "hour breaks the tracking rule (off by more than 0.3 of the reserve in a tenth of the time, "
    "unless that is set otherwise), or does not keep the QoS of a type. Hours are counted one by "
    "one; the table of types has the jobs of all hours together. By (in brackets): how far above "
    "its limit an error is that may be exceeded only so often, or the degradation of a job, on "
    "average. Weights count where the power policy divides nodes by them. Money is in the unit of "
    "the prices."
)


def heading(made: JobExperiment, asked: Asked, plan: BidPlan) -> str:
    """Returns what was looked for, and how."""
    assert made.market is not None
    whose = asked.workload or ""
    if made.market.standby is not None:
        whose += f" and standby jobs ({made.market.standby})"
    how = "the search" if plan.optimiser == "search" else "the descent"
    risk = "" if plan.risk is None else f", chosen by {_hours(plan.choose)}"
    goal = (
        "" if plan.risk is None else f", with a chance of a failed hour below {_percent(plan.risk)}"
    )
    others = f"{plan.judge:,} other{'s' * (plan.judge != 1)}"
    return (f"A bid for {whose} on {made.model().nodes:,} nodes, {asked.policy}{goal}: by {how}, "
            f"trained on {_hours(plan.train)}{risk}, judged on {others}")  # fmt: skip


def _percent(share: float) -> str:
    return f"{100.0 * share:.4g}%"


def _hours(count: int) -> str:
    return f"{count:,} hour{'s' if count != 1 else ''}"


def tables(market: Market, found: Found, made: JobExperiment, asked: Asked, plan: BidPlan
           ) -> Sequence[Any]:  # fmt: skip
    """Returns what is shown."""
    from rich.text import Text

    risky = found.at_risk
    own = "trained on" if risky is None else "chosen by"
    said = [Text(word, "bold") for word in notes(market, found, plan, own)]
    first = 1 if risky is not None and not risky.passed else 0  # what is to be read first
    parts: list[Any] = [Text(heading(made, asked, plan), "bold"), *said[:first], bid_table(found)]
    parts += [Text(), hours_table(found, own), *said[first:]]
    if risky is not None:
        words = (f"Bids compared in {_hours(plan.choose)}: those that no other beats both in cost "
                 "and in chance; * was chosen. A cheaper one may save a smaller part, of a lower "
                 "average. Worst Q: of a type, as a part of its limit.")  # fmt: skip
        parts += [Text(), Text(words, "dim"), front_table(risky.front, risky.chosen)]
    return [*parts, Text(), types_table(market, found.after), Text(TERMS, "dim")]


def _table(*titles: str) -> Any:
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim",
                  show_header=bool(titles))  # fmt: skip
    shown.add_column(titles[0] if titles else "", no_wrap=True, style="dim")
    for title in titles[1:]:
        shown.add_column(title, justify="right", no_wrap=True)
    return shown


def bid_table(found: Found) -> Any:
    """Returns what is to be offered."""
    shown, bid = _table(), found.bid
    shown.add_column()
    weights = sorted(bid.weights.items(), key=lambda it: -it[1])
    shown.add_row("average", show_power(bid.average_w))
    shown.add_row("reserve", f"{show_power(bid.reserve_w)} to either side")
    shown.add_row("weights", ", ".join(f"{name} {share:.3g}" for name, share in weights) or "none")
    return shown


def hours_table(found: Found, own: str) -> Any:
    """Returns what the bid came to, in the hours that the search knew and in the others."""
    shown, both = _table("", own, "judged on"), (found.before, found.after)
    rows: list[tuple[str, list[str]]] = [
        ("hours", [f"{it.hours:,}" for it in both]),
        ("kept all rules", [_of(it.kept, it) for it in both]),
        ("kept the tracking rule", [_of(it.kept_rule, it) for it in both]),
        ("kept QoS", [_of(it.kept_qos, it) for it in both]),
        ("saving", [_saving(it.saving) for it in both]),
        ("cost per hour", [money(it.cost) for it in both]),
        ("  of these jobs without an offer", ["", money(found.after.nothing)]),
        ("  difference", ["", _difference(found.after)]),
        ("error, mean", [f"{it.error:.1%}" for it in both]),
        ("bad intervals", [f"{it.bad:.1%}" for it in both]),
        ("chance of a failed hour", ["", f"{_failed(found.after).share:.1%}"]),
        ("  95 % interval", ["", _interval(_failed(found.after))]),
    ]  # fmt: skip
    for title, cells in rows:
        shown.add_row(title, *cells)
    return shown


def _of(count: int, it: Report) -> str:
    return f"{count:,} of {it.hours:,}"


def _saving(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _difference(it: Report) -> str:
    more = it.cost - it.nothing
    part = f" ({more / it.nothing:+.0%})" if it.nothing > 0.0 else ""
    return f"{'+' if more > 0 else '-'}{money(abs(more))}{part}"


def _failed(it: Report) -> Chance:
    return Chance(it.hours - it.kept, it.hours)


def _interval(chance: Chance) -> str:
    low, high = chance.interval
    return f"{low:.1%} to {high:.1%}"


def notes(market: Market, found: Found, plan: BidPlan, own: str) -> Iterator[str]:
    """Yields what is to be known of the bid in sentences."""
    risky, best = found.at_risk, found.trained.best
    if risky is not None:
        chance = risky.judged.failed
        share = f"{chance.share:.1%} ({_interval(chance)} at 95 %)"
        if not risky.passed:
            yield (f"OFFER NOTHING if a risk of {_percent(risky.risk)} has to be kept: in the "
                   f"{_hours(plan.choose)} that bids were compared in all failed too often. This "
                   "one failed least.")  # fmt: skip
        word = "that is not above" if chance.share <= risky.risk else "that is above"
        if chance.interval[1] <= risky.risk:
            word = "all of that is below"
        yield (f"By the hours that it is judged on the chance of a failed hour is {share}: {word} "
               f"{_percent(risky.risk)}.")  # fmt: skip
        low, high = chance.next(NEXT)
        yield f"Of the next {NEXT} hours {low} to {high} will fail (95 %)."
    elif best.broken():
        yield (f"No bid kept all rules in {_some(plan.train, plan.train)} with the margin of "
               f"{plan.margin:g}: this one is nearest to that.")  # fmt: skip
    if found.after.cost >= found.after.nothing:
        yield "To offer nothing is cheaper."
    needed = mean_w(market)
    if found.bid.average_w < needed:
        yield (f"The average is below what the jobs draw that come, {show_power(needed)}: over "
               "hours on end work piles up, and jobs are late that are not here, where every "
               "hour begins with an empty machine; see odonata regulate --continuous.")  # fmt: skip
    yield from fails(market, found, own)


def fails(market: Market, found: Found, own: str) -> Iterator[str]:
    """Yields which constraints fail in some hours, in how many and by how much, the one first that
    fails in most of the hours that the bid is judged on."""
    both = (found.before, f"it was {own}"), (found.after, "it is judged on")
    names = {name: None for it, _ in reversed(both)
             for name in sorted(it.fails, key=lambda one: -it.fails[one][0])}  # fmt: skip
    for name in names:
        some = []
        for it, which in both:
            count, by = it.fails.get(name, (0, 0.0))
            more = f" (by {by:.0%})" if count else ""
            some.append(f"{_some(count, it.hours)} {which}{more}")
        what = "The tracking rule" if name == TRACKING else f"The QoS of {name}"
        yield f"{what} fails in {' and in '.join(some)}."


def _some(count: int, every: int) -> str:
    """Returns 'all 6 hours', 'none of the hours' or '3 of the 20 hours'."""
    if count == every:
        return f"all {every:,} hours" if every > 1 else "the one hour"
    return f"{count:,} of the {every:,} hours" if count else "none of the hours"


def types_table(market: Market, it: Report) -> Any:
    """Returns which part of the jobs of each type is late, in hours that the bid is judged on."""
    shown = _table("type", "late jobs", "may be", "late from Q")
    for kind in market.types:
        if kind.name in it.late:
            may = f"{market.late:.0%}" if market.qos == SHARE else "any, if the mean is below"
            shown.add_row(kind.name, f"{it.late[kind.name]:.1%}", may,
                          f"{kind.threshold:g}")  # fmt: skip
    return shown


def front_table(front: Sequence[Point], chosen: Point) -> Any:
    """Returns the front: what a smaller chance costs."""
    shown = _table("", "average", "reserve", "cost", "saving", "chance", "95 % interval",
                   "worst Q")  # fmt: skip
    every = undominated(front)
    some = every[:: -(-len(every) // MOST_ROWS)]
    some += [chosen] if chosen not in some else []
    for it in sorted(some, key=lambda it: (it.failed.share, it.cost)):
        shown.add_row("*" if it is chosen else "", show_power(it.bid.average_w),
                      show_power(it.bid.reserve_w), money(it.cost), _saving(it.saving),
                      f"{it.failed.share:.1%}",
                      _interval(it.failed), f"{it.worst:.2f}")  # fmt: skip
    return shown
