"""Traffic and jobs are parts of one network: either, both, several of each; and a scheduler that
is seen in the digest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from machines import SMALL, US, network

from odonata.agents.audit import conclude
from odonata.agents.layout import GENERATE, GENERATED, KINDS, STEP, SWITCH
from odonata.agents.network import Network
from odonata.agents.patterns import NO_MORE, REGISTER, pattern
from odonata.agents.traffic import Traffic
from odonata.agents.workload import Workload
from odonata.jobs.request import Job
from odonata.results.performance import job_records
from pdes.driver import Result, run
from pdes.errors import Refused
from pdes.stream import Recording
from pdes.transport import Serial

HERE = Path(__file__).parent.parent
BACKGROUND = Traffic("uniform", load=0.2, message_bytes=700)
INCAST = Traffic("hotspot", load=0.05, hot=1.0, hot_every=SMALL.n_nodes, messages=20)
JOBS = (Job(16, "halo3d", 3000, iterations=3), Job(20, "all-to-all", 900, arrival_ps=US))
LOAD = Workload(JOBS, allocation="rdn", launch_ps=900_000)


def mixed(**given: Any) -> Network:
    return Network(SMALL, **{"traffic": (BACKGROUND, INCAST), "workload": LOAD,
                             "routing": "adaptive", **given})  # fmt: skip


def go(model: Network, end: int | None = 10 * US, **how: Any) -> Result:
    result = run(model, end, transport=Serial(), show_compiling=False, **how)
    assert conclude(model, result.outcome) is None
    return result


def test_jobs_run_beside_uniform_traffic_and_an_incast() -> None:
    model = mixed()
    result = go(model, 120 * US)
    assert all(job.end_ps is not None for job in job_records(model, result))
    sent = {kind: count["events"] for kind, count in result.kinds.items()}
    assert sent["generate"] > 1000
    assert sent["step"] > 100
    made = int(result.outcome["nodes"][:, GENERATED].sum())
    alone = go(mixed(traffic=()), None)
    assert made > int(alone.outcome["nodes"][:, GENERATED].sum()) + 20 * (SMALL.n_nodes - 1)


def test_traffic_beside_them_makes_jobs_slower() -> None:
    quiet, loud = mixed(traffic=()), mixed(traffic=(Traffic(load=0.3),))
    times = [[job.run_time_ps or 0 for job in job_records(model, go(model, None))]
             for model in (quiet, loud)]  # fmt: skip
    assert all(a < b for a, b in zip(*times, strict=True))


def test_a_run_of_both_ends_with_its_jobs() -> None:
    model = mixed()
    result = go(model, None)
    assert result.completed
    assert all(job.end_ps is not None for job in job_records(model, result))


def test_every_traffic_has_its_own_number_of_messages() -> None:
    few = tuple(Traffic("uniform", load=0.5, messages=n) for n in (3, 5))
    result = go(Network(SMALL, few), None)
    assert int(result.outcome["nodes"][:, GENERATED].sum()) == 8 * SMALL.n_nodes


def test_one_traffic_may_be_given_as_it_is() -> None:
    assert Network(SMALL, BACKGROUND) == Network(SMALL, (BACKGROUND,))


def test_a_network_without_traffic_and_jobs_is_refused() -> None:
    with pytest.raises(Refused, match="no traffic and no jobs"):
        Network(SMALL)
    with pytest.raises(TypeError, match="workload=Workload"):
        Network(SMALL, LOAD)  # type: ignore[arg-type]


def test_traffics_that_measure_at_different_times_are_refused() -> None:
    with pytest.raises(Refused, match="the same warmup and measure"):
        Network(SMALL, (Traffic(warmup_ps=5), Traffic()))


@pytest.mark.long
def test_without_the_compiler_it_is_the_same_digest(python: Callable[..., str]) -> None:
    words = (
        "import sys; sys.path.insert(0, sys.argv[1]); from agents.test_mixed import *;"
        "print(go(mixed(), 3 * US).digest)"
    )
    assert python(words, str(HERE)).split() == [go(mixed(), 3 * US).digest]


@pytest.mark.parametrize("part", ["board", "owner", "labels", "memory"])
def test_the_digest_changes_with_everything_that_the_scheduler_has_written_down(part: str) -> None:
    model = mixed()
    state = model.state(0, int(model.units()[-1]))._replace(memory=np.zeros(8, np.uint8))
    before = model.fingerprint(state)
    getattr(state, part).reshape(-1)[-1] += 1
    after = model.fingerprint(state)
    assert (before != after).any()
    assert (before[:, :-1] == after[:, :-1]).all()


def test_the_digest_changes_with_what_any_stream_has_drawn() -> None:
    model = mixed()
    state = model.state(0, int(model.units()[-1]))
    for stream in range(3):
        before = model.fingerprint(state)
        state.drawn[stream, 5] += 1
        assert (model.fingerprint(state) != before).any()


def test_the_background_is_the_same_whatever_runs_beside_it() -> None:
    """What is compared, a policy or a workload, is compared under the same messages."""
    models = mixed(), mixed(workload=None), mixed(workload=None, routing="minimal")
    offered = {go(model, 8 * US).kinds["generate"]["events"] for model in models}
    assert len(offered) == 1


def test_the_scheduler_alone_on_a_rank_gives_the_same_digest_as_beside_groups() -> None:
    """As ranks would: each part's fingerprint, then put together."""
    model = mixed(dedicated_scheduler=True)
    units = model.units().tolist()
    whole = model.fingerprint(model.state(0, units[-1]))
    ranks = [(0, units[1]), (units[1], units[4]), (units[4], units[-1])]
    parts = [model.fingerprint(model.state(first, last)) for first, last in ranks]
    assert len({part.shape[1] for part in parts}) == 1
    assert (np.concatenate(model.assemble(parts)) == whole).all()


