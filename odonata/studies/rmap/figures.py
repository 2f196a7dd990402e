"""The figures of the study, after the thesis's; those that there is nothing for are left out.

A policy looks the same everywhere: traditional is grey, naive blue, adaptive red, and the more so
the larger its threshold is; bands hold 90 % of the traces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, PercentFormatter

from odonata.figures.style import BLUE, GREEN, GREY, INK, ORANGE, dress_small, panels_of
from odonata.studies.rmap import KINDS, simulation
from odonata.studies.rmap.cases import GAPS_S, HIGH_W, LOW_W, NOISE, NOISES, PEAK_W
from odonata.studies.rmap.changes import Floats, Measured, change, chosen, each, spread, there
from odonata.studies.rmap.figures_of_nodes import configurations, node
from odonata.studies.rmap.prediction import BIN, BINS, LIMITS
from odonata.studies.rmap.printed import BENCHMARKS, FIGURE_5_3_W, overprovisioned, packages

RED, PALE, DARK = "#c8321f", "#e58d7f", "#7d1a0e"
LOOKS: dict[str, tuple[str, str, Any, str]] = {
    simulation.TRADITIONAL: ("traditional", "#6f6f6f", "-", "o"),
    simulation.NAIVE: ("naive", BLUE, "-", "s"),
    simulation.ADAPTIVE_0: ("adaptive, 0 %", RED, "-", "D"),
    simulation.ORACLE_0: ("adaptive, 0 %, oracle", RED, (0, (1, 1.4)), "d"),
    simulation.ADAPTIVE_10: ("adaptive, 10 %", ORANGE, (0, (5, 2)), "^"),
    simulation.ADAPTIVE_20: ("adaptive, 20 %", DARK, (0, (3, 2)), "v"),
    simulation.ADAPTIVE_30: ("adaptive, 30 %", GREEN, (0, (1, 1)), "x"),
    simulation.UNLIMITED: ("adaptive, unbounded", PALE, (0, (6, 2, 1, 2)), "P"),
}
"""By policy: words, colour, dashes and mark."""
KIND_COLOURS = {"small": GREEN, "large": BLUE, "random": RED}
PRINTED_CHANGES = {("large", LOW_W): -0.071, ("small", HIGH_W): -0.171, ("random", HIGH_W): -0.13}
"""The printed changes, by kind and bound, of tables and sentences about that bound alone."""
PRINTED_S = 684.0
"""Table 5.4: traditional, large, 6,500 W."""


# -- single applications


def applications(m: Measured) -> Figure | None:
    """Draw what packages draw (5.2) and what the best configuration saves (5.3)."""
    if "printed" not in m.asked.parts:
        return None
    figure, panels = panels_of(9.4, 3.6, 1, 2, left=0.065, right=0.985, top=0.9, bottom=0.13,
                               wspace=0.2)  # fmt: skip
    left, right = panels[0]
    found = packages()
    x = np.arange(len(found))
    left.bar(x, [it.ours_w for it in found], 0.62,
             color=[BLUE if it.printed else "#b9c7d8" for it in found])  # fmt: skip
    mean = float(np.mean([it.ours_w for it in found]))
    left.axhline(mean, color=INK, lw=1, ls=(0, (4, 3)))
    left.annotate(f"mean {mean:.0f} W", (len(found) - 0.5, mean), (0, 3), ha="right", fontsize=8,
                  textcoords="offset points")  # fmt: skip
    left.set_xticks(x, [it.application for it in found])
    left.set(ylim=(0, 115), ylabel="package (W)")
    left.legend(handles=[Patch(facecolor=BLUE, label="printed"),
                         Patch(facecolor="#b9c7d8", label="chosen")],
                loc="upper left", ncols=2)  # fmt: skip
    left.set_title("64 nodes, all cores, no cap: of 115 W", loc="left")
    saved = overprovisioned()
    for name, colour, mark in zip(BENCHMARKS, (INK, RED, BLUE, GREEN), "oDs^", strict=True):
        y = [100 * gain for which, _, gain in saved if which == name]
        right.plot(np.array(FIGURE_5_3_W) / PEAK_W, y, color=colour, marker=mark, ms=4.5, lw=1.5,
                   label=name)  # fmt: skip
    right.set(xlabel=f"bound, of {PEAK_W:,.0f} W", ylabel="time saved (%)", ylim=(-1, None))
    right.set_title("the best configuration against packed-max", loc="left")
    right.legend(loc="upper right")
    for axes in (left, right):
        dress_small(axes)
    left.grid(axis="x", visible=False)
    return figure


# -- prediction


def errors(m: Measured) -> Figure | None:
    """Draw the errors of the model by application (5.4) and their histograms (5.5)."""
    one = there(m, m.asked.trained(NOISE))
    if one is None:
        return None
    figure, panels = panels_of(9.4, 3.7, 1, 3, left=0.06, right=0.985, top=0.83, bottom=0.18,
                               wspace=0.24)  # fmt: skip
    left, middle, right = panels[0]
    names = [name for name in one.lists if name != "all"]
    boxes = []
    for name in names:
        least, low, median, high, most = (100 * it for it in one.lists[name]["quartiles"])
        boxes.append({"whislo": least, "q1": low, "med": median, "q3": high, "whishi": most})
    left.bxp(boxes, positions=np.arange(len(names)), showfliers=False, widths=0.55,
             patch_artist=True, boxprops={"facecolor": "#c9d7ea", "edgecolor": BLUE},
             medianprops={"color": RED, "lw": 1.6}, whiskerprops={"color": BLUE},
             capprops={"color": BLUE})  # fmt: skip
    left.set_xticks(np.arange(len(names)), names, rotation=60)
    for what in ("median", "third quartile", "max"):
        left.axhline(100 * LIMITS[what], color=INK, lw=0.8, ls=(0, (4, 3)))
        left.annotate(f"{what} < {100 * LIMITS[what]:g}", (len(names) - 0.55, 100 * LIMITS[what]),
                      (0, 2), ha="right", fontsize=7, textcoords="offset points",
                      color=GREY)  # fmt: skip
    left.set_ylabel("error of the time (%)")
    left.set_title("quartiles, and all points", loc="left")
    edges = 100 * BIN * np.arange(-BINS, BINS + 1)
    centres = (edges[:-1] + edges[1:]) / 2
    for axes, what in ((middle, "time"), (right, "power")):
        mean = 100 * np.mean([one.lists[name][what] for name in names], axis=0)
        below = centres < 0
        axes.bar(centres[below], mean[below], 100 * BIN * 0.9, color=RED, label="too little")
        axes.bar(centres[~below], mean[~below], 100 * BIN * 0.9, color=BLUE, label="too much")
        axes.set(xlim=(-42, 42), xlabel=f"error of the {what} (%)", ylabel="points (%)")
        axes.set_title(f"{what}, all applications", loc="left")
        axes.legend(loc="upper right")
    for at in (-10, -15):
        right.axvline(at, color=INK, lw=0.8, ls=(0, (4, 3)))
    for axes in panels[0]:
        dress_small(axes)
    left.grid(axis="x", visible=False)
    figure.suptitle(f"trained on 10 %, {m.asked.trained(NOISE).trainings} times, noise of "
                    f"{100 * NOISE:g} %; errors on the other 90 %", fontsize=9)  # fmt: skip
    return figure


def noises(m: Measured) -> Figure | None:
    """Draw what noise in the measurements does to errors."""
    found = [there(m, m.asked.trained(noise)) for noise in NOISES]
    runs = [it for it in found if it is not None]
    if len(runs) < len(NOISES):
        return None
    figure, panels = panels_of(9.4, 3.5, 1, 2, left=0.065, right=0.985, top=0.9, bottom=0.14,
                               wspace=0.2)  # fmt: skip
    left, right = panels[0]
    x = 100 * np.array(NOISES)
    names = [name for name in runs[0].rows if name != "all"]
    for what, colour in zip(LIMITS, (INK, BLUE, GREEN, RED), strict=True):
        y = [100 * max(one.rows[name][what] for name in names) / (100 * LIMITS[what])
             for one in runs]  # fmt: skip
        left.plot(x, y, color=colour, marker="o", ms=4, lw=1.5,
                  label=f"{what}, of {100 * LIMITS[what]:g} %")  # fmt: skip
    left.axhline(1, color=INK, lw=1, ls=(0, (4, 3)))
    left.set(xlabel="noise (%)", ylabel="error of the time, to the printed limit", ylim=(0, None))
    left.set_title("the worst application; above 1 the limit is broken", loc="left")
    left.legend(loc="upper left")
    for percent, colour in ((10, RED), (15, INK)):
        mean, low, high = ([100 * one.rows["all"][f"under {percent}{end}"] for one in runs]
                           for end in ("", " least", " most"))  # fmt: skip
        right.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
        right.plot(x, mean, color=colour, marker="o", ms=4, lw=1.5,
                   label=f"by more than {percent} %")  # fmt: skip
    right.axhline(4, color=RED, lw=1, ls=(0, (4, 3)))
    right.annotate("printed: 4 %, and none by more than 15 %", (x[-1], 4), (0, -10), ha="right",
                   fontsize=8, textcoords="offset points", color=GREY)  # fmt: skip
    right.set(xlabel="noise (%)", ylabel="points (%)", ylim=(0, None))
    right.set_title("power predicted too low", loc="left")
    right.legend(loc="upper left")
    for axes in (left, right):
        dress_small(axes)
    return figure


# -- turnarounds over bounds


def _over_bounds(m: Measured, kinds: tuple[str, ...], policies: Sequence[str],
                 banded: tuple[str, ...]) -> Figure | None:  # fmt: skip
    """Draw mean turnarounds over the bound, by kind (5.6 to 5.9), each trace's relative to
    traditional at the highest bound."""
    kinds = tuple(it for it in kinds if it in m.asked.kinds)
    x = np.array(sorted(m.asked.bounds_w))
    base = {kind: each(m, kind, simulation.TRADITIONAL, float(x[-1])) for kind in kinds}
    if not kinds or len(x) < 2 or not all(np.isfinite(it).any() for it in base.values()):
        return None
    figure, panels = panels_of(3.3 * len(kinds) + 0.2, 3.9, 1, len(kinds), left=0.19 / len(kinds),
                               right=0.985, top=0.82, bottom=0.13, wspace=0.2)  # fmt: skip
    for axes, kind in zip(panels[0], kinds, strict=True):
        for policy in policies:
            _, colour, dashes, mark = LOOKS[policy]
            spreads = [spread(each(m, kind, policy, float(it)) / base[kind]) for it in x]
            if not all(spreads):
                continue
            mean, low, high = (np.array([getattr(it, end) for it in spreads])
                               for end in ("mean", "low", "high"))  # fmt: skip
            if policy in banded:
                axes.fill_between(x / x[-1], low, high, color=colour, alpha=0.15, lw=0)
            axes.plot(x / x[-1], mean, color=colour, ls=dashes, marker=mark, ms=4.5, lw=1.6)
        axes.set_title(f"{kind} jobs", loc="left")
        axes.set_xlabel(f"bound, of {x[-1]:,.0f} W")
        dress_small(axes)
    panels[0, 0].set_ylabel(f"turnaround, to traditional at {x[-1]:,.0f} W")
    keys = [Line2D([], [], color=LOOKS[it][1], ls=LOOKS[it][2], marker=LOOKS[it][3], ms=4.5, lw=1.6,
                   label=LOOKS[it][0]) for it in policies]  # fmt: skip
    figure.legend(handles=keys, ncols=min(len(keys), 4), loc="upper center",
                  bbox_to_anchor=(0.53, 1.0))  # fmt: skip
    return figure


# -- single jobs


def _example(
    m: Measured, kind: str, bound_w: float
) -> tuple[int, dict[str, dict[str, Floats]]] | None:
    """Returns the seed of the trace whose change under adaptive is the median one, and its jobs
    under each policy that is shown."""
    if kind not in m.asked.kinds or bound_w not in m.asked.bounds_w:
        return None
    changes = change(m, kind, simulation.ADAPTIVE_0, simulation.TRADITIONAL, bound_w)
    places = np.flatnonzero(np.isfinite(changes))
    if not len(places):
        return None
    middle = places[np.argsort(changes[places], kind="stable")[len(places) // 2]]
    seed = m.asked.seeds[int(middle)]
    one = there(m, m.asked.traced(kind, seed))
    assert one is not None
    return seed, {policy: {name: np.array(values)
                           for name, values in one.lists[simulation.row(policy, bound_w)].items()}
                  for policy in simulation.SHOWN}  # fmt: skip


def jobs(m: Measured, kind: str, bound_w: float) -> Figure | None:
    """Draw turnarounds and power of the jobs of one trace (5.10, 5.11 and 5.13)."""
    found = _example(m, kind, bound_w)
    if found is None:
        return None
    seed, runs = found
    figure, panels = panels_of(9.4, 5.2, 2, 1, left=0.075, right=0.985, top=0.89, bottom=0.09,
                               hspace=0.16, height_ratios=(1.35, 1))  # fmt: skip
    upper, lower = panels[:, 0]
    wide = 0.27
    for place, policy in enumerate(simulation.SHOWN):
        run, colour = runs[policy], LOOKS[policy][1]
        x = np.arange(1, len(run["start_s"]) + 1) + wide * (place - 1)
        wait, ran = run["start_s"] - run["submit_s"], run["end_s"] - run["start_s"]
        upper.bar(x, ran, wide * 0.92, bottom=wait, color=colour)
        upper.bar(x, wait, wide * 0.92, color=_paler(colour))
        lower.bar(x, run["watts"] / 1000, wide * 0.92, color=colour)
    fair = runs[simulation.TRADITIONAL]["fair_w"] / 1000
    for job, watts in enumerate(fair.tolist(), 1):
        lower.plot([job - 0.46, job + 0.46], [watts, watts], color=INK, lw=1.3)
    upper.set_ylabel("turnaround (s)")
    lower.set_ylabel("power given (kW)")
    lower.set_xlabel("job")
    for axes in (upper, lower):
        axes.set_xlim(0.4, len(fair) + 0.6)
        axes.set_xticks(np.arange(1, len(fair) + 1))
        dress_small(axes, upright=False)
    keys: list[Any] = [Patch(facecolor=LOOKS[it][1], label=LOOKS[it][0]) for it in simulation.SHOWN]
    keys.append(Patch(facecolor=_paler(GREY), label="waiting (paler)"))
    keys.append(Line2D([], [], color=INK, lw=1.3, label="fair share"))
    figure.legend(handles=keys, ncols=5, loc="upper center", bbox_to_anchor=(0.53, 0.965))
    figure.suptitle(f"{kind} jobs at {bound_w:,.0f} W, trace {seed}: the median one of its kind",
                    fontsize=9, y=0.995)  # fmt: skip
    return figure


def _paler(colour: str) -> tuple[float, float, float]:
    red, green, blue = (0.3 * part + 0.7 for part in to_rgb(colour))
    return red, green, blue


def timeline(m: Measured) -> Figure | None:
    """Draw the power that jobs draw together over time, of one random trace at 14,000 W (5.12)."""
    found = _example(m, "random", HIGH_W)
    if found is None:
        return None
    seed, runs = found
    figure, ((axes,),) = panels_of(9.4, 3.3, left=0.065, right=0.985, top=0.83, bottom=0.14)
    for policy in (simulation.TRADITIONAL, simulation.ADAPTIVE_0):
        run = runs[policy]
        times = np.unique(np.concatenate([run["start_s"], run["end_s"]]))
        running = (run["start_s"][:, None] <= times) & (times < run["end_s"][:, None])
        words, colour, *_ = LOOKS[policy]
        filled = policy == simulation.TRADITIONAL
        watts = run["watts"] @ running / 1000
        if filled:
            axes.fill_between(times, watts, step="post", color="#d4d4d4", lw=0)
        axes.step(times, watts, where="post", color=colour, lw=1.3, label=words)
    axes.axhline(HIGH_W / 1000, color=INK, lw=1, ls=(0, (4, 3)), label="bound")
    axes.plot(run["submit_s"], np.full(len(run["submit_s"]), -0.45), "|", color=BLUE, ms=7,
              mew=1.3, label="submissions", clip_on=False)  # fmt: skip
    axes.set(xlabel="time (s)", ylabel="power (kW)", ylim=(-0.9, 15.2), xlim=(0, None))
    figure.legend(ncols=4, loc="upper center", bbox_to_anchor=(0.53, 0.95))
    figure.suptitle(f"random jobs at {HIGH_W:,.0f} W, trace {seed}: the median one of its kind",
                    fontsize=9, y=0.995)  # fmt: skip
    dress_small(axes)
    return figure


# -- what decides


def gaps(m: Measured) -> Figure | None:
    """Draw adaptive against traditional over the mean time between submissions."""
    known: dict[float, str | None] = {it: f"a gap of {it:g} s" for it in GAPS_S}
    known = dict(sorted((known | {m.asked.gap_s: None}).items()))
    figure, panels = panels_of(10.4, 3.9, 1, 3, left=0.065, right=0.985, top=0.91, bottom=0.13,
                               wspace=0.24)  # fmt: skip
    drawn = False
    for axes, bound_w in zip(panels[0], (m.asked.low_w, HIGH_W), strict=False):
        for kind in m.asked.kinds:
            base = [chosen(m, kind, it, simulation.TRADITIONAL, bound_w) for it in known.values()]
            found = [spread(chosen(m, kind, it, simulation.ADAPTIVE_0, bound_w) / one - 1.0)
                     for it, one in zip(known.values(), base, strict=True)]  # fmt: skip
            kept = [(gap_s, it) for gap_s, it in zip(known, found, strict=True) if it]
            if len(kept) < 2:
                continue
            drawn, colour, x = True, KIND_COLOURS[kind], [gap_s for gap_s, _ in kept]
            axes.fill_between(x, [it.low for _, it in kept], [it.high for _, it in kept],
                              color=colour, alpha=0.12, lw=0)  # fmt: skip
            axes.plot(x, [it.mean for _, it in kept], color=colour, marker="o", ms=4, lw=1.6,
                      label=kind)  # fmt: skip
            printed = PRINTED_CHANGES.get((kind, bound_w))
            if printed is not None:
                axes.plot(x[-1] * 1.22, printed, marker="<", ms=7, color=colour, mec=INK, mew=0.7,
                          clip_on=False, zorder=5)  # fmt: skip
            if bound_w == m.asked.low_w:
                seconds = [spread(it) for it in base]
                panels[0, 2].plot(x, [it.mean for it in seconds if it], color=colour,
                                  marker="o", ms=4, lw=1.6, label=kind)  # fmt: skip
        axes.axhline(0, color=INK, lw=0.8)
        axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
        axes.set_title(f"adaptive against traditional, {bound_w:,.0f} W", loc="left")
    if not drawn:
        return None
    right = panels[0, 2]
    panels[0, 0].set_ylabel("change of turnaround; ◁ printed")
    right.axhline(PRINTED_S, color=BLUE, lw=1, ls=(0, (4, 3)))
    right.annotate("printed, a large trace: 684 s", (max(known), PRINTED_S), (0, 4), ha="right",
                   fontsize=8, textcoords="offset points", color=BLUE)  # fmt: skip
    right.set_ylabel("turnaround (s)")
    right.set_title(f"traditional, {m.asked.low_w:,.0f} W", loc="left")
    for axes in panels[0]:
        axes.set_xscale("log")
        axes.set_xticks([it for it in known if it != 120])
        axes.minorticks_off()
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel("mean time between submissions (s)")
        if axes.get_lines():
            axes.legend(loc="best")
        dress_small(axes)
    return figure


FIGURES: dict[str, Callable[[Measured], Figure | None]] = {
    "3.1-3.3-node": node,
    "3.6-3.7-configurations": configurations,
    "5.2-5.3-applications": applications,
    "5.4-5.5-errors": errors,
    "noise": noises,
    "5.6-5.8-bounds": partial(_over_bounds, kinds=KINDS, policies=[*LOOKS][:4],
                              banded=(simulation.TRADITIONAL, simulation.ADAPTIVE_0)),
    "5.9-thresholds": partial(_over_bounds, kinds=("large", "random"), banded=(), policies=[
        it for it in LOOKS if it not in (simulation.TRADITIONAL, simulation.ORACLE_0)]),
    "5.10-5.11-jobs": partial(jobs, kind="large", bound_w=LOW_W),
    "5.12-timeline": timeline,
    "5.13-jobs-random": partial(jobs, kind="random", bound_w=HIGH_W),
    "gap": gaps,
}  # fmt: skip
