"""`odonata trace`: what is in a file of jobs; and the same jobs, filtered or rescaled, as SWF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import Quantity, json_option, plot_option
from odonata.commands.output import print_json, print_table
from odonata.experiment.units import show_duration, time_us
from pdes import launcher
from pdes.errors import Refused
from pdes.replacing import check_place

if TYPE_CHECKING:
    from odonata.traces.source import Source
    from odonata.traces.trace import Trace

TIME = Quantity("TIME", time_us)
SUFFIXES = (".swf", ".swf.gz")


@click.command("trace", context_settings=SETTINGS)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--model", metavar="NAME", help="A model that makes jobs, in place of FILE: poisson, "
              "lublin, mira, or rmap-small, -large or -random.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), help="How many jobs the model makes.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
              help="Seed of the model.")  # fmt: skip
@click.option("--format", metavar="NAME", help="The format of FILE, where it is not found: swf, "
              "batsim, sacct or karelian.")  # fmt: skip
@click.option("--from", "begin", type=TIME, help="Only jobs submitted from this time of the trace "
              "on, such as 7d.")  # fmt: skip
@click.option("--to", "end", type=TIME, help="Only jobs submitted before this time of the trace.")
@click.option("--first", type=click.IntRange(1), help="Only so many jobs, from the beginning.")
@click.option("--nodes", type=click.IntRange(1), help="Nodes of the machine; larger jobs are "
              "dropped.  [default: those that the trace tells of]")  # fmt: skip
@click.option("--scale-sizes", is_flag=True, help="Scale sizes of jobs from the trace's own "
              "machine to --nodes.")  # fmt: skip
@click.option("--load", type=float, help="Rescale gaps between submissions to this offered load.")
@click.option("--epoch", metavar="DATE", help="The date of time 0 of the trace, such as "
              "2026-03-02T00:00+01:00.  [default: what the trace tells]")  # fmt: skip
@click.option("--timezone", metavar="ZONE", help="The time zone of the trace, such as "
              "Europe/Stockholm or +01:00.  [default: what the trace tells]")  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the jobs, as .swf or .swf.gz.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the file of -o, if there is one.")
@plot_option
@json_option
def command(**asked: Any) -> None:
    """Show what is in a FILE of jobs; filter it, rescale it, and write it as SWF."""
    if launcher.rank() == 0:
        report(**asked)


def report(
    file: Path | None,
    *,
    model: str | None = None,
    jobs: int | None = None,
    seed: int = 1,
    format: str | None = None,
    begin: int | None = None,
    end: int | None = None,
    first: int | None = None,
    nodes: int | None = None,
    scale_sizes: bool = False,
    load: float | None = None,
    epoch: str | None = None,
    timezone: str | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    plot: Path | None = None,
    as_json: bool = False,
) -> None:
    """Read or make the jobs, change them as asked, and print, draw and write them."""
    from odonata.results.trace_facts import facts
    from odonata.traces.source import Source

    if out is not None:
        check_out(out, overwrite)
    if plot is not None:
        from odonata.figures.style import check_name

        check_name(plot)
    source = Source("" if file is None else str(file), model, format, jobs, nodes, first, load,
                    scale_sizes=scale_sizes, epoch=epoch, timezone=timezone)  # fmt: skip
    check(source, begin, end)
    trace, size, nodes_from = jobs_of(source, seed, begin, end)
    found = facts(trace, size, nodes_from)
    if plot is not None:
        from odonata.figures.trace import write

        write(trace, size, plot, rescaled=load is not None and model is None)
    if out is not None:
        write_swf(out, trace)
    if as_json:
        print_json(found | {"written": None if out is None else str(out)})
    else:
        print_table(*tables(found), highlight=False)
        if out is not None:
            print(f"\nwritten to {out}")


# -- the jobs


def check(source: Source, begin: int | None, end: int | None) -> None:
    """Refuse options that do not belong together."""
    if not source.file and source.model is None:
        raise Refused("which jobs? a FILE, or --model poisson, lublin, mira or rmap-random")
    if source.model in ("poisson", "lublin") and source.nodes is None:
        raise Refused(f"--model {source.model}: for a machine of how many nodes? --nodes N")
    if source.scale_sizes and source.nodes is None:
        raise Refused("--scale-sizes: to a machine of how many nodes? --nodes N")
    if begin is not None and end is not None and end <= begin:
        raise Refused(f"--from {show_duration(begin / 1e6)} --to {show_duration(end / 1e6)}: it "
                      "ends before it begins")  # fmt: skip


def jobs_of(
    source: Source, seed: int = 1, begin: int | None = None, end: int | None = None
) -> tuple[Trace, int, str]:
    """Returns the jobs, the number of nodes that their load is on, and where that comes from.

    The jobs are those of `Source.trace`, but for three things. They may be limited to some time.
    Where no requested time is recorded, it stays unknown. And where nobody tells the size of the
    machine, it is that of the largest job.
    """
    from odonata.results.trace_facts import GIVEN, LARGEST, TOLD
    from odonata.traces.changing import between

    made = source.given(source.nodes, seed)
    if begin is not None or end is not None:
        last = int(made.submit_us[-1]) + 1
        if begin is not None and begin >= last:
            raise Refused(f"--from {show_duration(begin / 1e6)}: the last job is submitted at "
                          f"{show_duration(last / 1e6)}")  # fmt: skip
        made = between(made, begin or 0, last if end is None else min(end, last))
    size, nodes_from = (source.nodes, GIVEN) if source.nodes else (made.machine_nodes, TOLD)
    if size is None:
        size, nodes_from = int(made.nodes.max()), LARGEST
    if source.scale_sizes and made.machine_nodes is None:
        raise Refused(f"--scale-sizes: {source.file} does not tell the size of its own machine:"
                      " write it with --nodes and -o first, which tells it")  # fmt: skip
    made = source.changed(made, size)
    if nodes_from == GIVEN:
        made = made.where(slice(None), machine_nodes=size)
    return made, size, nodes_from


# -- the file


def check_out(path: Path, overwrite: bool) -> None:
    """Refuse what cannot be written, before anything is read."""
    if not path.name.lower().endswith(SUFFIXES):
        raise Refused(f"-o {path}: SWF is written: the name must end in {' or '.join(SUFFIXES)}")
    check_place(path, "-o", overwrite=overwrite)


def write_swf(path: Path, trace: Trace) -> None:
    """Write the trace; a file that was there is replaced when all is written, and not before."""
    from odonata.traces import swf
    from pdes.replacing import replacing

    with replacing(path.resolve()) as part:  # a link stays one
        swf.write(part, trace)


# -- what a user reads


def tables(found: dict[str, Any]) -> Sequence[Any]:
    """Returns what is shown: the facts, a line each, and how sizes and times are spread."""
    from rich.table import Table
    from rich.text import Text

    lines = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    lines.add_column(no_wrap=True, style="dim")
    lines.add_column()
    for name, words in _lines(found):
        lines.add_row(name, Text(words))
    spreads = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    spreads.add_column("", no_wrap=True, style="dim")
    columns = {"min": "least", "median": "median", "mean": "mean", "p95": "95 %", "max": "most"}
    for title in columns.values():
        spreads.add_column(title, justify="right", no_wrap=True)
    rows = (("nodes", found["nodes"], _number), ("run time", found["run_s"], show_duration),
            ("requested time", found["requested_s"], show_duration),
            ("recorded wait", found["wait_s"], show_duration))  # fmt: skip
    for name, values, text in rows:
        if values is not None and values["max"] is not None:
            spreads.add_row(name, *(text(values[key]) for key in columns))
    return Text(_printable(found["name"]), "bold"), lines, Text(), spreads


def _lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns a name and words for each line; a name is empty where it goes on with the one above
    it."""
    lines = [(key, _printable(found[key])) for key in ("computer", "installation", "model")
             if found[key]]  # fmt: skip
    lines.append(("records", f"{found['records']:,}"))
    for key in ("dropped", "repaired"):
        reasons = sorted(found[key].items(), key=lambda it: -it[1])
        lines += [("" if at else key, f"{count:,}: {reason}")
                  for at, (reason, count) in enumerate(reasons)] or [(key, "none")]  # fmt: skip
    lines.append(
        (
            "jobs",
            f"{found['jobs']:,}{_rate(found['jobs_per_day'], found['span_s'])}",
        )
    )
    lines.append(("submitted", _submitted(found)))
    whence = {"given": "", "told by the trace": ""}.get(
        found["machine_nodes_from"],
        ", as many as the largest job has: the trace does not tell, and --nodes was not given",
    )
    lines.append(("machine", f"{found['machine_nodes']:,} nodes{whence}"))
    lines.append(
        (
            "load",
            "none: all jobs are submitted together"
            if found["load"] is None
            else f"{found['load']:.3f} on these, {_number(found['node_hours'])} node-hours",
        )
    )
    sizes, asked = found["nodes"], found["requested_s"]
    lines.append(
        (
            "sizes",
            f"{sizes['one_node_share']:.1%} of jobs have one node, "
            f"{sizes['power_of_two_share']:.1%} a power of two (1 among them)",
        )
    )
    if asked["jobs"]:
        of = "all jobs have one" if asked["jobs"] == found["jobs"] else f"{asked['jobs']:,} jobs"
        lines.append(
            (
                "requested times",
                f"{of}; run times are {asked['mean_accuracy']:.0%} of "
                f"them on average, {asked['longer']:,} are longer",
            )
        )
    else:
        lines.append(("requested times", "none"))
    wait = found["wait_s"]
    lines.append(("recorded waits", "none" if wait is None else f"of {wait['jobs']:,} jobs"))
    lines.append(("users", _users(found)))
    lines += [(key, f"{found[key]:,}" if found[key] else "none")
              for key in ("projects", "applications")]  # fmt: skip
    return lines


def _rate(per_day: float | None, span_s: float) -> str:
    """Returns how many jobs are submitted per day, hour or minute: the longest of these that the
    trace has."""
    if per_day is None:
        return ""
    for unit_s, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if span_s >= unit_s:
            return f", {_number(per_day * unit_s / 86400)} per {word}"
    return ""


def _submitted(found: dict[str, Any]) -> str:
    words = f"within {show_duration(found['span_s'])}" if found["span_s"] else "together"
    if found["first_submission"] is not None:
        words += (f", from {found['first_submission']} to {found['last_submission']} "
                  f"({_printable(found['time_zone'])})")  # fmt: skip
    return words


def _users(found: dict[str, Any]) -> str:
    if not found["users"]:
        return "none"
    busiest = found["busiest_users"][0]
    share = busiest["node_time_share"]
    words = "" if share is None else f" with {share:.1%} of the node-time"
    return (f"{found['users']:,}; the busiest is {_printable(busiest['name'])}{words} in "
            f"{busiest['jobs']:,} jobs")  # fmt: skip


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:.3g}"


def _printable(text: str) -> str:
    """Returns text of a file without what would move a terminal's cursor."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
