"""The figures of the power of a job run: what the machine drew under its cap, who took the energy,
and how much of what jobs draw had been learned.

Each function draws one figure on a figure or on a part of one; call it within `style`, and only
where nothing is `missing`. `PICTURES` has them in reading order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from odonata.experiment.units import show_duration, show_energy, show_power
from odonata.figures.clock import Clock, clock_of
from odonata.figures.picture import Picture
from odonata.figures.style import (
    BLUE,
    FAINT,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    Floats,
    brief,
    dress,
    legend_above,
    remark,
    thousands,
    top,
)
from odonata.jobs.metering import CAUSES, WITHIN, PowerRecord
from odonata.jobs.schedule import Schedule
from odonata.jobs.series import Steps
from odonata.results.power_measures import PowerMeasures, power_measures
from odonata.results.register import KWH, number
from odonata.results.run import Run
from odonata.traces.trace import SECOND, Whole

MOST_READINGS = 2000
"""The largest number of steps of the curve of power; more readings than that are merged."""
LEARNING_STEPS = 60
"""How many steps the rate of learning within a time is taken over."""
PALE = "#b5d3e6"
CAUSE_COLOURS = {"deadlock": PURPLE, "cap lowered": "#b8a000", "estimate too low": "#c2529b",
                 "not controlled": "#b3362b"}  # fmt: skip
LANE = 0.045
"""The height of the lane in which the violations of one cause are marked, in parts of the panel."""
LONGEST_NAME = 24
"""Letters of a user's name beyond which it is cut."""


@dataclass(frozen=True, eq=False)
class Watts:
    """What is drawn: a schedule, and what was measured of its power."""

    schedule: Schedule
    record: PowerRecord
    measures: PowerMeasures
    price: Steps | None = None
    """Per kWh, over the time of the run."""
    carbon: Steps | None = None
    """Grams of CO2 per kWh."""

    @classmethod
    def of(
        cls, schedule: Schedule, record: PowerRecord | None, price: Steps | None = None,
        carbon: Steps | None = None,
    ) -> Watts | None:  # fmt: skip
        """Returns what is drawn of a simulation; None where there is no power in it."""
        if record is None:
            return None
        found = power_measures(record, schedule.trace, price, carbon)
        return cls(schedule, record, found, price, carbon)

    @classmethod
    def of_run(cls, run: Run) -> Watts | None:
        """Returns the same of an opened run."""
        if run.power is None or run.power_measures is None or not run.has("jobs"):
            return None
        price, carbon = (run.steps(name) for name in ("price", "carbon"))
        return cls(run.schedule, run.power.in_us(), run.power_measures, price, carbon)


# -- readings, merged into steps


@dataclass(frozen=True, eq=False)
class Merged:
    """Readings in steps, each of so many of them: its edges, the mean over time, and the lowest and
    the highest reading."""

    edges_us: Whole
    mean: Floats
    lowest: Floats
    highest: Floats
    readings: int
    """How many readings a step has; the last may have fewer."""


