"""What is kept on disk serves exactly what it was compiled from, and nothing else is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from conftest import clean_environment
from models import Rogue

import pdes
from pdes import jit, kernel_cache
from pdes.errors import Refused

MODEL = """
from dataclasses import dataclass
from models import Rogue, RogueState
from pdes import kernel, schedule
from constants import DELAY

@kernel
def one(sim, state, time, key, a, b):
    state.handled[0] += 1
    schedule(sim, time + DELAY, key, a, b)

@kernel
def two(sim, state, time, key, a, b):
    state.handled[0] += 1
    schedule(sim, time + 2 * DELAY, key, a, b)

@dataclass(frozen=True)
class One(Rogue):
    handle = staticmethod(one)

@dataclass(frozen=True)
class Two(One):  # under the same name
    handle = staticmethod(two)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MODEL)
    (tmp_path / "constants.py").write_text("DELAY = 1000\n")
    return tmp_path


def printed(folder: Path, code: str, **env: str) -> list[int]:
    """Returns the numbers that `code` prints, in a process with a cache in this folder."""
    tests = Path(__file__).parent.parent
    environment = {**clean_environment(), "ODONATA_CACHE_DIR": str(folder / "cache"), **env}
    environment["PYTHONPATH"] += os.pathsep + str(tests)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    return [int(word) for word in done.stdout.split()]


def events(folder: Path, what: str, **env: str) -> int:
    module, _, model = what.partition(".")
    (count,) = printed(folder, f"import pdes; from {module} import *; "
                       f"print(pdes.run({model}(), 100_000, show_compiling=False).events)",
                       **env)  # fmt: skip
    return count


@pytest.mark.long
def test_what_is_kept_of_an_engine_is_of_this_handler_this_file_and_these_constants(
    folder: Path,
) -> None:
    """One test, because each stage compiles an engine."""
    assert events(folder, "mine.One") == 100
    assert events(folder, "mine.Two") == 50, "of the same name, with a handler of its own"
    (folder / "mine.py").rename(folder / "yours.py")
    assert events(folder, "yours.One") == 100
    (folder / "constants.py").write_text("DELAY = 500\n")
    assert events(folder, "yours.One") == events(folder, "yours.One", ODONATA_JIT="0") == 200


BOUND = """
from pdes.jit import bind, kernel
from constants import DELAY

def loop(end):
    time = events = 0
    while time < end:
        time, events = later(time), events + 1
    return events

@kernel
def one(time):
    return time + DELAY

@kernel
def two(time):
    return time + 2 * DELAY

first, second = (bind(loop, "loop", later=each) for each in (one, two))
"""


def test_what_is_kept_is_of_this_handler_this_file_and_these_constants(folder: Path) -> None:
    """A small loop is bound to its handlers as an engine is to those of a model."""
    (folder / "mine.py").write_text(BOUND)
    counts = "from {0} import *; print(first(100_000), second(100_000)); "
    found = "print(len(first.stats.cache_hits), len(second.stats.cache_hits)); "
    assert printed(folder, (counts + found).format("mine")) == [100, 50, 0, 0]
    shutil.copy(folder / "mine.py", folder / "yours.py")
    again = (counts + found).format("mine") + counts.format("yours")
    assert printed(folder, again) == [100, 50, 1, 1, 100, 50]
    (folder / "constants.py").write_text("DELAY = 500\n")
    assert printed(folder, counts.format("yours")) == [200, 100]
    assert printed(folder, counts.format("yours"), ODONATA_JIT="0") == [200, 100]


