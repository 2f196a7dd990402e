"""The summary of a run as rows of a name, a figure and a note, for tables of any kind.

Where packets are simulated a row has several figures (`of_packets`); the rows of months of jobs are
those figures of the register (`of_schedule`). What was measured of power, and what came of a
market, follow with rows of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odonata.experiment.experiment import Experiment
from odonata.experiment.units import (
    show_bandwidth,
    show_duration,
    show_energy,
    show_size,
    show_time,
)
from odonata.results.job_table import makespan_ps, mean, microseconds, powered, tally
from odonata.results.market_measures import market_rows
from odonata.results.power_measures import power_rows
from odonata.results.register import FIGURES, NETWORK, SCHEDULE, number, of_kind
from odonata.results.schedule_series import fragmentation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odonata.agents.network import Network
    from odonata.jobs.record import JobRecord
    from odonata.jobs.schedule import Schedule
    from odonata.results.measured import AnyExperiment, Measured
    from odonata.results.performance import Performance
    from odonata.traces.trace import Trace
    from topology import Dragonfly

Row = tuple[str, str, str]


def summary(it: Measured, reached_ps: int, complete: bool) -> list[Row]:
    """Returns the rows of what a run that has reached `reached_ps` had: its network and its jobs;
    none of a run without packets that kept nothing."""
    if it.performance is not None:
        return of_packets(it, reached_ps, complete)
    return of_schedule(it) if it.schedule is not None else []


def sections(
    it: Measured, reached_ps: int, complete: bool, energy: Sequence[Row] = ()
) -> list[list[Row]]:  # fmt: skip
    """Returns the rows of a run: of its jobs or its network, then of its power (and of the `energy`
    of its network) and its market, which in a run of packets follow without a line between."""
    parts = [summary(it, reached_ps, complete), watts_rows(it)]
    if it.market is not None:
        parts.append(market_rows(it.market.measures, it.market))
    if it.performance is not None:
        return [[*(row for part in parts for row in part), *energy]]
    return [part for part in parts if part]


def watts_rows(it: Measured) -> list[Row]:
    """Returns the rows of what was measured of power; none where it was not simulated. In a run of
    packets nodes are told from the network."""
    rows = [] if it.power is None else power_rows(it.power)
    packets = it.performance is not None
    return [(f"{name} of nodes" if packets and name == "energy" else name, figure, note)
            for name, figure, note in rows]  # fmt: skip


def of_packets(it: Measured, reached_ps: int, complete: bool) -> list[Row]:
    """Returns the rows of a run of packets; with its jobs, where it has any."""
    experiment, figures, jobs = it.experiment, it.performance, it.records
    assert isinstance(experiment, Experiment)
    assert figures is not None
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
    more = [(one.head, one.text(one.value(it)), one.note) for one in FIGURES
            if one.row and one.kind == NETWORK]  # fmt: skip
    if network.workload:
        return [
            *rows,
            *of_jobs(jobs, reached_ps),
            *_packets(figures),
            _latency(figures),
            *_links(figures),
            *more,
        ]
    warmup = network.warmup_ps
    if reached_ps <= warmup:
        nothing = ("throughput", "-", f"all of it warm-up, {show_time(warmup)}")
        return [*rows, *_packets(figures), nothing, *_links(figures)]
    return [*rows, *of_network(figures), *more]


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


def still(experiment: AnyExperiment) -> str:
    """Returns the time that a run was to reach."""
    if experiment.run.end is not None:
        return f"of {show_time(experiment.run.end)}"
    return "some jobs are not done" if "jobs" in experiment.facets else "something is left"


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


# -- of jobs without packets

OF_SCHEDULES = tuple(it for it in of_kind(SCHEDULE) if it.everywhere)
STATES_SHOWN = 3
"""The first of these count jobs; those that were molded come after them."""


def account_of(trace: Trace, nodes: int, machine: Dragonfly | None, overrun: str = "") -> list[str]:
    """Returns sentences about the trace and the machine: a heading, and what is to be known."""
    longer = int(((trace.run_us > trace.requested_us) & (trace.requested_us >= 0)).sum())
    fate = {"kill": "they are killed then; --overrun extend (trace.overrun) lets them run on",
            "extend": "they run on"}.get(overrun, "")  # fmt: skip
    late = [f"{longer:,} run for longer than requested: {fate}"] if longer and fate else []
    load = trace.load(nodes)
    span = trace.span_us / 1e6
    about = [f"submitted within {show_duration(span)}" if span else "submitted together"]
    if trace.clock is not None and len(trace):
        begin, end = trace.clock.words(trace.submit_us[[0, -1]])
        about.append(f"from {begin} to {end} ({trace.clock.name})")
    about += [f"offered load {load:.3f}"] if load == load else []
    if machine is not None:
        about.append(f"placed on a dragonfly p={machine.nodes} a={machine.routers} "
                     f"h={machine.global_links} g={machine.groups}")  # fmt: skip
    return [f"{trace.name}: {len(trace):,} jobs on {nodes:,} nodes", ", ".join(about),
            *trace.account.lines(), *late]  # fmt: skip


def spread_rows(schedule: Schedule) -> list[tuple[str, str, str]]:
    """Returns over how many groups and routers a running job is spread, where jobs were placed."""
    found = fragmentation(schedule)
    if found is None:
        return []
    facts = found.facts()
    return [(f"{word} per job", number(facts[f"{word}_per_job"]),
             f"at the fewest {number(facts[f'fewest_{word}_per_job'])}")
            for word in ("groups", "routers")]  # fmt: skip


def molded_rows(schedule: Schedule) -> list[tuple[str, str, str]]:
    """Returns how many jobs ran in a configuration that a power policy chose, where jobs are
    moldable."""
    if schedule.molds is None:
        return []
    return [("molded", f"{len({*schedule.molds.job.tolist()}):,}",
             "jobs, whose run times and watts are those that were measured")]  # fmt: skip


def of_schedule(it: Measured) -> list[Row]:
    """Returns all rows of one schedule; states that no job is in are left out."""
    schedule, measures = it.schedule, it.measures
    assert schedule is not None
    rows = [(one.name, one.text(one.value(it)), one.note) for one in OF_SCHEDULES]
    left = [(name, f"{count:,}", "jobs, not done") for name, count in
            (("running", measures.running), ("waiting", measures.waiting),
             ("to come", measures.to_come)) if count]  # fmt: skip
    return [*rows[:STATES_SHOWN], *left, *molded_rows(schedule), *rows[STATES_SHOWN:],
            *spread_rows(schedule)]  # fmt: skip
