"""The figures of a run: each function draws one on an Axes, from an opened `Run`.

They are the same on the page of `odonata report` and in a paper. What is a mean over an interval is
drawn as a step over that interval, not as a line between points. Call them within `style`, and only
where there is something to draw: `odonata.figures.contents` knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import FuncFormatter, PercentFormatter

from odonata.figures.style import (
    BLUE,
    DASHES,
    DOT,
    FAINT,
    GREEN,
    GREY,
    GROUP_TICKS,
    INK,
    LIGHT_TO_DARK,
    NO_CABLE,
    NOTHING,
    ORANGE,
    PURPLE,
    Floats,
    cumulated,
    dress,
    from_zero,
    legend_above,
    log_ticks,
    say,
    thousands,
    top,
)
from odonata.results.derived import (
    cable_matrix,
    percentiles_ns,
    pieces,
    summary,
    system,
    total_over_time,
    traffic_matrix,
)
from odonata.results.performance import active_ps

if TYPE_CHECKING:
    from odonata.results.run import Run

Value = TypeVar("Value")

CLASS_STYLES: dict[str, dict[str, Any]] = {
    "global": {"color": BLUE, "ls": "-"},
    "local": {"color": ORANGE, "ls": "-"},
    "eject": {"color": GREEN, "ls": (0, (5, 2))},
    "inject": {"color": PURPLE, "ls": (0, (2, 1.5))},
}
MOST_STEPS = 400
"""The largest number of steps of a series over time; more samples than that are merged, exactly,
before they are drawn."""
MERGED_BINS = 2
"""Bins of latencies in one bar: 32 bars per octave."""


# -- what is drawn from


def once(of: Callable[[Run], Value]) -> Callable[[Run], Value]:
    """Returns a function that computes its value once for an opened run, which does not change;
    several figures need it."""
    kept: WeakKeyDictionary[Run, Value] = WeakKeyDictionary()

    @wraps(of)
    def value(run: Run) -> Value:
        if run not in kept:
            kept[run] = of(run)
        return kept[run]

    return value


in_short = once(summary)


def span_ps(run: Run) -> int:
    """Returns the time over which a run's means are taken, in ps, as in its summary."""
    return max(1, active_ps(run.network, run.reached_ps, run.last_in_ps))


