"""Every example and tool is run."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE, clean_environment

from odonata.commands.doctor import find_mpiexec

SCRIPTS = Path(__file__).parent.parent / "scripts"
JOBS = SCRIPTS.parent / "slurm_jobs"


def script(name: str, *words: str, ranks: int = 1, **env: str) -> str:
    prefix = [str(find_mpiexec()), "-n", str(ranks)] if ranks > 1 else []
    done = subprocess.run(
        [*prefix, sys.executable, str(SCRIPTS / name), *words],
        capture_output=True, text=True, timeout=PATIENCE, env={**clean_environment(), **env},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_ring_goes_round_and_is_the_same_on_any_ranks() -> None:
    alone, together = script("ring.py"), script("ring.py", ranks=2)
    assert alone.replace("on 1 ranks", "on 2 ranks") == together
    visits = json.loads(alone.rpartition("visits:")[2])
    assert len(visits) == 10
    assert max(visits) - min(visits) <= 1


@pytest.mark.long
def test_the_ring_goes_round_without_the_compiler() -> None:
    assert script("ring.py", ODONATA_JIT="0") == script("ring.py")


@pytest.mark.long
@pytest.mark.parametrize("flag", [[], ["--json"]])
def test_the_benchmark_measures(flag: list[str]) -> None:
    shown = script("bench.py", "--ranks", "1", "--repeat", "1", *flag)
    assert "events_per_second" in shown if flag else "one digest for all runs" in shown


@pytest.mark.long
def test_the_network_is_what_was_meant(tmp_path: Path) -> None:
    """In short; all of it takes some minutes: python scripts/validate.py."""
    claims = json.loads(script("validate.py", "--quick", "--json", "--plots", str(tmp_path)))
    assert list(claims) == ["zero-load", "queue", "booksim", "saturation"]
    judged = [row["holds"] for rows in claims.values() for row in rows if row["holds"] is not None]
    assert len(judged) > 40
    assert all(judged)
    assert len(list(tmp_path.glob("*.png"))) >= 3


@pytest.mark.long
def test_ranks_that_get_signals_keep_their_promises() -> None:
    """Three of them; more with --count: KILL, INT and TERM, at moments that the seed chooses."""
    shown = script("attack_signals.py", "--count", "3", "--seed", "4", "--longest", "3")
    assert shown.endswith("3 of 3 kept\n")


# -- sbatch files


@pytest.fixture
def cluster(tmp_path: Path) -> dict[str, str]:
    """An environment in which srun runs a command here, and scontrol notes what it is told."""
    here = Path(sys.executable).parent
    for name, body in (("srun", 'shift; exec "$@"'), ("scontrol", 'echo "$@" >> told')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{here}:{clean_environment()['PATH']}"
    return {**clean_environment(), "PATH": path, "SLURM_JOB_ID": "7"}


def submitted(name: str, place: Path, env: dict[str, str], *words: str) -> None:
    done = subprocess.run(["bash", str(JOBS / name), *words], cwd=place, env=env, text=True,
                          capture_output=True, timeout=PATIENCE, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_study_is_run_by_its_name_and_ends(tmp_path: Path, cluster: dict[str, str]) -> None:
    submitted("study.sbatch", tmp_path, cluster, "rmap", "--part", "printed")
    told = json.loads((tmp_path / "rmap-7" / "last.json").read_text())
    assert (told["study"], told["completed"]) == ("rmap", True)
    assert not (tmp_path / "told").exists()


@pytest.mark.parametrize(
    ("name", "words", "told"),
    [
        ("study.sbatch", ["nedd"], "nedd-7/last.json"),
        ("experiment.sbatch", ["mine.toml"], "run-7.json"),
        ("phold.sbatch", [], "phold-7.json"),
    ],
)
def test_what_was_cut_short_is_put_back_into_the_queue(
    name: str, words: list[str], told: str, tmp_path: Path, cluster: dict[str, str]
) -> None:
    put_odonata(tmp_path, "echo '{\"completed\": false}'")
    submitted(name, tmp_path, cluster, *words)
    assert (tmp_path / "told").read_text() == "requeue 7\n"
    said = tmp_path / told
    assert json.loads(said.read_text()) == {"completed": False}
    put_odonata(tmp_path, "echo '{'; exit 1")  # what fails leaves what an earlier piece said
    assert subprocess.run(["bash", str(JOBS / name), *words], cwd=tmp_path, env=cluster,
                          capture_output=True, check=False).returncode == 1  # fmt: skip
    assert json.loads(said.read_text()) == {"completed": False}
    assert (tmp_path / "told").read_text() == "requeue 7\n"


def put_odonata(place: Path, body: str) -> None:
    (place / "odonata").write_text(f"#!/bin/sh\n{body}\n")
    (place / "odonata").chmod(0o755)


def test_every_sbatch_file_is_tried_and_what_that_needs_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    slurm = importlib.import_module("slurm")
    assert {path.stem for path in JOBS.glob("*.sbatch")} == slurm.PIECES.keys()
    monkeypatch.setattr(sys, "argv", ["slurm.py"])
    monkeypatch.setattr(slurm, "found", lambda program: program if program == "odonata" else None)
    for user, missing in (
        (1000, "this is not root"),
        (0, "munge, slurm-client, slurmctld, slurmd"),
    ):
        monkeypatch.setattr("os.geteuid", lambda user=user: user)
        assert slurm.main() == 2
        (line,) = capsys.readouterr().out.splitlines()
        assert missing in line


# -- studies that are simulated anew


def test_what_a_study_claims_otherwise_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    differences = importlib.import_module("claims").differences

    def told(**ours: str) -> dict[str, Any]:
        return {"study": "s", "claims": [{"name": name, "paper": "1", "ours": text, "verdict": None}
                                         for name, text in ours.items()]}  # fmt: skip

    assert [*differences(told(a="1", b="2"), told(a="1", b="2"))] == []
    assert [*differences(told(a="1", b="2"), told(a="3"))] == [
        "s: a: '1': '1', None, and now '1': '3', None", "s: b: '1': '2', None, and now nothing"
    ]  # fmt: skip
    timed = "200 trials take"
    assert [*differences(told(**{timed: "1 s"}), told(**{timed: "2 s"}))] == []
