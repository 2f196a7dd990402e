"""Plug-ins by file: a Python file that registers policies when it is imported.

`load_plugin("mine.py")`, `plugins = ["mine.py"]` in an experiment file or `--plugin mine.py` on the
command line make what it registers known by name. Processes that are started afterwards find it in
the environment (`ODONATA_PLUGINS`, paths separated as in PATH), which a user may also set.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pdes.errors import Refused

ENVIRONMENT = "ODONATA_PLUGINS"


@dataclass(frozen=True)
class Plugin:
    """A file that was loaded."""

    name: str
    """The file's name without its suffix."""
    path: Path
    sha256: str
    """Of its content: results made with another version of the file can be told apart."""
    registered: tuple[tuple[str, str], ...]
    """Kind and name of each policy that it registered."""

    @property
    def module(self) -> str:
        """The name under which it is imported. It depends on the file's name and content and not on
        its place, so that kernels compiled for it are found again."""
        return f"odonata_plugin_{re.sub(r'[^0-9a-zA-Z]', '_', self.name)}_{self.sha256[:16]}"


PLUGINS: dict[Path, Plugin] = {}
"""The files that this process has loaded."""

_origins: list[str] = []
_noted: list[tuple[str, str]] = []


def origin() -> str:
    """Names the plug-in that is being imported; empty where none is."""
    return _origins[-1] if _origins else ""


def note(kind: str, name: str) -> None:
    """Remember what the plug-in that is being imported has registered."""
    if _origins:
        _noted.append((kind, name))


@contextmanager
def coming_from(where: str) -> Iterator[None]:
    """Have all that is registered meanwhile come from there."""
    _origins.append(where)
    try:
        yield
    finally:
        _origins.pop()


def load_plugin(path: Path | str) -> Plugin:
    """Import a file that registers policies; nothing happens where it was loaded before and has not
    changed. Refused with the file, the line and the reason where it cannot be imported."""
    path = Path(path).expanduser().resolve()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Refused(f"plug-in {path}: {error.strerror}") from error
    plugin = Plugin(path.stem, path, hashlib.sha256(content).hexdigest(), ())
    there = PLUGINS.get(path)
    if there is not None and there.sha256 == plugin.sha256:
        return there
    module = types.ModuleType(plugin.module)
    module.__file__ = str(path)
    sys.modules[plugin.module] = module
    before = len(_noted)
    try:
        with coming_from(str(path)):
            exec(compile(content, str(path), "exec"), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[plugin.module]
        raise Refused(f"plug-in {path}{_line(error, str(path))}: "
                      f"{type(error).__name__}: {_reason(error)}") from error  # fmt: skip
    registered = tuple(dict.fromkeys(_noted[before:]))
    del _noted[before:]
    if not registered:
        raise Refused(f"plug-in {path}: it registers nothing; write @allocation(...), for example, "
                      "above a function")  # fmt: skip
    PLUGINS[path] = plugin = Plugin(plugin.name, path, plugin.sha256, registered)
    os.environ[ENVIRONMENT] = os.pathsep.join(map(str, PLUGINS))
    return plugin


def load_from_environment() -> None:
    """Load the plug-ins that the environment names."""
    for path in os.environ.get(ENVIRONMENT, "").split(os.pathsep):
        if path:
            load_plugin(path)


def _line(error: BaseException, path: str) -> str:
    if isinstance(error, SyntaxError) and error.filename == path:
        return f", line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename == path]  # fmt: skip
    return f", line {lines[-1]}" if lines else ""


def _reason(error: BaseException) -> str:
    return error.msg if isinstance(error, SyntaxError) else str(error)
