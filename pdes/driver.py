"""`run` takes a model from its first event to its end, on all the ranks there are.

The order of things: deal the agents to ranks, build this rank's state and first events (or read
them from a checkpoint), then go from cut to cut under a protocol. What happens only now and then (a
checkpoint, a stop) happens at cuts, where all ranks agree on everything.
"""

from __future__ import annotations

import resource
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pdes import advice, jit
from pdes.clock import LATEST, TICKS
from pdes.engine import SECONDS, Engine, Progress
from pdes.errors import Fault, Refused, os_words, require
from pdes.log import Appended
from pdes.metrics import Metrics, following
from pdes.model import Model
from pdes.protocol import PROTOCOLS
from pdes.shown import say
from pdes.signals import StopSignals
from pdes.stream import Recording
from pdes.transport import Transport, together, world

FIRST_LOOK = 10**7
"""The first interval at which `Ends.goal` and `Audits.stuck` are looked at, in ticks: 10 us where
one is a picosecond, 10 s where it is a microsecond."""

LOST_SECONDS = 2.0
"""Seconds that its watchman may take to name a rank that MPI cannot reach, which has probably died.
"""


@dataclass(frozen=True)
class Result:
    """The result of a run. Sums and means are over all ranks; every rank gets the same."""

    model: str
    parameters: Mapping[str, int | float | str]
    ranks: int
    protocol: str
    completed: bool
    """False where a signal stopped it; then `checkpoint` says where it can go on."""
    tick: str
    """The model's unit of time."""
    resumed: int | None
    """The time of the checkpoint from which it went on, in ticks: wall_seconds and speed are those
    of the rest."""
    time: int
    """The time that it reached, in ticks."""
    events: int
    digest: str
    """A hash over the final state of every agent, in agent order."""
    wall_seconds: float
    events_per_second: float
    compile_seconds: float
    """Seconds to compile the kernels, or to load them where they had been compiled before."""
    build_seconds: float
    seconds: Mapping[str, float]
    """Mean over ranks of the time spent on each of SECONDS."""
    kinds: Mapping[str, Mapping[str, float]]
    """For each kind of event: how many, and which fraction of the handlers' time (as sampled)."""
    rounds: int
    """How often rank 0 met for an agreement with the others."""
    peak_pending: int
    """The largest number of events that one rank had at once, those on their way to others
    included."""
    max_rss_mb: float
    """The memory of the largest rank, in MiB."""
    checkpoint: str | None
    mpi: str
    """The MPI library through which the ranks communicated."""
    outcome: Mapping[str, Any]
    """The model's `outcome`, over all agents."""

    @property
    def time_ps(self) -> int:
        return self.time * TICKS[self.tick]

    @property
    def resumed_ps(self) -> int | None:
        return None if self.resumed is None else self.resumed * TICKS[self.tick]

    def in_ps(self) -> dict[str, Any]:
        """Returns the fields by name, with `time_ps` and `resumed_ps` for those in ticks."""
        times = {"tick", "time", "resumed"}
        fields = {name: value for name, value in vars(self).items() if name not in times}
        return {**fields, "resumed_ps": self.resumed_ps, "time_ps": self.time_ps}


