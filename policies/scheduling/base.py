"""What a scheduling policy is asked and answers, and the register of those there are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, TypeVar

from pdes.errors import Fault
from policies.policy import FunctionPolicy, Learn, Policy, Remembers, enter
from policies.register import REGISTERS, Entry, Register, described
from policies.views import NEVER, Request, View


class SchedulingPolicy(Policy):
    """Says which waiting jobs start now.

    An example, which starts whatever fits while it leaves a part of the machine to small jobs::

        @scheduling("reserve", about="large jobs leave some nodes to small ones", source="ours")
        class Reserve(SchedulingPolicy):
            kept: int = parameter(8, unit="nodes", about="that only small jobs get", least=0)

            def select(self, view):
                free, chosen = view.free, []
                for job in view.queue:
                    if job.nodes <= free - (self.kept if job.nodes > self.kept else 0):
                        chosen.append(job.number)
                        free -= job.nodes
                return chosen

    With 18 idle nodes and jobs of 16, 4 and 8 nodes waiting, the first is passed over (it would
    leave 2), and the other two start.
    """

    preemptive: bool = False
    """Whether it may take nodes from running jobs. Then it returns the numbers of all jobs that are
    to run from now on, of those that wait and of those that run: the others of these are suspended,
    and go on where they were when they are chosen again. Only the job model can do so."""

    always: bool = False
    """Whether it is asked whenever a job has arrived or ended; otherwise only while a job waits and
    a node is idle (or, if it preempts, while there is any job)."""

    needs: tuple[str, ...] = ()
    """What a run has to have of "price", "carbon" and "cap", which it goes by (`View.ahead`): a run
    without is refused."""

    @abstractmethod
    def select(self, view: View) -> Sequence[int]:
        """Returns the numbers of the jobs that start now, in the order in which they get their
        nodes. Called by `select` alone, which checks the answer. What it remembers is
        `view.memory`."""

    def again(self, view: View) -> int | None:
        """Returns a later time at which it wants to be asked again, whatever has happened until
        then, in ticks; None: only when something has happened. Called by `again` alone, after
        `select` and with the same view. There is one such appointment, and a later one takes its
        place. Only the job model keeps it."""
        return None

    def note_starts(self, view: View) -> None:
        """Called instead of `select`, at the end of a pass, where a power policy chooses who
        starts: for one that remembers who holds nodes."""


class Discipline(SchedulingPolicy):
    """The simplest case: an order in which waiting jobs are tried, by which each starts that fits.

    Among jobs of 8, 2 and 4 nodes, in order of arrival, `small-first` answers [1, 2, 0]: the job at
    position 1 is tried first.
    """

    strict: bool = True
    """Nobody passes a job that does not fit: the first that does not ends the round. Where this is
    False, those behind it are tried as well."""

    @abstractmethod
    def order(self, queue: Sequence[Request]) -> list[int]:
        """Returns positions in `queue`, each once. `queue` is as in `View`."""

    def select(self, view: View) -> Sequence[int]:
        return fitting(view, positions_of(self, view.queue), self.strict)


def positions_of(policy: Discipline, queue: Sequence[Request]) -> list[int]:
    """Ask a discipline for its order. A Fault names it if that does not have each position once."""
    given = policy.order(queue)
    if given is None:
        raise Fault(f"scheduling {policy.name}: it returned None, and not positions in the queue")
    order = [index(position) for position in given]
    if sorted(order) != list(range(len(queue))):
        raise Fault(f"scheduling {policy.name}, of {len(queue)} jobs: {order} does not name each "
                    "position once")  # fmt: skip
    return order


def fitting(view: View, order: Iterable[int], strict: bool = True) -> list[int]:
    """Returns the numbers of those jobs that fit, tried by position in this order; `strict` as in
    `Discipline`."""
    free, chosen = view.free, []
    for position in order:
        job = view.queue[position]
        if job.nodes <= free:
            chosen.append(job.number)
            free -= job.nodes
        elif strict:
            break
    return chosen


def backfilling(view: View, order: Iterable[int]) -> list[int]:
    """Returns the numbers of the jobs that start by EASY backfilling, tried by position in this
    order: all that fit, until one does not; and then those that do not delay it. A job without a
    requested time is taken to run for ever.

    The same as `easy` does, for an order of your own::

        @scheduling("narrow", about="few nodes first, with backfilling", source="ours")
        def narrow(view):
            queue = view.queue
            return backfilling(view, sorted(range(len(queue)), key=lambda at: queue[at].nodes))
    """
    now, free, chosen = view.time, view.free, []
    waiting = [view.queue[position] for position in order]
    while waiting and waiting[0].nodes <= free:
        chosen.append(waiting.pop(0))
        free -= chosen[-1].nodes
    if not waiting:
        return [job.number for job in chosen]
    head = waiting.pop(0)
    ends = [(NEVER if job.requested_end is None else max(job.requested_end, now + 1),
             job.request.nodes) for job in view.running]  # fmt: skip
    ends += [(_end(view, job), job.nodes) for job in chosen]
    there, shadow = free, now
    for end, nodes in sorted(ends):
        if there >= head.nodes and end > shadow:
            break
        shadow, there = end, there + nodes
    spare = there - head.nodes
    for job in waiting:
        late = _end(view, job) > shadow
        if job.nodes <= free and (not late or job.nodes <= spare):
            chosen.append(job)
            free -= job.nodes
            spare -= job.nodes if late else 0
    return [job.number for job in chosen]


def _end(view: View, job: Request) -> int:
    end = view.expected_end(job)
    return NEVER if end is None else min(NEVER, end)


Written = TypeVar("Written", bound=Callable[..., Any] | type[SchedulingPolicy])

SCHEDULINGS: Register[Entry] = REGISTERS["scheduling"]


@dataclass(frozen=True)
class FunctionScheduling(FunctionPolicy, SchedulingPolicy):
    """A scheduling policy that was written as a function."""

    def select(self, view: View) -> Sequence[int]:
        chosen: Sequence[int] = self.function(view, **self.values)
        return chosen


@dataclass(frozen=True)
class FunctionDiscipline(FunctionPolicy, Discipline):
    """A discipline that was written as a function."""

    strict: bool = True

    def order(self, queue: Sequence[Request]) -> list[int]:
        order: list[int] = self.function(queue, **self.values)
        return order


def scheduling(
    name: str,
    *,
    about: str,
    source: str,
    memory: Remembers | None = None,
    learn: Learn | None = None,
) -> Callable[[Written], Written]:
    """Register what it stands above, a function `select(view)` or a subclass of `SchedulingPolicy`;
    which stays what it is. `memory` and `learn` are a function's `remembers` and `learn`
    (`policies.policy`)."""

    def decorate(written: Written) -> Written:
        words = {"name": name, "about": about, "source": source}
        enter("scheduling", SchedulingPolicy, written, FunctionScheduling, words, memory, learn)
        return written

    return decorate


def discipline(
    name: str, *, about: str, source: str, strict: bool | None = None
) -> Callable[[Written], Written]:
    """Register what it stands above, a function `order(queue)` or a subclass of `Discipline`; which
    stays what it is. A function is strict unless it says otherwise."""

    def decorate(written: Written) -> Written:
        words = {"name": name, "about": about, "source": source}
        settings = {} if strict is None else {"strict": strict}
        enter("scheduling", Discipline, written, FunctionDiscipline, words, None, None, **settings)
        return written

    return decorate


def select(policy: SchedulingPolicy, view: View) -> list[int]:
    """Ask which jobs start now; the one place where this is done. A Fault names the policy if it
    chooses a job that does not wait, one twice, or more nodes than are idle."""
    try:
        answer = policy.select(view)
        if answer is None:
            raise Fault(f"scheduling {policy.name}: it returned None, and not numbers of jobs")
        chosen = [index(number) for number in answer]
    except Fault:
        raise
    except BaseException as error:
        raise Fault(f"scheduling {policy.name} failed: {described(error)}") from error
    if not chosen:
        return chosen
    here, free, needed = {job.number: job.nodes for job in view.queue}, view.free, 0
    if policy.preemptive:
        here |= {job.request.number: job.request.nodes for job in view.running}
        free += sum(job.request.nodes for job in view.running)
    for number in chosen:
        if number not in here:
            how = " twice" if chosen.count(number) > 1 else ", which does not wait"
            raise Fault(f"scheduling {policy.name}: it chose job {number}{how}")
        needed += here.pop(number)
    if needed > free:
        raise Fault(f"scheduling {policy.name}: it chose jobs of {needed} nodes in sum, and "
                    f"{free} are {'there' if policy.preemptive else 'idle'}")  # fmt: skip
    return chosen


def comes_again(policy: SchedulingPolicy) -> bool:
    """Tells whether a policy may want to be asked again at a time."""
    return type(policy).again is not SchedulingPolicy.again


def again(policy: SchedulingPolicy, view: View) -> int | None:
    """Ask when a policy wants to be asked again; the one place where this is done. A Fault names it
    if that is not a time to come."""
    try:
        answer = policy.again(view)
        time = None if answer is None else index(answer)
    except BaseException as error:
        raise Fault(f"scheduling {policy.name} failed: {described(error)}") from error
    if time is not None and time <= view.time:
        raise Fault(f"scheduling {policy.name}: it wants to be asked again at {time}, and it is "
                    f"{view.time} now")  # fmt: skip
    return time
