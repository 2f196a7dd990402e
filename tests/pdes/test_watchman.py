"""Ranks that go, at every stage of a process's life: real processes under the real mpiexec."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import PATIENCE, clean_environment, code_on_ranks

from odonata.commands.doctor import find_mpiexec
from pdes import launcher, watch

BEGIN = """
import os, signal, subprocess, sys, time
from pathlib import Path
from pdes import launcher, watch, watchman
mine = watchman.begin()
rank = launcher.rank()
def soon(number):  # this rank gets it in half a second, wherever it is then
    subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -{number} {os.getpid()}"])
"""
WORLD = BEGIN + "from pdes.transport import world\nt = world()\nt.everyone(None)\n"
DIED = r"odonata: rank 1 \(process \d+ on \S+\) died; the run ends here"
"""Also where the launcher was quicker than the watchman and has killed the others too."""


def ranks(code: str, n: int = 2) -> subprocess.CompletedProcess[str]:
    return code_on_ranks(n, code)


def reasons(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if line.startswith("odonata:")]


@pytest.mark.parametrize(
    ("number", "status", "reason"),
    [
        (signal.SIGKILL, 9, DIED),
        (signal.SIGINT, 130, "odonata: rank 1: interrupted"),
        (signal.SIGTERM, 143, "odonata: rank 1: terminated"),
        (signal.SIGUSR1, 138, "odonata: rank 1: terminated"),
    ],
)
def test_a_rank_that_goes_among_its_imports_takes_the_others_with_it(
    number: signal.Signals, status: int, reason: str
) -> None:
    done = ranks(BEGIN + f"if rank == 1: soon({int(number)})\ntime.sleep(60)", n=3)
    assert done.returncode == status
    (said,) = reasons(done)
    assert re.fullmatch(reason, said)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("where", ["the start of MPI", "a compiler that others wait for"])
def test_a_rank_that_waits_in_mpi_is_interrupted_all_the_same(where: str) -> None:
    """Python's own handler would wait for MPI, and MPI for the rank that never comes."""
    if where == "the start of MPI":
        code = BEGIN + "time.sleep(60 * (rank == 0))\nsoon(2)\nfrom pdes.transport import world\n"
        code += "world()"
    else:
        code = WORLD + "if rank == 1: soon(2)\n"
        code += "with t.watching(): t.leader_first(lambda: time.sleep(60 * (rank == 0)))"
    done = ranks(code)
    assert done.returncode == 130
    assert reasons(done) == ["odonata: rank 1: interrupted"]


@pytest.mark.long
def test_a_rank_killed_while_mpi_ends_is_named() -> None:
    done = ranks(WORLD + "if rank == 1: soon(9)\nelse: time.sleep(60)")
    assert done.returncode == 9
    (said,) = reasons(done)
    assert re.fullmatch(DIED, said)


def test_an_exception_on_one_rank_is_the_reason_and_ends_the_others() -> None:
    done = ranks(WORLD + "if rank == 1: raise RuntimeError('this one')\nt.everyone(None)")
    assert done.returncode == 1
    assert done.stderr.count("RuntimeError: this one") == 1
    assert reasons(done) == []


@pytest.mark.long
def test_a_rank_that_leaves_alone_with_a_status_ends_the_others_with_it() -> None:
    done = ranks(WORLD + "if rank == 1: mine.leave_failed(3); sys.exit(3)\nt.everyone(None)")
    assert done.returncode == 3
    assert reasons(done) == ["odonata: rank 1 ended with status 3 before the others"]


@pytest.mark.long
def test_ranks_may_leave_one_after_the_other() -> None:
    done = ranks(BEGIN + "time.sleep(rank)", n=3)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
def test_a_program_with_a_handler_of_its_own_keeps_it() -> None:
    code = "import signal\nsignal.signal(15, lambda *_: None)\n" + WORLD
    done = ranks(code + "if rank == 1: soon(15)\ntime.sleep(4)\nt.everyone(None)")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_that_a_rank_starts_is_not_taken_for_the_rank() -> None:
    code = BEGIN + (
        "import subprocess\n"
        "if rank == 1:\n"
        "    time.sleep(0.5)\n"
        "    subprocess.run([sys.executable, '-m', 'odonata', '--version'])\n"
        "    os.kill(os.getpid(), 9)\n"
        "time.sleep(60)"
    )
    done = ranks(code)
    assert done.returncode == 9
    (said,) = reasons(done)
    assert re.fullmatch(DIED, said)


