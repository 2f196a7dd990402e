"""Allocations that go by what the network reported do what they say, to the node."""

from __future__ import annotations

import doctest
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from pdes.errors import Refused
from policies.allocation import ALLOCATIONS, allocate, allocation, base, network_data, rng_for
from policies.views import Counters, Request, Sight, sight
from topology import Dragonfly

ALL = tuple(name for name, entry in ALLOCATIONS.items() if network_data.__name__ in entry.home)
BY_TRAFFIC = ("low-traffic-router", "high-traffic-router", "nedd", "nedd-level")
BY_COUNTERS = (*BY_TRAFFIC, "low-stall-router")


@dataclass(frozen=True)
class Case:
    """A machine, which of its nodes are idle, what each interval reported, and a job."""

    machine: Dragonfly
    idle: tuple[bool, ...]
    sent: list[list[int]]
    received: list[list[int]]
    stall: list[list[int]]
    wait: list[list[int]]
    interval_s: float
    nodes: int
    sensitive: bool | None

    @property
    def routers(self) -> range:
        return range(self.machine.n_routers)

    def all_of(self, router: int) -> range:
        return range(router * self.machine.nodes, (router + 1) * self.machine.nodes)

    def idle_of(self, router: int) -> list[int]:
        return [node for node in self.all_of(router) if self.idle[node]]

    def counters(self) -> Counters | None:
        if not self.sent:
            return None
        parts = (np.array(part) for part in (self.sent, self.received, self.stall, self.wait))
        return Counters(7, self.interval_s, *parts)

    def ask(self, name: str, **parameters: Any) -> list[int]:
        sight = Sight(self.machine, np.array(self.idle), self.counters())
        job = Request(0, self.nodes, 0, sensitive=self.sensitive)
        policy = ALLOCATIONS.make(name, parameters)
        return [int(node) for node in allocate(policy, sight, job, rng_for(1, 0))]


