"""`odonata applications`: the application profiles there are, and where their numbers come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import json_option
from odonata.commands.output import print_json, print_table
from odonata.experiment.units import show_size, show_time
from pdes import launcher

if TYPE_CHECKING:
    from odonata.agents.profile import Profile
    from odonata.jobs.request import Stage


@click.command("applications", context_settings=SETTINGS)
@click.argument("name", required=False)
@click.option(
    "--toml", "as_toml", is_flag=True, help="Print the file of the profile, to start from."
)
@json_option
def command(name: str | None, as_toml: bool, as_json: bool) -> None:
    """List the application profiles that a job can have (`profile = "milc"`); or tell all about the
    one of a NAME, which may be a TOML file of your own."""
    if launcher.rank() == 0:
        show(name, as_toml, as_json)


def show(name: str | None, as_toml: bool, as_json: bool) -> None:
    """Print all profiles, or one."""
    from odonata.experiment.profiles import built_in, path_of, profile

    if as_toml and name is not None:
        print(path_of(name, Path()).read_text(encoding="utf-8"), end="")
        return
    found = [profile(each) for each in ([name] if name is not None else built_in())]
    if as_json:
        print_json([asdict(each) for each in found])
    elif name is not None:
        print("\n".join(sentences(found[0])))
    else:
        print_table(_table(found), highlight=False)


def sentences(found: Profile) -> Iterator[str]:
    """Yields what is known of a profile, line by line."""
    yield f"{found.name}: {found.about}"
    yield f"  source      {found.source or 'not given'}"
    sizes = "as given, with any number of tasks per node"
    if found.tasks_per_node is not None:
        sizes = f"for {found.tasks_per_node} tasks per node; with others a node sends as many bytes"
    yield f"  sizes       {sizes}"
    if found.nodes is not None:
        yield f"  calibrated  for {found.nodes} nodes, alone on consecutive ones"
    if found.sensitive is not None:
        yield f"  congestion  {'slows it down' if found.sensitive else 'hardly slows it down'}"
    yield f"  iterations  {found.iterations}"
    for number, stage in enumerate(found.stages):
        yield f"  {'stages' if number == 0 else '':10}  {stage_words(stage)}"
    if found.measured is not None:
        it = found.measured
        yield (f"  measured    {it.run_time_s:g} s on {it.ranks_per_node} ranks per node, "
               f"{it.communication:.1%} of it in MPI")  # fmt: skip
        yield (f"  {'':10}  {it.rank_bytes_per_s / 1e6:g} MB/s, {it.sends_per_s:g} sends/s and "
               f"{it.allreduces_per_s:g} allreduces/s per rank")  # fmt: skip
        shares = ", ".join(f"{name} {part:.1%}" for name, part in it.operations)
        yield f"  {'':10}  of its time: {shares}"


def stage_words(stage: Stage) -> str:
    """Returns a stage in a line."""
    parts = [f"{stage.repeat} × {stage.pattern}" if stage.repeat > 1 else stage.pattern,
             show_size(stage.message_bytes)]  # fmt: skip
    if stage.exchange != "posted":
        parts.append(stage.exchange)
    if stage.waits == "replies":
        parts.append(f"replies of {show_size(stage.reply_bytes)}")
    elif stage.waits != "messages":
        parts.append(f"waits for {stage.waits}")
    if stage.compute_ps:
        parts.append(f"computes {show_time(stage.compute_ps)}")
    if stage.imbalance:
        parts.append(f"imbalance {stage.imbalance:g}")
    if stage.overhead_ps:
        parts.append(f"overhead {show_time(stage.overhead_ps)}")
    return (f"{stage.name}: " if stage.name else "") + ", ".join(parts)


def _table(found: list[Profile]) -> Any:
    from rich.markup import escape
    from rich.table import Table

    rows = Table(box=None, pad_edge=False, padding=(0, 2), show_header=False)
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column(ratio=1)
    for each in found:
        rows.add_row(each.name, f"{escape(each.about)}\n[dim]{escape(each.source)}[/dim]")
    return rows
