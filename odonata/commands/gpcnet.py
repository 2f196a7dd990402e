"""`odonata gpcnet`: the impact of congestion, as GPCNeT measures it."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import jobs_option, json_option, write_option
from odonata.commands.output import print_json, print_table
from odonata.studies.congestion.options import CONGESTORS, MACHINE
from pdes import launcher
from pdes.errors import require

ALL = "all"


@click.command("gpcnet", context_settings=SETTINGS)
@click.option("--nodes", default=64, show_default=True, help="Nodes that it runs on, the first of "
              "the machine.")  # fmt: skip
@click.option("--preset", default=MACHINE, show_default=True, help="The machine.")
@click.option("--congestor", default=CONGESTORS[0], show_default=True,
              type=click.Choice((*CONGESTORS, ALL)),
              help="What congests the network; all: each on a part of the nodes.")  # fmt: skip
@click.option("--tasks", default=2, show_default=True, help="Tasks per node.")
@click.option("--seed", default=0, show_default=True, help="Which nodes run the "
              "congestors: a random choice.")  # fmt: skip
@click.option("--repeat", default=5, show_default=True, help="How many such choices, "
              "of this seed and those after it.")  # fmt: skip
@jobs_option
@write_option
@json_option
def command(
    nodes: int, preset: str, congestor: str, tasks: int, seed: int, repeat: int, jobs: int,
    write: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Run GPCNeT: congestors on four fifths of some nodes, and on the rest, one after the other,
    three canaries, each also without the congestors. Impact: how many times as long it takes."""
    seeds = range(seed, seed + repeat)
    show(nodes, preset, congestor, tasks, seeds, jobs, write, as_json)


def show(
    nodes: int, preset: str, congestor: str, tasks: int, seeds: range, jobs: int,
    write: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Measure the impact factors, and print them."""
    from odonata.commands.measured import ALONE, CONGESTED, draft_of, measured
    from odonata.studies.congestion.gpcnet import CANARIES, LEAST_NODES
    from odonata.studies.congestion.simulation import NONE, Point
    from odonata.sweeps.drafts import check_written, write_text
    from topology.presets import PRESETS

    require(preset in PRESETS, f"preset {preset}: one of {', '.join(PRESETS)}")
    most = PRESETS[preset].machine.n_nodes
    require(LEAST_NODES <= nodes <= most,
            f"nodes = {nodes}: from {LEAST_NODES} to the {most} of {preset}")  # fmt: skip
    require(1 <= tasks <= 128, f"tasks = {tasks}: from 1 to 128")
    require(seeds.start >= 0, f"seed = {seeds.start}: at least 0")
    require(len(seeds) >= 1, "repeat: at least 1")
    check_written({"--write": (write, ".toml")})
    kinds = "+".join(CONGESTORS) if congestor == ALL else congestor
    first, *_ = CANARIES
    points = {f"{seed}": Point("", NONE, 0, kinds, first, nodes, tasks, preset, seed=seed)
              for seed in seeds}  # fmt: skip
    draft = draft_of("odonata gpcnet", "choice", points, True, [*CANARIES])
    if write is not None and launcher.rank() == 0:
        write_text(write, draft.text)
    runs = measured(draft, jobs)
    if launcher.rank() > 0:
        return
    found: dict[str, dict[str, list[float]]] = {}
    for canary in CANARIES:
        quiet, loud = ([runs[canary, choice, how] for choice in points]
                       for how in (ALONE, CONGESTED))  # fmt: skip
        found[canary] = {
            "impact": [it.run_time_s / one.run_time_s for it, one in zip(loud, quiet, strict=True)],
            "alone_us": [one.run_time_s * 1e6 for one in quiet],
            "congested_us": [it.run_time_s * 1e6 for it in loud],
            "stall_to_flit": [it.stall_to_flit for it in loud],
        }
    if as_json:
        print_json({"nodes": nodes, "preset": preset, "congestor": congestor, "tasks": tasks,
                    "seeds": [*seeds], "canaries": found})  # fmt: skip
        return
    title = f"GPCNeT on {nodes} nodes of {preset}, congestor {congestor}"
    print_table(title, _table(found), highlight=False)
    click.echo(
        f"Medians over {len(seeds)} random choices of the nodes that congest. Times are those of a "
        "whole\ncanary. Impact: how many times as long it takes with the congestor. Stalls per "
        "flit: the\nmean over the network tiles of the canary's routers, with the congestor."
    )


def _table(found: dict[str, dict[str, list[float]]]) -> Any:
    from rich import box
    from rich.table import Table

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    heads = ("canary", "alone (us)", "congested (us)", "impact", "least", "most", "stalls per flit")
    for head in heads:
        shown.add_column(head, justify="left" if head == "canary" else "right")
    for name, it in found.items():
        alone, congested, impact, stalls = (
            median(it[each]) for each in ("alone_us", "congested_us", "impact", "stall_to_flit")
        )
        shown.add_row(name, f"{alone:,.1f}", f"{congested:,.1f}", f"{impact:.2f}",
                      f"{min(it['impact']):.2f}", f"{max(it['impact']):.2f}",
                      f"{stalls:.3f}")  # fmt: skip
    return shown
