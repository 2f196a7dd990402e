"""The figure of a search for a bid: which bids were tried, and what the best of them came to; with
a risk also the front of those that one was chosen from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from odonata.bids.plan import BidPlan, Found
from odonata.bids.risk import AtRisk
from odonata.bids.training import best_so_far
from odonata.figures.power import unit_of
from odonata.figures.style import BLUE, DASHES, FAINT, GREY, INK, ORANGE, canvas, dress, save, style
from policies.views import Market

LONGEST = 150
"""Letters of a line of the title."""
KEPT: dict[str, Any] = {"color": BLUE, "marker": "o", "s": 13, "lw": 0, "zorder": 3}
FAILED: dict[str, Any] = {"color": "#e3b994", "marker": "o", "s": 9, "lw": 0, "zorder": 2}
CHOSEN: dict[str, Any] = {"color": ORANGE, "marker": "*", "mec": "white", "mew": 0.6, "ms": 14,
                          "ls": "none", "zorder": 6, "clip_on": False}  # fmt: skip


def write(market: Market, asked: BidPlan, found: Found, path: Path, title: str) -> None:
    """Save the figure of a search, in the format that its name ends in."""
    risky = found.at_risk
    with style():
        figure = canvas((12.0, 10.2 if risky else 6.4))
        figure.suptitle(
            "\n".join(wrap(title, LONGEST)), x=0.01, ha="left", fontsize=10.5, color=INK
        )
        parts: Any = figure.subfigures(2 if risky else 1, 1, squeeze=False, hspace=0.03,
                                       height_ratios=(1.5, 1.0) if risky else (1.0,))  # fmt: skip
        above = parts[0, 0].subplots(2, 2, sharex=True)
        tried(asked, found, above[:, 0])
        progress(market, asked, found, above[:, 1])
        if risky is not None:
            below = parts[1, 0].subplots(1, 2, sharey=True)
            chances(risky, below[0])
            lateness(risky, below[1])
        save(figure, path)


def tried(asked: BidPlan, found: Found, panels: Sequence[Axes]) -> None:
    """Draw the average and the reserve of each bid in the order in which they were tried."""
    steps = found.trained.steps
    most_failed = int((asked.risk or 0.0) * asked.train + 1e-9)
    fine = np.array([it.kept >= asked.train - most_failed for it in steps])
    numbers = np.arange(1, len(steps) + 1)
    words = "kept all rules in all hours"
    if most_failed:
        words = f"kept all rules in all but {most_failed} of {asked.train} hours"
    what: Sequence[tuple[str, Callable[[Any], float]]] = (
        ("average", lambda it: it.average_w), ("reserve", lambda it: it.reserve_w),
    )  # fmt: skip
    size, unit = unit_of(max(it.average_w for it in steps))
    for axes, (name, of) in zip(panels, what, strict=True):
        watts = np.array([of(it) for it in steps])
        axes.scatter(numbers[~fine], watts[~fine] / size, **FAILED)
        axes.scatter(numbers[fine], watts[fine] / size, **KEPT)
        axes.axhline(of(found.bid) / size, color=ORANGE, lw=1.0, ls=DASHES, zorder=4)
        axes.set_ylabel(f"{name} ({unit})")
        axes.margins(x=0.01)
        if name == "reserve":
            axes.set_ylim(bottom=0)
        dress(axes)
    keys = [Line2D([], [], color=KEPT["color"], marker="o", ls="none", ms=4, label=words),
            Line2D([], [], color=FAILED["color"], marker="o", ls="none", ms=4, label="did not"),
            Line2D([], [], color=ORANGE, lw=1.0, ls=DASHES, label="the bid")]  # fmt: skip
    panels[0].legend(handles=keys, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3,
                     borderaxespad=0.2, handlelength=1.6, columnspacing=1.4)  # fmt: skip
    _number(panels[1])


def progress(market: Market, asked: BidPlan, found: Found, panels: Sequence[Axes]) -> None:
    """Draw the cost and the violation of the best bid so far, and of all that were tried."""
    steps = found.trained.steps
    best = best_so_far(market, found.trained.every, asked.risk or 0.0)
    numbers = np.arange(1, len(steps) + 1)
    cost, missed = (np.array([getattr(it, name) for it in steps]) for name in ("cost", "violation"))
    for axes, values, words in ((panels[0], cost, "cost per hour"),
                                (panels[1], missed, "how far rules are broken")):  # fmt: skip
        axes.scatter(numbers, values, color=FAINT, s=7, lw=0, zorder=2, label="each bid")
        axes.step(numbers, values[best], where="post", color=INK, lw=1.5, zorder=4,
                  label="the best so far: broken rules count first")  # fmt: skip
        axes.set_ylabel(words)
        axes.margins(x=0.01)
        dress(axes)
    room = np.append(np.quantile(cost, [0.0, 0.95]), cost[best])
    pad = 0.06 * float(np.ptp(room)) or 1e-6
    panels[0].set_ylim(float(room.min()) - pad, float(room.max()) + pad)
    panels[1].set_yscale("symlog", linthresh=0.01)
    panels[1].set_ylim(bottom=0)
    panels[1].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panels[0].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2,
                     handlelength=1.6, columnspacing=1.4)  # fmt: skip
    _number(panels[1])


def _number(axes: Axes) -> None:
    axes.set_xlabel("bid, in the order in which they were tried")
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]))


# -- the front


def chances(found: AtRisk, axes: Axes) -> None:
    """Draw what each bid of the front saves over its chance of a failed hour, with its interval."""
    share = np.array([it.failed.share for it in found.front])
    ends = np.array([it.failed.interval for it in found.front])
    saving = np.array([_part(it.saving) for it in found.front])
    bars = np.abs(np.stack([share - ends[:, 0], ends[:, 1] - share]))
    axes.errorbar(share, saving, xerr=bars, fmt="o", ms=4, color=BLUE, ecolor="#b5d3e6", lw=1.0,
                  zorder=3, label=f"in {found.chosen.failed.trials:,} hours, with 95 % "
                  "intervals")  # fmt: skip
    judged = found.judged
    low, high = judged.failed.interval
    own = np.array([[judged.failed.share - low], [high - judged.failed.share]])
    axes.errorbar([judged.failed.share], [_part(judged.saving)], xerr=own, fmt="none",
                  ecolor=ORANGE, lw=1.6, zorder=5)  # fmt: skip
    axes.plot([judged.failed.share], [_part(judged.saving)], **CHOSEN,
              label=f"the bid, in {judged.failed.trials:,} others")  # fmt: skip
    axes.axvline(found.risk, color=GREY, lw=1.0, ls=DASHES, zorder=1, label="the chance asked for")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_xlim(left=0)
    axes.set_xlabel("chance of a failed hour")
    axes.set_ylabel("saving")
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, borderaxespad=0.2,
                handlelength=1.6, columnspacing=1.4)  # fmt: skip
    dress(axes)


def lateness(found: AtRisk, axes: Axes) -> None:
    """Draw what each bid of the front saves over how near the worst type comes to its limit."""
    axes.plot([it.worst for it in found.front], [_part(it.saving) for it in found.front], "o", ms=4,
              color=BLUE, zorder=3)  # fmt: skip
    axes.plot([found.judged.worst], [_part(found.judged.saving)], **CHOSEN)
    axes.axvline(1.0, color=GREY, lw=1.0, ls=DASHES, zorder=1)
    axes.set_xlim(left=0)
    axes.set_xlabel("worst type's Q / threshold (dashed: late)")
    dress(axes)


def _part(saving: float | None) -> float:
    """Returns a saving as a number: nan where there is none."""
    return float("nan") if saving is None else saving
