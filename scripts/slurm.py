"""Starts Debian's Slurm on this machine alone, and submits every file of slurm_jobs/ to it.

    make test-slurm
    python scripts/slurm.py [--install] [--only experiment ...]

Slurm (slurmctld, slurmd and munge, as root, with ports and a key of their own) has one node of two
processors and lives in a scratch directory; it is stopped and removed whatever happens. Each file
is submitted as a user would, in a small size. Once it has begun it is told to stop, as Slurm tells
a job whose time is almost up; it puts itself back into the queue, and goes on to its end. What it
gives must be, bit by bit, what the same command gives without Slurm and without interruption. A
complete job that is put back into the queue must leave its JSON as it was. With --install, what is
missing of Slurm is installed by apt-get.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
JOBS, EXPERIMENTS = ROOT / "slurm_jobs", ROOT / "scripts" / "experiments"
PACKAGES = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "munged": "munge",
    "sbatch": "slurm-client",
}
"""Programs, and the packages of Debian that have them."""
PATH = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
RANKS = 2
PATIENCE = 600.0
"""Seconds that a job may take, compiling included."""
OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
CONFIGURATION = """\
ClusterName=odonata
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket,cred_expire=2
CredType=cred/munge
CryptoType=crypto/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=2
MpiDefault={mpi}
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={ranks} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class Missing(Exception):
    """What is missing, in one line."""


class Wrong(Exception):
    """What a job did that it should not have done."""


def found(program: str) -> str | None:
    return shutil.which(program, path=PATH)


def prepare(install: bool) -> None:
    """Install what is missing, if that is wanted. Missing where something is so still."""
    if sys.platform != "linux":
        raise Missing(f"Slurm runs on Linux, and this is {sys.platform}")
    if os.geteuid() != 0:
        raise Missing("the daemons of Slurm are started by root, and this is not root (a container "
                      "of Debian or Ubuntu will do)")  # fmt: skip
    if not found("odonata"):
        raise Missing("odonata is not installed beside this Python; make sets it up in .venv")
    lacking = {package for program, package in PACKAGES.items() if not found(program)}
    if lacking and install and found("apt-get"):
        say(f"installing {', '.join(sorted(lacking))} (apt-get)")
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (
            ["update", "-qq"],
            ["install", "-qq", "-y", "--no-install-recommends", *sorted(lacking)],
        ):
            done = subprocess.run(["apt-get", *words], env=quiet, capture_output=True, text=True,
                                  check=False)  # fmt: skip
            if done.returncode:
                last = (done.stderr or done.stdout).strip().splitlines()[-1:]
                raise Missing(f"apt-get {words[0]} failed: {' '.join(last)}")
        lacking = {package for program, package in PACKAGES.items() if not found(program)}
    if lacking:
        raise Missing(f"{', '.join(sorted(lacking))}: not installed; apt-get install "
                      f"{' '.join(sorted(lacking))}, or --install")  # fmt: skip


def say(words: str) -> None:
    print(words, flush=True)


