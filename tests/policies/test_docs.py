"""The examples of docs/policies.md are run as they stand there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odonata import NO_MORE, Job, Network, Workload, job_records, run
from pdes.errors import Refused
from policies import register as registers
from policies.allocation import ALLOCATIONS, allocate
from policies.bidding import BIDDINGS
from policies.bidding.base import bid
from policies.memory import Memory, Sizes, memory_of, remembered
from policies.policy import learn
from policies.power import POWERS
from policies.power.base import caps, configuration
from policies.register import ENVIRONMENT, PLUGINS, REGISTERS, load_plugin
from policies.scheduling import SCHEDULINGS, again, select
from policies.testing import check_policy
from policies.views import (
    Ahead,
    Bid,
    Budget,
    Configuration,
    Counters,
    Course,
    Ended,
    Market,
    PowerDesk,
    Powered,
    PowerView,
    Request,
    Running,
    Sight,
    Target,
    Trial,
    View,
)
from topology.presets import PRESETS

DOC = Path(__file__).parents[2] / "docs" / "policies.md"
TEXT = DOC.read_text()
EXAMPLES: dict[str, str] = {
    code.split('"""')[1]: code for code in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
}
"""By the file name in the first line."""
SAID = re.findall(r"```text\n(.*?)\n```", TEXT, re.DOTALL)
TRUSTED = ["roomy.py", "quiet.py", "narrow.py", "backfill.py", "wary.py", "shifts.py",
           "nextdoor.py", "snug.py", "lately.py", "thrifty.py", "patience.py", "mine.py",
           "prorata.py", "columns.py", "compiled.py", "cautious.py"]  # fmt: skip
MACHINE = PRESETS["kim-72"].machine


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    before = {kind: dict(each) for kind, each in REGISTERS.items()}
    monkeypatch.setenv(ENVIRONMENT, "")
    monkeypatch.chdir(tmp_path)
    for name, code in EXAMPLES.items():
        (tmp_path / name).write_text(code)
    yield
    for kind, each in REGISTERS.items():
        each.clear()
        each.update(before[kind])
    PLUGINS.clear()


def view(queue: list[Request], free: int = 72, memory: Memory | None = None,
         running: tuple[Running, ...] = (), time: int = 0) -> View:  # fmt: skip
    return View(time, queue, running, free, Sight(MACHINE, np.arange(72) < free), memory=memory)


def test_every_example_is_known_here() -> None:
    assert {*EXAMPLES} == {*TRUSTED, "test_mine.py", "turns.py"}
    for name, most in (("patience.py", 40), ("mine.py", 4 * 25)):
        assert EXAMPLES[name].count("\n") < most


@pytest.mark.parametrize("name", TRUSTED)
def test_an_example_is_a_plug_in_that_passes_the_test_tool(name: str) -> None:
    """All but one only here, and not in a new process."""
    for kind, policy in load_plugin(name).registered:
        check_policy(policy, kind=kind, new_process=name == "patience.py")


@pytest.mark.long
@pytest.mark.parametrize("name", TRUSTED)
def test_an_example_passes_the_test_tool_also_in_a_new_process(name: str) -> None:
    for kind, policy in load_plugin(name).registered:
        check_policy(policy, kind=kind)


def test_the_test_in_the_documentation_passes(python: Callable[..., str]) -> None:
    """The documented test also has the test tool ask the policy in a new process."""
    assert "1 passed" in python("import pytest; raise SystemExit(pytest.main(['test_mine.py']))")


def test_thrifty_starts_jobs_while_it_is_cheap_and_is_asked_again_when_the_price_changes() -> None:
    load_plugin("thrifty.py")
    policy, queue = SCHEDULINGS.make("thrifty", {"limit": 2.0}), [Request(0, 4, 0)]

    def asked(level: float) -> tuple[list[int], int | None]:
        price = Course((5, 9), (level, 1.0))
        seen = view(queue, time=5)._replace(
            ahead=lambda ticks: Ahead(5 + ticks, price, None, None, 100.0, 290.0)
        )
        return select(policy, seen), again(policy, seen)

    assert asked(3.0) == ([], 9)
    assert asked(2.0) == ([0], 9)


