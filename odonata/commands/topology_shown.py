"""What `odonata topology` shows of a machine: its measures, who would share it, its presets."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from odonata.commands.output import print_json, print_table
from odonata.experiment.units import show_bandwidth, show_count, show_power, show_time
from pdes.errors import Refused
from pdes.partition import deal
from topology import Dragonfly
from topology.measure import Counts, Measures, measure
from topology.power import NetworkPower
from topology.presets import PRESETS, power_of

ROWS = 5
"""The largest number of values of a distribution that are shown; the rest is summed."""


@dataclass(frozen=True)
class Share:
    """What a number of ranks would have: groups in contiguous blocks, as a simulation deals them.

    Two ranks can be as far apart in time as a global cable is long, so zero latency means no
    parallelism at all.
    """

    ranks: int
    groups: list[int]
    crossing: int
    """The number of global cables between groups of different ranks."""
    lookahead_ps: int


@dataclass(frozen=True)
class Portrait:
    """What is printed about a machine."""

    preset: str
    machine: Dragonfly
    measures: Measures
    share: Share | None = None

    @property
    def changed(self) -> bool:
        """Tells whether the machine differs from its preset."""
        return PRESETS[self.preset].machine != self.machine


def share(machine: Dragonfly, ranks: int) -> Share:
    """Returns what each rank would have. Refused where there are more ranks than groups."""
    if ranks < 1:
        raise Refused(f"{ranks} ranks: at least one")
    g = machine.groups
    starts = deal(np.arange(g + 1), np.ones(g), ranks).unit_starts
    groups = np.diff(starts)
    apart = (g * g - int((groups**2).sum())) // 2
    return Share(ranks, groups.tolist(), apart * machine.copies, machine.global_.latency_ps)


def portrait(preset: str, machine: Dragonfly, ranks: int | None = None) -> Portrait:
    dealt = share(machine, ranks) if ranks is not None else None
    return Portrait(preset, machine, measure(machine), dealt)


def portrait_facts(of: Portrait) -> dict[str, Any]:
    """Returns the figures for JSON: bandwidths in bytes per second, latencies in picoseconds."""
    machine, m = of.machine, of.measures
    return {
        "preset": of.preset,
        "changed": of.changed,
        "machine": {k.rstrip("_"): v for k, v in asdict(machine).items()},
        "counts": {
            "nodes": machine.n_nodes,
            "routers": machine.n_routers,
            "radix": machine.radix,
            "links": machine.n_links,
            "links_per_pair": machine.copies,
            "dark_ports": machine.dark * machine.groups,
        },
        "measures": {
            **asdict(m),
            "diameter": m.diameter,
            "mean_distance": m.mean_distance,
            "mean_route": m.mean_route,
            "mean_diversity": m.mean_diversity,
        },
        "ranks": asdict(of.share) if of.share else None,
    }


def portrait_table(of: Portrait) -> Table:
    machine, m, preset = of.machine, of.measures, PRESETS[of.preset]
    rows = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2))
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column(ratio=1)
    name = f"{of.preset}, changed" if of.changed else f"{of.preset}: {preset.about}"
    rows.add_row("machine", name)
    if not of.changed:
        rows.add_row("source", f"[dim]{preset.source}[/dim]")
    watts = power_of(machine)
    rows.add_row("network power", f"{network_watts(machine, watts)}\n[dim]{watts.source}[/dim]")
    rows.add_row("shape", f"p={machine.nodes} nodes per router, "
                 f"a={machine.routers} routers per group, "
                 f"h={machine.global_links} global links per router, g={machine.groups} groups, "
                 f"{machine.cabling} cabling")  # fmt: skip
    rows.add_row("size", f"{machine.n_nodes:,} nodes, {machine.n_routers:,} routers "
                 f"of {machine.radix} ports")  # fmt: skip
    for kind, count in machine.n_links.items():
        link = machine.link(kind)
        rows.add_row(f"{kind} links", f"{count:,} of {show_bandwidth(link.bandwidth)} and "
                     f"{show_time(link.latency_ps)}, {show_bandwidth(m.bandwidths[kind])} "
                     "in all")  # fmt: skip
    if machine.groups > 1:
        used = machine.global_ports - machine.dark
        rows.add_row("between groups", f"{_plural(machine.copies, 'cable')} "
                     f"per pair; {used:,} of {machine.global_ports:,} global ports per group used, "
                     f"{machine.dark:,} dark")  # fmt: skip
    rows.add_row("bisection", f"{show_bandwidth(m.bisection)} each way, "
                 f"{show_bandwidth(2 * m.bisection / machine.n_nodes)} "
                 "for each node of a half")  # fmt: skip
    rows.add_row("distance", f"{_spread(m.distances, 'hop')}; mean {m.mean_distance:.3f}, "
                 f"diameter {m.diameter}")  # fmt: skip
    rows.add_row("minimal routes", f"{_spread(m.routes, 'hop')}; mean {m.mean_route:.3f}, "
                 f"a packet visits {m.visited:.3f} routers")  # fmt: skip
    rows.add_row("shortest paths", f"{_spread(m.diversity, 'path')}; "
                 f"mean {m.mean_diversity:.3g}")  # fmt: skip
    if of.share:
        rows.add_row(f"on {_plural(of.share.ranks, 'rank')}", _dealt(of))
    return rows


def preset_facts() -> dict[str, dict[str, Any]]:
    """Returns every preset for JSON, by name, with the power of its whole network in watts: without
    traffic, and with every cable full in both directions."""
    return {
        name: asdict(preset)
        | {
            "network_idle_w": preset.power.idle_w(preset.machine),
            "network_peak_w": preset.power.peak_w(preset.machine),
        }
        for name, preset in PRESETS.items()
    }


def network_watts(machine: Dragonfly, power: NetworkPower) -> str:
    """Returns what a network draws without traffic and with every cable full, as '67.3 to 70.8
    kW'."""
    low, high = show_power(power.idle_w(machine)), show_power(power.peak_w(machine))
    return f"{low.split()[0] if low.split()[1] == high.split()[1] else low} to {high}"


