"""The recording of a run: when samples are taken, and at which cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pdes import turnover
from pdes.clock import LATEST
from pdes.engine import Engine
from pdes.errors import Refused
from pdes.past import Former, Past, former, past_of
from pdes.stream import COMPLETE, STOPPED, STUCK, Last, Recorder, Recording
from pdes.transport import together


class Metrics:
    """The recording of a run, if there is any. On exit the file is closed in any case."""

    def __init__(
        self, engine: Engine, record: Recording | None, end: int | None, protocol: str
    ) -> None:
        self._engine, self._record = engine, record
        self.recorder: Recorder | None = None
        self._going = False
        self._sampled = 0
        """The time of the last sample, or 0."""
        if record:
            ends = f"end_{engine.model.tick}"
            about = {ends: LATEST if end is None else end, "protocol": protocol}
            self.recorder = together(engine.transport, lambda: _recorder(engine, record, about))
            if self.recorder.book:
                engine.log_to(self.recorder.book.append, self.recorder)

    def begin(self, resumed: int | None) -> None:
        """Begin, from the start or from a checkpoint at that time."""
        if self.recorder is None:
            return
        assert self._record is not None
        recorder, engine, directory = self.recorder, self._engine, self._record.directory
        first_rank = engine.transport.rank == 0
        if resumed is None:
            if first_rank:
                turnover.forget(directory)
            recorder.start(engine.state)
            self._going = True
            return
        past = self._past(recorder, directory)
        try:
            last = together(engine.transport, lambda: recorder.resume(engine.state, resumed, past))
            self._check(engine.transport.everyone(last), resumed)
        except Refused:
            if past.redealt:
                recorder.close()
            raise
        if past.redealt:
            if first_rank:
                turnover.replace_all(directory, engine.transport.size)
            engine.transport.everyone(None)
            recorder.take_place()

    def _past(self, recorder: Recorder, directory: Path) -> Past:
        """Returns what was recorded before of all that this rank records."""
        transport, rank = self._engine.transport, self._engine.transport.rank

        def found() -> list[Former]:
            if rank > 0:
                return []
            turnover.finish(directory)
            return former(directory, recorder.series)

        files = transport.everyone(together(transport, found))[0]
        widths = transport.everyone(recorder.widths(self._engine.state))
        starts = self._engine.partition.unit_starts.tolist()
        return together(transport, lambda: past_of(recorder.path, files, widths, starts, rank))

    def _check(self, lasts: Sequence[Last], resumed: int) -> None:
        """Refuse metrics that end before the checkpoint."""
        assert self._record is not None
        times = {last.time for last in lasts}
        self._sampled = max(times)
        self._going = sum(last.left or 0 for last in lasts) != 0 or times == {0}
        reach = min(times) + self._record.interval
        if len(times) > 1 or (self._going and reach <= resumed):
            tick = self._engine.model.tick
            raise Refused(f"{self._record.directory}: its metrics end at {min(times)} {tick}, "
                          f"before the checkpoint at {resumed} {tick}")  # fmt: skip

    def next(self) -> int:
        if self._record is None or not self._going:
            return LATEST
        return following(self._engine.reached, self._record.interval)

    def sample(self, last: bool) -> None:
        """Sample, where a sample is due at this cut. A run that is asked to stop before it has
        handled anything more comes to the cut where it is, again: that was sampled."""
        if self.recorder and self._record and self._going:
            time = self._engine.reached
            if time > self._sampled and (time % self._record.interval == 0 or last):
                self._sampled = time
                self._going = self._engine.record(self.recorder)

    def sync(self) -> None:
        if self.recorder:
            self._engine.collect()
            self.recorder.sync(self._engine.reached)

    def finish(self, completed: bool, stuck: bool, digest: str) -> None:
        """Finish the recording, while it is still timed: what was sampled is on its way to the
        disk."""
        if self.recorder:
            state = COMPLETE if completed else STUCK if stuck else STOPPED
            self.recorder.finish(state, self._engine.reached, self._engine.state, digest)
            self._engine.lap("metrics")

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        if self.recorder:
            self.recorder.close()


def _recorder(engine: Engine, recording: Recording, about: Mapping[str, Any]) -> Recorder:
    """Returns what writes this rank's file, not yet begun."""
    model, partition, rank = engine.model, engine.partition, engine.transport.rank
    tables, logs = engine.streams.tables(recording.interval), engine.streams.logs()
    both = ("streams", tables, recording.tables), ("logs", logs, recording.logs)
    for does, has, asked in both:
        for name in asked:
            if name not in has:
                raise Refused(f"{model.name} {does} {', '.join(has) or 'nothing'}, not {name}")
    first, last = (int(partition.unit_starts[rank + i]) for i in (0, 1))
    about = {**about, "model": model.name, "ranks": engine.transport.size,
             "first_unit": first, "last_unit": last}  # fmt: skip
    return Recorder(recording, tables, rank, about, model.tick, logs)


def following(time: int, every: int | None) -> int:
    """Returns the next multiple of `every` after a time."""
    return LATEST if every is None else (time // every + 1) * every
