"""The figures of the study, from what its store has; those that it has nothing for are left out.

Figures 1 to 3 show what the paper's do. `tradeoff` sets control by number beside control by
workload, `disciplines` both under every discipline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from odonata.figures.style import (
    BLUE,
    DASHES,
    FAINT,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    dress_small,
    panels_of,
)
from odonata.results.statistics import interval
from odonata.studies.rumyantsev import cases, claims
from odonata.studies.rumyantsev.simulation import HIGH, LOW, SERVERS, RumyantsevOutcome
from policies.power.service_rate import ENERGIES

Floats = npt.NDArray[np.float64]
DAY_US = 86400 * 1e6
CLOSE_DAYS = 14
"""The length of the part of figure 1 that is drawn once more, in days."""
WAITS = "#a9a9a9"
GREYS = ("#2f2f2f", "#8a8a8a", "#5a5a5a", "#b5b5b5", "#444444", "#9d9d9d", "#707070", "#c9c9c9")


# -- figures 1 and 2: one run


def _track(run: RumyantsevOutcome | None) -> dict[str, npt.NDArray[Any]] | None:
    if run is None or not run.track:
        return None
    return {name: np.array(values) for name, values in run.track.items()}


def figure_1(m: claims.Measured) -> Figure | None:
    """Draw the workload and the number of customers served, over the whole trace and over the days
    with the most switches."""
    track = _track(m.of(m.asked.hysteresis))
    if track is None:
        return None
    figure, panels = panels_of(9.4, 5.4, 2, 1, left=0.085, right=0.925, top=0.915, bottom=0.095,
                               hspace=0.34)  # fmt: skip
    days = track["time_us"] / DAY_US
    begin, end = _close_up(days, track["fast"].astype(bool))
    whole, close = panels[:, 0]
    for axes, since, until in ((whole, 0.0, float(days[-1])), (close, begin, end)):
        _workload(axes, track, days, since, until)
    whole.axvspan(begin, end, color=BLUE, alpha=0.12, lw=0, zorder=0)
    whole.set_title("the whole trace", loc="left")
    close.set_title("the days that are shaded above", loc="left")
    close.set_xlabel("time (days)")
    keys = [Line2D([], [], color=INK, lw=1.3, label="workload, low rate"),
            Line2D([], [], color=ORANGE, lw=1.8, label="workload, high rate"),
            Line2D([], [], color=FAINT, lw=4, label="customers served"),
            Line2D([], [], color=BLUE, lw=0.9, ls=(0, (4, 3)), label="thresholds")]  # fmt: skip
    figure.legend(handles=keys, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _close_up(days: Floats, fast: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Returns between which days the rate is switched most often."""
    switches = days[1:][fast[1:] != fast[:-1]]
    if not len(switches):
        return 0.0, min(float(CLOSE_DAYS), float(days[-1]))
    counts = np.searchsorted(switches, switches + CLOSE_DAYS) - np.arange(len(switches))
    begin = max(0.0, float(switches[int(counts.argmax())]) - 0.3)
    return begin, begin + CLOSE_DAYS


def _workload(
    axes: Axes, track: Mapping[str, npt.NDArray[Any]], days: Floats, since: float, until: float
) -> None:
    shown = slice(max(0, int(np.searchsorted(days, since)) - 1),
                  int(np.searchsorted(days, until)) + 1)  # fmt: skip
    x, y, fast = days[shown], track["work"][shown] / 1e6, track["fast"][shown].astype(bool)
    right = axes.twinx()
    right.fill_between(x, track["served"][shown], step="post", color=FAINT, lw=0.4)
    right.set_ylim(0, 1.08 * max(1, int(track["served"].max())))
    right.set_ylabel("customers served", color=GREY)
    right.tick_params(colors=GREY, labelsize=8, length=2.5)
    right.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_zorder(right.get_zorder() + 1)
    axes.patch.set_visible(False)
    rate = np.where(fast, HIGH, LOW)[:-1]
    falls = y[:-1] - rate * track["served"][shown][:-1] * np.diff(x) * DAY_US / 1e12
    slopes, jumps = (
        np.stack([np.column_stack(first), np.column_stack(last)], axis=1)
        for first, last in (
            ((x[:-1], y[:-1]), (x[1:], falls)),
            ((x[1:], falls), (x[1:], y[1:])),
        )
    )
    for high, colour, width in ((False, INK, 0.9), (True, ORANGE, 1.2)):
        lines = [*slopes[fast[:-1] == high], *jumps[fast[1:] == high]]
        axes.add_collection(LineCollection(lines, colors=colour, linewidths=width, zorder=3))
    for threshold in cases.TWO_THRESHOLDS:
        axes.axhline(threshold / 1e6, color=BLUE, lw=0.9, ls=(0, (4, 3)), zorder=2)
    axes.set_xlim(since, until)
    axes.set_ylim(0, 1.05 * max(float(y.max()), cases.TWO_THRESHOLDS[1] / 1e6))
    axes.set_ylabel("workload (10⁶ s)")
    dress_small(axes)
    right.spines["top"].set_visible(False)


