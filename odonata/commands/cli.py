"""The command line. Nothing heavy is imported here: `odonata --help` is instant."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from odonata import __version__
from odonata.commands.latency import latency
from odonata.commands.options import (
    TIME,
    Quantity,
    floor_options,
    machine_options,
    network_options,
)
from odonata.commands.study import study
from odonata.experiment.units import show_time
from pdes import launcher
from pdes.errors import Fault, Refused, os_words

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=SETTINGS)
@click.version_option(__version__, prog_name="odonata")
def cli() -> None:
    """Simulate a dragonfly supercomputer: its packets, its jobs, its watts.

    Every command works alone and under mpiexec, and gives the same answer on any number of ranks.
    """


def _without_jit(ctx: Any, param: Any, debug: bool) -> bool:
    """What must be settled before the first kernel is imported."""
    if debug:
        os.environ["ODONATA_JIT"] = "0"
    return debug


@cli.command(context_settings=SETTINGS)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Where its results go.  [default: out/NAME]")  # fmt: skip
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
              help="In place of what the file says: machine.groups=33, jobs[0].nodes=32; "
              "repeatable.")  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on with the run in DIR from its last checkpoint "
              "(or from the beginning, if there is none).")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the run in DIR.")
@click.option("--metrics/--no-metrics", default=True,
              help="Keep what is measured, or only tell the sums.")  # fmt: skip
@click.option("--check", is_flag=True, help="Only say what would be run, or what is wrong.")
@click.option("--debug", is_flag=True, callback=_without_jit, is_eager=True,
              help="One rank, JIT off, everything checked after every event.")  # fmt: skip
@click.option("--progress/--no-progress", default=None,
              help="Show how far it is; by default on a terminal only.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def run(check: bool, as_json: bool, **request: Any) -> None:
    """Run an experiment FILE, and keep what it measures."""
    from odonata.commands.run import forget_report, show, show_plan
    from odonata.results.execution import Request, execute

    asked = Request(**request)
    if check:
        show_plan(asked, as_json)
    else:
        show(execute(asked, forget_report), asked, as_json)


@cli.command(context_settings=SETTINGS)
@click.argument("path", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--every", default=1.0, show_default=True, help="Seconds between two looks.")
@click.option("--once", is_flag=True, help="One look; so too where this is not a terminal.")
def watch(path: Path, **how: Any) -> None:
    """Follow the run in DIR while it goes on."""
    from rich.console import Console

    from odonata.commands import watch as watching

    watching.watch(path, console=Console(markup=False), **how)


@cli.command(context_settings=SETTINGS)
@click.argument("path", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
def mend(path: Path) -> None:
    """Close the files that a run which died left open, so that any program reads them.

    Odonata itself needs none of it, and --resume does the same.
    """
    from odonata.results.execution import mended

    files = mended(path)
    print(f"{path}: " + (f"closed {', '.join(file.name for file in files)}" if files
                         else "nothing was left open"))  # fmt: skip


@cli.command(context_settings=SETTINGS)
@click.argument("a", type=click.Path(path_type=Path, file_okay=False))
@click.argument("b", type=click.Path(path_type=Path, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def diff(a: Path, b: Path, as_json: bool) -> None:
    """Are the metrics of the runs A and B the same, bit for bit? If not, where? (status 1)"""
    from odonata.results import diff as differences
    from odonata.results.run import open as open_run

    with open_run(a) as one, open_run(b) as other:
        verdict = differences.compare(one, other)
        print(differences.to_json(verdict) if as_json
              else differences.words_for(verdict, one, other))  # fmt: skip
    sys.exit(0 if verdict.same else 1)


RUN_DIR = click.Path(path_type=Path)


@cli.command(context_settings=SETTINGS)
@click.argument("directory", type=RUN_DIR, metavar="DIR")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="PATH",
              help="The page, or the directory of the figures.  [default: DIR/report.html, or "
              "DIR/figures]")  # fmt: skip
@click.option("--format", "kind", type=click.Choice(["html", "pdf", "png", "svg"]), default="html",
              show_default=True, help="One page to read, or figures for a paper.")  # fmt: skip
def report(directory: Path, out: Path | None, kind: str) -> None:
    """Make a page, or figures, of the run in DIR; finished or not."""
    if launcher.rank() == 0:
        from odonata.commands.report import write

        print(write(directory, out, kind))


@cli.command(context_settings=SETTINGS)
@click.argument("directories", nargs=-1, required=True, type=RUN_DIR, metavar="DIR DIR...")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False),
              help="Draw them over each other, as .png, .svg or .pdf.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def compare(directories: tuple[Path, ...], plot: Path | None, as_json: bool) -> None:
    """Tell how runs differ: in what was asked, and in what came of it."""
    if launcher.rank() == 0:
        from odonata.commands.compare import show

        show(directories, plot, as_json)


@cli.group(context_settings=SETTINGS)
def bench() -> None:
    """Run a known workload and say how fast."""


def run_options(command: Any) -> Any:
    """The options of anything that is simulated, and `How` in their place."""

    def with_how(**options: Any) -> None:
        from odonata.commands.bench import How

        names = ("end", "protocol", "debug", "checkpoint_dir", "checkpoint_every", "progress",
                 "compare")  # fmt: skip
        resume, known = options.pop("resume"), {name: options.pop(name) for name in names}
        if resume is not None:
            known["resume"] = Path(resume or known["checkpoint_dir"])
        command(how=How(**known), **options)

    with_how.__name__, with_how.__doc__ = command.__name__, command.__doc__
    with_how.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in reversed(
        [
            click.option("--protocol", type=click.Choice(["window", "null"]), default="window",
                         show_default=True, help="How ranks agree on how far it is safe to go."),
            click.option("--checkpoint-every", type=TIME, help="Of simulated time."),
            click.option("--checkpoint-dir", type=click.Path(path_type=Path),
                         default="odonata-checkpoint", show_default=True,
                         help="Where those, and the one that SIGTERM or SIGUSR1 makes, are kept."),
            click.option("--resume", is_flag=False, flag_value="", metavar="[DIR]",
                         help="Go on from the newest checkpoint there (or in --checkpoint-dir)."),
            click.option("--compare", is_flag=True,
                         help="Run it on one rank too, afterwards, and compare."),
            click.option("--debug", is_flag=True, callback=_without_jit, is_eager=True,
                         help="One rank, JIT off, everything checked after every event."),
            click.option("--progress/--no-progress", default=None,
                         help="Show how far it is; by default on a terminal only."),
            click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout."),
        ]
    ):  # fmt: skip
        with_how = option(with_how)
    return with_how


@bench.command(context_settings=SETTINGS)
@run_options
@click.option("--lps", default=1024, show_default=True, help="Logical processes.")
@click.option("--population", default=16, show_default=True, help="Events at each, always.")
@click.option("--remote", default=0.25, show_default=True,
              help="Probability that an event goes to a uniformly random process.")  # fmt: skip
@click.option("--lookahead", type=TIME, default="500ns", show_default=True, help="Least delay.")
@click.option("--mean", type=TIME, default="1us", show_default=True, help="Of the whole delay.")
@click.option("--end", type=TIME, default="300us", show_default=True, help="Of simulated time.")
@click.option("--seed", default=1, show_default=True)
def phold(how: Any, as_json: bool, **parameters: Any) -> None:
    """PHOLD, the benchmark of parallel discrete-event simulators."""
    from odonata.commands import bench as benches

    _tell(how, benches.phold(how, **parameters), as_json)


@bench.command(context_settings=SETTINGS)
@network_options
@run_options
@click.option("--duration", "end", type=TIME, help="Of simulated time.  [default: 100us]")
def dragonfly(how: Any, as_json: bool, network: Any) -> None:
    """A dragonfly, packet by packet, under open-loop traffic."""
    from odonata.commands import bench as benches

    _tell(how, benches.dragonfly(how, network), as_json)


def _tell(how: Any, report: Any, as_json: bool) -> None:
    """The same for every bench; of several ranks one speaks."""
    from odonata.commands import bench as benches
    from pdes.transport import world

    if world().rank > 0:
        return
    if as_json:
        print(benches.to_json(report))
    else:
        from rich.console import Console

        Console().print(benches.table(report))
    if not report.result.completed:
        print(f"odonata: stopped at {show_time(report.result.time_ps)}; go on with --resume "
              f"{how.checkpoint_dir}", file=sys.stderr)  # fmt: skip
    if report.alone and not report.same:
        raise Fault("one rank gave another digest: please report this")


cli.add_command(latency)
cli.add_command(study)


@cli.command(context_settings=SETTINGS)
@machine_options
@click.argument("name", required=False)
@click.option("--list", "list_all", is_flag=True, help="The presets, and where they come from.")
@click.option("--ranks", type=int, help="Say how this many ranks would share it.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False),
              help="Draw it, as .png, .svg or .pdf.")  # fmt: skip
@click.option("--graphml", type=click.Path(path_type=Path, dir_okay=False),
              help="Write it as a graph, nodes included.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def topology(list_all: bool, as_json: bool, **request: Any) -> None:
    """Describe, draw or export a machine: a preset NAME, or one of your own."""
    if launcher.rank() > 0:
        return
    from odonata.commands import topology as machine

    if list_all:
        print(machine.presets_json()) if as_json else machine.show(machine.presets())
    else:
        machine.describe(as_json=as_json, **request)


def _sizes(text: str) -> Any:
    from odonata.commands.allocate import parse_sizes

    return parse_sizes(text)


def _labels(text: str) -> Any:
    from odonata.commands.allocate import parse_labels

    return parse_labels(text)


@cli.command(context_settings=SETTINGS)
@floor_options
@click.option("--jobs", type=Quantity("SIZES", _sizes), required=True,
              help="Nodes of each job, with commas: 4,8,54.")  # fmt: skip
@click.option("--policy", default="level-spread", show_default=True, metavar="NAME",
              help="Who chooses the nodes; `odonata policies` lists them.")  # fmt: skip
@click.option("--order", default="fcfs", show_default=True, metavar="NAME",
              help="In which the jobs are placed: fcfs, small-first or large-first.")  # fmt: skip
@click.option("--busy", type=Quantity("LABELS", _labels), default="",
              help="Nodes that are busy from the start: 0-15,40.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
              help="Of what is random.")  # fmt: skip
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False),
              help="Draw who sits where, as .png, .svg or .pdf.")  # fmt: skip
@click.option("--plugin", "plugins", multiple=True, type=click.Path(path_type=Path),
              help="A file that registers policies; may be given several times.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def allocate(machine: Any, preset: str, plugins: tuple[Path, ...], **asked: Any) -> None:
    """Place jobs on an idle machine, and say which nodes each of them gets."""
    if launcher.rank() == 0:
        from odonata.commands.allocate import report
        from policies.register import load_plugin

        for path in plugins:
            load_plugin(path)
        report(machine, **asked)


@cli.command(context_settings=SETTINGS)
@click.argument("name", required=False)
@click.option("--plugin", "plugins", multiple=True, type=click.Path(path_type=Path),
              help="A file that registers policies; may be given several times.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def policies(name: str | None, plugins: tuple[Path, ...], as_json: bool) -> None:
    """List the policies there are, of every kind; or tell all about the one of a NAME: its
    parameters with their units and defaults, its paper, whether it remembers, where it comes from.
    """
    if launcher.rank() == 0:
        from odonata.commands.policies import report
        from policies.register import load_plugin

        for path in plugins:
            load_plugin(path)
        report(name, as_json)


@cli.command(context_settings=SETTINGS)
@click.option("--json", "as_json", is_flag=True, help="As a JSON Schema, for editors.")
@click.option("--toml", "as_toml", is_flag=True, help="As a file to start from.")
def schema(as_json: bool, as_toml: bool) -> None:
    """Tell what an experiment file may hold."""
    if launcher.rank() == 0:
        from odonata.commands.schema import report

        report(as_json, as_toml)


@cli.command(context_settings=SETTINGS)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def doctor(as_json: bool) -> None:
    """Find out whether this installation works, alone and on two ranks."""
    from odonata.commands.doctor import examine

    sys.exit(examine(as_json) if launcher.rank() == 0 else 0)


def main() -> None:
    """The console command: `cli`, with errors as one line, once, whatever the number of ranks."""
    try:
        cli.main(standalone_mode=False)
    except click.ClickException as error:
        if launcher.rank() == 0:
            error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except Refused as refusal:
        _leave(2, str(refusal))
    except (Fault, OSError, MemoryError) as error:
        if "--debug" in sys.argv:
            raise
        words = os_words(error) if isinstance(error, OSError) else str(error)
        _leave(1, words or type(error).__name__)


def _leave(status: int, reason: str) -> NoReturn:
    """All ranks come here together."""
    if launcher.rank() == 0:
        print("\n".join(f"odonata: {line}" for line in reason.split("\n")), file=sys.stderr)
    sys.exit(status)
