"""Watts: what a node draws, what a cap does to a job, and the section [power] of an experiment.

A node is **idle**, **asleep**, **waking** or **active**: an active one draws what its job demands,
but no more than its cap. Below a job's demand its run time grows linearly, from its shortest at
`active` watts to `slowdown` times that at `least` watts, below which no node can be held; with
`types`, each type of jobs has these three numbers of its own. Energy is power integrated over time,
exactly: every change of power ends one piece and begins another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.jobs.series import Steps
from odonata.jobs.series_dates import Period
from odonata.jobs.series_text import HOLD, REFUSE, read_steps
from odonata.provisioning.fitted import MACHINES, tables
from odonata.provisioning.table import Table
from odonata.traces.types import Types
from pdes.errors import Findings, Refused, os_words
from pdes.jit import kernel
from pdes.shown import say
from policies.parameters import in_ticks
from policies.power import POWERS, PowerPolicy
from policies.register import check
from topology.settings import setting

Numbers = npt.NDArray[np.float64]

PASSES, LIMITS, DEMANDS = ("events", "intervals"), ("stretch", "fixed"), ("constant", "mira")
FILE = ".csv"
MIRA_PEAK_W = 4_800_000 / 49_152
"""The peak of Mira, 4,800 kW, per node."""
MOST_W = 1e9


def known_or_file(words: Collection[str]) -> Callable[[str], None]:
    """Returns the rule of a key that is one of some words, or the name of a CSV file."""

    def rule(value: str) -> None:
        if value not in words and not value.endswith(FILE):
            raise ValueError(f"{', '.join(words)}, or a file that ends in {FILE}")

    return rule


PATKI = "T. Patki: The case for hardware overprovisioned supercomputers, thesis, Arizona 2015"


@dataclass(frozen=True)
class Power:
    """The section [power]: what nodes draw, what the machine may draw, and who sees to it.

    The defaults are the node of Patki's thesis: two sockets of 115 W, or of 51 W at the least, with
    30 W of memory each; at the least, SPhot takes 1.43 times as long. Idle power is chosen.
    """

    policy: str = setting(
        "none", "word", "Power policy, which keeps the machine below its cap; `odonata policies` "
        "explains them.", register="power",
    )  # fmt: skip
    policy_parameters: tuple[tuple[str, Any], ...] = ()
    """Name and value of each parameter that differs from the policy's default."""
    cap: Any = setting(
        None, "steps", "What all nodes together may draw: a power, a list of [time, power], or a "
        "CSV file of both.", none="none",
    )  # fmt: skip
    interval_ps: int | None = setting(
        None, "time", "How often power is measured, and caps may change.",
        above=0, none="auto", otherwise="4 min, and with packets 20 us",
    )  # fmt: skip
    passes: str = setting(
        "events", "word", "When jobs may start: whenever one arrives or ends and at every "
        "measurement, or only at measurements.", words=PASSES,
    )  # fmt: skip
    limits: str = setting(
        "stretch", "word", "Whether the requested time of a job that is slowed down by a cap "
        "stretches with it, or stays fixed.", words=LIMITS,
    )  # fmt: skip
    demand: str | None = setting(
        None, "text", "What jobs of a trace demand: constant, all `active`; mira, as on that "
        "machine, by project, user and application; or a CSV file of watts per node, by "
        "application, user, project or job.", none="auto",
        otherwise="mira for the jobs of that model, else constant", rule=known_or_file(DEMANDS),
    )  # fmt: skip
    applications: str | None = setting(
        None, "text", "What was measured of applications, whose jobs a power policy may then run "
        "in any of these configurations: cab or rzmerl, which are Patki's, or a CSV file (`odonata "
        "configurations --csv` writes one).", none="none", rule=known_or_file(MACHINES),
    )  # fmt: skip
    types: Any = setting(
        None, "types", "Types of jobs, each with what a node draws and how long a job takes, "
        "without a cap and under the lowest one: aqa or qosg, which are those of papers, a CSV "
        "file (`odonata types aqa --csv` writes one), or tables.", none="auto",
        otherwise="those of the mix, where the trace is one; else none",
    )  # fmt: skip
    idle_w: float | None = setting(
        None, "power", "What an idle node draws.", most=MOST_W, none="auto",
        otherwise="100 W, or what `types` say; 0 W where the demand is Mira's or `applications` "
        "are given",
    )  # fmt: skip
    active_w: float = setting(
        290.0, "power", "What a node of a job draws that has no cap.", most=MOST_W
    )
    least_w: float = setting(
        162.0, "power", "The lowest cap: a node of a job cannot be held below it.", most=MOST_W
    )
    slowdown: float = setting(
        1.43, "number", "How many times as long a job takes whose nodes are held at `least`.",
        least=1, most=1000,
    )  # fmt: skip
    communicating_w: float | None = setting(
        None, "power", "What a node of a job draws while its tasks only communicate or wait, in a "
        "packet run.", most=MOST_W, none="active", otherwise="what it draws computing: it polls",
    )  # fmt: skip
    maximum_w: float | None = setting(
        None, "power", "What no node exceeds: policies assume it of a job of which nothing is "
        "known.", most=MOST_W, none="auto", otherwise="active, or the most that `applications` or "
        "`types` draw; 97.66 W where the demand is Mira's",
    )  # fmt: skip
    sleep_w: float | None = setting(
        None, "power", "What a node draws that is asleep.", most=MOST_W, none="auto",
        otherwise="10 W, or what it draws idle if that is less",
    )  # fmt: skip
    wake_ps: int = setting(
        120 * 10**12, "time", "How long a node takes to wake up; its job waits for it.",
        name="wake_time",
    )  # fmt: skip
    wake_j: float = setting(
        30_000.0, "energy", "The energy that a node takes to wake up.", name="wake_energy",
        most=MOST_W,
    )  # fmt: skip
    variation: float = setting(
        0.0, "number", "By how much the least efficient node exceeds the most efficient one in "
        "power, as 0.23; needs a [machine].", least=0, most=10,
    )  # fmt: skip
    gaps: str = setting(
        "refuse", "word", "What becomes of a gap in a CSV file of the cap, the price or the carbon "
        "intensity: it is refused, or the last value holds.", words=(REFUSE, HOLD),
    )  # fmt: skip
    price: Any = setting(
        None, "price", "The price of a kWh: a number, a list of [time, price], or a CSV file.",
        none="none",
    )  # fmt: skip
    carbon: Any = setting(
        None, "carbon", "Grams of CO2 per kWh: a number, a list of [time, grams], or a CSV file.",
        none="none",
    )  # fmt: skip

    def __post_init__(self) -> None:
        found = check(self)
        found.unless(self.wake_ps > 0 or self.wake_j == 0, f"wake_time = {self.wake_ps} ps",
                     f"more than 0, or wake_energy = 0 J: it is {self.wake_j:g} J", "wake_ps",
                     "wake_j")  # fmt: skip
        if self.types is not None:
            self._check_types(found)
        elif self.demand != "mira":
            found.unless(self.least_w <= self.active_w, f"least = {self.least_w:g} W",
                         f"at most active, {self.active_w:g} W", "least_w", "active_w")  # fmt: skip
            if self.communicating_w is not None:
                found.unless(self.communicating_w <= self.active_w,
                             f"communicating = {self.communicating_w:g} W",
                             f"at most active, {self.active_w:g} W", "communicating_w",
                             "active_w")  # fmt: skip
            if self.maximum_w is not None:
                found.unless(self.active_w <= self.maximum_w, f"active = {self.active_w:g} W",
                             f"at most maximum, {self.maximum_w:g} W", "active_w",
                             "maximum_w")  # fmt: skip
            found.unless(self.active_w > 0, f"active = {self.active_w:g} W", "above 0", "active_w")
            found.unless(self.idle <= self.active_w, f"idle = {self.idle:g} W",
                         f"at most active, {self.active_w:g} W", "idle_w", "active_w")  # fmt: skip
        if self.types is None:
            found.unless(self.sleep <= self.idle, f"sleep = {self.sleep:g} W",
                         f"at most idle, {self.idle:g} W", "sleep_w", "idle_w")  # fmt: skip
        found.refuse()

    def _check_types(self, found: Findings) -> None:
        """Note what cannot be together with types of jobs, and what is odd about those that are no
        file: a file is read when it is needed, as it may be missing where only results are read."""
        for name, usual, why in (
            ("demand", None, "types say what jobs demand"),
            ("applications", None, "their jobs run in configurations that were measured, and those "
             "of types under any cap"),
            ("variation", 0.0, "types say what every node draws"),
            ("active_w", Power.active_w, "types say what jobs draw without a cap"),
            ("least_w", Power.least_w, "types say what the lowest cap is"),
            ("slowdown", Power.slowdown, "types say how much longer jobs take"),
        ):  # fmt: skip
            value = getattr(self, name)
            given = f"{name.removesuffix('_w')} = {value}"
            found.unless(value == usual, given, f"leave it out, or types: {why}", name, "types")
        if isinstance(self.types, str) and self.types.endswith(FILE):
            return
        try:
            table = Types.of(self.types)
        except Refused as refusal:
            for line in str(refusal).split("\n"):
                found.unless(False, "types", line, "types")
            return
        self._check_nodes(table, found)

    def _check_nodes(self, table: Types, found: Findings) -> None:
        """Note where nodes of jobs of these types cannot be nodes of this machine."""
        low, high = int(table.low_w.argmin()), int(table.most_w.argmax())
        found.unless(self.idle <= table.low_w[low], f"idle = {self.idle:g} W",
                     f"at most {table.low_w[low]:g} W, which a node of type {table.names[low]} "
                     "draws under the lowest cap", "idle_w", "types")  # fmt: skip
        found.unless(self.sleep <= self.idle, f"sleep = {self.sleep:g} W",
                     f"at most idle, {self.idle:g} W", "sleep_w", "idle_w")  # fmt: skip
        found.unless(self.maximum >= table.most_w[high], f"maximum = {self.maximum:g} W",
                     f"at least {table.most_w[high]:g} W, which a node of type {table.names[high]} "
                     "draws", "maximum_w", "types")  # fmt: skip

    # -- what is left to be found out

    @property
    def of_mira(self) -> bool:
        return self.demand == "mira"

    @property
    def idle(self) -> float:
        """Returns the watts of an idle node."""
        if self.idle_w is not None:
            return self.idle_w
        if self._table is not None and self._table.idle_w is not None:
            return self._table.idle_w
        return 0.0 if self.of_mira or self.applications is not None else 100.0

    @property
    def measured(self) -> Mapping[str, Table]:
        """Returns the tables of applications that were measured; none where none are given."""
        if self.applications is None:
            return {}
        if self.applications in MACHINES:
            return tables(self.applications)
        try:
            told = Path(self.applications).stat()
        except OSError as error:
            raise Refused(f"power.applications = {self.applications}: {os_words(error)}") from None
        return _read_aloud(self.applications, (told.st_mtime_ns, told.st_size))

    @cached_property
    def _table(self) -> Types | None:
        """Returns the types of jobs as their table has them; None where there is none."""
        if self.types is None:
            return None
        try:
            return Types.of(self.types)
        except Refused as refusal:
            raise Refused(f"power.types: {refusal}") from None

    @cached_property
    def kinds(self) -> Types | None:
        """Returns the types of jobs, None where there are none; refused where nodes of these jobs
        cannot be nodes of this machine."""
        table = self._table
        if table is None:
            return None
        found = Findings()
        self._check_nodes(table, found)
        if found.problems:
            raise Refused(f"power.{found.problems[0]}")
        return table

    @property
    def sleep(self) -> float:
        """Returns the watts of a node that is asleep."""
        return min(10.0, self.idle) if self.sleep_w is None else self.sleep_w

    @property
    def maximum(self) -> float:
        """Returns the watts that no node exceeds."""
        if self.maximum_w is not None:
            return self.maximum_w
        if self._table is not None:
            return float(self._table.most_w.max())
        if self.applications is not None:
            most_w = max(it.most_node_w for it in self.measured.values())
            return max(self.active_w * (1.0 + self.variation), most_w * (1.0 + self.variation))
        return MIRA_PEAK_W if self.of_mira else self.active_w * (1.0 + self.variation)

    @property
    def least(self) -> float:
        """Returns the watts below which a node of a job cannot be held."""
        if self._table is not None:
            return float(self._table.low_w.min())
        return min(self.least_w, self.maximum)

    @property
    def least_of_all(self) -> float:
        """Returns the watts below which not even the least efficient node of a job can be held."""
        return min(self.least * (1.0 + self.variation), self.maximum)

    @property
    def wake_w(self) -> float:
        """Returns the watts of a node that wakes up."""
        return self.wake_j / (self.wake_ps * 1e-12) if self.wake_ps else 0.0

    def interval(self, tick_ps: int, usual_ps: int) -> int:
        """Returns the interval between measurements, in ticks."""
        ps = usual_ps if self.interval_ps is None else self.interval_ps
        if ps % tick_ps:
            raise Refused(f"power.interval = {ps} ps: a whole number of {tick_ps} ps")
        return ps // tick_ps

    def made(self, tick_ps: int) -> PowerPolicy:
        """Returns the policy, with times as ticks of a model."""
        entry = POWERS.named(self.policy)
        policy: PowerPolicy = POWERS.make(
            self.policy, in_ticks(entry.parameters, self.policy_parameters, tick_ps)
        )
        return policy

    @property
    def regulates(self) -> bool:
        """Tells whether its policy follows a target by types of jobs; False where its plug-in is
        missing."""
        known = self.policy in POWERS and not POWERS.named(self.policy).missing
        return known and getattr(POWERS.named(self.policy).build, "regulate", None) is not None

    def steps(self, name: str, tick_ps: int, period: Period | None = None) -> Steps | None:
        """Returns the cap, the price or the carbon intensity over time, None where there is none.
        Dates have their place in the period of the run; None: it has no dates."""
        given = getattr(self, name)
        unit = {"cap": "power"}.get(name, name)
        if given is None:
            return None
        return read_steps(given, unit, tick_ps, f"power.{name}", period=period, gaps=self.gaps)

    def checked_cap(self, nodes: int, tick_ps: int, period: Period | None = None) -> Steps | None:
        """Returns the cap of a machine with so many nodes; refused where it is below what they draw
        when they are all idle, as nothing could keep it then."""
        cap = self.steps("cap", tick_ps, period)
        if cap is not None and cap.least < nodes * self.idle:
            asleep = self.made(tick_ps).sleep_after_s >= 0
            floor = nodes * (self.sleep if asleep else self.idle)
            if cap.least < floor:
                raise Refused(f"power.cap = {cap.least:,.0f} W at its lowest: {nodes:,} nodes draw "
                              f"{floor:,.0f} W when they are all "
                              f"{'asleep' if asleep else 'idle'}")  # fmt: skip
        return cap


