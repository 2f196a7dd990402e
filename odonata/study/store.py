"""The outcomes of a study: a line of JSON for each, added at once, so that a kill loses little.

`DIR/results.jsonl` begins with a line about the simulator that made it: the study, the version and
the mark, a digest over small simulations. Outcomes of a simulator that would answer otherwise are
not mixed with these. Every other line has the `key` of a case, its fields (as `point`) and the
fields of its outcome. Each line ends with its checksum (`pdes.checksum`), so that a changed digit
is not believed; the first says so (`lines`). Stores that were begun before that have lines without,
which are read as they are.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, NamedTuple, TextIO

from odonata import __version__
from odonata.study.contract import Case, O, Study
from pdes.checksum import NAME, is_intact, with_checksum
from pdes.errors import Refused, require
from pdes.shown import say

FORMAT = 1
SYNC_SECONDS = 5.0
"""Seconds between two syncs: older outcomes survive even the end of the host."""
NOT_ITS_TEXT = "its checksum is not that of its text, which somebody or something has changed"


class Answer(NamedTuple):
    """An outcome, and the case that it is of."""

    case: Case
    outcome: Any


@dataclass
class Store(Generic[O]):
    """Outcomes by the keys of their cases; in memory only, where it has no path. While it is open
    for writing nobody else may write."""

    path: Path | None = None
    head: Mapping[str, Any] = field(default_factory=dict)
    outcomes: dict[str, O] = field(default_factory=dict)
    _file: TextIO | None = None
    _synced: float = 0.0

    def add(self, answer: Answer) -> None:
        """Keep an outcome. On disk it is safe from a kill of this process at once."""
        if self._file is not None:
            self._file.write(to_line(answer))
            self._file.flush()
            now = time.monotonic()
            if now - self._synced > SYNC_SECONDS:
                os.fsync(self._file.fileno())
                self._synced = now
        self.outcomes[answer.case.key] = answer.outcome


def path_in(directory: Path, share: str = "") -> Path:
    """Returns the file of outcomes of a study, or of a share of it."""
    return directory / (f"results-{share}.jsonl" if share else "results.jsonl")


def every_path_in(directory: Path) -> list[Path]:
    """Returns the files of outcomes: that of a study, and those of shares of it."""
    return sorted(directory.glob("results*.jsonl"))


def read(directory: Path, study: Study[Any, Any, O]) -> Store[O]:
    """Returns what is there, whichever simulator made it, and also while another process writes."""
    paths = [path for path in every_path_in(directory) if path.stat().st_size]
    require(
        bool(paths), f"{path_in(directory)}: there is no study here; without --report one is made"
    )
    store = Store[O](paths[0])
    for path in paths:
        head, outcomes, _ = _read(path, study)
        store.head = store.head or head
        same = all(head.get(name) == store.head.get(name) for name in ("odonata", "mark"))
        require(same, f"{path}: made by another simulator than {paths[0]}; only one of the two can "
                "be shown")  # fmt: skip
        store.outcomes |= outcomes
    return store


def _others(directory: Path, own: Path, study: Study[Any, Any, O], mark: str) -> dict[str, O]:
    """Returns the outcomes in files of other shares, by simulators that answer as this one."""
    outcomes: dict[str, O] = {}
    for path in every_path_in(directory):
        if path != own and path.stat().st_size:
            head, found, _ = _read(path, study)
            _check(path, head, mark)
            outcomes |= found
    return outcomes


@contextmanager
def opened(directory: Path, study: Study[Any, Any, O], mark: str) -> Iterator[Store[O]]:
    """Returns a store to add to; made, if there is none. `mark` is this simulator's."""
    run = next(directory.glob("rank-*.h5"), None)
    require(run is None, f"{directory}: holds a run ({run}); use another -o")
    path = path_in(directory, study.share)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise Refused(f"{path}: cannot be written to: {error.strerror}") from None
    with file:
        _lock(file, path)
        if not path.stat().st_size:
            file.write(with_checksum(json.dumps(_head(study, mark))) + "\n")
            file.flush()
        head, outcomes, whole = _read(path, study)
        _check(path, head, mark)
        if whole < path.stat().st_size:
            say(f"{path}: the last line was not finished; that simulation is done again")
            os.truncate(path, whole)
        yield Store(path, head, _others(directory, path, study, mark) | outcomes, file)
        os.fsync(file.fileno())


