"""`odonata warm`: compile what runs need, ahead of them and on all cores.

A process compiles variants one after the other, and what two of them share only once: six routings
take as long as three that are compiled by themselves.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import cores, json_option, plugin_option
from odonata.commands.output import print_json
from pdes import launcher
from pdes.errors import require

if TYPE_CHECKING:
    from odonata.study.worker import Failure

PARTS = {
    "traffic": '[traffic]\npattern = "uniform"\nload = 0.1\n',
    "jobs": '[[jobs]]\nnodes = 2\npattern = "all-to-all"\n',
}
"""What a network may have, as sections of an experiment."""
SHORT = 1000
"""Simulated ticks (of a picosecond) after which all that handles packets has been compiled."""


@dataclass(frozen=True)
class Variant:
    """What is compiled: for a file, or for a routing and one of PARTS."""

    file: Path | None = None
    routing: str = ""
    part: str = ""
    plugins: tuple[Path, ...] = ()

    def __str__(self) -> str:
        return str(self.file or f"{self.routing} routing of {self.part}")


@dataclass(frozen=True)
class Warmed:
    """How long it took, and whether it had been compiled before."""

    variant: str
    seconds: float
    compiled: bool


@click.command("warm", context_settings=SETTINGS)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--routings", "parts", multiple=True, type=click.Choice(list(PARTS)),
              help="Every routing of these, besides the files; repeatable.  [default: of both, "
              "where there is no FILE]")  # fmt: skip
@plugin_option
@click.option("-j", "--jobs", type=click.IntRange(min=1), default=cores,
              help="How many to compile at a time.  [default: the cores there are]")  # fmt: skip
@json_option
def command(
    files: Sequence[Path],
    parts: Sequence[str],
    plugins: Sequence[Path],
    jobs: int,
    as_json: bool,
) -> None:
    """Compile what the experiments in FILE... need; without FILE, every routing of traffic and of
    jobs. It is kept on disk, and runs load it."""
    from odonata.study.pool import share
    from pdes.jit import ENABLED
    from pdes.kernel_cache import cache_root

    require(ENABLED, "ODONATA_JIT=0: nothing is compiled; unset it")
    if (launcher.ranks() or 1) > 1:  # one of them does it, as if it were alone
        alone = [sys.executable, "-m", "odonata", *sys.argv[1:]]
        environment = dict(launcher.environment_without())
        sys.exit(subprocess.run(alone, env=environment).returncode if launcher.rank() == 0 else 0)
    began = time.perf_counter()
    agenda = Warming(variants(files, parts, tuple(plugins)), show=not as_json)
    share(agenda, warm, jobs, unit="variants")
    seconds = time.perf_counter() - began
    if as_json:
        print_json({"seconds": seconds, "cache": str(cache_root()),
                    "variants": [vars(each) for each in agenda.warmed]})  # fmt: skip
    else:
        new = sum(each.compiled for each in agenda.warmed)
        print(f"{new} compiled and {len(agenda.warmed) - new} kept before, in {seconds:.0f} s: "
              f"{cache_root()}")  # fmt: skip


def variants(
    files: Sequence[Path], parts: Sequence[str], plugins: tuple[Path, ...]
) -> list[Variant]:
    """Returns what is to be compiled; the files first, which take longest. One that is wrong is
    refused before any is compiled."""
    from odonata.experiment.reading import load
    from policies.routing import ROUTINGS

    for file in files:
        load(file, plugins=plugins)
    parts = parts or (() if files else tuple(reversed(PARTS)))
    return [Variant(file, plugins=plugins) for file in files] + [
        Variant(None, routing, part, plugins) for part in parts for routing in sorted(ROUTINGS)
    ]


class Warming:
    """The variants that are yet to be compiled, for `odonata.study.pool`."""

    def __init__(self, waiting: list[Variant], show: bool) -> None:
        self._waiting, self._show, self._all = waiting[::-1], show, len(waiting)
        self.warmed: list[Warmed] = []

    def take(self) -> Variant | None:
        return self._waiting.pop() if self._waiting else None

    def note(self, answer: Warmed) -> None:
        self.warmed.append(answer)
        if self._show:
            how = f"{answer.seconds:.1f} s" if answer.compiled else "kept before"
            print(f"{answer.variant}: {how}", flush=True)

    def excuse(self, task: Variant, failure: Failure) -> bool:
        return False

    @property
    def missing(self) -> int:
        return self._all - len(self.warmed)

    @property
    def done(self) -> float:
        return len(self.warmed) / max(1, self._all)


def warm(variant: Variant) -> Warmed:
    """Compile all that a run of this needs, by running the first moment of it; where there are no
    packets, all of it, which is short and asks its policies late."""
    from odonata.experiment.experiment import JobExperiment
    from odonata.experiment.reading import load
    from odonata.results.execution import RunOptions, execute, recording
    from pdes.driver import run
    from pdes.jit import compiling

    began = time.perf_counter()
    with TemporaryDirectory(prefix="odonata-warm-") as made, compiling() as compiled:
        out, file = Path(made) / "out", variant.file
        out.mkdir()
        if file is None:
            file = Path(made) / "variant.toml"
            network = f'[machine]\npreset = "kim-72"\n[network]\nrouting = "{variant.routing}"\n'
            file.write_text(network + PARTS[variant.part])
        experiment = load(file, plugins=variant.plugins)
        if isinstance(experiment, JobExperiment):
            execute(RunOptions(file, out, overwrite=True, progress=False, plugins=variant.plugins))
        else:
            run(experiment.model(), SHORT, record=recording(experiment, out), show_compiling=False,
                protocol=experiment.run.protocol)  # fmt: skip
    return Warmed(str(variant), time.perf_counter() - began, bool(compiled))
