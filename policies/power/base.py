"""What a power policy is asked and answers, and the register of those there are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from operator import index
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pdes.clock import LATEST
from pdes.errors import Fault
from policies.policy import Policy, enter
from policies.power.floor import Regulate
from policies.power.steering import Steer, as_kernel, steered
from policies.register import REGISTERS, Entry, Register, described
from policies.views import Configuration, Mold, PowerView, Request


class Admitted(NamedTuple):
    """The jobs that start now, in the order in which they get their nodes; which of these may break
    the cap; and the choices that moldable ones run in, by their number. One that has none runs as
    it was submitted."""

    numbers: Sequence[int]
    forced: Sequence[int] = ()
    molds: Mapping[int, Mold] = {}


class Speed(NamedTuple):
    """A service rate of all nodes, which do so much work per time, and the watts that a node draws
    at it while it is busy and while it is idle."""

    rate: float
    busy_w: float
    idle_w: float


AS_IT_IS: Mapping[int, float] = {}
FLOAT = np.dtype(np.float64)


class Caps(NamedTuple):
    """The answer at a control interval. A job that is in none of these stays as it is.

    A reading, a new target or a changed cap asks for caps only. Waiting jobs are tried, in a
    scheduling pass, when a job has arrived or ended, or when a policy asks for it (`schedule`); and
    under a policy that has a say in which jobs start, also then (`PowerPolicy.retries`).
    """

    cap_w: Mapping[int, float] | Any = AS_IT_IS
    """Watts per node, by the number of a running job; infinity: it has no cap any more. Or an array
    of float64 as long as `view.desk.running` and in its order: `cap_w[i]` is for the job in row
    `desk.running[i]`, and NaN leaves that job as it is."""
    suspend: Sequence[int] | npt.NDArray[np.int64] = ()
    """The numbers of jobs that keep their nodes, do no work, and draw idle power; or an array of
    such."""
    resume: Sequence[int] | npt.NDArray[np.int64] = ()
    """The numbers of suspended jobs that go on; or an array of such."""
    again: int | None = None
    """The time at which the policy wants to be asked next, if before the next interval."""
    speed: Speed | None = None
    """The service rate of all nodes from now on; None: as it is."""
    schedule: bool = False
    """Whether waiting jobs are to be tried now: a scheduling pass follows at once."""


class PowerPolicy(Policy):
    """Divides a power budget among jobs.

    It is asked up to five times. `observe`, when power has been measured. `select`, only where it
    says `selects`: which of the first waiting jobs start now? Otherwise `start_cap_w`: under which
    cap would a job start, as far as that is known? And `configure`, for each job that the
    scheduling policy wants to start, in its order: which configuration does it get, or is it to
    wait, and all behind it? `caps`, after that: what may the running jobs draw from now on? Each
    has an answer for who does not care. An example, by which all jobs give up the same part of what
    they may draw::

        @power("even", about="one ratio for all jobs", source="ours")
        class Even(PowerPolicy):
            def configure(self, view, job):
                spare = view.budget.cap_w - view.budget.measured_w
                least = job.nodes * view.least_w
                return Configuration(job.nodes, cap_w=view.most_w) if least <= spare else None

            def caps(self, view):
                most = view.budget.cap_w - view.free * view.idle_w
                ratio = min(1.0, max(0.0, most) / (view.busy * view.most_w)) if view.busy else 1.0
                return Caps({job.run.request.number: ratio * view.most_w for job in view.running})

    With a budget of 1,000 W, two idle nodes of 100 W each and a running job on ten nodes that draw
    100 W at most, the ratio is 0.8, and every node of the job gets 80 W.

    What a policy learns of power (samples of a job, of its project) it keeps in its memory, which
    all of these may write to. `learn` hears of every job's end, as with other policies.
    """

    selects: bool = False
    """Whether it chooses among the waiting jobs itself, in the order of the discipline."""
    molds: bool = False
    """Whether it chooses configurations for moldable jobs, which only fidelity = "job" has."""
    controls: bool = True
    """Whether it means to keep the machine below its cap."""
    reads: bool = True
    """Whether it goes by what is measured. One that does not is asked only when jobs arrive or end
    and when the cap of the machine changes: how often power is measured changes nothing then."""
    by_queue: bool = True
    """Whether its caps go by who waits. One whose caps do not is not asked for them where jobs have
    arrived and none has started or ended."""
    retries: bool = True
    """Whether waiting jobs are tried again when power was measured, when the cap or the target of
    the machine has changed, and when it asked to be asked: what one needs that has jobs wait for
    power. One that steers every second may have other ways (`Caps.schedule`)."""
    sleep_after_s: float = -1.0
    """How long a node is idle before it is put to sleep, in s; below 0: it never is."""
    figures: tuple[str, ...] = ()
    """The names of the numbers that `observe` returns, which are kept in a log."""
    steer: Steer | None = None
    """A compiled policy has this instead of `caps`, as a static method: a kernel of (now, desk,
    memory, given, cap_w) that writes to `cap_w[i]` the watts per node of the job in row
    `desk.running[i]`. Those that it leaves alone (NaN) stay as they are. It returns whether
    waiting jobs are to be tried now, as `Caps.schedule`; or nothing. `now` is a `Moment`, `desk` a
    `PowerDesk` whose `served` is an array, `memory` a tuple of the arrays that it declares, and
    `given` one of its parameters that are numbers or flags, each in order."""

    regulate: Regulate | None = None
    """A policy that follows a target second by second may have this, as a static method, instead of
    all that is asked: a kernel of (now, floor, given), called whenever power was measured. It
    starts, suspends and caps jobs by type (`policies.power.acts`). `now` is a `Moment`, `floor` a
    `policies.power.floor.Floor`, and `given` an array of its parameters that are numbers or flags,
    in order. In a run of packets the floor is what the scheduler knows
    (docs/following-in-packets.md)."""

    bidding: str = ""
    """The bidding policy that usually goes with it; empty: the one that has its name."""

    @property
    def first_rate(self) -> float:
        """Returns the service rate of nodes until it first sets one."""
        return 1.0

    @property
    def shown(self) -> int:
        """Returns how many of the waiting jobs it is shown if it selects; 0: all."""
        return 0

    def prepare(self, view: PowerView) -> None:
        """Called before a run, when nobody waits: a compiled policy has its kernels compiled."""

    def observe(self, view: PowerView) -> Sequence[float]:
        """Called when power has been measured: `view.readings` has it. Returns the numbers named in
        `figures`."""
        return ()

    def select(self, view: PowerView) -> Admitted:
        """Returns the jobs of `view.queue` that start now."""
        return Admitted(())

    def start_cap_w(self, view: PowerView) -> float:
        """Returns the watts per node to which a job would be held that starts now, as far as that
        is known before one is chosen; infinity: to none. Called before the scheduling policy is
        asked, which takes waiting jobs to run for as much longer as such a cap may make them."""
        return math.inf

    def never_starts(self, view: PowerView, job: Request) -> bool:
        """Tells whether a job can never start, not even on a machine that is otherwise idle, as
        `view` is, under the highest cap that is still to come. Such a job is dropped before a run,
        as one that is larger than the machine."""
        return False

    def configure(self, view: PowerView, job: Request) -> Configuration | None:
        """Returns the configuration that a job starts with now; None: it waits, and so do those
        that would come after it. Called only for jobs that the scheduling policy wants to start;
        those before it in this pass are not among the running jobs yet, nor in what was measured,
        but `view.free` and `view.busy` count them."""
        return Configuration(job.nodes)

    def caps(self, view: PowerView) -> Caps:
        """Returns the caps from now on. A cap below what a node can be held to is that instead.
        Called whenever jobs have arrived, started or ended, when power was measured, when the cap
        or the target of the machine has changed, and when it asked to be (`Caps.again`)."""
        if self.steer is None:
            return Caps()
        cap_w, tries = steered(self, view)
        return Caps(cap_w, schedule=tries)


Written = TypeVar("Written", bound=type[PowerPolicy])
Answer = TypeVar("Answer")

POWERS: Register[Entry] = REGISTERS["power"]


def power(name: str, *, about: str, source: str) -> Callable[[Written], Written]:
    """Register the subclass of `PowerPolicy` that it stands above, which stays what it is."""

    def decorate(written: Written) -> Written:
        enter("power", PowerPolicy, written, None, {"name": name, "about": about, "source": source})
        _choose_caps_or_steer(written)
        if "regulate" in vars(written) and written.regulate is not None:
            home = f"{written.__module__}.{written.__qualname__}"
            compiled = as_kernel(written.regulate, home, "regulate", "now, floor, given")
            written.regulate = staticmethod(compiled)  # type: ignore[assignment]
        return written

    return decorate


def _choose_caps_or_steer(written: type[PowerPolicy]) -> None:
    """Have the kernel of a compiled policy be compiled, unless a class that is derived of it has
    `caps` again."""
    if written.steer is None:
        return
    home = f"{written.__module__}.{written.__qualname__}"
    nearest = next(each for each in written.__mro__ if {"caps", "steer"} & {*vars(each)})
    if {"caps", "steer"} <= {*vars(nearest)}:
        raise TypeError(f"{home}: has both caps and steer, which is a compiled caps: one of them")
    compiled = "steer" in vars(nearest)
    written.steer = staticmethod(as_kernel(written.steer, home)) if compiled else None  # type: ignore[assignment]


# -- asking, each in one place that checks the answer and names the policy if it is wrong


def _asked(policy: PowerPolicy, what: str, *arguments: Any) -> Any:
    try:
        return getattr(policy, what)(*arguments)
    except Fault:
        raise
    except BaseException as error:
        raise Fault(f"power {policy.name} failed ({what}): {described(error)}") from error


def _read(read: Callable[..., Answer]) -> Callable[..., Answer]:
    """Have a function that reads a policy's answer name the policy where that cannot be read."""

    @wraps(read)
    def reading(policy: PowerPolicy, *arguments: Any) -> Answer:
        try:
            return read(policy, *arguments)
        except Fault:
            raise
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise Fault(f"power {policy.name}: its answer cannot be read ({read.__name__}): "
                        f"{error}") from error  # fmt: skip

    return reading


