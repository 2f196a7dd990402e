"""The report of a run of the job fidelity: the same page, with the figures of a schedule."""

from __future__ import annotations

from odonata.experiment.units import show_duration
from odonata.figures import market, power
from odonata.figures.report import Shown, inlined, provenance, rendered
from odonata.figures.schedule import PICTURES, drawn
from odonata.figures.style import style
from odonata.results.market_measures import market_rows
from odonata.results.power_measures import power_rows
from odonata.results.schedule_measures import Part
from odonata.results.schedule_rows import account_of, number, rows_of
from odonata.results.schedule_run import ScheduleRun

FOOTER = (
    "A wait is from a job's submission to its first start, a turnaround to its end; slowdown is "
    "turnaround over the time for which it had nodes, bounded where that counts as 10 s at least."
)
OF_POWER = (
    "A reading is the mean power of all nodes over an interval; it is within the cap where the "
    "energy of that interval is at most what the cap allows."
)
OF_MARKET = (
    "The error is what the machine is off its target, to either side, as a part of the reserve; "
    "the saving is a part of what the average costs by itself."
)
CAPTIONS = {
    "over-time": "Above, the part of all nodes that jobs hold; below, the jobs that have arrived "
    "and hold none.",
    "gantt": "Each job on its nodes, from its start to its end; colours tell neighbours apart and "
    "mean nothing else. Where nodes were only counted, each job is drawn on the lowest that were "
    "free.",
    "waits": "A dot per job; a box from the first to the third quartile, with the median.",
    "distributions": "The part of all jobs that waited no longer, or were slowed down no more.",
    "spread": "Over how many groups and routers a running job's nodes are spread, mean over the "
    "jobs that run at a time; and the fewest that would hold them.",
}
WIDE = 10.0
"""Inches from which a figure takes the full width of the page."""
SECTIONS = {"over-time": "Over time", "gantt": "Over time", "waits": "Jobs",
            "distributions": "Jobs", "spread": "Placement"}  # fmt: skip


def page(run: ScheduleRun) -> str:
    """Returns the page, as HTML."""
    power = run.experiment.power
    regulated = power is not None and power.regulates  # then nobody is killed
    overrun = "extend" if regulated else run.experiment.trace.overrun
    heading, *about = account_of(run.trace, run.nodes, run.experiment.machine, overrun)
    how = run.experiment.scheduler
    policies = f"{how.order} scheduling" + f", {how.allocation}" * bool(run.experiment.machine)
    if run.experiment.power is not None:
        policies += f", {run.experiment.power.policy} as the power policy"
    return rendered(
        run,
        machine=" · ".join([heading, policies, *about]),
        reached=f"{show_duration(run.simulated_us / 1e6)} simulated",
        summary=_summary(run),
        sections=list(_sections(run).items()),
        provenance=provenance(run, ("system", "jobs", *["power"] * (run.power is not None))),
        footer=FOOTER,
    )


def _summary(run: ScheduleRun) -> list[list[tuple[str, str, str]]]:
    rows = rows_of(run.measures, run.schedule)
    half = -(-len(rows) // 2)
    return [rows[:half], rows[half:]]


def _sections(run: ScheduleRun) -> dict[str, list[Shown]]:
    sections: dict[str, list[Shown]] = {}
    with style():
        for picture in PICTURES:
            section, why = SECTIONS[picture.name], picture.missing(run.schedule)
            if picture.name == "spread" and run.experiment.machine is None:
                continue
            wide = picture.size[0] >= WIDE
            shown = Shown(picture.title, name=picture.name, wide=wide, missing=why)
            if not why:
                svg = inlined(drawn(run.schedule, picture), picture.name, picture.title)
                shown = Shown(picture.title, CAPTIONS[picture.name], picture.name, wide, svg)
            sections.setdefault(section, []).append(shown)
            if picture.name == "gantt":
                sections |= _of_power(run) | _of_market(run)
    found = run.measures
    sections["Jobs"].append(_parts("By size", "sizes", "nodes", found.by_size))
    for name in ("user", "project", "application"):
        parts = getattr(found, f"by_{name}")
        if name == "user" or len(parts) > 1:
            sections["Jobs"].append(_parts(f"By {name}", f"{name}s", name, parts))
    return sections


def _of_power(run: ScheduleRun) -> dict[str, list[Shown]]:
    """Returns the section of power, within `style`; none where power was not simulated."""
    watts = power.Watts.of_run(run)
    if watts is None:
        return {}
    found = []
    for picture in power.of(watts):
        wide, why = picture.size[0] >= WIDE, picture.missing(watts)
        shown = Shown(picture.title, name=picture.name, wide=wide, missing=why)
        if not why:
            svg = inlined(power.drawn(watts, picture), picture.name, picture.title)
            shown = Shown(picture.title, picture.caption, picture.name, wide, svg)
        found.append(shown)
    rows = Shown("In numbers", OF_POWER, "power-rows", rows=power_rows(watts.measures))
    return {"Power": [found[0], rows, *found[1:]]}


def _of_market(run: ScheduleRun) -> dict[str, list[Shown]]:
    """Returns the section of a market, within `style`; none where there was none."""
    if run.market is None:
        return {}
    hours, found = market.of_market(run.market), []
    for picture in market.PICTURES:
        wide, why = picture.size[0] >= WIDE, picture.missing(hours)
        shown = Shown(picture.title, name=picture.name, wide=wide, missing=why)
        if not why:
            svg = inlined(market.drawn(hours, picture), picture.name, picture.title)
            shown = Shown(picture.title, picture.caption, picture.name, wide, svg)
        found.append(shown)
    rows = Shown("In numbers", OF_MARKET, "market-rows",
                 rows=market_rows(run.market.measures, run.market))  # fmt: skip
    return {"Demand response": [found[0], rows, *found[1:]]}


def _parts(title: str, name: str, head: str, parts: tuple[Part, ...]) -> Shown:
    """Returns a table of sizes, users, projects or applications."""
    heads = (head, "jobs", "node-hours", "wait, mean", "bounded slowdown, mean")
    rows = [(part.name, f"{part.jobs:,}", f"{part.node_hours:,.1f}",
             show_duration(part.mean_wait_s), number(part.mean_bounded_slowdown))
            for part in parts if part.jobs]  # fmt: skip
    return Shown(title, name=name, heads=heads, rows=rows)
