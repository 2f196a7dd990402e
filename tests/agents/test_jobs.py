"""Jobs on a machine: how long they take, where they go, whom they wait for."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machines import SMALL, US
from test_patterns import everybody, expected_on_grid, near_cubic
from workloads import (
    HOST,
    LAUNCH,
    MATCH,
    PER_GROUP,
    SEND,
    SHORT,
    Ran,
    go,
    network,
    took,
)

from odonata.agents.commands import places_of
from odonata.agents.layout import DELIVERED_BYTES, DUE, GENERATED, GENERATED_BYTES
from odonata.agents.network import Network
from odonata.agents.patterns import DIMENSIONS, PAIRED, PATTERNS
from odonata.jobs.record import JobRecord
from odonata.jobs.request import EXCHANGES, Job
from odonata.results.performance import performance
from pdes.errors import Refused
from policies.allocation import ALLOCATIONS, allocation
from topology.presets import PRESETS

HERE = Path(__file__).parent.parent


@pytest.fixture
def placed() -> Iterator[Callable[..., str]]:
    """An allocation that gives a job the first of some lists of nodes that has its size and is all
    idle."""
    choices: list[Any] = []

    @allocation("placed", about="a test's", source="nobody's")
    def choose(sight: Any, job: Any, rng: Any) -> Any:
        return next(c for c in choices if len(c) == job.nodes and sight.idle[list(c)].all())

    def on(*lists: Any) -> str:
        choices[:] = lists
        return "placed"

    yield on
    del ALLOCATIONS["placed"]


# -- nobody in the way


def links_between(source: int, goal: int) -> list[Any]:
    m = SMALL
    (g0, r0), (g1, r1) = ((n // PER_GROUP, n % PER_GROUP // m.nodes) for n in (source, goal))
    if g0 == g1:
        return [m.terminal, *[m.local] * (r0 != r1), m.terminal]
    gate, landing = (int(m.gates()[a, b, 0]) // m.global_links for a, b in ((g0, g1), (g1, g0)))
    across = [*[m.local] * (gate != r0), m.global_, *[m.local] * (landing != r1)]
    return [m.terminal, *across, m.terminal]


def flight(model: Network, source: int, goal: int, size: int) -> int:
    """From wanting the link to the last byte: all latencies and pipelines, and every packet once,
    on the slowest link."""
    links = links_between(source, goal)
    slowest = min(links, key=lambda link: link.bandwidth)
    whole, rest = divmod(size, model.packet_bytes)
    packets = [model.packet_bytes] * whole + [rest] * (rest > 0)
    return (
        sum(link.latency_ps for link in links)
        + (len(links) - 1) * model.delay_ps
        + sum(model.serialisation(slowest, packet) for packet in packets)
    )


def one_of_each_way() -> list[int]:
    """Goals from node 0: same router, same group, and g, lg, gl, lgl to others."""
    ways = {tuple(links_between(0, goal)): goal for goal in range(SMALL.n_nodes - 1, 0, -1)}
    return sorted(ways.values())


@pytest.mark.parametrize("size", [1, 512, 513, 3000])
def test_one_message_takes_exactly_its_formula(placed: Callable[..., str], size: int) -> None:
    goals = one_of_each_way()
    assert len(goals) == 6
    for goal in goals:
        model = network(Job(2, "broadcast", size), allocation=placed([0, goal]))
        (job,) = go(model).jobs
        assert job.start_ps == LAUNCH
        assert job.run_time_ps == SEND + flight(model, 0, goal, size) + MATCH + HOST


def test_within_a_node_a_message_does_not_touch_the_network() -> None:
    ran = go(network(Job(1, "broadcast", 10**6), tasks_per_node=2))
    assert ran.jobs[0].run_time_ps == SEND + MATCH + HOST
    assert not ran.result.outcome["counters"].any()
    assert not ran.result.outcome["nodes"][:, [GENERATED, GENERATED_BYTES, DELIVERED_BYTES]].any()


def test_of_many_tasks_on_two_nodes_only_what_crosses_is_carried() -> None:
    """8 × 8 pairs in each direction; the other 56 stay at home."""
    ran = go(network(Job(2, "all-to-all", 700), tasks_per_node=8))
    nodes = ran.result.outcome["nodes"]
    assert nodes[:2, GENERATED].tolist() == [64, 64]
    assert nodes[:2, DELIVERED_BYTES].tolist() == [64 * 700] * 2
    assert not nodes[2:].any()


@pytest.mark.parametrize("pattern", ["all-to-all", "allreduce", "permutation"])
@pytest.mark.parametrize(("iterations", "compute"), [(1, 0), (7, 0), (1, 123_457), (6, 123_457)])
def test_iterations_and_computing_add_up_for_a_pair(
    placed: Callable[..., str], pattern: str, iterations: int, compute: int
) -> None:
    where, goal = placed([0, 40]), 40
    job = Job(2, pattern, 800, iterations=iterations, compute_ps=compute)
    model = network(job, allocation=where, threshold=1e6)
    there, back = (flight(model, *ends, 800) for ends in ((0, goal), (goal, 0)))
    if iterations > 1:
        assert there == back, "or the one waits for the other"
    each = compute + SEND + max(there, back) + MATCH + HOST
    assert go(model).jobs[0].run_time_ps == iterations * each


def test_pairwise_each_partner_is_waited_for_before_the_next() -> None:
    """Four nodes, each three steps away from having spoken to all."""
    job = Job(4, "all-to-all", 100, exchange="pairwise")
    model = network(job)
    (paired,) = took(job)
    (posted,) = took(dataclasses.replace(job, exchange="posted"))
    step = {(a, b): SEND + flight(model, a, b, 100) + MATCH + HOST
            for a in range(4) for b in range(4) if a != b}  # fmt: skip
    assert paired is not None
    assert posted is not None
    assert 3 * min(step.values()) <= paired <= 3 * max(step.values())
    assert posted < paired


# -- the NIC's part


@pytest.mark.parametrize("send", [30_000, 400_000, 2_000_000])
def test_a_task_has_one_message_in_its_nic_at_a_time(send: int) -> None:
    """The root's messages want the link one `send` after the other."""
    model = network(Job(12, "broadcast", 100), send_ps=send, host_ps=5 * US)
    ends = [i * send + flight(model, 0, i, 100) + MATCH + 5 * US for i in range(1, 12)]
    assert go(model).jobs[0].run_time_ps == max(ends)