def test_roomy_fills_the_emptiest_routers_of_the_emptiest_groups() -> None:
    load_plugin("roomy.py")
    sight = Sight(MACHINE, np.arange(72) % 8 != 0)
    job = Request(0, 9, 0)
    chosen = allocate(ALLOCATIONS.make("roomy"), sight, job, np.random.default_rng(1))
    assert chosen.tolist() == [2, 3, 4, 5, 6, 7, 1, 10, 11]


def test_quiet_takes_the_groups_with_least_traffic_of_the_last_three_intervals() -> None:
    load_plugin("quiet.py")
    policy = ALLOCATIONS.make("quiet")
    assert policy.reads == 3
    sent = np.ones((4, 72), np.int64)
    sent[0, 32:40] = 99  # too long ago
    sent[1, 40:48] = sent[3, 32:40] = 0
    told = Counters(7, 1.0, sent, 0 * sent, np.zeros((4, 36)), np.zeros((4, 36)))
    job, rng = Request(0, 17, 0), np.random.default_rng(1)
    chosen = allocate(policy, Sight(MACHINE, np.ones(72, bool), told), job, rng)
    assert chosen.tolist() == [*range(32, 48), 0]
    chosen = allocate(policy, Sight(MACHINE, np.ones(72, bool)), job, rng)
    assert chosen.tolist() == [*range(17)]


def test_the_tables_of_allocations_that_read_the_network_name_all_and_their_parameters() -> None:
    rows = re.findall(r"^\| ((?:`[a-z-]+`(?:, )?)+) \|.*\| (.*)\|$", TEXT, re.MULTILINE)
    told = {name: cell for names, cell in rows for name in re.findall(r"`([^`]+)`", names)}
    for name, entry in ALLOCATIONS.items():
        if "network_data" in entry.home:
            cell = told["nedd" if "as `nedd`" in told[name] else name]
            assert re.findall(r"`([^`]+)`", cell) == [each.name for each in entry.parameters]


def test_narrow_goes_by_the_node_time_that_jobs_ask_for() -> None:
    load_plugin("narrow.py")
    queue = [Request(0, 8, 0, 100), Request(1, 2, 0, 300), Request(2, 4, 0, 300)]
    assert select(SCHEDULINGS.make("narrow"), view(queue)) == [1, 0, 2]


def test_backfill_lets_nobody_delay_the_first_job() -> None:
    """20 nodes are idle, 52 until 1000: the first job, of 60, can then start and leave 12."""
    load_plugin("backfill.py")
    policy = SCHEDULINGS.make("backfill")
    running = (Running(Request(0, 52, 0, 1000), 0, np.arange(20, 72)),)
    first = Request(1, 60, 10, 500)

    def behind(*jobs: Request) -> list[int]:
        return select(policy, view([first, *jobs], 20, running=running, time=100))

    assert behind(Request(2, 20, 20, 900)) == [2]
    assert behind(Request(2, 20, 20, 901)) == []
    assert behind(Request(2, 12, 20, 5000)) == [2]
    assert behind(Request(2, 13, 20, 5000)) == []
    assert behind(Request(2, 12, 20, 5000), Request(3, 1, 20, 5000)) == [2]
    assert behind(Request(2, 12, 20, 5000), Request(3, 8, 20, 900)) == [2, 3]
    assert behind(Request(2, 12, 20, None)) == [2]
    assert behind(Request(2, 13, 20, None)) == []
    assert select(policy, view([first, Request(2, 12, 20, 9)], 72, time=100)) == [1, 2]


def test_snug_takes_the_fullest_group_and_refuses_what_it_says() -> None:
    load_plugin("snug.py")
    idle = np.zeros(72, bool)
    idle[[0, 1, 2, 3, 4, 8, 9, 16, 17, 18]] = True
    sight, rng = Sight(MACHINE, idle), np.random.default_rng(1)
    job = Request(0, 2, 0)
    assert allocate(ALLOCATIONS.make("snug"), sight, job, rng).tolist() == [8, 9]
    spare = ALLOCATIONS.make("snug", {"spare": 1})
    assert allocate(spare, sight, job, rng).tolist() == [16, 17]
    with pytest.raises(Refused) as refusal:
        ALLOCATIONS.make("snug", {"spare": -1})
    assert str(refusal.value) == SAID[1]


