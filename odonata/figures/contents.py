"""The pictures of a run of packets: which figures, in reading order, with their captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from odonata.experiment.units import show_bandwidth, show_time
from odonata.figures import inputs
from odonata.figures import jobs as job_figures
from odonata.figures import network as figures
from odonata.figures import placement as placements
from odonata.figures import seen as sights
from odonata.figures.congestion import congestion_map, map_size, marked, router_stalls
from odonata.figures.network import in_short, shares, span_ps
from odonata.figures.picture import Picture
from odonata.jobs.placement import Placement
from odonata.results import derived
from odonata.results.derived import input_counters, recorded, tile_samples
from odonata.results.input_waits import input_waits
from odonata.results.job_table import microseconds
from policies.allocation import ALLOCATIONS

if TYPE_CHECKING:
    from odonata.results.run import Run

SIZE, SQUARE = (5.8, 3.3), (5.8, 4.7)
"""The size in inches: a column and a half of a paper, half of a page of the report."""


def _no_jobs(run: Run) -> str:
    begun = any(it.start_ps is not None for it in run.job_records)
    return _no_samples(run) or ("" if begun else "No job has been started yet.")


def _none_done(run: Run) -> str:
    done = any(it.end_ps is not None for it in run.job_records)
    return _no_samples(run) or ("" if done else "No job is done yet.")


def _no_samples(run: Run) -> str:
    return "" if len(run.time) else "No sample has been written yet."


def _nothing_seen(run: Run) -> str:
    return _no_samples(run) or sights.missing(run)


def _no_ports(run: Run) -> str:
    if not recorded(run, "ports"):
        return "Ports were not recorded (metrics.ports = false)."
    return _no_samples(run)


def _no_links(run: Run) -> str:
    m = run.machine
    between = m.routers > 1 or (m.groups > 1 and m.global_links > 0)
    return _no_ports(run) or ("" if between else "One router: there are no links between routers.")


def _no_tiles(run: Run) -> str:
    many = tile_samples(run) > derived.MOST_TILE_SAMPLES
    return _no_links(run) or (
        "Too many samples for this figure; odonata.counters_of works them out where "
        "there is memory for it." if many else "")  # fmt: skip


def _no_packets(run: Run) -> str:
    if _no_samples(run):
        return _no_samples(run)
    if int(run.groups.measured_packets.sum()):
        return ""
    return f"No packet was measured: none that was made after the warm-up of " \
           f"{show_time(run.network.warmup_ps)} has arrived."  # fmt: skip


def _no_groups(run: Run) -> str:
    return _no_samples(run) or ("" if run.machine.groups > 1 else "One group: there is no other.")


def _no_cables(run: Run) -> str:
    return _no_groups(run) or _no_ports(run)


def _step(run: Run) -> str:
    """Returns what a step of a series is, in words."""
    steps, n = len(shares(run)), len(run.time)
    width = show_time(run.experiment.metrics.interval_ps)
    merged = "" if steps == n else f", {-(-n // steps)} of which are merged into a step"
    return f"A step is the mean over an interval of {width}{merged}."


def _of_timeline(run: Run) -> str:
    assert run.network.workload is not None
    launch = show_time(run.network.workload.launch_ps)
    return (f"Each job from its start to its last task's end. Before that a thin line from its "
            f"arrival: it waits for nodes, and for the {launch} that a command takes to reach "
            f"them.")  # fmt: skip


def _of_talk(run: Run) -> str:
    return ("From a job's start to its last task's end: a dot per job that is done, a bar for the "
            "mean of a pattern. In brackets how many there are.")  # fmt: skip


def _of_held(run: Run) -> str:
    return ("What jobs have, and what those in the queue ask for. A job that was given its nodes "
            "waits until the command to start has reached them.")  # fmt: skip


def _of_placement(run: Run) -> str:
    m = run.machine
    time, jobs = job_figures.fullest(run)
    taken = sum(it.nodes for it in jobs)
    numbers = "of jobs" if len(jobs) > len(placements.FEW) else "labels of nodes"
    return (f"At {microseconds(time)}, when the most jobs ran: {len(jobs):,}, on {taken:,} of "
            f"{m.n_nodes:,} nodes. A panel is a group, a row in it a router, a cell a node; "
            f"numbers, where there is room for them, are {numbers}.")  # fmt: skip


def _placed(run: Run, axes: Axes) -> None:
    _, jobs = job_figures.fullest(run)
    labels = [np.array(it.labels, np.int64) for it in jobs]
    assert run.network.workload is not None
    policy = ALLOCATIONS.named(run.network.workload.allocation)
    placed = Placement(run.machine, policy, labels, np.zeros(run.machine.n_nodes, bool))
    placements.panels(placed, [it.name for it in jobs], axes)


def _placement_size(run: Run) -> tuple[float, float]:
    return placements.size(run.machine, len(job_figures.fullest(run)[1]))


def _of_load(run: Run) -> str:
    rate = show_bandwidth(run.machine.terminal.bandwidth)
    if run.network.workload:
        return (f"What nodes gave to the network and took in, in parts of what their links carry, "
                f"{rate} each. {_step(run)}")  # fmt: skip
    return (f"What nodes made (offered) and took in (accepted), in parts of what their links "
            f"carry, {rate} each. Accepted below offered for long: the network is saturated. "
            f"{_step(run)}")  # fmt: skip


def _of_latency(run: Run) -> str:
    network = run.network
    grey = (" The wide grey line is the mean of all packets, those that are not measured too."
            if network.warmup_ps or network.measure_ps is not None else "")  # fmt: skip
    grows = "" if run.network.workload else "A mean that keeps rising: source queues grow. "
    nic = ", after nic.send," if run.network.workload else ""
    return (f"From when a message enters the source queue of its node{nic} to the arrival of a "
            f"packet's last byte, of the measured packets that arrived in each interval.{grey} "
            f"{grows}{_step(run)}")  # fmt: skip


def _of_busy(run: Run) -> str:
    return (f"The part of the time in which links between routers were sending, mean over all of "
            f"a class. {_step(run)}")  # fmt: skip


def _of_stalled(run: Run) -> str:
    return ("The part of the time in which a packet was waiting at a free link because there was "
            f"no credit, summed over the link's virtual channels (so it may exceed 1), mean over "
            f"all links of a class. {_step(run)}")  # fmt: skip


def _of_latencies(run: Run) -> str:
    figures = in_short(run)
    return (f"{figures.measured_packets:,} measured packets. Each bar is as wide as any other on "
            "this logarithmic axis."
            + (f" {figures.undelivered_packets:,} more were generated during the measurement and "
               "had not arrived: they are not here."
               if figures.undelivered_packets else ""))  # fmt: skip


def _of_tail(run: Run) -> str:
    return ("How many packets take longer than that, on logarithmic axes: a bend to the right is a "
            "long tail. Percentiles are read off bins of at most 1.6 %.")  # fmt: skip


def _of_traffic(run: Run) -> str:
    return (f"What nodes took in, from the group on the left for the group below, over "
            f"{show_time(span_ps(run))}. The diagonal stayed in its group. "
            f"White: nothing.")  # fmt: skip


def _of_cables(run: Run) -> str:
    m = run.machine
    each = show_bandwidth(m.global_.bandwidth)
    pair = f"{m.copies} cable{'s' * (m.copies != 1)} of {each} each way"
    return (f"What was sent on the cables from a group to another, over {show_time(span_ps(run))}: "
            f"a packet on a non-minimal path counts at each cable it takes. Two groups are "
            f"joined by {pair}. Grey: no cable. White: nothing sent.")  # fmt: skip


def _of_link_load(run: Run) -> str:
    return (f"Every link, over {show_time(span_ps(run))}: the height of a curve is the part of the "
            f"links of that class that were busy for no more of the time. Upright: all alike; a "
            f"long slope: few carry the most. In brackets how many there are.")  # fmt: skip


def _of_link_stalls(run: Run) -> str:
    return ("The same for the time in which a packet was waiting at a free link without credit, "
            "summed over virtual channels. A curve in the corner at the top left: "
            "no stalls.")  # fmt: skip


def _of_router_stalls(run: Run) -> str:
    return (f"A sample is a router in an interval: the mean over its network tiles of stalls per "
            f"incoming flit, in flit times (Zhang 2021, section 3.5.2). A stall is "
            f"{_a_stall(run)}. Tiles with fewer stalls a second than the median of all samples of "
            f"their class do not count: here {_thresholds(run)}.")  # fmt: skip


def _a_stall(run: Run) -> str:
    if run.network.switched:
        return "time that the first packet of a tile's input queue waited, for whatever reason"
    return "time that packets waited to enter a tile, for credit or for its link"


def _thresholds(run: Run) -> str:
    found = run.counters.thresholds()
    listed = ", ".join(f"{kind} {value:.3g}" for kind, value in found.items())
    return listed if any(found.values()) else f"{listed}, so that all do"


def _of_group_stalls(run: Run) -> str:
    return ("Where and when links stall: the time in which a packet was waiting at a free link "
            "without credit, summed over virtual channels, mean over the links from a group's "
            "routers to routers. White: no stall.")  # fmt: skip


def _of_congestion(run: Run) -> str:
    jobs = ""
    if marked(run):
        time, _ = job_figures.fullest(run)
        jobs = (f" The strip at the right of a cell has a mark for each node, in the colour of the "
                f"job that had it at {microseconds(time)}, when the most jobs ran.")  # fmt: skip
    return (f"A column is a group, a cell a router: the mean over its tiles, and over the run, of "
            f"stalls per incoming flit as an operator of an Aries machine reads them. A stall is "
            f"{_a_stall(run)}. Tiles with fewer stalls a second than the median of their class do "
            "not count. Each map has its own scale, a logarithmic one; ratios of less than a "
            "thousandth of the largest have its lightest colour. White: no stall counted in the "
            f"whole run. Grey: no such tile.{jobs}")  # fmt: skip


def _of_causes(run: Run) -> str:
    found = input_waits(run.network, input_counters(run), span_ps(run))
    return ("How many packets waited as the first of their input queues, mean over time and over "
            "the inputs of a class: for the crossbar (its input or output was busy), or because "
            "there was no room for it ahead, towards a router or in a node's ejection buffer. The "
            f"longest wait for the crossbar was {show_time(found.longest_ps)}, at input port "
            f"{found.port} of router {found.router}.")  # fmt: skip


def _of_longest(run: Run) -> str:
    return ("The longest time that any packet was first in its queue and had room ahead, but did "
            "not get the crossbar, by input port. A port that stands out among those of its kind "
            f"is served less than they are; the arbiter is {run.network.arbiter}.")  # fmt: skip


JOBS, TIME, LATENCY, GROUPS, LINKS = "Jobs", "Over time", "Latency", "Between groups", "Links"
INSIDE = "Inside the routers"
OF_JOBS: Sequence[Picture[Run]] = (
    Picture("timeline", JOBS, "When they ran", job_figures.timeline, _of_timeline, _no_samples,
            job_figures.timeline_size, always_wide=True),
    Picture("seats", JOBS, "Placement", _placed, _of_placement, _no_jobs, _placement_size,
            always_wide=True),
    Picture("talk", JOBS, "Run time", job_figures.talk, _of_talk, _none_done, SIZE),
    Picture("held", JOBS, "Nodes in use", job_figures.held, _of_held, _no_samples, SIZE),
)  # fmt: skip
"""Returns the pictures of a run that has jobs."""
FIGURES: Sequence[Picture[Run]] = (
    Picture("load", TIME, "Offered and accepted load", figures.load, _of_load, _no_samples, SIZE),
    Picture("latency-time", TIME, "Latency", figures.latency, _of_latency, _no_packets, SIZE),
    Picture("utilisation-time", TIME, "Utilisation", figures.busy, _of_busy, _no_links, SIZE),
    Picture("stalled-time", TIME, "Stalls", figures.stalled, _of_stalled, _no_links, SIZE),
    Picture("latency", LATENCY, "Distribution", figures.latencies, _of_latencies, _no_packets,
            SIZE),
    Picture("latency-tail", LATENCY, "Tail", figures.tail, _of_tail, _no_packets, SIZE),
    Picture("traffic", GROUPS, "Traffic", figures.traffic, _of_traffic, _no_groups, SQUARE),
    Picture("cables", GROUPS, "On the cables", figures.cables, _of_cables, _no_cables, SQUARE),
    Picture("links", LINKS, "Utilisation of every link", figures.link_load,
            _of_link_load, _no_ports, SIZE),
    Picture("link-stalls", LINKS, "Stalls of every link", figures.link_stalls,
            _of_link_stalls, _no_ports, SIZE),
    Picture("router-stalls", LINKS, "Stall-to-flit ratio of routers", router_stalls,
            _of_router_stalls, _no_tiles, SIZE),
    Picture("group-stalls", LINKS, "Stalls of groups over time", figures.group_stalls,
            _of_group_stalls, _no_links, SIZE),
    Picture("congestion-map", LINKS, "Congestion map", congestion_map, _of_congestion, _no_tiles,
            map_size, always_wide=True),
)  # fmt: skip


OF_CROSSBARS: Sequence[Picture[Run]] = (
    Picture("input-waits", INSIDE, "What first packets waited for", inputs.causes, _of_causes,
            _no_ports, SIZE),
    Picture("longest-waits", INSIDE, "Longest wait of every input", inputs.longest, _of_longest,
            _no_ports, SIZE),
)  # fmt: skip
"""The pictures of a run whose routers have crossbars."""


OF_TELEMETRY: Sequence[Picture[Run]] = (
    Picture("seen", JOBS, "What the scheduler saw", sights.seen_maps, sights.caption,
            _nothing_seen, sights.size, always_wide=True),
)  # fmt: skip
"""The pictures of a run whose scheduler reads the network."""


def of(run: Run) -> Sequence[Picture[Run]]:
    """Returns the pictures of a run, in reading order."""
    found = [*FIGURES, *(OF_CROSSBARS if run.network.switched else ())]
    if not run.network.workload:
        return found
    sent = "What nodes sent and took in"
    of_jobs = [*OF_JOBS[:2], *(OF_TELEMETRY if run.seen else ()), *OF_JOBS[2:]]
    return [*of_jobs, *(replace(it, title=sent) if it.name == "load" else it for it in found)]
