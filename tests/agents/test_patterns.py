"""Every pattern against a definition of its own: plain sets of who sends to whom, written from what
the pattern is called and not from the kernels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from odonata.agents.layout import (
    ENDS_APART,
    FIRST_STAGE,
    FOR_MESSAGES,
    ITERATION,
    LAST,
    MESSAGE,
    WAITS,
)
from odonata.agents.patterns import (
    DIMENSIONS,
    NO_MORE,
    NOBODY,
    PAIRED,
    PATTERNS,
    kernels,
    label,
    near_cubic,
    stage_at,
)
from odonata.agents.workload import Workload
from odonata.jobs.request import EXCHANGES, Job
from pdes.jit import entry
from topology import Dragonfly

MACHINE = Dragonfly(2, 4, 2, 9)
SOME = (*range(2, 18), 21, 25, 27, 31, 32, 33, 48, 64, 70, 100, 129)
"""Numbers of tasks: all that are small, and some that are not."""
OTHERS = tuple(sorted({*range(2, 71), 96, 127, 128} - {*SOME}))
COUNT = pytest.mark.parametrize(
    "tasks", [*SOME, *(pytest.param(tasks, marks=pytest.mark.long) for tasks in OTHERS)]
)
COUNTS = pytest.mark.parametrize("counts", [
    pytest.param(SOME, id="some"), pytest.param(OTHERS, id="more", marks=pytest.mark.long),
])  # fmt: skip
ON_GRIDS = tuple(DIMENSIONS)
WAYS = [(name, "posted") for name in PATTERNS] + [(name, "pairwise") for name in PAIRED]
ITERATIONS = 3

Pairs = Counter[tuple[int, int]]

peer, due, apart = kernels(())


class Tables(NamedTuple):
    """What the kernels read of a state."""

    jobs: Any
    stages: Any
    friends: Any
    expected: Any


@entry
def spell_out(state: Any, number: int, tasks: int, sent: Any, awaited: Any) -> int:
    """Every message of a job, as (phase, source, destination, phase it is waited for in), in the
    order in which each task sends; and how many each task waits for in each phase. Returns how many
    messages there are, also where there is no room for all."""
    job, n = state.jobs[number], 0
    for phase in range(job[LAST]):
        ends = job[ENDS_APART] != 0 and phase == job[LAST] - 1
        row = -1 if ends else stage_at(state, number, phase)
        size = state.stages[job[FIRST_STAGE], MESSAGE]
        for task in range(tasks):
            if ends:
                awaited[phase, task] = apart(state, number, task) // size
            else:
                awaited[phase, task] = due(state, row, task, phase) // size
            i = 0
            to = peer(state, row, task, phase, i)
            while to != NO_MORE:
                if to != NOBODY:
                    if n < sent.shape[0]:
                        sent[n, 0], sent[n, 1], sent[n, 2] = phase, task, to
                        stage = state.stages[row]
                        sent[n, 3] = label(stage, phase)
                        if stage[WAITS] != FOR_MESSAGES:
                            sent[n, 3] = job[LAST] - 1
                    n += 1
                i += 1
                to = peer(state, row, task, phase, i)
    return n


class Said(NamedTuple):
    phases: int
    """The phases of an iteration."""
    sent: Any
    awaited: Any

    def pairs(self, phase: int | None = None) -> Pairs:
        rows = self.sent if phase is None else self.sent[self.sent[:, 0] == phase]
        return Counter(map(tuple, rows[:, 1:3].tolist()))


def said(tasks: int, pattern: str, iterations: int = 1, seed: int = 1, **more: Any) -> Said:
    """By the second of two jobs, so that its tasks are not the first of all."""
    jobs = (Job(3, "random-ring"), Job(tasks, pattern, iterations=iterations, **more))
    arrays = Workload(jobs, tasks_per_node=1).arrays(seed, 0)
    state = Tables(*(arrays[name] for name in Tables._fields))
    phases, last = state.jobs[1, [ITERATION, LAST]].tolist()
    sent, awaited = np.zeros((1 << 12, 4), np.int64), np.zeros((last, tasks), np.int64)
    n = spell_out(state, 1, tasks, sent, awaited)
    if n > len(sent):
        sent = np.zeros((n, 4), np.int64)
        assert spell_out(state, 1, tasks, sent, awaited) == n
    return Said(phases, sent[:n], awaited)


def everybody(tasks: Any) -> Pairs:
    tasks = list(tasks)
    return Counter({(a, b): 1 for a in tasks for b in tasks if a != b})


def times(pairs: Pairs, iterations: int) -> Pairs:
    return Counter({pair: iterations * count for pair, count in pairs.items()})


def place(task: int, sides: tuple[int, ...]) -> tuple[int, ...]:
    """Tasks fill a grid along its first side first."""
    where = []
    for side in sides:
        where.append(task % side)
        task //= side
    return tuple(where)


def cycles(after: dict[int, int]) -> list[int]:
    """The lengths of the cycles of a permutation."""
    assert sorted(after) == sorted(after.values())
    left, lengths = set(after), []
    while left:
        start = at = min(left)
        length = 0
        while at in left:
            left.remove(at)
            at, length = after[at], length + 1
        assert at == start
        lengths.append(length)
    return lengths


# -- all of them


def check_books(traffic: Said, tasks: int) -> None:
    """What is sent is what is waited for, in that phase, and nobody speaks to itself."""
    sent = traffic.sent
    assert (sent[:, 1] != sent[:, 2]).all()
    assert ((sent[:, 1:3] >= 0) & (sent[:, 1:3] < tasks)).all()
    come = np.zeros_like(traffic.awaited)
    np.add.at(come, (sent[:, 3], sent[:, 2]), 1)
    assert (come == traffic.awaited).all()


def check_nobody_waits_for_ever(traffic: Said, tasks: int) -> None:
    """Let every task go as far as it can, over and over."""
    by_task: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for phase, source, to, waited in traffic.sent.tolist():
        by_task.setdefault((phase, source), []).append((to, waited))
    at, last = [0] * tasks, len(traffic.awaited)
    come: Counter[tuple[int, int]] = Counter()
    spoken = [False] * tasks
    moved = True
    while moved:
        moved = False
        for task in range(tasks):
            while at[task] < last:
                phase = at[task]
                if not spoken[task]:
                    for to, waited in by_task.get((phase, task), ()):
                        come[waited, to] += 1
                    spoken[task] = True
                if come[phase, task] < traffic.awaited[phase, task]:
                    break
                at[task], spoken[task], moved = phase + 1, False, True
    assert at == [last] * tasks


@COUNTS
@pytest.mark.parametrize(("pattern", "exchange"), WAYS)
def test_what_is_sent_in_a_phase_is_what_is_waited_for_in_it(
    pattern: str, exchange: str, counts: tuple[int, ...]
) -> None:
    for tasks in counts:
        check_books(said(tasks, pattern, 2, exchange=exchange), tasks)


@pytest.mark.parametrize(("pattern", "exchange"), WAYS)
def test_nobody_waits_for_ever(pattern: str, exchange: str) -> None:
    for tasks in (2, 3, 4, 5, 7, 8, 13, 16, 27, 34, 47):
        check_nobody_waits_for_ever(said(tasks, pattern, 2, exchange=exchange), tasks)


@examples(25)
@given(st.sampled_from(WAYS), st.integers(2, 400), st.integers(1, 4), st.integers(0, 2**63 - 1))
def test_the_books_balance_for_any_number_of_tasks(
    way: tuple[str, str], tasks: int, iterations: int, seed: int
) -> None:
    pattern, exchange = way
    if pattern == "all-to-all":
        tasks = min(tasks, 100)
    check_books(said(tasks, pattern, iterations, seed, exchange=exchange), tasks)


@pytest.mark.parametrize(("pattern", "exchange"), [way for way in WAYS if way[0] != "uniform"])
@pytest.mark.parametrize("tasks", [2, 9, 34, 64])
def test_every_iteration_is_like_the_first(pattern: str, exchange: str, tasks: int) -> None:
    once = said(tasks, pattern, exchange=exchange)
    often = said(tasks, pattern, ITERATIONS, exchange=exchange)
    assert len(often.awaited) == ITERATIONS * len(once.awaited) == ITERATIONS * once.phases
    for phase in range(len(often.awaited)):
        assert often.pairs(phase) == once.pairs(phase % once.phases)
    assert often.pairs() == times(once.pairs(), ITERATIONS)


@COUNTS
@pytest.mark.parametrize("pattern", PAIRED)
def test_pairwise_the_messages_are_the_same_and_a_phase_is_one_each_way(
    pattern: str, counts: tuple[int, ...]
) -> None:
    for tasks in counts:
        posted, paired = (said(tasks, pattern, exchange=how) for how in EXCHANGES)
        assert paired.pairs() == posted.pairs(), tasks
        for phase in range(paired.phases):
            pairs = paired.pairs(phase)
            for side in (0, 1):
                assert len({pair[side] for pair in pairs}) == len(pairs) == pairs.total()
            if pattern.startswith("halo"):
                assert set(pairs) == {(b, a) for a, b in pairs}, "an exchange"


@COUNTS
def test_an_fft_has_done_with_rows_before_it_begins_with_columns_pairwise_too(
    counts: tuple[int, ...],
) -> None:
    for tasks in counts:
        rows, columns = expected_on_grid("fft3d", tasks, near_cubic(tasks, 2))
        traffic = said(tasks, "fft3d", exchange="pairwise")
        spent = Pairs()
        for phase in range(traffic.phases):
            now = traffic.pairs(phase)
            assert not now or spent >= rows or now <= rows
            assert not (now & rows and now & columns)
            spent += now
        assert spent == rows + columns


def test_what_has_no_partners_is_the_same_pairwise() -> None:
    for pattern in set(PATTERNS) - set(PAIRED):
        posted, paired = (said(21, pattern, 2, exchange=how) for how in EXCHANGES)
        assert (posted.sent == paired.sent).all()
        assert posted.phases == paired.phases


# -- each of them


@COUNT
def test_all_to_all_is_every_ordered_pair(tasks: int) -> None:
    traffic = said(tasks, "all-to-all", ITERATIONS)
    assert traffic.pairs() == times(everybody(range(tasks)), ITERATIONS)
    first = traffic.sent[(traffic.sent[:, 0] == 0) & (traffic.sent[:, 1] == 1)][:, 2].tolist()
    assert first == [(1 + i) % tasks for i in range(1, tasks)], "beginning with the next"


@COUNT
def test_broadcast_is_the_root_to_all_and_incast_all_to_the_root(tasks: int) -> None:
    others = range(1, tasks)
    assert said(tasks, "broadcast").pairs() == Counter((0, other) for other in others)
    assert said(tasks, "incast").pairs() == Counter((other, 0) for other in others)


def parents(tasks: int) -> dict[int, int]:
    return {to: source for _, source, to, _ in said(tasks, "tree-broadcast").sent.tolist()}


@COUNT
def test_a_tree_broadcast_reaches_everybody_once_by_a_balanced_binary_tree(tasks: int) -> None:
    traffic = said(tasks, "tree-broadcast")
    assert len(traffic.sent) == tasks - 1
    parent = parents(tasks)
    assert sorted(parent) == list(range(1, tasks))
    assert max(Counter(parent.values()).values()) <= 2

    def depth(task: int) -> int:
        return 0 if task == 0 else 1 + depth(parent[task])

    depths = Counter(depth(task) for task in range(tasks))
    levels = math.floor(math.log2(tasks))
    assert max(depths) == levels
    assert all(depths[level] == 2**level for level in range(levels)), "all but the last are full"


def test_who_hands_a_broadcast_on_has_it_before() -> None:
    """A message is waited for in the phase before that in which its receiver sends."""
    traffic = said(40, "tree-broadcast", 2)
    for phase, _, _, waited in traffic.sent.tolist():
        assert waited == phase - 1
        assert phase % 2 == 1


def grids() -> Iterator[tuple[str, tuple[int, ...]]]:
    for pattern, dimensions in DIMENSIONS.items():
        two = [(1, 7), (7, 1), (2, 2), (3, 5), (5, 3), (8, 8), (2, 19)]
        three = [(1, 1, 2), (2, 2, 2), (3, 3, 3), (4, 3, 2), (2, 3, 4), (5, 1, 4), (3, 4, 5)]
        four = [(1, 1, 1, 3), (2, 2, 2, 2), (3, 1, 2, 4), (2, 3, 3, 2), (4, 1, 1, 2)]
        for sides in {2: two, 3: three, 4: four}[dimensions]:
            yield pattern, sides


def expected_on_grid(pattern: str, tasks: int, sides: tuple[int, ...]) -> list[Pairs]:
    """By phase."""
    where = {task: place(task, sides) for task in range(tasks)}
    assert len(set(where.values())) == tasks
    if pattern == "fft3d":
        phases = []
        for same in (1, 0):  # of a row y is the same, of a column x
            lanes: dict[int, list[int]] = {}
            for task, at in where.items():
                lanes.setdefault(at[same], []).append(task)
            phases.append(sum((everybody(lane) for lane in lanes.values()), Pairs()))
        return phases
    reach = 3 if pattern == "halo3d26" else 1
    near = Pairs()
    for a, here in where.items():
        for b, there in where.items():
            apart = [abs(i - j) for i, j in zip(here, there, strict=True)]
            if a != b and max(apart) == 1 and sum(apart) <= reach:
                near[a, b] = 1
    return [near]


@pytest.mark.parametrize(("pattern", "sides"), list(grids()))
def test_on_a_given_grid_neighbours_talk_and_it_does_not_wrap(
    pattern: str, sides: tuple[int, ...]
) -> None:
    tasks = math.prod(sides)
    traffic = said(tasks, pattern, grid=sides)
    expected = expected_on_grid(pattern, tasks, sides)
    assert [traffic.pairs(phase) for phase in range(traffic.phases)] == expected


@COUNTS
@pytest.mark.parametrize("pattern", ON_GRIDS)
def test_on_its_own_grid_neighbours_talk_though_the_last_layer_be_incomplete(
    pattern: str, counts: tuple[int, ...]
) -> None:
    for tasks in counts:
        traffic = said(tasks, pattern)
        expected = expected_on_grid(pattern, tasks, near_cubic(tasks, DIMENSIONS[pattern]))
        assert [traffic.pairs(phase) for phase in range(traffic.phases)] == expected, tasks


def test_inside_a_grid_there_are_4_6_and_26_neighbours() -> None:
    for pattern, sides, most in (
        ("halo2d", (3, 3), 4), ("halo3d", (3, 3, 3), 6), ("halo3d26", (3, 3, 3), 26),
        ("halo4d", (3, 3, 3, 3), 8),
    ):  # fmt: skip
        pairs = said(math.prod(sides), pattern, grid=sides).pairs()
        middle = math.prod(sides) // 2
        assert sum(source == middle for source, _ in pairs) == most
        corner = {"halo2d": 2, "halo3d": 3, "halo3d26": 7, "halo4d": 4}[pattern]
        assert sum(source == 0 for source, _ in pairs) == corner


@COUNT
def test_an_allreduce_leaves_everybody_with_every_contribution_once(tasks: int) -> None:
    """Who has what, as counts: sums are added, but in the last phase a result is handed over."""
    traffic = said(tasks, "allreduce")
    power = 2 ** math.floor(math.log2(tasks))
    assert traffic.phases == 2 + math.log2(power)
    has = np.eye(tasks, dtype=np.int64)
    for phase in range(traffic.phases):
        before = has.copy()
        pairs = traffic.pairs(phase)
        assert set(pairs.values()) <= {1}
        sources, targets = ([pair[i] for pair in pairs] for i in (0, 1))
        assert len(set(sources)) == len(sources)
        assert len(set(targets)) == len(targets)
        if phase in (0, traffic.phases - 1):
            assert len(pairs) == tasks - power, "what is beyond a power of two"
        else:
            assert len(pairs) == power
            assert set(pairs) == {(b, a) for a, b in pairs}, "an exchange"
            rank = {task: i for i, task in enumerate(sorted(sources))}
            apart = {abs(rank[a] - rank[b]) for a, b in pairs}
            assert apart == {2 ** (phase - 1)}, "doubling"
        for source, to in pairs:
            has[to] = before[source] if phase == traffic.phases - 1 else has[to] + before[source]
    assert (has == 1).all()


@COUNT
def test_a_random_ring_is_one_ring_both_ways(tasks: int) -> None:
    traffic = said(tasks, "random-ring", seed=tasks)
    after = {source: to for _, source, to, _ in traffic.sent[::2].tolist()}
    assert cycles(after) == [tasks]
    ways = Counter(after.items())
    ways.update((to, source) for source, to in after.items())
    assert traffic.pairs() == ways


@COUNT
def test_a_permutation_is_one_cycle(tasks: int) -> None:
    traffic = said(tasks, "permutation", seed=tasks)
    assert len(traffic.sent) == tasks
    assert cycles(dict(traffic.pairs().keys())) == [tasks]


@pytest.mark.parametrize("pattern", ["random-ring", "permutation", "uniform"])
def test_another_seed_is_another_order_and_the_same_the_same(pattern: str) -> None:
    traffic = [said(40, pattern, 2, seed=seed).pairs() for seed in (1, 1, 2)]
    assert traffic[0] == traffic[1] != traffic[2]


def test_two_jobs_of_one_run_have_rings_of_their_own() -> None:
    jobs = tuple(Job(30, pattern) for pattern in ("permutation", "permutation", "uniform"))
    friends = Workload(jobs, tasks_per_node=1).arrays(1, 0)["friends"]
    assert (friends[:30] != friends[30:60]).any()


def test_rings_of_three_are_equally_likely_either_way_round() -> None:
    ways = Counter(said(3, "permutation", seed=seed).pairs()[0, 1] for seed in range(400))
    assert abs(ways[1] - 200) < 5 * math.sqrt(400 / 4)


# -- uniform


@COUNTS
def test_a_uniform_task_sends_once_an_iteration_and_waits_only_at_the_end(
    counts: tuple[int, ...],
) -> None:
    for tasks in counts:
        traffic = said(tasks, "uniform", 5)
        assert len(traffic.awaited) == 6
        assert not traffic.awaited[:-1].any()
        each = Counter(map(tuple, traffic.sent[:, :2].tolist()))
        assert each == Counter((phase, task) for phase in range(5) for task in range(tasks))
        assert traffic.awaited[-1].sum() == 5 * tasks
        assert (traffic.sent[:, 3] == 5).all()


def draws(tasks: int, iterations: int, seed: int) -> Any:
    """By iteration and task: whom it sends to, counted from itself, 1 .. tasks - 1."""
    traffic = said(tasks, "uniform", iterations, seed)
    assert (traffic.sent[:, 0] == np.repeat(np.arange(iterations), tasks)).all()
    offset = (traffic.sent[:, 2] - traffic.sent[:, 1]) % tasks
    assert (offset > 0).all()
    return offset.reshape(iterations, tasks)


def too_far(counts: Any, cells: int) -> bool:
    """Is this no fair die? By chi-squared, at five standard deviations."""
    expected = counts.sum() / cells
    assert expected > 5
    chi2 = ((counts - expected) ** 2 / expected).sum()
    return bool(abs(chi2 - (cells - 1)) > 5 * math.sqrt(2 * (cells - 1)))


def test_uniform_is_uniform_from_every_task_and_to_every_task() -> None:
    tasks, iterations = 20, 2000
    offset = draws(tasks, iterations, 7)
    per_task = np.array([np.bincount(offset[:, t], minlength=tasks)[1:] for t in range(tasks)])
    assert not too_far(per_task, per_task.size)
    come = said(tasks, "uniform", iterations, 7).awaited[-1]
    assert not too_far(come, tasks)


def test_uniform_draws_depend_neither_on_those_before_nor_on_other_tasks() -> None:
    tasks, iterations = 6, 3000
    offset = draws(tasks, iterations, 3) - 1
    sides = tasks - 1
    before = np.bincount((offset[1:] * sides + offset[:-1]).ravel(), minlength=sides**2)
    assert not too_far(before, sides**2)
    beside = np.bincount((offset[:, 1:] * sides + offset[:, :-1]).ravel(), minlength=sides**2)
    assert not too_far(beside, sides**2)


# -- near-cubic grids


def surface(box: tuple[int, ...]) -> int:
    return sum(math.prod(box) // side for side in box)


def all_boxes(tasks: int, dimensions: int) -> Iterator[tuple[int, ...]]:
    """Sides ascending, that hold the tasks; the last no longer than it must be."""
    for a in range(1, tasks + 1):
        if dimensions == 2:
            yield a, max(a, math.ceil(tasks / a))
        else:
            for b in range(a, max(a, math.ceil(tasks / a)) + 1):
                yield a, b, max(b, math.ceil(tasks / (a * b)))


@pytest.mark.parametrize(
    ("tasks", "sides"),
    [
        (1, (1, 1, 1)), (2, (1, 1, 2)), (8, (2, 2, 2)), (27, (3, 3, 3)), (34, (3, 3, 4)),
        (36, (3, 3, 4)), (64, (4, 4, 4)), (128, (4, 4, 8)), (1000, (10, 10, 10)),
        (9, (3, 3)), (12, (3, 4)), (16, (4, 4)), (72, (8, 9)), (128, (8, 16)), (127, (10, 13)),
    ],
)  # fmt: skip
def test_grids_one_would_draw(tasks: int, sides: tuple[int, ...]) -> None:
    assert near_cubic(tasks, len(sides)) == sides


@pytest.mark.parametrize("dimensions", [2, 3])
def test_a_near_cubic_grid_has_the_least_surface_or_is_full_and_nearly_so(dimensions: int) -> None:
    for tasks in range(1, 130):
        sides = near_cubic(tasks, dimensions)
        least = min(map(surface, all_boxes(tasks, dimensions)))
        full = [box for box in all_boxes(tasks, dimensions) if math.prod(box) == tasks]
        best_full = min(map(surface, full))
        if 10 * best_full <= 11 * least:
            assert math.prod(sides) == tasks
            assert surface(sides) == best_full
        else:
            assert surface(sides) == least


@given(st.integers(1, 20_000), st.sampled_from([2, 3]))
def test_a_near_cubic_grid_holds_all_and_lacks_some_only_in_its_last_layer(
    tasks: int, dimensions: int
) -> None:
    sides = near_cubic(tasks, dimensions)
    assert len(sides) == dimensions
    assert list(sides) == sorted(sides)
    assert math.prod(sides) >= tasks
    assert math.prod(sides) - tasks < math.prod(sides[:-1])


@given(st.integers(1, 25), st.sampled_from([2, 3]))
def test_a_cube_is_a_cube(side: int, dimensions: int) -> None:
    assert near_cubic(side**dimensions, dimensions) == (side,) * dimensions
