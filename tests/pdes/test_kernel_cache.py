"""Compiled kernels are code: what another user left in the cache is not loaded, whoever may write
there now. The other user is a real one, so this takes root."""

from __future__ import annotations

import importlib.util
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pdes import jit, kernel_cache

NOBODY = 65534
compiled = pytest.mark.skipif(not jit.ENABLED, reason="without the compiler nothing is kept")
needs_root = pytest.mark.skipif(
    os.getuid() != 0, reason="only root can act as another user: kernels of others were NOT tried"
)


class Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (str(self.path), "w")


@pytest.fixture
def shared() -> Iterator[Path]:
    """Returns a directory that every user can reach."""
    place = Path(tempfile.mkdtemp(prefix="odonata-test-"))
    place.chmod(0o777)
    yield place
    shutil.rmtree(place)


@pytest.fixture
def cache(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a cache that anybody may write to at first."""
    root = shared / "cache"
    root.mkdir()
    root.chmod(0o777)
    monkeypatch.setenv("ODONATA_CACHE_DIR", str(root))
    monkeypatch.setattr("tempfile.tempdir", str(shared / "tmp"))
    (shared / "tmp").mkdir()
    for each in (kernel_cache._private, kernel_cache._distrust, kernel_cache._own_root):
        each.cache_clear()
    return root


def as_nobody(script: str, cwd: Path) -> None:
    subprocess.run(["/bin/sh", "-c", f"umask 0; {script}"], cwd=cwd, check=True, user=NOBODY,
                   group=NOBODY, extra_groups=[])  # fmt: skip


def twice(shared: Path) -> Any:
    """Returns a function of a file, as an `entry`."""
    file = shared / "mine.py"
    file.write_text("def twice(x):\n    return 2 * x\n")
    spec = importlib.util.spec_from_file_location("mine_that_is_kept", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["mine_that_is_kept"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return jit.entry(module.twice)


def private(cache: Path) -> None:
    """As users were once advised to."""
    cache.chmod(0o755)
    kernel_cache._private.cache_clear()


@compiled
@needs_root
@pytest.mark.parametrize("planted", ["all", "index", "data", "link"])
def test_what_another_user_planted_is_not_loaded_once_the_cache_is_ones_own(
    shared: Path, cache: Path, planted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    private(cache)
    first = twice(shared)
    assert first(21) == 42
    (index,), (data,) = (list(cache.glob(f"*/kernels/*.{kind}")) for kind in ("nbi", "nbc"))
    evil = pickle.dumps(Evil(shared / "evil"))
    (shared / "payload").write_bytes(evil)
    (shared / "payload").chmod(0o644)
    folder = index.parent
    if planted == "all":
        shutil.rmtree(folder.parent)
        cache.chmod(0o777)
        names = f"{folder.parent.name}/kernels"
        as_nobody(f"mkdir -p {names}; cp ../payload {names}/{index.name}", cache)
        private(cache)
    else:
        at = data if planted == "data" else index
        folder.chmod(0o777)
        folder.parent.chmod(0o755)
        at.unlink()
        how = "ln -s ../../../payload" if planted == "link" else "cp ../../../payload"
        as_nobody(f"{how} {at.name}", folder)
        folder.chmod(0o700)
    again = twice(shared)
    assert again(21) == 42
    assert not (shared / "evil").exists()
    said = capsys.readouterr().err
    what = {"all": folder.parent, "data": data}.get(planted, index)
    why = "is a symbolic link" if planted == "link" else f"belongs to another user ({NOBODY})"
    assert said.count("odonata: warning:") == 1
    assert f"{what}: it {why}" in said
    assert "name a new directory" in said
    if planted != "all":  # ours has taken its place
        assert (index.stat().st_uid, data.stat().st_uid) == (0, 0)
        third = twice(shared)
        assert third(21) == 42
        assert sum(third.stats.cache_hits.values()) == 1


@compiled
def test_nobody_else_can_write_to_what_is_kept_whatever_the_umask(
    shared: Path, cache: Path
) -> None:
    private(cache)
    before = os.umask(0)
    try:
        assert twice(shared)(4) == 8
    finally:
        os.umask(before)
    kept = [path for path in cache.rglob("*") if path.suffix in (".nbi", ".nbc")]
    assert len(kept) == 2
    for path in (*kept, kept[0].parent, kept[0].parent.parent):
        assert not path.stat().st_mode & 0o022, path
    loaded = twice(shared)
    assert loaded(4) == 8
    assert sum(loaded.stats.cache_hits.values()) == 1


def spoil(name: str) -> Callable[[Path], None]:
    """Returns what makes a file one that is not loaded."""

    def linked(path: Path) -> None:
        path.rename(path.with_suffix(".away"))
        path.symlink_to(path.with_suffix(".away"))

    def folder_linked(path: Path) -> None:
        path.parent.rename(path.parent.with_suffix(".away"))
        path.parent.symlink_to(path.parent.with_suffix(".away"))

    def pipe(path: Path) -> None:
        path.unlink()
        os.mkfifo(path, 0o600)

    return {
        "others": lambda path: path.chmod(0o602),
        "group": lambda path: path.chmod(0o620),
        "folder": lambda path: path.parent.chmod(0o770),
        "version": lambda path: path.parent.parent.chmod(0o707),
        "root": lambda path: path.parents[2].chmod(0o777),
        "link": linked,
        "linked folder": folder_linked,
        "pipe": pipe,
        "directory": lambda path: (path.unlink(), path.mkdir())[0],
        "absent": lambda path: path.unlink(),
    }[name]


@pytest.mark.parametrize(
    "name",
    ["others", "group", "folder", "version", "root", "link", "linked folder", "pipe", "directory",
     "absent"],
)  # fmt: skip
def test_a_file_is_read_only_if_each_level_is_ones_own(tmp_path: Path, name: str) -> None:
    tmp_path.chmod(0o755)
    path = tmp_path / "0123" / "kernels" / "f.nbi"
    path.parent.mkdir(parents=True, mode=0o700)
    path.parent.parent.chmod(0o700)
    path.write_bytes(b"content")
    path.chmod(0o600)
    assert kernel_cache.content(path) == b"content"
    spoil(name)(path)
    assert kernel_cache.content(path) is None


@needs_root
def test_what_the_superuser_left_is_loaded_by_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    path = tmp_path / "0123" / "kernels" / "f.nbi"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"content")
    path.chmod(0o644)
    for level in (path.parent, path.parent.parent):
        level.chmod(0o755)
    monkeypatch.setattr("os.getuid", lambda: NOBODY)
    assert kernel_cache.content(path) == b"content"
    os.chown(path, 4711, 4711)
    assert kernel_cache.content(path) is None


@needs_root
def test_a_temporary_place_that_another_user_made_is_not_used(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He knows its name: it has our number."""
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    monkeypatch.setenv("HOME", "/proc/nowhere")
    for variable in ("ODONATA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    mine = shared / "mine"
    mine.mkdir(mode=0o700)
    for script in ("mkdir", "touch", f"ln -s {mine}", "ln -s nowhere"):
        for each in (kernel_cache._private, kernel_cache._own_root):
            each.cache_clear()
        place = shared / f"odonata-kernels-{os.getuid()}"
        as_nobody(f"{script} {place}", shared)
        root = kernel_cache.cache_root()
        assert root not in (place, mine)
        assert root.parent == shared
        assert stat.S_IMODE(root.stat().st_mode) == 0o700
        place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()
    kernel_cache._own_root.cache_clear()
