"""Quantities derived from the metrics of a run: functions of an opened `Run`, as xarray objects.

Rates are means over the interval that ends at a sample. A link's values are those of the port that
sends on it; an Aries tile counts what arrives, so a tile's values here are those of the port at the
other end of its cable (`odonata.results.aries`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from odonata.agents.metrics import COUNTERS, INPUT_COUNTERS
from odonata.results.performance import Link, Performance, Totals, active_ps, quantile, summarise

if TYPE_CHECKING:
    from odonata.results.run import Run

Floats = npt.NDArray[np.float64]

CLASSES = ("local", "global")
"""The classes of links between routers: electrical and optical, as a rule."""
SYSTEM = {
    "offered": ("1", "bytes of messages generated, as a fraction of the injection bandwidth"),
    "accepted": ("1", "bytes delivered, as a fraction of the injection bandwidth"),
    "latency_ns": ("ns", "mean latency of the packets delivered, from the generation of a message"),
    "packets": ("1", "packets delivered in the interval"),
}
LINKS_OF_A_CLASS = {
    "busy": ("1", "mean over {kind} links of the fraction of the interval in use"),
    "stalled": ("1", "mean over {kind} links of the time stalled, as a fraction of the interval; "
                "summed over VCs"),
}  # fmt: skip
"""Unit and description of each series of `system`."""
PERCENTILES = (50, 90, 99, 99.9)
MOST_TILE_SAMPLES = 5 * 10**7
"""The largest number of samples of network tiles of which stall-to-flit ratios are worked out
unasked; this needs ten arrays of that size."""
PIECE_BYTES = 1 << 26
"""The largest number of values of a series that are read at once."""


def utilisation(run: Run) -> xr.DataArray:
    """Returns by time, router and port the fraction of the interval in which the link was in use.
    NaN where there is no cable."""
    part: xr.DataArray = run.ports.busy_ps / run.interval.data[:, None, None]
    return part.where(run.ports.lit).rename("utilisation").assign_attrs(unit="1")


def stall_to_flit(
    run: Run, threshold: str | float | Mapping[str, float] | None = "median"
) -> xr.DataArray:
    """Returns by time and router the mean over its network tiles of stalls per incoming flit (Zhang
    2021, section 3.5.2), where a stall is the time of a flit on that link.

    A tile's sample with fewer stalls per second than a threshold is left out, because the ratio of
    two small numbers may be large and mean nothing. The threshold is "median" (that of all samples
    of the run, for local and for global tiles apart, as in the paper), a number, or one per class,
    in stalls per second; or None. Attributes say which it was. Where most tiles never stall the
    median is 0, and nothing is left out. NaN where a router has no sample left.
    """
    m, flit_bytes = run.machine, run.network.flit_bytes
    feeders = m.ends()
    tile = xr.DataArray(feeders, dims=("router", "tile"))
    ports = run.ports[["flits", "stall_ps"]].stack(end=("router", "port"), create_index=False)
    ports = ports.drop_vars([name for name in ports.coords if name != "time"])
    incoming = ports.isel(end=tile.clip(min=0))
    rates = [m.local.bandwidth] * (m.routers - 1) + [m.global_.bandwidth] * m.global_links
    stalls = incoming.stall_ps * (xr.DataArray(rates, dims="tile") / (flit_bytes * 1e12))
    per_second = stalls / (run.interval.data[:, None, None] / 1e12)
    of_class = np.repeat(CLASSES, (m.routers - 1, m.global_links))
    counts = (tile >= 0) & (incoming.flits > 0)
    thresholds = {}
    if threshold is not None:
        least = xr.zeros_like(tile, float)
        for kind in CLASSES:
            ours = of_class == kind
            plugged = (tile >= 0).data & ours
            samples = per_second.data[:, plugged]
            thresholds[kind] = threshold_of(threshold, kind, samples)
            least[:, ours] = thresholds[kind]
        counts = counts & (per_second >= least)
    ratio = (stalls / incoming.flits.where(incoming.flits > 0)).where(counts)
    by_router: xr.DataArray = ratio.mean("tile").assign_coords(
        router=run.ports.router, group=run.ports.group, time=run.time
    )
    attrs = {f"{kind}_threshold": value for kind, value in thresholds.items()}
    return by_router.rename("stall_to_flit").assign_attrs(unit="1", **attrs)


def threshold_of(threshold: str | float | Mapping[str, float], kind: str, samples: Any) -> float:
    """Returns the threshold of a class of tiles, in stalls per second: the median of these samples,
    a number, or that of the class."""
    if isinstance(threshold, Mapping):
        if kind not in threshold:
            raise ValueError(f"threshold = {threshold}: for each of {', '.join(CLASSES)}")
        return threshold[kind]
    if isinstance(threshold, str):
        if threshold != "median":
            raise ValueError(f"threshold = {threshold!r}: median, numbers, or None")
        return float(np.median(samples)) if samples.size else 0.0
    return threshold


def traffic_matrix(run: Run) -> xr.DataArray:
    """Returns the bytes delivered over the whole run, by the group they came from and the group
    they went to."""
    total: xr.DataArray = run.groups.traffic_bytes.sum("time")
    return total.transpose("source_group", "group").assign_attrs(unit="B")


def carried(run: Run) -> xr.DataArray:
    """Returns the bytes that each link sent over the run, by router and port. `ports.bytes` counts
    a packet when it is granted the link, which may be well before it is sent; so the bytes that the
    link could not have sent yet, in the time that it was in use, are subtracted."""
    m, ports = run.machine, run.ports
    rates = np.repeat(
        [m.terminal.bandwidth, m.local.bandwidth, m.global_.bandwidth],
        [m.nodes, m.routers - 1, m.global_links],
    )
    granted, used = total_over_time(ports.bytes), total_over_time(ports.busy_ps)
    sent = np.minimum(granted, np.rint(used * (rates / 1e12)).astype(np.int64))
    coordinates = {name: ports[name] for name in ports.coords if "time" not in ports[name].dims}
    return xr.DataArray(sent, coordinates, ("router", "port"), "carried", {"unit": "B"})


def busiest(run: Run, n: int = 10, by: str = "busy_ps") -> list[Link]:
    """Returns the links between routers with the largest `busy_ps`, `stall_ps`, `wait_ps` or
    `bytes` over the run; of equal ones the first by router and port."""
    m = run.machine
    names = ("packets", "flits", "bytes", "stall_ps", "wait_ps")
    total = {name: total_over_time(run.ports[name])[:, m.nodes :] for name in (*names, "busy_ps")}
    ends, span = m.ends(), active_ps(run.network, run.reached_ps, run.last_in_ps)
    order = np.argsort(np.where(ends >= 0, -total[by], 1), axis=None, kind="stable")
    links = []
    for router, tile in zip(*np.unravel_index(order[:n], ends.shape), strict=True):
        if ends[router, tile] >= 0:
            far, far_port = divmod(int(ends[router, tile]), m.radix)
            kind = "local" if tile < m.routers - 1 else "global"
            used = float(total["busy_ps"][router, tile] / max(1, span))
            counted = (int(total[name][router, tile]) for name in names)
            links.append(
                Link(kind, int(router), int(tile) + m.nodes, far, far_port, used, *counted)
            )
    return links


def cable_matrix(run: Run) -> xr.DataArray:
    """Returns the bytes that crossed the cables from one group to another (`carried`): a packet on
    a non-minimal path counts at each of its cables."""
    m, sent = run.machine, carried(run).data
    far = run.ports.to_router
    crossing = ((run.ports.kind == "global") & (far >= 0)).transpose("router", "port").data
    matrix = np.zeros((m.groups, m.groups), np.int64)
    source = np.broadcast_to(run.ports.group.data[:, None], crossing.shape)[crossing]
    np.add.at(matrix, (source, far.data[crossing] // m.routers), sent[crossing])
    groups = np.arange(m.groups)
    dims = ("source_group", "group")
    return xr.DataArray(matrix, dict.fromkeys(dims, groups), dims, "cable_bytes", {"unit": "B"})


def latency_percentiles(
    run: Run, percentiles: float | Sequence[float] = PERCENTILES, by_time: bool = False
) -> xr.DataArray:
    """Returns latencies in nanoseconds, by percentile, over the measured packets; `by_time`: over
    those delivered during each interval. NaN where there are none."""
    asked = np.atleast_1d(np.asarray(percentiles, float))
    if not ((asked >= 0) & (asked <= 100)).all():
        raise ValueError(f"percentiles = {percentiles}: 0 .. 100")
    series = run.groups.latencies
    if by_time:
        rows = [row for _, some in pieces(series) for row in some.sum("group").data]
    else:
        rows = [total_over_time(series, "group")]
    values = percentiles_ns(run, rows, asked)
    attrs, axis = {"unit": "ns"}, {"percentile": asked}
    if by_time:
        values = values.reshape(len(run.time), len(asked))
        return xr.DataArray(values, {"time": run.time, **axis}, ("time", "percentile"), "latency",
                            attrs)  # fmt: skip
    return xr.DataArray(values[0], axis, "percentile", "latency", attrs)


def percentiles_ns(run: Run, rows: Iterable[Any], percents: Iterable[float]) -> Floats:
    """Returns percentiles, in nanoseconds, of latencies counted by bin: a row for each of `rows`, a
    column for each of `percents`. None is above the longest latency, although a bin may end above
    that; where nothing was counted, they are NaN."""
    longest = float(run.groups.longest_latency_ps[-1:].data.max(initial=0))
    return np.array([
        [min(longest, quantile(row, p / 100)) / 1e3 if row.any() else np.nan for p in percents]
        for row in rows
    ])  # fmt: skip


def system(run: Run, last: int | None = None) -> xr.Dataset:
    """Returns the whole machine over time: offered and accepted load (fractions of the injection
    bandwidth), mean latency, mean utilisation and stalled fraction of the links of each class. Only
    the `last` samples, if that is given."""
    m, some = run.machine, slice(-last if last else None, None)
    nodes, interval = run.nodes.isel(time=some), run.interval.data[some]
    full = m.n_nodes * m.terminal.bandwidth * interval / 1e12
    packets = nodes.received_packets.sum("node")
    series = {
        "offered": nodes.sent_bytes.sum("node") / full,
        "accepted": nodes.received_bytes.sum("node") / full,
        "latency_ns": nodes.latency_ps.sum("node") / packets.where(packets > 0) / 1e3,
        "packets": packets,
    }
    if recorded(run, "ports"):
        ports = run.ports.isel(time=some)
        for kind in CLASSES:
            chosen = (ports.kind == kind) & ports.lit
            n = int(chosen.sum())
            if n:
                for name, counter in (("busy", "busy_ps"), ("stalled", "stall_ps")):
                    total = ports[counter].where(chosen, 0).sum(("router", "port"))
                    series[f"{kind}_{name}"] = total / (n * interval)
    for name, values in series.items():
        kind, _, what = name.partition("_")
        unit, about = SYSTEM.get(name) or LINKS_OF_A_CLASS[what]
        values.attrs = {"unit": unit, "about": about.format(kind=kind)}
    return xr.Dataset(series, {"time": run.time[some]})


def pieces(series: xr.DataArray) -> Iterator[tuple[int, xr.DataArray]]:
    """Yield a series that may be larger than memory some samples at a time, each part with the
    number of its first sample."""
    row = series.dtype.itemsize * int(np.prod(series.shape[1:]))
    step = max(1, PIECE_BYTES // max(1, row))
    for first in range(0, series.sizes["time"], step):
        yield first, series[first : first + step]


def total_over_time(series: xr.DataArray, *dims: str) -> Any:
    """Returns the sum of a series over all samples, and over `dims`."""
    rest = [size for dim, size in series.sizes.items() if dim not in ("time", *dims)]
    total = np.zeros(rest, np.int64)
    for _, some in pieces(series):
        total += some.sum(("time", *dims)).data
    return total


def tile_samples(run: Run) -> int:
    """Returns how many samples of network tiles a run has."""
    m = run.machine
    return len(run.time) * m.n_routers * (m.routers - 1 + m.global_links)


def recorded(run: Run, table: str) -> bool:
    return table not in ("ports", "channels") or bool(getattr(run.experiment.metrics, table))


def input_counters(run: Run) -> Any:
    """Returns what first packets waited for over the run, as INPUT_COUNTERS by router and port."""
    found = [total_over_time(run.inputs[name]) for name in INPUT_COUNTERS[:3]]
    last = run.inputs["longest_ps"][-1].data if len(run.time) else np.zeros_like(found[0])
    return np.stack([*found, last], axis=-1)


def summary(run: Run) -> Performance:
    """Returns the figures of `odonata.performance`, computed from the files of a run."""
    nodes, groups = run.nodes, run.groups

    def total(series: xr.DataArray) -> int:
        return int(series.sum())

    def last(series: xr.DataArray) -> int:
        return int(series[-1].max()) if len(run.time) else 0

    counters = busy = None
    if recorded(run, "ports"):
        counters, busy = _by_group(run)
    levels = run.read("flows/levels") if "flows" in run.file else None
    if levels is not None and not levels.any():  # it goes on, or died
        levels = None
    inputs = input_counters(run) if counters is not None and run.network.switched else None
    return summarise(
        run.network,
        run.reached_ps,
        Totals(
            messages=total(nodes.sent_messages), packets=total(nodes.received_packets),
            hops=total(nodes.hops), offered=total(groups.offered_bytes),
            injected=total(groups.injected_bytes), accepted=total(groups.accepted_bytes),
            made=total(groups.measured_made), measured=total(groups.measured_packets),
            latency_ps=total(groups.measured_latency_ps),
            longest_ps=last(groups.longest_latency_ps), last_in_ps=run.last_in_ps,
        ),
        total_over_time(groups.latencies, "group"),
        levels,
        counters,
        busy,
        inputs,
    )  # fmt: skip


def _by_group(run: Run) -> tuple[Any, Any]:
    """Returns totals by group and port (those of its routers, then its nodes'), as the engine has
    them; the bytes on a node's own link are not recorded, and are not needed."""
    groups = run.machine.groups
    own = {name: total_over_time(run.ports[name]).reshape(groups, -1)
           for name in (*COUNTERS, "busy_ps")}  # fmt: skip
    theirs = {name: total_over_time(run.nodes[f"inject_{name}"]).reshape(groups, -1)
              for name in ("packets", "flits", "stall_ps", "wait_ps", "busy_ps")}  # fmt: skip
    none = np.zeros_like(theirs["packets"])
    both = {name: np.hstack((own[name], theirs.get(name, none))) for name in own}
    return np.stack([both[name] for name in COUNTERS], axis=2), both["busy_ps"]
