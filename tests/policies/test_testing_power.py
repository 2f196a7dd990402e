"""The test tool asks power and bidding policies as a run does, and finds those that cannot be
trusted."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policies.bidding import BIDDINGS, Bid, BiddingPolicy, Market, bidding
from policies.parameters import parameter
from policies.power import (
    POWERS,
    Admitted,
    Caps,
    Configuration,
    Mold,
    PowerPolicy,
    PowerView,
    power,
)
from policies.register import ENVIRONMENT, PLUGINS, REGISTERS, load_plugin
from policies.testing import Checked, check_policy
from policies.testing_power import ALL_IDLE_W, CHOICES, LEAST_W
from policies.views import Powered

WORDS = {"about": "a test's", "source": "nobody's"}
VALUES: dict[str, dict[str, Any]] = {
    "rate-by-number": {"few": 3, "many": 6},
    "rate-by-workload": {"little": 1e4, "much": 2e4},
    "rmap-adaptive": {"knowledge": "model"},
    "dynamic-learner": {"samples": 5},
}
"""Where what is set by default would never matter in so short a life."""
COARSE: dict[str, dict[str, Any]] = {"energy-qare": {"steps": 4}, "qosg": {"step": 0.1}}
"""Parameters of bidding policies that try a grid of bids, for a coarser grid, which is searched by
the same code. By default they try a hundred bids for each question, as in `make test-long`."""
SEARCHED: dict[str, dict[str, Any]] = {"aqa": {"candidates": 20, "hours": 1}}
"""Parameters of a policy that tries thousands of hours for each question."""
ALL = [*((name, "power") for name in POWERS), *((name, "bidding") for name in BIDDINGS)]
SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = {kind: dict(register) for kind, register in REGISTERS.items()}
    monkeypatch.setenv(ENVIRONMENT, "")
    SEEN.clear()
    yield
    PLUGINS.clear()
    for kind, register in REGISTERS.items():
        register.clear()
        register.update(before[kind])


def refused(written: Any, *words: str, **how: Any) -> None:
    with pytest.raises(AssertionError) as caught:
        check_policy(written, **{"new_process": False, **how})
    for each in words:
        assert each in str(caught.value)


@pytest.mark.parametrize("questions", [25, pytest.param(60, marks=pytest.mark.long)])
@pytest.mark.parametrize(("name", "kind"), ALL)
def test_built_in_policies_pass(name: str, kind: str, questions: int) -> None:
    how = {"kind": kind, "questions": questions, "new_process": False}
    values = VALUES.get(name, {})
    if kind == "bidding":
        values = SEARCHED.get(name, COARSE.get(name, {}) if questions < 60 else {})
    checked = check_policy(name, values, **how)
    assert checked == Checked(questions, False, name == "uniform")


@pytest.mark.parametrize(
    ("name", "kind"),
    [each if each[0] in ("naive", "fixed") else pytest.param(*each, marks=pytest.mark.long)
     for each in ALL],
)  # fmt: skip
def test_built_in_policies_answer_the_same_in_a_new_process(name: str, kind: str) -> None:
    """There they are not compiled."""
    values = SEARCHED.get(name, {}) if kind == "bidding" else VALUES.get(name, {})
    assert check_policy(name, values, kind=kind, questions=30).new_process


# -- what is shown


class Witness(PowerPolicy):
    """Notes what it is shown, which has to fit together, and does a little of everything."""

    def observe(self, view: PowerView) -> tuple[float, ...]:
        readings = view.readings
        assert readings is not None
        assert readings.jobs.tolist() == [job.run.request.number for job in view.running]
        each_w = [job.measured_w / job.configuration.nodes for job in view.running]
        assert readings.watts.tolist() == pytest.approx(each_w)
        SEEN.append("observe")
        return ()

    def caps(self, view: PowerView) -> Caps:
        self.note("caps", view)
        SEEN.append((view.arrived, view.ended))
        numbers = [job.run.request.number for job in view.running if not job.suspended]
        paused = [job.run.request.number for job in view.running if job.suspended]
        if view.time % 3 == 0:
            return Caps(dict.fromkeys(numbers[::2], 200.0), numbers[1:2], paused, view.time + 1)
        return Caps(schedule=view.time % 3 == 1)

    def note(self, what: str, view: PowerView) -> None:
        desk = view.desk
        assert desk is not None
        assert desk.queue.tolist() == [job.number for job in view.queue]
        runs = {job.run.request.number: job for job in view.running}
        assert sorted(desk.running.tolist()) == [*runs]
        assert desk.due[desk.running].tolist() == sorted(desk.due[desk.running].tolist())
        for job in view.queue:
            assert (desk.nodes[job.number], desk.requested[job.number], desk.submit[job.number]
                    ) == (job.nodes, job.requested, job.submit)  # fmt: skip
            assert (desk.application[job.number] >= 0) == (job.application in view.choices)
        for number, powered in runs.items():
            self.compare(desk, number, powered, view.time)
        labels = [label for job in view.running for label in job.run.labels.tolist()]
        assert len({*labels}) == len(labels) == view.busy == 72 - view.free
        target = view.target
        assert target is None or target.until > view.time
        SEEN.append((what, view.budget.cap_w < math.inf, target is not None))

    def compare(self, desk: Any, number: int, powered: Powered, now: int) -> None:
        job, how = powered.run, powered.configuration
        found = {name: column[number].item() for name, column in desk._asdict().items()
                 if name not in ("queue", "running", "served")}  # fmt: skip
        place = -1
        if powered.mold is not None:
            place = CHOICES[job.request.application].place(*powered.mold[:3])
            SEEN.append("molded")
        del found["requested"]
        assert desk.served()[number] == now - job.start
        measured_w = found.pop("measured_w") * how.nodes
        assert measured_w == pytest.approx(powered.measured_w)
        assert found == {
            "nodes": len(job.labels), "due": powered.due, "mold": place, "start": job.start,
            "application": -1 if job.request.application == "md" else 0, "cap_w": how.cap_w,
            "submit": job.request.submit, "suspended": powered.suspended, "forced": how.forced,
        }  # fmt: skip
        assert how.nodes == len(job.labels)
        SEEN.append(("suspended", powered.suspended))


@pytest.fixture
def witnesses() -> None:
    @power("witness", **WORDS)
    class Starting(Witness):
        def start_cap_w(self, view: PowerView) -> float:
            SEEN.append("start_cap_w")
            return 300.0

        def configure(self, view: PowerView, job: Any) -> Configuration | None:
            assert job.nodes <= view.free
            assert view.busy == 72 - view.free
            SEEN.append("configure")
            return None if job.nodes > 20 else Configuration(job.nodes, cap_w=1.0)

    @power("choosing-witness", **WORDS)
    class Choosing(Witness):
        selects = molds = True
        reads = retries = False
        shown = 3

        def select(self, view: PowerView) -> Admitted:
            self.note("select", view)
            assert len(view.queue) <= 3
            assert (view.arrived, view.ended) != (0, 0) or view.time % 3 == 1
            for job in view.queue:
                choices = view.choices.get(job.application, ())
                if len(choices) and view.free >= 16:
                    nodes, cores, cap_w, *_ = choices[0]
                    return Admitted([job.number], [job.number],
                                    {job.number: Mold(nodes, cores, cap_w, 10**9)})  # fmt: skip
                if job.nodes <= view.free:
                    return Admitted([job.number])
            return Admitted([])


@pytest.mark.usefixtures("witnesses")
def test_what_a_power_policy_is_shown_fits_together_and_is_of_many_kinds() -> None:
    check_policy("witness", new_process=False, questions=30)
    assert {"observe", "start_cap_w", "configure"} < {*map(str, SEEN)}
    assert {("caps", cap, target) for cap in (True, False) for target in (True, False)} <= {*SEEN}
    assert {("suspended", True), ("suspended", False)} <= {*SEEN}
    assert {(0, 0), (0, 1), (1, 0), (2, 1)} <= {*SEEN}


@pytest.mark.usefixtures("witnesses")
def test_one_that_selects_is_shown_the_first_jobs_and_molds_them() -> None:
    check_policy("choosing-witness", new_process=False, questions=30)
    assert "molded" in SEEN
    assert not {"observe", "start_cap_w", "configure"} & {*map(str, SEEN)}


def test_a_cap_below_what_a_node_can_be_held_to_is_that_instead() -> None:
    @power("low", **WORDS)
    class Low(PowerPolicy):
        def configure(self, view: PowerView, job: Any) -> Configuration:
            return Configuration(job.nodes, cap_w=1.0)

        def caps(self, view: PowerView) -> Caps:
            assert view.desk is not None
            SEEN.extend(view.desk.cap_w[view.desk.running].tolist())
            column = np.full(len(view.desk.running), 2.0)
            column[::2] = np.nan
            return Caps(column)

    check_policy(Low, new_process=False, questions=10)
    assert {*SEEN} == {LEAST_W}


# -- power policies that cannot be trusted


def test_one_that_remembers_in_a_global_is_found() -> None:
    @power("diary", **WORDS)
    class Diary(PowerPolicy):
        def caps(self, view: PowerView) -> Caps:
            SEEN.append(view.time)
            jobs = [job.run.request.number for job in view.running]
            return Caps(dict.fromkeys(jobs, 120.0 + len({*SEEN})))

    refused(Diary, "power diary, question", "jobs wait,", "it answers caps.cap_w[",
            "it remembers outside its memory")  # fmt: skip


def test_one_that_keeps_its_readings_in_an_attribute_is_found() -> None:
    @power("hoarder", **WORDS)
    class Hoarder(PowerPolicy):
        def __init__(self) -> None:
            self.read: dict[int, float] = {}

        def observe(self, view: PowerView) -> tuple[float, ...]:
            assert view.readings is not None
            self.read.update(zip(view.readings.jobs.tolist(), view.readings.watts, strict=True))
            return ()

        def caps(self, view: PowerView) -> Caps:
            here = {job.run.request.number for job in view.running}
            return Caps({job: watts for job, watts in self.read.items() if job in here})

    refused(Hoarder, "power hoarder, question", "it remembers outside its memory")


def test_one_that_keeps_the_same_in_its_memory_passes() -> None:
    @power("tidy", **WORDS)
    class Tidy(PowerPolicy):
        def remembers(self, sizes: Any) -> Any:
            return {"read_w": np.full(sizes.jobs, np.nan)}

        def observe(self, view: PowerView) -> tuple[float, ...]:
            assert view.memory is not None
            assert view.readings is not None
            view.memory.read_w[view.readings.jobs] = view.readings.watts
            return ()

        def caps(self, view: PowerView) -> Caps:
            assert view.memory is not None
            assert view.desk is not None
            return Caps(view.memory.read_w[view.desk.running])

    check_policy(Tidy, new_process=False, questions=30)


def test_one_that_leaves_another_memory_behind_is_found() -> None:
    @power("forgetful", **WORDS)
    class Forgetful(PowerPolicy):
        def remembers(self, sizes: Any) -> Any:
            return {"asked": np.zeros(1)}

        def caps(self, view: PowerView) -> Caps:
            assert view.memory is not None
            SEEN.append(0)
            view.memory.asked = len(SEEN)
            return Caps()

    refused(Forgetful, "power forgetful, question 0", "it answers the same and leaves another")


def test_one_that_draws_from_a_global_generator_is_found() -> None:
    @power("gambler", **WORDS)
    class Gambler(PowerPolicy):
        def configure(self, view: PowerView, job: Any) -> Configuration | None:
            return Configuration(job.nodes) if random.random() < 0.5 else None

    @power("entropy", **WORDS)
    class Entropy(PowerPolicy):
        def start_cap_w(self, view: PowerView) -> float:
            return float(np.random.default_rng().uniform(100, 300))

    refused(Gambler, "power gambler, question", "it draws from Python's or numpy's global gen",
            "seeds by a parameter and by a count in its memory")  # fmt: skip
    refused(Entropy, "power entropy, question 0", "it answers start_cap_w = ", "not shown")


def test_one_that_writes_to_what_it_is_shown_is_found() -> None:
    @power("vandal", **WORDS)
    class Vandal(PowerPolicy):
        def caps(self, view: PowerView) -> Caps:
            assert view.desk is not None
            view.desk.cap_w[view.desk.running] = 100.0
            return Caps()

    @power("burglar", **WORDS)
    class Burglar(PowerPolicy):
        def observe(self, view: PowerView) -> tuple[float, ...]:
            assert view.readings is not None
            view.readings.watts.flags.writeable = True
            return ()

    @power("forger", **WORDS)
    class Forger(PowerPolicy):
        def configure(self, view: PowerView, job: Any) -> Configuration:
            view.choices["md"] = view.choices["cfd"]  # type: ignore[index]
            return Configuration(job.nodes)

    refused(Vandal, "power vandal, question 0", "failed (caps): ValueError", "read-only")
    refused(Burglar, "power burglar, question 0", "failed (observe): ValueError: cannot set WRITE")
    refused(Forger, "power forger, question", "failed (configure): TypeError", "assignment")


def test_one_that_goes_by_jobs_that_have_not_come_yet_is_found() -> None:
    @power("seer", **WORDS)
    class Seer(PowerPolicy):
        def start_cap_w(self, view: PowerView) -> float:
            assert view.desk is not None
            return 300.0 if view.desk.nodes.sum() > 900 else 200.0

    refused(Seer, "power seer, question", "when other jobs are to come, it answers start_cap_w",
            "rows of the desk that are of jobs which have not come yet")  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Caps({99: 100.0}), "it caps job 99, which does not run"),
        (Caps(np.zeros(99)), "its caps are an array of float64 of shape (99,)"),
        (Caps(suspend=[99]), "it caps job 99, which does not run"),
        (Caps(again=1), "it wants to be asked again at 1"),
        ({}, "its caps are {}, which is no Caps"),
    ],
)
def test_wrong_caps_are_found(answer: Any, said: str) -> None:
    @power("wrong", **WORDS)
    class Wrong(PowerPolicy):
        def caps(self, view: PowerView) -> Any:
            return answer

    refused(Wrong, "power wrong, question", f"power wrong: {said}" if "again" not in said else said)


def test_wrong_starts_are_found() -> None:
    @power("wide", **WORDS)
    class Wide(PowerPolicy):
        def configure(self, view: PowerView, job: Any) -> Configuration:
            return Configuration(job.nodes + 1)

    @power("greedy", **WORDS)
    class Greedy(PowerPolicy):
        selects = True

        def select(self, view: PowerView) -> Admitted:
            return Admitted([job.number for job in view.queue])

    @power("shy", **WORDS)
    class Shy(PowerPolicy):
        figures = ("one",)

    @power("lost", **WORDS)
    class Lost(PowerPolicy):
        def never_starts(self, view: PowerView, job: Any) -> bool:
            return bool(view.choices[job.application])

    @power("unready", **WORDS)
    class Unready(PowerPolicy):
        def prepare(self, view: PowerView) -> None:
            raise OSError("no compiler")

    refused(Wide, "power wide, question", "and cannot run on another number")
    refused(Greedy, "power greedy, question", "nodes in sum, and")
    refused(Shy, "power shy, question 0", "it observed 0 numbers, and has names for 1")
    refused(Lost, "power lost, question", "failed (never_starts): KeyError: 'md'")
    refused(Unready, "power unready failed (prepare): OSError: no compiler")


IN_ORDER_OF_A_SET = """
from odonata import Bid, BiddingPolicy, Caps, PowerPolicy, bidding, power


