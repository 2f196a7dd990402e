"""`odonata profile`: whether network congestion slows an application down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import Quantity, jobs_option, json_option, write_option
from odonata.commands.output import beside, print_json, print_table
from odonata.studies.congestion.options import CONGESTORS, MACHINE
from pdes import launcher
from pdes.errors import require

if TYPE_CHECKING:
    from odonata.agents.profile import Profile
    from odonata.experiment.sensitivity import Known
    from odonata.studies.congestion.sensitivity import SensitivityTest
    from odonata.sweeps.drafts import Draft

    Found = list[tuple[Profile, Known]]


def part(text: str) -> float:
    """Returns a part of the whole.

    >>> part("5%"), part("12.5 %"), part("0.05")
    (0.05, 0.125, 0.05)
    """
    number = text.strip().removesuffix("%")
    try:
        value = float(number) / (100 if number != text.strip() else 1)
    except ValueError:
        raise ValueError(f"{text!r} is not a part of the time, as 5% or 0.05") from None
    if not 0 <= value <= 1:
        raise ValueError(f"{text!r} is not from 0% to 100%")
    return value


PART = Quantity("PART", part)


@click.command("profile", context_settings=SETTINGS)
@click.argument("applications", nargs=-1, required=True, metavar="APP...")
@click.option("--slowdown", is_flag=True, help="Measure how many times as long it takes with "
              "GPCNeT on the nodes between its own.")  # fmt: skip
@click.option("--nodes", type=click.IntRange(min=1), help="Nodes that it runs on.  [default: those "
              "that its profile was calibrated for, or 64]")  # fmt: skip
@click.option("--machine", default=MACHINE, show_default=True, metavar="NAME",
              help="The preset of the machine.")  # fmt: skip
@click.option("--repetitions", default=3, show_default=True, help="How often each is measured, "
              "each time on other nodes; what counts is the median.")  # fmt: skip
@click.option("--congestor", default=CONGESTORS[0], show_default=True,
              type=click.Choice(CONGESTORS), help="The congestor of GPCNeT.")  # fmt: skip
@click.option("--collectives", type=PART, default="5%", show_default=True,
              help="Sensitive above so much time in allreduces and broadcasts.")  # fmt: skip
@click.option("--blocking", type=PART, default="10%", show_default=True,
              help="Sensitive above so much time in exchanges that it waits for.")  # fmt: skip
@click.option("--slower", default=1.1, show_default=True,
              help="Sensitive if GPCNeT makes it so many times as long.")  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Keep it in a table, as scheduler.sensitivity reads it; what the file has of "
              "other applications stays.")  # fmt: skip
@jobs_option
@write_option
@json_option
def command(
    applications: tuple[str, ...], out: Path | None, as_json: bool, collectives: float,
    blocking: float, slower: float, jobs: int, write: Path | None, **how: Any,
) -> None:  # fmt: skip
    """Simulate each APP alone, a profile of `odonata applications` or a TOML file, and tell whether
    network congestion slows it down: if it spends more than 5 % of its time in allreduces and
    broadcasts, or more than 10 % in exchanges that it waits for. Time in MPI_Test and in barriers
    does not count."""
    from odonata.experiment.sensitivity import Limits
    from odonata.studies.congestion.sensitivity import SensitivityTest

    asked = SensitivityTest(limits=Limits(collectives, blocking, slower), **how)
    show(applications, asked, out, jobs, write, as_json)


def show(
    applications: Sequence[str], asked: SensitivityTest, out: Path | None, jobs: int,
    write: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Measure applications, keep what was found, and print it."""
    from odonata.experiment.sensitivity import read_table, write_table
    from odonata.studies.congestion.sensitivity import fitting
    from odonata.sweeps.drafts import check_written, write_text

    profiles = [fitting(each, asked) for each in applications]
    names = [it.name for it in profiles]
    for name in names:
        require(names.count(name) == 1, f"{name}: named twice")
    kept = {}
    if out is not None:
        require(out.absolute().parent.is_dir(), f"{out}: there is no such directory")
        kept = read_table(out) if out.exists() else {}
    check_written({"--write": (write, ".toml")})
    found = [*zip(profiles, (find(each, asked, jobs) for each in applications), strict=True)]
    if launcher.rank() > 0:
        return
    for each, it in zip(applications, profiles, strict=True) if write is not None else ():
        assert write is not None
        path = beside(write, it.name) if len(profiles) > 1 else write
        write_text(path, draft_of(each, asked).text)
    if out is not None:
        write_table(out, kept | {it.name: known for it, known in found})
    if as_json:
        print_json([_facts(*each) for each in found])
        return
    print_table(_table(found), highlight=False, least=100)
    print_table(_notes(asked), highlight=False)


