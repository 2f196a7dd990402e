"""What a key declares is what is enforced: from a file, and where Python makes the object."""

from __future__ import annotations

from typing import Any

import pytest
from files import attempt, written
from hypothesis import given
from hypothesis import strategies as st

from odonata.experiment.experiment import KEYS, needs_jobs
from odonata.experiment.keys import WRITERS, Key
from topology.settings import REAL, SEVERAL, WHOLE, shown

Limit = tuple[Key, str, float]


def limits_of(key: Key) -> list[Limit]:
    """The limits that a key has, each with its word."""
    how = key.how
    limits = {"least": how.lowest, "above": how.above, "most": how.most, "below": how.below}
    return [(key, word, limit) for word, limit in limits.items() if limit is not None]


LIMITS = [one for key in KEYS if key.kind in (*WHOLE, *REAL) for one in limits_of(key)]


def near(one: Limit, inside: bool, far: int = 1) -> Any:
    """A value on one side of a limit, so many of the least steps away; or the limit itself."""
    key, word, limit = one
    up = (word in ("least", "above")) == inside
    step = 1 if key.kind in WHOLE else max(abs(limit), 1.0) * 1e-9
    closed = inside == (word in ("least", "most"))
    value = limit + (far - closed) * (step if up else -step)
    return int(value) if key.kind in WHOLE else float(value)


@pytest.mark.parametrize(
    ("limit", "text"),
    [(2**63 - 1, "2**63 - 1"), (2**63, "2**63"), (-(2**40), "-2**40"), (2**20 - 2, "1,048,574"),
     (1000, "1,000"), (0.5, "0.5"), (0, "0")],
)  # fmt: skip
def test_a_limit_is_shown_as_it_is(limit: float, text: str) -> None:
    assert shown(limit) == text


@given(one=st.sampled_from(LIMITS), far=st.integers(1, 3))
def test_a_value_is_accepted_up_to_a_limit_and_refused_beyond_it(one: Limit, far: int) -> None:
    how = one[0].how
    inside, outside = ([value] if how.kind in SEVERAL else value
                       for value in (near(one, True, far), near(one, False, far)))  # fmt: skip
    assert how.wrong(inside) in ("", how.accepted if how.rule else "")
    assert how.limits in how.wrong(outside)


@pytest.mark.parametrize("one", LIMITS, ids=lambda one: f"{one[0].path}-{one[1]}")
def test_a_file_with_a_value_beyond_a_limit_is_refused_with_key_value_and_cure(one: Limit) -> None:
    key, value = one[0], near(one, False)
    if key.kind in WRITERS:
        if value < 0:
            return  # a file cannot even say it: tests of units
        text = f'"{WRITERS[key.kind](value)}"'
    else:
        text = f"[{value}]" if key.kind in SEVERAL else str(value)
    if key.section == "jobs":
        file = written({"jobs.nodes": "2", key.path: text}).replace("[jobs]", "[[jobs]]")
    else:
        jobs = "jobs = [{nodes = 2}]\n" * (needs_jobs(key) or key.section == "power")
        file = ('fidelity = "job"\n' * (key.section in ("trace", "market")) or jobs) + written(
            {key.path: text}
        )
    if key.path == "jobs.nodes":
        file = f"[[jobs]]\nnodes = {text}"
    path = key.path.replace("jobs.", "jobs[0].")
    (line,) = [line for line in attempt(file)[1] if f": {path} = " in line]
    shown, rule = line.split(f": {path} = ")[1].split(": ", 1)
    assert text in shown or shown == "a list"
    assert rule