class Slurm:
    """Slurm in a scratch directory, from its start until `stop`."""

    def __init__(self, place: Path, mpi: str) -> None:
        self.place, self.work = place, place / "work"
        for name in ("state", "spool", "work"):
            (place / name).mkdir()
        self.daemons: list[subprocess.Popen[bytes]] = []
        host = socket.gethostname().partition(".")[0]
        text = CONFIGURATION.format(
            place=place, host=host, ports=free_ports(2), mpi=mpi, ranks=RANKS
        )
        (place / "slurm.conf").write_text(text)
        self.env = {**os.environ, "PATH": PATH, "SLURM_CONF": str(place / "slurm.conf")}

    def start(self) -> None:
        """Start the daemons, and wait until the node is idle."""
        key = self.place / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        at = {name: f"--{name}={self.place}/munge.{name.split('-')[0]}"
              for name in ("socket", "pid-file", "log-file", "seed-file")}  # fmt: skip
        self._daemon("munged", "--foreground", "--force", f"--key-file={key}", *at.values())
        socket = self.place / "munge.socket"
        wait_for(socket.exists, "munged has not come up", 20)
        self._daemon("slurmctld", "-D")
        self._daemon("slurmd", "-D")
        states = ("sinfo", "-h", "-o", "%T")
        wait_for(lambda: "idle" in self.asked(*states), "the node has not come up", 60)

    def _daemon(self, program: str, *words: str) -> None:
        with (self.place / f"{program}.out").open("wb") as out:
            self.daemons.append(subprocess.Popen([found(program) or program, *words], env=self.env,
                                                 stdout=out, stderr=out))  # fmt: skip

    def stop(self) -> None:
        """End all jobs and the daemons."""
        if len(self.daemons) > 1:
            self.asked("scancel", "--full", "--user=root")
            deadline = time.monotonic() + 15
            while time.monotonic() < deadline and self.asked("squeue", "-h"):
                time.sleep(0.5)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def asked(self, *words: str) -> str:
        """Returns what a command of Slurm prints; empty if it fails."""
        done = subprocess.run(words, env=self.env, cwd=self.work, capture_output=True, text=True,
                              timeout=60, check=False)  # fmt: skip
        return done.stdout.strip() if done.returncode == 0 else ""

    def submitted(self, *words: str, **env: str) -> str:
        """Returns the number of the job that `sbatch` makes of these words."""
        done = subprocess.run(["sbatch", "--parsable", *words], env={**self.env, **env},
                              cwd=self.work, capture_output=True, text=True, timeout=60,
                              check=False)  # fmt: skip
        if done.returncode:
            raise Wrong(f"sbatch {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def about(self, job: str) -> dict[str, str]:
        """Returns what Slurm says of a job, by the names that it has there."""
        told = self.asked("scontrol", "show", "job", "-o", job)
        return dict(pair.partition("=")[::2] for pair in told.split() if "=" in pair)

    def state(self, job: str) -> str:
        """Returns how a job has ended; empty if it has not."""
        state = self.about(job).get("JobState", "")
        return state if state in OVER else ""

    def wait(self, job: str) -> None:
        """Wait until a job is over; Wrong where it has not ended well."""
        state = wait_for(lambda: self.state(job), f"job {job} has not ended")
        if state != "COMPLETED":
            raise Wrong(f"job {job} is {state}: {self.words_of(job)}")

    def words_of(self, job: str) -> str:
        """Returns the last words of a job."""
        said = [path.read_text(errors="replace") for path in self.work.glob(f"*-{job}.out")]
        lines = [line for text in said for line in text.splitlines() if line.strip()]
        return " | ".join(lines[-4:]) or "it said nothing"

    def cut(self, job: str, begun: Callable[[], bool], *how: str) -> None:
        """Tell a job to stop, as Slurm does before its time is up, once it has begun; and wait
        until it has put itself back into the queue and is over."""
        wait_for(lambda: begun() or self.state(job), f"job {job} has not begun")
        self.asked("scancel", "--signal=USR1", *how, job)
        wait_for(lambda: self.restarts(job) or self.state(job), f"job {job} has not stopped")
        self.wait(job)
        if not self.restarts(job):
            raise Wrong(f"job {job} was not put back into the queue: {self.words_of(job)}")

    def put_back(self, job: str) -> None:
        """Put a complete job back into the queue, and wait until it is over again."""
        before = self.restarts(job)
        self.asked("scontrol", "requeue", job)
        wait_for(lambda: self.restarts(job) > before, f"job {job} was not put back")
        self.wait(job)

    def restarts(self, job: str) -> int:
        return int(self.about(job).get("Restarts", "0"))


def wait_for(happened: Callable[[], Any], otherwise: str, seconds: float = PATIENCE) -> Any:
    deadline = time.monotonic() + seconds
    while not (it := happened()):
        if time.monotonic() > deadline:
            raise Wrong(f"{otherwise} within {seconds:.0f} s")
        time.sleep(0.3)
    return it


def free_ports(count: int) -> list[int]:
    with_them = [socket.socket() for _ in range(count)]
    for each in with_them:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in with_them]
    for each in with_them:
        each.close()
    return ports


# -- what is submitted


class Piece(NamedTuple):
    """A file of slurm_jobs/, in the size in which it is submitted, and how it is judged."""

    options: tuple[str, ...]
    """What sbatch is given."""
    words: tuple[str, ...]
    """Its arguments."""
    env: Mapping[str, str]
    alone: tuple[str, ...]
    """The command that does the same without Slurm; its results go to `alone`."""
    results: str
    """Where those of the job are; {job} is its number."""
    begun: str
    """A file that is there when the job can be stopped, below the results."""
    told: str
    """The JSON that the job leaves, with {job} likewise."""
    kept: Callable[[Path], Any]
    """What must be the same with and without Slurm, of the results or of the JSON."""


def digest(told: Path) -> Any:
    return json.loads(told.read_text())["digest"]


def outcomes(results: Path) -> Any:
    """Returns what a study or a sweep has kept of each of its points, without the time it took."""
    lines = [line for path in results.glob("results*.jsonl")
             for line in path.read_text().splitlines()[1:]]  # fmt: skip
    every = list(map(json.loads, lines))
    for fields in every:
        fields.pop("seconds", None), fields.pop("crc32")
    return {fields["key"]: fields for fields in every}


TWO = f"--ntasks={RANKS}"
EXPERIMENT = (str(EXPERIMENTS / "demo.toml"), "--set", "run.duration=60us")
SWEEP = (str(EXPERIMENTS / "demo.toml"), "--seeds", "2", "--set", "run.duration=10us",
         "--set", "traffic.warmup=1us", "--set", "traffic.load=0.05:0.4:0.05")  # fmt: skip