def test_patience_learns_who_has_waited() -> None:
    load_plugin("patience.py")
    policy = SCHEDULINGS.make("patience")
    buffer, (layout,) = remembered((policy,), Sizes(9, 72, 9, 36, 2))
    queue = [Request(7, 60, 0, user_number=0), Request(8, 60, 1, user_number=1)]

    def asked() -> list[int]:
        return select(policy, view(queue, memory=memory_of(layout, buffer)))

    assert asked() == [7]
    for number, user, wait in ((0, 0, 100), (1, 1, 90), (2, 1, 130), (3, 0, 100)):
        ended = Ended(Request(number, 4, 10, user_number=user), 10 + wait, 500, np.arange(4))
        learn("scheduling", policy, ended, memory_of(layout, buffer))
    assert asked() == [8]


def test_a_run_with_patience_is_the_same_after_a_restart(tmp_path: Path) -> None:
    """Jobs of two users come at once, and one of them runs at a time: who is next depends on what
    was learnt, and so on the memory in the checkpoint."""
    load_plugin("patience.py")
    users = ("ada", "ada", "ada", "grace", "ada", "grace", "ada")
    jobs = tuple(Job(40, "broadcast", 64, arrival_ps=i, user=u) for i, u in enumerate(users))

    def network(order: str) -> Network:
        return Network(MACHINE, workload=Workload(jobs, order=order), routing="adaptive")

    def began(order: str, **how: Any) -> tuple[str, list[int]]:
        model = network(order)
        result = run(model, how.pop("end", None), **how)
        starts = [job.start_ps or 0 for job in job_records(model, result)]
        return result.digest, sorted(range(len(starts)), key=starts.__getitem__)

    digest, order = began("patience")
    assert order != began("fcfs")[1]
    cut = 50_000_000  # two have ended, and grace would be next if that were forgotten
    began("patience", end=cut + 7, checkpoint_dir=tmp_path, checkpoint_every=cut)
    assert began("patience", checkpoint_dir=tmp_path, resume=tmp_path) == (digest, order)


def test_shifts_sends_to_tasks_at_distances_that_are_powers_of_two() -> None:
    load_plugin("shifts.py")
    written = REGISTERS["pattern"]["shifts"]
    assert [written.phases(tasks) for tasks in (2, 3, 4, 5, 8)] == [1, 2, 2, 3, 3]
    assert [written.peer(4, 5, phase, 0) for phase in range(3)] == [0, 1, 3]
    assert written.peer(4, 5, 0, 1) == NO_MORE


def test_next_door_stays_in_the_group_or_goes_to_the_next() -> None:
    load_plugin("nextdoor.py")
    to = REGISTERS["traffic"]["next-door"].destination
    assert [to(5, 12, 4, word) for word in (0, 2, 4, 6, 8)] == [4, 5, 6, 7, 4]
    assert [to(9, 12, 4, word) for word in (1, 3)] == [0, 1]


def powered(cap_w: float, target: Target | None = None) -> PowerView:
    """Two idle nodes, and two jobs on four nodes each: one drew 200 W per node, the other was not
    measured yet."""
    jobs = [Powered(Running(Request(number, 4, 0), 0, np.arange(4)), Configuration(4), watts)
            for number, watts in ((0, 800.0), (1, 0.0))]  # fmt: skip
    column, none = np.zeros(2, np.int64), np.zeros(0, np.int64)
    desk = PowerDesk(column + 4, column, column, column, column, none, np.array([1, 0]),
                     measured_w=np.array([200.0, 0.0]))  # fmt: skip
    return PowerView(9, (), jobs, 2, 100.0, Budget(cap_w, 900.0), least_w=60.0, most_w=300.0,
                     busy=8, desk=desk, target=target)  # fmt: skip


