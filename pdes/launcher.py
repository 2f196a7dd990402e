"""What a launcher (mpiexec, srun) has told this process, read without touching any MPI."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
"""MPICH and its kin, Open MPI, MVAPICH, srun."""
RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
HERE = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE")
LAUNCHERS = ("mpiexec", "mpiexec.hydra", "mpirun", "orterun", "prterun", "srun")
"""What they call themselves, in at most 15 letters."""
OURS = ("PMI", "OMPI_", "MV2_", "SLURM_", "HYDRA_", "HYDI_", "MPI_LOCAL", "MPIR_", "PRTE_")


def ranks() -> int | None:
    """How many ranks were started; 0 where there is a launcher that does not say; None where there
    is no launcher."""
    told = [int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdigit()]
    if told:
        return max(told)  # an mpirun inside an srun inherits the outer one's
    if any(name in os.environ for name in RANKS if name != "SLURM_PROCID"):
        return 0
    return None


def rank() -> int:
    """This process's rank, as far as can be told; 0 without a launcher."""
    if ranks() is None:
        return 0
    return next((int(os.environ[n]) for n in RANKS if os.environ.get(n, "").isdigit()), 0)


def hosts() -> int:
    """On how many machines the ranks are, at most: each on one of its own, unless we are told how
    many are on this one."""
    here = next((int(os.environ[n]) for n in HERE if os.environ.get(n, "").isdigit()), 1)
    return -(-(ranks() or 1) // max(1, here))


def terminal() -> bool:
    """Does a user see what this process says on stderr as it is said? Under a launcher, which has
    given its ranks a pipe, its own stderr decides (as far as it can be found, on this machine)."""
    if ranks() is None or sys.stderr.isatty():
        return sys.stderr.isatty()
    pid = os.getppid()
    try:
        while pid > 1:
            about = Path(f"/proc/{pid}/stat").read_text()
            if about[about.index("(") + 1 : about.rindex(")")] in LAUNCHERS:
                return os.readlink(f"/proc/{pid}/fd/2").startswith(("/dev/pts/", "/dev/tty"))
            pid = int(about[about.rindex(")") + 1 :].split()[1])
    except (OSError, ValueError):
        pass
    return False


def environment_without() -> Mapping[str, str]:
    """This process's environment as if no launcher had started it, to start one from."""
    return {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