@_read
def observe(policy: PowerPolicy, view: PowerView) -> tuple[float, ...]:
    """Tell a policy what was measured. Returns the numbers that it wants to have logged."""
    values = tuple(map(float, _asked(policy, "observe", view)))
    if len(values) != len(policy.figures):
        raise Fault(f"power {policy.name}: it observed {len(values)} numbers, and has names for "
                    f"{len(policy.figures)}")  # fmt: skip
    return values


@_read
def admit(policy: PowerPolicy, view: PowerView) -> Admitted:
    """Ask a policy that selects which jobs start now. A Fault names it if it chooses a job that is
    not in its window, one twice, more nodes than are idle, or for a moldable one what was never
    measured."""
    answer = _asked(policy, "select", view)
    if not isinstance(answer, Admitted):
        raise Fault(f"power {policy.name}: it selected {answer!r}, which is no Admitted")
    chosen, molds = [index(number) for number in answer.numbers], {}
    here, needed = _shown(view, chosen), 0
    for number in chosen:
        if number not in here:
            how = " twice" if chosen.count(number) > 1 else ", which is not in its window"
            raise Fault(f"power {policy.name}: it chose job {number}{how}")
        job = here.pop(number)
        mold = answer.molds.get(number)
        if mold is not None:
            molds[number] = _checked_mold(policy, view, job, mold)
        needed += job.nodes if mold is None else mold.nodes
    if needed > view.free:
        raise Fault(f"power {policy.name}: it chose jobs of {needed} nodes in sum, and {view.free} "
                    "are idle")  # fmt: skip
    forced = [index(number) for number in answer.forced]
    if not {*forced} <= {*chosen}:
        raise Fault(f"power {policy.name}: it lets jobs {forced} break the cap, of which some do "
                    "not start")  # fmt: skip
    if molds and not policy.molds:
        raise Fault(f"power {policy.name}: it chooses configurations, and does not say so: molds = "
                    "True")  # fmt: skip
    if len(molds) < len(answer.molds):
        other = next(number for number in answer.molds if number not in molds)
        raise Fault(f"power {policy.name}: it has a choice for job {other}, which does not start")
    return Admitted(chosen, forced, molds)


