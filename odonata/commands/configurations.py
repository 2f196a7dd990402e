"""`odonata configurations`: which nodes, cores and caps an application should have within a power
bound, from a table of one's own or from fitted models of eight benchmarks."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import Quantity, json_option
from odonata.commands.output import print_json, print_table
from odonata.experiment.units import power_w, show_power
from pdes import launcher
from pdes.errors import Refused
from pdes.replacing import check_place
from pdes.shown import say

if TYPE_CHECKING:
    from odonata.provisioning.search import Found
    from odonata.provisioning.table import Point, Table

RZMERL = "rzmerl"
KINDS = ("packed-max", "packed-min", "spread-max", "spread-min", "worst-case", "best")
"""The six configurations that are found, in the order of rows."""
DEGREE = "degree: nodes of the best for each node of the worst case"
TERMS = f"""packed-max: all cores, no cap, on as many nodes as the bound allows
worst case: the same on so many nodes that all could draw their most at once
over the worst: speed-up of the best over that; {DEGREE}"""
DETAIL_TERMS = f"""packed: all cores, spread: fewest; max: no cap, min: the lowest; worst case:
packed-max on so many nodes that all could draw their most at once;
speed-up: over packed-max; {DEGREE}"""
"""What columns and rows are."""
SUFFIXES = (".csv", ".csv.gz")
WITHOUT = ("unlimited", "inf", "none")


def parse_bounds(text: str) -> list[float]:
    """Read '3500 W', '6.5 kW, 8 kW' or 'unlimited'."""
    bounds = []
    for word in text.split(","):
        if word.strip().lower() in WITHOUT:
            bounds.append(math.inf)
            continue
        try:
            bounds.append(power_w(word))
        except ValueError as error:
            raise ValueError(f"{error}; or unlimited") from None
        if not bounds[-1]:
            raise ValueError(f"{word.strip()!r}: a power bound is above 0; or unlimited")
    return bounds


@click.command("configurations", context_settings=SETTINGS)
@click.argument("file", required=False, metavar="[TABLE.csv]", type=click.Path(path_type=Path))
@click.option("--machine", metavar="NAME", help="Fitted models of eight benchmarks on a machine, in"
              " place of a table: rzmerl (32 nodes) or cab (64).  [default: rzmerl]")  # fmt: skip
@click.option("--bound", "bounds", multiple=True, type=Quantity("POWER", parse_bounds),
              help="What all nodes may draw together: '3500 W', or unlimited; repeatable.  "
              "[default: those of the machine]")  # fmt: skip
@click.option("--application", "applications", multiple=True, metavar="NAME",
              help="Show only this application; repeatable.")  # fmt: skip
@click.option("--node-power", "node_w", type=Quantity("POWER", power_w),
              help="What a node can draw at most, for the absolute worst case.  [default: the most "
              "of any node in TABLE.csv; rzmerl: 290 W; cab: 230 W, without memory]")  # fmt: skip
@click.option("--repair", is_flag=True, help="Mend the table, aloud: take the mean of several "
              "results, fill what lacks between measured configurations, and average times that "
              "rise or watts that fall with the cap.")  # fmt: skip
@click.option("--detail", is_flag=True, help="A row for each of the six configurations of an "
              "application within a bound.")  # fmt: skip
@click.option("--csv", type=click.Path(path_type=Path), metavar="FILE", help="Write the tables "
              "themselves: a pattern for your own, or what --repair made of them.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the file of --csv, if there is one.")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="DIR",
              help="Draw figures there.")  # fmt: skip
@json_option
def command(**asked: Any) -> None:
    """Find the best configuration (nodes × cores, W of cap per socket) within a power bound, and
    what it gains over using all cores without caps (packed-max) or a machine sized for the absolute
    worst case.

    TABLE.csv has the columns application, nodes, cores, cap_w, seconds and watts.
    """
    if launcher.rank() == 0:
        report(**asked)


def report(
    file: Path | None,
    *,
    machine: str | None = None,
    bounds: Sequence[Sequence[float]] = (),
    applications: Sequence[str] = (),
    node_w: float | None = None,
    repair: bool = False,
    detail: bool = False,
    csv: Path | None = None,
    overwrite: bool = False,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Read or make the tables, search them, and print, write and draw what was found."""
    from odonata.provisioning.search import MACHINES, search

    check(file, machine, repair, node_w)
    check_out(csv, overwrite, out)
    tables, repairs = tables_of(file, machine or RZMERL, repair)
    for words in repairs:
        say(f"{file}: {words}")
    known = MACHINES[machine or RZMERL]
    most_w = max(table.most_node_w for table in tables.values()) if file else known.node_w
    watts = most_w if node_w is None else node_w
    tables = {name: tables[name] for name in chosen(applications, list(tables))}
    asked = sorted({bound for some in bounds for bound in some})
    asked = asked or (guessed(tables) if file else list(known.bounds_w))
    found = [search(tables[name], bound, watts) for bound in asked for name in tables]
    written = []
    if csv is not None:
        from odonata.provisioning.table_file import write_tables

        write_tables(csv, tables)
        written.append(str(csv))
    if out is not None:
        from odonata.figures.configurations import draw

        written += [str(path) for path in draw(found, tables, out)]
    source = str(file) if file else machine or RZMERL
    if as_json:
        print_json(facts(source, watts, tables, found) | {"repairs": repairs, "written": written})
        return
    whence = " (--node-power)" if node_w is not None else (
        ", the most in this table (or --node-power)" if file else ""
    )  # fmt: skip
    print_table(*texts(source, watts, whence, tables, found, detail), highlight=False)
    for path in written:
        print(f"written to {path}")


