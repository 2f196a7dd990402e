"""The figures of the study, from what its store has; those that it has nothing for are left out.

Those with a number show what the paper's figures of that number do; the others are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from odonata.bids.chance import Chance
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
from odonata.studies.aqa import cases
from odonata.studies.aqa.beyond import groups_of
from odonata.studies.aqa.found import Measured, always
from odonata.studies.aqa.printed import TABLE_4
from odonata.studies.aqa.simulation import AqaOutcome, types_of

COLOURS = {"aqa": BLUE, "energy-qare": GREEN, "tracking-only": ORANGE}
PRINT: dict[str, Any] = {"marker": "D", "mfc": "white", "mec": "black", "ls": "", "ms": 5}
KW = 1000.0
LIMIT, LATE = 0.3, 0.9
MOST_TYPES = 8


# -- the mixes


def figure_mixes(m: Measured) -> Figure | None:
    """Draw in which part of the hours bids keep all rules, and what they save, by mix and policy:
    in sample without standby jobs, and held out with them; and table 4."""
    every = (groups_of(m, "", True), groups_of(m, cases.FILLER, False))
    both = [{name: groups[name] for name in COLOURS} for groups in every]
    if not m.has(*(group for groups in both for group in groups.values())):
        return None
    figure, panels = panels_of(10.0, 5.6, 2, 2, left=0.06, right=0.99, bottom=0.11, top=0.93,
                               wspace=0.1, hspace=0.3)  # fmt: skip
    words = ("in sample, no standby jobs", "held out, with standby jobs")
    for column, (groups, how) in enumerate(zip(both, words, strict=True)):
        for row, (key, what) in enumerate((("kept", "hours that keep all rules"),
                                           ("saving", "saving"))):  # fmt: skip
            axes = panels[row, column]
            for at, (name, group) in enumerate(groups.items()):
                x = np.arange(len(m.asked.mixes)) + (at - 1) * 0.25
                axes.bar(x, m.of_mixes(group, key), 0.22, color=COLOURS[name], label=name)
            if key == "saving":
                printed = [TABLE_4[mix].saving for mix in m.asked.mixes]
                axes.plot(range(len(printed)), printed, label="table 4", **PRINT)
            dress_small(axes)
            axes.set_xticks(range(len(m.asked.mixes)), m.asked.mixes)
            axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
            axes.set_title(f"{what}: {how}", loc="left")
    for axes in panels[0]:
        axes.set_ylim(0, 1)
    handles, labels = panels[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=4, fontsize=8)
    return figure


# -- an hour


def _seen(m: Measured, mix: str, setting: Mapping[str, Any], variant: str = "") -> Any:
    found = m.outcome(mix, setting)
    return None if found is None else found.seen.get(variant)


def _power(axes: Axes, it: Mapping[str, Any], title: str) -> None:
    target, power = (np.array(it[name]) / KW for name in ("target_w", "power_w"))
    minutes = np.arange(len(target)) / 60
    axes.plot(minutes, target, color=ORANGE, lw=1.0, label="target")
    axes.plot(minutes, power, color=BLUE, lw=0.9, label="power")
    dress_small(axes)
    axes.set_title(title, loc="left")
    axes.set_xlim(0, 60)


def _hours(
    m: Measured, titles: Mapping[str, tuple[str, Callable[[Measured], cases.Setting], str]]
) -> Figure | None:
    """Draw power and target of several hours, one below the other."""
    seen = {title: _seen(m, mix, setting(m), variant)
            for title, (mix, setting, variant) in titles.items()}  # fmt: skip
    if None in seen.values():
        return None
    figure, panels = panels_of(9.4, 1.2 + 1.9 * len(seen), len(seen), 1, left=0.07, right=0.98,
                               bottom=0.14, top=0.9, hspace=0.45)  # fmt: skip
    for axes, (title, it) in zip(panels[:, 0], seen.items(), strict=True):
        _power(axes, it, f"{title} (kW)")
    panels[0, 0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize=8, ncol=2)
    panels[-1, 0].set_xlabel("minutes")
    return figure


HOURS: Mapping[str, Mapping[str, tuple[str, Callable[[Measured], cases.Setting], str]]] = {
    "6": {f"W4, {name}": ("W4", always(cases.of_mix("W4", name)), "")
          for name in ("aqa", "energy-qare")},
    "10": {f"W3 at its printed bid, {words}": ("W3", always(cases.of_printed("W3")[bid]), "")
           for bid, words in (("no standby jobs", "no standby jobs"),
                              (cases.FILLER, f"standby jobs {cases.FILLER}"))},
    "11": {"W5, no preemption": ("W5", always(cases.of_mix("W5")), ""),
           "W5, preemption": ("W5", always(cases.of_mix("W5")), "preemption")},
    "13": {"10,000 servers, W1 with jobs of 100 times the size":
           ("W1", lambda m: cases.of_scale(100, m.asked.hours), "")},
}  # fmt: skip
"""Hours that are drawn: of W4, under AQA and under EnergyQARE, which is figure 14; of W3 at its
printed bid, without standby jobs and with them; of W5 without preemption and with it, at one bid;
and of 10,000 servers. By title: the mix, the setting and the variant."""


# -- distributions


def _cdf(axes: Axes, values: Sequence[float], **how: Any) -> None:
    if values:
        axes.step(np.sort(values), np.arange(1, len(values) + 1) / len(values), where="post",
                  lw=1.2, **how)  # fmt: skip


def _of_policies(m: Measured, mix: str) -> Mapping[str, Any] | None:
    found = {
        "aqa": _seen(m, mix, cases.of_mix(mix)),
        "energy-qare": _seen(m, mix, cases.of_mix(mix, "energy-qare")),
        "tracking-only": _seen(m, mix, cases.of_mix(mix, "energy-qare"), "tracking-only"),
    }
    return None if any(it is None for it in found.values()) else found


def _degradations(axes: Axes, name: str, found: Mapping[str, Any]) -> None:
    table = types_of(1.0, 0, 1)
    for policy, it in found.items():
        _cdf(axes, it["degradations"].get(name, []), color=COLOURS[policy], label=policy)
    dress_small(axes)
    axes.axvline(table[table.place(name)].threshold, color=GREY, ls=DASHES, lw=1)
    axes.axhline(LATE, color=GREY, ls=DASHES, lw=1)
    axes.set_xlim(left=0)
    axes.set_title(f"degradation of {name}", loc="left")


def figure_7(m: Measured) -> Figure | None:
    """Draw the distributions of errors and degradations in an hour of W4 under three policies:
    figures 7 and 15."""
    found = _of_policies(m, "W4")
    if found is None:
        return None
    figure, panels = panels_of(10.0, 7.0, 3, 3, left=0.05, right=0.99, bottom=0.05, top=0.95,
                               wspace=0.16, hspace=0.4)  # fmt: skip
    first, *others = panels.ravel()
    for policy, it in found.items():
        _cdf(first, it["errors"], color=COLOURS[policy], label=policy)
    dress_small(first)
    first.axvline(LIMIT, color=GREY, ls=DASHES, lw=1)
    first.axhline(LATE, color=GREY, ls=DASHES, lw=1)
    first.set_xlim(0, 1)
    first.set_title("error, as a part of the reserve", loc="left")
    first.legend(loc="lower right", fontsize=8)
    for axes, name in zip(others, [*found["aqa"]["degradations"]][:MOST_TYPES], strict=False):
        _degradations(axes, name, found)
    return figure


def figure_9(m: Measured) -> Figure | None:
    """Draw the degradations of two types in an hour of W13 under three policies."""
    found = _of_policies(m, "W13")
    if found is None:
        return None
    figure, panels = panels_of(9.0, 3.0, 1, 2, left=0.06, right=0.99, bottom=0.1, top=0.89)
    for axes, name in zip(panels[0], ("ep.D.100", "mg.D.8"), strict=True):
        _degradations(axes, name, found)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=2, fontsize=8)
    return figure


def figure_8(m: Measured) -> Figure | None:
    """Draw average, reserve and weights over the steps of the descent, and of the best bid so far
    over those of the search, on W4."""
    found: dict[str, AqaOutcome] = {}
    for name, setting in (("descent", cases.of_descent("W4")), ("search", cases.of_mix("W4"))):
        it = m.outcome("W4", setting)
        if it is None or not it.steps:
            return None
        found[name] = it
    every = {"descent: bids that are tried": found["descent"].steps,
             "search: the best bid so far": [found["search"].steps[step["best"]]
                                             for step in found["search"].steps]}  # fmt: skip
    figure, panels = panels_of(10.0, 5.2, 2, 2, left=0.06, right=0.86, bottom=0.09, top=0.93,
                               wspace=0.14, hspace=0.3)  # fmt: skip
    for column, (name, steps) in enumerate(every.items()):
        bid, weights = panels[:, column]
        x = np.arange(1, len(steps) + 1)
        for key, colour in (("average_w", BLUE), ("reserve_w", ORANGE)):
            bid.plot(x, [step[key] / KW for step in steps], color=colour, lw=1,
                     label=key.removesuffix("_w"))  # fmt: skip
        for at, each in enumerate(steps[0]["weights"]):
            weights.plot(x, [step["weights"][each] for step in steps], color=f"C{at}",
                         lw=1.6 if each == "is.D.64" else 0.9, label=each)  # fmt: skip
        bid.set_title(f"W4, {name} (kW)", loc="left")
        weights.set_title("weights", loc="left")
        weights.set_xlabel("bid")
        for axes in (bid, weights):
            dress_small(axes)
        weights.yaxis.set_major_formatter(PercentFormatter(1, None))
        weights.set_ylim(0)
    panels[0, 1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8)
    panels[1, 1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8)
    return figure


def figure_12(m: Measured) -> Figure | None:
    """Draw in which part of the hours each type of W4 keeps its QoS, with the paper's thresholds
    and with their halves, under AQA and EnergyQARE."""
    whole = {name: cases.of_mix("W4", name) for name in ("aqa", "energy-qare")}
    half = {name: cases.of_service(0.5, 0, name) for name in whole}
    if any(m.outcome("W4", it) is None for it in (*whole.values(), *half.values())):
        return None
    figure, panels = panels_of(9.4, 3.2, 1, 2, left=0.06, right=0.99, bottom=0.18, top=0.89)
    for axes, (title, settings) in zip(panels[0], (("medium", whole), ("tight", half)),
                                       strict=True):  # fmt: skip
        for at, (name, setting) in enumerate(settings.items()):
            rows = m.rows("W4", setting)
            types = [*dict.fromkeys(each for row in rows for each in row["late"])]
            late = [float(np.mean([row["late"].get(each, 0.0) for row in rows])) for each in types]
            axes.bar(np.arange(len(types)) + (at - 0.5) * 0.35, late, 0.3, color=COLOURS[name],
                     label=name)  # fmt: skip
            axes.set_xticks(range(len(types)), types, rotation=20)
        dress_small(axes)
        axes.axhline(1.0 - LATE, color=GREY, ls=DASHES, lw=1)
        axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
        axes.set_title(f"late jobs, {title} thresholds, in sample", loc="left")
    panels[0, 1].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize=8, ncol=2)
    return figure


# -- risk


def figure_risk(m: Measured) -> Figure | None:
    """Draw the saving over the chance of a failed hour, and over the degradation of the worst type,
    of the bids that one at a stated risk is chosen from."""
    found = [(mix, deviation, m.outcome(mix, cases.of_risk(deviation)))
             for mix in cases.RISKED for deviation in (0.40, cases.REAL)]  # fmt: skip
    there = [(mix, deviation, it) for mix, deviation, it in found if it is not None]
    if not there:
        return None
    mixes = [*dict.fromkeys(mix for mix, _, _ in there)]
    figure, panels = panels_of(10.0, 5.3, 2, len(mixes), left=0.06, right=0.98, bottom=0.16,
                               top=0.93, wspace=0.22, hspace=0.5)  # fmt: skip
    for mix, deviation, it in there:
        column = mixes.index(mix)
        colour = BLUE if deviation != cases.REAL else PURPLE
        front = it.chance["front"]
        shares = [Chance(int(row[1]), int(row[2])) for row in front]
        chances = np.array([one.share for one in shares])
        ends = np.array([one.interval for one in shares]).T
        savings = [row[0] for row in front]
        off = np.abs(ends - chances)
        panels[0, column].errorbar(chances, savings, xerr=off, color=colour, fmt="o-", ms=3, lw=1,
                                   elinewidth=0.6, label=f"deviation {deviation:g}")  # fmt: skip
        panels[1, column].plot([row[3] for row in front], savings, "o", color=colour, ms=3)
    for column, mix in enumerate(mixes):
        words_of = ("chance of a failed hour", "worst type's Q / threshold")
        for axes, words in zip(panels[:, column], words_of, strict=True):
            dress_small(axes)
            axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
            axes.set_xlabel(words, fontsize=8)
            axes.set_title(f"{mix}: saving", loc="left")
        panels[0, column].xaxis.set_major_formatter(PercentFormatter(1, 0))
        panels[0, column].axvline(cases.RISK, color=FAINT, lw=1)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=2, fontsize=8)
    return figure


FIGURES: Mapping[str, Callable[[Measured], Figure | None]] = {
    "mixes": figure_mixes,
    "6": partial(_hours, titles=HOURS["6"]),
    "7": figure_7,
    "8": figure_8,
    "9": figure_9,
    "10": partial(_hours, titles=HOURS["10"]),
    "11": partial(_hours, titles=HOURS["11"]),
    "12": figure_12,
    "13": partial(_hours, titles=HOURS["13"]),
    "risk": figure_risk,
}
