"""`odonata doctor`: what this installation has, and whether it works, found out by trying it."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from odonata import __version__
from odonata.commands.group import SETTINGS
from odonata.commands.options import json_option
from odonata.commands.output import print_json, print_table
from pdes import launcher

TRY = ("bench", "phold", "--lps", "64", "--end", "20us", "--json", "--no-progress")
PATIENCE = 120
"""Seconds that a trial may take; it includes compiling on a slow disk."""


@dataclass(frozen=True)
class Finding:
    """A finding. `ok` is None for what is neither right nor wrong."""

    what: str
    ok: bool | None
    found: str
    cure: str = ""


@click.command("doctor", context_settings=SETTINGS)
@json_option
def command(as_json: bool) -> None:
    """Find out whether this installation works, alone and on two ranks."""
    sys.exit(examine(as_json) if launcher.rank() == 0 else 0)


def examine(as_json: bool) -> int:
    """Print what was found. Returns the exit status: 0 if everything works."""
    findings: list[Finding] = []
    for look in (_python, _packages, _cores, _cache, _one_rank, _mpi, _two_ranks):
        findings += look(findings)
    if as_json:
        print_json({"odonata": __version__, "findings": [asdict(f) for f in findings]})
    else:
        _show(findings)
    return 1 if any(f.ok is False for f in findings) else 0


def find_mpiexec() -> str | None:
    """Returns the launcher: first the one beside this Python, where the `mpich` wheel puts it."""
    beside = Path(sys.executable).parent
    return shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")


def _python(_: list[Finding]) -> list[Finding]:
    words = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return [Finding("Python", sys.version_info >= (3, 11), words, "Python 3.11 or later is needed")]


def _packages(_: list[Finding]) -> list[Finding]:
    words = [f"{name} {_version(name)}" for name in ("numpy", "numba", "h5py", "networkx", "scipy")]
    return [Finding("packages", None, ", ".join(words))]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cores(_: list[Finding]) -> list[Finding]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [Finding("cores", None, f"{usable} usable of {os.cpu_count()}")]


def _cache(_: list[Finding]) -> list[Finding]:
    from pdes.kernel_cache import cache_root

    cure = "set ODONATA_CACHE_DIR to a directory that can be written"
    try:
        root = cache_root()
        files = [f for f in root.rglob("*.nbc") if f.is_file()]
        size = sum(f.stat().st_size for f in files) / 2**20
        with tempfile.NamedTemporaryFile(dir=root):
            pass
    except OSError as error:
        return [Finding("compiler cache", False, str(error), cure)]
    content = f"{len(files)} compiled kernels, {size:.1f} MiB" if files else "empty"
    return [Finding("compiler cache", True, f"{root}: {content}")]


def _one_rank(_: list[Finding]) -> list[Finding]:
    return [_attempt("one rank", [], lambda out: f"digest {out['digest'][:12]}")]


CLUSTER = ("LMOD_CMD", "MODULESHOME", "CRAYPE_VERSION", "SLURM_CLUSTER_NAME", "SLURM_JOB_ID",
           "PBS_JOBID", "LSB_JOBID")  # fmt: skip
"""Variables that are set where a site provides software in modules, or within a job of its
scheduler."""
SCHEDULERS = ("srun", "sbatch", "qsub", "bsub", "aprun", "jsrun")
"""Commands that there are where jobs are submitted."""
COMPILERS = ("mpicc", "cc")
"""What mpi4py is built with; `cc` is Cray's, which knows MPI."""


def cluster() -> str:
    """Returns what tells that this is a machine of a site with an MPI of its own: "srun on the
    PATH"; "" where nothing does."""
    found = [f"{name} on the PATH" for name in SCHEDULERS if shutil.which(name)][:1]
    return ", ".join(found + [name for name in CLUSTER if os.environ.get(name)][:1])


def site_compiler() -> str | None:
    """Returns the compiler of an MPI that is installed outside this Python's environment."""
    names = COMPILERS if "CRAYPE_VERSION" in os.environ else COMPILERS[:1]
    beside = Path(sys.executable).parent.resolve()
    for name in names:
        path = shutil.which(name)
        if path and Path(path).parent.resolve() != beside:
            return path
    return None


