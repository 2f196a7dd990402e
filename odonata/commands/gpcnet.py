"""`odonata gpcnet`: the impact of congestion, as GPCNeT measures it."""

from __future__ import annotations

from typing import Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import json_option
from odonata.commands.output import print_json, print_table
from odonata.studies.congestion import CONGESTORS, MACHINE
from pdes import launcher
from pdes.errors import require
from topology.presets import PRESETS

ALL = "all"


@click.command("gpcnet", context_settings=SETTINGS)
@click.option("--nodes", default=64, show_default=True, help="Nodes that it runs on, the first of "
              "the machine.")  # fmt: skip
@click.option("--preset", default=MACHINE, show_default=True, help="The machine.")
@click.option("--congestor", default=CONGESTORS[0], show_default=True,
              type=click.Choice((*CONGESTORS, ALL)),
              help="What congests the network; all: each on a part of the nodes.")  # fmt: skip
@click.option("--tasks", default=2, show_default=True, help="Tasks per node.")
@click.option("--seed", default=0, show_default=True, help="Which nodes run the congestors.")
@json_option
def command(nodes: int, preset: str, congestor: str, tasks: int, seed: int, as_json: bool) -> None:
    """Run GPCNeT: congestors on four fifths of some nodes, and on the rest, one after the other,
    three canaries, each also without the congestors. Impact: how many times as long it takes."""
    if launcher.rank() == 0:
        show(nodes, preset, congestor, tasks, seed, as_json)


def show(nodes: int, preset: str, congestor: str, tasks: int, seed: int, as_json: bool) -> None:
    """Measure the impact factors, and print them."""
    from odonata.studies.congestion.gpcnet import CANARIES, LEAST_NODES
    from odonata.studies.congestion.simulation import NONE, Point, simulate

    require(preset in PRESETS, f"preset {preset}: one of {', '.join(PRESETS)}")
    most = PRESETS[preset].machine.n_nodes
    require(LEAST_NODES <= nodes <= most, f"nodes = {nodes}: {LEAST_NODES} .. {most}")
    require(1 <= tasks <= 128, f"tasks = {tasks}: 1 .. 128")
    require(seed >= 0, f"seed = {seed}: at least 0")
    kinds = "+".join(CONGESTORS) if congestor == ALL else congestor
    found = {}
    for canary in CANARIES:
        quiet, loud = (simulate(Point("", NONE, 0, kind, canary, nodes, tasks, preset, seed=seed))
                       for kind in (NONE, kinds))  # fmt: skip
        found[canary] = {
            "impact": loud.run_time_s / quiet.run_time_s,
            "alone_us": quiet.run_time_s * 1e6,
            "congested_us": loud.run_time_s * 1e6,
            "stall_to_flit": loud.stall_to_flit,
        }
    if as_json:
        print_json({"nodes": nodes, "preset": preset, "congestor": congestor, "tasks": tasks,
                    "seed": seed, "canaries": found})  # fmt: skip
        return
    print_table(f"GPCNeT on {nodes} nodes of {preset}, congestor {congestor}", _table(found),
                highlight=False)  # fmt: skip


def _table(found: dict[str, dict[str, float]]) -> Any:
    from rich import box
    from rich.table import Table

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head in ("canary", "alone (us)", "congested (us)", "impact", "ratio", "stalls per flit"):
        shown.add_column(head, justify="left" if head == "canary" else "right")
    for name, it in found.items():
        shown.add_row(name, f"{it['alone_us']:,.1f}", f"{it['congested_us']:,.1f}",
                      f"{it['impact']:.2f}", f"{1 / it['impact']:.2f}",
                      f"{it['stall_to_flit']:.3f}")  # fmt: skip
    return shown
