"""A policy of one's own that regulates, and does what cannot be done: the run ends with a sentence,
and nothing is written where it does not belong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from test_regulated_runs import GIVEN
from test_regulation_twin import ours
from test_tried_hours import model_of

from pdes.errors import Fault
from policies.parameters import parameter
from policies.power import POWERS, PowerPolicy, power
from policies.power.acts import halt, hold, take, wake
from policies.power.floor import HEAD
from policies.views import Moment


class Errs(PowerPolicy):
    """Does one wrong thing a minute after the beginning, and nothing before."""

    which: int = parameter(0, about="what it does")

    @staticmethod
    def regulate(now: Moment, floor: Any, given: Any) -> None:
        which = given[0]
        if which == 6:  # starts a job, suspends it, has it go on twice
            kind = 0
            while kind < floor.tallies.shape[0] and floor.tallies[kind, HEAD] < 0:
                kind += 1
            if kind < floor.tallies.shape[0]:
                row = floor.tallies[kind, HEAD]
                take(floor, kind, now.time)
                halt(floor, row, now.time)
                wake(floor, 0, now.time)
                wake(floor, 0, now.time)
        if now.time < 60_000_000:
            return
        if which == 0:
            take(floor, floor.tallies.shape[0], now.time)
        elif which == 1:
            while floor.tallies[0, HEAD] >= 0:
                take(floor, 0, now.time)
            take(floor, 0, now.time)
        elif which == 2:
            hold(floor, -1, 0.5)
        elif which == 3:
            wake(floor, 0, now.time)
        elif which == 4:
            halt(floor, 0, now.time)
        elif which == 5:
            halt(floor, 10**12, now.time)


@pytest.fixture(autouse=True)
def errs() -> Iterator[None]:
    power("errs", about="a test's", source="ours")(Errs)
    yield
    del POWERS["errs"]


@pytest.mark.parametrize(
    ("which", "told"),
    [(0, "it started a job that does not wait, or for which no nodes are idle"),
     (1, "it started a job that does not wait"), (2, "it gave a cap to a type that there is not"),
     (3, "it had a job go on that is not suspended"), (4, "it suspended a job that does not run"),
     (5, "it suspended a job that does not run"),
     (6, "it had a job go on that is not suspended")],
)  # fmt: skip
def test_what_cannot_be_done_ends_the_run(which: int, told: str) -> None:
    model = model_of("errs", nodes=9, given=(("which", which),), **GIVEN)
    with pytest.raises(Fault, match=f"^power errs.*: {told}"):
        ours(model)
