"""Progress: on a terminal one line that is rewritten, elsewhere a line now and then."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time

import pytest
from conftest import PATIENCE, clean_environment, command

from odonata.experiment.progress import Bar, ProgressLine, show_seconds, time_left
from pdes import launcher

US = 10**6


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    return clock


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")


def test_a_run_tells_its_time_its_rate_and_what_is_left(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ProgressLine(100 * US, asked=True)
    line(0, 0)
    clock.now += 0.9
    line(10 * US, 500)
    assert capsys.readouterr().err == ""
    clock.now += 1.1
    line(25 * US, 5000)
    assert re.fullmatch(r"25%  25 us of 100 us  2\.5.* events/s  6 s left\n",
                        capsys.readouterr().err)  # fmt: skip
    clock.now += 4.9
    line(30 * US, 6000)
    assert capsys.readouterr().err == ""  # elsewhere than on a terminal, a line now and then
    line.close()


def test_a_run_tells_how_far_it_is_though_nobody_knows_how_far_it_will_be(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ProgressLine(None, asked=True)
    line(0, 0)
    clock.now += 2
    line(30 * US, 5000)
    assert re.fullmatch(r"30 us simulated  .* events/s\n", capsys.readouterr().err)


def test_time_is_that_of_the_model(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    line = ProgressLine(3600, "s", asked=True)
    line(0, 0)
    clock.now += 2
    line(1800, 10)
    assert "50%  30 min of 1 h  5 events/s  2 s left" in capsys.readouterr().err


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("done", [0.25, None])
def test_on_a_terminal_the_line_is_rewritten_and_gone_in_the_end(
    done: float | None, capsys: pytest.CaptureFixture[str]
) -> None:
    bar = Bar()
    bar.show(done, "30 us [of] 120 us")
    first = capsys.readouterr().err
    assert "━━━" in re.sub(r"\x1b\[[0-9;]*m", "", first)
    assert "30 us [of] 120 us" in first
    assert ("25%" in first) == (done is not None)
    assert first.rfind("\x1b[?25h") > first.rfind("\x1b[?25l")  # the cursor is there
    bar.show(done, "60 us")
    assert "\r\x1b[2K" in capsys.readouterr().err
    bar.close()
    assert "\x1b[2K" in capsys.readouterr().err
    bar.close()
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("terminal")
def test_a_line_fits_into_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    bar = Bar()
    bar.show(0.5, "word " * 40)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert max(map(len, re.split(r"[\r\n]", shown))) <= 60
    bar.close()


def test_time_left_is_that_of_what_was_done_now() -> None:
    assert time_left(10, 0.5, 0.75) == "10 s left"
    assert time_left(10, 0.5, 0.5) == ""
    assert [show_seconds(s) for s in (3.4, 119, 150, 3 * 3600)] == [
        "3 s", "119 s", "2.5 min", "3.0 h"
    ]  # fmt: skip


def test_in_a_file_or_a_pipe_there_is_a_line_now_and_then(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    line, began, at = ProgressLine(10_000 * US), clock.now, list[float]()
    for seconds in range(10_000):
        clock.now = began + seconds
        line(seconds * US, seconds)
        if capsys.readouterr().err:
            at.append(seconds)
    assert at[0] == 30, "what is quick shows nothing"
    assert at[:5] == [30, 60, 90, 120, 150]
    assert 500 < at[-1] - at[-2] <= 1000, "after hours, every tenth of what has passed"
    assert len(at) < 50
    line.close()


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_quick_run_shows_a_bar_on_a_terminal_and_nothing_in_a_pipe(ranks: int) -> None:
    """Under mpiexec its stderr decides, whose ranks have pipes."""
    words = command("bench", "phold", "--lps", "1024", "--end", "500us", "--json", ranks=ranks)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=theirs,
                               env={**clean_environment(), "TERM": "xterm"})  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # nobody has it open any more
            break
        if not piece:
            break
        shown += piece
    out, _ = process.communicate(timeout=PATIENCE)
    os.close(ours)
    assert process.returncode == 0
    assert out.startswith(b"{")
    if "━".encode() not in shown:
        assert b'"wall_seconds": 0.' in out, "it took more than a second and showed nothing"
    piped = subprocess.run(words, capture_output=True, env=clean_environment(), check=True)
    assert b"events/s" not in piped.stderr


def test_rich_is_not_imported_before_there_is_something_to_show() -> None:
    code = (
        "import sys, odonata.study.pool; from odonata.experiment.progress import ProgressLine; "
        "line = ProgressLine(10); line(1, 1); line.close(); sys.exit('rich' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=clean_environment())