def to_line(answer: Answer) -> str:
    """Returns one line of JSON; the case is written out, for whoever reads it with other programs.
    The case's fields are called `point`, as they were in the first stores."""
    fields = {"key": answer.case.key, "point": answer.case.fields(), **asdict(answer.outcome)}
    return with_checksum(json.dumps(fields, separators=(",", ":"))) + "\n"


def from_line(line: str, study: Study[Any, Any, O]) -> tuple[str, O]:
    """Returns the key and the outcome. Raises ValueError, KeyError, TypeError or AttributeError
    where it is none."""
    fields = json.loads(line)
    fields.pop(NAME, None)
    key = fields.pop("key")
    fields.pop("point")
    if not isinstance(key, str):
        raise TypeError(key)
    return key, study.revive(fields)


def _lock(file: TextIO, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Refused(f"{path}: another study is writing there; wait, or use another -o") from None
    except OSError:  # a file system without locks
        pass


def _head(study: Study[Any, Any, Any], mark: str) -> dict[str, Any]:
    return {
        "study": study.name, "format": FORMAT, "odonata": __version__, "mark": mark,
        "began": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "python": platform.python_version(),
        "numpy": version("numpy"), "numba": version("numba"), "lines": NAME,
    }  # fmt: skip


def _check(path: Path, head: Mapping[str, Any], mark: str) -> None:
    made, cure = head.get("odonata"), "use another -o, or that version"
    require(made == __version__, f"{path}: made by odonata {made}, this is {__version__}; {cure}")
    require(
        head.get("mark") == mark,
        f"{path}: made by a simulator that answers otherwise (its mark is {head.get('mark')}, this "
        f"one's {mark}); {cure}",
    )


def _read(path: Path, study: Study[Any, Any, O]) -> tuple[dict[str, Any], dict[str, O], int]:
    """Returns the head, the outcomes, and how many bytes are whole lines."""
    outcomes: dict[str, O] = {}
    with path.open("rb") as file:
        first = file.readline()
        head = _head_of(first)
        require(
            head is not None and head.get("format") == FORMAT,
            f"{path}: no results of a study that can be read; use another -o",
        )
        assert head is not None
        promised = head.get("lines") == NAME
        require(is_intact(first) in ((True,) if promised else (True, None)),
                f"{path}, line 1: damaged: {NOT_ITS_TEXT}; use another -o")  # fmt: skip
        require(
            head["study"] == study.name,
            f"{path}: results of the study {head['study']}, not of {study.name}; use another -o",
        )
        whole = len(first)
        for number, line in enumerate(file, 2):
            if not line.endswith(b"\n"):
                break
            cure = "delete that line, and its simulation is done again"
            intact = is_intact(line)
            require(intact is not False,
                    f"{path}, line {number}: damaged: {NOT_ITS_TEXT}; {cure}")  # fmt: skip
            try:
                if intact is None and promised:
                    raise ValueError("no checksum")
                key, outcome = from_line(line.decode(), study)
            except (ValueError, KeyError, TypeError, AttributeError):
                raise Refused(f"{path}, line {number}: damaged; {cure}") from None
            outcomes[key] = outcome
            whole += len(line)
    return head, outcomes, whole


def _head_of(line: bytes) -> dict[str, Any] | None:
    try:
        head = json.loads(line)
    except ValueError:
        return None
    return head if isinstance(head, dict) and isinstance(head.get("study"), str) else None
