"""Power policies that are compiled: the same as those that answer through a view, in months and in
packets, and told by name where they are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from machines import SMALL, US
from markets import market_policies, model_of
from naive import Job as Naive
from workloads import SHORT, network

from odonata.cluster.model import Cluster
from odonata.jobs.power import Power
from odonata.jobs.request import Job
from odonata.traces.trace import Trace
from pdes.driver import run
from pdes.errors import Fault
from pdes.jit import direct
from pdes.transport import Serial
from policies.parameters import parameter
from policies.power import POWERS, Caps, Configuration, PowerPolicy, power
from policies.power.steering import arrays_of, given_of

__all__ = ["market_policies"]
SECOND = 10**6
TARGET = ("average_w", "reserve_w", "signal", "until", "error")
WORDS = {"about": "a test's", "source": "ours"}


def by_hand(now: Any, desk: Any, memory: Any, given: Any, cap_w: Any) -> bool:
    """Goes by all that a compiled policy sees."""
    asked, last_w = memory
    gain, pays = given
    asked[0] += 1
    sum_w = 0.0
    for i in range(desk.running.shape[0]):
        row = desk.running[i]
        watts = desk.measured_w[row] if desk.measured_w[row] > 0.0 else now.most_w
        late = 1.0 if desk.served[row] > 3.0 * SECOND else 0.5
        here = desk.cap_w[row] < now.most_w or desk.submit[row] > desk.start[row]
        watts = max(now.least_w, gain * watts) if here or pays else watts
        last_w[row] = max(last_w[row], late * watts)
        sum_w += watts * desk.nodes[row]
        if (i + asked[0]) % 3 != 0:
            cap_w[i] = watts
    if now.target_w == now.target_w and now.busy > 0:
        left = (now.until - now.time) / SECOND - now.error * now.reserve_w
        cap_w[:] = max(0.0, (now.average_w + now.signal * now.reserve_w - left) / now.busy)
    spare = now.cap_w - max(now.measured_w, sum_w)
    return bool(spare > 0.0 and desk.queue.shape[0] > 0 and asked[0] % 2 == 0)


@dataclass(frozen=True)
class Both(PowerPolicy):
    retries = False
    gain: float = parameter(0.9, about="of what was measured")
    word: str = parameter("any", about="which no kernel is given")
    pays: bool = parameter(False, about="whether all pay")

    def remembers(self, sizes: Any) -> dict[str, Any]:
        return {"asked": np.zeros(1, np.int64), "last_w": np.zeros(sizes.jobs)}

    def configure(self, view: Any, job: Any) -> Configuration | None:
        return Configuration(job.nodes) if view.memory.asked[0] % 5 else None


class Compiled(Both):
    steer = staticmethod(by_hand)


class Viewed(Both):
    def caps(self, view: Any) -> Caps:
        target, desk = view.target, view.desk
        cap_w = np.full(len(desk.running), np.nan)

        class Now:
            target_w = np.nan if target is None else target.watts
            average_w, reserve_w, signal, until, error = (
                getattr(target, name, 0) for name in TARGET
            )  # fmt: skip
            cap_w = view.budget.cap_w
            measured_w = view.budget.measured_w
            most_w, least_w, busy, free = view.most_w, view.least_w, view.busy, view.free
            time = view.time

        tries = by_hand(Now, desk._replace(served=desk.served()), arrays_of(view.memory),
                        given_of(self), cap_w)  # fmt: skip
        return Caps(cap_w, schedule=tries)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    before = dict(POWERS)
    power("compiled", **WORDS)(Compiled)
    power("viewed", **WORDS)(Viewed)
    yield
    POWERS.clear()
    POWERS.update(before)


def trace(jobs: list[tuple[int, int, int]]) -> Trace:
    submit, length, nodes = (np.array(column) for column in zip(*sorted(jobs), strict=True))
    zero = np.zeros(len(jobs), np.int64)
    return Trace("cases", np.arange(len(jobs)), submit * SECOND, length * SECOND, nodes,
                 length * SECOND, zero, zero, zero, zero - 1)  # fmt: skip


def model(policy: str, jobs: list[tuple[int, int, int]], fidelity: str, gain: float) -> Any:
    values = (("gain", gain), ("pays", gain > 0.8))
    supply = Power(policy, values, cap="15 kW", demand="constant", maximum_w=350.0,
                   variation=0.2 * (fidelity != "job"),
                   interval_ps=4 * (US if fidelity == "packet" else 10**12))  # fmt: skip
    if fidelity == "packet":
        return network(*[Job(n, arrival_ps=s * US, compute_ps=t * US, **SHORT)
                         for s, t, n in jobs], power=supply)  # fmt: skip
    placed = SMALL if fidelity == "placed" else None
    return Cluster(trace(jobs), SMALL.n_nodes, "easy", (), placed, power=supply)


def digest(of: Any, end: int | None = None) -> str:
    return run(of, end, show_compiling=False, transport=Serial()).digest


@pytest.mark.parametrize("fidelity", ["packet", "job", "placed"])
@examples(8)
@given(jobs=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 15), st.integers(2, 40)),
                     min_size=1, max_size=8), gain=st.floats(0.3, 1.0))  # fmt: skip
def test_a_compiled_policy_answers_as_it_would_through_a_view(
    fidelity: str, jobs: list[tuple[int, int, int]], gain: float
) -> None:
    ours, theirs = (digest(model(name, jobs, fidelity, gain)) for name in ("compiled", "viewed"))
    assert ours == theirs


def test_it_follows_a_target_likewise(market_policies: None) -> None:
    jobs = [Naive(0, 0, 7 * 60 * SECOND, 4, 9 * 60 * SECOND),
            Naive(1, 0, 5 * 60 * SECOND, 3, 8 * 60 * SECOND)]  # fmt: skip
    found, made = {}, model_of(jobs)
    assert made.power is not None
    for name in ("compiled", "viewed", "none"):
        found[name] = digest(replace(made, power=replace(made.power, policy=name)))
    assert found["compiled"] == found["viewed"] != found["none"]


class Debtor(PowerPolicy):
    @staticmethod
    def steer(now: Any, desk: Any, memory: Any, given: Any, cap_w: Any) -> None:
        for i in range(cap_w.shape[0]):
            cap_w[i] = 250.0 - 300.0 * (desk.running[i] == 2)


class Allocates(PowerPolicy):
    @staticmethod
    def steer(now: Any, desk: Any, memory: Any, given: Any, cap_w: Any) -> None:
        cap_w[:] = np.full(3, now.busy).sum()


@pytest.mark.parametrize("fidelity", ["packet", "job"])
def test_a_cap_below_0_is_told_with_the_policy_and_the_job(fidelity: str) -> None:
    power("debtor", **WORDS)(Debtor)
    with pytest.raises(Fault, match=r"power debtor: it caps job 2 at -50.0 W; at least 0"):
        digest(of_three("debtor", fidelity))


@pytest.mark.parametrize("fidelity", ["packet", "job"])
def test_a_kernel_that_cannot_be_compiled_is_told_in_words(fidelity: str) -> None:
    power("allocates", **WORDS)(Allocates)
    with pytest.raises(Fault, match=r"power allocates \(steer\): a kernel cannot be comp"):
        digest(of_three("allocates", fidelity))


def of_three(policy: str, fidelity: str, nodes: int = 20) -> Any:
    jobs, unit = [(0, 40, nodes)] * 3, US if fidelity == "packet" else 10**12
    supply = Power(policy, interval_ps=4 * unit, demand="constant")
    if fidelity == "packet":
        return network(*[Job(n, arrival_ps=s * US, compute_ps=t * US, **SHORT)
                         for s, t, n in jobs], power=supply)  # fmt: skip
    return Cluster(trace(jobs), SMALL.n_nodes, power=supply)


def test_a_kernel_of_other_arguments_is_refused_where_it_is_registered() -> None:
    class Other(PowerPolicy):
        @staticmethod
        def steer(view: Any, cap_w: Any) -> None: ...

    with pytest.raises(TypeError, match=r"its steer is a function of \(now, desk, memory, given"):
        power("other", **WORDS)(Other)


def test_a_class_has_caps_or_a_kernel_and_a_derived_one_may_have_the_other() -> None:
    class Two(PowerPolicy):
        def caps(self, view: Any) -> Caps:
            return Caps()

        steer = staticmethod(by_hand)

    with pytest.raises(TypeError, match="has both caps and steer"):
        power("two", **WORDS)(Two)

    class Again(Debtor):
        def caps(self, view: Any) -> Caps:
            return Caps(np.full(len(view.desk.running), 200.0))

    class Steers(Again):
        steer = staticmethod(Debtor.steer)

    power("debtor", **WORDS)(Debtor)
    power("again", **WORDS)(Again)
    digest(of_three("again", "job"))
    power("steers", **WORDS)(Steers)
    with pytest.raises(Fault, match="power steers: it caps job 2"):
        digest(of_three("steers", "job"))


class ByRow(PowerPolicy):
    @staticmethod
    def steer(now: Any, desk: Any, memory: Any, given: Any, cap_w: Any) -> None:
        for row in desk.running:
            cap_w[row] = 200.0


class Perhaps(PowerPolicy):
    """Returns True or nothing."""

    @staticmethod
    def steer(now: Any, desk: Any, memory: Any, given: Any, cap_w: Any) -> Any:
        if now.busy > 30:
            return True


@pytest.mark.parametrize("fidelity", ["packet", "job"])
def test_caps_that_are_written_by_row_are_told_with_the_policy(fidelity: str) -> None:
    """The second job starts when the first has ended: one of three runs."""
    power("by-row", **WORDS)(ByRow)
    with pytest.raises(Fault, match="power by-row: it writes caps by the rows of jobs; cap_w"):
        digest(of_three("by-row", fidelity, nodes=40))


@pytest.mark.parametrize("fidelity", ["packet", "job"])
def test_a_kernel_may_return_true_or_nothing(fidelity: str) -> None:
    power("perhaps", **WORDS)(Perhaps)
    digest(of_three("perhaps", fidelity))


class Unclear(PowerPolicy):
    """Returns watts."""

    @staticmethod
    def steer(now: Any, desk: Any, memory: Any, given: Any, cap_w: Any) -> Any:
        return now.most_w


@pytest.mark.parametrize("fidelity", ["packet", "job"])
def test_a_kernel_that_returns_something_else_is_told_with_the_policy(fidelity: str) -> None:
    power("unclear", **WORDS)(Unclear)
    with pytest.raises(Fault, match="power unclear: its steer returns neither True nor False nor"):
        digest(of_three("unclear", fidelity))


def test_what_fails_where_nothing_is_compiled_is_told_with_the_policy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a run with ODONATA_JIT=0."""

    def fails(*asked: Any) -> Any:
        raise ZeroDivisionError("division by zero")

    power("perhaps", **WORDS)(Perhaps)
    monkeypatch.setattr("odonata.cluster.scheduling.direct", lambda function, *given: (
        fails if getattr(function, "__name__", "") == "steer_now" else direct(function, *given)
    ))  # fmt: skip
    with pytest.raises(Fault, match=r"power perhaps failed .steer.: ZeroDivisionError"):
        digest(of_three("perhaps", "job"))
