"""`odonata doctor`: what it advises about MPI, on a laptop and on a cluster, and what it shows of a
trial that failed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from odonata.commands import doctor
from odonata.commands.doctor import Finding

MINE = str(Path(sys.executable).parent)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without any MPI, module or scheduler."""
    for name in doctor.CLUSTER:
        monkeypatch.delenv(name, raising=False)
    return have(monkeypatch)


def have(monkeypatch: pytest.MonkeyPatch, *paths: str, **packages: str) -> pytest.MonkeyPatch:
    """Pretend that these programs and packages are there, and no others."""
    known = {Path(path).name: path for path in paths}

    def which(name: str, path: Path | None = None) -> str | None:
        found = known.get(name)
        return found if path is None or (found and Path(found).parent == path) else None

    monkeypatch.setattr(doctor.shutil, "which", which)
    monkeypatch.setattr(doctor, "_version", packages.get)
    return monkeypatch


def mpi() -> Finding:
    (found,) = doctor._mpi([])
    return found


def test_on_a_laptop_an_mpi_of_its_own_is_advised(here: pytest.MonkeyPatch) -> None:
    assert mpi().cure == "for more: pip install mpi4py mpich"
    have(here, f"{MINE}/mpicc")  # which that package brings
    assert mpi().cure == "for more: pip install mpi4py mpich"


def test_where_there_is_an_mpi_mpi4py_is_built_with_it(here: pytest.MonkeyPatch) -> None:
    have(here, "/opt/site/bin/mpicc", "/usr/bin/srun")
    assert mpi().cure == ("for more: build it with the MPI of /opt/site/bin/mpicc: "
                          "pip install --no-binary=mpi4py mpi4py")  # fmt: skip


@pytest.mark.parametrize(
    ("program", "variable", "words"),
    [("/usr/bin/srun", "", "srun on the PATH"), ("", "LMOD_CMD", "LMOD_CMD"),
     ("/opt/pbs/bin/qsub", "MODULESHOME", "qsub on the PATH, MODULESHOME")],
)  # fmt: skip
def test_on_a_cluster_mpich_is_never_advised(
    here: pytest.MonkeyPatch, program: str, variable: str, words: str
) -> None:
    """docs/howto/cluster.md forbids it."""
    if variable:
        here.setenv(variable, "/opt")
    have(here, *[program] * bool(program))
    assert f"this is a cluster ({words}): load the site's MPI module" in mpi().cure
    assert "mpi4py mpich" not in mpi().cure
    have(here, *[program] * bool(program), mpi4py="4.0")
    found = mpi()
    assert found.ok is None
    assert "pip install mpich" not in found.cure
    have(here, f"{MINE}/mpiexec", *[program] * bool(program), mpi4py="4.0", mpich="4.3")
    assert "does not use the site's network and launcher" in mpi().cure


def test_what_works_is_not_called_ill(here: pytest.MonkeyPatch) -> None:
    have(here, f"{MINE}/mpiexec", mpi4py="4.0", mpich="4.3")
    assert mpi() == Finding("MPI", True, f"mpi4py 4.0, {MINE}/mpiexec")


def test_an_error_of_mpi_is_shown_from_its_first_line() -> None:
    long = "\n".join(["Fatal error in MPI_Init: Other MPI error", *["x" * 80] * 30, "exit code 15"])
    assert doctor.told(long, "") == long
    lines = doctor.told("\n".join(f"line {n}" for n in range(100)), "").splitlines()
    assert (lines[0], lines[-1]) == ("line 0", "line 99")
    assert "[60 lines are left out]" in lines
    assert doctor.told("", "told elsewhere\n") == "told elsewhere"


def test_a_trial_that_fails_is_told_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    launcher = tmp_path / "mpiexec"
    launcher.write_text("#!/bin/sh\necho 'Fatal error in MPI_Init: no such fabric' >&2\n"
                        "seq -f 'frame %03g of the error stack' 30 >&2; exit 15\n")  # fmt: skip
    launcher.chmod(0o755)
    found = doctor._attempt("two ranks", [str(launcher), "-n", "2"], str)
    assert found.found.startswith("exit status 15: Fatal error in MPI_Init: no such fabric\n")
    assert found.found.endswith("frame 030 of the error stack")