@cache
def _read_aloud(path: str, version: tuple[int, int]) -> Mapping[str, Table]:
    """Returns the tables of a version of a file, read once; what is odd about them is said on
    stderr."""
    from odonata.provisioning.table_file import read_tables

    try:
        found = read_tables(path)
    except Refused as refusal:
        cure = f"; `odonata configurations {path} --repair --csv NEW.csv` mends what can be"
        raise Refused(f"power.applications = {path}: {refusal}{cure}") from None
    for line in found.repairs:
        say(line)
    return found.tables


@kernel
def bits(value: float) -> int:
    """Returns a float as the integer that has its bits."""
    return np.float64(value).view(np.int64)  # type: ignore[return-value]


@kernel
def stretch(cap_w: float, most_w: float, least_w: float, slowdown: float) -> float:
    """Returns how many times as long a job takes under a cap, per node, if it draws `most_w`
    without one."""
    if cap_w >= most_w or least_w >= most_w:
        return 1.0
    return 1.0 + (slowdown - 1.0) * (most_w - max(cap_w, least_w)) / (most_w - least_w)


def efficiencies(nodes: int, variation: float, seed: int) -> Numbers:
    """Returns the power of each node for the same work at the same speed, as a multiple of what the
    most efficient one draws: uniform from 1 to 1 + `variation` (chosen; Patki's figure 7.1 has a
    range of 23 %, and does not give the distribution)."""
    if not nodes:
        return np.ones(0)
    rng = np.random.Generator(np.random.Philox(key=[seed, 0x0FF1C1E7]))
    return 1.0 + variation * rng.random(nodes)
