"""Send signals to single ranks of real runs at random moments, and see whether promises are kept.

    python scripts/attack_signals.py --count 60 --seed 1

Each run has 2 to 4 ranks; one of them gets SIGKILL, SIGINT or SIGTERM (or mpiexec SIGKILL, which
is rank -1) at a moment between 0.1 s after the start and the end of the run. After that nothing may
be left within 10 seconds, in shared memory neither; stderr must give one reason only, which names
the one that was killed, and the status of mpiexec must be the one in docs/engine.md. One line per
run; the exit status is 1 if any of them broke a promise. For signals at certain moments, see
tests/results/test_moments.py.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from odonata.commands.doctor import find_mpiexec
from pdes import launcher, watch

PATIENCE = 10.0
LAUNCHER = -1
"""The victim that is no rank."""
MARK = "ODONATA_ATTACK"
NOT_REASONS = ("odonata: compiling", "odonata: compiled", "odonata: warning")
STATUSES = {
    signal.SIGKILL: {9: "killed", 137: "killed"},
    signal.SIGINT: {130: "interrupted", 137: "interrupted"},
    signal.SIGTERM: {143: "terminated", 137: "terminated", 0: "stopped at"},
}
"""By signal: the status that mpiexec may end with, and what a reason then says ("died" will do for
any that ended by a signal). 137 is Open MPI's, and never MPICH's, for a rank that was killed."""


class Process(NamedTuple):
    pid: int
    rank: int
    words: list[str]


class Outcome(NamedTuple):
    seconds: float
    """From the signal to the end of everything."""
    status: int | None
    reasons: list[str]
    verdict: str


def processes(token: str) -> list[Process]:
    """Those of one run, the watchman's included (its rank is -1)."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "environ").read_bytes().decode(errors="replace").split("\0")
            command = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
            state = (path / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if f"{MARK}={token}" not in words or state == "Z":
            continue
        watches = any(word.endswith("watch.py") for word in command)
        rank = None if watches else watch.rank_of(int(path.name))
        found.append(Process(int(path.name), -1 if rank is None else rank, command))
    return found


def begun(pid: int) -> bool:
    """Has this rank come to its first line, where it begins to catch SIGTERM? Before that it is the
    Python interpreter on its way there, and dies as that does, with the launcher's status."""
    try:
        about = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    caught = next(line.split()[1] for line in about.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def shared_memory() -> set[str]:
    """Returns MPICH's files in shared memory that no process has."""
    left = {str(path) for path in Path(watch.SHARED).glob("mpich_shm_*")}
    for pid, _ in watch.processes() if left else ():
        left -= watch.mapped(pid) | watch.opened(pid)
    return left


def names(reason: str, victim: int, launcher_pid: int) -> bool:
    """Tells whether a reason names the one that was killed, and nobody else."""
    who = f"process {launcher_pid}" if victim == LAUNCHER else f"rank {victim} "
    return who in reason and " and " not in reason


def attack(
    ranks: int, protocol: str, number: signal.Signals, victim: int, delay: float, cold: bool
) -> Outcome:
    token = secrets.token_hex(8)
    mpiexec = find_mpiexec()
    assert mpiexec, "mpiexec is needed: pip install mpich"
    with tempfile.TemporaryDirectory() as name:
        environment = {**launcher.environment_without(), MARK: token}
        hydra = b"HYDRA" in subprocess.run([mpiexec, "--version"], capture_output=True).stdout
        if cold:
            environment["ODONATA_CACHE_DIR"] = f"{name}/cache"
        words = [mpiexec, "-n", str(ranks), sys.executable, "-m", "odonata", "bench", "phold",
                 "--end", "6ms", "--protocol", protocol, "--checkpoint-dir", f"{name}/kept",
                 "--json"]  # fmt: skip
        began, target = time.monotonic(), list[int]()
        before = shared_memory()
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True, env=environment)  # fmt: skip
        time.sleep(delay)
        while process.poll() is None and time.monotonic() - began < delay + PATIENCE:
            target = [p.pid for p in processes(token) if p.rank == max(0, victim)]
            if target:
                break
            time.sleep(0.01)
        sent, early = False, bool(target) and not begun(target[0])
        if process.poll() is None and target:
            try:
                os.kill(process.pid if victim == LAUNCHER else target[0], number)
                sent = True
            except ProcessLookupError:
                pass
        at = time.monotonic()
        limit = PATIENCE if sent else 120.0
        while (left := processes(token)) and time.monotonic() - at < limit:
            time.sleep(0.02)
        seconds = time.monotonic() - at
        for stray in left:
            os.kill(stray.pid, signal.SIGKILL)
        said = process.communicate()[1].splitlines()
    reasons = [line for line in said if line.startswith("odonata:")
               and not line.startswith(NOT_REASONS)]  # fmt: skip
    tracebacks = [line for line in said if line.startswith("Traceback")]
    status = process.returncode
    verdict = "kept"
    while (segments := shared_memory() - before) and time.monotonic() - at < limit:
        time.sleep(0.02)
    if segments:
        verdict = f"LEFT IN SHARED MEMORY: {', '.join(sorted(segments))}"
    elif left:
        verdict = f"LEFT: {len(left)} processes"
    elif early and len(reasons) <= 1:
        verdict = "kept (before its first line)"
    elif tracebacks:
        verdict = "TRACEBACK"
    elif status == 0 and not reasons:
        verdict = "kept (it was over)"
    elif not sent:
        verdict = "FAILED BY ITSELF"
    elif len(reasons) != 1:
        verdict = f"{len(reasons)} REASONS"
    elif number == signal.SIGKILL and not names(reasons[0], victim, process.pid):
        verdict = "NAMES ANOTHER"
    elif victim == LAUNCHER:
        pass
    elif status not in STATUSES[number] or (status == 137 and hydra):
        verdict = f"STATUS {status}"
    elif not any(word in reasons[0] for word in (STATUSES[number][status], "died")):
        verdict = "ANOTHER REASON"
    return Outcome(seconds, status, reasons or said[:1], verdict)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--longest", type=float, default=12.0, help="The latest moment, in seconds."
    )
    chosen = parser.parse_args()
    rng = random.Random(chosen.seed)
    broken = 0
    print("  n ranks protocol signal   rank  at s   ended s  status  verdict / reason")
    for i in range(chosen.count):
        ranks, protocol = rng.randint(2, 4), rng.choice(("window", "null"))
        number = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)[i % 3]
        victim, cold = rng.randrange(ranks), rng.random() < 0.25
        if number == signal.SIGKILL and rng.random() < 0.25:
            victim = LAUNCHER
        delay = rng.uniform(0.1, chosen.longest if rng.random() < 0.5 else 3.0)
        outcome = attack(ranks, protocol, number, victim, delay, cold)
        broken += not outcome.verdict.startswith("kept")
        print(f"{i:3} {ranks:5} {protocol:8} {number.name:8} {victim:4} {delay:5.2f} "
              f"{outcome.seconds:9.2f} {outcome.status!s:>7}  {outcome.verdict}: "
              f"{' | '.join(outcome.reasons)}", flush=True)  # fmt: skip
    print(f"{chosen.count - broken} of {chosen.count} kept")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
