"""Ranks as threads of one process, over a wire that delivers in an order drawn from a seed; and
what such ranks recorded."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import h5py
import pytest
from conftest import PATIENCE

from pdes.driver import Result, run
from pdes.engine import Engine
from pdes.errors import Refused
from pdes.events import Rows
from pdes.join import Joined, join
from pdes.model import Model
from pdes.transport import Serial, Unreachable


class Wire:
    """What the ranks of one run share."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.slots: list[Any] = [None] * size
        self.barrier = threading.Barrier(size, timeout=PATIENCE)
        self.mail: list[list[deque[Rows]]] = [[deque() for _ in range(size)] for _ in range(size)]
        """For each rank, what each other has sent to it."""
        self.arrival = threading.Condition()


class Thread:
    """A transport between threads. It delivers some of what has arrived, in the order of each
    sender and of no two of them: a letter may overtake the one that it answers."""

    host_leader, library = True, "threads"
    Lost: type[Exception] = Unreachable

    def __init__(self, wire: Wire, rank: int, seed: int, stop_after: int | None) -> None:
        self.wire, self.rank, self.size = wire, rank, wire.size
        self.stop_after = stop_after
        self._random = random.Random(seed * 64 + rank)

    def everyone(self, thing: Any) -> list[Any]:
        self.wire.slots[self.rank] = thing
        self.wire.barrier.wait()
        things = list(self.wire.slots)
        self.wire.barrier.wait()
        return things

    def carry(self, words: int) -> None:
        pass

    def exchange(self, letters: Rows, places: list[int]) -> list[Rows]:
        mine = [letters[places[r] : places[r + 1]].copy() for r in range(self.size)]
        theirs = self.everyone(mine)
        return [theirs[r][self.rank] for r in range(self.size) if r != self.rank]

    def post(self, peer: int, rows: Rows) -> None:
        with self.wire.arrival:
            self.wire.mail[peer][self.rank].append(rows)
            self.wire.arrival.notify_all()

    def collect(self, wait: bool) -> list[tuple[int, Rows]]:
        boxes = self.wire.mail[self.rank]
        with self.wire.arrival:
            if wait and not self.wire.arrival.wait_for(lambda: any(boxes), PATIENCE):
                raise TimeoutError("nobody writes: deadlock")
            senders = [sender for sender, box in enumerate(boxes) if box]
            chosen = self._random.sample(senders, self._random.randint(1, len(senders)))
            return [(sender, boxes[sender].popleft()) for sender in chosen
                    for _ in range(self._random.randint(1, len(boxes[sender])))]  # fmt: skip

    def gather(self, array: Any) -> Any:
        parts = self.everyone(array)
        return parts if self.rank == 0 else None

    def leader_first(self, action: Callable[[], Any]) -> Any:
        return action()

    def fail(self, reason: str, patience: float = 0.0) -> NoReturn:
        self.wire.barrier.abort()
        raise AssertionError(reason)

    @contextmanager
    def watching(self) -> Iterator[None]:
        yield


def run_threads(
    model: Model, end: int | None, size: int, seed: int, stops: dict[int, int], **options: Any
) -> list[Result]:
    wire = Wire(size)
    results: list[Any] = [None] * size

    def rank(r: int) -> None:
        try:
            peer = Thread(wire, r, seed, stops.get(r))
            results[r] = run(model, end, transport=peer, **options)
        except BaseException as error:
            wire.barrier.abort()
            results[r] = error

    threads = [threading.Thread(target=rank, args=(r,)) for r in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
    problems = [result for result in results if isinstance(result, BaseException)]
    for problem in sorted(problems, key=lambda it: not isinstance(it, Refused)):
        raise problem  # the others are those of ranks that it left alone
    return results


def go(model: Model, end: int | None, ranks: int, seed: int = 1, **how: Any) -> Result:
    """On several ranks, or on one."""
    stops = how.pop("stops", {})
    if ranks == 1 and not stops:
        return run(model, end, transport=Serial(), **how)
    return run_threads(model, end, ranks, seed, stops, **how)[0]


def stop_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a rank be asked to stop when it has handled as many events as `run_threads` was told."""

    def requested(engine: Engine) -> bool:
        after = getattr(engine.transport, "stop_after", None)
        return after is not None and engine.events >= after

    monkeypatch.setattr(Engine, "stop_requested", property(requested))


# -- what they recorded


def bits(place: Path) -> dict[str, tuple[Any, bytes]]:
    """Returns the content of every dataset but the engine's own; also of files whose writer has
    died."""
    join(place, place / "run.h5")
    joined = Joined(place / "run.h5", follow=True)
    names: list[str] = []
    joined.file.visititems(
        lambda name, thing: names.append(name) if isinstance(thing, h5py.Dataset) else None
    )
    found = {
        name: ((joined.file[name].shape, joined.file[name].dtype.str), joined.read(name).tobytes())
        for name in names
        if not name.startswith("engine/")
    }
    joined.close()
    return found


def files(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir() if path.name != "run.h5")