@pytest.mark.long
def test_a_watchman_does_not_leave_when_ranks_are_told_to_stop() -> None:
    """A batch system tells every process of a job."""
    code = BEGIN + (
        "time.sleep(0.5)\n"
        "if rank == 1:\n"
        "    (watching,) = [p for p, up in watch.processes() if up in ranks_of_launch()\n"
        "                   and b'watch.py' in Path(f'/proc/{p}/cmdline').read_bytes()]\n"
        "    for number in watch.ENDING: os.kill(watching, number)\n"
        "    time.sleep(0.2)\n"
        "    os.kill(os.getpid(), 9)\n"
        "time.sleep(60)"
    )
    known = (
        "def ranks_of_launch():\n"
        "    return [p for p, up in watch.processes() if up == launcher.parent()[0]]\n"
    )
    done = ranks(known + code)
    (said,) = reasons(done)
    assert re.fullmatch(DIED, said)


@pytest.mark.long
def test_ranks_that_fail_together_give_one_reason_and_its_status() -> None:
    done = ranks(WORLD + "with t.watching(): t.fail('all of us')", n=4)
    assert done.returncode == 1
    assert re.fullmatch(r"odonata: rank \d: all of us\n", done.stderr)


def test_what_killed_ranks_had_in_shared_memory_is_removed(tmp_path: Path) -> None:
    """MPICH's own segment has a name; nobody unlinks it when its processes are killed."""
    kept = Path("/dev/shm/odonata-test-of-others")
    kept.write_text("not a rank's")
    try:
        code = f"Path({str(tmp_path)!r}, 'names').write_text(' '.join(watch.mapped(os.getpid())))"
        done = ranks(WORLD + code + "\nt.everyone(None)\nos.kill(os.getpid(), 9)")
        names = (tmp_path / "names").read_text().split()
        assert done.returncode == 9
        assert names
        until = time.monotonic() + PATIENCE  # the watchman outlives mpiexec by a moment
        while any(Path(name).exists() for name in names):
            assert time.monotonic() < until, names
            time.sleep(0.05)
        assert kept.exists()
    finally:
        kept.unlink()


KILLED_EARLY = """
if rank == 1:
    waits = '''
import os, sys, time
before = set(os.listdir("/dev/shm"))
print(flush=True)
until = time.monotonic() + 60
while not set(os.listdir("/dev/shm")) - before and time.monotonic() < until:
    pass
time.sleep(0.05)
os.kill(int(sys.argv[1]), 9)
'''
    words = [sys.executable, "-S", "-c", waits, str(os.getpid())]
    subprocess.Popen(words, stdout=subprocess.PIPE).stdout.readline()
time.sleep(0.1 * (rank == 0))
from pdes.transport import world
world()
time.sleep(60)
"""
"""The second rank is killed when MPI has made its first file in shared memory, and has not told of
it."""


def in_use() -> set[Path]:
    """Returns the files in shared memory that some process has: those of other tests."""
    found = [watch.mapped(pid) | watch.opened(pid) for pid, _ in watch.processes()]
    return {Path(path) for path in set[str]().union(*found)}


def test_what_ranks_killed_in_the_start_of_mpi_had_in_shared_memory_is_removed() -> None:
    before = {*Path("/dev/shm").iterdir()}
    done = ranks(BEGIN + KILLED_EARLY, n=3)
    assert done.returncode == 9
    (said,) = reasons(done)
    assert re.fullmatch(DIED, said)
    until = time.monotonic() + PATIENCE  # the watchman outlives mpiexec by a moment
    while left := {*Path("/dev/shm").glob("mpich_shm_*")} - before - in_use():
        assert time.monotonic() < until, left
        time.sleep(0.05)


