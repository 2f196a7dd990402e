"""The summary of a run as rows of a name, a figure and a note, for tables of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odonata.experiment.units import show_bandwidth, show_energy, show_size, show_time
from odonata.results.job_table import makespan_ps, mean, microseconds, powered, tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odonata.agents.network import Network
    from odonata.experiment.experiment import Experiment
    from odonata.jobs.record import JobRecord
    from odonata.results.performance import Performance
    from topology import Dragonfly

Row = tuple[str, str, str]


def of_run(
    experiment: Experiment,
    figures: Performance,
    reached_ps: int,
    complete: bool,
    jobs: Sequence[JobRecord] = (),
) -> list[Row]:
    """Returns the rows of a run that has reached `reached_ps`; with its jobs, where it has any."""
    network, m, end = experiment.model(), experiment.machine, experiment.run.end
    note = ""
    reached_ps = simulated_ps(end, complete, reached_ps, figures.last_arrival_ns, jobs)
    if network.ends:
        note = f"the last packet came at {figures.last_arrival_ns / 1e3:,.3f} us"
    rows = [
        ("machine", f"{figures.nodes:,} nodes",
         f"p={m.nodes} a={m.routers} h={m.global_links} g={m.groups}, {m.cabling} cabling"
         + rounded(m)),
        *_sent(network),
        ("simulated", simulated_text(end, reached_ps),
         note if complete else f"INCOMPLETE: {still(experiment)}"),
    ]  # fmt: skip
    if not reached_ps:
        return [*rows, ("packets", "-", "no sample has been written yet")]
    if network.workload:
        return [
            *rows,
            *of_jobs(jobs, reached_ps),
            *_packets(figures),
            _latency(figures),
            *_links(figures),
        ]
    warmup = network.warmup_ps
    if reached_ps <= warmup:
        nothing = ("throughput", "-", f"all of it warm-up, {show_time(warmup)}")
        return [*rows, *_packets(figures), nothing, *_links(figures)]
    return [*rows, *of_network(figures)]


def rounded(machine: Dragonfly) -> str:
    """Returns a note where ports of a group have no cable because they cannot be spread evenly over
    the other groups; "" where nobody would be surprised."""
    if machine.links_per_pair is not None or not machine.dark or machine.groups == 1:
        return ""
    return f"; {machine.dark} of {machine.global_ports} global ports of a group have no cable"


def simulated_ps(
    end: int | None,
    complete: bool,
    reached_ps: int,
    last_arrival_ns: float,
    jobs: Sequence[JobRecord],
) -> int:
    """Returns the time that a run has simulated: to its end or, if that was when nothing was left,
    to the last thing that happened, and not to when that was noticed."""
    if complete and end is None:
        return max(round(last_arrival_ns * 1e3), makespan_ps(jobs) or 0)
    return reached_ps


def still(experiment: Experiment) -> str:
    """Returns the time that a run was to reach."""
    if experiment.run.end is not None:
        return f"of {show_time(experiment.run.end)}"
    return "some jobs are not done" if experiment.jobs else "something is left"


def of_jobs(jobs: Sequence[JobRecord], reached_ps: int) -> list[Row]:
    """Returns the rows of jobs. Times are means over the jobs for which they are known."""
    counts, last = tally(jobs, reached_ps), makespan_ps(jobs)
    note = str(counts) if last is None else f"the last ended at {microseconds(last)}"
    rows = [("done", f"{counts.done:,} of {len(jobs):,}", note)]
    for name, times, about in (
        ("waited", [job.waiting_ps for job in jobs], "mean, to a job's start"),
        ("run time", [job.run_time_ps for job in jobs], "mean, to its end"),
    ):
        known = [time for time in times if time is not None]
        words = f"{about}; most {microseconds(max(known))}" if known else "nothing yet"
        rows.append((name, microseconds(mean(times)), words))
    if powered(jobs):
        joules = sum(job.energy_j or 0.0 for job in jobs)
        received = sum(job.received_bytes or 0 for job in jobs)
        each = f"{joules / received * 1e9:,.4g} nJ per byte received" if received else ""
        rows.append(("energy of jobs", show_energy(joules), each))
    return rows


def _sent(network: Network) -> list[Row]:
    """Returns the rows about the traffic and the links."""
    rows = []
    if network.workload:
        w, m = network.workload, network.machine
        local, terminal, far = (
            show_bandwidth(link.bandwidth) for link in (m.local, m.terminal, m.global_)
        )
        nic = ", ".join(
            f"{show_time(ps)} to {what}"
            for ps, what in ((w.send_ps, "send"), (w.match_ps, "match"), (w.host_ps, "hand over"))
        )
        host = [
            (w.send_setup_ps, w.send_copy, "before"),
            (w.receive_setup_ps, w.receive_copy, "after"),
        ]
        for setup, copy, when in host:
            if setup or copy is not None:
                rate = "" if copy is None else f" and a copy at {show_bandwidth(copy)}"
                nic += f"; {show_time(setup)}{rate} {when}"
        rows = [
            ("links", local, f"local; to nodes {terminal}, global {far}"),
            ("tasks", f"{w.tasks_per_node} per node", nic),
            ("jobs", f"{len(w.jobs):,}", f"{w.allocation}, {w.order}, {network.routing} routing"),
        ]
    name = "background" if rows else "load"
    rows += [
        (name, f"{t.load:g}", f"{t.pattern} traffic, {network.routing} routing")
        for t in network.traffic
    ]
    if network.crossbar is not None:
        room = "no output buffers"
        if network.output_buffer is not None:
            room = f"output buffers of {show_size(network.output_buffer)}"
        rows.append(("crossbars", f"{network.crossbar:g}", f"of a local link's bandwidth; "
                     f"{network.arbiter} arbiter, {room}"))  # fmt: skip
    if network.ejection is not None:
        buffer = show_size(network.ejection_buffer)
        about = f"drained by a node; buffers of {buffer}, {network.duplex} duplex"
        rows.append(("ejection", show_bandwidth(network.ejection), about))
    return rows


def of_network(figures: Performance) -> list[Row]:
    found = figures.steadiness
    star = MARK if found.marked and not found.settled else ""
    return [
        *_packets(figures),
        ("throughput", f"{figures.throughput:.3f}{star}", f"of {figures.offered:.3f} offered"),
        _latency(figures),
        ("steady state", found.verdict, (MARK.strip() + " " if found.marked else "") + found.why),
        *_links(figures),
    ]


MARK = " *"
"""Stands behind a mean that is not of a steady state."""


def _latency(figures: Performance) -> Row:
    if not figures.measured_packets:
        return ("latency, mean", "-", "no packet was measured")
    return (
        "latency, mean",
        f"{figures.mean_latency_ns:,.1f} ns{MARK if figures.steadiness.marked else ''}",
        f"median {figures.median_latency_ns:,.0f}, 99 % {figures.p99_latency_ns:,.0f}, "
        f"most {figures.max_latency_ns:,.0f}",
    )  # fmt: skip


def _packets(figures: Performance) -> list[Row]:
    each = f"{figures.mean_hops:.2f} routers each" if figures.packets else "none has arrived"
    rows = [("packets", f"{figures.packets:,}", each)]
    if figures.measured_packets != figures.packets:
        rows.append(("measured", f"{figures.measured_packets:,}",
                     f"and {figures.undelivered_packets:,} still under way"))  # fmt: skip
    return rows


def _links(figures: Performance) -> list[Row]:
    return [
        (f"{kind} links", f"{link['utilisation']:.1%}",
         f"busiest {link['max_utilisation']:.1%}; "
         f"{link['stall_to_flit']:.3f} credit stalls per flit")
        for kind, link in figures.links.items()
    ] + _inputs(figures)  # fmt: skip


BUSIER = 1.2
"""How many times busier than any inject link an eject link is where that is explained."""


def explained(figures: Performance) -> str:
    """Returns a sentence where an eject link is busier than any inject link, "" where none is."""
    eject, inject = (figures.links[kind]["max_utilisation"] if kind in figures.links else 0.0
                     for kind in ("eject", "inject"))  # fmt: skip
    return EJECTED if eject > BUSIER * inject else ""


EJECTED = (
    "Eject links lead from routers to nodes, inject links from nodes to routers: where several "
    "nodes send to one, its eject link is busier than any inject link."
)


def simulated_text(end: int | None, time_ps: int) -> str:
    """Returns the time that was simulated: in the unit of the end or, without one, in us."""
    return microseconds(time_ps) if end is None else show_time(time_ps)


def _inputs(figures: Performance) -> list[Row]:
    """Returns a row for each class of input ports of routers with a crossbar: how many first
    packets wait, and what for; and where the longest wait for the crossbar was."""
    if not figures.inputs:
        return []
    found = [
        (f"{kind} queues", f"{sum(causes.values()):.3g}",
         "first packets wait per input; "
         + ", ".join(f"{cause} {part:.3g}" for cause, part in causes.items()))
        for kind, causes in figures.inputs["by_class"].items()
    ]  # fmt: skip
    where = (
        f"the longest, at router {figures.inputs['router']}, input port {figures.inputs['port']}"
    )
    return [*found, ("crossbar wait", show_time(figures.inputs["longest_ps"]), where)]