def figure_2(m: claims.Measured) -> Figure | None:
    return _customers(m.of(m.asked.hysteresis))


def figure_2_high(m: claims.Measured) -> Figure | None:
    """Draw figure 2 of times that were recorded at the high rate."""
    if m.asked.recorded_high == m.asked.hysteresis:
        return None
    return _customers(m.of(m.asked.recorded_high))


def _customers(run: RumyantsevOutcome | None) -> Figure | None:
    """Draw which customers the busy servers serve, and what each customer is doing."""
    track = _track(run)
    if track is None:
        return None
    rows = np.arange(len(track["number"]))[claims.shown_customers(track["number"])]
    if not len(rows):
        return None
    first, last = (int(track["number"][rows[place]]) for place in (0, -1))
    since = track["submit_us"][rows].min()
    until = track["end_us"][rows].max()
    figure, panels = panels_of(9.4, 6.6, 2, 1, left=0.085, right=0.985, top=0.955, bottom=0.08,
                               hspace=0.17, height_ratios=(1, 1.35))  # fmt: skip
    upper, lower = panels[:, 0]
    _busy(upper, track, since, until)
    days = {name: (track[f"{name}_us"][rows] - since) / DAY_US
            for name in ("submit", "start", "end")}  # fmt: skip
    label = track["number"][rows]
    lower.plot(days["start"], label, ls="", marker="o", ms=1.2, color=INK, mew=0)
    for begin, end, colour, width in (("start", "end", INK, 1.0), ("submit", "start", WAITS, 1.6)):
        lines = np.stack([np.column_stack([days[begin], label]),
                          np.column_stack([days[end], label])], axis=1)  # fmt: skip
        lines = lines[days[end] > days[begin]]
        lower.add_collection(LineCollection(list(lines), colors=colour, linewidths=width,
                                            capstyle="butt"))  # fmt: skip
    lower.set_ylim(last + 8, first - 8)
    lower.set_ylabel("customer (row of the trace)")
    lower.set_xlabel("time since the first of them arrived (days)")
    for axes in (upper, lower):
        axes.set_xlim(0, (until - since) / DAY_US)
        dress_small(axes)
    upper.tick_params(labelbottom=False)
    keys = [Line2D([], [], color=WAITS, lw=2.2, label="waiting"),
            Line2D([], [], color=INK, lw=1.3, label="computing")]  # fmt: skip
    lower.legend(handles=keys, loc="lower left")
    upper.set_title("busy servers, a shade of grey per customer", loc="left")
    lower.set_title(f"{len(rows)} customers, of rows {first:,} to {last:,}", loc="left")
    return figure


def _busy(axes: Axes, track: Mapping[str, npt.NDArray[Any]], since: float, until: float) -> None:
    """Draw the busy servers, the customers one on the other in order of arrival."""
    here = np.flatnonzero((track["end_us"] > since) & (track["start_us"] < until))
    begin, end, servers = (track[name][here] for name in ("start_us", "end_us", "servers"))
    times = np.unique(np.clip(np.concatenate([begin, end]), since, until))
    boxes, colours = [], []
    for left, right in zip(times[:-1].tolist(), times[1:].tolist(), strict=True):
        foot = 0
        x0, x1 = (left - since) / DAY_US, (right - since) / DAY_US
        for place in np.flatnonzero((begin <= left) & (end >= right)).tolist():
            top = foot + int(servers[place])
            boxes.append([(x0, foot), (x1, foot), (x1, top), (x0, top)])
            colours.append(GREYS[int(here[place]) % len(GREYS)])
            foot = top
    axes.add_collection(PolyCollection(boxes, facecolors=colours, edgecolors="none", linewidths=0,
                                       antialiaseds=False))  # fmt: skip
    axes.set_ylim(0, SERVERS)
    axes.set_ylabel("busy servers")