def run(
    model: Model,
    end: int | None,
    *,
    protocol: str = "window",
    checkpoint_dir: Path | None = None,
    checkpoint_every: int | None = None,
    resume: Path | None = None,
    debug: bool = False,
    progress: Progress | None = None,
    record: Recording | None = None,
    log: Callable[[int, int, Appended], None] | None = None,
    show_compiling: bool = True,
    capacity: int = 16,
    transport: Transport | None = None,
    interrupted: str = "",
) -> Result:
    """Handle every event before `end` (in ticks of the model), on all the ranks there are. `end`
    None: until the model has come to its goal (`Ends.goal`), which is looked for now and then, at
    times that are fixed.

    With a `checkpoint_dir`, SIGTERM and SIGUSR1 stop the run at a checkpoint there, and
    `checkpoint_every` (simulated ticks) makes one at every multiple of it. `resume` goes on
    from the newest one in a directory. `record` streams metrics to disk (`pdes.stream`); to resume
    them the same must be asked for; where nothing is recorded, `log` takes the rows of the model's
    logs on this rank: with the time and the agent of the decision, or blocks that have their own
    times. `debug` wants one rank and the JIT off. `interrupted` is what Ctrl-C leaves behind, in
    words that are shown where it ends several ranks; one rank raises KeyboardInterrupt.
    """
    transport = transport or world()
    every, ranks, tick = checkpoint_every, transport.size, model.tick
    require(model.name.isidentifier(), f"a model named {model.name!r}: must be an identifier")
    require(tick in TICKS, f"{model.name}: tick = {tick!r}: must be one of {', '.join(TICKS)}")
    require(protocol in PROTOCOLS, f"protocol = {protocol}: must be one of {', '.join(PROTOCOLS)}")
    require(end is None or 0 <= end <= LATEST, f"end = {end} {tick}: must be 0 .. {LATEST}")
    require(every is None or every > 0, f"checkpoint every {every} {tick}: must be more than 0")
    require(every is None or checkpoint_dir is not None, "checkpoint: into which directory?")
    require(
        ranks == 1 or not debug,
        f"debug runs on one rank, not on {ranks} (there, set ODONATA_JIT=0)",
    )
    require(not (debug and jit.ENABLED), "debug: set ODONATA_JIT=0 before importing pdes")
    # Compiled integers wrap around; numpy's scalars do so too, but would say so every time.
    with nullcontext() if jit.ENABLED else np.errstate(over="ignore"):
        try:
            listen, several = checkpoint_dir is not None, ranks > 1
            with StopSignals(listen, later=several) as signals, transport.watching():
                began = time.perf_counter()
                engine = together(
                    transport, lambda: Engine(model, transport, signals, capacity, debug, progress)
                )
                metrics = Metrics(engine, record, end, protocol)
                if log is not None and record is None:
                    engine.log_to(log)
                built = time.perf_counter()
                together(transport, lambda: engine.compile(show_compiling, metrics.recorder))
                compiled = time.perf_counter()
                at = together(
                    transport, lambda: engine.resume(resume) if resume else engine.start()
                )
                require(
                    end is None or at <= end,
                    f"{resume}: was made at {at} {tick}, after the end at {end} {tick}",
                )
                metrics.begin(at if resume else None)
                preparing = {
                    "compile": compiled - built,
                    "build": built - began + time.perf_counter() - compiled,
                }
                signals.begin()
                with metrics:
                    return _drive(
                        engine, end, protocol, checkpoint_dir, every, preparing,
                        at if resume else None, metrics,
                    )  # fmt: skip
        except Refused:
            raise
        except KeyboardInterrupt:
            if transport.size == 1:
                raise
            transport.fail("interrupted" + f"; {interrupted}" * bool(interrupted), status=130)
        except transport.Lost as error:
            transport.fail(f"MPI failed: {error}", patience=LOST_SECONDS)
        except Exception as error:
            if transport.size == 1:
                raise
            transport.fail(explain(error))


def explain(error: Exception) -> str:
    """A line for what can be expected to go wrong; the whole story for what is a mistake of ours
    or of a model's."""
    if isinstance(error, OSError):
        return os_words(error)
    if isinstance(error, Fault | MemoryError):
        return str(error) or type(error).__name__
    return "".join(traceback.format_exception(error)).rstrip()


