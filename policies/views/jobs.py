"""Jobs as policies see them: what one asks for, one that runs, one that has ended."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[np.int64]

NEVER = 1 << 62
"""Stands for a time that is not known: after all others."""
HAIR = 1e-6
"""A millionth of a tick, by which a product may be too large without becoming a tick more."""


def held_for(asked: float, pace: float) -> int:
    """Returns for how many ticks a job holds its nodes that may hold them for `asked` ticks at a
    pace of 1: the rule for waiting and running jobs alike, in Python and in kernels."""
    ticks = max(0.0, asked - HAIR) * pace
    return NEVER if not ticks < NEVER else np.int64(np.ceil(ticks))  # type: ignore[return-value]


class Request(NamedTuple):
    """What a job asks for. `submit` is when it joined the queue, `requested` the time after which
    it may be ended (None if it named none)."""

    number: int
    nodes: int
    submit: int
    requested: int | None = None
    user: str = ""
    project: str = ""
    application: str = ""
    name: str = ""
    user_number: int = 0
    """Numbers the users from 0 in order of their names' first appearance, to index memory by."""
    project_number: int = 0
    """Numbers the projects likewise."""
    alike: int = 0
    """Numbers the sets of jobs that are alike, of one project, user and application (or, where no
    application is known, of one size): to index memory by."""
    on: tuple[int, ...] = ()
    """The labels of the nodes on which it has to run, where its user named them; no allocation
    policy is then asked."""
    sensitive: bool | None = None
    """Whether congestion in the network slows it down; None where nobody knows."""


class Running(NamedTuple):
    """A job that has been started and has not ended. `labels` are its nodes, in allocation
    order."""

    request: Request
    start: int
    labels: Labels
    due: int | None = None
    """When it will have ended at its present pace, where a model keeps account of that; None: it
    does not, and what the job asked for is counted from its start."""

    @property
    def requested_end(self) -> int | None:
        """The time by which it will have ended, None if it named none."""
        asked = self.request.requested
        return None if asked is None else self.start + asked if self.due is None else self.due


class Ended(NamedTuple):
    """A job that has ended: what a policy learns from."""

    request: Request
    start: int
    end: int
    labels: Labels

    @property
    def wait(self) -> int:
        """Returns the time from its submission to its start."""
        return self.start - self.request.submit
