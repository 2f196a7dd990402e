"""How `check_policy` asks power policies and bidding policies: as a run asks them.

A step is what happens to a machine at one instant. A power policy hears of readings at every other
step, then there is a pass (chance plays the discipline), and then it is asked for caps: each time
it is shown the machine as its answers have left it, as objects and on a desk that agrees with them.
Some steps have a cap, some have a target, some have both.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pdes.clock import LATEST
from pdes.errors import Fault
from policies.bidding.base import BiddingPolicy, bid, checked
from policies.memory import Memory, Sizes, copy_of
from policies.power.base import PowerPolicy, admit, caps, configuration, observe, start_cap_w
from policies.power.steering import arrays_of, steered
from policies.register import described
from policies.testing_life import MACHINE, After, Placed, Step
from policies.views import (
    Bid,
    Budget,
    Configuration,
    JobKind,
    JobsThere,
    Market,
    Mold,
    PowerDesk,
    Powered,
    PowerView,
    Readings,
    Request,
    Running,
    Target,
    Trial,
    choices_of,
)

SECOND = 1_000_000
"""In ticks, which are microseconds as in months of jobs."""
HOUR = 3600 * SECOND
IDLE_W, LEAST_W, MOST_W = 90.0, 120.0, 350.0
"""The watts of a node: idle, held as low as it can be, and at most."""
ALL_IDLE_W, ALL_MOST_W = MACHINE.n_nodes * IDLE_W, MACHINE.n_nodes * MOST_W
ALIKE = 4
"""After so many steps in a row the machine gets another cap (none, a high one, a low one, by turns)
and a target, or none any more."""


class ReadOnly(Mapping[str, Any]):
    """A mapping that nobody can write to."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = dict(given)

    def __getitem__(self, name: str) -> Any:
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


def fixed(values: Any, kind: Any = np.int64) -> Any:
    """Returns an array that nobody can write to, not even by setting its flag."""
    return np.frombuffer(np.asarray(values, kind).tobytes(), kind)


def _measured(nodes: int, cores: int, cap_w: float) -> tuple[float, int]:
    """Returns the watts and the time of a configuration."""
    return nodes * (IDLE_W + cores * cap_w / 10), int(HOUR / (nodes * cores * cap_w / 1000))


GRID = [
    (nodes, cores, cap_w) for nodes in (4, 8, 16) for cores in (8, 16) for cap_w in (60.0, 115.0)
]
CHOICES = ReadOnly(
    {"cfd": choices_of(*zip(*[(*one, *_measured(*one)) for one in GRID], strict=True))}
)
"""What was measured of one application. Jobs of the other one, and of fewer nodes, are rigid."""


