"""What a run did, in a few lines: a name, a figure, and what it means. For tables of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odonata.units import show_time

if TYPE_CHECKING:
    from odonata.experiment import Experiment
    from odonata.measured import Performance

Row = tuple[str, str, str]


def of_run(experiment: Experiment, told: Performance, reached_ps: int, complete: bool) -> list[Row]:
    network, m = experiment.network, experiment.network.machine
    short = "" if complete else f"INCOMPLETE: of {show_time(experiment.end)}"
    return [
        ("machine", f"{told.nodes:,} nodes",
         f"p={m.nodes} a={m.routers} h={m.global_links} g={m.groups}, {m.cabling} cabling"),
        ("load", f"{network.traffic.load:g}",
         f"{network.traffic.pattern} traffic, {network.routing} routing"),
        ("simulated", show_time(reached_ps), short),
        *of_network(told),
    ]  # fmt: skip


def of_network(told: Performance) -> list[Row]:
    state = "saturated: source queues grow" if told.saturated else f"of {told.offered:.3f} offered"
    rows = [
        ("packets", f"{told.packets:,}", f"{told.mean_hops:.2f} routers each"),
        ("throughput", f"{told.throughput:.3f}", state),
        ("latency, mean", f"{told.mean_latency_ns:,.1f} ns",
         f"median {told.median_latency_ns:,.0f}, 99 % {told.p99_latency_ns:,.0f}, "
         f"most {told.max_latency_ns:,.0f}"),
    ]  # fmt: skip
    for kind, link in told.links.items():
        rows.append(
            (f"{kind} links", f"{link['utilisation']:.1%}",
             f"busiest {link['max_utilisation']:.1%}; {link['stall_to_flit']:.3f} stalls a flit")
        )  # fmt: skip
    return rows
