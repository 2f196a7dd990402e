"""A small process beside the ranks of a host that outlives them if one dies.

MPI ranks in shared memory do not notice that another was killed: they wait. Some launchers clean
up, some do not, and none says on stderr which rank it was. The watchman sleeps on the ranks'
process handles; when one goes without having said goodbye, it names it and kills the rest. (Where
a launcher was quicker and killed others too, it cannot tell who was first, and names them all.)
Where a rank has given the reason itself it says nothing, and leaves the others to MPI for a while.

It is a process, not a thread, so that neither a busy kernel nor the launcher's clean-up can silence
it; and it is deaf to what a batch system sends to every process of a job so that ranks stop in
order.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys

ANSWER_SECONDS = 2.0
"""A watchman on a busy machine may take so long to answer."""
MPI_SECONDS = 2.0
"""So long MPI may take to end all, after a rank that has given its reason."""

WATCH = r"""
import contextlib, os, select, signal, socket, sys, time
for meant_for_ranks in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
    signal.signal(meant_for_ranks, signal.SIG_IGN)
mates = dict(map(int, mate.split(":")) for mate in sys.argv[1].split(","))
door = socket.socket(socket.AF_UNIX)
door.bind("\0" + sys.argv[2])
door.listen(len(mates))
poll = select.poll()
poll.register(0, select.POLLIN)
poll.register(door, select.POLLIN)
ranks, gone, told = {}, [], False
for rank, pid in mates.items():
    try:
        fd = os.pidfd_open(pid)
        ranks[fd] = rank
        poll.register(fd, select.POLLIN)
    except ProcessLookupError:
        gone.append(rank)
print("watching", flush=True)
while not gone:
    for fd, _ in poll.poll():
        if fd in ranks:
            gone.append(ranks[fd])
        elif fd == door.fileno():
            with contextlib.suppress(OSError):
                guest = door.accept()[0]
                guest.sendall(b"n" if told else b"y")
                told = True
                guest.close()
        elif os.read(0, 1):
            sys.exit(0)
        else:
            gone.insert(0, next(iter(mates)))
if told:
    until = time.monotonic() + float(sys.argv[3])
    left = {fd for fd in ranks if ranks[fd] not in gone}
    poll.unregister(0)
    poll.unregister(door)
    for fd in ranks.keys() - left:
        poll.unregister(fd)
    while left and time.monotonic() < until:
        for fd, _ in poll.poll(100):
            left.discard(fd)
            poll.unregister(fd)
else:
    names = (f"rank {rank} (process {mates[rank]} on {socket.gethostname()})"
             for rank in dict.fromkeys(gone))
    print(f"odonata: {' and '.join(names)} died; the run ends here", file=sys.stderr, flush=True)
for fd in ranks:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(fd, signal.SIGKILL)
"""


class Watchman:
    """Known to every rank of the host by the name of its door; dismissed by the one that hired
    it."""

    def __init__(self, door: str, process: subprocess.Popen[bytes] | None = None) -> None:
        self.door = door
        self._process = process

    @classmethod
    def hire(cls, mates: list[tuple[int, int]]) -> Watchman | None:
        """Start watching these (rank, pid). None where the system has no process handles."""
        try:
            os.close(os.pidfd_open(os.getpid()))
        except (AttributeError, OSError):
            return None
        words = ",".join(f"{rank}:{pid}" for rank, pid in mates)
        door = f"odonata-{secrets.token_hex(8)}"
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", WATCH, words, door, str(MPI_SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        heard = process.stdout.readline()
        process.stdout.close()
        if heard != b"watching\n":  # it has said why, and the run goes on without it
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
            return None
        return cls(door, process)

    @classmethod
    def known(cls, door: str | None) -> Watchman | None:
        return None if door is None else cls(door)

    def may_speak(self) -> bool:
        """A rank that is about to end asks before it gives the reason: the first of its host may,
        and from then on the watchman is silent."""
        with socket.socket(socket.AF_UNIX) as guest:
            guest.settimeout(ANSWER_SECONDS)
            try:
                guest.connect(f"\0{self.door}")
                return guest.recv(1) != b"n"
            except OSError:  # somebody killed it
                return True

    def dismiss(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # somebody killed it
            self._process.stdin.write(b".")
            self._process.stdin.close()
        self._process.wait()