def shares(run: Run) -> npt.NDArray[np.int64]:
    """Returns where each step of a series over time begins, as the number of a sample."""
    n = len(run.time)
    return np.arange(0, n, max(1, -(-n // MOST_STEPS)))


def edges_us(run: Run) -> Floats:
    """Returns the ends of those steps, in microseconds; one more than there are steps."""
    ends = np.concatenate(([0], run.time.data)) / 1e6
    return np.concatenate((ends[shares(run)], ends[-1:])) if len(run.time) else ends


def by_step(run: Run, series: xr.DataArray, *dims: str) -> npt.NDArray[np.int64]:
    """Returns the sum of a series over each step and over `dims`."""
    starts = shares(run)
    rest = [size for dim, size in series.sizes.items() if dim not in ("time", *dims)]
    sums = np.zeros((len(starts), *rest), np.int64)
    for first, some in pieces(series):
        steps = np.searchsorted(starts, np.arange(first, first + len(some)), "right") - 1
        np.add.at(sums, steps, some.sum(dims).data)
    return sums


@once
def histograms(run: Run) -> npt.NDArray[np.int64]:
    """Returns the measured packets by step and bin of latency."""
    return by_step(run, run.groups.latencies, "group")


@once
def over_time(run: Run) -> xr.Dataset:
    """Returns `derived.system` by step: rates weighted with their intervals, latency with its
    packets."""
    whole, starts = system(run), shares(run)
    if not len(starts):
        return whole
    weights = {name: whole.packets if name == "latency_ns" else run.interval for name in whole}

    def merged(name: Any) -> Floats:
        weight = weights[name].data.astype(float)
        total = np.add.reduceat(np.nan_to_num(whole[name].data) * weight, starts)
        return _ratio(total, np.add.reduceat(weight, starts))

    return xr.Dataset({name: ("step", merged(name)) for name in whole})


def measured_means_ns(run: Run) -> Floats:
    """Returns the mean latency of the measured packets, by step, in microseconds."""
    starts = shares(run)
    total = np.add.reduceat(run.groups.measured_latency_ps.sum("group").data, starts)
    packets = np.add.reduceat(run.groups.measured_packets.sum("group").data, starts)
    return _ratio(total / 1e3, packets)


def _ratio(total: Any, weight: Any) -> Floats:
    """Returns the weighted means; NaN where the weight is 0."""
    means: Floats = np.divide(total, weight, np.full(len(weight), np.nan), where=weight > 0)
    return means


def by_link(run: Run, counter: str) -> dict[str, Floats]:
    """Returns `busy_ps` or `stall_ps` of every link as fractions of the run, by class: `inject` and
    `eject` are the two directions of a node's link."""
    ports = run.ports
    part = total_over_time(ports[counter]) / span_ps(run)
    lit, kinds = ports.lit.data, np.broadcast_to(ports.kind.data, part.shape)
    fractions = {
        name: part[lit & (kinds == kind)]
        for name, kind in (("global", "global"), ("local", "local"), ("eject", "node"))
    }
    fractions["inject"] = total_over_time(run.nodes[f"inject_{counter}"]) / span_ps(run)
    return {name: values for name, values in fractions.items() if len(values)}


# -- over time


def load(run: Run, axes: Axes) -> None:
    series, edges = over_time(run), edges_us(run)
    made, taken = ("sent", "received") if run.network.workload else ("offered", "accepted")
    axes.stairs(series.offered, edges, baseline=None, color=FAINT, lw=2.6, label=made)
    axes.stairs(series.accepted, edges, baseline=None, color=BLUE, lw=1.4, label=taken)
    axes.set_ylim(0, top(series.offered, series.accepted))
    axes.set_ylabel("load (part of the nodes' links)")
    _over_time(run, axes)


def latency(run: Run, axes: Axes) -> None:
    edges, counts = edges_us(run), histograms(run)
    network = run.network
    lines: list[tuple[str, Floats, dict[str, Any]]] = []
    if network.warmup_ps or network.measure_ps is not None:
        everyone = over_time(run).latency_ns.data
        lines.append(("mean, all packets", everyone, {"color": FAINT, "lw": 2.6}))
    late, median = percentiles_ns(run, counts, [99, 50]).T
    lines += [
        ("99 %", late, {"color": ORANGE, "lw": 1.2}),
        ("mean", measured_means_ns(run), {"color": BLUE, "lw": 1.4}),
        ("median", median, {"color": GREEN, "lw": 1.2}),
    ]
    for name, values, style in lines:
        axes.stairs(values, edges, baseline=None, label=name, **style)
    axes.set_ylim(0, top(*(values for _, values, _ in lines)))
    axes.set_ylabel("latency (ns)")
    axes.yaxis.set_major_formatter(FuncFormatter(thousands))
    _over_time(run, axes)


def busy(run: Run, axes: Axes) -> None:
    _by_class_over_time(run, axes, "busy", "mean utilisation (part of the time)")


def stalled(run: Run, axes: Axes) -> None:
    _by_class_over_time(run, axes, "stalled", "mean stalled time a link\n(part of the time)")


def _by_class_over_time(run: Run, axes: Axes, what: str, label: str) -> None:
    series, edges = over_time(run), edges_us(run)
    drawn = [kind for kind in ("global", "local") if f"{kind}_{what}" in series]
    for kind in drawn:
        axes.stairs(series[f"{kind}_{what}"], edges, baseline=None, lw=1.4, label=f"{kind} links",
                    clip_on=False, zorder=3, **CLASS_STYLES[kind])  # fmt: skip
    axes.set_ylim(0, top(*(series[f"{kind}_{what}"] for kind in drawn), least=0.01))
    axes.set_ylabel(label)
    _over_time(run, axes)


def _over_time(run: Run, axes: Axes) -> None:
    """Draw the axis of time, and shade what was not measured in grey."""
    network, end = run.network, float(run.time[-1]) / 1e6
    until = network.warmup_ps + (network.measure_ps or run.reached_ps)
    for begin, stop in ((0.0, network.warmup_ps / 1e6), (until / 1e6, end)):
        if begin < min(stop, end):
            axes.axvspan(begin, min(stop, end), color="#f2f4f6", lw=0, zorder=0)
            words = "warm-up" if begin == 0 else "after the measurement"
            if min(stop, end) - begin > 0.07 * end:
                place: Any = ("data", "axes fraction")
                axes.annotate(words, (begin, 1), (3, -3), place, "offset points", va="top",
                              fontsize=7.5, color=GREY)  # fmt: skip
    axes.set_xlim(0, end)
    axes.set_xlabel("simulated time (µs)")
    dress(axes)
    legend_above(axes, ncols=4)


# -- latency


def latencies(run: Run, axes: Axes) -> None:
    """Draw bars of equal width on the axis, because only then are their heights comparable."""
    counts, from_ns = _whole_histogram(run)
    width = MERGED_BINS
    bars = counts.reshape(-1, width).sum(1) / counts.sum()
    bounds = np.append(from_ns[::width], 2 * from_ns[-64])
    used = np.flatnonzero(bars)
    first, last = used[0], used[-1] + 1
    axes.stairs(bars[first:last], bounds[first : last + 1], fill=True, color="#8fbbd9", lw=0)
    axes.stairs(bars[first:last], bounds[first : last + 1], color=BLUE, lw=0.7)
    axes.set_ylim(0, top(bars) * 1.12)
    axes.yaxis.set_major_formatter(PercentFormatter(1, _decimals(float(bars.max()))))
    axes.set_ylabel("packets a bin (32 bins an octave)")
    _latency_axis(axes, bounds[first], bounds[last])
    figures = in_short(run)
    marks = (("median", figures.median_latency_ns, GREEN, (0, (4, 2))),
             ("mean", figures.mean_latency_ns, INK, "-"),
             ("99 %", figures.p99_latency_ns, ORANGE, (0, (4, 2))))  # fmt: skip
    for name, value, colour, dashes in marks:
        axes.axvline(value, color=colour, lw=1.2, ls=dashes, label=f"{name}  {value:,.0f} ns")
    legend_above(axes, ncols=3)


def tail(run: Run, axes: Axes) -> None:
    beyond(run, axes, {"color": BLUE, "lw": 1.6})
    counts, _ = _whole_histogram(run)
    low, high = axes.get_ylim()
    for name, part in (("50 %", 0.5), ("90 %", 0.1), ("99 %", 0.01), ("99.9 %", 0.001),
                       ("99.99 %", 0.0001)):  # fmt: skip
        if counts.sum() * part < 10:
            break
        value = percentiles_ns(run, [counts], [100 * (1 - part)])[0, 0]
        axes.plot([value], [part], "o", ms=4.5, **DOT)
        axes.annotate(f"{name}: {value:,.0f} ns", (value, part), (7, 2), fontsize=8,
                      textcoords="offset points")  # fmt: skip
    left, right = axes.get_xlim()
    _latency_axis(axes, left, right * (right / left) ** 0.22)
    axes.set_ylim(low, high)


def beyond(run: Run, axes: Axes, style: dict[str, Any], label: str = "") -> None:
    """Draw the fraction of the measured packets whose latency was larger."""
    counts, from_ns = _whole_histogram(run)
    used = np.flatnonzero(counts)
    first, last = used[0], used[-1]
    left = 1 - np.concatenate(([0], np.cumsum(counts[first:last]))) / counts.sum()
    x = from_ns[first : last + 1]
    keep = np.concatenate(([True], np.diff(left) != 0))
    axes.step(x[keep], left[keep], where="post", label=label, **style)
    axes.set_yscale("log")
    decades = np.ceil(np.log10(counts.sum()))
    axes.set_ylim(max(10.0**-decades, 1e-7), 1.6)
    axes.yaxis.set_major_formatter(FuncFormatter(_percent))
    axes.set_ylabel("packets that take longer")
    _latency_axis(axes, x[0] / 1.05, from_ns[last + 1] * 1.05)


def _whole_histogram(run: Run) -> tuple[npt.NDArray[np.int64], Floats]:
    """Returns the measured packets by bin, and where bins begin, in nanoseconds."""
    return histograms(run).sum(0), run.groups.from_ps.data / 1e3


def _latency_axis(axes: Axes, low: float, high: float) -> None:
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    log_ticks(axes)
    axes.set_xlabel("latency (ns)")
    dress(axes)


# -- between groups


def traffic(run: Run, axes: Axes) -> None:
    _matrix(run, axes, traffic_matrix(run).data, None)


def cables(run: Run, axes: Axes) -> None:
    """Shade the diagonal grey, not zero: a group has no cable to itself."""
    m = run.machine
    ends = m.ends()[:, m.routers - 1 :] // m.radix
    joined = np.zeros((m.groups, m.groups), bool)
    routers, _ = np.nonzero(ends >= 0)
    joined[routers // m.routers, ends[ends >= 0] // m.routers] = True
    _matrix(run, axes, cable_matrix(run).data, ~joined)


def _matrix(run: Run, axes: Axes, moved: Any, absent: Any) -> None:
    """Returns the GB/s over the run from each row's group to each column's."""
    rates = moved / (span_ps(run) / 1e12) / 1e9
    groups = len(rates)
    shown = np.ma.masked_equal(rates, 0)
    colours = LIGHT_TO_DARK.with_extremes(bad=NOTHING)
    picture = axes.imshow(shown, cmap=colours, vmin=0, vmax=float(rates.max()) or 1.0,
                          interpolation="none")  # fmt: skip
    if absent is not None and absent.any():
        grey = LinearSegmentedColormap.from_list("absent", [NO_CABLE, NO_CABLE])
        axes.imshow(np.ma.masked_equal(absent, 0), cmap=grey.with_extremes(bad="none"),
                    interpolation="none")  # fmt: skip
    if groups <= 40:
        for at in np.arange(0.5, groups - 1):
            axes.axhline(at, color="white", lw=0.6)
            axes.axvline(at, color="white", lw=0.6)
    axes.set_xlabel("to group")
    axes.set_ylabel("from group")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(GROUP_TICKS())
        axis.set_tick_params(length=2.5)
    _scale(axes, picture, "GB/s, mean over the run")


def _scale(axes: Axes, picture: Any, label: str) -> None:
    """Add a colour bar that says what the colours of a heat map mean."""
    for spine in axes.spines.values():
        spine.set_color(FAINT)
    figure = axes.get_figure()
    assert figure is not None
    bar = figure.colorbar(picture, ax=axes, aspect=28, pad=0.03)
    bar.set_label(label)
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(thousands))


# -- links


def link_load(run: Run, axes: Axes) -> None:
    values = by_link(run, "busy_ps")
    _distributions(axes, values)
    axes.set_xlim(0, max(1.0, max(float(some.max()) for some in values.values())) * 1.005)
    axes.set_xlabel("utilisation over the run (part of the time)")


def link_stalls(run: Run, axes: Axes) -> None:
    values = by_link(run, "stall_ps")
    _distributions(axes, values)
    axes.set_xlim(0, top(*values.values(), least=0.01))
    axes.set_xlabel("stalled over the run (part of the time, summed over VCs)")
    if not any(some.any() for some in values.values()):
        say(axes, "no stall on any link")


def _distributions(axes: Axes, values: dict[str, Floats]) -> None:
    for name, some in values.items():
        x, y = cumulated(some)
        axes.step(x, y, where="post", lw=1.5, label=f"{name} ({len(some):,})",
                  clip_on=False, zorder=3, **CLASS_STYLES[name])  # fmt: skip
    axes.set_ylim(0, 1.015)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set_ylabel("links at or below")
    dress(axes)
    legend_above(axes, ncols=4)


def group_stalls(run: Run, axes: Axes) -> None:
    """Returns the mean over the links on which a group's routers send to routers."""
    m, edges = run.machine, edges_us(run)
    between = run.ports.lit & (run.ports.kind != "node")
    links = int(between.sum()) / m.groups
    ports = run.ports.stall_ps.isel(port=slice(m.nodes, None))
    stalls = by_step(run, ports, "port").reshape(len(edges) - 1, m.groups, -1).sum(2)
    part = stalls / (links * np.diff(edges)[:, None] * 1e6)
    shown = np.ma.masked_equal(part.T, 0)
    picture = axes.pcolormesh(edges, np.arange(m.groups + 1) - 0.5, shown, vmin=0,
                              vmax=float(part.max()) or 1.0, rasterized=True,
                              cmap=LIGHT_TO_DARK.with_extremes(bad=NOTHING))  # fmt: skip
    axes.set_ylim(m.groups - 0.5, -0.5)
    axes.set_xlim(0, edges[-1])
    axes.set_xlabel("simulated time (µs)")
    axes.set_ylabel("group")
    axes.yaxis.set_major_locator(GROUP_TICKS())
    _scale(axes, picture, "stalled (part of the time)")
    if not part.any():
        say(axes, "no stall in any group")


# -- several runs


def overlay(run: Run, panels: Sequence[Axes], colour: str) -> None:
    """Draw a run's load, latency and global links over time, and the tail of its latencies."""
    load_axes, latency_axes, link_axes, tail_axes = panels
    solid: dict[str, Any] = {"baseline": None, "color": colour, "lw": 1.4}
    dashed = solid | {"lw": 0.9, "ls": DASHES}
    if not len(run.time):
        return
    series, edges = over_time(run), edges_us(run)
    load_axes.stairs(series.offered, edges, **dashed)
    load_axes.stairs(series.accepted, edges, **solid)
    if "global_busy" in series:
        link_axes.stairs(series.global_busy, edges, **solid)
    if histograms(run).any():
        late = percentiles_ns(run, histograms(run), [99])[:, 0]
        latency_axes.stairs(late, edges, **dashed)
        latency_axes.stairs(measured_means_ns(run), edges, **solid)
        ends = tail_axes.get_xlim(), tail_axes.get_ylim()
        before = tail_axes.has_data()
        beyond(run, tail_axes, {"color": colour, "lw": 1.4})
        if before:  # room for both
            x, y = tail_axes.get_xlim(), tail_axes.get_ylim()
            tail_axes.set_ylim(min(y[0], ends[1][0]), y[1])
            _latency_axis(tail_axes, min(x[0], ends[0][0]), max(x[1], ends[0][1]))


def finish_overlay(runs: Sequence[Run], panels: Sequence[Axes]) -> None:
    """Set what the panels of `overlay` show, and the ends of their axes."""
    end = max([float(run.time[-1]) / 1e6 for run in runs if len(run.time)], default=1.0)
    names = ("load (part of the nodes' links)", "latency (ns), measured packets",
             "mean utilisation of global links")  # fmt: skip
    for axes, name in zip(panels, names, strict=False):
        axes.set_ylabel(name)
        from_zero(axes)
        axes.set_xlim(0, end)
        axes.set_xlabel("simulated time (µs)")
        dress(axes)
    panels[1].yaxis.set_major_formatter(FuncFormatter(thousands))
    for axes in panels:
        if not axes.has_data():
            say(axes, "nothing was measured")


def _percent(value: float, _: Any = None) -> str:
    return f"{100 * value:.9f}".rstrip("0").rstrip(".") + " %"


def _decimals(most: float) -> int:
    return 0 if most >= 0.05 else 1 if most >= 0.005 else 2