def test_kinds_of_events_are_named_in_order() -> None:
    assert (KINDS[SWITCH], KINDS[GENERATE], KINDS[STEP]) == ("switch", "generate", "step")
    assert network().kinds == KINDS


def test_samples_go_on_with_the_traffic_when_the_jobs_are_done(tmp_path: Path) -> None:
    model = mixed(traffic=(BACKGROUND,), workload=Workload(JOBS[:1], launch_ps=900_000))
    record = Recording(tmp_path, 5 * US, ("groups",))
    result = go(model, 100 * US, record=record)
    assert max(job.end_ps or 0 for job in job_records(model, result)) < 60 * US
    with h5py.File(tmp_path / "rank-0000.h5") as file:
        assert file["time_ps"][-1] == 100 * US


def test_messages_that_are_yet_to_come_keep_a_run_without_an_end() -> None:
    rare = Traffic("uniform", load=0.002, messages=4)
    result = go(Network(SMALL, rare), None)
    assert int(result.outcome["nodes"][:, GENERATED].sum()) == 4 * SMALL.n_nodes


@pytest.fixture
def own() -> Iterator[None]:
    before = dict(REGISTER)
    yield
    for name in REGISTER.keys() - before.keys():
        del REGISTER[name]


@pytest.mark.parametrize(
    ("phases", "peer", "words"),
    [
        (0, lambda task, tasks, phase, i: NO_MORE, "phases = 0: a whole number, 1 .. 1048576"),
        (lambda tasks: tasks / 2, lambda task, tasks, phase, i: NO_MORE, "phases = 4.0: a whole"),
        (lambda tasks: 1 // 0, lambda task, tasks, phase, i: NO_MORE, "ZeroDivisionError"),
        (1, lambda task, tasks, phase, i: task, "task 0 sends to 0 in phase 0; to another"),
        (2, lambda task, tasks, phase, i: (task + 1) % tasks, "more than 1048576 messages"),
    ],
)
@pytest.mark.usefixtures("own")
def test_a_pattern_that_makes_no_sense_is_refused_by_name(
    phases: Any, peer: Any, words: str
) -> None:
    pattern("senseless", about="a test's", source="nobody's", phases=phases)(peer)
    with pytest.raises(Refused, match="pattern senseless, of 8 tasks") as refused:
        go(mixed(workload=Workload((Job(4, "senseless"),))))
    assert words in str(refused.value)
