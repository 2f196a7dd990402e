"""`odonata study level-spread`: simulate what is missing, then tell and draw what is there."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from odonata.studies.levelspread import store
from odonata.studies.levelspread.cases import JOKANOVIC, PARTS, PATTERNS, POLICIES, Asked, points
from odonata.studies.levelspread.simulation import KB, Answer, Jobs, Point, network_of, simulate
from odonata.studies.levelspread.store import Store
from odonata.study import pool
from pdes.errors import Refused
from pdes.signals import StopSignals
from pdes.transport import together, world
from topology.dragonfly import BadMachine

HEAVY = 10
"""Points that take so many times the mean are simulated first, the longest before all others: at
the end nobody waits long for the last. The rest stay in order, so that what is cut short has whole
workloads."""


def mark() -> str:
    """What this simulator answers to a little of everything, in a few letters. Compiles what the
    study needs; takes a moment."""
    kinds = tuple(Jobs(1, nodes, pattern) for nodes, pattern in zip((3, 5, 6, 9, 18, 20), PATTERNS,
                                                                   strict=True))  # fmt: skip
    told = hashlib.sha256()
    usual = Point((*kinds, Jobs(1, 4, "halo2d", 10 * KB)), "rdn", seed=1)
    tried = [
        *(replace(usual, allocation=policy) for policy in (*POLICIES, JOKANOVIC)),
        replace(usual, exchange="posted", broadcast="broadcast", order="large-first", ratio=0.25),
    ]
    for point in tried:
        answer = simulate(point, show_compiling=True)
        told.update(f"{answer.outcome.digest} {answer.outcome.times_ps}\n".encode())
    return told.hexdigest()[:12]


def buildable(point: Point) -> None:
    """Refuse now what no point could be built with."""
    try:
        network_of(point)
    except BadMachine as refusal:
        raise Refused(str(refusal)) from None


class Agenda:
    """Points of which there is no outcome yet. Told to stop, it gives out no more. Only rank 0 has
    something to do and a store."""

    def __init__(self, todo: Sequence[Point], kept: Store | None, stop: StopSignals) -> None:
        self._kept, self._stop = kept, stop
        self.missing = len(todo)
        self._weight = sum(point.weight for point in todo)
        self._left = self._weight
        heavy = HEAVY * self._weight / max(1, len(todo))
        self._todo = deque(sorted(todo, key=lambda p: -p.weight if p.weight > heavy else 0.0))

    def take(self) -> Point | None:
        return self._todo.popleft() if self._todo and not self._stop.received else None

    def note(self, answer: Answer) -> None:
        assert self._kept is not None
        self._kept.add(answer)
        self.missing -= 1
        self._left -= answer.point.weight

    @property
    def done(self) -> float:
        return 1 - self._left / self._weight if self._weight else 1.0


@dataclass(frozen=True)
class Ran:
    """What was done just now."""

    simulated: int
    missing: int
    seconds: float
    workers: int
    stopped: str | None
    """By which signal."""

    def __str__(self) -> str:
        if not self.simulated:
            return "nothing was left to simulate"
        workers = f"{self.workers} worker{'s' * (self.workers > 1)}"
        return (
            f"{self.simulated:,} simulations in {pool.show_seconds(self.seconds)} on {workers}: "
            f"{self.simulated / self.seconds:.3g} a second"
        )


def fill(asked: Asked, parts: tuple[str, ...], out: Path, jobs: int) -> Ran:
    """Simulate all points of these parts that the store in `out` has not yet. On all ranks, which
    get the same answer."""
    return simulate_missing(points(asked, parts), out, jobs)


def simulate_missing(wanted: Sequence[Point], out: Path, jobs: int) -> Ran:
    """The same of any points, of which all differ."""
    transport = world()
    for point in {point.kinds[0].pattern: point for point in wanted}.values():
        buildable(point)
    with StopSignals(listen=True) as stop, ExitStack() as stack:
        mine = transport.leader_first(mark)
        began = time.perf_counter()
        kept = together(transport, lambda: (
            stack.enter_context(store.opened(out, mine)) if transport.rank == 0 else None
        ))  # fmt: skip
        todo = [point for point in wanted if kept and point.key not in kept.outcomes]
        agenda = Agenda(todo, kept, stop)
        try:
            pool.share(agenda, simulate, jobs, "simulations")
        finally:
            if agenda.missing:
                print(f"odonata: {agenda.missing:,} of {len(wanted):,} simulations are missing; "
                      f"what there is is kept in {out}, and the same command goes on from there",
                      file=sys.stderr)  # fmt: skip
        ran = Ran(len(todo) - agenda.missing, agenda.missing, time.perf_counter() - began,
                  min(pool.workers(jobs), max(1, len(todo))), stop.received)  # fmt: skip
    return transport.everyone(ran)[0]


def report(
    asked: Asked, part: str, out: Path, jobs: int, *, only: bool, pdf: bool, as_json: bool
) -> None:
    """What the command does; of several ranks one speaks. `only`: simulate nothing."""
    from odonata.studies.levelspread import claims as summary
    from odonata.studies.levelspread import figures

    parts = tuple(PARTS) if part == "all" else (part,)
    ran = None if only else fill(asked, parts, out, jobs)
    if world().rank > 0:
        return
    kept = store.read(out)
    claims, pictures = [], []
    if ran is None or not ran.stopped:  # else there may be little time left
        claims = summary.summarise(asked, kept.outcomes)
        pictures = figures.draw(asked, kept.outcomes, out / "figures", pdf)
    text = json.dumps(
        {
            "study": "level-spread",
            "asked": {"parts": parts, **asdict(asked)},
            "store": kept.head,
            "ran": ran and asdict(ran),
            "completed": all(point.key in kept.outcomes for point in points(asked, parts)),
            "claims": [claim.as_json() for claim in claims],
            "figures": [str(path.relative_to(out)) for path in pictures],
        },
        indent=1,
    )
    if claims:
        (out / "summary.json").write_text(text + "\n")
    if as_json:
        print(text)
        return
    from rich.console import Console

    console = Console(highlight=False)
    if claims:
        console.print(summary.table(claims))
    if pictures:
        console.print(f"{len(pictures)} figures in {out / 'figures'}")
    if ran is not None:
        console.print(str(ran))
