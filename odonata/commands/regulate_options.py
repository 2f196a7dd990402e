"""The options that `odonata regulate` and `odonata bid` share: the jobs, the machine, the signal
and the prices. `regulate_asked` makes an experiment of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def job_options(policy: str) -> Callable[[Any], Any]:
    """Returns a decorator with the options that say which jobs come, and who starts them: by
    default this power policy."""
    return _together(
        click.option("--workload", metavar="MIX", help="The jobs: a mix that `odonata types` "
                     "lists, such as W4, or types of one of its tables, as bt or bt.C.16,cg.D.16."),
        click.option("--trace", type=click.Path(path_type=Path), metavar="FILE", help="The jobs "
                     "of a trace of your own, in one run, in place of a mix."),
        click.option("--types", metavar="TABLE", help="The types of the jobs: aqa, qosg or a CSV "
                     "file of your own.  [default: those of the mix]"),
        click.option("--policy", default=policy, show_default=True, metavar="NAME",
                     help="Who starts and caps jobs; parameters follow a colon: "
                     "energy-qare:limit=0.2. `odonata policies` lists them."),
    )  # fmt: skip


def market_options(command: Any) -> Any:
    """The options that say what the machine, the signal and the prices are."""
    return _together(
        click.option("--nodes", type=int, help="Nodes of the machine.  [default: those of the "
                     "paper that the mix, or the table of its types, is from]"),
        click.option("--load", type=float, help="The part of the nodes that is busy on average.  "
                     "[default: that of the mix]"),
        click.option("--standby", metavar="TYPE", help="The type of which there is always another "
                     "job that starts when nothing else waits and power is left; none: there is "
                     "none.  [default: ft, as in the thesis, where the workload is qosg]"),
        click.option("--signal", default="synthetic", show_default=True, metavar="FILE",
                     help="The grid's signal, -1 to 1: a CSV file, or synthetic."),
        click.option("--repair", is_flag=True, help="Repair values of the signal that are "
                     "missing, repeated or beyond -1 and 1, aloud."),
        click.option("--repeat", is_flag=True, help="Have the signal begin anew when it has "
                     "ended, as a day of it for a week."),
        click.option("--deviation", type=float, help="The standard deviation of a synthetic "
                     "signal.  [default: 0.4]"),
        click.option("--prices", metavar="E,R,D", help="Of energy, reserve and error, per kWh; "
                     "numbers or CSV files.  [default: 0.1,0.1,0.1]"),
        click.option("--epoch", metavar="DATE", help="The date of time 0, by which dated prices "
                     "and signals are placed, such as 2026-03-02T00:00+01:00.  [default: what the "
                     "trace tells]"),
        click.option("--timezone", metavar="ZONE", help="The time zone of dates that have none, "
                     "such as Europe/Stockholm or +01:00.  [default: what the trace tells]"),
        click.option("--preemption", is_flag=True, help="Suspend jobs where all are held at their "
                     "lowest cap and the machine still draws more."),
        click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
                     help="The first seed."),
        click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
                     help="A change to the experiment, as market.violation=0.5; repeatable."),
    )(command)  # fmt: skip


def _together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns one decorator for several options, which the help shows in this order."""

    def decorated(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated
