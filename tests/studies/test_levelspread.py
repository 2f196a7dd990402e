"""The Level-Spread study: which simulations it has, what is kept of them, and what they say."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE, clean_environment, command
from hypothesis import given
from hypothesis import strategies as st

from odonata.results.statistics import interval
from odonata.studies import levelspread
from odonata.studies.levelspread import LevelSpread, figures, measures
from odonata.studies.levelspread.cases import (
    BASELINES,
    JOKANOVIC,
    LEVEL_SPREAD,
    LONG_KB,
    LOWER,
    MACHINE,
    PARTS,
    PATTERNS,
    POLICIES,
    PUBLISHED,
    RATIOS,
    LevelSpreadPlan,
    cases,
    fitting,
    heterogeneous,
    homogeneous,
    motivation,
    nodes_of,
    parse_change,
    random_kinds,
    random_workload,
)
from odonata.studies.levelspread.simulation import (
    CLASSES,
    COUNTS,
    LARGE,
    SMALL,
    Jobs,
    LevelSpreadOutcome,
    Point,
    machine_of,
    network_of,
    simulate,
)
from odonata.study import store
from odonata.study.contract import Claim
from odonata.study.filling import Agenda, fill
from odonata.study.report import report
from odonata.study.store import Answer, from_line, to_line
from pdes.checksum import with_checksum
from pdes.errors import Refused
from pdes.signals import StopSignals

Run = Callable[..., subprocess.CompletedProcess[str]]

STUDY = LevelSpread()
TINY = STUDY.ask(workloads=2, repeat=2)


def outcome(*times: tuple[int, ...]) -> LevelSpreadOutcome:
    five = (0.0, 1.0, 2.0, 3.0, 4.0)
    return LevelSpreadOutcome(
        times, {kind: dict.fromkeys(COUNTS, five) for kind in CLASSES}, 1, "d", 0.5
    )


def invent(point: Point) -> LevelSpreadOutcome:
    """An outcome that only the point decides."""
    number = int(point.key[:4], 16) + 1
    return outcome(*((number * (1 + i),) * k.count for i, k in enumerate(point.kinds)))


def alike(
    asked: LevelSpreadPlan, times: dict[str, tuple[int, int]], **how: Any
) -> dict[str, LevelSpreadOutcome]:
    """Every random workload alike: by policy, the time of small and of large jobs."""
    return {
        random_workload(asked, which, policy, **how).key: outcome((small,), (large,))
        for which in range(asked.workloads)
        for policy, (small, large) in times.items()
    }


# -- which simulations


@given(st.integers(0, 2**62 - 1), st.integers(0, 10**6), st.sampled_from([None, *PATTERNS]))
def test_random_workloads_obey_the_restrictions(seed: int, which: int, alone: str | None) -> None:
    small, large = random_kinds(seed, which, alone)
    assert 2 <= small.nodes <= 16 < 17 <= large.nodes <= 136
    assert small.count >= 1
    assert large.count >= 1
    assert small.count * small.nodes + large.count * large.nodes <= nodes_of(MACHINE) == 272
    assert {small.message_bytes, large.message_bytes} == {1024}
    assert {small.pattern, large.pattern} <= ({alone} if alone else set(PATTERNS))
    assert random_kinds(seed, which, alone) == (small, large)


def test_random_workloads_are_of_all_sizes_and_patterns() -> None:
    kinds = [random_kinds(1, which) for which in range(1000)]
    assert {small.nodes for small, _ in kinds} == set(range(2, 17))
    assert len({large.nodes for _, large in kinds}) > 110
    assert {(s.pattern, g.pattern) for s, g in kinds} == {(a, b) for a in PATTERNS
                                                          for b in PATTERNS}  # fmt: skip
    used = [s.count * s.nodes + g.count * g.nodes for s, g in kinds]
    assert min(used) < 60
    assert max(used) >= 270


def test_nine_tenths_of_a_machine_are_as_many_jobs_as_fit() -> None:
    assert fitting("levelspread-1056", 16) == 59  # the thesis's own example
    assert fitting(MACHINE, 16) == 15
    assert fitting(MACHINE, 64) == 3
    assert fitting(MACHINE, 16 + 64) == 3
    assert [fitting(MACHINE, nodes, LOWER) for nodes in (16, 64, 16 + 64)] == [11, 2, 2]
    quarter = homogeneous(TINY, 68, "fft3d", 1.0, "simple")[0].kinds
    assert quarter == (Jobs(4, 68, "fft3d"),)


def test_every_part_has_the_points_of_its_figures() -> None:
    asked = STUDY.ask(workloads=20, repeat=3)
    count = {part: len(cases(replace(asked, parts=(part,)))) for part in PARTS}
    cells = 6 * 8 * 3
    assert count == {
        "motivation": 2 * 6 * 2 * 3,
        "homogeneous": (2 * 3 + 3 + 3) * cells,
        "heterogeneous": (3 + 3 + 5 - 1) * cells,  # 1 KB at a ratio of 1 is in two figures
        "random": 20 * 9,
        "order": 20 * 9,
        "jokanovic": 20 * 2 * 3,
        "patterns": 2 * 6 * 8,
        "utilisation": (2 * 3 + 3 + 3) * cells,
        "large-messages": 2 * 3 * cells,  # of which those of 1 KB are in figures 3.4 and 3.7
    }
    every = cases(asked)
    shared = 6 * 2 * 3  # four quarters of the small machine are the large jobs of figure 3.2
    published = 20 * 2  # only the part `jokanovic` has it
    short = count["large-messages"] // 2
    assert len(every) == sum(count.values()) - count["jokanovic"] + published - shared - short
    assert len({point.key for point in every}) == len(every)
    assert {point.allocation for point in every} == {*POLICIES, JOKANOVIC, PUBLISHED}
    assert {point.ratio for point in every} == set(RATIOS)


def test_the_study_lists_its_parts() -> None:
    assert tuple(PARTS) == levelspread.PARTS
    assert STUDY.ask().parts == levelspread.PARTS
    assert STUDY.ask(part="order").parts == ("order",)


def test_long_messages_are_in_all_jobs_of_a_workload() -> None:
    long = {point for point in cases(STUDY.ask(repeat=1, part="large-messages"))
            if point.kinds[0].message_bytes > 1024}  # fmt: skip
    assert {kind.message_bytes for point in long for kind in point.kinds} == {LONG_KB * 1024}
    usual = {replace(point, kinds=tuple(replace(kind, message_bytes=1024) for kind in point.kinds))
             for point in long}  # fmt: skip
    assert usual <= set(cases(STUDY.ask(repeat=1, part="homogeneous"))) | set(
        cases(STUDY.ask(repeat=1, part="heterogeneous"))
    )
    few, many = (cases(STUDY.ask(repeat=n, part="large-messages")) for n in (3, 10))
    assert few == many


def test_repetitions_differ_in_the_seed_and_policies_do_not() -> None:
    seeds = [point.seed for point in heterogeneous(TINY, "fft3d", "rdn")]
    assert seeds == [1, 2]
    assert [point.seed for point in heterogeneous(TINY, "fft3d", "simple")] == seeds
    ours, theirs = (random_workload(TINY, 1, policy) for policy in (LEVEL_SPREAD, "rdn"))
    assert replace(ours, allocation="rdn") == theirs
    late = random_workload(TINY, 1, "rdn", large_first=True)
    assert replace(theirs, order="large-first") == late
    assert [point.seed for point in motivation(replace(TINY, seed=9), True, "fft3d", "rdg")] == [
        9, 10
    ]  # fmt: skip


def test_a_key_depends_on_everything_that_is_simulated_and_on_nothing_else() -> None:
    point = Point((Jobs(3, 16, "fft3d"),), "simple", 1)
    changes: list[dict[str, Any]] = [
        {"kinds": (Jobs(4, 16, "fft3d"),)}, {"kinds": (Jobs(3, 16, "fft3d", 2048),)},
        {"allocation": "rdn"}, {"seed": 2}, {"machine": "levelspread-528"}, {"ratio": 4.0},
        {"order": "large-first"}, {"mapping": "linear"}, {"iterations": 2}, {"threshold": 1.0},
        {"packet_bytes": 2048}, {"buffer_bytes": 28672}, {"terminal": 2.0}, {"delay_ps": 1},
        {"routing": "minimal"}, {"exchange": "posted"}, {"broadcast": "broadcast"},
        {"router": "merlin"}, {"router": "booksim"}, {"host": "sst"}, {"host": "firefly"},
        {"crossbar": 1.0}, {"crossbar": 2.0}, {"sight": "output"}, {"sight": "far"},
        {"detours": True}, {"detours": False}, {"broadcast_factor": 8},
    ]  # fmt: skip
    keys = {replace(point, **change).key for change in changes}
    assert len(keys | {point.key}) == len(changes) + 1
    assert replace(point).key == pickle.loads(pickle.dumps(point)).key == point.key
    program = ("from odonata.studies.levelspread.simulation import Jobs, Point; "
               "print(Point((Jobs(3, 16, 'fft3d'),), 'simple', 1).key)")  # fmt: skip
    again = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                           env=clean_environment(), check=True)  # fmt: skip
    assert again.stdout.strip() == point.key


def test_a_point_makes_the_machine_and_the_jobs_it_says() -> None:
    point = Point((Jobs(2, 16, "halo2d"), Jobs(1, 64, "all-to-all", 4096)), "rrn", 5, ratio=0.25,
                  terminal=2.0, order="large-first")  # fmt: skip
    machine = machine_of(point)
    assert (
        machine.global_.bandwidth == machine.local.bandwidth / 4 == machine.terminal.bandwidth / 8
    )
    network = network_of(point)
    assert [job.nodes for job in network.workload.jobs] == [16, 16, 64]
    assert [job.message_bytes for job in network.workload.jobs] == [1024, 1024, 4096]
    assert (network.workload.allocation, network.workload.order) == ("rrn", "large-first")
    assert (network.seed, network.routing, network.packet_bytes) == (5, "adaptive", 1024)
    assert {job.exchange for job in network.workload.jobs} == {"pairwise"}
    with pytest.raises(Refused, match="machine = 'nowhere'"):
        machine_of(replace(point, machine="nowhere"))


def test_a_point_has_the_router_and_the_crossbar_of_the_authors_scripts() -> None:
    point = Point((Jobs(1, 16, "halo2d"),), "rdn", 1, router="merlin", buffer_bytes=20_000)
    network = network_of(point)
    assert (network.crossbar, network.output_buffer, network.credits) == (1.0, 20_000, "head")
    assert (network.sight, network.detours) == ("output", True)
    for ratio, crossbar in ((0.25, 1.0), (1.0, 1.0), (4.0, 4.0)):  # the fastest link's rate
        assert network_of(replace(point, ratio=ratio)).crossbar == crossbar
    own = network_of(replace(point, ratio=4.0, crossbar=2.0, sight="far", detours=False))
    assert (own.crossbar, own.sight, own.detours) == (2.0, "far", False)
    assert network_of(replace(point, router="ideal")).crossbar is None
    with pytest.raises(Refused, match="router = 'cisco': one of ideal, merlin, booksim"):
        network_of(replace(point, router="cisco"))


def test_a_host_charges_for_a_message_what_its_name_says() -> None:
    point = Point((Jobs(1, 4, "halo2d", 1000),), "rdn", 1)

    def costs(host: str) -> tuple[int, int, int]:
        load = network_of(replace(point, host=host)).workload
        assert load is not None
        assert load.receive_copy is None  # free, in the authors' parameters
        return load.preparing_ps(1000), load.match_ps, load.handing_ps(1000)

    assert costs("none") == (50_000, 100_000, 0)
    assert costs("sst") == (50_000 + 130_000 + 344_000, 150_000, 100_000)
    assert costs("firefly") == (50_000 + 321_000 + 344_000, 100_000, 340_000)
    with pytest.raises(Refused, match="host = 'free': one of none, sst, firefly"):
        network_of(replace(point, host="free"))


def test_only_the_messages_of_a_broadcast_are_larger_by_its_factor() -> None:
    kinds = (Jobs(1, 4, "broadcast"), Jobs(1, 20, "halo2d", 10 * 1024))
    load = network_of(Point(kinds, "rdn", 1, broadcast_factor=8)).workload
    assert load is not None
    assert [job.message_bytes for job in load.jobs] == [8 * 1024, 10 * 1024]


def test_messages_of_one_packet_take_as_long_whatever_larger_packets_there_could_be() -> None:
    point = Point((Jobs(3, 16, "fft3d"), Jobs(1, 40, "all-to-all")), "simple", 1)
    assert simulate(point).times_ps == simulate(replace(point, packet_bytes=2048)).times_ps


@given(st.integers(0, 2**62 - 1), st.integers(0, 10**6), st.sampled_from([None, *PATTERNS]))
def test_workloads_as_the_scripts_draw_them_fit_and_have_two_patterns(
    seed: int, which: int, alone: str | None
) -> None:
    small, large = random_kinds(seed, which, alone, "scripts")
    assert 2 <= small.nodes <= 16 < 17 <= large.nodes <= 131
    assert min(small.count, large.count) >= 1
    assert small.count * small.nodes + large.count * large.nodes <= 272
    if alone:
        assert small.pattern == large.pattern == alone
    else:
        assert small.pattern != large.pattern
        assert "fft3d" not in (small.pattern, large.pattern)
    asked = replace(TINY, draw="scripts", seed=seed)
    assert random_workload(asked, which, "rdn", pattern=alone).kinds == (small, large)


def test_the_scripts_draw_more_large_jobs() -> None:
    def larges(draw: str) -> int:
        return sum(random_kinds(1, which, None, draw)[1].count for which in range(500))

    assert larges("scripts") > 1.2 * larges("pairs")
    assert STUDY.ask(draw="scripts").draw == "scripts"
    with pytest.raises(Refused, match="draw = 'dice': one of pairs, scripts"):
        STUDY.ask(draw="dice")


def test_what_no_figure_varies_can_be_changed_everywhere() -> None:
    changes = tuple(map(parse_change, ("terminal=4", "iterations=3", "routing=minimal")))
    changed = cases(STUDY.ask(workloads=1, repeat=1, changes=changes))
    usual = cases(STUDY.ask(workloads=1, repeat=1))
    assert [*changed] == [replace(point, terminal=4.0, iterations=3, routing="minimal")
                       for point in usual]  # fmt: skip
    assert cases(STUDY.ask(workloads=1, repeat=1, changes=(parse_change("terminal=1"),))) == usual
    words = ("router=merlin", "host=sst", "crossbar=2", "sight=far", "detours=false",
             "broadcast_factor=8")  # fmt: skip
    assert dict(map(parse_change, words)) == {
        "router": "merlin", "host": "sst", "crossbar": 2.0, "sight": "far", "detours": False,
        "broadcast_factor": 8,
    }  # fmt: skip
    for text in ("terminal", "seed=3", "terminal=x", "iterations=1.5", "detours=2"):
        with pytest.raises(ValueError, match=text):
            parse_change(text)


@pytest.mark.parametrize(
    "changes", [("routing", "up"), ("terminal", 0.0), ("seed", 3), ("router", "x"), ("host", "x")]
)
def test_what_cannot_be_built_is_refused_before_anything_is_simulated(
    changes: tuple[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(
        Refused, match=r"routing = up: one of|bandwidth = 0|seed: one of|(router|host) = 'x'"
    ):
        fill(
            STUDY, STUDY.ask(workloads=1, repeat=1, changes=(changes,), part="random"), tmp_path, 1
        )
    assert not store.path_in(tmp_path).exists()


@pytest.mark.parametrize("asked", [{"workloads": 0}, {"repeat": 0}, {"seed": -1}])
def test_nonsense_is_refused(asked: dict[str, int]) -> None:
    with pytest.raises(Refused, match=r"^(workloads|repeat|seed) = -?\d: "):
        STUDY.ask(**asked)


# -- what is kept

LINE = (
    '{"key":"20a4c1fd9b28043d4323","point":{"kinds":[{"count":3,"nodes":64,"pattern":"broadcast",'
    '"message_bytes":1024}],"allocation":"rdg","seed":1,"machine":"levelspread-272","ratio":1.0,'
    '"order":"small-first","mapping":"random","iterations":1,"exchange":"pairwise","broadcast":'
    '"tree-broadcast","routing":"adaptive","threshold":null,"packet_bytes":1024,"buffer_bytes":'
    '14336,"terminal":1.0,"delay_ps":100000},"times_ps":[[20664000,20464000,24000000]],"ports":'
    '{"local":{"packets":[0.0,0.0,2.0,4.0,11.0],"waiting_ps":[0.0,0.0,0.0,0.0,7072000.0]},'
    '"global":{"packets":[0.0,0.0,0.0,0.0,15.0],"waiting_ps":[0.0,0.0,0.0,0.0,12768000.0]}},'
    '"events":3712,"digest":"aa4dfaabd5a5468163fc183ad47a6570","seconds":0.024369272000058118}\n'
)
"""As the first version of the study wrote it."""


def test_a_line_of_the_first_version_is_read_written_and_simulated_the_same() -> None:
    (point,) = homogeneous(STUDY.ask(repeat=1), 64, "broadcast", 1.0, "rdg")
    key, kept = from_line(LINE, STUDY)
    assert key == point.key
    assert to_line(Answer(point, kept)) == with_checksum(LINE) + "\n"
    assert replace(simulate(point), seconds=kept.seconds) == kept


def test_an_answer_survives_being_written_down() -> None:
    point = random_workload(TINY, 0, "rdn")
    assert from_line(to_line(Answer(point, invent(point))), STUDY) == (point.key, invent(point))


@pytest.mark.parametrize("field", ["key", "point", "times_ps", "ports", "events", "digest"])
def test_a_line_without_one_of_its_fields_is_damaged(tmp_path: Path, field: str) -> None:
    with store.opened(tmp_path, STUDY, "abc"):
        pass
    short = {name: value for name, value in json.loads(LINE).items() if name != field}
    with store.path_in(tmp_path).open("a") as file:
        file.writelines(with_checksum(text) + "\n" for text in (LINE, json.dumps(short)))
    with pytest.raises(Refused, match=r"results.jsonl, line 3: damaged"):
        store.read(tmp_path, STUDY)


def test_heavy_simulations_come_first() -> None:
    asked = STUDY.ask(workloads=20, repeat=1, part="heterogeneous")
    agenda = Agenda(STUDY, asked, store.Store(), StopSignals(listen=False))
    first = agenda.take()
    assert first is not None
    assert first.weight == max(point.weight for point in cases(asked))


# -- what they say


def test_quadrants_and_reductions_are_those_of_the_pairs() -> None:
    asked = STUDY.ask(workloads=4)
    times = {LEVEL_SPREAD: (100, 100), "simple": (100, 200), "slurm": (125, 125), "rdg": (80, 50),
             "rdn": (400, 80)}  # fmt: skip
    names = [name for name in times if name != LEVEL_SPREAD]
    ratios = measures.relative(STUDY.measured(asked, alike(asked, times)), names)
    found, by = measures.quadrants(ratios), measures.by_workload(ratios)
    assert found is not None
    assert found.pairs == 16
    assert (found.better, found.worse) == (0.25, 0.25)
    assert (found.small_only, found.large_only, found.ties) == (0.25, 0.0, 0.25)
    saved = [0, 0.5, 0.2, 0.2, -0.25, -1, 0.75, -0.25]
    assert found.mean_reduction == pytest.approx(sum(saved) / 8)
    assert found.best_reduction == pytest.approx(0.75)
    assert by.better == by.worse == [0.25] * 4
    assert by.small == pytest.approx([0.7 / 4] * 4)
    assert by.large == pytest.approx([-0.55 / 4] * 4)
    assert by.saved == pytest.approx([sum(saved) / 8] * 4)


@pytest.mark.long
def test_pairs_without_an_outcome_do_not_count() -> None:
    asked = STUDY.ask(workloads=3)
    outcomes = alike(asked, {LEVEL_SPREAD: (1, 1), "simple": (2, 2)})
    del outcomes[random_workload(asked, 1, LEVEL_SPREAD).key]
    ratios = measures.relative(STUDY.measured(asked, outcomes), BASELINES)
    found = measures.quadrants(ratios)
    assert found is not None
    assert (found.pairs, found.better) == (2, 1.0)
    assert measures.by_workload(ratios).better == [1.0, None, 1.0]
    assert measures.quadrants(measures.relative(STUDY.measured(asked, {}), BASELINES)) is None
    assert STUDY.claims(asked, {}) == []


def test_a_saving_is_compared_seed_by_seed_and_a_missing_run_leaves_a_gap() -> None:
    cells = [[10.0, 30.0, None], [20.0, 40.0, 60.0]]
    assert measures.saved(*cells) == [0.5, 0.25, None]
    assert measures.averaged([measures.saved(*cells), [0.0, 0.05, 0.1]]) == [0.25, 0.15, None]
    low, high = measures.ends([[0.3, 0.3], [0.1, 0.2], [0.2, 0.2]]) or ()
    assert low == interval([0.1, 0.2])
    assert high == interval([0.3, 0.3])
    assert measures.ends([[0.3], [None]]) is None


def found_of(asked: LevelSpreadPlan, outcomes: dict[str, LevelSpreadOutcome]) -> dict[str, Claim]:
    return {claim.name: claim for claim in STUDY.claims(asked, outcomes)}


def test_claims_stand_beside_the_thesis() -> None:
    asked = STUDY.ask(workloads=10, repeat=2)
    outcomes = alike(asked, {LEVEL_SPREAD: (80, 90)} | dict.fromkeys(BASELINES, (100, 100))
                    | {JOKANOVIC: (70, 70), PUBLISHED: (90, 100)})  # fmt: skip
    for pattern in PATTERNS:
        for ratio in RATIOS:
            for policy in POLICIES:
                small = 50 if policy in (LEVEL_SPREAD, "simple", "slurm", "rdg") else 100
                large = 200 if policy in ("simple", "slurm", "rdg") else 150
                for nodes, time_ps in ((16, small), (64, large)):
                    for point in homogeneous(asked, nodes, pattern, ratio, policy):
                        outcomes[point.key] = outcome((time_ps,))
    claims = found_of(asked, outcomes)

    def said(name: str) -> tuple[str, str, str]:
        claim = claims[name]
        return claim.paper, claim.ours, str(claim.verdict)

    least, simple = "3.4a, 16 nodes: compact over spreading, least", "3.4b, 64 nodes, ratio 1: "
    assert said(least) == ("15 %", "50.0 ± 0.0 %", "in sign only")
    assert claims[least].values == {"mean": 0.5, "low": 0.5, "high": 0.5}
    assert claims[least].cause == "level-spread.md#what-16-node-jobs-gain"
    assert said(f"{simple}over Simple, least") == ("22 %", "25.0 ± 0.0 %", "in sign only")
    assert said("3.10, random: better") == ("59 %", "100.0 ± 0.0 %", "does not hold")
    assert said("3.10, random: mean reduction") == ("16 %", "15.0 ± 0.0 %", "holds")
    assert claims["3.10, random: mean reduction"].of == 10
    assert said("3.10, random: best reduction") == ("71 %", "20.0 %", "in sign only")
    assert said("3.12, than Jokanovic: worse") == ("0 %", "100.0 ± 0.0 %", "does not hold")
    assert said("3.12, than Jokanovic as in the published code: worse")[2] == "holds"
    assert claims["3.4a, ratio 1/4: compact over spreading"].verdict is None
    faster = "3.4b, 64 nodes: Level-Spread and spreading over compact"
    assert said(faster) == ("faster", "in 270 of 270; on average 25.0 ± 0.0 %", "holds")
    slower = "3.4b, 64 nodes: gain, the slower the global links"
    assert said(slower)[2] == "does not hold"  # nothing here depends on the ratio

    one = homogeneous(asked, 64, "fft3d", 4.0, "rrn")[0]
    claims = found_of(asked, outcomes | {one.key: outcome((250,))})
    assert said(faster)[1].startswith("in 267 of 270")
    assert said(faster)[2] == "in sign only"


def test_what_changes_nothing_is_within_a_tenth_everywhere() -> None:
    asked = STUDY.ask(repeat=3, part="large-messages")
    times = {point: (1000 if point.kinds[0].message_bytes == 1024 else 100_000)
             for point in cases(asked)}  # fmt: skip

    def claims() -> list[Claim]:
        found = {point.key: outcome(*((time_ps,) for _ in point.kinds))
                 for point, time_ps in times.items()}  # fmt: skip
        return [claim for claim in STUDY.claims(asked, found) if "100 KB in all" in claim.name]

    assert len(claims()) == 8
    assert all(claim.holds for claim in claims())
    cell = homogeneous(asked, 64, "fft3d", 1.0, "rdn", kilobytes=LONG_KB)
    times.update(dict.fromkeys(cell, 115_000))
    off = [claim for claim in claims() if not claim.holds]
    assert [claim.name for claim in off] == [
        "3.4b, 64 nodes, 100 KB in all jobs: times over Simple's, beside 1 KB",
        "3.4b, 64 nodes, 100 KB in all jobs: times over those of 1 KB",
    ]
    assert {str(claim.verdict) for claim in off} == {"in sign only"}
    assert off[0].ours == "within a tenth in 41 of 42; 1.00 .. 1.15"


def test_every_printed_claim_has_its_source_and_what_does_not_hold_its_cause() -> None:
    asked = STUDY.ask(workloads=3, repeat=2)
    claims = STUDY.claims(asked, {point.key: invent(point) for point in cases(asked)})
    page = (Path(__file__).parents[2] / "docs" / "level-spread.md").read_text()
    headings = {line.lstrip("# ").strip().lower().replace(" ", "-").replace(".", "")
                for line in page.splitlines() if line.startswith("#")}  # fmt: skip
    assert len(claims) > 60
    for claim in claims:
        assert bool(claim.paper) == (claim.verdict is not None), claim.name
        if "published code" in claim.name:
            assert not claim.source, "the printed numbers count once"
            continue
        assert bool(claim.paper) == bool(claim.source), claim.name
        assert bool(claim.cause) == (claim.verdict is not None and not claim.holds), claim.name
        if claim.cause:
            file, anchor = claim.cause.split("#")
            assert file == "level-spread.md"
            assert anchor in headings, claim.cause


# -- end to end


def test_a_simulation_answers_the_same_each_time_and_is_about_its_jobs() -> None:
    point = Point((Jobs(2, 5, "halo2d"), Jobs(1, 40, "all-to-all")), LEVEL_SPREAD, 3)
    one, other = simulate(point), simulate(point)
    assert replace(one, seconds=0.0) == replace(other, seconds=0.0)
    assert [len(times) for times in one.times_ps] == [2, 1]
    assert all(time_ps > 0 for times in one.times_ps for time_ps in times)
    assert one.mean_ps(LARGE) > one.mean_ps(SMALL) > 0
    for kind in CLASSES:
        packets = one.ports[kind]["packets"]
        assert list(packets) == sorted(packets)
        assert packets[-1] > 0
    elsewhere = simulate(replace(point, allocation="rdn"))
    assert elsewhere.times_ps != one.times_ps


@pytest.mark.long
def test_the_command_simulates_tells_draws_and_goes_on(
    odonata: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("study", "level-spread", "--part", "jokanovic", "--json", "-o", "study")
    first = odonata(*words, "--workloads", "1", "--jobs", "2")
    assert first.returncode == 0, first.stderr
    found = json.loads(first.stdout)
    assert found["completed"]
    assert found["ran"]["simulated"] == 6
    assert found["figures"] == ["figures/3.12.png", "figures/3.13.png"]
    for name in found["figures"]:
        assert (tmp_path / "study" / name).read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "study" / "summary.json").read_text()) == found

    more = odonata(*words, "--workloads", "2", "--jobs", "1")
    assert json.loads(more.stdout)["ran"]["simulated"] == 6
    outcomes, asked = store.read(tmp_path / "study", STUDY).outcomes, STUDY.ask(workloads=2)
    assert len(outcomes) == 12
    for which in range(2):  # by processes, by the command itself, and here
        point = random_workload(asked, which, JOKANOVIC)
        here = simulate(point)
        assert replace(outcomes[point.key], seconds=0.0) == replace(here, seconds=0.0)

    report(STUDY, asked, tmp_path / "study", 1, only=True, pdf=True, as_json=False)
    assert "3.12, than Jokanovic: better" in capsys.readouterr().out
    assert (tmp_path / "study" / "figures" / "3.12.pdf").exists()


@pytest.mark.long
def test_stopped_by_a_signal_it_keeps_what_it_has_and_says_so(tmp_path: Path) -> None:
    words = command("study", "level-spread", "--part", "random", "-o", "study", "--json")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=clean_environment(), cwd=tmp_path)  # fmt: skip
    kept = tmp_path / "study" / "results.jsonl"
    deadline = time.monotonic() + PATIENCE
    while not (kept.exists() and kept.read_text().count("\n") > 3) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "the same command goes on from there" in err
    found = json.loads(out)
    assert not found["completed"]
    assert found["ran"]["stopped"] == "SIGTERM"
    assert len(store.read(tmp_path / "study", STUDY).outcomes) == found["ran"]["simulated"] > 2


@pytest.mark.long
def test_every_figure_can_be_drawn(tmp_path: Path) -> None:
    asked = STUDY.ask(workloads=3, repeat=1)
    outcomes = {point.key: invent(point) for point in cases(asked)}
    m = STUDY.measured(asked, outcomes)
    made = {make for make in figures.FIGURES.values() if make(m) is not None}
    assert len(made) == len(figures.FIGURES) == 14
    assert STUDY.figures(asked, {}, tmp_path, pdf=False) == []
