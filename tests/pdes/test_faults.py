"""A rule broken on one rank ends every rank, with that reason and no other. Needs processes of its
own: what is tested is that they end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PATIENCE, clean_environment

from odonata.doctor import find_mpiexec

HERE = Path(__file__).parent.parent


def rogue_run(parameters: str, protocol: str) -> subprocess.CompletedProcess[str]:
    code = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); from models import Rogue; "
        f"from pdes.driver import run; run(Rogue({parameters}), 10**9, protocol={protocol!r})"
    )
    mpiexec = find_mpiexec()
    assert mpiexec
    return subprocess.run(
        [mpiexec, "-n", "2", sys.executable, "-c", code],
        capture_output=True, text=True, timeout=PATIENCE, check=False, env=clean_environment(),
    )  # fmt: skip


@pytest.mark.parametrize("protocol", ["window", "null"])
@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ("delay=-300", "rank 0: rogue: event 'tick' at agent 0 port 0, 0 ps made"),
        ("target=3, delay=7", "after 7 ps: less than the lookahead of 500000 ps"),
        ("target=99", "there are only 4 agents"),
    ],
)
def test_a_fault_on_one_rank_ends_all(parameters: str, reason: str, protocol: str) -> None:
    done = rogue_run(parameters, protocol)
    assert done.returncode != 0
    assert done.stderr.count(reason) == 1
    assert done.stderr.count("odonata: rank") == 1