def preset_table() -> Table:
    rows = Table(box=None, pad_edge=False, padding=(0, 2))
    rows.add_column("name", style="bold", no_wrap=True)
    rows.add_column("nodes", justify="right")
    rows.add_column("p, a, h, g", no_wrap=True)
    rows.add_column("what, and who says so", ratio=1)
    for name, preset in PRESETS.items():
        m = preset.machine
        shape = f"{m.nodes}, {m.routers}, {m.global_links}, {m.groups}"
        rows.add_row(name, f"{m.n_nodes:,}", shape, f"{preset.about}\n[dim]{preset.source}[/dim]")
    return rows


def describe(
    preset: str,
    machine: Dragonfly,
    ranks: int | None,
    plot: Path | None,
    graphml: Path | None,
    as_json: bool,
) -> None:
    """Print the machine, and draw or export it where asked to."""
    for path in (plot, graphml):
        if path is not None and not path.absolute().parent.is_dir():
            raise Refused(f"{path}: there is no directory {path.absolute().parent}")
    if plot is not None:
        from odonata.figures.machine import draw

        draw(machine, plot)
    if graphml is not None:
        from topology.graph import write_graphml

        write_graphml(machine, graphml)
    with Console(stderr=True).status("measuring"):
        of = portrait(preset, machine, ranks)
    if as_json:
        print_json(portrait_facts(of))
    else:
        print_table(portrait_table(of))


def _dealt(of: Portrait) -> str:
    dealt, cables = of.share, of.machine.n_links["global"]
    assert dealt is not None
    least, most = min(dealt.groups), max(dealt.groups)
    each = f"{most}" if least == most else f"{least} or {most}"
    part = f" ({dealt.crossing / cables:.0%})" if cables else ""
    words = (
        f"{each} group{'s' * (most != 1)} each; "
        f"{dealt.crossing:,} of {cables:,} global cables{part} cross ranks"
    )
    if dealt.ranks > 1:
        words += f"; lookahead at least {show_time(dealt.lookahead_ps)}"
    return words


def _spread(counts: Counts, what: str) -> str:
    """Returns '4.2 % 1 hop, 22 % 2 hops': the commonest values, in order, and the rest together."""
    pairs = sum(counts.values())
    if not pairs:
        return "one router"
    common = sorted(sorted(counts, key=lambda value: -counts[value])[:ROWS])
    words = [f"{_percent(counts[v], pairs)} {_plural(v, what)}" for v in common]
    rest = {value: count for value, count in counts.items() if value not in common}
    if rest:
        words.append(f"{_percent(sum(rest.values()), pairs)} {_span(rest)}")
    return f"of {show_count(pairs)} router pairs, {', '.join(words)}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3g} %"


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _span(counts: dict[int, int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"
