"""Wallace's dynamic learner: what it knows of the power of jobs, and the knapsack it fills."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pdes.errors import Fault, Refused
from pdes.jit import entry
from policies.memory import Memory, Sizes
from policies.parameters import parameter
from policies.policy import Arrays
from policies.power.base import Admitted, power
from policies.power.knapsack import best_fill
from policies.power.learning import (
    HIGHS,
    UNKNOWN,
    Learned,
    Settings,
    begin,
    estimates,
    finish,
    known,
    new,
    new_settings,
    take_samples,
)
from policies.power.simple import WALLACE, Sleeping
from policies.views import Ended, PowerView, Request

DEADLOCKS = ("run", "idle", "grow")


@power("dynamic-learner", about="learned profiles of power; the best fill of a window of jobs",
       source=WALLACE)  # fmt: skip
class DynamicLearner(Sleeping):
    """The policy starts those of the first jobs in the discipline's order that fill the most nodes
    within the power that the profiles of running jobs leave (`knapsack`). It learns these profiles
    from measurements (`learning`).

    Where no job of the window fits under the cap even alone, the one that came into it first breaks
    the cap as soon as its nodes are idle (run); or all wait for a higher cap (idle); or the window
    grows until one fits (grow), and only if none does, the first one runs.

    It counts the jobs that have started with a known profile, and with an unknown one; and of the
    sets of jobs alike that were seen, those whose profile is known, and all.
    """

    selects = True
    figures = ("known", "unknown", "sets_known", "sets_seen")

    window: int = parameter(20, unit="jobs", about="of the queue that are considered", least=1)
    deadlock: str = parameter(
        "run", about="what happens when no job fits even alone", words=DEADLOCKS
    )
    high: str = parameter("p95", about="of the samples, that is the profile", words=HIGHS)
    samples: int = parameter(
        20, unit="samples", about="that make a profile, and after which a run is tested", least=2
    )
    kept: int = parameter(100, unit="samples", about="the latest, that tests compare", least=2)
    significance: float = parameter(0.99, about="of a test that rejects", least=0.5, most=0.999999)
    relearn: bool = parameter(
        False, about="whether a job that nothing stands for gets a profile of its own run"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.samples > self.kept:
            raise Refused(f"samples = {self.samples}: at most kept, {self.kept}")
        self._settings(1.0)  # which refuses what cannot be

    @property
    def shown(self) -> int:
        return 0 if self.deadlock == "grow" else self.window

    def _settings(self, most_w: float) -> Settings:
        return _made(most_w, self.samples, self.high, self.significance, self.relearn, self.kept)

    # -- what it remembers

    def remembers(self, sizes: Sizes) -> Arrays:
        return {
            **new(sizes.jobs, sizes.alike, sizes.projects, sizes.running, self.kept),
            "alike_of": np.zeros(sizes.jobs, np.int64),
            "project_of": np.zeros(sizes.jobs, np.int64),
            "nodes_of": np.zeros(sizes.jobs, np.int64),
            "entered": np.full(sizes.jobs, -1, np.int64),
            "held": np.full(sizes.running, -1, np.int64),
            "count": np.zeros(1, np.int64),
            "starts": np.zeros(2, np.int64),
        }

    def learn(self, ended: Ended, memory: Memory) -> None:
        number = ended.request.number
        slot = memory.slot_of[number]
        if slot >= 0:
            memory.held[slot] = -1
        finish(_learned(memory), number)

    # -- what it is asked

    def observe(self, view: PowerView) -> tuple[float, ...]:
        memory, readings = view.memory, view.readings
        assert memory is not None
        assert readings is not None
        learned, settings = _learned(memory), self._settings(view.most_w)
        if len(readings.jobs):
            take_samples(learned, readings.jobs, readings.watts, memory.alike_of,
                         memory.project_of, settings)  # fmt: skip
        started, unknown = memory.starts.tolist()
        return float(started - unknown), float(unknown), *map(float, known(learned, settings))

    def select(self, view: PowerView) -> Admitted:
        queue, memory = view.queue, view.memory
        assert memory is not None
        most_w = view.most_w - view.idle_w
        learned, settings = _learned(memory), self._settings(view.most_w)
        nodes = np.array([job.nodes for job in queue], np.int64)
        alike = np.array([job.alike for job in queue], np.int64)
        project = np.array([job.project_number for job in queue], np.int64)
        watts, source = np.zeros(len(queue)), np.zeros(len(queue), np.int64)
        estimates(learned, np.arange(len(queue)), alike, project, settings, watts, source)
        idle_w = (view.free + view.busy) * view.idle_w
        budget_w = view.budget.cap_w - idle_w
        more_w = np.multiply(nodes, np.minimum(watts - view.idle_w, most_w), dtype=np.float64)
        count = self._window(queue, more_w, budget_w, memory)
        if self.deadlock != "idle" and not (more_w[:count] <= budget_w).any():
            return self._break(queue[:count], view, learned, settings)
        left_w = budget_w - planned_w(learned, memory.held, memory.nodes_of, view.idle_w)
        chosen = best_fill(nodes[:count], more_w[:count], view.free, left_w)
        for position in chosen:
            self._begin(queue[position], learned, memory, settings)
        return Admitted([queue[position].number for position in chosen])

    def _window(self, queue: Any, more_w: Any, budget_w: float, memory: Memory) -> int:
        """Returns the size of the window, and notes who has come into it."""
        count = min(self.window, len(queue))
        if self.deadlock == "grow":
            while count < len(queue) and not (more_w[:count] <= budget_w).any():
                count += 1
        for job in queue[:count]:
            if memory.entered[job.number] < 0:
                memory.entered[job.number] = memory.count[0]
                memory.count[0] += 1
        return count

    def _break(
        self, window: Any, view: PowerView, learned: Learned, settings: Settings
    ) -> Admitted:
        """Start the job that came into the window first, if its nodes are idle: they are held for
        it, as nobody else may start."""
        memory = view.memory
        assert memory is not None
        first: Request = min(window, key=lambda job: int(memory.entered[job.number]))
        if first.nodes > view.free:
            return Admitted(())
        self._begin(first, learned, memory, settings)
        return Admitted([first.number], [first.number])

    def _begin(self, job: Request, learned: Learned, memory: Memory, settings: Settings) -> None:
        number = job.number
        memory.alike_of[number], memory.project_of[number] = job.alike, job.project_number
        memory.nodes_of[number] = job.nodes
        slot = begin(learned, number, job.alike, job.project_number, settings)
        if slot < 0:
            raise Fault(f"power {self.name}: more jobs run than {len(memory.held)}, the most that "
                        "can")  # fmt: skip
        memory.held[slot] = number
        memory.starts[0] += 1
        memory.starts[1] += memory.source[number] == UNKNOWN


def _learned(memory: Memory) -> Learned:
    arrays = vars(memory)
    return Learned(*[arrays[name] for name in Learned._fields])


@lru_cache
def _made(
    most_w: float, samples: int, high: str, significance: float, relearn: bool, kept: int
) -> Settings:
    return new_settings(
        most_w, least=samples, high=high, window=samples, alpha=1.0 - significance,
        relearn=relearn, kept=kept,
    )  # fmt: skip


@entry
def planned_w(learned: Learned, held: Any, nodes_of: Any, idle_w: float) -> float:
    """Returns what running jobs are expected to draw beyond the idle power of their nodes."""
    total = 0.0
    for slot in range(held.shape[0]):
        job = held[slot]
        if job >= 0:
            total += nodes_of[job] * (learned.profile_w[job] - idle_w)
    return total
