"""A compiled pass is made as soon as nothing else is to come at its instant; one in Python is an
event of its own, after all others of its instant. Both choose the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from clusters import simulated, through_a_view
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from naive import Job

from odonata.jobs.power import Power
from policies.scheduling import SCHEDULINGS, scheduling

SECOND = 10**6
ORDERS = ("fcfs", "easy", "conservative", "lcfs-pr")


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    for name in ORDERS:
        written = through_a_view(name, {})
        scheduling(f"python-{name}", about="a test's", source="ours")(written)
    yield
    for name in ORDERS:
        del SCHEDULINGS[f"python-{name}"]


@examples(25)
@given(
    rows=st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4), st.integers(1, 8)), min_size=1,
                  max_size=12),
    sleep_s=st.sampled_from([-1.0, 0.0, 1.0, 2.5]),
    order=st.sampled_from(ORDERS),
)  # fmt: skip
def test_a_compiled_pass_knows_all_that_happens_at_its_instant(
    rows: list[tuple[int, int, int]], sleep_s: float, order: str
) -> None:
    """Nodes fall asleep at such an instant, too, and jobs arrive and end together."""
    jobs = [Job(at, submit * SECOND, length * SECOND, nodes, length * SECOND)
            for at, (submit, length, nodes) in enumerate(sorted(rows))]  # fmt: skip
    supply = Power("idle-sleep", (("sleep_after_s", sleep_s),), interval_ps=4 * 10**12,
                   demand="constant", wake_ps=10**12)  # fmt: skip
    ours, theirs = (simulated(jobs, 8, name, power=supply) for name in (order, f"python-{order}"))
    assert ours[0] == theirs[0]
    for name in ("wakes", "energy_j", "machine_j"):
        assert np.array_equal(ours[1].outcome[name], theirs[1].outcome[name])


def test_of_many_that_start_at_one_instant_the_last_may_end_first() -> None:
    """They start some at a time, and the first to end is not among the first."""
    jobs = [Job(at, 0, (10 if at == 35 else 100) * SECOND, 1, 100 * SECOND) for at in range(40)]
    records, _ = simulated(jobs, 64, "fcfs")
    ends = [record.end for record in records]
    assert ends == [(10 if at == 35 else 100) * SECOND for at in range(40)]
