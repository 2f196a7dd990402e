"""What a power policy is asked and answers, and the register of those there are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from policies.memory import Memory
from policies.policy import Policy, enter
from policies.register import REGISTERS, Entry, Register
from policies.views import Budget, Request, Running


class Configuration(NamedTuple):
    """What a job runs on: so many nodes, cores of each, and watts that each node may draw."""

    nodes: int
    cores: int
    cap_w: float


class Choice(NamedTuple):
    """A configuration in which an application was measured: the watts that all its nodes draw, and
    the time that it takes, in ticks."""

    configuration: Configuration
    watts: float
    time: int


class Powered(NamedTuple):
    """A job that holds nodes, and what is known of its power."""

    run: Running
    configuration: Configuration
    measured_w: float
    """The watts of all its nodes, as last measured."""
    progress: float | None = None
    """The part of its work that is done (0 to 1), where the job reports it."""
    suspended: bool = False


class PowerView(NamedTuple):
    """The machine as a power policy sees it."""

    time: int
    queue: Sequence[Request]
    running: Sequence[Powered]
    free: int
    """Counts the idle nodes."""
    idle_w: float
    """The watts that a node draws while it is idle."""
    budget: Budget
    """The cap is also the target, where the machine follows a regulation signal."""
    choices: Mapping[str, Sequence[Choice]]
    """What was measured before, by application; of one that is not in it nothing is known."""
    memory: Memory | None = None


class Caps(NamedTuple):
    """The answer at a control interval. A job that is in none of these stays as it is."""

    cap_w: Mapping[int, float]
    """Watts per node, by the number of a running job."""
    suspend: Sequence[int] = ()
    resume: Sequence[int] = ()
    again: int | None = None
    """The time at which the policy wants to be asked next, if before the next interval."""


class PowerPolicy(Policy):
    """Divides a power budget among jobs.

    It is asked twice. `configure`, when a job could start: which of its measured configurations
    does it get, or is it to wait? `caps`, at every control interval and whenever a job starts or
    ends: what may the running jobs draw? An example, by which all jobs give up the same part of
    what they draw beyond idle power::

        @power("even", about="one ratio for all jobs", source="ours")
        class Even(PowerPolicy):
            def configure(self, view, job):
                spare = view.budget.cap_w - view.budget.measured_w
                fits = [choice for choice in view.choices.get(job.application, ())
                        if choice.watts <= spare and choice.configuration.nodes <= view.free]
                return min(fits, key=lambda choice: choice.time).configuration if fits else None

            def caps(self, view):
                idle = view.free * view.idle_w
                most = sum(job.configuration.cap_w * len(job.run.labels) for job in view.running)
                ratio = min(1.0, max(0.0, view.budget.cap_w - idle) / most) if most else 1.0
                return Caps({job.run.request.number: ratio * job.configuration.cap_w
                             for job in view.running})

    With a budget of 1,000 W, two idle nodes of 100 W each and a running job of ten nodes that were
    given 100 W each, the ratio is 0.8, and every node of the job gets 80 W.

    What a policy learns of power (samples of a job, of its project) it keeps in its memory, which
    `caps` may write to. `learn` hears of every job's end, as with other policies.
    """

    @abstractmethod
    def configure(self, view: PowerView, job: Request) -> Configuration | None:
        """Returns the configuration that a job starts with now; None: it waits. Called only for
        jobs that the scheduling policy wants to start."""

    @abstractmethod
    def caps(self, view: PowerView) -> Caps:
        """Returns the caps from now on. A cap below what a node can be held to is that instead."""


Written = TypeVar("Written", bound=type[PowerPolicy])

POWERS: Register[Entry] = REGISTERS["power"]


def power(name: str, *, about: str, source: str) -> Callable[[Written], Written]:
    """Register the subclass of `PowerPolicy` that it stands above, which stays what it is."""

    def decorate(written: Written) -> Written:
        enter("power", PowerPolicy, written, None, {"name": name, "about": about, "source": source})
        return written

    return decorate