STUDY = ("rmap", "--part", "traces", "--kind", "small", "--traces", "10")
PHOLD = {"LPS": "1024", "END": "6ms"}
PIECES = {
    "experiment": Piece(
        (TWO,), EXPERIMENT, {}, ("run", *EXPERIMENT, "-o", "alone", "--json"), "run-{job}",
        "rank-0000.h5", "run-{job}.json", digest,
    ),
    "phold": Piece(
        (TWO,), (), PHOLD, ("bench", "phold", "--lps", PHOLD["LPS"], "--population", "16", "--end",
                            PHOLD["END"], "--seed", "7", "--json"),
        "phold-{job}.checkpoint", "*/at-*", "phold-{job}.json", digest,
    ),
    "sweep": Piece(
        ("--array=1-2", "--cpus-per-task=1"), SWEEP, {},
        ("sweep", *SWEEP, "-o", "alone", "--jobs", "2", "--json"), "sweep-{job}",
        "results-0001-*.jsonl", "sweep-{job}/share-1.json", outcomes,
    ),
    "study": Piece(
        (TWO,), STUDY, {}, ("study", *STUDY, "-o", "alone", "--jobs", "2", "--json"), "rmap-{job}",
        "results.jsonl", "rmap-{job}/last.json", outcomes,
    ),
}  # fmt: skip
OF_A_PIECE = {"ran", "share", "simulated", "missing", "seconds", "workers", "stopped", "kept"}
"""What a study or a sweep tells of its last piece only."""


def tried(slurm: Slurm, name: str, piece: Piece) -> Iterator[str]:
    """Submits a file, stops it, has it go on, and puts it back into the queue once more; yields
    what was seen. Wrong where it is not as it should be."""
    own = slurm.place / name
    own.mkdir()
    done = subprocess.run(["odonata", *piece.alone], env=slurm.env, cwd=own, capture_output=True,
                          text=True, check=False)  # fmt: skip
    if done.returncode:
        raise Wrong(f"odonata {' '.join(piece.alone)}: {done.stderr.strip()}")
    (own / "alone.json").write_text(done.stdout)

    file = str(JOBS / f"{name}.sbatch")
    number = slurm.submitted(*piece.options, file, *piece.words, **piece.env)
    is_array = "--array=1-2" in piece.options
    job, others = (f"{number}_1", [f"{number}_2"]) if is_array else (number, [])
    results = slurm.work / piece.results.format(job=number)
    told = slurm.work / piece.told.format(job=number)

    def begun() -> bool:
        """Tells whether there is something to go on from: of a store of outcomes, two of them."""
        paths = [*results.glob(piece.begun)]
        return bool(paths) and (paths[0].suffix != ".jsonl"
                                or paths[0].read_bytes().count(b"\n") > 2)  # fmt: skip

    slurm.cut(job, begun, *["--batch"] * is_array)
    for other in others:
        slurm.wait(other)
    yield f"stopped, put back {slurm.restarts(job)} time(s), complete"

    of = (told, own / "alone.json") if piece.kept is digest else (results, own / "alone")
    ours, theirs = map(piece.kept, of)
    if ours != theirs:
        raise Wrong(f"{name}: not what the command gives without Slurm: {of[0]}, {of[1]}")
    yield f"digest {ours[:12]}" if isinstance(ours, str) else f"{len(ours)} outcomes"

    if name == "phold":  # which keeps nothing that it could show again
        return
    before = json.loads(told.read_text())
    slurm.put_back(job)
    after = json.loads(told.read_text())
    changed = [key for key in before.keys() - OF_A_PIECE if after.get(key) != before[key]]
    if changed:
        raise Wrong(f"{told}: {', '.join(changed)} changed when a complete job was put back")
    yield "put back when complete: its JSON stays"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install", action="store_true", help="install Slurm, by apt-get")
    parser.add_argument("--only", nargs="+", choices=PIECES, default=[*PIECES], metavar="FILE")
    parser.add_argument("--mpi", default="pmi2", help="how srun starts ranks (pmi2 suits MPICH)")
    asked = parser.parse_args()
    try:
        prepare(asked.install)
    except Missing as missing:
        say(f"test-slurm: {missing}")
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of `finally`
    place = Path(tempfile.mkdtemp(prefix="odonata-slurm-"))
    slurm, failed = Slurm(place, asked.mpi), 0
    try:
        slurm.start()
        say(f"{slurm.asked('sinfo', '--version')}: one node, {RANKS} processors")
        for name in asked.only:
            began, seen = time.monotonic(), list[str]()
            try:
                seen.extend(tried(slurm, name, PIECES[name]))
                verdict = "; ".join(seen)
            except Wrong as wrong:
                verdict, failed = f"WRONG: {wrong}", failed + 1
            say(f"{name}.sbatch: {verdict} ({time.monotonic() - began:.0f} s)")
    except Wrong as wrong:
        logs = [path for pattern in ("*.out", "*.log") for path in place.glob(pattern)]
        last = [line for path in logs for line in path.read_text().splitlines()[-1:]]
        say(f"test-slurm: Slurm does not start: {wrong}: {' | '.join(last)}")
        failed = 1
    finally:
        slurm.stop()
        shutil.rmtree(place, ignore_errors=True)
    say("test-slurm: " + (f"{failed} failed" if failed else "all is as it should be"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
