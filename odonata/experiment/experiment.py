"""An experiment, of packets or of jobs: a machine, what it runs, how long, and what is kept of it.

`Experiment` is one in which packets are simulated, `JobExperiment` one of months of jobs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from odonata.agents.network import Network
from odonata.agents.routers import ROUTERS
from odonata.agents.traffic import Traffic
from odonata.agents.workload import Workload
from odonata.experiment.keys import MACHINE_KEYS, PRESET, Key, keys_of, parameter_keys, quoted
from odonata.experiment.sections import (
    JOB_INTERVAL,
    OF_NODES,
    Metrics,
    NetworkSettings,
    NicSettings,
    RunSettings,
    SchedulerSettings,
)
from odonata.jobs.market import PRICES, MarketSettings
from odonata.jobs.power import Power
from odonata.jobs.request import Job
from odonata.traces.source import Source
from pdes.clock import TICKS
from policies.allocation import ALLOCATIONS
from policies.parameters import in_ticks
from policies.scheduling import SCHEDULINGS
from topology import Dragonfly
from topology.presets import PRESETS
from topology.settings import HOME, Setting, required, setting

if TYPE_CHECKING:
    from odonata.cluster.model import Cluster

NAME_LENGTH = 100
MOST_JOBS = 100_000


FIDELITIES = ("packet", "job")
FIDELITY = Setting("word", "What is simulated: every packet, for microseconds to seconds, or only "
                   "jobs, for hours to years.", words=FIDELITIES)  # fmt: skip


class Described(ABC):
    """What experiments of either fidelity have in common: they can be written as a file."""

    def to_toml(self) -> str:
        """Returns all of it as TOML, nothing left to defaults: `parse` makes an equal experiment of
        it."""
        lines, section = [], ""
        for key, value in self.settings():
            if key.section != section:
                section = key.section
                plain, bracket, _ = section.partition("[")
                lines += ["", f"[[{plain}]]" if bracket else f"[{section}]"]
            if is_own_seed(key):  # TOML has no key that is a number and a table
                name, _, what = key.name.partition(".")
                before = lines.pop().partition(" = ")[2]
                inner = before[2:-2] if before.startswith("{") else f"{OTHERS} = {before}"
                lines.append(f"{name} = {{ {inner}, {what} = {value} }}")
            else:
                lines.append(f"{key.name} = {value}")
        return "\n".join(lines) + "\n"

    def settings(self) -> Iterator[tuple[Key, str]]:
        """Returns all that it is, key by key, as TOML; what does not apply is left out. Jobs that
        are alike are one entry, with their count."""
        for key in of(""):
            if key is not INCLUDE_KEY:  # it has what came of it
                yield key, key.write(key.of(self))
        for section in SECTIONS:
            for here, part, count in self._parts(section):
                for key in of(section):
                    if not self.has(key) or (section == "jobs" and not _says(part, key)):
                        continue
                    if is_own_seed(key) and key.of(part) is None:
                        continue
                    if key is COUNT:
                        yield key.within(here), str(count)
                    elif key in (ROUTER_KEY, SENSITIVITY_KEY, MIX_KEY):
                        continue  # it has what came of them
                    elif key is not PRESET_KEY:
                        yield key.within(here), written(key, part)
                    elif is_preset(part):
                        yield key, quoted(preset_of(part))

    def has(self, key: Key) -> bool:
        """Tells whether a key applies to it."""
        return True

    @property
    def replicates(self) -> bool:
        """Tells whether experiments that differ from it only in their seed simulate replicates of
        one trace, and are no independent runs."""
        return False

    @property
    @abstractmethod
    def facets(self) -> tuple[str, ...]:
        """Returns what is simulated, of network, jobs, power and market."""

    @abstractmethod
    def _parts(self, section: str) -> Iterator[tuple[str, Any, int]]:
        """Returns the sections of one kind that apply, as a file names them: their objects, and how
        many jobs each stands for."""

    def written(self) -> dict[str, str]:
        """Returns the same by path."""
        return {key.path: value for key, value in self.settings()}


@dataclass(frozen=True)
class Experiment(Described):
    """An experiment, as one file describes it: one field per section, named as there. Times are
    picoseconds.

    Without traffic and jobs there is the traffic of `Traffic()`, of one packet per message.
    """

    name: str = field(
        metadata=required("text", "Its name; results are found under it.", otherwise="the file's")
    )
    about: str = setting("", "text", "What it is for, in a line or more.")
    machine: Dragonfly = PRESETS[PRESET].machine
    network: Any = field(default_factory=NetworkSettings)
    traffic: tuple[Traffic, ...] = ()
    jobs: tuple[Job, ...] = ()
    scheduler: Any = field(default_factory=SchedulerSettings)
    nic: Any = field(default_factory=NicSettings)
    run: Any = field(default_factory=RunSettings)
    metrics: Metrics = field(default_factory=Metrics)
    plugins: tuple[str, ...] = setting(
        (), "texts", "Files of Python that bring policies or patterns, relative to this file."
    )
    missing: tuple[str, ...] = field(default=(), compare=False)
    """The policies that it names and whose plug-ins are missing; such an experiment can be opened
    but not run."""
    fidelity: str = field(default="packet", metadata={HOME: FIDELITY})
    power: Power | None = None
    """What nodes draw, and who keeps them below a cap; None: nobody cares."""
    market: MarketSettings | None = None
    """What the grid asks, and who bids for it; None: it asks nothing."""
    tick: ClassVar[str] = "ps"

    def __post_init__(self) -> None:
        if not self.traffic and not self.jobs:
            usual = Traffic(message_bytes=self.network.packet_bytes)
            object.__setattr__(self, "traffic", (usual,))

    @property
    def facets(self) -> tuple[str, ...]:
        return ("network", *["jobs"] * bool(self.jobs), *_optional(self))

    def model(self) -> Network:
        """Returns the network, for the engine. Refused with all that is wrong with it."""
        return self._model

    def recorded(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Returns the names of the tables and logs that are kept."""
        metrics, jobs = self.metrics, bool(self.jobs)
        tables = ["ports"] * metrics.ports + ["channels"] * metrics.channels + ["nodes", "groups"]
        tables += ["inputs"] * (metrics.ports and self.network.crossbar is not None)
        tables += [*PRICES] * (self.market is not None)
        return (*tables, *["jobs"] * jobs), (*self.model().logs(),)

    @cached_property
    def _model(self) -> Network:
        workload = None
        if self.jobs:
            messages = {name: value for name, value in vars(self.nic).items()
                        if name not in OF_NODES}  # fmt: skip
            workload = Workload(self.jobs, **vars(self.scheduler), **messages)
        return Network(
            self.machine,
            self.traffic,
            workload=workload,
            **{name: value for name, value in vars(self.run).items() if name.endswith("seed")},
            dedicated_scheduler=self.run.dedicated_scheduler,
            power=self.power,
            market=self.market,
            trace_packets=self.metrics.trace_packets,
            **vars(self.network),
            **{name: getattr(self.nic, name) for name in OF_NODES},
        )

    # -- as a file

    def has(self, key: Key) -> bool:
        return bool(self.jobs) or not needs_jobs(key)

    def _parts(self, section: str) -> Iterator[tuple[str, Any, int]]:
        optional = section in ("power", "market")
        if section == "trace" or (optional and getattr(self, section) is None):
            return
        if section == "jobs":
            for number, (job, count) in enumerate(folded(self.jobs)):
                yield f"jobs[{number}]", job, count
        elif section == "traffic":
            several = len(self.traffic) > 1
            for number, part in enumerate(self.traffic):
                yield f"traffic[{number}]" if several else section, part, 1
        elif self.jobs or section != "scheduler":
            yield section, getattr(self, section), 1


