"""`odonata debug`: an experiment in pdb, which stops where packets and events are of interest."""

from __future__ import annotations

from bdb import BdbQuit
from pathlib import Path

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import plugin_option
from pdes import launcher
from pdes.errors import Refused


@click.command("debug", context_settings=SETTINGS)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--break-at", "places", multiple=True, metavar="PLACE",
              help="Stop at events there: router:17, node:5, job:NAME (its tasks), time:3us (the "
              "first event from then on), packet:N or scheduler; repeatable.")  # fmt: skip
@click.option("--packet", "packets", multiple=True, type=click.IntRange(0), metavar="N",
              help="Stop wherever this packet is handled, by the number that `odonata packet` and "
              "every stop show; repeatable.")  # fmt: skip
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
              help="A change to the file, as for `odonata run`; repeatable.")  # fmt: skip
@click.option("--checks/--no-checks", default=True,
              help="Check every invariant after every event, or hurry to the stops.")  # fmt: skip
@plugin_option
def command(
    file: Path,
    places: tuple[str, ...],
    packets: tuple[int, ...],
    changes: tuple[str, ...],
    checks: bool,
    plugins: tuple[Path, ...],
) -> None:
    """Run an experiment FILE on one rank without the compiler, and stop in pdb, in the function
    that handles an event, at the places that are asked for: at the first event if none is. The
    event and its packet are printed in words. `n` and `s` step, `c` goes on to the next stop, `q`
    ends it. Nothing is kept."""
    if (ranks := launcher.ranks() or 1) > 1:
        raise Refused(f"debug runs on one rank, not on {ranks}")
    from dataclasses import replace

    from odonata.commands.stops import Stops
    from odonata.experiment.experiment import JobExperiment
    from odonata.experiment.reading import load
    from odonata.experiment.units import show_time
    from pdes.driver import run

    experiment = load(file, changes, plugins)
    if isinstance(experiment, JobExperiment):
        raise Refused(f'{file}: fidelity = "job": there are no packets; a policy can be stopped '
                      "with breakpoint() in its code")  # fmt: skip
    model = replace(experiment.model(), trace_packets=1)
    stops = Stops(model, places or (() if packets else ("time:0ps",)), packets)
    print(f"odonata: {experiment.name}: {model.machine.n_nodes:,} nodes; help lists pdb's commands,"
          " c goes on to the next stop", flush=True)  # fmt: skip
    try:
        result = run(stops.network(), experiment.run.end, protocol=experiment.run.protocol,
                     debug=checks)  # fmt: skip
    except BdbQuit:
        print("odonata: left before the end")
        return
    how = "" if stops.count else "; it never stopped: nothing happened there"
    print(f"odonata: came to {show_time(result.time_ps)}, {result.events:,} events, "
          f"digest {result.digest[:12]}{how}")  # fmt: skip