def how_to_get_mpi() -> str:
    """Returns how mpi4py is installed here: on a cluster, or where there is an MPI already, with
    that MPI; elsewhere with one of its own."""
    compiler = site_compiler()
    if compiler:
        return f"build it with the MPI of {compiler}: pip install --no-binary=mpi4py mpi4py"
    if where := cluster():
        return (f"this is a cluster ({where}): load the site's MPI module, then pip install "
                "--no-binary=mpi4py mpi4py; not the extra `mpi`, whose MPICH knows nothing of the "
                "site's network and launcher")  # fmt: skip
    return "pip install mpi4py mpich"


def _mpi(_: list[Finding]) -> list[Finding]:
    if _version("mpi4py") is None:
        return [Finding("MPI", None, "mpi4py is not installed: one rank only",
                        f"for more: {how_to_get_mpi()}")]  # fmt: skip
    mpiexec, where = find_mpiexec(), cluster()
    if mpiexec is None:
        cure = "pip install mpich, or load your site's MPI module"
        if where:
            launch = "srun -n 2 " if shutil.which("srun") else ""
            cure = (f"this is a cluster ({where}): load the site's MPI module, or start ranks with "
                    f"its launcher within a job: {launch}odonata {' '.join(TRY)}")  # fmt: skip
        words = f"mpi4py {_version('mpi4py')}, but no mpiexec on the PATH"
        return [Finding("MPI", None if where else False, words, cure)]
    if where and _version("mpich"):
        return [Finding("MPI", None, f"mpi4py {_version('mpi4py')}, {mpiexec}, from the package "
                        f"mpich {_version('mpich')} on a cluster ({where})",
                        "it does not use the site's network and launcher; for more than one host: "
                        f"pip uninstall mpich mpi4py; {how_to_get_mpi()}")]  # fmt: skip
    return [Finding("MPI", True, f"mpi4py {_version('mpi4py')}, {mpiexec}")]


def _two_ranks(before: list[Finding]) -> list[Finding]:
    mpiexec = find_mpiexec()
    if mpiexec is None or _version("mpi4py") is None:
        return []
    alone = next(f for f in before if f.what == "one rank")

    def judge(out: dict[str, str]) -> str:
        same = f"digest {out['digest'][:12]}"
        if same not in alone.found:
            raise ValueError(f"{same}, but one rank gave {alone.found}")
        return f"{same}, as on one rank; {out['mpi']}"

    return [_attempt("two ranks", [mpiexec, "-n", "2"], judge)]


def _attempt(what: str, prefix: list[str], judge: Callable[[dict[str, str]], str]) -> Finding:
    began = time.perf_counter()
    command = [*prefix, sys.executable, "-m", "odonata", *TRY]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False,
            env=dict(launcher.environment_without()),
        )  # fmt: skip
        if done.returncode:
            raise ValueError(f"exit status {done.returncode}: {told(done.stderr, done.stdout)}")
        verdict = judge(json.loads(done.stdout))
    except (ValueError, OSError, subprocess.TimeoutExpired) as error:
        return Finding(what, False, str(error), f"try: {' '.join(command)}")
    return Finding(what, True, f"{verdict} ({time.perf_counter() - began:.1f} s)")


MOST_LINES, FIRST_LINES = 40, 20
"""The most lines that are shown of what a trial has printed, and how many of them are its first."""


def told(stderr: str, stdout: str) -> str:
    """Returns what a trial that failed has printed. MPI libraries begin with what went wrong, and
    launchers end with what became of it, so of a very long text the middle is left out."""
    lines = (stderr.strip() or stdout.strip()).splitlines()
    left_out = len(lines) - MOST_LINES
    if left_out > 0:
        lines[FIRST_LINES : FIRST_LINES + left_out] = [f"[{left_out:,} lines are left out]"]
    return "\n".join(lines)


def _show(findings: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    marks = {True: Text("works", "green"), False: Text("fails", "bold red"), None: Text("")}
    table = Table(title=f"odonata {__version__}", title_justify="left", show_header=False)
    for finding in findings:
        words = Text(finding.found)
        if finding.ok is not True and finding.cure:
            words.append(f"\n{finding.cure}", "bold")
        table.add_row(finding.what, marks[finding.ok], words)
    print_table(table)
