"""Is overprovisioning worth it? How the answer changes with each input, and over both budgets.

`sweeps` draws the cost model of the thesis; `price_sweeps` and `budgets` what a buyer's own prices
give. All return figures; call them within `style`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from odonata.figures.style import (
    BLUE,
    DASHES,
    FAINT,
    GREY,
    INK,
    ORANGE,
    RUN_COLOURS,
    canvas,
    dress,
    thousands,
)
from odonata.provisioning.cost import (
    CHEAPER_PRICE,
    HIGH_END_PRICE,
    RISING,
    BreakEven,
    Inputs,
    Rack,
    Sweep,
    break_even,
    cost_ratio,
    limit_ratio,
    r_c_bound,
    sweep,
)
from odonata.provisioning.prices import Prices
from odonata.provisioning.purchase import SWEPT, Machine, compared, mix_time, price_sweep, speedup
from odonata.provisioning.scaling import NO_NODE, Line

PERCENT = FuncFormatter(lambda value, _: f"{100 * value:.6g}%")
HIGHEST = 2.0
"""Where panels end; curves that go above it are told."""
LABELS = {
    "r_c": "effective cost ratio r_c",
    "r_p": "performance loss r_p",
    "power_w": "power budget (W)",
    "node_max_w": "most that a high-end node draws (W)",
    "node_min_w": "least that a cheaper node draws (W)",
}
PRICE_LABELS = {
    "money": "money ({})",
    "power_w": "power budget (W)",
    "price": "price of a cheaper node ({})",
    "loss": "performance loss",
}
MIX = "the mix"
MOST_RACKS = 40
FASTER = LinearSegmentedColormap.from_list(
    "faster", [ORANGE, "#f3cfa9", "#ffffff", "#a9cbe2", BLUE]
)


# -- one panel


def _curve(axes: Axes, swept: Sweep, found: BreakEven, style: dict[str, Any]) -> float:
    """Draw a sweep, its break-even point and where its line ceases to hold. Returns its highest
    value."""
    valid = swept.valid
    x = [at for step in valid for at in (step.low, step.high)]
    y = [s for step in valid for s in (step.s or 0.0, step.s_end or 0.0)]
    axes.plot(x, y, **style)
    if found.value is not None:
        axes.plot(found.value, 1.0, "o", ms=6, color=style["color"], mec="white", mew=0.9, zorder=5)
    for at, why_not in swept.stops:
        s = y[-1] if at == x[-1] else y[0]
        if s <= HIGHEST and not why_not.endswith(NO_NODE):
            axes.plot(at, s, "x", ms=6, mew=1.6, color=style["color"], zorder=5)
    return max(y, default=0.0)


def _panel(
    axes: Axes,
    curves: Mapping[str, tuple[Sweep, BreakEven]],
    own: float,
    label: str,
    ends: tuple[float, float] | None = None,
) -> None:
    above = []
    for (name, (swept, found)), how in zip(curves.items(), _styles([*curves]), strict=True):
        highest = _curve(axes, swept, found, how)
        if highest > HIGHEST:
            above.append(f"{name} to {highest:.3g}")
    axes.axhline(1.0, color=INK, lw=1.0)
    axes.axvline(own, color=GREY, lw=1.0, ls=DASHES, zorder=1)
    spans = [(swept.valid[0].low, swept.valid[-1].high) for swept, _ in curves.values()
             if swept.valid]  # fmt: skip
    if ends is None and spans:
        ends = min(low for low, _ in spans), max(high for _, high in spans)
    if ends is not None:
        ends = min(ends[0], own), max(ends[1], own)
        room = 0.02 * (ends[1] - ends[0])
        axes.set_xlim(ends[0] - room, ends[1] + room)
    axes.set_ylim(0.5, HIGHEST)
    if above:
        axes.set_title(f"above: {', '.join(above)}", loc="right", fontsize=8, color=GREY)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    if ends is not None and ends[1] > 20:
        axes.xaxis.set_major_formatter(FuncFormatter(thousands))
    elif "loss" in label:
        axes.xaxis.set_major_formatter(PERCENT)
    axes.set_xlabel(label)
    dress(axes)


def _styles(names: Sequence[str]) -> list[dict[str, Any]]:
    """Returns how the curve of each is drawn. Where several coincide all are seen: each is thinner
    than the one beneath it, and has gaps of its own; the mix is black, on top."""
    found, last = [], max(1, len(names) - 1)
    for at, name in enumerate(names):
        colour = INK if name == MIX else RUN_COLOURS[at % len(RUN_COLOURS)]
        gaps: Any = "-" if not at else (0, (1.2, 1.8)) if name == MIX else (0, (6, 1 + 0.6 * at))
        found.append({"color": colour, "lw": 2.8 - 1.5 * at / last, "ls": gaps})
    return found


def _figure(
    wide: float, high: float, names: Sequence[str], title: str, notes: Sequence[str]
) -> Figure:
    figure = canvas((wide, high))
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold", color=INK)
    keys = [Line2D([], [], label=name, **how)
            for name, how in zip(names, _styles(names), strict=True)]  # fmt: skip
    marks: list[tuple[str, dict[str, Any]]] = [
        ("break-even", {"marker": "o", "ls": "", "color": GREY, "mec": "white", "ms": 7}),
        ("times are known no further", {"marker": "x", "ls": "", "color": GREY, "mew": 1.6}),
        *((note, {"color": GREY, "lw": 1.0, "ls": DASHES}) for note in notes),
    ]
    keys += [Line2D([], [], label=label, **how) for label, how in marks]
    figure.legend(handles=keys, loc="outside lower center", ncols=min(8, len(keys)),
                  handlelength=1.8, columnspacing=1.6)  # fmt: skip
    return figure


# -- the model of the thesis


def sweeps(inputs: Inputs, lines: Mapping[str, Line]) -> Figure:
    """Draw `s_ovp` of each application over each input, and the effective cost ratio over the
    number of racks that the money buys with high-end nodes."""
    figure = _figure(13.0, 7.6, [*lines], "Time on the worst-case machine over that on the "
                     "overprovisioned one: above 1, overprovisioning is faster",
                     ["as it is now"])  # fmt: skip
    panels: Any = figure.subplots(2, 3)
    for axes, (name, rising) in zip(panels.flat, RISING.items(), strict=False):
        swept = {each: sweep(inputs, line, name) for each, line in lines.items()}
        curves = {each: (it, break_even(it, rising)) for each, it in swept.items()}
        own = getattr(inputs, name)
        _panel(axes, curves, own, LABELS[name], (0.0, max(0.6, own)) if name == "r_p" else None)
    for axes in panels[:, 0]:
        axes.set_ylabel("s_ovp = t_wc / t_ovp")
    bound = r_c_bound(inputs)
    panels[0, 0].axvline(bound, color=FAINT, lw=1.2, zorder=1)
    panels[0, 0].annotate(f"watts bind\nfrom {bound:.2f} on", (bound, 0.53), (-4, 0), ha="right",
                          textcoords="offset points", fontsize=8.5, color=GREY)  # fmt: skip
    _racks(panels[1, 2], Rack())
    return figure


def _racks(axes: Axes, rack: Rack) -> None:
    full = rack.cost(rack.nodes, HIGH_END_PRICE)
    racks = np.arange(1, MOST_RACKS + 1)
    found = [cost_ratio(float(n * full), HIGH_END_PRICE, CHEAPER_PRICE, rack) for n in racks]
    shown = (("by_node", BLUE, "per node"), ("by_rack", ORANGE, "mean of racks, as in the thesis"))
    for of, colour, label in shown:
        values = [np.nan if each is None else getattr(each, of) for each in found]
        axes.plot(racks, values, "o", ms=4, color=colour, label=label)
    end = limit_ratio(HIGH_END_PRICE, CHEAPER_PRICE, rack)
    axes.axhline(end, color=GREY, lw=1.0, ls=DASHES)
    axes.annotate(f"{end:.2f}, for many racks", (MOST_RACKS, end), (0, 4), ha="right",
                  textcoords="offset points", fontsize=8.5, color=GREY)  # fmt: skip
    axes.set_xlabel("full racks of high-end nodes that the money buys")
    axes.set_ylabel("effective cost ratio")
    axes.set_ylim(top=end + 0.035)
    axes.legend(loc="lower right")
    dress(axes)


# -- a buyer's prices


def price_sweeps(prices: Prices) -> Figure:
    """Draw the speed-up of each application, and of the mix, over money, watts, the price of a
    cheaper node and the performance loss."""
    names: list[str | None] = [*prices.applications, *([None] * (len(prices.applications) > 1))]
    shown = [name or MIX for name in names]
    first, second = compared(prices)
    title = (f"Time on {first.kind.name}, worst case, over that on {second.kind.name}, "
             "overprovisioned: above 1, the latter is faster")  # fmt: skip
    figure = _figure(11.0, 7.6, shown, title, ["as it is now"])
    panels: Any = figure.subplots(2, 2)
    owns = {"money": prices.money, "power_w": prices.power_w, "price": prices.cheaper.price,
            "loss": prices.r_p}  # fmt: skip
    for axes, (what, rising) in zip(panels.flat, SWEPT.items(), strict=True):
        swept = [price_sweep(prices, what, name) for name in names]
        curves = {name: (it, break_even(it, rising)) for name, it in zip(shown, swept, strict=True)}
        ends = (0.0, max(0.6, prices.r_p)) if what == "loss" else None
        _panel(axes, curves, owns[what], PRICE_LABELS[what].format(prices.currency), ends)
    for axes in panels[:, 0]:
        axes.set_ylabel("speed-up by overprovisioning")
    return figure


def budgets(prices: Prices, cells: int = 240) -> Figure:
    """Draw which machine is faster for the mix, and by how much, over budgets of money and of
    power; in grey where no time is known or there is no node."""
    first, second = compared(prices)
    money, watts = _axis(prices.money, cells), _axis(prices.power_w, cells)
    slow, fast = (_times(prices, one, money, watts) for one in (first, second))
    s = np.ma.masked_invalid(slow / fast)
    figure = canvas((8.6, 6.4))
    axes = figure.subplots()
    axes.set_facecolor(FAINT)
    norm = TwoSlopeNorm(1.0, 0.7, 1.9)
    mesh = axes.pcolormesh(money, watts, s, cmap=FASTER, norm=norm, rasterized=True,
                           shading="nearest")  # fmt: skip
    if s.count() and s.min() < 1 < s.max():
        axes.contour(money, watts, s, levels=[1.0], colors=INK, linewidths=1.2)
    bar = figure.colorbar(mesh, ax=axes, aspect=30, pad=0.02, extend="both",
                          ticks=[0.7, 0.8, 0.9, 1.0, 1.3, 1.6, 1.9])  # fmt: skip
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    bar.set_label("speed-up by overprovisioning, of the mix")
    bar.outline.set_visible(False)
    axes.plot(prices.money, prices.power_w, "o", ms=8, color=INK, mec="white", mew=1.2, zorder=5)
    here, why_not = speedup(prices)
    words = why_not if here is None else f"{here:.2f} times as fast"
    text = f"{first.nodes} {first.kind.name} or\n{second.nodes} {second.kind.name}:\n{words}"
    axes.annotate(text, (prices.money, prices.power_w), (9, -9), textcoords="offset points",
                  va="top", fontsize=9, color=INK,
                  bbox={"fc": "white", "ec": "none", "alpha": 0.85, "pad": 2.0})  # fmt: skip
    axes.set_xlabel(f"money ({prices.currency})")
    axes.set_ylabel("power budget (W)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(thousands))
        axis.set_major_locator(MaxNLocator(7))
    axes.set_title(f"Blue: {second.kind.name}, overprovisioned, is faster; orange: "
                   f"{first.kind.name}, worst case;\ngrey: there is no node, or no time is known "
                   "of so many", loc="left")  # fmt: skip
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


def _axis(own: float, cells: int) -> Any:
    return own * np.linspace(0.0, 2.0, cells + 1)[1:]


def _times(prices: Prices, one: Machine, money: Any, watts: Any) -> Any:
    """[watts, money]: seconds per job of the mix on a machine of this kind; NaN where there is no
    answer."""
    each_w = (one.kind.min_w if one.overprovisioned else one.kind.max_w) or np.inf
    by_money = [prices.rack.affordable(float(sum_), one.kind.price) for sum_ in money]
    by_watts = (watts / each_w + 1e-9).astype(np.int64)
    nodes = np.minimum(np.array(by_money)[None, :], by_watts[:, None])
    times = np.full(nodes.shape, np.nan)
    known: dict[tuple[int, float], float | None] = {}
    lines = not one.overprovisioned or all(
        isinstance(each.line, Line) for each in prices.applications.values()
    )
    for row, power_w in enumerate(watts.tolist()):
        here = replace(prices, power_w=power_w)
        for count in np.unique(nodes[row]).tolist():
            key = count, 0.0 if lines else power_w  # a line knows no watts
            if key not in known:
                so_many = replace(one, by_money=count, by_watts=count)
                known[key] = mix_time(here, so_many)[0]
            times[row, nodes[row] == count] = np.nan if known[key] is None else known[key]
    return times


FIGURES: dict[str, Callable[[Prices], Figure]] = {"sweeps": price_sweeps, "budgets": budgets}
"""The figures of a buyer's prices."""
