"""The contract between the scheduler's pass and a machine of either fidelity.

`odonata.agents` fulfils it with messages, which take time to reach nodes and to come back;
`odonata.cluster` with arrays, at once. The pass (`odonata.jobs.passes`) knows neither: it asks a
machine what waits, what holds nodes and what is idle, and has it start, cap, suspend and resume
jobs. What a fidelity cannot do it does not define, and `Machine` refuses it by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from pdes.errors import Fault
from policies.memory import Buffer
from policies.power import Mold, Speed
from policies.views import (
    Bid,
    Configuration,
    Counters,
    Ended,
    JobKind,
    JobsThere,
    Labels,
    PowerDesk,
    Readings,
    Request,
    Running,
    Target,
    Trial,
)

Logged = tuple[str, Sequence[Any]]
"""A row of a log: its name, and the values of its columns."""

JOBS, READING, CAP, AGAIN, TARGET, RETRY = 1, 2, 4, 8, 16, 32
"""What may have happened at an instant, as bits: jobs have arrived or ended; power was measured;
the cap of the machine has changed; a power policy wanted to be asked now; the machine has another
target; a scheduling policy wanted to be asked now."""

PATIENCE = 100_000
"""So many times in a row a power policy is asked while no job gets on, and no job and no other cap
is to come. After that the run is over: the policy will never start what waits. At 4 minutes between
measurements these are 9 months, and at a second more than a day of other targets."""


class Watts(NamedTuple):
    """What is known of the machine's power."""

    idle_w: float
    """What an idle node draws."""
    least_w: float
    """Below what not even the least efficient node of a job can be held."""
    most_w: float
    """What no node exceeds."""
    cap_w: float
    """The cap of all nodes together; infinity: there is none."""
    measured_w: float
    """What all nodes drew on average in the interval before the last measurement."""


class Hour(NamedTuple):
    """What is known of the hour of a market that begins; the fields are those of
    `policies.views.Market`."""

    hour: int
    arrivals: Mapping[str, float]
    energy_price: float
    reserve_price: float
    error_price: float
    signal: Sequence[float]
    error: float
    types: Sequence[JobKind]
    jobs: JobsThere | None
    limit: float
    share: float
    late: float
    qos: str
    violation: float
    spread: float


