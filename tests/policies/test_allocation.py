"""Every allocation does what its paper says, and never more than it may."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from pdes.errors import Fault, Refused
from policies import register
from policies.allocation import (
    ALLOCATIONS,
    AllocationPolicy,
    allocate,
    allocation,
)
from policies.allocation.base import heap_by_heap, in_turn
from policies.register import Entry
from policies.views import Request, Sight, starts
from topology import Dragonfly

FIGURE = Dragonfly(4, 4, 2, 9)
"""The machine of the paper's figure 3.3."""
RANDOM = ("rdn", "random", "rdr", "rdg", "level-spread-random")
ALL = tuple(ALLOCATIONS)
TOLD = tuple(name for name, entry in ALLOCATIONS.items() if "network_data" in entry.home)
"""Those whose twins are in test_network_data.py."""


def job_of(nodes: int) -> Request:
    return Request(0, nodes, 0)


def ask(name: str, sight: Sight, nodes: int, seed: int = 1) -> list[int]:
    rng = np.random.default_rng(seed)
    return [int(label) for label in allocate(ALLOCATIONS.make(name), sight, job_of(nodes), rng)]


def one_after_another(name: str, machine: Dragonfly, *sizes: int) -> list[list[int]]:
    idle, jobs = np.ones(machine.n_nodes, bool), []
    for nodes in sizes:
        jobs.append(ask(name, Sight(machine, idle), nodes))
        idle[jobs[-1]] = False
    return jobs


def with_idle(machine: Dragonfly, *labels: int) -> Sight:
    idle = np.zeros(machine.n_nodes, bool)
    idle[list(labels)] = True
    return Sight(machine, idle)


