"""QoSCap and its bids, written from docs/bidding.md alone, as an extension of the second simulator
(`regulation_naive`): to be read and not to be fast.

The caps of types are ratios by name: 1 is none.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from regulation_naive import HAIR_W, SECOND, Live, Machine, Setting, Type

Q_HAIR = 1e-9


class QosCap(NamedTuple):
    """The options of the policy."""

    early: float = 0.9
    turns: bool = True


class QosCapMachine(Machine):
    """A machine under QoSCap."""

    def __init__(self, setting: Setting, options: QosCap) -> None:
        super().__init__(setting)
        self.options = options
        self.held = {kind.name: 1.0 for kind in self.types}

    def cap_of(self, kind: Type) -> float | None:
        ratio = self.held[kind.name]
        return None if ratio >= 1.0 else kind.low_w + ratio * (kind.most_w - kind.low_w)

    def follow(self) -> None:
        """Does what is done at an instant, once the target is known."""
        if math.isfinite(self.target):
            self.start_the_late()
        late = [self.lateness(j) for j in range(len(self.types))]
        order = self.in_turn(late)
        full = self.power(self.most_w)
        if self.within(full, "full"):
            self.held = {kind.name: 1.0 for kind in self.types}
            for j in order:
                self.start_some(j)
            if self.setting.standby is not None:
                self.start_standby(self.setting.standby)
            return
        if not self.options.turns:
            self.hold_evenly(late)
            return
        drawn = self.power([self.watts(j, self.held[k.name]) for j, k in enumerate(self.types)])
        self.note(drawn, self.target + HAIR_W, "drawn")
        if drawn > self.target + HAIR_W:
            self.lower(late, drawn)
        else:
            self.lift(order, drawn)

    def watts(self, j: int, ratio: float) -> float:
        return self.low_w[j] + ratio * (self.most_w[j] - self.low_w[j])

    def nodes(self, j: int) -> int:
        return sum(job.nodes for job in self.running if job.kind == j)

    def lateness(self, j: int) -> float:
        """Returns how late the jobs of a type are, on average, as a part of the threshold."""
        if j == self.setting.standby:
            return -1.0
        if self.types[j].threshold == math.inf:
            return 0.0
        every = [self.urgency(job) for job in self.waiting + self.running if job.kind == j]
        return sum(every) / len(every) if every else 0.0

    def in_turn(self, late: list[float]) -> list[int]:
        """Returns the types, the latest first; of those that are as late the first."""
        left, order = [*range(len(late))], []
        while left:
            found, most = -1, -math.inf
            for j in left:
                if found >= 0:
                    self.note(late[j], most, "turn") if late[j] != most else None
                if late[j] > most + Q_HAIR:
                    found, most = j, late[j]
            order.append(found)
            left.remove(found)
        return order

    def first(self, j: int) -> Live | None:
        return next((job for job in self.waiting if job.kind == j), None)

    def start_the_late(self) -> None:
        while True:
            found, most = None, 0.0
            for j, kind in enumerate(self.types):
                job = self.first(j)
                if job is None or kind.threshold == math.inf or not self.fits(job):
                    continue
                waited = (self.now - job.submit) / max(job.run, SECOND) / kind.threshold
                self.note(waited, self.options.early - Q_HAIR, "early")
                if waited < self.options.early - Q_HAIR:
                    continue
                self.note(waited, most + Q_HAIR, "late")
                if found is None or waited > most + Q_HAIR:
                    found, most = job, waited
            if found is None:
                return
            self.start(found)

    def start_some(self, j: int) -> None:
        while (job := self.first(j)) and self.fits(job) and self.room(job, "start"):
            self.start(job)

    def in_time(self, late: list[float]) -> list[int]:
        for it in late:
            self.note(it, 1.0 - Q_HAIR, "in time")
        return [j for j, it in enumerate(late) if it < 1.0 - Q_HAIR]

    def lower(self, late: list[float], drawn: float) -> None:
        some = self.in_time(late)
        names = [kind.name for kind in self.types]
        room = sum(self.nodes(j) * (self.watts(j, self.held[names[j]]) - self.low_w[j])
                   for j in some)  # fmt: skip
        part = max(0.0, 1.0 - (drawn - self.target) / room) if room > 0 else 0.0
        for j in some:
            self.held[names[j]] *= part

    def lift(self, order: list[int], drawn: float) -> None:
        gap = self.target - drawn
        for j in order:
            name = self.types[j].name
            room = self.nodes(j) * (self.most_w[j] - self.watts(j, self.held[name]))
            self.note(room, gap + HAIR_W, "lift")
            if room <= gap + HAIR_W:
                self.held[name], gap = 1.0, gap - room
            else:
                self.held[name] += (1.0 - self.held[name]) * max(0.0, gap) / room
                gap = 0.0

    def hold_evenly(self, late: list[float]) -> None:
        some = self.in_time(late)
        full = self.power(self.most_w)
        low = full - sum(self.nodes(j) * (self.most_w[j] - self.low_w[j]) for j in some)
        ratio = (self.target - low) / (full - low) if full > low else 0.0
        for j, kind in enumerate(self.types):
            self.held[kind.name] = min(1.0, max(0.0, ratio)) if j in some else 1.0
