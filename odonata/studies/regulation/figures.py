"""The figures of the study, from what its store has; those that it has nothing for are left out.

Those with a number show what the thesis's figures of that number do; the others are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter

from odonata.figures.style import (
    BLUE,
    DASHES,
    FAINT,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    dress_small,
    panels_of,
)
from odonata.results.statistics import Interval
from odonata.studies.regulation import cases, claims
from odonata.studies.regulation.found import (
    MOST_LATE,
    Measure,
    Measured,
    average,
    keeps_qos,
    keeps_rule,
    late,
    mean_signal,
    reserve,
    saving,
    standby,
    weight,
)
from odonata.studies.regulation.simulation import NODES, PRINTED, RegulationOutcome

KW = 1000.0
PRINT: dict[str, Any] = {"marker": "D", "mfc": "white", "mec": "black", "ls": "", "ms": 5.5,
                         "zorder": 5}  # fmt: skip
"""How printed numbers are drawn."""
COLOURS = {"qosg": BLUE, "tracking-only": ORANGE, "energy-qare": GREEN}


# -- bids over something: figures 2.11, 2.12 and 2.14


def figure_2_11(m: Measured) -> Figure | None:
    """Draw bid, saving, standby jobs and late jobs over the size of the machine."""
    points = {float(nodes): cases.of_size(nodes) for nodes in cases.SIZES}
    figure = _bids(m, points, "servers", {100.0: claims.SAVING}, {100.0: claims.STANDBY_PART},
                   cases.SIZES)  # fmt: skip
    for axes in figure.axes if figure is not None else ():
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(list(points)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.tick_params(axis="x", rotation=45)
    return figure


def figure_2_12(m: Measured) -> Figure | None:
    """Draw the same over the level of service that jobs are to get."""
    points = {float(at): cases.of_level(level) for at, level in enumerate(cases.LEVELS.values())}
    figure = _bids(m, points, "level of service", {1.0: claims.SAVING}, {1.0: claims.STANDBY_PART})
    for axes in figure.axes if figure is not None else ():
        axes.set_xticks(list(points), list(cases.LEVELS))
        axes.set_xlim(-0.3, len(points) - 0.7)
    return figure


def figure_2_14(m: Measured) -> Figure | None:
    """Draw the same over the utilisation."""
    points = {load: cases.of_load(load) for load in cases.LOADS}
    figure = _bids(m, points, "utilisation", {0.5: claims.SAVING, 0.75: claims.SAVING_AT_75},
                   {0.5: claims.STANDBY_PART})  # fmt: skip
    for axes in figure.axes if figure is not None else ():
        axes.set_xticks(cases.LOADS)
        axes.xaxis.set_major_formatter(PercentFormatter(1, 0))
        axes.set_xlim(0.2, 0.8)
    return figure


def _bids(m: Measured, points: Mapping[float, cases.Setting], words: str,
          savings: Mapping[float, float], parts: Mapping[float, float],
          per: Sequence[int] = ()) -> Figure | None:  # fmt: skip
    """Draw what was bid and what came of it over something, with printed numbers where there are
    any; `per`: the servers at each point, by which watts are divided."""
    points = {x: setting for x, setting in points.items() if m.has(setting)}
    if len(points) < 2:
        return None
    figure, panels = panels_of(11.0, 3.0, 1, 4, left=0.055, right=0.99,
                               bottom=0.27 if per else 0.17, top=0.86, wspace=0.3)  # fmt: skip
    bids, saved, others, waits = panels[0]
    x = list(points)
    scale = [1.0 / nodes for nodes in x] if per else [1.0 / KW] * len(x)
    for name, of, colour in (("average", average, BLUE), ("reserve", reserve, ORANGE)):
        means = [m.mean(each, of) for each in points.values()]
        _line(bids, x, [_scaled(it, by) for it, by in zip(means, scale, strict=True)], colour, name)
    _legend_in(bids)
    bids.set_title("bid (W per server)" if per else "bid (kW)", loc="left")
    at = float(NODES) if per else next(iter(savings))
    unit = 1.0 / NODES if per else 1.0 / KW
    bids.plot([at, at], [PRINTED.average_w * unit, PRINTED.reserve_w * unit], **PRINT)
    _line(saved, x, [m.mean(each, saving) for each in points.values()], BLUE)
    saved.plot(list(savings), list(savings.values()), **PRINT)
    saved.set_title("saving", loc="left")
    if per:
        saved.axhline(0.45, color=GREY, ls=DASHES, lw=1)
        saved.text(x[-1], 0.37, "printed: above\nthis line", ha="right", va="top", fontsize=8,
                   color=GREY)  # fmt: skip
    _line(others, x, [m.mean(each, standby) for each in points.values()], PURPLE)
    others.plot(list(parts), list(parts.values()), **PRINT)
    others.set_title("energy of standby jobs", loc="left")
    _line(waits, x, [m.worst_late(each)[1] for each in points.values()], GREEN)
    waits.axhline(MOST_LATE, color=GREY, ls=DASHES, lw=1)
    waits.set_title("late jobs, type with most", loc="left")
    for axes in panels[0]:
        dress_small(axes)
        axes.set_xlabel(words)
        axes.set_ylim(0.0 if axes is not saved else min(0.0, axes.get_ylim()[0]))
    for axes in (saved, others, waits):
        axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
    figure.legend(handles=[Line2D([], [], label="printed", **PRINT)], loc="upper right",
                  bbox_to_anchor=(1.0, 1.01))  # fmt: skip
    return figure


def _line(
    axes: Axes, x: Sequence[float], values: Sequence[Interval], colour: str, label: str = ""
) -> None:
    """Draw means over something, with their intervals."""
    means = [it.mean for it in values]
    halves = [0.0 if np.isnan(it.half) else it.half for it in values]
    axes.errorbar(x, means, halves, fmt="o-", color=colour, capsize=3, ms=4, lw=1.4, label=label)


def _scaled(it: Interval, by: float) -> Interval:
    return Interval(it.mean * by, it.low * by, it.high * by, it.of)


def _legend_in(axes: Axes) -> None:
    axes.legend(loc="best", fontsize=8, handlelength=1.5)


# -- weights and compositions: figures 2.15 and 2.16


def figure_2_15(m: Measured) -> Figure | None:
    """Draw the weights of types in three mixes."""
    mixes = {name: cases.of_mix(name) for name in cases.MIXES}
    if not m.has(*mixes.values()):
        return None
    figure, panels = panels_of(8.0, 3.1, left=0.075, right=0.99, bottom=0.12, top=0.86)
    axes = panels[0, 0]
    for place, (name, setting) in enumerate(mixes.items()):
        x = np.arange(len(cases.TYPES)) + (place - 1) * 0.27
        heights = [m.mean(setting, weight(each)).mean for each in cases.TYPES]
        axes.bar(x, heights, 0.25, color=(GREEN, BLUE, ORANGE)[place], alpha=0.85)
        axes.plot(x[0], claims.WEIGHTS_OF_FS[name], **PRINT)
        if name == "W2":
            axes.plot(x, [PRINTED.weights[each] for each in cases.TYPES], **PRINT)
    dress_small(axes, upright=False)
    axes.set_xticks(range(len(cases.TYPES)), cases.TYPES, fontsize=9)
    axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
    axes.set_ylabel("weight")
    keys: list[Any] = [
        Patch(color=GREEN, alpha=0.85, label="W1: more bt, mg, sp"),
        Patch(color=BLUE, alpha=0.85, label="W2: all alike"),
        Patch(color=ORANGE, alpha=0.85, label="W3: more fs, sc, lu"),
        Line2D([], [], label="printed", **PRINT),
    ]
    figure.legend(handles=keys, ncols=4, loc="upper center", bbox_to_anchor=(0.53, 1.0))
    return figure


def figure_2_16(m: Measured) -> Figure | None:
    """Draw saving and late jobs of the six types together and of each alone."""
    every: dict[str, cases.Setting] = {"six types": cases.DEFAULT}
    every |= {f"{name} alone": cases.of_mix(name) for name in cases.TYPES}
    every |= {"six types,\nno standby": cases.ALONE}
    every = {name: setting for name, setting in every.items() if m.has(setting)}
    if len(every) < 3:
        return None
    printed = {"six types": claims.SAVING, "six types,\nno standby": claims.SAVING_ALONE,
               **{f"{name} alone": value for name, value in claims.SAVING_OF.items()}}  # fmt: skip
    figure, panels = panels_of(8.0, 4.6, 2, 1, left=0.085, right=0.99, bottom=0.11, top=0.91,
                               hspace=0.12)  # fmt: skip
    saved, waits = panels[:, 0]
    x = np.arange(len(every))
    for axes, of, colour in ((saved, saving, BLUE), (waits, late(), GREEN)):
        means = [m.mean(each, of) if axes is saved else m.worst_late(each)[1]
                 for each in every.values()]  # fmt: skip
        halves = [0.0 if np.isnan(it.half) else it.half for it in means]
        axes.bar(
            x, [it.mean for it in means], 0.6, yerr=halves, color=colour, alpha=0.85, capsize=3
        )
        dress_small(axes, upright=False)
        axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
    for place, name in enumerate(every):
        if name in printed:
            saved.plot(place, printed[name], **PRINT)
    broken = [place for place, each in enumerate(every.values())
              if m.count(each, keeps_rule) * 2 < len(m.hours(each))]  # fmt: skip
    for place in broken:
        saved.text(place, 0.02, "rule\nbroken", ha="center", va="bottom", fontsize=7.5,
                   color="white")  # fmt: skip
    waits.axhline(MOST_LATE, color=GREY, ls=DASHES, lw=1)
    saved.set_xticks(x, [""] * len(x))
    waits.set_xticks(x, list(every), fontsize=8.5)
    saved.set_ylabel("saving")
    waits.set_ylabel("late jobs, worst type")
    figure.legend(handles=[Line2D([], [], label="printed", **PRINT)], loc="upper right")
    return figure


# -- one hour, errors and lateness


def figure_hour(m: Measured) -> Figure | None:
    """Draw power and target over the first hour, with and without standby jobs: figure 2.4."""
    settings = {"with standby jobs": cases.AS_PRINTED,
                "without": {**cases.ALONE, **cases.AS_PRINTED}}  # fmt: skip
    found = {name: it for name, setting in settings.items()
             if (it := m.of(m.asked.at(1, setting))) is not None}  # fmt: skip
    if not found:
        return None
    figure, panels = panels_of(9.0, 0.9 + 2.3 * len(found), len(found), 1, left=0.07, right=0.99,
                               bottom=0.42 / (0.9 + 2.3 * len(found)),
                               top=1 - 0.35 / (0.9 + 2.3 * len(found)), hspace=0.25)  # fmt: skip
    for axes, (name, it) in zip(panels[:, 0], found.items(), strict=True):
        _power(axes, it)
        axes.set_title(f"{name}: error {it.error:.1%}, saving {it.saving:.1%}", loc="left")
        axes.set_ylabel("power (kW)")
    panels[-1, 0].set_xlabel("time (min)")
    panels[0, 0].legend(loc="lower right", ncols=3, bbox_to_anchor=(1.0, 0.98))
    return figure


def _power(axes: Axes, it: RegulationOutcome) -> None:
    target, power, others = (np.array(it.track[name]) / KW
                             for name in ("target_w", "power_w", "standby_w"))  # fmt: skip
    minutes = np.arange(len(target)) / 60
    axes.fill_between(minutes, 0, others, color=PURPLE, alpha=0.35, lw=0, step="pre",
                      label="standby jobs' part of it")  # fmt: skip
    axes.plot(minutes, target, color=ORANGE, lw=1.6, label="target")
    axes.plot(minutes, power, color=BLUE, lw=0.8, label="power")
    dress_small(axes)
    axes.set_xlim(0, minutes[-1] + 1 / 60)
    axes.set_ylim(0)


def figure_errors(m: Measured) -> Figure | None:
    """Draw the distribution of errors under three policies at one bid, over all hours: figure 2.5;
    and without standby jobs."""
    lines: dict[str, tuple[cases.Setting, str, Any]] = {}
    for with_standby in (True, False):
        words, dash = ("", "-") if with_standby else (", no standby jobs", DASHES)
        lines[f"qosg{words}"] = cases.DEFAULT if with_standby else cases.ALONE, BLUE, dash
        for name in cases.RIVALS:
            setting: cases.Setting = {"policy": name, "bid": "qosg", "standby": with_standby}
            lines[f"{name}{words}"] = setting, COLOURS[name], dash
    lines = {name: line for name, line in lines.items() if m.has(line[0])}
    if not lines:
        return None
    figure, panels = panels_of(7.6, 3.5, left=0.08, right=0.67, bottom=0.14, top=0.97)
    axes = panels[0, 0]
    for name, (setting, colour, dash) in lines.items():
        errors = np.sort(np.concatenate([it.quantiles for it in m.hours(setting)]))
        axes.plot(errors, np.linspace(0, 1, len(errors)), color=colour, ls=dash, lw=1.5, label=name)
    axes.plot([0.3, 0.3, 1.0], [0.0, 0.9, 0.9], color=GREY, lw=1)
    axes.text(0.31, 0.02, "the rule: curves pass\nabove the corner", fontsize=8, color=GREY,
              va="bottom")  # fmt: skip
    dress_small(axes)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.005)
    axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
    axes.set_xlabel("error, as a part of the reserve")
    axes.set_ylabel("seconds with no larger error")
    figure.legend(loc="center left", bbox_to_anchor=(0.68, 0.55))
    return figure


def figure_late(m: Measured) -> Figure | None:
    """Draw the late jobs of each type under three policies at one bid, and those of the worst type
    over the mean of the signal in an hour."""
    of: dict[str, cases.Setting] = {"qosg": cases.DEFAULT}
    of |= {name: {"policy": name, "bid": "qosg", "standby": True} for name in cases.RIVALS}
    signals = [cases.AS_PRINTED, *({**cases.AS_PRINTED, "signal": seed} for seed in cases.OTHERS)]
    if not m.has(*of.values(), *signals):
        return None
    figure, panels = panels_of(9.4, 3.4, 1, 2, left=0.07, right=0.99, bottom=0.15, top=0.87,
                               wspace=0.2)  # fmt: skip
    types, means = panels[0]
    for place, (name, setting) in enumerate(of.items()):
        parts = [m.mean(setting, late(each)) for each in cases.TYPES]
        x = np.arange(len(cases.TYPES)) + (place - 1) * 0.2
        halves = [0.0 if np.isnan(it.half) else it.half for it in parts]
        types.errorbar(x, [it.mean for it in parts], halves, fmt="o", color=COLOURS[name],
                       capsize=3, ms=5, label=name)  # fmt: skip
    types.set_xticks(range(len(cases.TYPES)), cases.TYPES)
    types.set_title("late jobs by type, at the bid of qosg", loc="left")
    types.legend(loc="upper right", fontsize=8)
    for words, some, how in (("each with a signal of its own", signals[:1], {"color": BLUE}),
                             ("the same jobs, four other signals", signals[1:],
                              {"mec": GREY, "mfc": "none"})):  # fmt: skip
        hours = [it for setting in some for it in m.hours(setting)]
        means.plot([mean_signal(it) for it in hours], [late()(it) for it in hours], "o", ms=4.5,
                   label=words, **how)  # fmt: skip
    means.legend(loc="upper right", fontsize=8)
    means.axvline(0, color=FAINT, lw=1)
    means.set_xlabel("mean of the signal in the hour")
    means.set_title("late jobs of the worst type, by hour, at the printed bid", loc="left")
    for axes in panels[0]:
        dress_small(axes)
        axes.axhline(MOST_LATE, color=GREY, ls=DASHES, lw=1)
        axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
        axes.set_ylim(0)
    return figure


def figure_standby(m: Measured) -> Figure | None:
    """Draw in how many hours bids without standby jobs keep the tracking rule, in how many they
    keep the QoS, and what they save."""
    if not m.has(*(cases.tried(high, low) for high in cases.AVERAGES_W
                   for low in cases.RESERVES_W)):  # fmt: skip
        return None
    figure, panels = panels_of(10.0, 3.0, 1, 3, left=0.06, right=0.99, bottom=0.16, top=0.88,
                               wspace=0.16)  # fmt: skip
    shown: Sequence[tuple[str, Measure, str]] = (
        ("hours that keep the tracking rule", keeps_rule, "Blues"),
        ("hours in which all types keep their QoS", keeps_qos, "Greens"),
        ("saving (%)", saving, "Oranges"),
    )
    for axes, (title, of, colours) in zip(panels[0], shown, strict=True):
        scale = 100.0 if of is saving else float(m.asked.hours)
        table = np.array([[m.mean(cases.tried(high, low), of).mean * scale
                           for high in cases.AVERAGES_W] for low in cases.RESERVES_W])  # fmt: skip
        axes.imshow(table, origin="lower", aspect="auto", cmap=colours, vmin=0,
                    vmax=60 if of is saving else m.asked.hours)  # fmt: skip
        most = 60.0 if of is saving else float(m.asked.hours)
        for (row, column), value in np.ndenumerate(table):
            axes.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=9,
                      color="white" if value > 0.6 * most else "black")  # fmt: skip
        axes.set_xticks(range(len(cases.AVERAGES_W)), [f"{high / KW:g}"
                                                       for high in cases.AVERAGES_W])  # fmt: skip
        axes.set_yticks(range(len(cases.RESERVES_W)), [f"{low / KW:g}" for low in cases.RESERVES_W])
        axes.set_title(title, loc="left")
        axes.set_xlabel("average (kW)")
        axes.tick_params(length=0)
    panels[0, 0].set_ylabel("reserve (kW)")
    return figure


FIGURES: Mapping[str, Callable[[Measured], Figure | None]] = {
    "hour": figure_hour,
    "errors": figure_errors,
    "late": figure_late,
    "2.11": figure_2_11,
    "2.12": figure_2_12,
    "2.14": figure_2_14,
    "2.15": figure_2_15,
    "2.16": figure_2_16,
    "standby": figure_standby,
}