class Site:
    """A machine while one question is put to a policy."""

    def __init__(self, step: Step, sizes: Sizes, seed: int) -> None:
        self.step, self.sizes = step, sizes
        self.queue, self.running, self.idle = [*step.queue], [*step.running], step.idle.copy()
        self.arrived = sum(job.submit == step.now for job in step.queue)
        self.ended = int(step.ended is not None)
        self.dice = random.Random(f"{seed} {step.number}")
        turn = step.number // ALIKE
        some = random.Random(f"{seed} of {turn}")
        low, high = some.uniform(0.2, 0.4), some.uniform(0.4, 1.1)
        self.cap_w = (math.inf, high * ALL_MOST_W, low * ALL_MOST_W)[turn % 3]
        self.target = None
        if turn % 2:
            average_w, reserve_w = some.uniform(ALL_IDLE_W, ALL_MOST_W), some.uniform(0, ALL_IDLE_W)
            weights = ReadOnly({"md": some.random(), "cfd": some.random()})
            self.target = Target(
                average_w, reserve_w, self.dice.uniform(-1, 1), (step.now // HOUR + 1) * HOUR,
                weights, self.dice.random(),
            )  # fmt: skip

    @property
    def free(self) -> int:
        return int(self.idle.sum())

    # -- what happens to it

    def measure(self) -> Readings:
        """Have the power of all jobs be measured."""
        for at, placed in enumerate(self.running):
            most_w = IDLE_W if placed.suspended else min(placed.cap_w, MOST_W)
            self.running[at] = placed._replace(measured_w=self.dice.uniform(IDLE_W, most_w))
        return Readings(fixed([placed.job.number for placed in self.running]),
                        fixed([placed.measured_w for placed in self.running], float))  # fmt: skip

    def start(self, number: int, cap_w: float, forced: bool, mold: Mold | None = None) -> None:
        """Start a job, on any nodes."""
        job = next(job for job in self.queue if job.number == number)
        nodes = job.nodes if mold is None else mold.nodes
        where = (*self.dice.sample(np.flatnonzero(self.idle).tolist(), nodes),)
        self.idle[list(where)] = False
        self.queue.remove(job)
        cap_w = max(LEAST_W, cap_w)
        self.running.append(Placed(job, self.step.now, where, cap_w, forced=forced, mold=mold))
        self.running.sort(key=lambda placed: placed.job.number)

    def change(self, numbers: Any, **what: Any) -> None:
        """Cap, suspend or resume the running jobs of these numbers."""
        for at, placed in enumerate(self.running):
            if placed.job.number in numbers:
                self.running[at] = placed._replace(**what)

    # -- what is seen of it

    def view(
        self,
        memory: Memory | None,
        queue: Sequence[Request] | None = None,
        readings: Readings | None = None,
    ) -> PowerView:
        """Returns the machine as a power policy sees it, with those of the queue that it is
        shown."""
        shown = self.queue if queue is None else queue
        busy = [len(placed.where) * (placed.measured_w or IDLE_W) for placed in self.running]
        left = sum(job.requested or 0 for job in self.queue)
        left += sum(self._due(placed) - self.step.now for placed in self.running)
        return PowerView(
            self.step.now, (*shown,), self.powered(), self.free, IDLE_W,
            Budget(self.cap_w, self.free * IDLE_W + sum(busy)), CHOICES, memory, LEAST_W, MOST_W,
            readings, self.arrived, self.ended, MACHINE.n_nodes - self.free,
            partial(float, left), "us", self.desk(shown), self.target,
        )  # fmt: skip

    def nowhere(self) -> PowerView:
        """Returns an idle machine, as a policy sees it that says of a job whether it never
        starts."""
        return PowerView(0, (), (), MACHINE.n_nodes, IDLE_W, Budget(self.cap_w, ALL_IDLE_W),
                         CHOICES, least_w=LEAST_W, most_w=MOST_W)  # fmt: skip

    def powered(self) -> tuple[Powered, ...]:
        """Returns the running jobs."""
        found = []
        for placed in self.running:
            job, nodes, due = placed.job, len(placed.where), self._due(placed)
            mold = None if placed.mold is None else placed.mold._replace(limit=None)
            found.append(Powered(
                Running(job, placed.start, fixed(placed.where), due),
                Configuration(nodes, 0, placed.cap_w, placed.forced), nodes * placed.measured_w,
                None, placed.suspended, mold, due,
            ))  # fmt: skip
        return (*found,)

    def desk(self, shown: Sequence[Request]) -> PowerDesk:
        """Returns the same as arrays."""
        step = self.step
        table = {name: np.full(self.sizes.jobs, blank) for name, blank in BLANK.items()}
        table["nodes"][step.come :] = step.to_come
        for name in ("requested", "submit"):
            table[name][step.come :] = step.now + step.to_come * SECOND
        for job in self.queue:
            _write(table, job, {})
        for placed in self.running:
            job, mold = placed.job, placed.mold
            _write(table, job, {
                "nodes": len(placed.where), "requested": _limit(placed), "due": self._due(placed),
                "start": placed.start, "cap_w": placed.cap_w, "measured_w": placed.measured_w,
                "suspended": placed.suspended, "forced": placed.forced,
                "mold": -1 if mold is None else CHOICES[job.application].place(*mold[:3]),
                "served": step.now - placed.start,
            })  # fmt: skip
        due = sorted(self.running, key=self._due)
        served = fixed(table.pop("served"), float)
        return PowerDesk(
            served=lambda: served,
            queue=fixed([job.number for job in shown]),
            running=fixed([placed.job.number for placed in due]),
            **{name: fixed(column, column.dtype) for name, column in table.items()},
        )  # fmt: skip

    def _due(self, placed: Placed) -> int:
        """Returns when a job will have ended: chance lets some run for longer than they asked."""
        return max(self.step.now + 1, min(LATEST, placed.start + _limit(placed)))


BLANK: dict[str, float] = {
    "nodes": 0, "requested": LATEST, "due": LATEST, "mold": -1, "application": -1, "submit": 0,
    "start": -1, "cap_w": math.inf, "measured_w": 0.0, "suspended": 0, "forced": 0, "served": 0.0,
}  # fmt: skip
"""What a desk has of a job that neither waits nor runs."""


def _write(table: dict[str, Any], job: Request, row: dict[str, float]) -> None:
    """Write a job's row of a desk: what it asked for and, where it runs, what else is known."""
    place = [*CHOICES].index(job.application) if job.application in CHOICES else -1
    asked = LATEST if job.requested is None else job.requested
    of_all = {"nodes": job.nodes, "requested": asked, "submit": job.submit, "application": place}
    for name, value in {**of_all, **row}.items():
        table[name][job.number] = value


def _limit(placed: Placed) -> int:
    mold, asked = placed.mold, placed.job.requested
    limit = asked if mold is None or mold.limit is None else mold.limit
    return LATEST if limit is None else limit


# -- asking


Said = tuple[str, ...]
"""An answer, a line for each number in it."""


def spelt(what: str, value: Any) -> Iterator[str]:
    """Spells an answer out: `caps.cap_w[3] = 80.0`. The order counts: a run goes by it."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if hasattr(value, "_asdict"):
        for name, each in value._asdict().items():
            yield from spelt(f"{what}.{name}", each)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from spelt(f"{what}[{key}]", each)
    elif isinstance(value, list | tuple):
        for at, each in enumerate(value):
            yield from spelt(f"{what}[{at}]", each)
    else:
        yield f"{what} = {value}"


def prepare(policy: PowerPolicy, memory: Memory | None, sizes: Sizes) -> None:
    """Have a policy prepare itself, as before a run."""
    nobody = Step(0, 0, np.ones(MACHINE.n_nodes, bool), (), (), None, None, 0)
    _called(policy, "prepare", Site(nobody, sizes, 0).view(memory))


def ask_power(
    policy: PowerPolicy, step: Step, memory: Memory | None, sizes: Sizes, seed: int
) -> tuple[Said, After]:
    """Ask a power policy all that it is asked at one instant. A job that it says can never start is
    dropped when it comes. Raises Fault where an answer is wrong."""
    site, said = Site(step, sizes, seed), list[str]()
    for job in step.queue:
        if job.submit == step.now and _called(policy, "never_starts", site.nowhere(), job):
            said.append(f"never_starts[{job.number}] = True")
            site.queue.remove(job)
            site.arrived -= 1
    if policy.reads and step.number % 2 == 0:
        readings = site.measure()
        said += spelt("observe", observe(policy, site.view(memory, readings=readings)))
    passes = site.arrived or site.ended or policy.retries
    for last in (False, True):
        if passes and site.queue and site.free:
            (_admit if policy.selects else _configure)(policy, site, memory, said)
        view = site.view(memory)
        plainly = None if policy.steer is None else _in_python(policy, view, memory)
        answer = caps(policy, view)
        given = answer.cap_w
        if plainly is not None:
            _check_alike(policy, (given, answer.schedule, *arrays_of(memory)), plainly)
        if isinstance(given, np.ndarray):
            assert view.desk is not None
            given = dict(zip(view.desk.running.tolist(), given.tolist(), strict=True))
        said += spelt("caps", answer._replace(cap_w=given))
        for number, cap_w in given.items():  # not a number: as it is
            if not math.isnan(cap_w):
                site.change([number], cap_w=max(LEAST_W, float(cap_w)))
        site.change(answer.suspend, suspended=True)
        site.change(answer.resume, suspended=False)
        site.arrived = site.ended = 0
        passes = answer.schedule
        if last or not passes:
            break
    return (*said,), After(site.queue, site.running, site.idle)


def _in_python(policy: PowerPolicy, view: PowerView, memory: Memory | None) -> Sequence[Any]:
    """Returns the column, the wish and the memory that the kernel of a compiled policy leaves where
    it is not compiled."""
    copy = copy_of(memory)
    with np.errstate(all="ignore"):  # as when it is compiled
        column, tries = steered(policy, view._replace(memory=copy), compiled=False)
    return column, tries, *arrays_of(copy)


def _check_alike(policy: PowerPolicy, compiled: Sequence[Any], plainly: Sequence[Any]) -> None:
    for ours, theirs in zip(compiled, plainly, strict=True):
        if not np.array_equal(ours, theirs, equal_nan=True):
            raise Fault(f"power {policy.name}: its steer leaves {ours} compiled, and {theirs} as "
                        "Python")  # fmt: skip


def _admit(policy: PowerPolicy, site: Site, memory: Memory | None, said: list[str]) -> None:
    """Have a policy choose among the first waiting jobs, in any order."""
    shown = site.dice.sample(site.queue, len(site.queue))[: policy.shown or None]
    numbers, forced, molds = answer = admit(policy, site.view(memory, shown))
    said += spelt("select", answer)
    for number in numbers:
        site.start(number, math.inf, number in forced, molds.get(number))


def _configure(policy: PowerPolicy, site: Site, memory: Memory | None, said: list[str]) -> None:
    """Have a policy say with what some of the waiting jobs start, until one has to wait."""
    said += spelt("start_cap_w", start_cap_w(policy, site.view(memory)))
    view, starts = site.view(memory), list[tuple[int, float, bool]]()
    for job in site.dice.sample(site.queue, len(site.queue)):
        if job.nodes > view.free or site.dice.random() < 0.3:
            continue
        how = configuration(policy, view, job)
        said += spelt(f"configure[{job.number}]", how)
        if how is None:
            break
        view = view._replace(free=view.free - job.nodes, busy=view.busy + job.nodes)
        starts.append((job.number, how.cap_w, how.forced))
    for start in starts:
        site.start(*start)


def _called(policy: PowerPolicy, what: str, *arguments: Any) -> Any:
    try:
        return getattr(policy, what)(*arguments)
    except Exception as error:
        raise Fault(f"power {policy.name} failed ({what}): {described(error)}") from error


def ask_bidding(
    policy: BiddingPolicy, step: Step, memory: Memory | None, sizes: Sizes, seed: int
) -> tuple[Said, None]:
    """Ask a bidding policy for a bid. Raises Fault where it is wrong."""
    site = Site(step, sizes, seed)
    site.measure()
    dice = site.dice
    signal = [dice.uniform(-1, 1) for _ in range(dice.choice((0, 60)))]
    arrivals = ReadOnly({"md": dice.uniform(0, 9), "cfd": dice.uniform(0, 9)})
    energy_price, reserve_price, error_price = (dice.uniform(0, 0.2) for _ in range(3))
    market = Market(
        step.now, HOUR, MACHINE.n_nodes, IDLE_W, step.queue, site.powered(), CHOICES, arrivals,
        energy_price, reserve_price, error_price, (*signal,), dice.random() if signal else 0.0,
        memory, LEAST_W, MOST_W, "us",
        types=_types(dice), jobs=_jobs(step, dice),
        trial=partial(_tried, policy, step.number, len(step.queue), signal or [0.0] * 60),
    )  # fmt: skip
    return (*spelt("bid", bid(policy, market)),), None


def _types(dice: random.Random) -> tuple[JobKind, ...]:
    """Returns what is known of two types of jobs."""
    return tuple(
        JobKind(name, dice.randint(1, 4), dice.randint(10, 900) * SECOND,
                dice.uniform(200.0, MOST_W), dice.uniform(LEAST_W, 200.0), dice.uniform(1.0, 2.0),
                dice.choice((3.0, math.inf)), dice.choice((None, 0.02)), dice.uniform(0.0, 90.0),
                dice.randint(0, 9))
        for name in ("md", "cfd")
    )  # fmt: skip


def _jobs(step: Step, dice: random.Random) -> JobsThere:
    """Returns the jobs that are there, each of one of these types, and some of them late."""
    nodes = [job.nodes for job in (*(each.job for each in step.running), *step.queue)]
    late = [dice.choice((0.0, dice.uniform(0.0, 9.0))) for _ in nodes]
    return JobsThere(
        fixed([dice.randrange(2) for _ in nodes], int), fixed(nodes, int),
        fixed([at < len(step.running) for at in range(len(nodes))], bool), fixed(late, float),
    )  # fmt: skip


def _tried(
    policy: BiddingPolicy, number: int, waiting: int, signal: Sequence[float], offered: Bid,
    hour: int = 0, give_up: float = 0.0, span: int = 0, since: int = 0,
) -> Trial:  # fmt: skip
    """Returns what a bid comes to in an hour: the machine follows it nearly, as far as it can. A
    Fault where it could not be bid."""
    offered = checked(policy, offered, "tried")
    target_w = offered.average_w + offered.reserve_w * np.array(signal)
    off_w = np.random.default_rng([number, hour]).normal(0.0, 0.02 * ALL_MOST_W, len(signal))
    power_w = np.clip(target_w + off_w, ALL_IDLE_W, ALL_MOST_W)
    starts = min(waiting, int(offered.average_w / ALL_MOST_W * waiting))
    found = np.random.default_rng([number, hour, 1]).exponential(60.0, (2, 2, 20))
    late, waits = ({name: fixed(each[at] / scale, float) for at, name in enumerate(("md", "cfd"))}
                   for each, scale in zip(found, (60.0, 1.0), strict=True))  # fmt: skip
    return Trial(fixed(power_w, float), fixed(target_w, float), offered.reserve_w, starts, starts,
                 late, waits)  # fmt: skip


ASKS: dict[str, Callable[..., tuple[Said, After | None]]] = {
    "power": ask_power, "bidding": ask_bidding,
}  # fmt: skip
