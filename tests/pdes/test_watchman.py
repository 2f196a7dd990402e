from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import PATIENCE

from pdes.watchman import Watchman


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_watchman_does_not_leave_when_ranks_are_told_to_stop(sent: signal.Signals) -> None:
    """A batch system tells every process of a job."""
    rank = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    watchman = Watchman.hire([(0, rank.pid)])
    if watchman is None:
        pytest.skip("this system has no process handles")
    os.kill(watchman.pid, sent)
    rank.kill()
    rank.communicate()
    assert watchman._process is not None
    assert watchman._process.wait(timeout=PATIENCE) == 0, "it was still there to see the rank go"
    watchman.dismiss()


def test_where_a_reason_was_given_the_launcher_has_a_second_to_end_the_rest() -> None:
    """What the watchman killed at once would give the launcher two statuses to choose from."""
    ranks = [
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) for _ in range(3)
    ]
    watchman = Watchman.hire([(i, rank.pid) for i, rank in enumerate(ranks)])
    if watchman is None:
        pytest.skip("this system has no process handles")
    assert watchman.may_speak()
    assert not watchman.may_speak()
    began = time.monotonic()
    ranks[1].kill()
    ranks[0].communicate(b"\n")  # a launcher ended it
    ranks[2].wait(timeout=PATIENCE)  # this one it forgot
    assert time.monotonic() - began > 0.9
    for rank in ranks:
        assert rank.stdin is not None
        rank.stdin.close()
    assert [rank.wait() for rank in ranks] == [0, -signal.SIGKILL, -signal.SIGKILL]
    watchman.dismiss()
