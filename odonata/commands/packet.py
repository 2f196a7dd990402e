"""`odonata packet`: the path of a traced packet, hop by hop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import json_option
from odonata.commands.output import print_json, print_table, say_missing
from pdes import launcher
from pdes.errors import Refused

if TYPE_CHECKING:
    from odonata.results.packet_trace import PacketPath, PacketTrace

SHOWN = 10
"""How many of the slowest packets are listed."""


@click.command("packet", context_settings=SETTINGS)
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--packet", "number", type=click.IntRange(0), metavar="N",
              help="The number of a packet.  [default: the slowest are listed]")  # fmt: skip
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Draw its timeline (.png, .svg or .pdf); without --packet, that of the "
              "slowest.")  # fmt: skip
@click.option("--csv", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write every hop of every traced packet as CSV.")  # fmt: skip
@json_option
def command(
    directory: Path, number: int | None, plot: Path | None, csv: Path | None, as_json: bool
) -> None:
    """Follow a packet of the run in DIR hop by hop: when it was generated, injected and delivered,
    when it arrived at each router and left it, and what it waited for. The run was made with
    `odonata run --trace-packets N`."""
    if launcher.rank() == 0:
        show(directory, number, plot, csv, as_json)


def show(
    directory: Path, number: int | None, plot: Path | None, csv: Path | None, as_json: bool
) -> None:
    from odonata.figures.style import check_name
    from odonata.results.run import open as open_run

    if plot is not None:
        check_name(plot)
    if csv is not None and not csv.absolute().parent.is_dir():
        raise Refused(f"--csv {csv}: there is no directory {csv.parent}")
    with open_run(directory) as run:
        say_missing(run)
        if not run.has("network"):
            raise Refused(f'{directory}: fidelity = "job": there are no packets to follow')
        trace = run.packet_trace
        if csv is not None:
            _write(trace, csv)
        slowest = trace.slowest(SHOWN).tolist()
        if number is None and plot is not None and not slowest:
            raise Refused(f"{directory}: no traced packet was delivered: --packet names another")
        followed = number if number is not None or plot is None else slowest[0]
        path = None if followed is None else trace.packet(followed)
        if plot is not None and path is not None:
            from odonata.figures.packet_timeline import draw

            draw(path, plot)
        if as_json:
            print_json(_facts(trace, slowest) if path is None else _path_facts(path))
        elif path is not None:
            print("\n".join(path.words()))
        else:
            _show_all(run.experiment.name, trace, slowest)
    for file in (plot, csv):
        if file is not None and not as_json:
            print(file)


def _write(trace: PacketTrace, csv: Path) -> None:
    from pdes.replacing import replacing

    with replacing(csv) as part, part.open("w", encoding="utf-8", newline="") as file:
        trace.write_csv(file)


def _facts(trace: PacketTrace, slowest: list[int]) -> dict[str, Any]:
    """Returns what is known of all traced packets together."""
    from odonata.results.packet_trace import WAITS

    return {
        "every": trace.every,
        "packets": len(trace.packets),
        "delivered": len(trace.deliveries.row),
        "hops": int((trace.hops["router"] >= 0).sum()),
        "waits_ps": {name: int(trace.hops[name].sum()) for name in WAITS},
        "slowest": slowest,
    }


def _path_facts(path: PacketPath) -> dict[str, Any]:
    return {
        "packet": path.number, "from_node": path.source, "to_node": path.destination,
        "bytes": path.bytes, "generated_ps": path.generated_ps, "delivered_ps": path.delivered_ps,
        "latency_ps": path.latency_ps, "non_minimal": path.non_minimal, "job": path.job,
        "hops": [hop._asdict() for hop in path.hops],
    }  # fmt: skip


def _show_all(name: str, trace: PacketTrace, slowest: list[int]) -> None:
    from rich.table import Table

    from odonata.experiment.units import show_time
    from odonata.results.packet_trace import WAITS

    facts = _facts(trace, slowest)
    how = "all" if trace.every == 1 else f"1 in {trace.every:,} of each node"
    title = f"{name}: {facts['packets']:,} packets were traced, {how}; the slowest of them"
    shown = Table(title=title, title_justify="left")
    for column in ("packet", "from node", "to node", "routers", "path", "latency", "longest wait"):
        words = column in ("path", "longest wait")
        shown.add_column(column, justify="left" if words else "right")
    for number in slowest:
        path = trace.packet(number)
        waits = [(took, f"{WAITS[cause]} at {path.places[place]}")
                 for place, hop in enumerate(path.hops)
                 for cause, took in hop.waits_ps.items()]  # fmt: skip
        longest = max(waits, default=None)
        shown.add_row(
            str(number), str(path.source), str(path.destination), str(len(path.hops) - 1),
            path.kind_of_path, show_time(path.latency_ps or 0),
            f"{show_time(longest[0])} {longest[1]}" if longest else "none",
        )  # fmt: skip
    print_table(shown, least=100, markup=False, highlight=False)