@pytest.mark.parametrize("to", ["a file", pytest.param("a pipe", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "which", ["mpiexec", pytest.param("hydra_pmi_proxy", marks=pytest.mark.long)]
)
def test_a_launcher_that_is_killed_is_named_and_its_ranks_end(
    tmp_path: Path, which: str, to: str
) -> None:
    code = WORLD + f"Path({str(tmp_path)!r}, str(rank)).write_text(str(os.getpid()))\n"
    code += "while True: t.everyone(None); time.sleep(0.01)"
    mpiexec = find_mpiexec()
    assert mpiexec
    with (tmp_path / "said").open("wb") as file:
        process = subprocess.Popen([mpiexec, "-n", "2", sys.executable, "-c", code],
                                   stderr=file if to == "a file" else subprocess.PIPE,
                                   env=clean_environment())  # fmt: skip
    until = time.monotonic() + PATIENCE
    pids = [tmp_path / str(rank) for rank in range(2)]
    while not all(path.exists() and path.read_text() for path in pids):
        assert time.monotonic() < until
        time.sleep(0.02)
    alive = [int(path.read_text()) for path in pids]
    parents = dict(watch.processes())
    victim = process.pid if which == "mpiexec" else parents[alive[0]]
    if watch.name_of(victim) != which:
        process.kill()
        pytest.skip(f"ranks are not started by {which}: its end was NOT tried")
    os.kill(victim, signal.SIGKILL)
    said = (process.communicate(timeout=PATIENCE)[1] or b"").decode()
    while {*alive} & {pid for pid, _ in watch.processes()}:
        assert time.monotonic() < until, "a rank goes on alone"
        time.sleep(0.02)
    reason = (
        f"odonata: {which} (process {victim} on {socket.gethostname()}) died; the run ends here"
    )
    if to == "a file" and which != "mpiexec":
        return  # mpiexec lives and may write over what was said
    while reason not in (said := said or (tmp_path / "said").read_text()):
        assert time.monotonic() < until, said
        said = ""
        time.sleep(0.02)
    assert said.count("odonata:") == 1


@pytest.mark.parametrize(("left", "expected"), [(True, ""), (False, "odonata: sleep (process {}")])
def test_a_launcher_that_is_gone_when_its_ranks_are(left: bool, expected: str) -> None:
    """A watchman on a busy machine finds all of them gone at once. If the ranks had left, it had
    nothing more to wait for; if not, a signal that killed it was the end of them, though its own
    end may come after theirs."""
    (ours, theirs), (heard, said) = socket.socketpair(), os.pipe()
    with (
        ours, theirs, socket.socket() as door, os.fdopen(heard) as words,
        subprocess.Popen(["sleep", "60"]) as one, subprocess.Popen(["sleep", "60"]) as parent,
    ):  # fmt: skip
        until = time.monotonic() + PATIENCE
        while watch.name_of(parent.pid) != "sleep":  # it gets its name some time after its start
            assert time.monotonic() < until
        door.bind(("127.0.0.1", 0))
        door.listen()
        it = watch.Watch(door, parent.pid, 1, 1.0, 1.0, (parent.pid,), said)
        ours.setblocking(False)
        it._know(watch.Rank(0, one.pid, ours))
        if left:
            theirs.send(bytes([watch.LEAVE]))
        one.kill()
        one.wait()
        parent.kill()
        os.waitid(os.P_PID, parent.pid, os.WEXITED | os.WNOWAIT)  # it stays readable
        it.run()
        it.poll.close()
        os.close(said)
        text = words.read()
    assert text.startswith(expected.format(parent.pid))
    assert bool(text) == (not left)


def test_what_a_user_has_set_for_a_launcher_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that a launcher has set for its ranks are not passed on to another launcher."""
    for name in (*launcher.SIZES, *launcher.RANKS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    assert launcher.environment_without()["OMPI_ALLOW_RUN_AS_ROOT"] == "1"
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    assert not any(name.startswith("OMPI_") for name in launcher.environment_without())


def test_a_process_that_has_begun_to_end_is_known_before_its_handle_says_so() -> None:
    """Its first thread has ended and another lives, as in a rank that the launcher notices first:
    the rank that the launcher then kills must not be the only one that is named."""
    code = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "print(flush=True)\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        rank = watch.Rank(1, process.pid)
        assert process.stdout
        process.stdout.readline()
        until = time.monotonic() + PATIENCE
        while not rank.is_dying() and time.monotonic() < until:
            time.sleep(0.01)
        assert rank.is_dying()
        assert rank.handle
        assert not select.select([rank.handle], [], [], 0)[0]
        process.kill()


def test_a_process_that_lives_is_not_dying() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        assert not watch.Rank(1, process.pid).is_dying()
        process.kill()
