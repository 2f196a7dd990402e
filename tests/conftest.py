"""Fixtures that tests share: the real command in a real process, under the real mpiexec."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from zygote import Zygote

from odonata.commands.doctor import find_mpiexec
from pdes import launcher

settings.register_profile("odonata", deadline=None, max_examples=20)
settings.register_profile("long", deadline=None, max_examples=200)
settings.load_profile("odonata")


def examples(count: int) -> settings:
    """Has hypothesis try so many examples, and ten times as many in `make test-long`."""
    return settings(max_examples=count * settings.default.max_examples // 20)


ROOT = Path(__file__).parents[1]
PATIENCE = 300
"""For how many seconds a test waits for what must come, on the busiest machine."""
NEEDED = "the tests need mpiexec: pip install 'odonata[test]'"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: it is no garbage, and nobody need look through it for
    some. That would take a quarter of the collection, and a twentieth of the tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def command(*words: str, ranks: int = 1) -> list[str]:
    """Returns the command line of `odonata ...`, under mpiexec if there are several ranks."""
    prefix = []
    if ranks > 1:
        mpiexec = find_mpiexec()
        assert mpiexec, NEEDED
        prefix = [mpiexec, "-n", str(ranks)]
    return [*prefix, sys.executable, "-m", "odonata", *words]


def start(*words: str, ranks: int = 1, cwd: Path | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*words, ranks=ranks),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=clean_environment(),
    )


def clean_environment() -> dict[str, str]:
    return {**launcher.environment_without(), "PYTHONPATH": str(ROOT), "COLUMNS": "100"}


def code_on_ranks(ranks: int, code: str) -> subprocess.CompletedProcess[str]:
    mpiexec = find_mpiexec()
    assert mpiexec, NEEDED
    return subprocess.run(
        [mpiexec, "-n", str(ranks), sys.executable, "-c", code],
        capture_output=True, text=True, timeout=PATIENCE, check=False, env=clean_environment(),
    )  # fmt: skip


def model_on_two_ranks(
    made: str, end: int | None, protocol: str
) -> subprocess.CompletedProcess[str]:
    """Run one of `tests/models.py`, as it would be `made` there."""
    return code_on_ranks(
        2,
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from models import *; "
        f"from pdes.driver import run; run({made}, {end}, protocol={protocol!r})",
    )


def pids(token: str) -> list[int]:
    """Returns the ranks whose command line has `token`, in rank order."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().decode().split("\0")
            environment = dict(
                word.split("=", 1)
                for word in (path / "environ").read_bytes().decode().split("\0")
                if "=" in word
            )
        except (OSError, UnicodeDecodeError):
            continue
        if token in words and "PMI_RANK" in environment:
            found[int(environment["PMI_RANK"])] = int(path.name)
    return [found[rank] for rank in sorted(found)]


@pytest.fixture(scope="session")
def zygotes() -> Iterator[dict[str, Zygote]]:
    """Zygotes by the compiler that they have."""
    zygotes = {jit: Zygote(ODONATA_JIT=jit) for jit in ("0", "1")}
    yield zygotes
    for zygote in zygotes.values():
        zygote.close()


@pytest.fixture
def odonata(
    tmp_path: Path, zygotes: dict[str, Zygote]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command to its end, in an empty directory."""

    def go(*words: str, ranks: int = 1, **env: str) -> subprocess.CompletedProcess[str]:
        environment = {**clean_environment(), **env}
        if ranks == 1 and Zygote.can(words, env):
            zygote = zygotes["0" if environment.get("ODONATA_JIT") == "0" else "1"]
            return zygote.run(words, tmp_path, environment, PATIENCE)
        return subprocess.run(
            command(*words, ranks=ranks),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            cwd=tmp_path,
            env=environment,
        )

    return go


@pytest.fixture
def python(tmp_path: Path, zygotes: dict[str, Zygote]) -> Callable[..., str]:
    """Run code in a process of its own, usually with the JIT off, and return what it prints."""

    def run(code: str, *words: str, jit: str = "0") -> str:
        environment = {**clean_environment(), "ODONATA_JIT": jit}
        done = zygotes[jit].run(("-c", code, *words), tmp_path, environment, PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def go(odonata: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., str]:
    """Run it, and expect no trouble."""

    def run(*words: Any, ranks: int = 1, **env: str) -> str:
        done = odonata(*map(str, words), ranks=ranks, **env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def phold(odonata: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., Any]:
    """`odonata bench phold --json ...`, read."""

    def go(*words: str, ranks: int = 1, **env: str) -> Any:
        done = odonata("bench", "phold", "--json", *words, ranks=ranks, **env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return go


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Three megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(words, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("no tmpfs could be mounted (that takes root): a full disk was NOT tried")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)