@st.composite
def cases(draw: st.DrawFn, least: int = 0) -> Case:
    """Any small machine, with `least` to three intervals; numbers are small, so that many routers
    are equal, and the length of an interval is one by which division rounds."""
    p, a, g = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    machine = Dragonfly(p, a, -(-(g - 1) // a), g, links_per_pair=1 if g > 1 else None)
    dice = random.Random(draw(st.integers(0, 10**6)))
    part = draw(st.sampled_from((0.3, 0.7, 1.0)))
    idle = [dice.random() < part for _ in range(machine.n_nodes)]
    idle[dice.randrange(len(idle))] = True
    most, intervals = draw(st.sampled_from((1, 3, 50))), draw(st.integers(least, 3))

    def told(count: int) -> list[list[int]]:
        return [[dice.randint(0, most) for _ in range(count)] for _ in range(intervals)]

    by_node, by_router = machine.n_nodes, machine.n_routers
    largest = draw(st.sampled_from((p, a * p, sum(idle))))
    return Case(machine, tuple(idle), told(by_node), told(by_node), told(by_router),
                told(by_router), draw(st.sampled_from((1.0, 0.1, 2e-5))),
                draw(st.integers(1, min(largest, sum(idle)))),
                draw(st.sampled_from((True, False, None))))  # fmt: skip


# -- the same in plain Python, step by step


def naive_traffic(
    case: Case, intervals: int = 1, count: str = "both", threshold: float = 0.0
) -> list[int]:
    """Returns the bytes of all nodes of each router, idle or busy; 0 up to the threshold."""
    found, used = [], min(intervals, len(case.sent))
    for router in case.routers:
        total = 0
        for back in range(1, used + 1):
            for node in case.all_of(router):
                if count != "received":
                    total += case.sent[-back][node]
                if count != "sent":
                    total += case.received[-back][node]
        quiet = total == 0 or total / (used * case.interval_s) <= threshold
        found.append(0 if quiet else total)
    return found


def naive_sign(case: Case, unknown: str = "sensitive") -> int:
    """Returns 1 for a job that wants little traffic, -1 for one that is given much."""
    if case.sensitive is None:
        return 1 if unknown == "sensitive" else -1
    return 1 if case.sensitive else -1


def in_order(case: Case, key: list[int], routers: Any = None) -> list[int]:
    """Go to the router with the least key, of equals to the first, until the job has enough."""
    taken: list[int] = []
    left = [r for r in (case.routers if routers is None else routers) if case.idle_of(r)]
    while len(taken) < case.nodes:
        best = min(left, key=lambda r: (key[r], r))
        left.remove(best)
        taken += case.idle_of(best)
    return taken[: case.nodes]


def naive_low(case: Case, **parameters: Any) -> list[int]:
    return in_order(case, naive_traffic(case, **parameters))


def naive_high(case: Case, **parameters: Any) -> list[int]:
    return in_order(case, [-traffic for traffic in naive_traffic(case, **parameters)])


def naive_nedd(case: Case, unknown: str = "sensitive", **parameters: Any) -> list[int]:
    sign = naive_sign(case, unknown)
    return in_order(case, [sign * traffic for traffic in naive_traffic(case, **parameters)])


def naive_nedd_level(case: Case, unknown: str = "sensitive", **parameters: Any) -> list[int]:
    sign, a, p = naive_sign(case, unknown), case.machine.routers, case.machine.nodes
    key = [sign * traffic for traffic in naive_traffic(case, **parameters)]
    holding = [r for r in case.routers if len(case.idle_of(r)) >= case.nodes]
    if holding:
        return in_order(case, key, holding)
    answers = []
    for group in range(case.machine.groups):
        routers = range(group * a, (group + 1) * a)
        if sum(len(case.idle_of(r)) for r in routers) >= case.nodes:
            nodes = in_order(case, key, routers)
            answers.append((sum(key[node // p] for node in nodes), group, nodes))
    return min(answers)[2] if answers else in_order(case, key)


def naive_low_stall(
    case: Case, intervals: int = 1, count: str = "credit", by_class: bool = False,
    unknown: str = "sensitive",
) -> list[int]:  # fmt: skip
    key = [0] * len(case.routers)
    for back in range(1, min(intervals, len(case.stall)) + 1):
        for router in case.routers:
            key[router] += case.stall[-back][router]
            key[router] += case.wait[-back][router] if count == "any" else 0
    sign = naive_sign(case, unknown) if by_class else 1
    return in_order(case, [sign * stall for stall in key])


def naive_fewer(case: Case) -> list[int]:
    return in_order(case, [-len(case.idle_of(r)) for r in case.routers])


TWINS: dict[str, Callable[..., list[int]]] = {
    "low-traffic-router": naive_low,
    "high-traffic-router": naive_high,
    "nedd": naive_nedd,
    "nedd-level": naive_nedd_level,
    "low-stall-router": naive_low_stall,
    "fewer-router": naive_fewer,
}


@st.composite
def parameters_for(draw: st.DrawFn, name: str, case: Case) -> dict[str, Any]:
    """Any parameters; a threshold is often exactly the traffic of some router."""
    if name == "fewer-router":
        return {}
    given: dict[str, Any] = {"intervals": draw(st.integers(1, 5))}
    if name == "low-stall-router":
        given["count"], given["by_class"] = (
            draw(st.sampled_from(("credit", "any"))),
            draw(st.booleans()),
        )
        return given | {"unknown": draw(st.sampled_from(("sensitive", "insensitive")))}
    given["count"] = draw(st.sampled_from(("both", "sent", "received")))
    used = max(1, min(given["intervals"], len(case.sent)))
    totals = st.sampled_from(naive_traffic(case, **given))
    given["threshold"] = draw(totals) / (used * case.interval_s)
    if name.startswith("nedd"):
        given["unknown"] = draw(st.sampled_from(("sensitive", "insensitive")))
    return given


def test_every_policy_of_the_module_has_a_twin() -> None:
    assert {*TWINS} == {*ALL}


@pytest.mark.parametrize("name", ALL)
@given(cases(), st.data())
@examples(30)
def test_it_chooses_as_its_naive_twin(name: str, case: Case, data: st.DataObject) -> None:
    assert case.ask(name) == TWINS[name](case)
    parameters = data.draw(parameters_for(name, case))
    assert case.ask(name, **parameters) == TWINS[name](case, **parameters)


@pytest.mark.parametrize("name", [it for it in BY_COUNTERS if it != "nedd-level"])
@given(cases())
@examples(20)
def test_without_counters_the_lowest_labels_come_first(name: str, case: Case) -> None:
    unknown = replace(case, sent=[])
    assert unknown.ask(name) == unknown.ask("simple")


# -- what they go by


@pytest.mark.parametrize("name", ALL)
@given(cases(), st.integers(0, 10**6))
@examples(20)
def test_how_the_nodes_of_a_router_share_its_traffic_does_not_matter(
    name: str, case: Case, seed: int
) -> None:
    """The idle ones may have all of it, or the busy ones."""
    p, dice = case.machine.nodes, random.Random(seed)

    def shared_otherwise(told: list[list[int]]) -> list[list[int]]:
        return [[byte for r in case.routers for byte in dice.sample(row[r * p : r * p + p], p)]
                for row in told]  # fmt: skip

    other = replace(
        case, sent=shared_otherwise(case.sent), received=shared_otherwise(case.received)
    )
    parameters = {} if name == "fewer-router" else {"intervals": 3}
    assert other.ask(name, **parameters) == case.ask(name, **parameters)


@pytest.mark.parametrize("name", BY_TRAFFIC)
def test_no_rounding_decides_between_equal_routers(name: str) -> None:
    """As floating-point numbers, the bytes per second of nodes add up to less in router 1."""
    first, second, seconds = [3, 2, 4], [4, 2, 3], 2e-5
    added = [reduce(add, (byte / seconds for byte in each)) for each in (first, second)]
    assert added[0] > added[1]
    machine = Dragonfly(3, 2, 0, 1)
    told = Counters.of_interval(machine, sent=first + second, seconds=seconds)
    sight, policy = Sight(machine, np.ones(6, bool), told), ALLOCATIONS.make(name)
    assert allocate(policy, sight, Request(0, 2, 0), rng_for(1, 0)).tolist() == [0, 1]


@pytest.mark.parametrize("name", BY_COUNTERS)
@given(cases(least=1))
@examples(20)
def test_where_all_routers_report_the_same_it_is_as_if_none_had_reported(
    name: str, case: Case
) -> None:
    silent = replace(case, sent=[], received=[], stall=[], wait=[])
    nodes, routers = case.machine.n_nodes, case.machine.n_routers
    alike = replace(case, sent=[[5] * nodes], received=[[2] * nodes], stall=[[9] * routers],
                    wait=[[1] * routers])  # fmt: skip
    assert silent.ask(name) == alike.ask(name)
    if name != "nedd-level":
        assert silent.ask(name) == silent.ask("simple")


@pytest.mark.parametrize("name", BY_TRAFFIC)
@given(cases(least=1))
@examples(20)
def test_a_threshold_that_nobody_exceeds_makes_all_routers_equal(name: str, case: Case) -> None:
    silent = replace(case, sent=[], received=[], stall=[], wait=[])
    most = max(naive_traffic(case)) / case.interval_s
    assert case.ask(name, threshold=most) == silent.ask(name)


@pytest.mark.parametrize("name", BY_COUNTERS)
@given(cases(least=1), st.integers(1, 3))
@examples(20)
def test_it_averages_over_the_last_intervals_that_there_are(
    name: str, case: Case, intervals: int
) -> None:
    there = len(case.sent)
    last = {
        part: getattr(case, part)[-intervals:] for part in ("sent", "received", "stall", "wait")
    }
    assert case.ask(name, intervals=intervals) == replace(case, **last).ask(name, intervals=256)
    assert case.ask(name, intervals=there) == case.ask(name, intervals=there + 1)


@given(cases())
@examples(25)
def test_nedd_is_low_traffic_for_sensitive_jobs_and_high_traffic_for_others(case: Case) -> None:
    low, high = case.ask("low-traffic-router"), case.ask("high-traffic-router")
    assert replace(case, sensitive=True).ask("nedd") == low
    assert replace(case, sensitive=False).ask("nedd") == high
    nobody_knows = replace(case, sensitive=None)
    assert nobody_knows.ask("nedd") == nobody_knows.ask("nedd", unknown="sensitive") == low
    assert nobody_knows.ask("nedd", unknown="insensitive") == high


@given(cases())
@examples(25)
def test_low_stall_by_class_is_the_same_for_sensitive_jobs_alone(case: Case) -> None:
    of = [replace(case, sensitive=kind) for kind in (True, False, None)]
    plain = case.ask("low-stall-router")
    by_class = [one.ask("low-stall-router", by_class=True) for one in of]
    assert by_class[0] == by_class[2] == plain == of[1].ask("low-stall-router")
    stalls = case.stall[-1] if case.stall else [0] * len(case.routers)
    assert by_class[1] == in_order(case, [-stall for stall in stalls])


@given(cases())
@examples(25)
def test_nedd_level_stays_in_the_smallest_level_that_holds_the_job(case: Case) -> None:
    sight = Sight(case.machine, np.array(case.idle))
    chosen, p, a = case.ask("nedd-level"), case.machine.nodes, case.machine.routers
    if case.nodes <= sight.by_router.max():
        assert len({node // p for node in chosen}) == 1
    elif case.nodes <= sight.by_group.max():
        assert len({node // (p * a) for node in chosen}) == 1
    else:
        assert chosen == case.ask("nedd")


# -- what they are given


@pytest.mark.parametrize("name", ALLOCATIONS)
def test_what_it_reads_is_what_it_averages(name: str) -> None:
    assert ALLOCATIONS.make(name).reads == (1 if name in BY_COUNTERS else 0)
    if name in BY_COUNTERS:
        assert ALLOCATIONS.make(name, {"intervals": 12}).reads == 12


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("nedd", {"count": "up"}, "nedd: count = 'up': one of both, sent, received"),
        ("low-traffic-router", {"count": "any"}, "count = 'any': one of both, sent, received"),
        ("low-stall-router", {"count": "sent"}, "count = 'sent': one of credit, any"),
        ("low-stall-router", {"unknown": "no"}, "unknown = 'no': one of sensitive, insensitive"),
        ("nedd-level", {"unknown": "none"}, "unknown = 'none': one of sensitive, insensitive"),
        ("nedd", {"intervals": 0}, "intervals = 0: a whole number of intervals, 1 .. 256"),
        ("nedd", {"threshold": -1.0}, "threshold = -1.0: a number of bytes per second, at least 0"),
        ("high-traffic-router", {"unknown": "sensitive"}, "unknown: unknown; it has intervals"),
        ("fewer-router", {"intervals": 1}, "intervals: unknown; it has no parameters"),
    ],
)
def test_what_cannot_be_is_refused(name: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused) as refusal:
        ALLOCATIONS.make(name, given)
    assert message in str(refusal.value)


# -- the counters


SMALL = Dragonfly(2, 3, 0, 1)


def test_counters_add_up_by_node_by_router_and_by_interval() -> None:
    told = Counters(5, 0.5, np.array([[9] * 6, [1, 2, 3, 4, 5, 6]]), np.array([[1] * 6, [10] * 6]),
                    np.array([[7, 8, 9], [1, 2, 3]]), np.array([[1, 1, 1], [4, 0, 4]]))  # fmt: skip
    assert told.bytes_by_node("sent").tolist() == [1, 2, 3, 4, 5, 6]
    assert told.bytes_by_node("received", 2).tolist() == [11] * 6
    assert told.bytes_by_router("both", 2).tolist() == [43, 47, 51]
    assert told.traffic_by_node("both", 9).tolist() == [21.0, 22.0, 23.0, 24.0, 25.0, 26.0]
    assert told.stalls_by_router().tolist() == [1, 2, 3]
    assert told.stalls_by_router("any", 2).tolist() == [13, 11, 17]
    assert (told.seconds(), told.seconds(2), told.seconds(9)) == (0.5, 1.0, 1.0)
    for wrong in (told.bytes_by_node, told.bytes_by_router, told.traffic_by_node,
                  told.stalls_by_router):  # fmt: skip
        with pytest.raises(ValueError, match="count = 'all': one of"):
            wrong("all")


def test_counters_cannot_be_written_and_are_of_one_machine() -> None:
    told = Counters.of_interval(SMALL, sent=3, stall=[1, 2, 3])
    for array in (told.sent, told.received, told.stall, told.wait):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
    with pytest.raises(ValueError, match="6 nodes and 3 routers: the machine has 4 and 2"):
        Sight(Dragonfly(2, 2, 0, 1), np.ones(4, bool), told)
    with pytest.raises(ValueError, match="not of the same shape"):
        replace(told, wait=np.zeros((2, 3), np.int64))


# -- one's own


@pytest.fixture
def mine() -> Iterator[Any]:
    yield allocation("mine", about="a test's", source="nobody's", reads=3)
    ALLOCATIONS.pop("mine", None)


def test_a_function_or_a_class_of_ones_own_says_what_it_reads(mine: Any) -> None:
    def quietest(sight: Sight, job: Request, rng: np.random.Generator) -> Any:
        assert sight.counters is not None
        traffic = sight.counters.traffic_by_node("sent", 3)
        return sight.labels[np.argsort(traffic[sight.labels], kind="stable")][: job.nodes]

    mine(quietest)
    policy = ALLOCATIONS.make("mine")
    assert policy.reads == 3
    told = Counters.of_interval(SMALL, sent=[5, 1, 0, 9, 1, 2])
    sight = Sight(SMALL, np.arange(6) != 2, told)
    assert allocate(policy, sight, Request(0, 3, 0), rng_for(1, 0)).tolist() == [1, 4, 5]
    ALLOCATIONS.pop("mine")

    class Mine(base.AllocationPolicy):
        def choose(self, sight: Sight, job: Request, rng: np.random.Generator) -> Any:
            return sight.labels[: job.nodes]

    mine(Mine)
    assert ALLOCATIONS.make("mine").reads == 3


@pytest.mark.parametrize("module", [base, network_data, sight])
def test_examples_in_docstrings_are_so(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)