@st.composite
def sights(draw: st.DrawFn) -> tuple[Sight, int]:
    """Any machine with at least one idle node, as full and as torn as can be, and a job for it."""
    p, a, g = draw(st.integers(1, 5)), draw(st.integers(1, 5)), draw(st.integers(1, 8))
    machine = Dragonfly(p, a, -(-(g - 1) // a), g, links_per_pair=1 if g > 1 else None)
    part = draw(st.sampled_from((0.1, 0.4, 0.7, 0.95, 1.0)))
    dice = random.Random(draw(st.integers(0, 10**6)))
    idle = np.array([dice.random() < part for _ in range(machine.n_nodes)])
    if draw(st.booleans()):  # whole routers are taken, or not at all
        idle = np.repeat(idle[::p], p)
    idle[dice.randrange(len(idle))] = True
    free = int(idle.sum())
    most = draw(st.sampled_from((p, a * p, free)))
    return Sight(machine, idle), draw(st.integers(1, min(most, free)))


# -- the paper's examples


def test_the_three_jobs_of_figure_3_3_sit_as_drawn() -> None:
    first, second, third = one_after_another("level-spread", FIGURE, 4, 8, 54)
    assert first == [0, 1, 2, 3]
    assert second == [16, 20, 24, 28, 17, 21, 25, 29]
    assert third[:10] == [4, 18, 32, 48, 64, 80, 96, 112, 128, 5]
    groups = [[label for label in third if label // 16 == g] for g in range(9)]
    assert [len(group) for group in groups] == [6] * 9
    assert groups[0] == [4, 5, 6, 7, 8, 9]
    assert groups[1] == [18, 19, 22, 23, 26, 27]
    assert all(group == list(range(16 * g, 16 * g + 6)) for g, group in enumerate(groups) if g > 1)


def test_after_a_spread_job_one_of_a_group_less_a_node_is_spread_too() -> None:
    machine = Dragonfly(4, 4, 4, 17)
    first, second = one_after_another("level-spread", machine, 50, 15)
    assert {label // 16 for label in first} == set(range(17))
    assert [label // 16 for label in second] == list(range(15))


def test_sixteen_node_jobs_have_a_group_each() -> None:
    jobs = one_after_another("level-spread", Dragonfly(4, 4, 4, 17), *[16] * 17)
    assert [{label // 16 for label in job} for job in jobs] == [{g} for g in range(17)]


def test_level_spread_takes_the_emptiest_router_and_the_first_of_equals() -> None:
    sight = with_idle(FIGURE, 0, 1, 4, 5, 6, 8, 9, 10)
    assert ask("level-spread", sight, 2) == [4, 5]


def test_slurm_takes_the_fullest_router_that_holds_the_job_and_first_fit_the_first() -> None:
    sight = with_idle(FIGURE, 0, 1, 2, 3, 20, 21, 40, 41)
    assert ask("slurm", sight, 2) == [20, 21]
    assert ask("slurm-first-fit", sight, 2) == [0, 1]


def test_slurm_gathers_the_leftovers_of_routers_where_none_holds_the_job() -> None:
    sight = with_idle(FIGURE, 0, 1, 2, 5, 16, 20, 21)
    for name in ("slurm", "slurm-first-fit"):
        assert ask(name, sight, 5) == [5, 16, 20, 21, 0]


def test_jokanovic_puts_small_jobs_left_and_large_ones_right() -> None:
    small, large, full = one_after_another("jokanovic", FIGURE, 10, 17, 16)
    assert small == list(range(10))
    assert large == list(range(143, 126, -1))
    assert full == list(range(16, 32))
    assert ask("jokanovic", with_idle(FIGURE, 3, 40, 90), 2) == [3, 40]


def test_jokanovic_as_published_leaves_the_nodes_it_chose_to_others() -> None:
    small, large, other = one_after_another("jokanovic-published", FIGURE, 10, 17, 10)
    assert small == list(range(10, 20))  # and not the first ten: it crosses the end of group 0
    assert large == list(range(143, 126, -1))
    assert other == list(range(20, 30))
    assert ask("jokanovic-published", with_idle(FIGURE, 3, 4, 90), 2) == [90, 4]
    assert ask("jokanovic-published", with_idle(FIGURE, 3, 40, 90), 2) == [3, 40]


def test_round_robin_skips_what_is_exhausted() -> None:
    sight = with_idle(FIGURE, 2, 20, 21, 24, 130, 140, 141)
    assert ask("rrn", sight, 7) == [2, 20, 130, 21, 140, 24, 141]
    assert ask("rrr", sight, 7) == [2, 20, 21, 130, 24, 140, 141]


# -- the same in plain Python, step by step


class Hall:
    """Idle nodes as sets, and everything looked for anew at each step."""

    def __init__(self, sight: Sight) -> None:
        self.p, self.a, self.g = sight.machine.nodes, sight.machine.routers, sight.machine.groups
        self.idle = {label for label in range(sight.machine.n_nodes) if sight.idle[label]}
        self.taken: list[int] = []

    def router(self, r: int) -> list[int]:
        return sorted(label for label in self.idle if label // self.p == r)

    def group(self, g: int) -> list[int]:
        return sorted(label for label in self.idle if label // (self.p * self.a) == g)

    def routers(self, g: int | None = None) -> Iterator[int]:
        """That have idle nodes; of one group, or of all."""
        among = range(self.a * self.g) if g is None else range(g * self.a, (g + 1) * self.a)
        return (r for r in among if self.router(r))

    def take(self, labels: list[int], wanted: int) -> None:
        for label in labels[: wanted - len(self.taken)]:
            self.idle.remove(label)
            self.taken.append(label)


def naive_rrn(hall: Hall, nodes: int) -> None:
    while len(hall.taken) < nodes:
        for g in range(hall.g):
            hall.take(hall.group(g)[:1], nodes)


def naive_rrr(hall: Hall, nodes: int) -> None:
    while len(hall.taken) < nodes:
        for g in range(hall.g):
            for r in [*hall.routers(g)][:1]:
                hall.take(hall.router(r), nodes)


def naive_level_spread(hall: Hall, nodes: int) -> None:
    router = max(range(hall.a * hall.g), key=lambda r: (len(hall.router(r)), -r))
    group = max(range(hall.g), key=lambda g: (len(hall.group(g)), -g))
    if len(hall.router(router)) >= nodes:
        hall.take(hall.router(router), nodes)
    elif len(hall.group(group)) >= nodes:
        while len(hall.taken) < nodes:
            for r in range(group * hall.a, (group + 1) * hall.a):
                hall.take(hall.router(r)[:1], nodes)
    else:
        naive_rrn(hall, nodes)


def naive_simple(hall: Hall, nodes: int) -> None:
    hall.take(sorted(hall.idle), nodes)


def naive_leftovers(hall: Hall, nodes: int) -> None:
    while len(hall.taken) < nodes:
        fewest = min(hall.routers(), key=lambda r: (len(hall.router(r)), r))
        hall.take(hall.router(fewest), nodes)


def naive_slurm(hall: Hall, nodes: int) -> None:
    fits = [r for r in hall.routers() if len(hall.router(r)) >= nodes]
    if fits:
        hall.take(hall.router(min(fits, key=lambda r: (len(hall.router(r)), r))), nodes)
    naive_leftovers(hall, nodes)


def naive_first_fit(hall: Hall, nodes: int) -> None:
    fits = [r for r in hall.routers() if len(hall.router(r)) >= nodes]
    if fits:
        hall.take(hall.router(fits[0]), nodes)
    naive_leftovers(hall, nodes)


def naive_jokanovic(hall: Hall, nodes: int) -> None:
    if nodes > hall.a * hall.p:
        hall.take(sorted(hall.idle, reverse=True), nodes)
        return
    fits = [g for g in range(hall.g) if len(hall.group(g)) >= nodes]
    hall.take(hall.group(fits[0]) if fits else sorted(hall.idle), nodes)


def naive_published(hall: Hall, nodes: int) -> None:
    """As it is told: the nodes of a group are written down, and then, over them, the others that
    are idle, as far as there are some."""
    fits = [g for g in range(hall.g) if len(hall.group(g)) >= nodes]
    if nodes > hall.a * hall.p or not fits:
        naive_jokanovic(hall, nodes)
        return
    written = hall.group(fits[0])[:nodes]
    for place, label in enumerate(sorted(hall.idle - set(written))[:nodes]):
        written[place] = label
    hall.take(written, nodes)


TWINS: dict[str, Callable[[Hall, int], None]] = {
    "level-spread": naive_level_spread,
    "rrn": naive_rrn,
    "rrr": naive_rrr,
    "simple": naive_simple,
    "slurm": naive_slurm,
    "slurm-first-fit": naive_first_fit,
    "jokanovic": naive_jokanovic,
    "jokanovic-published": naive_published,
}


def test_every_policy_has_a_twin_or_is_random() -> None:
    assert {*TWINS, *RANDOM, *TOLD} == set(ALL)


@pytest.mark.parametrize("name", TWINS)
@given(sights())
@examples(30)
def test_it_chooses_as_its_naive_twin(name: str, asked: tuple[Sight, int]) -> None:
    sight, nodes = asked
    hall = Hall(sight)
    TWINS[name](hall, nodes)
    assert ask(name, sight, nodes) == hall.taken


# -- what holds for all


@pytest.mark.parametrize("name", ALL)
@given(sights(), st.integers(0, 2**32))
@examples(20)
def test_it_chooses_as_many_different_idle_nodes_and_the_same_again(
    name: str, asked: tuple[Sight, int], seed: int
) -> None:
    sight, nodes = asked
    before = sight.idle.copy()
    chosen = allocate(ALLOCATIONS.make(name), sight, job_of(nodes), np.random.default_rng(seed))
    assert chosen.dtype == np.int64
    assert len(set(chosen.tolist())) == len(chosen) == nodes
    assert before[chosen].all()
    assert (sight.idle == before).all()
    assert ask(name, Sight(sight.machine, before), nodes, seed) == chosen.tolist()


@pytest.mark.parametrize("name", ALL)
def test_it_can_hand_out_the_whole_machine(name: str) -> None:
    sight = Sight(FIGURE, np.ones(144, bool))
    assert sorted(ask(name, sight, 144)) == list(range(144))


@pytest.mark.parametrize("name", ALL)
def test_only_the_random_ones_draw(name: str) -> None:
    sight = Sight(FIGURE, np.ones(144, bool))
    answers = {tuple(ask(name, sight, 20, seed)) for seed in range(10)}
    assert (len(answers) > 5) == (name in RANDOM)


@given(sights(), st.integers(0, 10**6))
@examples(25)
def test_random_routers_and_groups_are_taken_whole_but_for_the_last(
    asked: tuple[Sight, int], seed: int
) -> None:
    sight, nodes = asked
    for name, size in (("rdr", sight.machine.nodes),
                       ("rdg", sight.machine.nodes * sight.machine.routers)):  # fmt: skip
        heaps: list[list[int]] = []
        for label in ask(name, sight, nodes, seed):
            if not heaps or heaps[-1][0] // size != label // size:
                heaps.append([])
            heaps[-1].append(label)
        assert len({heap[0] // size for heap in heaps}) == len(heaps)
        for heap in heaps:
            first = heap[0] // size * size
            idle = [label for label in range(first, first + size) if sight.idle[label]]
            assert heap == (idle if heap is not heaps[-1] else idle[: len(heap)])


@pytest.mark.parametrize(("name", "size"), [("rdn", 1), ("rdr", 4), ("rdg", 16)])
def test_chance_favours_nobody(name: str, size: int) -> None:
    """However many idle nodes a router or group has."""
    idle = np.ones(144, bool)
    idle[[1, 2, 17, 40]] = False
    sight = Sight(FIGURE, idle)
    heaps = sorted({label // size for label in sight.labels.tolist()})
    counts = dict.fromkeys(heaps, 0)
    rng = np.random.default_rng(5)
    policy = ALLOCATIONS.make(name)
    draws = 3000
    for _ in range(draws):
        counts[int(allocate(policy, sight, job_of(1), rng)[0]) // size] += 1
    expected = draws / len(heaps)
    chi2 = sum((count - expected) ** 2 / expected for count in counts.values())
    free = len(heaps) - 1
    assert chi2 < free + 4 * (2 * free) ** 0.5


@pytest.mark.parametrize("nodes", [1, 5, 17])
def test_level_spread_random_favours_none_of_the_equal_nodes(nodes: int) -> None:
    """Whether a router, a group or only the machine holds the job; groups 0, 1 and 2 have fewer
    idle nodes than the others, so no small job goes there."""
    idle = np.ones(144, bool)
    if nodes < 17:
        idle[[0, 4, 8, 12, 17, 21, 25, 29, 34, 38, 42, 46]] = False
    sight = Sight(FIGURE, idle)
    equal = range(144) if nodes == 17 else range(48, 144)
    first, last = np.zeros(144), np.zeros(144)
    rng, policy, draws = np.random.default_rng(5), ALLOCATIONS.make("level-spread-random"), 3000
    for _ in range(draws):
        chosen = allocate(policy, sight, job_of(nodes), rng)
        first[chosen[0]] += 1
        last[chosen[-1]] += 1
    free, expected = len(equal) - 1, draws / len(equal)
    for counts in (first, last):
        assert counts[equal].sum() == draws
        chi2 = float(((counts[equal] - expected) ** 2 / expected).sum())
        assert chi2 < free + 4 * (2 * free) ** 0.5


@given(sights(), st.integers(0, 10**6))
@examples(30)
def test_level_spread_random_keeps_to_the_levels_of_level_spread(
    asked: tuple[Sight, int], seed: int
) -> None:
    sight, nodes = asked
    m, hall = sight.machine, Hall(sight)
    chosen = ask("level-spread-random", sight, nodes, seed)
    groups = [label // (m.nodes * m.routers) for label in chosen]
    if nodes <= sight.by_router.max():
        (router,) = {label // m.nodes for label in chosen}
        assert sight.by_router.flat[router] == sight.by_router.max()
        return
    if nodes <= sight.by_group.max():
        (group,) = set(groups)
        assert sight.by_group[group] == sight.by_group.max()
        among, heaps = [label // m.nodes for label in chosen], [*hall.routers(group)]
        idle = {r: len(hall.router(r)) for r in heaps}
    else:
        among, heaps = groups, [g for g in range(hall.g) if hall.group(g)]
        idle = {g: len(hall.group(g)) for g in heaps}
    rounds: list[list[int]] = [[]]
    for heap in among:
        if heap in rounds[-1]:
            rounds.append([])
        rounds[-1].append(heap)
    for turn, went in enumerate(rounds):
        there = {heap for heap in heaps if idle[heap] > turn}
        assert set(went) <= there
        assert len(went) == len(there) or went is rounds[-1]


# -- what they are made of


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8).filter(any), st.data())
def test_heaps_are_emptied_in_turn_or_one_by_one(sizes: list[int], data: st.DataObject) -> None:
    counts = np.array(sizes, np.int32)
    wanted = data.draw(st.integers(1, sum(sizes)))
    begin = [sum(sizes[:i]) for i in range(len(sizes))]
    rounds = [begin[i] + turn for turn in range(6) for i, n in enumerate(sizes) if turn < n]
    assert in_turn(counts, wanted).tolist() == rounds[:wanted]
    order = data.draw(st.permutations(range(len(sizes))))
    whole = [begin[i] + k for i in order for k in range(sizes[i])]
    taken = heap_by_heap(starts(counts), counts, np.array(order, np.int64), wanted)
    assert taken.tolist() == whole[:wanted]


@given(sights())
def test_a_sight_counts_and_names_its_idle_nodes(asked: tuple[Sight, int]) -> None:
    sight, _ = asked
    m = sight.machine
    cube = sight.idle.reshape(m.groups, m.routers, m.nodes)
    assert sight.free == cube.sum() == len(sight.labels)
    assert (sight.by_router == cube.sum(2)).all()
    assert (sight.by_group == cube.sum((1, 2))).all()
    for i in range(m.groups):
        first, count = int(sight.group_starts[i]), int(sight.by_group[i])
        assert sight.of_group(i).tolist() == sight.labels[first : first + count].tolist()
    for r in range(m.n_routers):
        first, count = int(sight.router_starts[r]), int(sight.by_router.flat[r])
        assert sight.of_router(r).tolist() == sight.labels[first : first + count].tolist()


def test_a_sight_does_not_follow_the_machine_and_cannot_be_written() -> None:
    idle = np.ones(144, bool)
    sight = Sight(FIGURE, idle)
    idle[:] = False
    assert sight.free == 144
    for array in (sight.idle, sight.labels, sight.by_router, sight.by_group):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(ValueError, match="one bool per node, 144"):
        Sight(FIGURE, np.ones(143, bool))
    with pytest.raises(ValueError, match="one bool per node, 144"):
        Sight(FIGURE, np.ones(144, np.int64))


# -- one's own


@pytest.fixture
def mine() -> Iterator[Callable[[Any], AllocationPolicy]]:
    """Register a function, or a class, for the time of a test."""
    decorate = allocation("mine", about="a test's", source="nobody's")

    def register_it(written: Any) -> AllocationPolicy:
        decorate(written)
        return ALLOCATIONS.make("mine")

    yield register_it
    ALLOCATIONS.pop("mine", None)


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ([0, 1], "it chose 2"),
        ([0, 1, 1], "it chose node 1 2 times"),
        ([0, 1, 5], "it chose node 5, which is busy"),
        ([0, 1, 144], r"it chose node 144, and the machine has 0 … 143"),
        ([-1, 0, 1], r"it chose node -1, and the machine has 0 … 143"),
        ([0.0, 1.0, 2.0], "not an array of node labels"),
        ([True, False, True], "not an array of node labels"),
        ([[0, 1, 2]], "not an array of node labels"),
        ([0, [1, 2]], "not an array of node labels"),
        (None, "not an array of node labels"),
        ([], "not an array of node labels"),
    ],
)
def test_a_bad_answer_names_the_policy(mine: Any, answer: Any, complaint: str) -> None:
    policy = mine(lambda sight, job, rng: answer)
    sight = with_idle(FIGURE, 0, 1, 2, 3)
    with pytest.raises(Fault, match=f"allocation mine, asked for 3 nodes: .*{complaint}"):
        allocate(policy, sight, job_of(3), np.random.default_rng(1))


def test_nobody_is_asked_for_what_there_is_not(mine: Any) -> None:
    policy = mine(lambda sight, job, rng: pytest.fail("it was asked"))
    for nodes in (0, -1, 5):
        with pytest.raises(ValueError, match="1 to 4 can be had"):
            allocate(policy, with_idle(FIGURE, 0, 1, 2, 3), job_of(nodes), np.random.default_rng(1))


def test_a_class_is_registered_like_a_function(mine: Any) -> None:
    class Last(AllocationPolicy):
        def choose(self, sight: Sight, job: Request, rng: np.random.Generator) -> Any:
            return sight.labels[::-1][: job.nodes]

    assert isinstance(mine(Last), Last)
    assert ask("mine", with_idle(FIGURE, 5, 6, 7), 2) == [7, 6]


def test_a_name_is_not_taken_from_another() -> None:
    decorate = allocation("simple", about="not it", source="nobody's")
    with pytest.raises(ValueError, match=r"is taken by policies\.allocation\.compact\.simple"):
        decorate(lambda sight, job, rng: sight.labels[: job.nodes])


def test_an_unknown_name_is_refused_with_those_near_it() -> None:
    with pytest.raises(Refused, match=r"'levelspread': one of .* did you mean level-spread"):
        ALLOCATIONS.make("levelspread")
    with pytest.raises(Refused, match=r"'qqqq': one of .*jokanovic[^?]*$"):
        ALLOCATIONS.make("qqqq")


def test_other_packages_are_asked_only_for_what_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = []

    def good() -> None:
        loaded.append("good")
        mine: register.Register[Any] = policies
        mine.add(Entry("test", "theirs", build=dict, home="their.code"))

    def bad() -> None:
        raise ImportError("no module named nothing")

    points = [
        SimpleNamespace(name="theirs", value="their:code", load=good, dist=None),
        SimpleNamespace(name="gone", value="gone:code", load=bad, dist=None),
    ]
    monkeypatch.setattr(
        register, "entry_points", lambda group: points if group == "odonata.test" else []
    )
    policies: register.Register[Any] = register.Register("test", Entry)
    policies.add(Entry("test", "ours", build=dict, home="our.code"))
    assert policies.named("ours").name == "ours"
    assert not loaded
    assert policies.named("theirs").name == "theirs"
    with pytest.raises(Refused, match="'gone': its entry point gone:code does not load: ImportErr"):
        policies.named("gone")
    with pytest.raises(Refused, match="'their': one of ours, theirs; did you mean theirs"):
        policies.named("their")
    assert loaded == ["good"]


# -- time


@pytest.mark.alone
@pytest.mark.parametrize("part", [1.0, 0.5])
def test_level_spread_places_a_job_on_100_000_nodes_in_two_milliseconds(part: float) -> None:
    machine = Dragonfly(16, 32, 16, 196, links_per_pair=1)
    idle = np.random.default_rng(1).random(machine.n_nodes) < part
    policy, rng = ALLOCATIONS.make("level-spread"), np.random.default_rng(1)
    for nodes in (2, 100, 1000, 20_000):
        best = 9.0
        for _ in range(15):
            began = time.process_time()
            allocate(policy, Sight(machine, idle), job_of(nodes), rng)
            best = min(best, time.process_time() - began)
        assert best < 2e-3