# -- what is asked for


def check(file: Path | None, machine: str | None, repair: bool, node_w: float | None) -> None:
    """Refuse options that do not belong together."""
    from odonata.provisioning.search import MACHINES

    if file is not None and machine is not None:
        raise Refused(f"{file} and --machine {machine}: name a table or a machine, not both")
    if machine is not None and machine not in MACHINES:
        raise Refused(f"--machine {machine}: one of {', '.join(MACHINES)}")
    if repair and file is None:
        raise Refused("--repair: of which table? name a file; those of a machine are sound")
    if node_w is not None and not node_w:
        raise Refused("--node-power 0 W: it must be above 0")


def check_out(csv: Path | None, overwrite: bool, out: Path | None) -> None:
    """Refuse what cannot be written, before anything is read."""
    if csv is not None:
        check_place(csv, "--csv", SUFFIXES, overwrite)
    elif overwrite:
        raise Refused("--overwrite: of which file? --csv FILE")
    if out is not None and out.exists() and not out.is_dir():
        raise Refused(f"-o {out}: this is a file: name a directory")


def tables_of(
    file: Path | None, machine: str, repair: bool
) -> tuple[dict[str, Table], tuple[str, ...]]:
    """Returns the tables of a file, and what was repaired or is odd; or those of a machine."""
    if file is not None:
        from odonata.provisioning.table_file import read_tables

        found = read_tables(file, repair)
        return found.tables, found.repairs
    from odonata.provisioning import fitted

    return dict(fitted.tables(machine)), ()


def chosen(asked: Sequence[str], there: Sequence[str]) -> list[str]:
    """Returns the names of the applications that are asked for, or all; their case may differ."""
    lower = {name.lower(): name for name in there}
    for name in asked:
        if name not in there and name.lower() not in lower:
            near = difflib.get_close_matches(name.lower(), lower, 1)
            hint = f"; did you mean {lower[near[0]]}?" if near else ""
            raise Refused(f"--application {name}: one of {', '.join(there)}{hint}")
    found = [name if name in there else lower[name.lower()] for name in asked]
    return list(dict.fromkeys(found)) or list(there)


def guessed(tables: Mapping[str, Table]) -> list[float]:
    """Returns bounds for a table of which no machine is known: a half and three quarters of the
    most that was measured, to two figures, and none."""
    most = max(float(table.watts.max()) for table in tables.values())
    return [*(float(f"{part * most:.2g}") for part in (0.5, 0.75)), math.inf]


# -- for programs


def facts(
    source: str, node_w: float, tables: Mapping[str, Table], found: Sequence[Found]
) -> dict[str, Any]:
    """Returns all that was found, by application and bound; unlimited power is null."""
    from odonata.provisioning.search import why_none

    def one(each: Found, kind: str) -> dict[str, Any] | None:
        point = each.points[kind]
        return (
            None
            if point is None
            else {
                **point._asdict(),
                "speedup_over_packed_max": each.speedup(kind),
                "speedup_over_worst_case": each.speedup(kind, "worst-case"),
                "wasted": each.wasted(kind),
            }
        )

    def within(each: Found) -> dict[str, Any]:
        nodes, table = each.worst_case_nodes, tables[each.application]
        none = [kind for kind, point in each.points.items() if point is None]
        return {
            "bound_w": None if math.isinf(each.bound_w) else each.bound_w,
            **{kind.replace("-", "_"): one(each, kind) for kind in KINDS},
            "worst_case_nodes": None if math.isinf(nodes) else int(nodes),
            "degree": each.degree,
            "why_none": {kind.replace("-", "_"): why_none(table, kind, each.bound_w, node_w)
                         for kind in none},
        }  # fmt: skip

    return {
        "source": source,
        "node_w": node_w,
        "applications": {
            name: {
                "configurations": len(table),
                "bounds": [within(each) for each in found if each.application == name],
            }
            for name, table in tables.items()
        },
    }