def test_two_checkouts_of_one_version_share_what_is_kept(tmp_path: Path) -> None:
    """Their paths differ, and when their files were written."""
    code, printed = "from mine import *; print(first(100_000), len(first.stats.cache_hits))", []
    for age, name in enumerate(("one", "two")):
        checkout = tmp_path / name
        shutil.copytree(Path(jit.__file__).parent, checkout / "pdes",
                        ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
        (checkout / "mine.py").write_text(BOUND)
        (checkout / "constants.py").write_text("DELAY = 1000\n")
        for file in checkout.rglob("*.py"):
            os.utime(file, (1e9 + age, 1e9 + age))
        environment = {**clean_environment(), "ODONATA_CACHE_DIR": str(tmp_path / "cache")}
        environment["PYTHONPATH"] = str(checkout)
        printed.append(
            subprocess.run([sys.executable, "-c", code], cwd=checkout, env=environment, check=True,
                           capture_output=True, text=True).stdout
        )  # fmt: skip
    assert printed == ["100 0\n", "100 1\n"]


def test_kernels_that_are_kept_are_loaded_without_the_compiler() -> None:
    """To import all that numba needs to compile takes a third of the time of a start."""
    code = (
        "import sys, pdes; from pdes.phold import Phold; "
        "pdes.run(Phold(processes=8), 1_000_000, show_compiling=False); "
        "print('numba.np.arraymath' in sys.modules)"
    )
    for _ in range(2):  # the first may have to compile them
        done = subprocess.run([sys.executable, "-c", code], env=clean_environment(), check=True,
                              capture_output=True, text=True)  # fmt: skip
        if done.stdout == "False\n":
            break
    assert done.stdout == "False\n"


@jit.kernel
def mistaken(sim: Any, state: Any, time: int, key: int, a: int, b: int) -> None:
    state.nonsense[0] = a


class Mistaken(Rogue):
    handle = staticmethod(mistaken)


@pytest.mark.long
def test_a_run_whose_handler_has_a_mistake_ends_with_its_line() -> None:
    """Compiled, the compiler's words name it; as Python, the traceback does."""
    code = getattr(mistaken, "py_func", mistaken).__code__
    with pytest.raises(Refused if jit.ENABLED else AttributeError, match="nonsense") as refused:
        pdes.run(Mistaken(), 1000)
    if jit.ENABLED:
        assert str(refused.value).endswith(f"({__file__}, line {code.co_firstlineno + 2})")
    else:
        assert refused.traceback[-1].lineno + 1 == code.co_firstlineno + 2


@jit.kernel
def added(x: float, y: float) -> float:
    return x + y


@jit.entry
def added_and_one(x: float, y: float) -> float:
    return added(x, y) + 1


@jit.kernel
def counted(first: int, *others: int) -> int:
    return first + len(others)


@jit.kernel
def factorial(n: int) -> int:
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@jit.entry
def all_of_them(n: int) -> int:
    return counted(n, n, n) + factorial(n) + int(added(n, n))


def test_a_kernel_may_be_called_from_python_before_and_after_it_is_in_another() -> None:
    assert added(1, 2) == 3
    assert added_and_one(1, 2) == 4
    assert added_and_one(1.5, 2.0) == 4.5
    assert added(1, 2) == added(y=2, x=1) == 3
    assert added(1.5, 2.0) == 3.5


def test_a_kernel_may_be_of_any_kind_and_go_to_another_process() -> None:
    assert all_of_them(4) == 6 + 24 + 8
    assert (counted(1), counted(1, 2, 3), factorial(5)) == (1, 3, 120)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(added, 1, 2).result() == 3


def test_what_is_called_directly_is_an_entry() -> None:
    assert jit.direct(added_and_one, 1, 2)(1, 2) == 4
    if jit.ENABLED:
        with pytest.raises(AssertionError):
            jit.direct(added, 1, 2)


def test_threads_do_not_mix_their_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ODONATA_CACHE_DIR", str(tmp_path / "kept"))
    before, places = numba.config.CACHE_DIR, []

    def work() -> None:
        for number in range(200):
            bound = jit.bind(doubled, f"doubled_{number}")
            places.append(bound._cache.cache_path)  # type: ignore[attr-defined]

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(places) == 800
    assert all(place.startswith(str(tmp_path / "kept")) for place in places)
    assert before == numba.config.CACHE_DIR
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def doubled(x: int) -> int:
    return 2 * x


def test_only_old_versions_of_ours_are_removed(tmp_path: Path) -> None:
    theirs = tmp_path / "abcdef" / "src" / "f.nbi"
    ours = [tmp_path / name / "src" / "f.nbi" for name in ("0123456789abcdef", "fedcba9876543210")]
    long_ago = time.time() - 86400 * (kernel_cache.KEEP_DAYS + 1)
    for path in (theirs, *ours):
        path.parent.mkdir(parents=True)
        path.touch()
    for path in ours:
        (path.parent.parent / kernel_cache.STAMP).touch()
    for path in (theirs, ours[0].parent.parent / kernel_cache.STAMP):
        os.utime(path, (long_ago, long_ago))
    kernel_cache.prune(tmp_path)
    assert theirs.exists()
    assert not (tmp_path / "0123456789abcdef").exists()
    assert ours[1].exists()


@pytest.fixture
def fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where kernels go that are kept nowhere else."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / f"odonata-kernels-{os.getuid()}"


@pytest.mark.parametrize("variable", ["ODONATA_CACHE_DIR", "XDG_CACHE_HOME"])
@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_cache_that_others_can_write_to_is_not_used_and_that_is_said_once(
    tmp_path: Path, fallback: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], variable: str, mode: int,
) -> None:  # fmt: skip
    monkeypatch.delenv("ODONATA_CACHE_DIR", raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "named"))
    named = kernel_cache.cache_root()
    assert named.is_relative_to(tmp_path / "named")
    kernel_cache._private.cache_clear()
    named.chmod(mode)
    assert [kernel_cache.cache_root(), kernel_cache.cache_root()] == [fallback, fallback]
    assert fallback.stat().st_mode & 0o777 == 0o700
    (said,) = capsys.readouterr().err.splitlines()
    assert f"{named}: others can write to it" in said
    assert "name a new directory of your own (ODONATA_CACHE_DIR)" in said
    assert "chmod" not in said


def test_a_cache_of_another_user_is_not_used(
    tmp_path: Path, fallback: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    fallback.mkdir(mode=0o700)
    monkeypatch.setenv("ODONATA_CACHE_DIR", str(tmp_path / "named"))
    monkeypatch.setattr("os.getuid", lambda: 4711)
    root = kernel_cache.cache_root()
    assert root not in (tmp_path / "named", fallback)
    assert root.parent == tmp_path
    assert "belongs to another user" in capsys.readouterr().err
    kernel_cache._private.cache_clear()
