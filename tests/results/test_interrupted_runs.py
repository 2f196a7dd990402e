"""Ctrl-C: one line that says what is kept and how to go on, and status 130, on any number of
ranks."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PATIENCE, start

FILE = """
[machine]
preset = "kim-72"
[run]
duration = "100 ms"
checkpoint_every = "5 us"
"""


@pytest.fixture(autouse=True)
def heeded() -> Iterator[None]:
    """Have processes heed SIGINT, also where these tests were started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("kept", "ranks"),
    [(True, 2), (False, 1), pytest.param(True, 1, marks=pytest.mark.long),
     pytest.param(False, 2, marks=pytest.mark.long)],
)  # fmt: skip
def test_ctrl_c_says_what_is_kept_and_how_to_go_on(tmp_path: Path, ranks: int, kept: bool) -> None:
    (tmp_path / "mine.toml").write_text(FILE if kept else FILE.replace("checkpoint_every", "#"))
    running = start("run", "mine.toml", "-o", "out", ranks=ranks, cwd=tmp_path)
    there = tmp_path / "out" / ("checkpoint/*/at-*/manifest.json" if kept else "rank-0000.h5")
    until = time.monotonic() + PATIENCE
    while not [*tmp_path.glob(str(there.relative_to(tmp_path)))]:
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    try:
        _, told = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
    assert running.returncode == 130
    (line,) = (line for line in told.splitlines() if "interrupted" in line)
    since = "from its last checkpoint" if kept else "from the beginning, as it writes no checkpoint"
    launched = "mpiexec -n 2 " if ranks == 2 else ""
    assert since in line
    assert line.endswith(f"with: {launched}odonata run --resume -o out")
    assert "Traceback" not in told
