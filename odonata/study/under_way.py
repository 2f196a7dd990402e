"""What a study tells of itself while it goes on, in `progress.json`; `odonata watch` shows it."""

from __future__ import annotations

import json
import os
import platform
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odonata.study import store
from pdes.replacing import write_whole

if TYPE_CHECKING:
    from odonata.study.contract import Study
    from odonata.study.filling import Agenda

EVERY = 2.0
"""Seconds between two writings."""
MOST_NAMED = 64
"""How many of the simulations that are under way are named."""
RUNNING, OVER, CUT = "running", "over", "cut short"


@dataclass(frozen=True)
class Told:
    """How far a study is, or a share of it. Times are seconds since 1970."""

    study: str
    state: str
    wanted: int
    """How many simulations it has, as far as is known; of these so many have an outcome: """
    there: int
    kept: int
    """How many of these were there when it began."""
    failed: int
    done: float
    """The part of the work that was to be done when it began and is done, 0 .. 1."""
    began: float
    now: float
    under_way: tuple[str, ...]
    host: str
    pid: int

    @property
    def alive(self) -> bool:
        """Tells whether its process is there, as far as can be told from this host."""
        return self.host != platform.node() or os.path.exists(f"/proc/{self.pid}")


def path_of(results: Path) -> Path:
    """Returns the file beside the store of a study, or of a share of it."""
    return results.with_name(f"{results.stem.replace('results', 'progress')}.json")


class Telling:
    """Writes how far a study is, when called and it is time to."""

    def __init__(
        self, out: Path, study: Study[Any, Any, Any], agenda: Agenda[Any, Any, Any],
        kept: store.Store[Any],
    ) -> None:  # fmt: skip
        self._path = path_of(store.path_in(out, study.share))
        self._study, self._agenda, self._kept = study.name, agenda, kept
        self._began, self._next = time.time(), 0.0

    def __call__(self) -> None:
        if time.monotonic() >= self._next:
            self._write(RUNNING)

    def end(self) -> None:
        """Write that it is over, complete or not."""
        self._write(CUT if self._agenda.missing else OVER)

    def _write(self, state: str) -> None:
        agenda, outcomes = self._agenda, self._kept.outcomes.values()
        failed = sum(bool(getattr(each, "failed", "")) for each in outcomes)
        told = Told(
            self._study, state, agenda.wanted, agenda.wanted - agenda.missing, agenda.kept,
            failed + len(agenda.failures), agenda.done, self._began, time.time(),
            tuple(map(str, agenda.under_way.values()))[:MOST_NAMED], platform.node(), os.getpid(),
        )  # fmt: skip
        with suppress(OSError):  # a full disk: no reason to end the study
            write_whole(self._path, json.dumps(asdict(told), indent=1) + "\n")
        self._next = time.monotonic() + EVERY


def told_in(directory: Path) -> list[Told]:
    """Returns what a study, or each share of it, has told last; nothing of those of before."""
    found = []
    for path in sorted(map(path_of, store.every_path_in(directory))):
        try:
            facts = json.loads(path.read_text())
            found.append(Told(**{**facts, "under_way": tuple(facts["under_way"])}))
        except (OSError, ValueError, TypeError, LookupError):
            continue
    return found