def _drive(
    engine: Engine,
    end: int | None,
    protocol: str,
    directory: Path | None,
    every: int | None,
    preparing: Mapping[str, float],
    resumed: int | None,
    metrics: Metrics,
) -> Result:
    transport = engine.transport
    go = PROTOCOLS[protocol]
    saved: Path | None = None
    saved_at: int | None = None
    transport.everyone(None)
    began, before = engine.begin(), engine.events
    while True:
        last = _look(engine.reached, engine.ends.earliest()) if end is None else end
        watch = _look(engine.reached) if engine.audits.watches else LATEST
        cut = min(last, metrics.next(), following(engine.reached, every), watch)
        arrival = go(engine, cut)
        engine.reached = arrival.time
        if (pending := engine.next_time()) < arrival.time:
            raise Fault(f"{engine.model.name}: an event at {pending} {engine.model.tick} was not "
                        f"handled before {arrival.time}: please report this")  # fmt: skip
        completed = arrival.time >= last and (last in (end, LATEST) or not engine.wants_more())
        stuck = not completed and arrival.time == watch and engine.stuck()
        if completed:
            engine.ends.conclude(engine.state, arrival.time)
        metrics.sample(completed or stuck)
        if completed or stuck:
            break
        if arrival.time != saved_at and (arrival.stopped or (every and arrival.time % every == 0)):
            assert directory is not None
            metrics.sync()
            saved, saved_at = engine.save(directory), arrival.time
            engine.lap("checkpoint")
        if arrival.stopped:
            break
    finish = engine.over() if completed and end is None else engine.reached
    engine.collect()
    engine.lap("exchange")
    digest = engine.digest()
    began += engine.skip()
    metrics.finish(completed, stuck, digest)
    wall = engine.lap("exchange") - began
    engine.look()  # what came last is in no queue yet
    engine.check()
    mine = (engine.events, engine.events - before, wall, engine.peak, _rss_mb(), engine.spent(),
            engine.kinds())  # fmt: skip
    ranks = transport.everyone(mine)
    events, handled, walls, peaks, sizes, seconds, kinds = zip(*ranks, strict=True)
    means = {name: sum(s[name] for s in seconds) / len(ranks) for name in SECONDS}
    _advise(engine, sum(handled), means)
    return Result(
        model=engine.model.name,
        parameters=engine.model.parameters(),
        ranks=transport.size,
        protocol=protocol,
        completed=completed,
        tick=engine.model.tick,
        resumed=resumed,
        time=finish,
        events=sum(events),
        digest=digest,
        wall_seconds=max(walls),
        events_per_second=sum(handled) / max(walls),
        compile_seconds=preparing["compile"],
        build_seconds=preparing["build"],
        seconds=means,
        kinds=_profile(kinds),
        rounds=engine.rounds,
        peak_pending=max(peaks),
        max_rss_mb=max(sizes),
        checkpoint=str(saved) if saved else None,
        mpi=transport.library,
        outcome=engine.outcome(),
    )


def _advise(engine: Engine, events: int, seconds: Mapping[str, float]) -> None:
    """Print on stderr, once, that ranks were of no use, where they were not."""
    size, model = engine.transport.size, engine.model
    if engine.transport.rank == 0 and size > 1:
        least = model.lookahead(engine.partition)
        words = advice.on_ranks(size, events, engine.rounds, seconds, least, model.tick)
        if words:
            say(f"warning: {words}")


def _look(time: int, earliest: int = 0) -> int:
    """Returns the next time after this one, in ticks, at which it is looked whether anything is
    left: each time half as far again, so that little is simulated in vain; and not before the
    earliest time at which that can be."""
    look = FIRST_LOOK
    while look <= time or look < earliest:
        look += look // 2
    return min(look, LATEST)


def _profile(ranks: Sequence[Mapping[str, tuple[int, float]]]) -> dict[str, dict[str, float]]:
    events = {kind: sum(rank[kind][0] for rank in ranks) for kind in ranks[0]}
    ticks = {kind: sum(n * t for n, t in (rank[kind] for rank in ranks)) for kind in ranks[0]}
    total = sum(ticks.values()) or 1.0
    return {
        kind: {"events": events[kind], "share": ticks[kind] / total}
        for kind in events
        if events[kind]
    }


def _rss_mb() -> float:
    """Returns the largest memory that this process ever had, in MiB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