def _shown(view: PowerView, numbers: Sequence[int]) -> dict[int, Request]:
    """Returns the jobs of these numbers that wait, by number. Nobody looks at those behind the last
    of them, as there may be many."""
    found: dict[int, Request] = {}
    missing = {*numbers}
    for job in view.queue if missing else ():
        if job.number in missing:
            found[job.number] = job
            missing.remove(job.number)
            if not missing:
                break
    return found


def _checked_mold(policy: PowerPolicy, view: PowerView, job: Request, mold: Mold) -> Mold:
    choices = view.choices.get(job.application)
    if choices is None or choices.place(*mold[:3]) < 0:
        raise Fault(f"power {policy.name}: for job {job.number} of {job.application or 'no name'} "
                    f"it chose {mold}, which was never measured")  # fmt: skip
    if mold.limit is not None and not 0 < index(mold.limit) <= LATEST:
        raise Fault(f"power {policy.name}: it ends job {job.number} after {mold.limit}; more than "
                    "0")  # fmt: skip
    return mold


@_read
def start_cap_w(policy: PowerPolicy, view: PowerView) -> float:
    """Ask to which cap per node a job would be held that starts now."""
    cap_w = float(_asked(policy, "start_cap_w", view))
    if not cap_w >= 0:
        raise Fault(f"power {policy.name}: it would hold a job that starts now to {cap_w} W; at "
                    "least 0")  # fmt: skip
    return cap_w