def merged(begins_us: Whole, values: Floats, most: int) -> Merged:
    """Returns a series in at most so many steps: value i holds from begin i to the next."""
    each = max(1, -(-len(values) // most))
    first = np.arange(0, len(values), each)
    lengths = np.diff(begins_us).astype(np.float64)
    weights = np.add.reduceat(lengths, first)
    mean = np.add.reduceat(values * lengths, first) / np.maximum(weights, 1.0)
    edges = np.append(begins_us[first], begins_us[-1])
    return Merged(edges, mean, np.minimum.reduceat(values, first),
                  np.maximum.reduceat(values, first), each)  # fmt: skip


def _since(watts: Watts) -> tuple[Whole, slice]:
    """Returns the begins of readings, with the end of the last, and which are shown: those that end
    after the first submission."""
    begins = np.append(0, watts.record.time)
    first = int(np.searchsorted(watts.record.time, clock_of(watts.schedule).origin_us, "right"))
    return begins[first:], slice(first, None)


def changes(begins_us: Whole, values: Floats) -> tuple[Whole, Floats]:
    """Returns the same steps without those that repeat the one before: begins with the end, and
    values."""
    new = np.append(True, values[1:] != values[:-1])
    return np.append(begins_us[:-1][new], begins_us[-1]), values[new]


def violations(watts: Watts) -> Mapping[str, tuple[Whole, Whole, int]]:
    """Returns the violating intervals by cause: where each run of them begins and ends, and how
    many readings they are; only of causes that there are."""
    cause, begins = watts.record.cause, np.append(0, watts.record.time)
    found = {}
    for code, word in enumerate(CAUSES):
        is_it = np.concatenate(([0], (cause == code).astype(np.int8), [0]))
        edges = np.flatnonzero(np.diff(is_it))
        if code != WITHIN and len(edges):
            found[word] = (begins[edges[::2]], begins[edges[1::2]], int((cause == code).sum()))
    return found


# -- power over time


def power(watts: Watts, part: FigureBase) -> None:
    """Draw what the machine drew, its cap, and which intervals violate it; below, where they are
    given and change, the price and the carbon intensity of electricity."""
    if _changes(watts.price) or _changes(watts.carbon):
        above, below = part.subplots(2, 1, height_ratios=(4.2, 1))
        _draw_power(watts, above)
        above.tick_params("x", labelbottom=False)
        above.set_xlabel("")
        _draw_prices(watts, below)
    else:
        _draw_power(watts, part.subplots())


def _changes(steps: Steps | None) -> bool:
    return steps is not None and len(steps.begins) > 1


def _draw_power(watts: Watts, axes: Axes) -> None:
    clock, record = clock_of(watts.schedule), watts.record
    begins, shown = _since(watts)
    drew, found = record.power_w[shown], watts.measures
    peak = max(top(drew), top(record.cap_w[shown]))
    size, unit = unit_of(peak)
    steps = merged(begins, drew, MOST_READINGS)
    edges = clock.at(steps.edges_us)
    if steps.readings > 1:
        lows, highs = (np.append(it, it[-1]) / size for it in (steps.lowest, steps.highest))
        axes.fill_between(edges, lows, highs, step="post", color=PALE, lw=0, zorder=2,
                          label="lowest to highest reading")  # fmt: skip
    each = show_duration(float(np.diff(steps.edges_us[:2])[0]) / SECOND)
    axes.stairs(steps.mean / size, edges, baseline=None, color=BLUE, lw=0.8, zorder=3,
                label=f"mean over {each}")  # fmt: skip
    if record.capped:
        at, caps = changes(begins, record.cap_w[shown])
        if len(caps) > MOST_READINGS:
            few = merged(begins, record.cap_w[shown], MOST_READINGS)
            at, caps = few.edges_us, few.mean
        caps = np.where(np.isfinite(caps), caps, np.nan)  # no cap, no line
        axes.stairs(caps / size, clock.at(at), baseline=None, color=ORANGE, lw=1.5, zorder=4,
                    label="cap")  # fmt: skip
    lanes = _draw_violations(watts, axes, clock)
    axes.set_ylim(0, peak / size / (1 - LANE * (lanes + 0.6 * (lanes > 0))))
    axes.yaxis.set_major_formatter(FuncFormatter(thousands))
    axes.set_ylabel(f"power ({unit})")
    words = [f"mean {show_power(found.mean_power_w)}"] if found.mean_power_w is not None else []
    if found.peak_power_w is not None:
        words.append(f"highest reading {show_power(found.peak_power_w)}")
    if found.capping_success is not None:
        words.append(f"{found.capping_success:.2%} of readings within the cap")
    clock.dress(axes)
    legend_above(axes, "left", ncols=8)
    axes.set_title(", ".join(words), loc="right", fontsize=8.5, color=GREY, pad=24)  # above these


def _draw_violations(watts: Watts, axes: Axes, clock: Clock) -> int:
    """Mark violating intervals at the top of the panel, a lane for each cause. Returns how many
    lanes there are."""
    found = violations(watts)
    for lane, (word, (begins, ends, count)) in enumerate(found.items()):
        y = 1.0 - LANE * (lane + 0.6)
        lines = axes.hlines(np.full(len(begins), y), clock.at(begins), clock.at(ends),
                            color=CAUSE_COLOURS[word], lw=4.0, zorder=5,
                            transform=axes.get_xaxis_transform(),
                            label=f"{'' if lane else 'above it: '}{word} ({count:,})"
                            )  # fmt: skip
        lines.set_capstyle("projecting")  # so that one interval of a year can be seen
    return len(found)


def unit_of(most_w: float) -> tuple[float, str]:
    """Returns the unit of an axis, as `show_power` would choose it."""
    units = ((1.0, "W"), (1e3, "kW"), (1e6, "MW"))
    return next((it for it in units if most_w / it[0] < 10_000), (1e9, "GW"))


def _draw_prices(watts: Watts, axes: Axes) -> None:
    clock = clock_of(watts.schedule)
    both = (
        (watts.price, GREEN, "price\nper kWh", "-"),
        (watts.carbon, INK, "g CO2\nper kWh", "--"),
    )
    clock.dress(axes)
    place = 0
    for steps, colour, word, line in both:
        if steps is None or not _changes(steps):
            continue
        panel = axes.twinx() if place else axes
        at = np.append(steps.times, max(clock.end_us, int(steps.times[-1]) + 1))
        few = merged(at, steps.values, MOST_READINGS)
        panel.stairs(few.mean, clock.at(few.edges_us), baseline=None, color=colour, ls=line, lw=1.1)
        low, high = min(0.0, float(few.mean.min())), top(few.mean)
        panel.set_ylim(low * 1.06, high)
        panel.yaxis.set_major_locator(MaxNLocator(3))
        panel.yaxis.set_major_formatter(FuncFormatter(thousands))
        panel.set_ylabel(word, color=colour)
        panel.tick_params("y", colors=colour)
        if place:
            for side in ("top", "left", "bottom"):
                panel.spines[side].set_visible(False)
            panel.set_xlim(axes.get_xlim())
        place += 1


# -- who took the energy


def energy(watts: Watts, part: FigureBase) -> None:
    """Draw the energy of jobs, of idle and of sleeping nodes, and that of the users that took
    most."""
    found = watts.measures
    parts = {"jobs": found.jobs_kwh, "idle nodes": found.idle_kwh, "asleep": found.sleep_kwh,
             "standby jobs": found.standby_kwh}  # fmt: skip
    parts = {name: kwh for name, kwh in parts.items() if kwh}
    bars = [(parts, "by what nodes did")] * (len(parts) > 1 or not found.by_user_kwh)
    bars += [(dict(found.by_user_kwh), "of jobs, by user")] * bool(found.by_user_kwh)
    heights = [len(kwh) + 1.5 for kwh, _ in bars]
    panels = part.subplots(len(bars), 1, squeeze=False, height_ratios=heights)
    for axes, (kwh, title) in zip(panels[:, 0], bars, strict=True):
        _draw_bars(axes, kwh, found.energy_kwh, title)


def _draw_bars(axes: Axes, kwh: Mapping[str, float], total: float, title: str) -> None:
    """Draw a bar for each name, longest labels cut, with the energy and the part of the total."""
    places, values = range(len(kwh)), list(kwh.values())
    colours = [FAINT if name == "others" else BLUE for name in kwh]
    size, unit = next(((s, u) for s, u in ((1e6, "GWh"), (1e3, "MWh")) if max(values) >= s),
                      (1.0, "kWh"))  # fmt: skip
    axes.barh(places, [it / size for it in values], height=0.66, color=colours)
    axes.set_yticks(places, [brief(name, LONGEST_NAME) for name in kwh])
    axes.set_ylim(len(kwh) - 0.4, -0.6)
    for place, value in zip(places, values, strict=True):
        of_all = f" ({value / total:.1%})" if total and value else ""
        axes.annotate(f"{show_energy(value * KWH)}{of_all}", (value / size, place), (4, 0),
                      textcoords="offset points", va="center", fontsize=8)  # fmt: skip
    axes.set_xlim(0, (max(values) / size or 1.0) * 1.45)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(thousands))
    axes.set_xlabel(f"energy ({unit})")
    dress(axes)
    axes.grid(visible=False, axis="y")
    axes.tick_params("y", length=0)
    remark(axes, title, "left")


# -- how much was known


def learning(watts: Watts, part: FigureBase) -> None:
    """Draw the part of the jobs that had a known profile of power when they started, of all so far
    and of those of a time; and the part of the sets of jobs alike whose profile is known."""
    axes, clock, figures = part.subplots(), clock_of(watts.schedule), watts.record.figures
    begins, shown = _since(watts)
    known, unknown = (figures[name][shown] for name in ("known", "unknown"))
    ends = begins[1:]
    marks = np.unique(np.linspace(0, len(ends) - 1, LEARNING_STEPS + 1).astype(np.int64))
    gained = _part(np.diff(known[marks]), np.diff(known[marks] + unknown[marks]))
    axes.stairs(gained, clock.at(ends[marks]), fill=True, color=PALE, lw=0, zorder=2,
                label=f"of those that started within {_long(ends[marks])}")  # fmt: skip
    few = np.unique(np.linspace(0, len(ends) - 1, MOST_READINGS).astype(np.int64))
    axes.plot(clock.at(ends[few]), _part(known, known + unknown)[few], color=BLUE, lw=1.4, zorder=3,
              label="of all jobs that have started")  # fmt: skip
    if "sets_seen" in figures:
        sets = _part(figures["sets_known"][shown], figures["sets_seen"][shown])
        axes.plot(clock.at(ends[few]), sets[few], color=ORANGE, lw=1.2, zorder=3,
                  label="of all sets of jobs alike that were seen")  # fmt: skip
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_ylabel("profiles known")
    clock.dress(axes)
    legend_above(axes, "left", ncols=3)
    if watts.measures.learning_rate is not None:
        remark(axes, f"{watts.measures.learning_rate:.1%} of {number(known[-1] + unknown[-1])} "
                     "jobs in the end")  # fmt: skip


def _part(some: Floats, every: Floats) -> Floats:
    found: Floats = np.divide(some, every, np.full(len(every), np.nan), where=every > 0)
    return found


def _long(ends_us: Whole) -> str:
    return show_duration(float(np.diff(ends_us).mean()) / SECOND) if len(ends_us) > 1 else "it"


# -- all of them


def _none_read(watts: Watts) -> str:
    begins, _ = _since(watts)
    return "" if len(begins) > 1 else "Power has not been measured yet."


def _none_taken(watts: Watts) -> str:
    return "" if watts.measures.energy_kwh > 0 else "No energy has been taken yet."


def _none_learned(watts: Watts) -> str:
    if not {"known", "unknown"} <= {*watts.record.figures}:
        return "The power policy learns nothing."
    return _none_read(watts)


POWER = "Power"
PICTURES: Sequence[Picture[Watts]] = (
    Picture("power", POWER, "Power and its cap", power, "What all nodes drew, reading by reading; "
            "where readings are merged into a step, its mean and, pale, its lowest and highest "
            "reading. Marks at the top are intervals that took more than the cap allows, by cause; "
            "a mark has a least width, so that a single interval can be seen.", _none_read,
            (12.0, 4.6), None),
    Picture("energy", POWER, "Where the energy went", energy, "Energy from the beginning to the "
            "end of the run. That of jobs is what their nodes took while they held them, waking "
            "included; parts are of all energy.", _none_taken, (5.8, 4.4), None),
    Picture("learning", POWER, "What the policy knew", learning, "The part of the jobs that had a "
            "known profile of power, their own or their project's, when they started: of all so "
            "far, and pale of those that started within a step; and the part of the sets of jobs "
            "alike that were seen whose profile is known.", _none_learned, (12.0, 3.4), None),
)  # fmt: skip
"""In reading order."""


def of(watts: Watts) -> list[Picture[Watts]]:
    """Returns the pictures that a run can have: that of learning only where its policy learns."""
    learns = {"known", "unknown"} <= {*watts.record.figures}
    return [it for it in PICTURES if it.name != "learning" or learns]
