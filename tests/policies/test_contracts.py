"""The worked examples in the docstrings of contracts do what is said below them."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from policies import allocation, bidding, parameters, power, scheduling
from policies.allocation import ALLOCATIONS, allocate
from policies.bidding import BIDDINGS, Bid, BiddingPolicy, Market
from policies.power import POWERS, Configuration, Powered, PowerPolicy, PowerView, choices_of
from policies.power.base import caps, configuration
from policies.register import REGISTERS
from policies.scheduling import SCHEDULINGS, SchedulingPolicy, select
from policies.views import Budget, Request, Running, Sight, View
from topology import Dragonfly

MACHINE = Dragonfly(6, 1, 2, 3, links_per_pair=1)


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    before = {kind: dict(each) for kind, each in REGISTERS.items()}
    yield
    for kind, each in REGISTERS.items():
        each.clear()
        each.update(before[kind])


def example(contract: type) -> None:
    """Run the indented part of a docstring."""
    text = inspect.getdoc(contract) or ""
    block = text.split("::\n\n", 1)[1]
    code = textwrap.dedent(block[: _end(block)])
    names: dict[str, Any] = {"__name__": __name__, "np": np}
    for module in (allocation, bidding, parameters, power, scheduling):
        names |= vars(module)
    exec(code, names)


def _end(block: str) -> int:
    """Where the first line begins that is not indented."""
    at = 0
    for line in block.splitlines(keepends=True):
        if line.strip() and not line.startswith("    "):
            break
        at += len(line)
    return at


def with_idle(*counts: int) -> Sight:
    """Groups with so many idle nodes each."""
    return Sight(MACHINE, np.concatenate([np.arange(6) < n for n in counts]))


def test_the_allocation_puts_jobs_where_it_says() -> None:
    example(allocation.AllocationPolicy)
    sight, rng = with_idle(5, 2, 3), np.random.default_rng(1)

    def groups(nodes: int) -> list[int]:
        chosen = allocate(ALLOCATIONS.make("snug"), sight, Request(0, nodes, 0), rng)
        return (chosen // 6).tolist()

    assert groups(2) == [1, 1]
    assert groups(3) == [2, 2, 2]
    assert groups(6) == [0, 0, 0, 0, 0, 1]


def test_the_scheduling_policy_passes_over_whom_it_says() -> None:
    example(SchedulingPolicy)
    queue = [Request(i, nodes, 0) for i, nodes in enumerate((16, 4, 8))]
    view = View(0, queue, (), 18, with_idle(6, 6, 6))
    assert select(SCHEDULINGS.make("reserve"), view) == [1, 2]


def test_the_power_policy_caps_as_it_says_and_has_a_job_wait() -> None:
    example(PowerPolicy)
    policy = POWERS.make("even")
    run = Running(Request(7, 10, 0), 0, np.arange(10))
    jobs = [Powered(run, Configuration(10, 16, 100.0), 950.0)]
    view = PowerView(0, (), jobs, 2, 100.0, Budget(1000.0, 850.0), least_w=60.0, most_w=100.0,
                     busy=10)  # fmt: skip
    assert caps(policy, view).cap_w == {7: 80.0}
    job = Request(8, 2, 0)
    assert configuration(policy, view, job) == Configuration(2, cap_w=100.0)
    assert configuration(policy, view, job._replace(nodes=3)) is None


def test_the_bidding_policy_offers_what_it_says() -> None:
    example(BiddingPolicy)
    choices = choices_of([4, 4], [16, 16], [75.0, 125.0], [600.0, 1000.0], [1, 1])
    queue = [Request(0, 4, 0, application="md")]
    market = Market(0, 3600, 10, 100.0, queue, (), {"md": choices}, {}, 1.0, 1.0, 1.0)
    assert BIDDINGS.make("half").bid(market) == Bid(1400.0, 200.0)


@pytest.mark.parametrize("register", [power.power, bidding.bidding])
def test_power_and_bidding_policies_are_classes(register: Any) -> None:
    with pytest.raises(TypeError, match=r"a (power|bidding) policy is a class"):
        register("mine", about="", source="")(lambda view: None)
