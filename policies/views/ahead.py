"""The hours to come as a scheduling policy sees them: price, carbon intensity and cap, as far ahead
as they are known."""

from __future__ import annotations

from typing import NamedTuple


class Course(NamedTuple):
    """A value over time: `levels[i]` holds from `begins[i]` until `begins[i + 1]`, in ticks. The
    first begins now, and the last one holds until `Ahead.until`, behind which nothing is known."""

    begins: tuple[int, ...]
    levels: tuple[float, ...]


class Ahead(NamedTuple):
    """What is known of the hours to come; None: the run does not say."""

    until: int
    """The time up to which it is known, in ticks."""
    price: Course | None
    """The price of a kWh."""
    carbon: Course | None
    """Grams of CO2 per kWh."""
    cap: Course | None
    """The watts that the machine may not exceed; infinity: there is no cap then."""
    idle_w: float
    """The watts that a node draws while it is idle."""
    most_w: float
    """The watts that no node exceeds: what is expected of a node of a job."""