@_read
def configuration(policy: PowerPolicy, view: PowerView, job: Request) -> Configuration | None:
    """Ask what a job starts with; None: it waits."""
    answer = _asked(policy, "configure", view, job)
    if answer is None:
        return None
    if not isinstance(answer, Configuration):
        raise Fault(f"power {policy.name}: for job {job.number} it chose {answer!r}, which is no "
                    "Configuration")  # fmt: skip
    if answer.nodes != job.nodes:
        raise Fault(f"power {policy.name}: it gives job {job.number} {answer.nodes} nodes; the job "
                    f"asked for {job.nodes}, and cannot run on another number")  # fmt: skip
    check_cap(policy, job.number, answer.cap_w)
    return answer


@_read
def caps(policy: PowerPolicy, view: PowerView) -> Caps:
    """Ask for the caps from now on. A Fault names the policy if it caps a job that does not run,
    gives watts that are none, or wants to be asked in the past. What is returned has `cap_w` as a
    dict or as an array of float64, and `suspend` and `resume` as lists."""
    answer = _asked(policy, "caps", view)
    if not isinstance(answer, Caps):
        raise Fault(f"power {policy.name}: its caps are {answer!r}, which is no Caps")
    cap_w: Any = answer.cap_w
    given = isinstance(cap_w, np.ndarray)
    alone = not (len(answer.suspend) or len(answer.resume) or answer.speed)
    if given and alone and answer.again is None:  # as one answers that steers many jobs
        return answer._replace(cap_w=_cap_column(policy, view, cap_w))
    cap_w = _cap_column(policy, view, cap_w) if given else dict(cap_w)
    suspend, resume = _numbers(answer.suspend), _numbers(answer.resume)
    answer = Caps(cap_w, suspend, resume, answer.again, answer.speed, bool(answer.schedule))
    moved = suspend + resume
    named = moved if given else [*cap_w, *moved]
    if named:
        here = _held(view)
        for number in named:
            if number not in here:
                raise Fault(f"power {policy.name}: it caps job {number}, which does not run")
        for number, watts in () if given else cap_w.items():
            check_cap(policy, number, watts)
        if len({*moved}) < len(moved):
            twice = next(number for number in moved if moved.count(number) > 1)
            raise Fault(f"power {policy.name}: it suspends or resumes job {twice} twice at once")
    if answer.again is not None and not view.time < index(answer.again) <= LATEST:
        raise Fault(f"power {policy.name}: at {view.time} it wants to be asked again at "
                    f"{answer.again}")  # fmt: skip
    speed = answer.speed
    if speed is not None and not (
        0 < speed.rate < math.inf and all(0 <= watts < math.inf for watts in speed[1:])
    ):
        raise Fault(f"power {policy.name}: {speed}: a rate above 0, and watts from 0")
    return answer


def _held(view: PowerView) -> set[int]:
    """Returns the numbers of the jobs that run. Where there is a desk, no tuple is made per job."""
    if view.desk is not None:
        return {*view.desk.running.tolist()}
    return {job.run.request.number for job in view.running}


def _numbers(jobs: Any) -> list[int]:
    return [*map(index, jobs.tolist() if isinstance(jobs, np.ndarray) else jobs)]


def _cap_column(
    policy: PowerPolicy, view: PowerView, cap_w: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Returns a column of caps as float64 if it is one: a value for each running job of the desk,
    at least 0, or NaN."""
    if view.desk is None:
        raise Fault(f"power {policy.name}: its caps are an array, in the order of a desk that it "
                    "was not shown")  # fmt: skip
    running = view.desk.running
    if cap_w.shape != running.shape or cap_w.dtype.kind not in "fiu":
        raise Fault(f"power {policy.name}: its caps are an array of {cap_w.dtype} of shape "
                    f"{cap_w.shape}; one of float64 of shape {running.shape}, as "
                    "view.desk.running has")  # fmt: skip
    found = cap_w if cap_w.dtype is FLOAT else cap_w.astype(np.float64)
    if len(found) and not np.minimum.reduce(found) >= 0:  # it is NaN where any is
        for row, watts in zip(running.tolist(), found.tolist(), strict=True):
            if watts < 0:
                check_cap(policy, row, watts)
    return found


def check_cap(policy: PowerPolicy, number: int, cap_w: float) -> None:
    """Raise a Fault that names a policy whose cap is below 0, or not a number."""
    if not float(cap_w) >= 0:
        raise Fault(f"power {policy.name}: it caps job {number} at {cap_w} W; at least 0 "
                    "(Caps.suspend suspends a job)")  # fmt: skip