def draft_of(application: str, asked: SensitivityTest) -> Draft:
    """Returns the sweep by which an application is measured: over the nodes that it has and, where
    its slowdown is, with GPCNeT on the nodes between and without."""
    from odonata.commands.measured import draft_of as draft_of_points
    from odonata.studies.congestion.sensitivity import fitting
    from odonata.studies.congestion.simulation import NONE, Point

    found = fitting(application, asked)
    nodes, tasks = asked.nodes_of(found), found.tasks_per_node or 2
    how = ("IV", asked.congestor) if asked.slowdown else ("I", NONE)
    points = {
        f"{shift}": Point(
            application, how[0], shift, how[1], nodes=nodes, tasks=tasks, machine=asked.machine
        )
        for shift in range(asked.repetitions)
    }
    return draft_of_points("odonata profile", "shift", points, asked.slowdown)


def find(application: str, asked: SensitivityTest, jobs: int = 1) -> Known:
    """Simulate an application. Returns what was found, by medians."""
    from odonata.commands.measured import ALONE, CONGESTED, measured
    from odonata.experiment.profiles import OPERATIONS
    from odonata.experiment.sensitivity import Known, reasons
    from odonata.studies.congestion.sensitivity import fitting

    found = fitting(application, asked)
    runs = measured(draft_of(application, asked), jobs)
    if not asked.slowdown:
        every = [run.operations for run in runs.values()]
        parts = {kind: round(median(it[kind] for it in every), 4) for kind in OPERATIONS
                 if all(kind in it for it in every)}  # fmt: skip
        reached = reasons(parts, asked.limits)
        return Known(bool(reached), "rule", "; ".join(reached), None, asked.nodes_of(found),
                     asked.machine, tuple(parts.items()))  # fmt: skip
    quiet, loud = (median(run.run_time_s for labels, run in runs.items() if labels[1] == which)
                   for which in (ALONE, CONGESTED))  # fmt: skip
    factor = round(loud / quiet, 3)
    limit = asked.limits.slower
    why = f"{factor:.2f} times as long beside {asked.congestor} > {limit:g}"
    return Known(factor > limit, "slowdown", why if factor > limit else "", factor,
                 asked.nodes_of(found), asked.machine)  # fmt: skip


def _facts(found: Profile, known: Known) -> dict[str, Any]:
    return {"application": found.name, "sensitive": known.sensitive, "how": known.how,
            "why": known.why, "slowdown": known.slowdown, "nodes": known.nodes,
            "machine": known.machine, "operations": dict(known.operations),
            "profile_says": found.sensitive}  # fmt: skip


def _notes(asked: SensitivityTest) -> str:
    where = f"medians of {asked.repetitions} runs on {asked.machine}"
    says = "Profile: what the file of the profile says."
    if asked.slowdown:
        return (f"Times as long with GPCNeT's {asked.congestor} on the nodes between as without, "
                f"{where}. Sensitive: more than {asked.limits.slower:g}. {says}")  # fmt: skip
    return f"Parts of the time of its tasks, alone, {where}. {says}"


def _table(found: Found) -> Any:
    from rich import box
    from rich.table import Table

    from odonata.experiment.profiles import OPERATIONS

    there = {kind for _, known in found for kind, _ in known.operations}
    kinds = [kind for kind in OPERATIONS if kind in there]
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("application", no_wrap=True)
    shown.add_column("nodes", justify="right", no_wrap=True)
    for head in kinds or ["times as long"]:
        shown.add_column(head, justify="right", no_wrap=True)
    for head in ("sensitive", "profile", "because"):
        shown.add_column(head)
    for it, known in found:
        parts = dict(known.operations)
        cells = [f"{parts[kind]:.1%}" if kind in parts else "-" for kind in kinds]
        if known.slowdown is not None:
            cells = [f"{known.slowdown:.2f}"]
        verdicts = (_word(known.sensitive), _word(it.sensitive))
        shown.add_row(it.name, str(known.nodes), *cells, *verdicts, known.why)
    return shown


def _word(sensitive: bool | None) -> str:
    return "unknown" if sensitive is None else "yes" if sensitive else "no"
