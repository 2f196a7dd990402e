"""Every example and tool is run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PATIENCE, clean_environment

from odonata.commands.doctor import find_mpiexec

SCRIPTS = Path(__file__).parent.parent / "scripts"


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
