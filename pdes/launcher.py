"""What a launcher (mpiexec, srun) has set for this process, read without touching any MPI."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
"""The variables of MPICH and its kin, Open MPI, MVAPICH, srun."""
RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
HERE = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE")
LAUNCHERS = ("mpiexec", "mpiexec.hydra", "mpirun", "orterun", "prterun", "srun")
"""The names of launchers' processes, in at most 15 letters."""
SPAWNERS = ("hydra_pmi_proxy", "prted", "orted", "slurmstepd", *LAUNCHERS)
"""The names of those that start the ranks of one host, for a launcher or by itself."""
OURS = ("PMI", "OMPI_", "MV2_", "SLURM_", "HYDRA_", "HYDI_", "MPI_LOCAL", "MPIR_", "PRTE_")


def ranks() -> int | None:
    """Returns how many ranks were started; 0 where there is a launcher that does not say; None
    where there is no launcher."""
    sizes = [int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdigit()]
    if sizes:
        return max(sizes)  # an mpirun inside an srun inherits the outer one's
    if any(name in os.environ for name in RANKS if name != "SLURM_PROCID"):
        return 0
    return None


def rank() -> int:
    """Returns this process's rank, as far as is known; 0 without a launcher."""
    if ranks() is None:
        return 0
    return next((int(os.environ[n]) for n in RANKS if os.environ.get(n, "").isdigit()), 0)


def here() -> int:
    """Returns how many of the ranks are on this machine; 0 where the launcher does not say."""
    return next((int(os.environ[n]) for n in HERE if os.environ.get(n, "").isdigit()), 0)


def hosts() -> int:
    """Returns on how many machines the ranks are, at most: each on one of its own, unless the
    launcher says how many are on this one."""
    return -(-(ranks() or 1) // max(1, here()))


class Process(NamedTuple):
    pid: int
    name: str
    started: str
    """When it started, in clock ticks since the machine did: with the pid, this names a process for
    ever."""


def ancestors() -> Iterator[Process]:
    """Returns the ancestors of this process, nearest first, as far as they can be seen."""
    pid = os.getppid()
    try:
        while pid > 0:
            about = Path(f"/proc/{pid}/stat").read_text()
            rest = about[about.rindex(")") + 1 :].split()
            yield Process(pid, about[about.index("(") + 1 : about.rindex(")")], rest[19])
            pid = int(rest[1])
    except (OSError, ValueError, IndexError):
        return


def parent() -> tuple[int, str]:
    """Returns the process that started the ranks of this machine, and when it was started."""
    known = list(ancestors())
    for process in known:
        if process.name in SPAWNERS:
            return process.pid, process.started
    return (known[0].pid, known[0].started) if known else (os.getppid(), "")


def launchers() -> list[int]:
    """Returns the processes on this machine whose end leaves the ranks alone: the nearest one that
    starts ranks here, and the nearest launcher, which may be the same."""
    found: list[int] = []
    for names in (SPAWNERS, LAUNCHERS):
        found += [process.pid for process in ancestors() if process.name in names][:1]
    return [*dict.fromkeys(found)]


def stderr() -> int:
    """Returns a file descriptor for words that must reach the user even if the launcher is about to
    end: the launcher's own stderr, where it is a terminal or a pipe on this machine (a file may be
    written from the place where the launcher stands in it, and words would be lost), or 2."""
    return _opened_stderr((*TERMINALS, "pipe:"), os.O_WRONLY | os.O_NOCTTY)


def last_words() -> int:
    """Returns a file descriptor for words that must reach the user when the launcher is gone: its
    stderr, whatever that is, for nobody else writes there any more; or 2."""
    return _opened_stderr(("/", "pipe:"), os.O_WRONLY | os.O_NOCTTY | os.O_APPEND)


def _opened_stderr(kinds: tuple[str, ...], how: int) -> int:
    for process in ancestors():
        if process.name in LAUNCHERS:
            try:
                path = f"/proc/{process.pid}/fd/2"
                if os.readlink(path).startswith(kinds):
                    return os.open(path, how)
            except OSError:
                pass
            break
    return 2


TERMINALS = ("/dev/pts/", "/dev/tty")


def terminal() -> bool:
    """Tells whether a user sees what this process writes to stderr at once. Under a launcher, which
    has given its ranks a pipe, its own stderr decides (as far as it can be found, on this machine).
    """
    if ranks() is None or sys.stderr.isatty():
        return sys.stderr.isatty()
    for process in ancestors():
        if process.name in LAUNCHERS:
            try:
                return os.readlink(f"/proc/{process.pid}/fd/2").startswith(TERMINALS)
            except OSError:
                break
    return False


def environment_without() -> Mapping[str, str]:
    """Returns this process's environment without the variables of its launcher, to start one from.
    Where it has none, all that looks so was set by the user, for a launcher."""
    launched = any(name in os.environ for name in (*SIZES, *RANKS))
    return {k: v for k, v in os.environ.items() if not (launched and k.startswith(OURS))}
