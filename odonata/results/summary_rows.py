"""What a run did, in a few lines: a name, a figure, and what it means. For tables of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odonata.experiment.units import show_bandwidth, show_time
from odonata.results.job_table import makespan_ps, mean, microseconds, tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odonata.agents.network import Network
    from odonata.experiment.reading import Experiment
    from odonata.jobs.record import JobRecord
    from odonata.results.performance import Performance

Row = tuple[str, str, str]


def of_run(
    experiment: Experiment,
    told: Performance,
    reached_ps: int,
    complete: bool,
    jobs: Sequence[JobRecord] = (),
) -> list[Row]:
    """Of a run that has come to `reached_ps`; with its jobs, where it runs any."""
    network, m = experiment.network, experiment.network.machine
    note = ""
    if complete and experiment.end is None:  # not when it was noticed that nothing is left
        reached_ps = max(round(told.last_arrival_ns * 1e3), makespan_ps(jobs) or 0)
    if network.ends:
        note = f"the last packet came at {told.last_arrival_ns / 1e3:,.3f} us"
    rows = [
        ("machine", f"{told.nodes:,} nodes",
         f"p={m.nodes} a={m.routers} h={m.global_links} g={m.groups}, {m.cabling} cabling"),
        *_sent(network),
        ("simulated", show_time(reached_ps) if experiment.end else microseconds(reached_ps),
         note if complete else f"INCOMPLETE: {still(experiment)}"),
    ]  # fmt: skip
    if not reached_ps:
        return [*rows, ("packets", "-", "no sample has been written yet")]
    if network.workload:
        return [*rows, *of_jobs(jobs, reached_ps), *_packets(told), _latency(told), *_links(told)]
    warmup = network.warmup_ps
    if reached_ps <= warmup:
        nothing = ("throughput", "-", f"all of it warm-up, {show_time(warmup)}")
        return [*rows, *_packets(told), nothing, *_links(told)]
    return [*rows, *of_network(told)]


def still(experiment: Experiment) -> str:
    """How far a run should have come."""
    if experiment.end is not None:
        return f"of {show_time(experiment.end)}"
    return "some jobs are not done" if experiment.network.workload else "something is left"


def of_jobs(jobs: Sequence[JobRecord], reached_ps: int) -> list[Row]:
    """Times are means over the jobs of which they are known."""
    counts, last = tally(jobs, reached_ps), makespan_ps(jobs)
    note = str(counts) if last is None else f"the last ended at {microseconds(last)}"
    rows = [("done", f"{counts.done:,} of {len(jobs):,}", note)]
    for name, times, about in (
        ("waited", [job.waiting_ps for job in jobs], "mean, to a job's start"),
        ("communication", [job.communication_ps for job in jobs], "mean, to its end"),
    ):
        known = [time for time in times if time is not None]
        words = f"{about}; most {microseconds(max(known))}" if known else "nothing yet"
        rows.append((name, microseconds(mean(times)), words))
    return rows


def _sent(network: Network) -> list[Row]:
    """Who sends what, and over which links."""
    if network.workload:
        w, m = network.workload, network.machine
        local, terminal, far = (
            show_bandwidth(link.bandwidth) for link in (m.local, m.terminal, m.global_)
        )
        nic = ", ".join(
            f"{show_time(ps)} to {what}"
            for ps, what in ((w.send_ps, "send"), (w.match_ps, "match"), (w.host_ps, "hand over"))
        )
        return [
            ("links", local, f"local; to nodes {terminal}, global {far}"),
            ("tasks", f"{w.tasks_per_node} a node", nic),
            ("jobs", f"{len(w.jobs):,}", f"{w.allocation}, {w.order}, {network.routing} routing"),
        ]
    t = network.traffic[0]
    return [("load", f"{t.load:g}", f"{t.pattern} traffic, {network.routing} routing")]


def of_network(told: Performance) -> list[Row]:
    state = "saturated: source queues grow" if told.saturated else f"of {told.offered:.3f} offered"
    return [
        *_packets(told),
        ("throughput", f"{told.throughput:.3f}", state),
        _latency(told),
        *_links(told),
    ]


def _latency(told: Performance) -> Row:
    if not told.measured_packets:
        return ("latency, mean", "-", "no packet was measured")
    return (
        "latency, mean", f"{told.mean_latency_ns:,.1f} ns",
        f"median {told.median_latency_ns:,.0f}, 99 % {told.p99_latency_ns:,.0f}, "
        f"most {told.max_latency_ns:,.0f}",
    )  # fmt: skip


def _packets(told: Performance) -> list[Row]:
    each = f"{told.mean_hops:.2f} routers each" if told.packets else "none has arrived"
    rows = [("packets", f"{told.packets:,}", each)]
    if told.measured_packets != told.packets:
        rows.append(("measured", f"{told.measured_packets:,}",
                     f"and {told.undelivered_packets:,} still under way"))  # fmt: skip
    return rows


def _links(told: Performance) -> list[Row]:
    return [
        (f"{kind} links", f"{link['utilisation']:.1%}",
         f"busiest {link['max_utilisation']:.1%}; {link['stall_to_flit']:.3f} stalls a flit")
        for kind, link in told.links.items()
    ]  # fmt: skip
