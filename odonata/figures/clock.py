"""The axis of time of the figures of a schedule and of its power."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.ticker import FuncFormatter

from odonata.figures.style import Floats, dress, thousands
from odonata.jobs.schedule import Schedule
from odonata.results.schedule_series import first_us, until_us
from odonata.traces.clock import WallClock
from odonata.traces.trace import SECOND, Whole

MOST_STEPS = 1200
"""The largest number of steps of a curve over time; more changes than that are merged, exactly."""
UNITS = ((86400 * SECOND, "days"), (3600 * SECOND, "hours"), (60 * SECOND, "minutes"),
         (SECOND, "s"), (1000, "ms"), (1, "µs"))  # fmt: skip


@dataclass(frozen=True)
class Clock:
    """The axis of time, from the first submission on: in a unit that suits its length or, where
    there is a wall clock, in dates, which are days since 1970 to the axis."""

    origin_us: int
    end_us: int
    wall: WallClock | None = None

    @property
    def unit(self) -> tuple[int, str]:
        long = self.end_us - self.origin_us
        return next((one for one in UNITS if long > 3 * one[0]), UNITS[-1])

    def edges_us(self, changes: int) -> Whole | None:
        """Returns the edges of steps; None where there are so few changes that all are shown."""
        long = max(1, self.end_us - self.origin_us)
        if changes <= MOST_STEPS:
            return None
        return np.unique(np.linspace(0, long, MOST_STEPS + 1).astype(np.int64)) + self.origin_us

    def at(self, us: Any) -> Floats:
        value: Floats
        if self.wall is None:
            value = (np.asarray(us) - self.origin_us) / self.unit[0]
        else:
            value = (np.asarray(us) + self.wall.begin_us) / UNITS[0][0]
        return value

    def dress(self, axes: Axes, label: bool = True) -> None:
        begin, end = (float(self.at(us)) for us in (self.origin_us, self.end_us))
        axes.set_xlim(begin, max(end, begin + 1e-9))
        if self.wall is None:
            axes.xaxis.set_major_formatter(FuncFormatter(thousands))
        else:
            locator: Any = AutoDateLocator(tz=self.wall.tz, minticks=4, maxticks=9)  # type: ignore[no-untyped-call]
            formatter: Any = ConciseDateFormatter(locator, tz=self.wall.tz)  # type: ignore[no-untyped-call]
            axes.xaxis.set_major_locator(locator)
            axes.xaxis.set_major_formatter(formatter)
        if label:
            since = f"time since the first submission ({self.unit[1]})"
            axes.set_xlabel(since if self.wall is None else f"date ({self.wall.name})")
        dress(axes)


def clock_of(schedule: Schedule) -> Clock:
    origin = first_us(schedule)
    return Clock(origin, max(until_us(schedule), origin + 1), schedule.trace.clock)
