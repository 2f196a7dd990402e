"""Outcomes on disk: a line for each, added as they come, so that what is killed loses little.

`DIR/results.jsonl` begins with a line about the simulator that made it: its version and its mark, a
digest over small simulations that every policy and pattern takes part in. Outcomes of a simulator
that would answer otherwise are not mixed with these.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

from odonata import __version__
from odonata.studies.levelspread.simulation import Answer, Outcome, from_line, to_line
from pdes.errors import Refused, require

FORMAT = 1
SYNC_SECONDS = 5.0
"""What is older than that survives even the end of the host."""


def path_in(directory: Path) -> Path:
    return directory / "results.jsonl"


@dataclass
class Store:
    """Outcomes by the keys of their points. While it is open for writing nobody else may write."""

    path: Path
    head: Mapping[str, Any]
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    _file: TextIO | None = None
    _synced: float = 0.0

    def add(self, answer: Answer) -> None:
        assert self._file is not None
        self._file.write(to_line(answer))
        self._file.flush()
        now = time.monotonic()
        if now - self._synced > SYNC_SECONDS:
            os.fsync(self._file.fileno())
            self._synced = now
        self.outcomes[answer.point.key] = answer.outcome


def read(directory: Path) -> Store:
    """To look at; whoever made it, and while somebody else is writing."""
    path = path_in(directory)
    require(path.is_file(), f"{path}: there is no study here; without --report one is made")
    head, outcomes, _ = _read(path)
    return Store(path, head, outcomes)


@contextmanager
def opened(directory: Path, mark: str) -> Iterator[Store]:
    """To add to; made, if there is none. `mark` is the simulator's."""
    directory.mkdir(parents=True, exist_ok=True)
    path = path_in(directory)
    run = next(directory.glob("rank-*.h5"), None)
    require(run is None, f"{directory}: holds a run ({run}); use another -o")
    with path.open("a+", encoding="utf-8") as file:
        _lock(file, path)
        if not path.stat().st_size:
            file.write(json.dumps(_head(mark)) + "\n")
            file.flush()
        head, outcomes, whole = _read(path)
        _check(path, head, mark)
        if whole < path.stat().st_size:
            print(f"odonata: {path}: the last line was not finished; that simulation is done again",
                  file=sys.stderr)  # fmt: skip
            os.truncate(path, whole)
        yield Store(path, head, outcomes, file)
        os.fsync(file.fileno())


def _lock(file: TextIO, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Refused(f"{path}: another study is writing there; wait, or use another -o") from None
    except OSError:  # a file system without locks
        pass


def _head(mark: str) -> dict[str, Any]:
    return {
        "study": "level-spread", "format": FORMAT, "odonata": __version__, "mark": mark,
        "began": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "python": platform.python_version(),
        "numpy": version("numpy"), "numba": version("numba"),
    }  # fmt: skip


def _check(path: Path, head: Mapping[str, Any], mark: str) -> None:
    made, cure = head["odonata"], "use another -o, or that version"
    require(made == __version__, f"{path}: made by odonata {made}, this is {__version__}; {cure}")
    require(
        head["mark"] == mark,
        f"{path}: made by a simulator that answers otherwise (its mark is {head['mark']}, this "
        f"one's {mark}); {cure}",
    )


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Outcome], int]:
    """The head, the outcomes, and how many bytes are whole lines."""
    outcomes: dict[str, Outcome] = {}
    with path.open("rb") as file:
        first = file.readline()
        try:
            head = json.loads(first)
            known = (head["study"], head["format"]) == ("level-spread", FORMAT)
        except (ValueError, KeyError, TypeError):
            known = False
        require(known, f"{path}: no results of this study, as far as can be told; use another -o")
        whole = len(first)
        for number, line in enumerate(file, 2):
            if not line.endswith(b"\n"):
                break
            try:
                key, outcome = from_line(line.decode())
            except (ValueError, KeyError, TypeError, AttributeError):
                raise Refused(f"{path}, line {number}: damaged; delete that line, and its "
                              "simulation is done again") from None  # fmt: skip
            outcomes[key] = outcome
            whole += len(line)
    return head, outcomes, whole