def test_pro_rata_takes_the_same_part_of_what_jobs_drew_as_objects_and_as_columns() -> None:
    for name in ("prorata.py", "columns.py"):
        load_plugin(name)
    objects, columns = POWERS.make("pro-rata"), POWERS.make("columns")
    for view in (powered(1000.0), powered(1e6, Target(900.0, 200.0, 0.5, 99)),
                 powered(1000.0, Target(2000.0, 0.0, 0.0, 99))):  # fmt: skip
        assert caps(objects, view).cap_w == {0: 80.0, 1: 120.0}
        assert caps(columns, view).cap_w.tolist() == [120.0, 80.0]
    assert set(caps(objects, powered(np.inf)).cap_w.values()) == {np.inf}
    assert caps(columns, powered(np.inf)).cap_w.tolist() == [np.inf, np.inf]
    for policy in (objects, columns):
        view = powered(100.0 + 9 * 60.0)
        assert configuration(policy, view, Request(2, 1, 0)) == Configuration(1)
        assert configuration(policy, view, Request(2, 2, 0)) == Configuration(2)
        assert configuration(policy, powered(99.0 + 9 * 60.0), Request(2, 1, 0)) is None


def test_cautious_bids_the_largest_reserve_that_is_followed_in_the_hour_it_tries() -> None:
    """Three nodes of jobs draw 100 to 300 W each, one idles at 50 W: 650 W, and 300 W to either
    side. The machine can move by 200 W."""
    load_plugin("cautious.py")

    def tried(offered: Bid) -> Trial:
        target_w = offered.average_w + offered.reserve_w * np.array([1.0, -1.0, 0.0, 0.5])
        return Trial(target_w.clip(450.0, 850.0), target_w, offered.reserve_w, 0, 0)

    job = Powered(Running(Request(0, 2, 0), 0, np.arange(2)), Configuration(2), 0.0)
    market = Market(0, 3600, 4, 50.0, (Request(1, 1, 0),), (job,), {}, {}, 0.1, 0.1, 0.1,
                    least_w=100.0, most_w=300.0, trial=tried)  # fmt: skip
    assert bid(BIDDINGS.make("cautious"), market) == Bid(650.0, 225.0)
    assert bid(BIDDINGS.make("cautious", {"off": 0.1}), market) == Bid(650.0, 150.0)
    assert bid(BIDDINGS.make("cautious", {"off": 0.4}), market) == Bid(650.0, 300.0)
    assert bid(BIDDINGS.make("cautious"), market._replace(queue=(), running=())) == Bid(200.0, 0.0)


def test_every_kind_of_policy_has_a_group_of_entry_points_that_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The register of profiles has no policies: nothing can be entered there."""
    looked: list[str] = []
    monkeypatch.setattr(registers, "entry_points", lambda group: looked.append(group) or ())
    for register in REGISTERS.values():
        monkeypatch.setattr(register, "_loaded", False)
        register.load()
    paragraph = TEXT.split("There is a group for each kind: ")[1].split("\n\n")[0]
    named = re.findall(r"`(odonata\.\w+)`", paragraph)
    assert named == [group for group in looked if group != "odonata.profile"]


def test_what_the_tool_says_of_one_that_remembers_in_an_attribute_is_what_is_printed() -> None:
    load_plugin("turns.py")
    with pytest.raises(AssertionError) as caught:
        check_policy("turns")
    assert str(caught.value) == " ".join(SAID[2].split())


def test_the_plug_ins_run_by_name(python: Callable[..., str]) -> None:
    """With the JIT off, so that nothing need be compiled."""
    code = (
        "from odonata import Dragonfly, Job, Network, Traffic, Workload, load_plugin, run\n"
        "for name in ('mine.py', 'shifts.py', 'nextdoor.py'): load_plugin(name)\n"
        "jobs = (Job(6, 'mine', 64), Job(7, 'shifts', 64)) * 2\n"
        "work = Workload(jobs, allocation='mine', order='mine')\n"
        "beside = Traffic('next-door', messages=2)\n"
        "network = Network(Dragonfly(2, 3, 1, 4), beside, workload=work, routing='mine')\n"
        "assert run(network, None).completed"
    )
    python(code)
