from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

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
    assert watchman._process.wait(timeout=20) == 0, "it was still there to see the rank go"
    watchman.dismiss()
