"""A small process beside the ranks of a host that outlives them if one dies.

MPI ranks in shared memory do not notice that another was killed: they wait. Some launchers clean
up, some do not, and none says on stderr which rank it was. The watchman sleeps on the ranks'
process handles; when one goes without having said goodbye, it names it and kills the rest. (Where
a launcher was quicker and killed others too, it cannot tell who was first, and names them all.)
Where a rank gave the reason itself before it went, the launcher has a second to end the others, so
that the status it hands on is that rank's and not a kill's.

It is a process, not a thread, so that neither a busy kernel nor the launcher's clean-up can silence
it; and it is deaf to what a batch system sends to every process of a job so that ranks stop in
order.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys

ANSWER_SECONDS = 2.0
"""A watchman on a busy machine may take so long to answer."""

WATCH = r"""
import os, select, signal, socket, sys, time
for meant_for_ranks in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
    signal.signal(meant_for_ranks, signal.SIG_IGN)
mates = dict(map(int, mate.split(":")) for mate in sys.argv[1].split(","))
door = socket.socket(socket.AF_UNIX)
door.bind(f"\0odonata-{os.getpid()}")
door.listen(len(mates))
poll = select.poll()
poll.register(0, select.POLLIN)
poll.register(door, select.POLLIN)
ranks = {}
for rank, pid in mates.items():
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        fd = os.open("/dev/null", os.O_RDONLY)
    ranks[fd] = rank
    poll.register(fd, select.POLLIN)
print("watching", flush=True)
gone = []
told = False
while not gone:
    for fd, _ in poll.poll():
        if fd in ranks:
            gone.append(ranks[fd])
        elif fd == door.fileno():
            guest = door.accept()[0]
            if not told:
                os.close(2)
            guest.sendall(b"n" if told else b"y")
            guest.close()
            told = True
        elif os.read(0, 1):
            sys.exit(0)
        else:
            gone.insert(0, next(iter(mates)))
if told:
    left = [fd for fd in ranks if ranks[fd] not in gone]
    until = time.monotonic() + 1.0
    while left and time.monotonic() < until:
        left = [fd for fd in left if not select.select([fd], [], [], 0.02)[0]]
else:
    names = (f"rank {rank} (process {mates[rank]} on {socket.gethostname()})"
             for rank in dict.fromkeys(gone))
    print(f"odonata: {' and '.join(names)} died; the run ends here", file=sys.stderr, flush=True)
for rank, pid in mates.items():
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


class Watchman:
    """Known to every rank of the host by its pid; dismissed by the one that hired it."""

    def __init__(self, pid: int, process: subprocess.Popen[bytes] | None = None) -> None:
        self.pid = pid
        self._process = process

    @classmethod
    def hire(cls, mates: list[tuple[int, int]]) -> Watchman | None:
        """Start watching these (rank, pid). None where the system has no process handles."""
        try:
            os.close(os.pidfd_open(os.getpid()))
        except (AttributeError, OSError):
            return None
        words = ",".join(f"{rank}:{pid}" for rank, pid in mates)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", WATCH, words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        return cls(process.pid, process)

    @classmethod
    def known(cls, pid: int | None) -> Watchman | None:
        return None if pid is None else cls(pid)

    def may_speak(self) -> bool:
        """A rank that is about to die asks before it gives the reason: the first of its host may,
        and from then on the watchman is silent. (It lets go of stderr before it answers: the pipe
        was the launcher's, and as long as it is open a launcher like Hydra counts the ranks that it
        kills itself among those that failed.)"""
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(ANSWER_SECONDS)
            try:
                door.connect(f"\0odonata-{self.pid}")
                return door.recv(1) != b"n"
            except OSError:  # somebody killed it
                return True

    def dismiss(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # somebody killed it
            self._process.stdin.write(b".")
            self._process.stdin.close()
        self._process.wait()
