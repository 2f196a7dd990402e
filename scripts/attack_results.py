"""Damage result directories at random, and see what every command makes of them.

    python scripts/attack_results.py [--count 200] [--seed 1] [--keep DIR]

A few small runs are made: on one rank and on two, with traffic and with jobs, complete, stopped and
killed. Copies of them are damaged: bytes are flipped or zeroed, tails cut off, files removed or
swapped. On each copy every command must end within ten seconds, without a traceback; and where it
ends in order, it must say what it says of the undamaged run. Every command is forked from this
process, which has its imports; a run of two ranks is resumed on two. The status is 1 if anything
did not hold.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import odonata
from odonata.commands.cli import main as command_line
from odonata.commands.doctor import find_mpiexec
from odonata.commands.report import write
from odonata.results.execution import RunOptions, execute
from pdes import launcher
from pdes.errors import Refused

TRAFFIC = """
name = "attacked"
[machine]
preset = "kim-72"
[traffic]
pattern = "uniform"
load = 0.3
[run]
duration = "1 ms"
checkpoint_every = "100 us"
[metrics]
interval = "50 us"
flush = "10 ms"
"""
JOBS = """
name = "attacked"
[machine]
preset = "kim-72"
[[jobs]]
pattern = "halo2d"
nodes = 16
count = 3
iterations = 200
message = "4 KiB"
[run]
checkpoint_every = "100 us"
[metrics]
interval = "50 us"
flush = "10 ms"
"""


class Made(NamedTuple):
    """An undamaged run."""

    name: str
    path: Path
    ranks: int


class Said(NamedTuple):
    """How a command ended. The status is None where it did not."""

    status: int | None
    out: str
    err: str
    seconds: float


# -- the runs


def make_runs(home: Path) -> list[Made]:
    """Run them as a user would, in processes of their own."""
    made = []
    for text, name in ((TRAFFIC, "traffic"), (JOBS, "jobs")):
        file = home / f"{name}.toml"
        file.write_text(text)
        here, two = home / f"{name}-1-complete", home / f"{name}-2-complete"
        execute(RunOptions(file, here, progress=False))  # what is forked has the kernels then
        write(here, home / "page.html", "html")  # and what draws
        _started(file, two, 2).wait()
        made += [Made(here.name, here, 1), Made(two.name, two, 2)]
        for ranks, how in ((1, signal.SIGTERM), (1, signal.SIGKILL), (2, signal.SIGKILL)):
            path = home / f"{name}-{ranks}-{how.name}"
            process = _started(file, path, ranks)
            while not [*path.glob("checkpoint/*/at-*")] and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(how)
            process.wait()
            time.sleep(1.0)  # ranks follow their launcher
            made.append(Made(path.name, path, ranks))
    return made


def _started(file: Path, out: Path, ranks: int) -> subprocess.Popen[bytes]:
    prefix = [str(find_mpiexec()), "-n", str(ranks)] if ranks > 1 else []
    words = [*prefix, sys.executable, "-m", "odonata", "run", str(file), "-o", str(out)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(words, env=launcher.environment_without(), stdout=quiet, stderr=quiet)


# -- the damage


def files_of(path: Path) -> list[Path]:
    return sorted(it for it in path.rglob("*") if it.is_file() and it.name != ".lock")


def damage(path: Path, rng: random.Random) -> str:
    """Damage one directory. Returns in words what was done."""
    files = files_of(path)
    one = rng.choice(files)
    name = one.relative_to(path)
    content = bytearray(one.read_bytes())
    kind = rng.choice(["flip", "flip", "flip", "cut", "remove", "swap", "zero"])
    if kind == "remove":
        one.unlink()
        return f"{name}: removed"
    if kind == "swap":
        other = rng.choice([it for it in files if it != one])
        one.write_bytes(other.read_bytes())
        other.write_bytes(content)
        return f"{name}: swapped with {other.relative_to(path)}"
    if kind == "cut":
        size = rng.randrange(len(content))
        one.write_bytes(content[:size])
        return f"{name}: cut off at {size} of {len(content)} bytes"
    if kind == "zero":
        size = rng.choice([16, 64, 512, 4096])
        at = rng.randrange(len(content)) // size * size
        content[at : at + size] = bytes(len(content[at : at + size]))
        one.write_bytes(content)
        return f"{name}: {size} bytes at {at} zeroed"
    places = [rng.randrange(len(content)) for _ in range(rng.choice([1, 2, 8, 64]))]
    for at in places:
        content[at] ^= rng.randrange(1, 256)
    one.write_bytes(content)
    return f"{name}: {len(places)} bytes flipped, at {places[:4]}"


# -- the commands


def forked(work: Callable[[], None], limit: float) -> Said:
    """Run something in a process of its own, until the limit."""
    with tempfile.TemporaryDirectory() as place:
        pid = os.fork()
        if pid == 0:
            _become(work, place)
        begun, status = time.monotonic(), None
        while status is None and time.monotonic() < begun + limit:
            found, how = os.waitpid(pid, os.WNOHANG)
            status = os.waitstatus_to_exitcode(how) if found else None
            time.sleep(0.01)
        if status is None:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        out, err = (Path(place, name).read_text() for name in ("out", "err"))
        return Said(status, out, err, time.monotonic() - begun)


def _become(work: Callable[[], None], place: str) -> None:
    status = 1
    try:
        os.setpgid(0, 0)  # with what it starts it is killed
        for fd, path in enumerate(("/dev/null", f"{place}/out", f"{place}/err")):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), fd)
        work()
        status = 0
    except SystemExit as ending:
        status = ending.code if isinstance(ending.code, int) else 1
    except Refused as refusal:
        print(f"odonata: {refusal}", file=sys.stderr)
        status = 2
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _command(*words: object) -> Callable[[], None]:
    def work() -> None:
        sys.argv = ["odonata", *map(str, words)]
        command_line()

    return work


def tell(path: Path, tables: Sequence[str] = ("ports", "nodes", "groups", "engine")) -> None:
    """Print a digest of everything that `odonata.open` gives."""
    total = hashlib.sha256()
    with odonata.open(path) as run:
        total.update(run.experiment.to_toml().encode())
        total.update(run.time.data.tobytes())
        for name in tables:
            table = getattr(run, name)
            for key in sorted(table.data_vars):
                if table[key].dims[0] == "time":
                    total.update(table[key].data.tobytes())
        if "jobs" in run.file:
            total.update(repr(run.job_records).encode())
        print(total.hexdigest(), run.complete, run.reached_ps, len(run.time))


def _report(path: Path) -> Callable[[], None]:
    """Print the page itself."""

    def work() -> None:
        page = path.with_name("page.html")
        try:
            _command("report", path, "-o", page)()
        finally:
            if page.exists():
                print(page.read_text())

    return work


def _mend(path: Path) -> Callable[[], None]:
    def work() -> None:
        _command("mend", path)()
        tell(path)

    return work


def _resume(path: Path, ranks: int) -> Callable[[], None]:
    words = ["run", "--resume", "-o", str(path), "--no-progress", "--json"]

    def work() -> None:
        if ranks > 1:
            start = [str(find_mpiexec()), "-n", str(ranks), sys.executable, "-m", "odonata"]
            done = subprocess.run([*start, *words], env=launcher.environment_without())
            if done.returncode:
                raise SystemExit(done.returncode)
        else:
            _command(*words)()
        sys.stdout.flush()
        os.ftruncate(1, 0)  # what it says has wall-clock times in it, and so has `engine`
        os.lseek(1, 0, os.SEEK_SET)
        tell(path, ("ports", "nodes", "groups"))

    return work


def attempts(path: Path, made: Made) -> dict[str, Callable[[], None]]:
    """Every command, in an order in which those that write come last."""
    return {
        "open": lambda: tell(path),
        "report": _report(path),
        "watch": _command("watch", path, "--once"),
        "diff": _command("diff", path, made.path),
        "compare": _command("compare", path, made.path, "--json"),
        "mend": _mend(path.with_name("mended")),
        "run --resume": _resume(path, made.ranks),
    }


def examine(path: Path, made: Made, limit: float) -> dict[str, Said]:
    """Try every command on a copy of a run, which it changes."""
    shutil.copytree(path, path.with_name("mended"))
    return {name: forked(work, limit) for name, work in attempts(path, made).items()}


# -- the verdict


UNSAID = (
    r'"notes": \[[^]]*\]', r'"digest": (null|"[0-9a-f]{32}"),', r" · digest [0-9a-f]{12}",
    "lost with run.h5", "the same on any number of ranks", r"(?<=>)-(?=<)",
    r"(digest |= )?\b[0-9a-f]{12}\b", "[0-9a-f]{32}", r"\(digest \)",
    "closed .*", "nothing was left open", "HOME/run: is complete.*",
)  # fmt: skip
"""What need not be said of a damaged run: its digest, which is only in run.h5, that it is the same
as another, which only the digest tells, and what was done about files that were open."""


def normal(said: str, path: Path) -> str:
    """What is said of a run, but for where it lies and what need not be said."""
    said = said.replace(str(path.parent), "HOME").replace("/mended", "/run")
    return re.sub("|".join(UNSAID), "", said)


def wrong(name: str, said: Said, usual: Said, path: Path) -> str | None:
    """What did not hold, if anything."""
    if said.status is None:
        return "HANG"
    if "Traceback" in said.err or said.status not in (0, 1, 2):
        return "TRACEBACK" if "Traceback" in said.err else f"STATUS {said.status}"
    if said.status == 0 or (name == "diff" and said.status == 1):
        if said.status != usual.status:
            return "WRONG: another status than of the undamaged run"
        same = normal(said.out, path) == normal(usual.out, path)
        return None if same else "WRONG: other numbers than of the undamaged run"
    return None if "odonata: " in said.err else "SILENT: no sentence"


def attack(count: int, seed: int, home: Path, limit: float) -> int:
    """Returns how many commands did not hold."""
    runs, bad, table = make_runs(home), 0, Counter[tuple[str, str]]()
    longest: dict[str, float] = defaultdict(float)
    place = home / "place" / "run"
    usual: dict[str, dict[str, Said]] = {}
    for made in runs:
        _fresh(made, place)
        usual[made.name] = examine(place, made, limit)
        print(f"{made.name}: {usual[made.name]['open'].out.strip()}")
        for name, said in usual[made.name].items():
            if said.status:
                print(f"  {name}: {said.err.strip() or said.out.strip()}")
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        made = runs[number % len(runs)]
        _fresh(made, place)
        what = damage(place, rng)
        for name, said in examine(place, made, limit).items():
            problem = wrong(name, said, usual[made.name][name], place)
            ended = problem or {0: "as undamaged", 2: "refused"}.get(said.status or 0, "failed")
            table[name, ended] += 1
            longest[name] = max(longest[name], said.seconds)
            if problem:
                bad += 1
                print(f"{number}: {made.name}: {what}: {name}: {problem}\n{said.err[-600:]}")
    print(f"{count} damaged directories, {sum(table.values())} commands:")
    for (name, ended), times in sorted(table.items()):
        print(f"  {name:13} {ended:50} {times:5}")
    print("longest: " + ", ".join(f"{name} {took:.1f} s" for name, took in longest.items()))
    return bad


def _fresh(made: Made, place: Path) -> None:
    shutil.rmtree(place.parent, ignore_errors=True)
    shutil.copytree(made.path, place)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds of a command")
    parser.add_argument("--keep", type=Path, help="where runs are made, and left")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = given.keep or Path(scratch)
        home.mkdir(parents=True, exist_ok=True)
        bad = attack(given.count, given.seed, home.resolve(), given.limit)
    print(json.dumps({"directories": given.count, "seed": given.seed, "did_not_hold": bad}))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