@pytest.mark.parametrize("match", [500_000, 3_000_000])
def test_a_nic_matches_one_message_after_the_other(match: int) -> None:
    model = network(Job(12, "incast", 100), match_ps=match)
    first = SEND + min(flight(model, i, 0, 100) for i in range(1, 12))
    assert go(model).jobs[0].run_time_ps == first + 11 * match + HOST


def test_handing_over_delays_but_holds_up_nobody() -> None:
    quick, slow = (took(Job(12, "incast", 100), host_ps=host)[0] for host in (0, 5_000_000))
    assert quick is not None
    assert slow == quick + 5_000_000


def test_a_message_of_many_packets_is_matched_once(placed: Callable[..., str]) -> None:
    model = network(Job(2, "broadcast", 8 * 512), match_ps=10 * US, allocation=placed([0, 9]))
    expected = SEND + flight(model, 0, 9, 8 * 512) + 10 * US + HOST
    assert go(model).jobs[0].run_time_ps == expected


def test_tasks_of_one_node_share_its_link_and_its_matching_but_not_their_sending() -> None:
    """Two nodes of two tasks; each sends to its opposite there, then to the other here. Both of the
    first go through the NIC at the same time, and one of them waits for the link."""
    job = Job(2, "halo2d", 512, grid=(2, 2), mapping=(0, 2, 1, 3))
    model = network(job, tasks_per_node=2)
    first = 2 * SEND  # to come is what stays in the node: it takes no time but this
    assert first + MATCH > SEND + model.serialisation(SMALL.terminal, 512) + SEND
    assert go(model).jobs[0].run_time_ps == first + 4 * MATCH + HOST
    unmatched = network(job, tasks_per_node=2, match_ps=0)
    second = SEND + flight(model, 0, 1, 512) + model.serialisation(SMALL.terminal, 512)
    assert go(unmatched).jobs[0].run_time_ps == second + HOST


