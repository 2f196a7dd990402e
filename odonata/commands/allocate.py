"""`odonata allocate`: which nodes jobs get, without any simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import (
    Quantity,
    floor_options,
    json_option,
    plugin_option,
)
from pdes import launcher

if TYPE_CHECKING:
    from topology import Dragonfly

# -- what a user writes


def parse_sizes(text: str) -> list[int]:
    """Read '4,8,54'."""
    return [_whole(word, "--jobs 4,8,54") for word in text.split(",")]


def parse_labels(text: str) -> list[tuple[int, int]]:
    """Read '0-15,40', as first and last of each range."""
    ranges = []
    for word in text.split(",") if text.strip() else []:
        first, dash, last = word.partition("-")
        low = _whole(first, "--busy 0-15,40")
        high = _whole(last, "--busy 0-15,40") if dash else low
        if high < low:
            raise ValueError(f"{word.strip()!r} ends before it begins; as in --busy 0-15,40")
        ranges.append((low, high))
    return ranges


def _whole(word: str, example: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise ValueError(f"{word.strip()!r} is not a whole number; as in {example}") from None


# -- what a user reads


@click.command("allocate", context_settings=SETTINGS)
@floor_options
@click.option("--jobs", type=Quantity("SIZES", parse_sizes), required=True,
              help="Nodes of each job, with commas: 4,8,54.")  # fmt: skip
@click.option("--policy", default="level-spread", show_default=True, metavar="NAME",
              help="Who chooses the nodes; `odonata policies` lists them.")  # fmt: skip
@click.option("--parameter", "parameters", multiple=True, metavar="NAME=VALUE",
              help="A parameter of the policy; repeatable.")  # fmt: skip
@click.option("--order", default="fcfs", show_default=True, metavar="NAME",
              help="The order in which the jobs are placed: fcfs, small-first or large-first."
              )  # fmt: skip
@click.option("--busy", type=Quantity("LABELS", parse_labels), default="",
              help="Nodes that are busy from the start: 0-15,40.")  # fmt: skip
@click.option("--counters", "told", multiple=True, metavar="FILE",
              type=click.Path(path_type=Path, dir_okay=False),
              help="What the network reported of the last second, as CSV with the columns "
              "node,sent,received (bytes) or router,stall,wait (ps); repeatable.")  # fmt: skip
@click.option("--sensitive/--insensitive", default=None,
              help="Whether congestion slows the jobs down; unknown if not given.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
              help="Seed of policies that draw at random.")  # fmt: skip
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False),
              help="Draw who sits where, as .png, .svg or .pdf.")  # fmt: skip
@plugin_option
@json_option
def command(machine: Dragonfly, preset: str, plugins: tuple[Path, ...], **asked: Any) -> None:
    """Place jobs on an idle machine, and show which nodes each of them gets."""
    from odonata.commands.allocate_shown import report
    from policies.register import load_plugin

    if launcher.rank() == 0:
        for path in plugins:
            load_plugin(path)
        report(machine, **asked)
