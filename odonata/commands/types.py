"""`odonata types`: types of jobs, with what they draw and how long they take, and mixes of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import json_option
from odonata.commands.output import print_json, print_table
from pdes import launcher
from pdes.errors import Refused
from pdes.replacing import check_place

if TYPE_CHECKING:
    from odonata.traces.mix import Mix
    from odonata.traces.types import JobType, Types

SUFFIX = ".csv"
TERMS = """power: of a node, without a cap and under the lowest; time: of a job, likewise
Q: the degradation, (turnaround - time) / time, that its jobs are to stay below"""


@click.command("types", context_settings=SETTINGS)
@click.argument("name", required=False, metavar="[NAME|TABLE.csv]")
@click.option("--csv", type=click.Path(path_type=Path), metavar="FILE", help="Write the table: a "
              "pattern for your own.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the file of --csv, if there is one.")
@json_option
def command(name: str | None, csv: Path | None, overwrite: bool, as_json: bool) -> None:
    """List the types of jobs that power.types knows, and the mixes of them that trace.mix knows; or
    those of the table of a NAME, which may be a CSV file of your own."""
    if launcher.rank() == 0:
        show(name, csv, overwrite, as_json)


def show(name: str | None, csv: Path | None, overwrite: bool, as_json: bool) -> None:
    """Print all tables, or one, and write it where that is asked for."""
    from odonata.traces.mix import MIXES
    from odonata.traces.types import Types
    from odonata.traces.types_file import BUILT_IN

    if csv is not None:
        check_out(csv, name, overwrite)
    elif overwrite:
        raise Refused("--overwrite: of which file? --csv FILE")
    tables = [Types.of(each) for each in ([name] if name is not None else BUILT_IN)]
    mixes = {each: it for each, it in MIXES.items() if it.table in [one.name for one in tables]}
    if csv is not None:
        from pdes.replacing import replacing

        with replacing(csv.resolve()) as part:  # a link stays one
            part.write_text(tables[0].csv(), encoding="utf-8")
    if as_json:
        print_json({"tables": [facts(one) for one in tables],
                    "mixes": [mix_facts(each, it) for each, it in mixes.items()],
                    "written": None if csv is None else str(csv)})  # fmt: skip
        return
    print_table(*texts(tables, mixes), highlight=False)
    if csv is not None:
        print(f"written to {csv}")


def check_out(csv: Path, name: str | None, overwrite: bool) -> None:
    """Refuse what cannot be written, before anything is read."""
    if name is None:
        raise Refused(f"--csv {csv}: which table? odonata types aqa --csv {csv}")
    check_place(csv, "--csv", (SUFFIX,), overwrite)


# -- for programs


def facts(table: Types) -> dict[str, Any]:
    return {"name": table.name, "idle_w": table.idle_w, "digest": table.digest,
            "types": [type_facts(one) for one in table]}  # fmt: skip


def type_facts(one: JobType) -> dict[str, Any]:
    return {
        "type": one.name, "by": one.by, "nodes": one.nodes, "time_min_s": one.shortest_s,
        "time_max_s": one.longest_s, "slowdown": one.slowdown, "power_max_w": one.most_w,
        "power_min_w": one.least_w,
        "q_threshold": None if one.threshold == math.inf else one.threshold,
        "delay_rate_per_s": one.delay_rate,
    }  # fmt: skip


def mix_facts(name: str, mix: Mix) -> dict[str, Any]:
    return {"mix": name, "table": mix.table, "types": list(mix.types), "load": mix.load,
            "shares": list(mix.shares or [1.0] * len(mix.types)), "nodes": mix.nodes,
            "mean_power_w": mix.mean_w}  # fmt: skip


# -- for people


def texts(tables: list[Types], mixes: dict[str, Mix]) -> Iterator[Any]:
    """Yields what is shown: tables, and the mixes of their types."""
    from rich.text import Text

    for table in tables:
        idle = "" if table.idle_w is None else f", an idle node draws {table.idle_w:g} W"
        yield Text(f"{table.name}: {len(table)} type{'s' * (len(table) > 1)} of jobs{idle}", "bold")
        yield type_table(table)
        never = [one.name for one in table if one.least_w >= one.most_w]
        if never:
            yield Text(f"Caps do nothing to {', '.join(never)}: the lowest is not below what a "
                       "node draws without one.", "bold")  # fmt: skip
        yield Text()
    yield Text(TERMS, "dim")
    if mixes:
        yield Text()
        yield Text("mixes, for trace.mix", "bold")
        yield mix_table(mixes)
        yield Text("load: the part of the nodes that is busy on average; power: of all nodes "
                   "without caps, on average; nodes: those of the paper", "dim")  # fmt: skip


def type_table(table: Types) -> Any:
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    by = any(one.by != "application" for one in table)
    rates = any(one.delay_rate is not None for one in table)
    for title in ("type", *["by"] * by):
        shown.add_column(title, no_wrap=True)
    for title in ("nodes", "time, s", "power, W", "slowdown", "Q", *["delay, 1/s"] * rates):
        shown.add_column(title, justify="right", no_wrap=True)
    for one in table:
        time = "" if one.shortest_s is None else f"{one.shortest_s:g} .. {one.longest_s:g}"
        cells = [
            "" if one.nodes is None else f"{one.nodes:,}", time,
            f"{one.most_w:g} .. {one.least_w:g}", f"{one.slowdown:.3g}",
            "" if one.threshold == math.inf else f"{one.threshold:g}",
        ]  # fmt: skip
        cells += ["" if one.delay_rate is None else f"{one.delay_rate:g}"] * rates
        shown.add_row(Text(one.name), *[one.by] * by, *cells)
    return shown


def mix_table(mixes: dict[str, Mix]) -> Any:
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for title in ("mix", "load", "nodes", "power, W"):
        shown.add_column(title, justify="left" if title == "mix" else "right", no_wrap=True)
    shown.add_column("types", ratio=1)
    for name, mix in mixes.items():
        shares = mix.shares or [1.0] * len(mix.types)
        types = [each if share == 1 else f"{each} ×{share:g}"
                 for each, share in zip(mix.types, shares, strict=True)]  # fmt: skip
        shown.add_row(name, f"{mix.load:.0%}", f"{mix.nodes:,}", f"{mix.mean_w:,.0f}",
                      ", ".join(types))  # fmt: skip
    return shown