def test_messages_of_one_phase_after_another_take_one_send_each() -> None:
    send, often = 2_000_000, 5
    model = network(Job(2, "broadcast", 100, iterations=often), send_ps=send)
    expected = often * send + flight(model, 0, 1, 100) + MATCH + HOST
    assert go(model).jobs[0].run_time_ps == expected


def test_without_any_overhead_two_tasks_of_a_node_hear_each_other() -> None:
    (job,) = go(network(Job(1, "all-to-all"), tasks_per_node=2, send_ps=0)).jobs
    assert job.run_time_ps == 2 * MATCH + HOST  # two messages come, and one NIC matches both


def test_without_any_overhead_at_all_different_nodes_hear_each_other() -> None:
    model = network(Job(2, "broadcast", 100), send_ps=0, match_ps=0, host_ps=0, launch_ps=0)
    (job,) = go(model).jobs
    assert (job.start_ps, job.end_ps) == (0, flight(model, 0, 1, 100))


# -- what goes where


@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize(
    ("pattern", "exchange"),
    [*((name, how) for name in PAIRED for how in EXCHANGES), ("broadcast", "posted"),
     ("incast", "posted")],
)  # fmt: skip
def test_bytes_between_groups_are_those_of_the_definition(
    pattern: str, exchange: str, each: int
) -> None:
    nodes, size, iterations = 27, 600, 2
    tasks = nodes * each
    pairs = {
        "all-to-all": lambda: everybody(range(tasks)),
        "broadcast": lambda: Counter((0, other) for other in range(1, tasks)),
        "incast": lambda: Counter((other, 0) for other in range(1, tasks)),
    }
    if pattern in DIMENSIONS:
        sides = near_cubic(tasks, DIMENSIONS[pattern])
        expected = sum(expected_on_grid(pattern, tasks, sides), Counter[tuple[int, int]]())
    else:
        expected = pairs[pattern]()
    job = Job(nodes, pattern, size, iterations, exchange)
    ran = go(network(job, tasks_per_node=each))
    between = np.zeros((SMALL.groups, SMALL.groups), np.int64)
    made = np.zeros(SMALL.n_nodes, np.int64)
    for (a, b), count in expected.items():
        if a // each != b // each:
            between[b // each // PER_GROUP, a // each // PER_GROUP] += count * size * iterations
            made[a // each] += count * size * iterations
    assert (ran.state.received == between).all()
    assert (ran.result.outcome["nodes"][:, GENERATED_BYTES] == made).all()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_comes_to_an_end_and_is_whole(pattern: str) -> None:
    tasks, size = 50, 1300
    ran = go(network(Job(25, pattern, size, iterations=3, mapping=tuple(range(50))[::-1]),
                     tasks_per_node=2, allocation="rdn"))  # fmt: skip
    (job,) = ran.jobs
    assert job.end_ps is not None
    assert job.end_ps > job.start_ps
    nodes = ran.result.outcome["nodes"].sum(axis=0)
    assert nodes[GENERATED_BYTES] == nodes[DELIVERED_BYTES] == size * nodes[GENERATED]
    counts = {"all-to-all": 49 * 50, "broadcast": 49, "tree-broadcast": 49, "incast": 49,
              "uniform": 50, "permutation": 50, "random-ring": 100,
              "allreduce": 32 * 5 + 2 * (50 - 32)}  # fmt: skip
    if pattern in counts:
        assert nodes[GENERATED] <= 3 * counts[pattern]
        assert (
            nodes[GENERATED] >= 3 * counts[pattern] * (tasks - 12) // tasks
            or pattern == "allreduce"
        )


def test_two_jobs_over_one_cable_take_longer_than_alone(placed: Callable[..., str]) -> None:
    """Two groups, one cable, and no way around it."""
    size, pair = 64 * 1024, dataclasses.replace(SMALL, groups=2, links_per_pair=1)
    where, job = placed([0, 8], [2, 10]), Job(2, "broadcast", size)
    (alone,) = took(job, allocation=where, machine=pair)
    both = took(job, job, allocation=where, machine=pair)
    assert alone is not None
    assert all(time is not None and time > 1.5 * alone for time in both)
    cable = size // 512 * network(job).serialisation(SMALL.global_, 512)
    assert max(time or 0 for time in both) > 2 * cable
    apart = placed([0, 8], [4, 6])
    assert took(job, job, allocation=apart, machine=pair)[0] == alone


def test_a_large_machine_runs_jobs_of_several_groups() -> None:
    machine = PRESETS["levelspread-272"].machine
    jobs = [Job(100, "halo3d", 2000), Job(100, "allreduce", 100), Job(72, "uniform", iterations=4)]
    ran = go(network(*jobs, machine=machine, allocation="level-spread", tasks_per_node=2))
    assert all(job.start_ps == LAUNCH and job.end_ps for job in ran.jobs)
    labels = np.concatenate([job.labels for job in ran.jobs])
    assert sorted(labels.tolist()) == list(range(272))
    reported = performance(ran.network, ran.result)
    assert reported.undelivered_packets == 0
    assert reported.measured_packets == reported.packets > 0


# -- where tasks go


def tasks_at(ran: Ran) -> list[tuple[int, int]]:
    """Returns the node and slot of every task, as its group knows them."""
    where, slot = ran.state.places >> 7, ran.state.places & 127
    group, router, node = where >> 18, (where >> 8) & 1023, where & 255
    label = (group * SMALL.routers + router) * SMALL.nodes + node
    return list(zip(label.tolist(), slot.tolist(), strict=True))


def mapped(mapping: Any, seed: int = 1, each: int = 2, nodes: int = 9, jobs: int = 1) -> Ran:
    model = network(*[Job(nodes, "incast", 100, mapping="linear")] * jobs, tasks_per_node=each,
                    allocation="rdn", seed=seed)  # fmt: skip
    given = tuple(dataclasses.replace(job, mapping=mapping) for job in model.workload.jobs)
    workload = dataclasses.replace(model.workload, jobs=given)
    return go(dataclasses.replace(model, workload=workload))


def test_a_linear_mapping_follows_the_order_in_which_nodes_were_given() -> None:
    ran = mapped("linear")
    (job,) = ran.jobs
    assert tasks_at(ran) == [(node, slot) for node in job.labels for slot in range(2)]
    assert ran.result.outcome["nodes"][job.labels[0], DELIVERED_BYTES] == 1600


def test_a_given_mapping_says_the_place_of_each_task() -> None:
    mapping = (17, 0, 3, 2, 1, 16, 15, 4, 5, 6, 7, 8, 9, 14, 13, 12, 11, 10)
    ran = mapped(mapping)
    (job,) = ran.jobs
    assert tasks_at(ran) == [(job.labels[place // 2], place % 2) for place in mapping]
    received = ran.result.outcome["nodes"][:, DELIVERED_BYTES]
    assert received[job.labels[8]] == received.sum() == 1600


def test_a_random_mapping_fills_the_same_places_in_another_order() -> None:
    ran = mapped("random")
    (job,) = ran.jobs
    linear = [(node, slot) for node in job.labels for slot in range(2)]
    assert tasks_at(ran) != linear
    assert sorted(tasks_at(ran)) == sorted(linear)


def test_every_job_is_mapped_by_chance_of_its_own() -> None:
    workload = mapped("random", jobs=2).network.workload
    assert places_of(workload, 1, 0).tolist() != places_of(workload, 1, 1).tolist()


def test_another_seed_maps_otherwise_and_the_same_seed_gives_the_same_bits() -> None:
    one, again, other = (mapped("random", seed) for seed in (1, 1, 2))
    assert tasks_at(one) == tasks_at(again)
    assert one.result.digest == again.result.digest
    assert one.jobs == again.jobs
    assert tasks_at(one) != tasks_at(other)
    assert one.result.digest != other.result.digest
    order = [tuple(places_of(one.network.workload, seed, 0).tolist()) for seed in range(20)]
    assert len(set(order)) == 20


# -- what is reported


def test_records_say_what_is_known_so_far() -> None:
    jobs = (Job(40, name="big", **SHORT), Job(72, arrival_ps=7, **SHORT))
    before = go(network(*jobs), end=1).jobs
    assert before[0] == JobRecord(0, "big", 40, "permutation", 0, LAUNCH, None, tuple(range(40)))
    assert before[1] == JobRecord(1, "job 1", 72, "permutation", 7, None, None, ())
    assert (before[0].run_time_ps, before[0].waiting_ps) == (None, LAUNCH)
    assert (before[1].run_time_ps, before[1].waiting_ps) == (None, None)
    after = go(network(*jobs)).jobs
    assert [len(job.labels) for job in after] == [40, 72]
    assert all(job.end_ps for job in after)


def test_a_run_without_an_end_has_come_to_the_end_of_its_last_job() -> None:
    ran = go(network(Job(72, **SHORT), Job(72, arrival_ps=50 * US, **SHORT)))
    assert ran.result.completed
    assert ran.result.time_ps == max(job.end_ps or 0 for job in ran.jobs)
    longer = go(ran.network, end=10**9)
    assert longer.result.digest == ran.result.digest
    assert longer.jobs == ran.jobs


# -- one answer


def mixed(**given: Any) -> Network:
    """Small enough to be run without the compiler, with every check after every event."""
    jobs = (
        Job(3, "allreduce", 700, iterations=2, compute_ps=5000, mapping=(5, 0, 4, 1, 3, 2)),
        Job(70, "broadcast", 100),
        Job(9, "halo3d", 300, arrival_ps=3 * US),
        Job(2, "uniform", 40, iterations=3, arrival_ps=3 * US),
    )
    return network(
        *jobs, **{"tasks_per_node": 2, "allocation": "rdn", "order": "small-first"} | given
    )


@pytest.mark.long
def test_without_the_compiler_the_answer_is_the_same_and_the_invariants_hold(
    python: Callable[..., str],
) -> None:
    code = (
        f"import sys, json; sys.path[:0] = [{str(HERE)!r}, {str(HERE / 'agents')!r}]\n"
        "import test_jobs as t\nfrom workloads import *\n"
        "r = run(t.mixed(), None, debug=True)\n"
        "jobs = job_records(t.mixed(), r)\n"
        "print(json.dumps([r.digest, [(job.start_ps, job.end_ps) for job in jobs]]))"
    )
    plain = json.loads(python(code))
    ran = go(mixed())
    times = [[job.start_ps, job.end_ps] for job in ran.jobs]
    assert plain == [ran.result.digest, times]


@pytest.mark.parametrize("cut", [1_000_000, 2_300_000, 3_000_000, 4_700_000])
def test_a_run_resumed_from_a_checkpoint_ends_the_same(cut: int, tmp_path: Path) -> None:
    whole = go(mixed())
    go(mixed(), end=cut + 7, checkpoint_dir=tmp_path, checkpoint_every=cut)
    resumed = go(mixed(), checkpoint_dir=tmp_path, resume=tmp_path)
    assert resumed.result.resumed_ps == cut
    assert resumed.result.digest == whole.result.digest
    assert resumed.jobs == whole.jobs
    assert resumed.result.time_ps == whole.result.time_ps


def test_checkpoints_in_passing_change_nothing(tmp_path: Path) -> None:
    often = go(mixed(), checkpoint_dir=tmp_path, checkpoint_every=999_983)
    assert often.result.digest == go(mixed()).result.digest


def test_the_checkpoint_of_another_workload_is_refused(tmp_path: Path) -> None:
    go(mixed(), end=3 * US, checkpoint_dir=tmp_path, checkpoint_every=2 * US)
    with pytest.raises(Refused, match=r"workload\.order"):
        go(mixed(order="fcfs"), resume=tmp_path)


@pytest.mark.parametrize(
    "given",
    [{"order": "large-first"}, {"allocation": "simple"}, {"seed": 2}, {"match_ps": MATCH + 1}],
)
def test_the_digest_tells_workloads_apart(given: dict[str, Any]) -> None:
    assert go(mixed(**given)).result.digest != go(mixed()).result.digest


@pytest.mark.parametrize(
    ("job", "given", "after"),
    [
        (Job(2, "uniform", 100 * 512, iterations=65536), {}, 2 * US),
        (Job(2, "broadcast", 1, iterations=65540), {"send_ps": 0, "match_ps": 10**9}, 200 * US),
    ],
    ids=["all-for-the-last-phase", "a-slow-receiver"],
)
def test_nobody_takes_what_is_for_65536_phases_later(
    job: Job, given: dict[str, int], after: int
) -> None:
    """Looked at while the receiver is in its first phase."""
    ran = go(network(job, **given), end=LAUNCH + after)
    assert (ran.state.slots[:, :, DUE] >= 0).all()
