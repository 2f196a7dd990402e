from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from conftest import PATIENCE, code_on_ranks

from pdes.watchman import MPI_SECONDS, Watchman

Ranks = list[subprocess.Popen[bytes]]


@pytest.fixture
def ranks() -> Iterator[Ranks]:
    """Processes that wait for a line."""
    words = [sys.executable, "-c", "input()"]
    ranks = [subprocess.Popen(words, stdin=subprocess.PIPE) for _ in range(3)]
    yield ranks
    for rank in ranks:
        assert rank.stdin is not None
        rank.stdin.close()
        rank.wait()


@pytest.fixture
def watchman(ranks: Ranks) -> Iterator[Watchman]:
    """There is one on every Linux since 5.3: elsewhere these tests fail, and runs go unwatched."""
    watchman = Watchman.hire([(i, rank.pid) for i, rank in enumerate(ranks)])
    assert watchman is not None
    yield watchman
    watchman.dismiss()


def end(watchman: Watchman) -> int:
    assert watchman._process is not None
    return watchman._process.wait(timeout=PATIENCE)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_watchman_does_not_leave_when_ranks_are_told_to_stop(
    watchman: Watchman, ranks: Ranks, sent: signal.Signals
) -> None:
    """A batch system tells every process of a job."""
    assert watchman._process is not None
    os.kill(watchman._process.pid, sent)
    ranks[0].kill()
    assert end(watchman) == 0, "it was still there to see the rank go"
    assert [rank.wait() for rank in ranks] == [-signal.SIGKILL] * 3


def test_where_a_reason_was_given_mpi_has_a_while_to_end_the_rest(
    watchman: Watchman, ranks: Ranks
) -> None:
    assert watchman.may_speak()
    assert not watchman.may_speak()
    began = time.monotonic()
    ranks[1].kill()
    ranks[0].communicate(b"\n")  # MPI ended it
    ranks[2].wait(timeout=PATIENCE)  # this one it forgot
    assert time.monotonic() - began > MPI_SECONDS - 0.1
    assert [rank.wait() for rank in ranks] == [0, -signal.SIGKILL, -signal.SIGKILL]


def test_a_rank_that_asks_and_is_gone_before_the_answer_changes_nothing(
    watchman: Watchman, ranks: Ranks
) -> None:
    assert watchman._process is not None
    watchman._process.send_signal(signal.SIGSTOP)
    with socket.socket(socket.AF_UNIX) as guest:
        guest.connect(f"\0{watchman.door}")
    ranks[1].kill()
    watchman._process.send_signal(signal.SIGCONT)
    assert end(watchman) == 0
    assert [rank.wait() for rank in ranks] == [-signal.SIGKILL] * 3


def test_ranks_that_fail_together_give_one_reason_and_its_status() -> None:
    code = "from pdes.transport import world; t = world()\nwith t.watching(): t.fail('all of us')"
    done = code_on_ranks(4, code)
    assert done.returncode == 1
    assert re.fullmatch(r"odonata: rank \d: all of us\n", done.stderr)