# -- figure 3 and the comparison


def figure_3(m: claims.Measured) -> Figure | None:
    """Draw mean power and mean workload over the one threshold, with both presets of energies: of
    the recorded trace and, as bands of 95 %, of randomised ones."""
    runs = m.every(m.asked.by_workload)
    drawn = [of for seed in m.asked.seeds if (of := m.every(m.asked.drawn(seed)))]
    if not runs and not drawn:
        return None
    figure, panels = panels_of(9.4, 4.3, 1, 2, left=0.08, right=0.985, top=0.86, bottom=0.125,
                               wspace=0.22)  # fmt: skip
    left, right = panels[0]
    x = np.array(cases.THRESHOLDS) / 1e6
    for preset, watts in ENERGIES.items():
        look = PRESET_LOOKS[preset]
        last = _curve(left, x, runs, drawn, claims.power(preset), 1.0, look)
        words = f"{watts.busy_low_w:g} W slow, {watts.busy_high_w:g} W fast"
        left.annotate(f"{preset}: a busy server draws\n{words}", (x[-1], last), (0, 14), ha="right",
                      fontsize=8.5, textcoords="offset points", color=look["color"])  # fmt: skip
    _curve(right, x, runs, drawn, claims.workload, 1e3, {"color": INK, "marker": "o"})
    left.set_ylabel("mean power (W)")
    right.set_ylabel("mean workload (10³ s)")
    for axes, title in ((left, "power"), (right, "workload")):
        axes.set_xlabel("threshold k (10⁶ s of work)")
        axes.set_title(f"{title} over the one threshold", loc="left")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        dress_small(axes)
    keys: list[Any] = [Line2D([], [], color=GREY, marker="o", ms=4, lw=1.6, label="recorded trace")]
    if drawn:
        keys.append(Line2D([], [], color=GREY, lw=1.2, ls=(0, (1, 1)),
                           label=f"mean of {len(drawn)} traces of weeks drawn anew"))  # fmt: skip
        keys.append(Line2D([], [], color=FAINT, lw=7, label="its interval of 95 %"))
    figure.legend(handles=keys, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _curve(axes: Axes, x: Floats, runs: Sequence[RumyantsevOutcome],
           drawn: Sequence[Sequence[RumyantsevOutcome]], of: claims.Measure, scale: float,
           look: dict[str, Any]) -> float:  # fmt: skip
    """Draw the curve of the recorded trace and that of randomised ones. Returns where the higher
    one ends."""
    ends = []
    if runs:
        values = [of(run) / scale for run in runs]
        axes.plot(x, values, **look, ms=4, lw=1.6)
        ends.append(values[-1])
    if drawn:
        those = [interval([of(run) / scale for run in column])
                 for column in zip(*drawn, strict=True)]  # fmt: skip
        means = [it.mean for it in those]
        axes.plot(x, means, color=look["color"], lw=1.2, ls=(0, (1, 1)))
        axes.fill_between(x, [it.low for it in those], [it.high for it in those],
                          color=look["color"], alpha=0.15, lw=0)  # fmt: skip
        ends.append(means[-1])
    return max(ends)


def tradeoff(m: claims.Measured) -> Figure | None:
    """Draw mean workload and mean delay over mean power, by control."""
    curves = (
        ("by workload", m.every(m.asked.by_workload), BLUE, "o"),
        ("by number of customers", m.every(m.asked.by_number), ORANGE, "D"),
        (
            "by coins, named by the chance of the high rate at an arrival",
            m.every(m.asked.randomised),
            GREEN,
            "s",
        ),
    )
    if not all(runs for _, runs, _, _ in curves):
        return None
    figure, panels = panels_of(9.4, 4.6, 1, 2, left=0.08, right=0.985, top=0.9, bottom=0.115,
                               wspace=0.2)  # fmt: skip
    for axes, of, scale, label in ((panels[0, 0], claims.workload, 1e3, "mean workload (10³ s)"),
                                   (panels[0, 1], claims.delay, 1.0, "mean delay (s)")
    ):  # fmt: skip
        for name, runs, colour, mark in curves:
            x = [claims.power("swapped")(run) for run in runs]
            y = [of(run) / scale for run in runs]
            axes.plot(x, y, color=colour, marker=mark, ms=4, lw=1.5 if colour != GREEN else 0,
                      label=name)  # fmt: skip
        named = {float(number): run for number, run in zip(cases.NUMBERS, curves[1][1], strict=True)
                 if number in (0, 1, 2, 3, 5, 10)}  # fmt: skip
        _name_points(axes, named, of, scale, ORANGE, 4)
        chances = [up for _, up in cases.COINS]
        _name_points(axes, dict(zip(chances, curves[2][1], strict=True)), of, scale, GREEN, -11)
        axes.set_xlabel("mean power (W), swapped")
        axes.set_ylabel(label)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        dress_small(axes)
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _name_points(axes: Axes, runs: Mapping[float, RumyantsevOutcome], of: claims.Measure,
                 scale: float, colour: str, up: float) -> None:  # fmt: skip
    """Write a number beside each of these points, so many pt higher."""
    for number, run in runs.items():
        axes.annotate(f"{number:g}", (claims.power("swapped")(run), of(run) / scale), (4, up),
                      textcoords="offset points", fontsize=7.5, color=colour)  # fmt: skip


def disciplines(m: claims.Measured) -> Figure | None:
    """Draw mean workload and mean waiting over mean power under every discipline, by control."""
    curves = {(name, control): m.every(m.asked.under(name, control))
              for name in DISCIPLINE_LOOKS for control in ("workload", "number")}  # fmt: skip
    if not all(curves.values()):
        return None
    figure, panels = panels_of(9.4, 4.8, 1, 2, left=0.08, right=0.985, top=0.86, bottom=0.11,
                               wspace=0.2)  # fmt: skip
    for axes, of, scale, label in ((panels[0, 0], claims.workload, 1e3, "mean workload (10³ s)"),
                                   (panels[0, 1], claims.waiting, 1.0,
                                    "mean time without service (s)")):  # fmt: skip
        for (name, control), runs in curves.items():
            axes.plot([claims.power("swapped")(run) for run in runs],
                      [of(run) / scale for run in runs], color=DISCIPLINE_LOOKS[name],
                      marker="o" if control == "workload" else "D", ms=3.5, lw=1.4,
                      ls="-" if control == "workload" else DASHES)  # fmt: skip
        axes.set_xlabel("mean power (W), swapped")
        axes.set_ylabel(label)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        dress_small(axes)
    keys = [Line2D([], [], color=colour, lw=2, label=name)
            for name, colour in DISCIPLINE_LOOKS.items()]  # fmt: skip
    keys += [Line2D([], [], color=GREY, lw=1.4, marker="o", ms=3.5, label="by workload"),
             Line2D([], [], color=GREY, lw=1.4, marker="D", ms=3.5, ls=DASHES,
                    label="by number of customers")]  # fmt: skip
    figure.legend(handles=keys, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.0))
    return figure


# -- how they look

DISCIPLINE_LOOKS = dict(zip(("fcfs", *cases.DISCIPLINES), (INK, BLUE, FAINT, PURPLE, GREEN, ORANGE),
                            strict=True))  # fmt: skip

PRESET_LOOKS: dict[str, dict[str, Any]] = {
    "swapped": {"color": BLUE, "marker": "o"},
    "printed": {"color": ORANGE, "marker": "D", "ls": (0, (5, 2))},
}


FIGURES: dict[str, Callable[[claims.Measured], Figure | None]] = {
    "1": figure_1,
    "2": figure_2,
    "2-recorded-high": figure_2_high,
    "3": figure_3,
    "tradeoff": tradeoff,
    "disciplines": disciplines,
}