class Machine(ABC):
    """A machine at one instant: what the scheduler knows of it, and what it can have it do."""

    tick: str
    """The unit of all times."""
    time: int
    memory: Buffer
    """What policies remember."""
    log: list[Logged]
    """The rows that this instant appends to logs."""
    paced: bool = False
    """Whether limits stretch with the pace of a job, which a cap at its start may change."""

    # -- what is known

    @property
    @abstractmethod
    def free(self) -> int:
        """Returns how many nodes are idle."""

    @property
    @abstractmethod
    def busy(self) -> int:
        """Returns how many nodes jobs hold."""

    @property
    @abstractmethod
    def queued(self) -> int:
        """Returns how many jobs wait."""

    @abstractmethod
    def idle(self) -> npt.NDArray[np.bool_] | None:
        """[node]: is it idle? None where nodes are only counted."""

    @abstractmethod
    def request(self, number: int) -> Request:
        """Returns what a job asked for."""

    def nodes_of(self, number: int) -> int:
        """Returns how many nodes a job gets that is about to start."""
        return self.request(number).nodes

    @abstractmethod
    def waiting(self) -> Sequence[Request]:
        """Returns the waiting jobs, in order of arrival."""

    @abstractmethod
    def running(self) -> Sequence[Running]:
        """Returns the jobs that hold nodes, by number."""

    @abstractmethod
    def ended(self) -> Sequence[Ended]:
        """Returns the jobs that have ended and of which no policy has learned, and forgets them."""

    def counters(self) -> Counters | None:
        """Returns what the network has reported; None where there is none that reports."""
        return None

    @property
    def pace(self) -> float:
        """Returns for how many ticks a job that starts now would hold nodes, per tick that it asked
        for."""
        return 1.0

    # -- what is known of power, where it is simulated

    @abstractmethod
    def watts(self) -> Watts:
        """Returns what is known of the machine's power."""

    @abstractmethod
    def readings(self) -> Readings:
        """Returns what was measured of the running jobs at this instant."""

    @abstractmethod
    def desk(self, shown: Any = None) -> PowerDesk:
        """Returns the jobs as arrays; `shown` are the rows of the waiting jobs that a policy which
        selects is shown, in order; else all that wait."""

    @abstractmethod
    def mold_of(self, number: int) -> Mold | None:
        """Returns the choice that a moldable job runs in, None where it has none."""

    @abstractmethod
    def since_asked(self) -> tuple[int, int]:
        """Returns how many jobs have arrived and ended since caps were last asked for."""

    @abstractmethod
    def work(self) -> float:
        """Returns the sum over all jobs that wait or run of what is left of their requested times,
        in ticks at a service rate of 1; -1 where a job named none."""

    def target(self) -> Target | None:
        """Returns what the machine is to draw by its bid; None where it takes part in no market."""
        return None

    def excluded(self) -> bool:
        """Tells whether nothing may be offered in the hour of the market that begins."""
        self._refuse("takes part in a market")

    def hour(self) -> Hour:
        """Returns what is known of the hour of the market that begins."""
        self._refuse("takes part in a market")

    def tried(
        self, bid: Bid, hour: int = 0, give_up: float = 0.0, span: int = 0, since: int = 0
    ) -> Trial:
        """Returns what a bid would come to in that hour, as far as anybody can know, or in another
        one, or in a longer span; see `policies.views.Market.trial`."""
        self._refuse("tries a bid")

    # -- what is done

    def choose(self) -> Sequence[int] | None:
        """Returns the numbers of the jobs that a compiled scheduling policy chooses on the
        machine's own arrays; None where it has to be asked through a view."""
        return None

    def first_in_order(self, most: int) -> Any:
        """Returns the rows of the first waiting jobs in the order of a compiled discipline, by the
        same way; None likewise."""
        return None

    def note_starts(self) -> bool:
        """Have a compiled scheduling policy that goes by usage note who holds nodes, where a power
        policy has chosen who starts. Returns whether it is one; else it is told through a view."""
        return False

    def foresee(self, cap_w: float) -> None:
        """Note to which cap per node a job would be held that starts now; only where `paced`."""
        return None

    @abstractmethod
    def configure(self, number: int, how: Configuration, mold: Mold | None = None) -> None:
        """Note with what a job is going to start."""

    def settle(self, chosen: Sequence[int]) -> Sequence[int]:
        """Suspend the running jobs that a scheduling policy which preempts has not chosen, and
        take those that start out of the queue. Returns the numbers of these, in order."""
        return chosen

    @abstractmethod
    def start(self, job: Request, labels: Labels | None) -> None:
        """Start a job on these nodes; None where nodes are only counted."""

    def launch(self) -> None:
        """Have all jobs begin that were started at this instant."""
        return None

    @abstractmethod
    def cap(self, rows: npt.NDArray[np.int64], cap_w: npt.NDArray[np.float64]) -> None:
        """Give running jobs caps, in W per node; NaN: it stays as it is."""

    def steer(self) -> bool | None:
        """Have a compiled power policy give caps on the machine's own arrays. Returns whether
        waiting jobs are to be tried now; None where it has to be asked through a view."""
        return None

    def suspend(self, numbers: Sequence[int]) -> None:
        """Have running jobs keep their nodes and do nothing, at idle power."""
        self._refuse(f"suspends job {numbers[0]}")

    def resume(self, numbers: Sequence[int]) -> None:
        """Have suspended jobs go on."""
        self._refuse(f"resumes job {numbers[0]}")

    def set_rate(self, speed: Speed) -> None:
        """Set the service rate of all nodes."""
        self._refuse("sets a service rate")

    def _refuse(self, what: str) -> NoReturn:
        raise Fault(f'it {what}, which only a run with fidelity = "job" can do')

    def offer(self, bid: Bid) -> None:
        """Have a bid hold for the hour that begins."""
        self._refuse("takes part in a market")

    @abstractmethod
    def asked(self) -> None:
        """Note that caps were asked for just now."""

    @abstractmethod
    def ask_again(self, time: int) -> None:
        """Have the power policy be asked at a time, instead of when it last wanted to be."""

    def retry(self, time: int | None) -> None:
        """Have the scheduling policy be asked at a time, likewise; None: no longer at any."""
        if time is not None:
            self._refuse("has a scheduling policy asked again at a time")