@power("any-order", about="a test's", source="nobody's")
class AnyOrder(PowerPolicy):
    def caps(self, view):
        jobs = {f"job {job.run.request.number}" for job in view.running}
        return Caps({int(job[4:]): 200.0 for job in jobs})


@bidding("any-order", about="a test's", source="nobody's")
class AnyBid(BiddingPolicy):
    def bid(self, market):
        jobs = {f"job {job.run.request.number}" for job in market.running}
        return Bid(0.0, 0.0, {job: 1.0 for job in jobs})
"""


@pytest.mark.parametrize(
    ("kind", "line"), [("power", "caps.cap_w["), ("bidding", "bid.weights[job ")]
)
def test_one_that_goes_by_the_order_of_a_set_is_found_in_a_new_process(
    kind: str, line: str, tmp_path: Path
) -> None:
    (tmp_path / "any_order.py").write_text(IN_ORDER_OF_A_SET)
    load_plugin(tmp_path / "any_order.py")
    check_policy("any-order", kind=kind, new_process=False, questions=20)
    refused("any-order", f"{kind} any-order, question", f"in a new process, it answers {line}",
            kind=kind, new_process=True, questions=20)  # fmt: skip


# -- bidding policies


def test_a_bidding_policy_sees_a_market_and_tries_bids_that_come_to_something_else_each() -> None:
    @bidding("climber", **WORDS)
    class Climber(BiddingPolicy):
        steps: int = parameter(3, about="bids that are tried", least=1)

        def bid(self, market: Market) -> Bid:
            SEEN.append((len(market.signal), len(market.running), market.queue != ()))
            assert market.trial is not None
            found = Bid(0.0, 0.0)
            for step in range(self.steps):
                average_w = market.nodes * (market.idle_w + 50.0 * step)
                tried = Bid(average_w, average_w / 9)
                trial = market.trial(tried)
                again = market.trial(tried)
                assert (trial.power_w == again.power_w).all()
                assert (trial.power_w >= ALL_IDLE_W).all()
                assert trial.power_w.shape == trial.target_w.shape == (60,)
                SEEN.append(float(trial.errors.mean()))
                if trial.bad(0.3) < 0.1:
                    found = tried
            return found

    assert check_policy(Climber, {"steps": 4}, new_process=False).questions == 60
    off = [each for each in SEEN if isinstance(each, float)]
    assert len({*off}) == 4 * 60
    assert {size for size, *_ in (each for each in SEEN if isinstance(each, tuple))} == {0, 60}


def test_wrong_bids_are_found() -> None:
    @bidding("bold", **WORDS)
    class Bold(BiddingPolicy):
        def bid(self, market: Market) -> Bid:
            return Bid(1000.0, 1001.0)

    @bidding("mute", **WORDS)
    class Mute(BiddingPolicy):
        def bid(self, market: Market) -> Any:
            return None

    @bidding("bribed", **WORDS)
    class Bribed(BiddingPolicy):
        def bid(self, market: Market) -> Bid:
            market.arrivals["cfd"] = 0.0  # type: ignore[index]
            return Bid(0.0, 0.0)

    @bidding("rosy", **WORDS)
    class Rosy(BiddingPolicy):
        def bid(self, market: Market) -> Bid:
            assert market.trial is not None
            market.trial(Bid(9e3, 1e3)).power_w[:] = 9e3
            return Bid(9e3, 1e3)

    @bidding("reckless", **WORDS)
    class Reckless(BiddingPolicy):
        def bid(self, market: Market) -> Bid:
            assert market.trial is not None
            market.trial(Bid(8000.0, 9000.0))
            return Bid(0.0, 0.0)

    refused(Reckless, "bidding reckless, question 0", "it tried an average of 8000 W")
    refused(Bold, "bidding bold, question 0", "an average of 1000 W and a reserve of 1001 W")
    refused(Mute, "bidding mute, question 0", "it bid None, which is no Bid")
    refused(Bribed, "bidding bribed, question 0", "TypeError", "assignment")
    refused(Rosy, "bidding rosy, question 0", "read-only")


def test_a_bidding_policy_that_remembers_in_a_global_or_draws_at_random_is_found() -> None:
    @bidding("raiser", **WORDS)
    class Raiser(BiddingPolicy):
        def bid(self, market: Market) -> Bid:
            SEEN.append(market.time)
            return Bid(1000.0 + len({*SEEN}), 0.0)

    @bidding("dice", **WORDS)
    class Dice(BiddingPolicy):
        def bid(self, market: Market) -> Bid:
            return Bid(1000.0 * random.random(), 0.0)

    refused(Raiser, "bidding raiser, question", "it answers bid.average_w = 10", "outside its mem")
    refused(Dice, "bidding dice, question 0", "it draws from Python's or numpy's global generator")


class Grown(PowerPolicy):
    """Counts beyond what a compiled integer holds."""

    def remembers(self, sizes: Any) -> dict[str, Any]:
        return {"count": np.full(1, 1 << 60)}

    @staticmethod
    def steer(now: Any, desk: Any, memory: Any, given: Any, cap_w: Any) -> None:
        (count,) = memory
        count[0] += 1
        cap_w[:] = 200.0 if int(count[0]) << 3 > 0 else 300.0


class Divides(PowerPolicy):
    """Divides by 0 where an even number of nodes is idle."""

    @staticmethod
    def steer(now: Any, desk: Any, memory: Any, given: Any, cap_w: Any) -> None:
        cap_w[:] = max(now.least_w, now.most_w / (now.free % 2))


def test_a_compiled_policy_is_checked_as_python_and_compiled() -> None:
    power("grown", **WORDS)(Grown)
    refused("grown", "power grown: its steer leaves", "compiled, and", "as Python")
    power("divides", **WORDS)(Divides)
    refused("divides", "power divides failed (steer): ZeroDivisionError")


def test_a_policy_may_print(tmp_path: Path) -> None:
    file = tmp_path / "loud.py"
    file.write_text(LOUD)
    load_plugin(file)
    assert check_policy("loud", kind="power", questions=5).new_process


LOUD = """
from odonata import Caps, PowerPolicy, power

@power("loud", about="prints", source="nobody's")
class Loud(PowerPolicy):
    def caps(self, view):
        print("asked at", view.time)
        return Caps()
"""
