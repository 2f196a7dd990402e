"""A market for regulation as a bidding policy sees it, and what is bid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from policies.memory import Memory
from policies.views.choices import Choices
from policies.views.jobs import Request
from policies.views.power import Powered


class Market(NamedTuple):
    """What is known when a bid is due."""

    time: int
    """Now, in ticks: when the time begins that is bid for."""
    hour: int
    """The length of the time that is bid for, in ticks."""
    nodes: int
    """Counts the nodes of the machine."""
    idle_w: float
    """The watts that a node draws while it is idle."""
    queue: Sequence[Request]
    """The waiting jobs, in the order of the discipline."""
    running: Sequence[Powered]
    """The jobs that hold nodes, by number."""
    choices: Mapping[str, Choices]
    """As in `policies.power.PowerView`."""
    arrivals: Mapping[str, float]
    """Jobs per hour that are expected, by application."""
    energy_price: float
    """Per watt and hour, that is paid for the average."""
    reserve_price: float
    """Per watt and hour, that is earned by the reserve."""
    error_price: float
    """Per watt and hour, that is paid for every watt the machine is off the signal."""
    signal: Sequence[float] = ()
    """The signal of the hour that has passed, -1 to 1, one value for each time that it changed;
    empty before the first hour."""
    error: float = 0.0
    """How far the machine was off it on average, as a part of the reserve."""
    memory: Memory | None = None
    """The policy's own arrays; None where it declares none."""