@dataclass(frozen=True)
class JobExperiment(Described):
    """An experiment of the job fidelity, as one file describes it. Times are picoseconds, of whole
    microseconds, which is the model's tick."""

    name: str
    about: str = ""
    machine: Dragonfly | None = None
    """Where jobs are placed; None: nodes are only counted."""
    trace: Source = field(default_factory=Source)
    scheduler: Any = field(default_factory=SchedulerSettings)
    run: Any = field(default_factory=lambda: RunSettings(end=None))
    metrics: Metrics = field(default_factory=lambda: Metrics(interval_ps=JOB_INTERVAL))
    plugins: tuple[str, ...] = ()
    missing: tuple[str, ...] = field(default=(), compare=False)
    fidelity: str = "job"
    power: Power | None = None
    market: MarketSettings | None = None
    """What the grid asks, and who bids for it; None: it asks nothing."""
    tick: ClassVar[str] = "us"

    @property
    def facets(self) -> tuple[str, ...]:
        return ("jobs", *_optional(self))

    def model(self) -> Cluster:
        """Returns the machine and its jobs, for the engine; the trace is read now. Refused with
        what is wrong with it."""
        return self._model

    @cached_property
    def _model(self) -> Cluster:
        from odonata.cluster.model import Cluster  # which packets need not wait for

        how = self.scheduler
        order, allocation = (
            tuple(in_ticks(register.named(name).parameters, given, TICKS[self.tick]).items())
            for register, name, given in (
                (SCHEDULINGS, how.order, how.order_parameters),
                (ALLOCATIONS, how.allocation, how.allocation_parameters),
            )
        )
        return Cluster.of(self.trace, how.order, order, self.machine, how.allocation, allocation,
                          self.run.seed, self.power, self.market, self._until_us,
                          self.run.placement_seed)  # fmt: skip

    @property
    def _until_us(self) -> int | None:
        """Returns when the run ends, None where it does when all jobs are over."""
        return None if self.run.end is None else self.run.end // TICKS[self.tick]

    def recorded(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Returns the names of the tables and logs that are kept."""
        if self.power is not None:
            return (*self.model().tables(1),), (*self.model().logs(),)
        logs = ("starts", "ends", "placements") if self.machine else ("starts", "ends")
        return ("system", "jobs"), logs

    @property
    def replicates(self) -> bool:
        return self.trace.resample_ps is not None

    def has(self, key: Key) -> bool:
        placing = self.machine is not None or key.name != "allocation"
        return placing and key.name in OF_JOB_RUNS.get(key.section, (key.name,))

    def _parts(self, section: str) -> Iterator[tuple[str, Any, int]]:
        optional = section in ("power", "market", "machine")
        parts = (getattr(self, section) if optional else None,)
        if section in (*OF_JOB_RUNS, "trace") or any(part is not None for part in parts):
            yield section, getattr(self, section), 1


def _optional(made: Experiment | JobExperiment) -> tuple[str, ...]:
    return tuple(name for name in ("power", "market") if getattr(made, name) is not None)


OF_JOB_RUNS = {
    "scheduler": ("allocation", "order"),
    "run": ("duration", "protocol", "checkpoint_every", "seed", "seed.placement"),
    "metrics": ("interval", "flush"),
}
"""The keys of shared sections that apply to the job fidelity."""


SEED = "run.seed"
OTHERS = "others"
"""In a table of seeds, that of all that has none of its own: run.seed itself."""


def is_own_seed(key: Key) -> bool:
    """Tells whether a key is the seed of one thing, such as run.seed.placement."""
    return key.path.startswith(f"{SEED}.")


OF_A_PATTERN = ("pattern", "message", "exchange", "compute", "grid")
"""Keys of a job that its stages take the place of."""


def _says(job: Job, key: Key) -> bool:
    """Tells whether a key applies to a job: it has either stages or a pattern."""
    return not job.stages if key.name in OF_A_PATTERN else key.name != "stages" or bool(job.stages)


def is_preset(machine: Dragonfly) -> bool:
    """Tells whether this machine is one of those with a name."""
    return PRESETS[preset_of(machine)].machine == machine


def written(key: Key, part: Any) -> str:
    """Returns the value of a key as TOML, from the object that has it; a policy with its
    parameters."""
    value, parameters = key.of(part), getattr(part, key.parameters, ())
    if not parameters:
        return key.write(value)
    keys = parameter_keys(key, value)
    inner = [f"name = {key.write(value)}"]
    inner += [f"{name} = {keys.get(name, ANY).write(given)}" for name, given in parameters]
    return f"{{ {', '.join(inner)} }}"


ANY = Key("", "", Setting("text", ""))
"""Stands for the parameters of a policy whose plug-in is missing: as they were in the file."""


def preset_of(machine: Dragonfly) -> str:
    """Returns the preset that is this machine or, as any will do where all else is given, the
    default."""
    same = (name for name, preset in PRESETS.items() if preset.machine == machine)
    return next(same, PRESET)


def folded(jobs: Sequence[Job]) -> Iterator[tuple[Job, int]]:
    """Returns jobs as [[jobs]] have them: one that stands for all that are alike, and how many
    these are; their names, if any, are numbered from 1."""
    at = 0
    while at < len(jobs):
        first = jobs[at]
        stem = first.name.removesuffix(" 1") if first.name.endswith(" 1") else ""
        count = 1
        while at + count < len(jobs) and jobs[at + count] == replace(
            first, name=numbered(stem, count + 1)
        ):
            count += 1
        many = count > 1 and (stem or not first.name)
        yield (replace(first, name=stem), count) if many else (first, 1)
        at += count if many else 1


def numbered(name: str, number: int) -> str:
    """Returns the name of one of several jobs that are alike."""
    return f"{name} {number}" if name else ""


# -- all keys

SECTIONS = {
    "machine": "The machine: a preset, and what is different.",
    "network": "Its routers: which path packets take, and what they wait for.",
    "traffic": "What every node sends; as many [[traffic]] as there are kinds of it.",
    "trace": 'The jobs of a run with fidelity = "job": a file of them, or a model.',
    "jobs": "A job; as many [[jobs]] as there are, beside traffic or without any.",
    "scheduler": "Which job starts when, and on which nodes.",
    "nic": "What nodes accept, and what a message of a job costs at either end.",
    "power": "What nodes draw, what all of them may draw, and who keeps them to that.",
    "market": "What the grid asks of the machine, and who says how much of it is offered.",
    "run": "For how long, and how.",
    "metrics": "What is kept of it, and how often.",
}
SWEEP = "sweep"
"""The section that says which experiments are made of a file, for `odonata sweep`."""
REPEATED = ("traffic", "jobs")
"""Sections of which there may be several; jobs are always [[jobs]]."""


def needs_jobs(key: Key) -> bool:
    """Tells whether a key is of an experiment only if that runs jobs."""
    of_jobs = key.section == "nic" and key.field not in OF_NODES
    return key.section == "scheduler" or of_jobs or key.path in OF_PLACED_JOBS


OF_PLACED_JOBS = (f"{SEED}.placement", f"{SEED}.mapping")
PRESET_KEY = MACHINE_KEYS[0]
ROUTER_KEY = Key("network", "router", Setting(
    "word", "Routers like those of another simulator: other defaults of the keys about crossbars, "
    "credits and what routings see.", words=(*ROUTERS,)), "ideal")  # fmt: skip
COUNT = Key("jobs", "count", Setting("whole", "How many jobs there are like this one.", least=1,
                                     most=MOST_JOBS), 1)  # fmt: skip
SENSITIVITY_KEY = Key("scheduler", "sensitivity", Setting(
    "text", "A TOML file, relative to this one, that says of applications whether congestion slows "
    "them down, for jobs that do not say it; `odonata profile` writes it."), "")  # fmt: skip
MIX_KEY = Key("traffic", "mix", Setting(
    "mix", "Messages of several sizes in place of one: each with its part of all messages. Every "
    "size is a Poisson process of its own, and together they offer the load."), ())  # fmt: skip
INCLUDE_KEY = Key("", "include", Setting(
    "files", "A file, or a list of files, relative to this one, whose keys this file has too; a "
    "key that is given here replaces theirs, and [[jobs]] or [[traffic]] all of theirs."),
    ())  # fmt: skip
"""The keys that set no field: three are where others start from, one says how often, one what else
is read, and one stands for several traffics."""


def _job_keys() -> Iterator[Key]:
    """The keys of a job, with its name, its size and the number of such jobs first."""
    found = {key.name: key for key in keys_of("jobs", "jobs", Job)}
    nodes = replace(found["nodes"], how=replace(found["nodes"].how, otherwise="must be given"))
    yield from (found.pop("name"), replace(nodes, default=None), COUNT)
    yield from (key for key in found.values() if key.name != "nodes")


KEYS: tuple[Key, ...] = (
    *keys_of("", "", Experiment),
    INCLUDE_KEY,
    *MACHINE_KEYS,
    ROUTER_KEY,
    *keys_of("network", "network", NetworkSettings),
    *keys_of("traffic", "traffic", Traffic),
    MIX_KEY,
    *keys_of("trace", "trace", Source),
    *_job_keys(),
    *keys_of("scheduler", "workload", SchedulerSettings),
    SENSITIVITY_KEY,
    *keys_of("nic", "workload", NicSettings),
    *keys_of("power", "power", Power),
    *keys_of("market", "market", MarketSettings),
    *keys_of("run", "network", RunSettings),
    *keys_of("metrics", "metrics", Metrics),
)
"""Everything that can be set, in reading order."""

BY_PATH = {key.path: key for key in KEYS}


def of(section: str) -> tuple[Key, ...]:
    """Returns the keys of a section."""
    return tuple(key for key in KEYS if key.section == section)