# -- for people


def texts(
    source: str,
    node_w: float,
    whence: str,
    tables: Mapping[str, Table],
    found: Sequence[Found],
    detail: bool,
) -> list[Any]:
    """Returns what is shown: a table per bound, and what its columns are. `whence` tells where the
    most that a node draws is from."""
    from rich.text import Text

    parts: list[Any] = [_title(source, node_w, whence, tables)]
    for bound_w in dict.fromkeys(each.bound_w for each in found):
        mine = [each for each in found if each.bound_w == bound_w]
        limit = "unlimited" if math.isinf(bound_w) else show_power(bound_w)
        nodes = mine[0].worst_case_nodes
        sized = "" if math.isinf(nodes) else f"; worst case {nodes:,.0f} nodes"
        parts += [Text(), Text.assemble((limit, "bold"), (sized, "dim"))]
        parts.append(_rows(mine) if detail else _overview(mine))
        parts += [Text(line, "dim") for line in _notes(tables, mine, node_w, detail)]
    return [*parts, Text(), Text(DETAIL_TERMS if detail else TERMS, "dim")]


def _title(source: str, node_w: float, whence: str, tables: Mapping[str, Table]) -> Any:
    from rich.text import Text

    count = sum(len(table) for table in tables.values())
    noun = "application" if len(tables) == 1 else "applications"
    about = (f": {count:,} configurations of {len(tables):,} {noun}, as (nodes × cores, W of cap "
             f"per socket); a node draws at most {node_w:.4g} W{whence}")  # fmt: skip
    return Text.assemble((source, "bold"), (about, "dim"))


def _table(*names: str) -> Any:
    from rich.table import Table

    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in names:
        left = name.strip() in ("application", "", "best", "configuration")
        rows.add_column(name, justify="left" if left else "right", overflow="fold",
                        no_wrap=name.strip() != "application")  # fmt: skip
    return rows


def _overview(found: Sequence[Found]) -> Any:
    """Returns a row per application: the best configuration, and what it gains."""
    from rich.text import Text

    rows = _table("\napplication", "\nbest", "\ns", "\nW", "nodes of\npacked-max",
                  "speed-up\nover it", "over the\nworst", "\ndegree")  # fmt: skip
    for each in found:
        packed = each.forms["packed-max"]
        rows.add_row(Text(each.application), *_cells(each.best),
                     f"{packed.nodes:,}" if packed else "-",
                     _ratio(each.speedup("best")), _ratio(each.speedup("best", "worst-case")),
                     _ratio(each.degree, ""))  # fmt: skip
    return rows


def _rows(found: Sequence[Found]) -> Any:
    """Returns a row per configuration of each application."""
    from rich.text import Text

    rows = _table("application", "", "configuration", "s", "W", "unused", "speed-up", "degree")
    for each in found:
        for kind in KINDS:
            name = Text(each.application if kind == KINDS[0] else "")
            unused = each.wasted(kind)
            rows.add_row(name, Text(kind.replace("-case", " case"), "bold" * (kind == "best")),
                         *_cells(each.points[kind]), "-" if unused is None else f"{unused:.1%}",
                         _ratio(each.speedup(kind)),
                         _ratio(each.degree, "") if kind == "best" else "")  # fmt: skip
    return rows


def _cells(point: Point | None) -> tuple[str, str, str]:
    if point is None:
        return "-", "-", "-"
    seconds = f"{point.seconds:,.0f}" if point.seconds >= 1000 else f"{point.seconds:.4g}"
    return point.name, seconds, f"{point.watts:,.0f}"


def _ratio(value: float | None, sign: str = "×") -> str:
    return "-" if value is None else f"{value:.2f}{sign}"


def _notes(
    tables: Mapping[str, Table], found: Sequence[Found], node_w: float, detail: bool
) -> list[str]:
    """Returns the mean speed-up, and why there is nothing where there is nothing."""
    from odonata.provisioning.search import why_none

    speedups = [value for each in found if (value := each.speedup("best")) is not None]
    lines = []
    if len(speedups) > 1:
        mean = sum(speedups) / len(speedups)
        lines.append(f"mean speed-up of the best over packed-max: {mean:.2f}×, at most "
                     f"{max(speedups):.2f}×")  # fmt: skip
    shown = KINDS if detail else ("best", "packed-max", "worst-case")
    for each in found:
        none = [kind for kind in shown if each.points[kind] is None]
        if each.best is None:  # then there is nothing else either
            none = ["best"]
        lines += [f"no {kind.replace('-case', ' case')}: "
                  f"{why_none(tables[each.application], kind, each.bound_w, node_w)}"
                  for kind in none]  # fmt: skip
    return lines
