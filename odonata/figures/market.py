"""The figures of a market for regulation: power against its target, the errors, who runs and waits,
how late jobs of each type were, and what hours cost.

Each function draws one figure on a figure or on a part of one; call it within `style`. They draw
the hours of one run, or of several together. `PICTURES` has them in reading order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from odonata.experiment.units import show_power
from odonata.figures.clock import clock_of
from odonata.figures.picture import Picture, Size
from odonata.figures.placement import job_colours
from odonata.figures.power import PALE, unit_of
from odonata.figures.style import (
    BLUE,
    DASHES,
    FAINT,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    Floats,
    canvas,
    cumulated,
    dress,
    legend_above,
    save,
    style,
    thousands,
    top,
)
from odonata.jobs.schedule import TO_COME
from odonata.results.market import HourFacts, Market
from odonata.results.schedule_series import binned
from odonata.traces.trace import SECOND

if TYPE_CHECKING:
    from odonata.results.regulated import Regulated

RED, PALE_ORANGE = "#b3362b", "#f6d9bd"
MOST_STEPS = 900
"""The largest number of readings of an hour that are drawn; more are merged."""
MOST_BARS = 120
"""The largest number of hours whose costs are drawn; of more only the first."""
MOST_LIMITS = 8.0
"""Degradations that are more times their limit than this are beyond the axis, as numbers."""
MOST_CURVES = 48
BINS = 240
"""Steps of the numbers of jobs over the time of a run."""
MINUTE_US = 60 * SECOND


class OneHour(NamedTuple):
    """An hour of some run."""

    name: str
    market: Market
    at: int
    """Its place among the hours of the run."""
    facts: HourFacts


@dataclass(frozen=True, eq=False)
class Hours:
    """What is drawn: runs in a market, with a word for each."""

    markets: Sequence[Market]
    names: Sequence[str]
    before: Sequence[Floats] = ()
    """[run][job]: degradations without demand response, where they are known."""

    @cached_property
    def every(self) -> list[OneHour]:
        """Returns all hours that are judged, run by run."""
        found = []
        for market, name in zip(self.markets, self.names, strict=True):
            judged = market.judged_hours
            first, whole = len(market.by_hour) - len(judged), bool(name) and len(judged) == 1
            found += [OneHour(name if whole else f"{name} hour {at + 1}".strip(), market,
                              first + at, facts)
                      for at, facts in enumerate(judged)]  # fmt: skip
        return found

    @property
    def first(self) -> OneHour:
        """Returns the first hour in which something was offered, or the first one."""
        return next((hour for hour in self.every if hour.facts.reserve_w), self.every[0])

    @property
    def worst(self) -> OneHour:
        """Returns the hour that was off its target for the largest part of the time."""
        return max(self.every, key=lambda hour: (hour.facts.bad_share or 0.0,
                                                 hour.facts.error_mean or 0.0))  # fmt: skip

    @cached_property
    def errors(self) -> list[Floats]:
        """Returns the errors of each hour that has any."""
        found = [hour.market.error[hour.market.hour_of == hour.at] for hour in self.every]
        return [some for some in (one[~np.isnan(one)] for one in found) if len(some)]


# -- power and target


def tracking(shown: Hours, part: FigureBase) -> None:
    """Draw power against target in the first hour with an offer, and in the worst one if that is
    another."""
    first, worst = shown.first, shown.worst
    word = "The first" if first is shown.every[0] else "The first with an offer"
    hours = [(word, first)] + [("The worst", worst)] * (worst is not first)
    panels = part.subplots(len(hours), 1, squeeze=False)[:, 0]
    for axes, (word, hour) in zip(panels, hours, strict=True):
        only = len(shown.every) == 1
        _draw_hour(axes, hour, "" if only else f"{word}: {hour.name}", hour is first)
    keys = {name: key for axes in panels for key, name in zip(*axes.get_legend_handles_labels(),
                                                              strict=True)}  # fmt: skip
    legend_above(panels[0], "left", handles=[*keys.values()], labels=[*keys], ncols=5)


def _draw_hour(axes: Axes, hour: OneHour, title: str, legend: bool) -> None:
    market, facts = hour.market, hour.facts
    its = market.hour_of == hour.at
    ends, begin = market.tracking.time_us[its], int(market.bids.begin_us[hour.at])
    each = max(1, -(-len(ends) // MOST_STEPS))
    firsts = np.arange(0, len(ends), each)
    seen = market.tracking
    power_w, target_w, standby_w = (
        np.add.reduceat(column[its], firsts) / np.diff(firsts, append=len(ends))
        for column in (seen.power_w, seen.target_w, seen.standby_w)
    )
    edges = (np.append(np.append(begin, ends[:-1])[firsts], ends[-1]) - begin) / MINUTE_US
    size, unit = unit_of(max(top(power_w), top(target_w)))
    room = market.rules.limit * facts.reserve_w
    low, high = target_w - room, target_w + room if room else target_w * 0.0
    if room:
        axes.fill_between(edges, np.append(low, low[-1]) / size, np.append(high, high[-1]) / size,
                          step="post", color=PALE_ORANGE, lw=0, zorder=1,
                          label=f"within {market.rules.limit:g} of the reserve")  # fmt: skip
    if facts.reserve_w:
        axes.stairs(target_w / size, edges, baseline=None, color=ORANGE, lw=1.3, zorder=3,
                    label="target")  # fmt: skip
    axes.stairs(power_w / size, edges, baseline=None, color=BLUE, lw=1.1, zorder=4, label="power")
    if np.nan_to_num(standby_w).any():
        axes.stairs(standby_w / size, edges, fill=True, color=FAINT, lw=0, zorder=2,
                    label=f"of it standby jobs ({market.types.standby})"
                    if market.types is not None else "of it standby jobs")  # fmt: skip
    axes.set_xlim(0, max(edges[-1], facts.hours * 60))
    axes.set_ylim(0, max(top(power_w), top(np.maximum(high, 0.0))) / size)
    axes.set_ylabel(f"power ({unit})")
    axes.set_xlabel("time since the hour began (min)")
    dress(axes)
    words = ["nothing offered"]
    if facts.reserve_w:
        words = [f"{show_power(facts.average_w)} ± {show_power(facts.reserve_w)}"]
    if facts.error_mean is not None and facts.bad_share is not None:
        words.append(f"error {facts.error_mean:.1%} of the reserve on average")
        words.append(f"above {market.rules.limit:g} for {facts.bad_share:.1%} of the time")
    axes.set_title(", ".join([title, *words] if title else words), loc="right", fontsize=8.5,
                   color=GREY, pad=24 if legend else 6)  # fmt: skip


# -- errors


def errors(shown: Hours, part: FigureBase) -> None:
    """Draw which share of the intervals has an error up to any value, of each hour and of all."""
    axes, rules, every = part.subplots(), shown.markets[0].rules, shown.errors
    whole = np.concatenate(every)
    right = max(2.0 * rules.limit, float(np.quantile(whole, 0.99)) * 1.05)
    right = min(right, 6 * rules.limit)
    axes.axvspan(rules.limit, right, color=PALE_ORANGE, alpha=0.5, lw=0, zorder=0)
    if 1 < len(every) <= MOST_CURVES:
        for some in every:
            axes.step(*cumulated(some), where="post", color=FAINT, lw=0.8, zorder=2)
        axes.plot([], [], color=FAINT, lw=0.8, label="an hour")
    axes.step(*cumulated(whole), where="post", color=BLUE, lw=1.8, zorder=3,
              label="all hours" if len(every) > 1 else "the hour")  # fmt: skip
    rule = f"the rule: more than {1 - rules.share:.0%} below {rules.limit:g}"
    axes.axhline(1 - rules.share, color=ORANGE, lw=1.2, ls=DASHES, zorder=2, label=rule)
    share = float((whole <= rules.limit).mean())
    axes.plot([rules.limit], [share], "o", color=BLUE, ms=6, mec="white", zorder=5)
    lower = -26 if abs(share - (1 - rules.share)) < 0.08 else -12  # not on the dashed line
    axes.annotate(f"{1 - share:.1%} above {rules.limit:g}", (rules.limit, share), (8, lower),
                  textcoords="offset points", fontsize=8.5, color=INK, zorder=5)  # fmt: skip
    axes.set_xlim(0, right)
    axes.set_ylim(0, 1.015)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_ylabel("intervals at or below")
    axes.set_xlabel("error (as a part of the reserve)")
    dress(axes)
    axes.legend(loc="lower right", frameon=True, framealpha=0.9, edgecolor="none")


# -- who runs and waits


def by_type(shown: Hours, part: FigureBase) -> None:
    """Draw how many jobs of each type run and, below, how many wait, over the time of a run."""
    market = shown.markets[0]
    schedule, types = market.schedule, market.types
    assert types is not None
    clock, colours = clock_of(schedule), job_colours(len(types.names))
    edges = np.unique(np.linspace(clock.origin_us, clock.end_us, BINS + 1).astype(np.int64))
    start = np.where(schedule.start_us < 0, market.until_us, schedule.start_us)
    end = np.where(schedule.end_us < 0, market.until_us, schedule.end_us)
    there = schedule.state != TO_COME
    above, below = part.subplots(2, 1, sharex=True)
    panels = ((above, start, end, "jobs that run"),
              (below, schedule.trace.submit_us, start, "jobs that wait"))  # fmt: skip
    for axes, begins, ends, word in panels:
        layers = []
        for kind in range(len(types.names)):
            mine = there & (types.of_job == kind)
            layers.append(_count(begins[mine], ends[mine], edges))
        stacked = np.cumsum(layers, axis=0)
        for kind in reversed(range(len(types.names))):
            under = stacked[kind - 1] if kind else np.zeros(len(edges) - 1)
            axes.stairs(stacked[kind], clock.at(edges), baseline=under, fill=True, lw=0,
                        color=colours[kind])  # fmt: skip
        axes.set_ylim(0, top(stacked[-1], least=1.0))
        axes.set_ylabel(word)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        clock.dress(axes, label=axes is below)
    above.tick_params("x", labelbottom=False)
    keys = [Patch(color=colours[kind], label=name) for kind, name in enumerate(types.names)]
    legend_above(above, "left", handles=keys, ncols=min(8, len(keys)))


def _count(begins: Any, ends: Any, edges: Any) -> Floats:
    """Returns the mean number of intervals that go on, within bins."""
    times = np.concatenate((begins, ends, edges[:1]))
    steps = np.concatenate((np.ones(len(begins)), -np.ones(len(ends)), np.zeros(1)))
    order = np.argsort(times, kind="stable")
    times, counts = times[order], np.cumsum(steps[order])
    last = np.flatnonzero(np.diff(times, append=times[-1] + 1))
    return binned(times[last], counts[last], int(edges[-1]), edges)[0]


# -- how late jobs were


def quality(shown: Hours, part: FigureBase) -> None:
    """Draw the degradations of the jobs of each type, as parts of the type's limit: a box from the
    first quartile to the third with the median, and the value that decides: the mean, or the one
    that only the late part may exceed."""
    axes, rules = part.subplots(), shown.markets[0].rules
    rows, by_mean = _by_name(shown), rules.mean_qos
    right, place, beyond = 0.0, 0, []
    for place, (_, limit, now, before) in enumerate(rows):
        low, middle, high = np.quantile(now, (0.25, 0.5, 0.75)) / limit
        # As many jobs are at this value or beyond as may be late, or a few more.
        edge = float(np.sort(now)[max(0, math.ceil(len(now) * (1 - rules.late)) - 1)]) / limit
        words = f"{float((now >= limit).mean()):.1%} of {len(now):,} late"
        if by_mean:
            edge = float(now.mean()) / limit
            words = f"mean Q {now.mean():.2f} of {len(now):,}"
        colour = GREEN if rules.qos.kept(now, limit) else RED
        axes.plot([float(now.min()) / limit, edge], [place, place], color=GREY, lw=1.0, zorder=2)
        axes.barh(place, high - low, 0.56, low, color=PALE, ec=BLUE, lw=0.8, zorder=3)
        axes.plot([middle, middle], [place - 0.28, place + 0.28], color=INK, lw=1.8, zorder=4)
        axes.plot([edge], [place], "o", color=colour, ms=7, mec="white", zorder=5)
        if len(before):
            axes.plot([float(np.median(before)) / limit], [place], "D", color=PURPLE, ms=5,
                      mec="white", zorder=5)  # fmt: skip
        right = max(right, min(edge, MOST_LIMITS), min(high, MOST_LIMITS))
        if edge > MOST_LIMITS:
            beyond.append((place, edge, colour))
        axes.annotate(words, (1.0, place), (6, 0), va="center",
                      xycoords=axes.get_yaxis_transform(), textcoords="offset points",
                      fontsize=8.5, color=colour, annotation_clip=False)  # fmt: skip
    axes.axvline(1.0, color=ORANGE, lw=1.6, zorder=1)
    for place_of, edge, colour in beyond:  # far to the right of what is drawn
        axes.annotate(f"{edge:,.0f} ▸", (1.0, place_of), (-4, 5), ha="right", color=colour,
                      xycoords=axes.get_yaxis_transform(), textcoords="offset points",
                      fontsize=8.5)  # fmt: skip
    axes.set_yticks(range(len(rows)), [f"{name}  (limit {limit:g})" for name, limit, _, _ in rows])
    axes.set_ylim(place + 0.6, -0.6)
    axes.set_xlim(0, max(1.15, right * 1.06))
    axes.set_xlabel("degradation Q, as a part of its limit")
    axes.set_ylabel("type")
    dress(axes)
    axes.grid(visible=False, axis="y")
    axes.tick_params("y", length=0)
    keys: list[Any] = [
        Patch(fc=PALE, ec=BLUE, label="middle half"),
        *axes.plot([], [], color=INK, lw=1.8, label="median"),
        *axes.plot([], [], "o", color=GREEN, ms=7, mec="white",
                   label=("mean" if by_mean else f"{1 - rules.late:.0%} are below")
                   + " (red: not below the limit)"),
        *axes.plot([], [], color=ORANGE, lw=1.6, label="limit"),
    ]  # fmt: skip
    if any(len(before) for _, _, _, before in rows):
        keys += axes.plot([], [], "D", color=PURPLE, ms=5, mec="white",
                          label="median without demand response")  # fmt: skip
    legend_above(axes, "left", handles=keys, ncols=5)


def _by_name(shown: Hours) -> list[tuple[str, float, Floats, Floats]]:
    """Returns each type that has a limit and jobs that are judged: its name, the limit, and the
    degradations of these jobs with and without demand response."""
    limits: dict[str, float] = {}
    now: dict[str, list[Any]] = {}
    before: dict[str, list[Any]] = {}
    for at, market in enumerate(shown.markets):
        if market.types is None or market.quality is None:
            continue
        for kind, name in enumerate(market.types.names):
            limits[name] = float(market.types.threshold[kind])
            mine = (market.types.of_job == kind) & ~np.isnan(market.quality)
            mine[: market.judged.start] = False
            now.setdefault(name, []).append(market.quality[mine])
            before.setdefault(name, []).extend([shown.before[at][mine]] if shown.before else [])
    rows = [(name, limits[name], np.concatenate(now[name]),
             np.concatenate([np.zeros(0), *before[name]])) for name in limits]  # fmt: skip
    return [row for row in rows if len(row[2]) and 0 < row[1] < math.inf]


# -- what hours cost


def costs(shown: Hours, part: FigureBase) -> None:
    """Draw what each hour cost, by what for: up what was paid, down what was earned."""
    axes, hours = part.subplots(), shown.every[:MOST_BARS]
    at = np.arange(1, len(hours) + 1)
    columns = (("cost_energy", "energy", PALE), ("cost_error", "error", ORANGE),
               ("cost_violation", "rule broken", RED),
               ("cost_reserve", "reserve, earned", GREEN))  # fmt: skip
    above, below = np.zeros(len(hours)), np.zeros(len(hours))
    for name, word, colour in columns:
        values = np.array([getattr(hour.facts, name) or 0.0 for hour in hours])
        if not values.any():
            continue
        base = np.where(values >= 0, above, below)
        axes.bar(
            at, values, 0.8 if len(hours) > 3 else 0.4, base, color=colour, label=word, zorder=2
        )
        above, below = above + np.maximum(values, 0), below + np.minimum(values, 0)
    whole = np.array([hour.facts.cost if hour.facts.cost is not None else math.nan
                      for hour in hours])  # fmt: skip
    out = [place for place, hour in zip(at.tolist(), hours, strict=True) if hour.facts.excluded]
    for number, place in enumerate(out):
        axes.axvspan(place - 0.5, place + 0.5, color=PALE_ORANGE, alpha=0.5, lw=0, zorder=0,
                     label=None if number else "excluded")  # fmt: skip
    axes.plot(at, whole, "o", color=INK, ms=4.5 if len(hours) < 50 else 2.5, label="cost", zorder=4)
    axes.axhline(0, color=GREY, lw=0.8, zorder=3)
    axes.set_xlim(0.4, len(hours) + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(12, integer=True, min_n_ticks=1))
    label = "hour after the warm-up" if shown.markets[0].rules.warmup_us else "hour"
    label += f" (the first {MOST_BARS})" if len(shown.every) > MOST_BARS else ""
    axes.set_xlabel(label)
    axes.yaxis.set_major_formatter(FuncFormatter(thousands))
    axes.set_ylabel("money per hour")
    dress(axes)
    axes.grid(visible=False, axis="x")
    legend_above(axes, "left", ncols=5)
    known = [hour.facts for hour in shown.every if hour.facts.cost is not None]
    paid = sum(facts.cost_energy for facts in known)
    if paid > 0.0:
        saving = 1.0 - sum(facts.cost or 0.0 for facts in known) / paid
        axes.set_title(f"saving {saving:.1%}", loc="right", fontsize=8.5, color=GREY, pad=24)


# -- all of them


def _none_measured(shown: Hours) -> str:
    seen = any(len(market.tracking.time_us) for market in shown.markets)
    return "" if seen and shown.every else "Power has not been measured yet."


def _no_errors(shown: Hours) -> str:
    return _none_measured(shown) or ("" if shown.errors else "No reserve was offered.")


def _no_types(shown: Hours) -> str:
    return "" if shown.markets[0].types is not None else "Jobs have no types."


def _no_limits(shown: Hours) -> str:
    return _no_types(shown) or ("" if _by_name(shown) else "No job has a limit to be late by.")


def _tracking_size(shown: Hours) -> Size:
    return 12.0, 3.6 if shown.worst is shown.first else 5.6


MARKET = "Demand response"
PICTURES: Sequence[Picture[Hours]] = (
    Picture("tracking", MARKET, "Power and its target", tracking, "What all nodes drew, interval "
            "by interval, and what they were to draw: in the first hour with an offer and in the "
            "one that was off its target for the largest part of the time. Shaded: where the error "
            "is below the limit.", _none_measured, _tracking_size, None),
    Picture("tracking-errors", MARKET, "How far it was off", errors, "Which share of the intervals "
            "was off the target by no more than any part of the reserve. An hour keeps the rule "
            "where its curve is above the dashed line at the limit.", _no_errors, (5.8, 4.0),
            None),
    Picture("market-costs", MARKET, "What hours cost", costs, "What was paid for the average and "
            "for being off the target, and what was earned by the reserve.", _none_measured,
            (5.8, 4.0), None),
    Picture("types-over-time", MARKET, "Who runs and who waits", by_type, "Jobs that hold nodes "
            "and jobs that wait, by type; each step is a mean over time. Standby jobs are not "
            "among them.", _no_types, (12.0, 5.4), None),
    Picture("types-quality", MARKET, "How late jobs were", quality, "Degradations, turnaround over "
            "run time without a cap, less 1, as parts of the limit of the type. The dot decides: "
            "it is what only the part that may be late exceeds or, with qos = mean, the mean. It "
            "is red where that is not below the limit.", _no_limits, (12.0, 4.6), None),
)  # fmt: skip
"""In reading order."""


def of_market(market: Market) -> Hours:
    """Returns what is drawn of one run."""
    return Hours([market], [""])


def write_hours(found: Regulated, path: Path, title: str) -> None:
    """Save one figure of the hours of several runs, in the format that its name ends in."""
    several = len(found.runs) > 1
    shown = Hours([one.market for one in found.runs],
                  [f"seed {one.seed}" if several else "" for one in found.runs],
                  [one.without.quality for one in found.runs])  # fmt: skip
    two = shown.worst is not shown.first
    with style():
        figure = canvas((12.0, 11.8 if two else 10.0))
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.5, color=INK)
        parts: Any = figure.subfigures(3, 1, height_ratios=(4.8 if two else 3.0, 3.2, 3.8),
                                       hspace=0.04)  # fmt: skip
        tracking(shown, parts[0])
        left, right = parts[1].subfigures(1, 2)
        if shown.errors:
            errors(shown, left)
        costs(shown, right)
        if not _no_limits(shown):
            quality(shown, parts[2])
        save(figure, path)
