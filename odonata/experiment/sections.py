"""The sections of an experiment that have no class of their own elsewhere.

A machine is a `Dragonfly`, traffic is `Traffic`, and a job is a `Job`. The fields of [network],
[scheduler] and [nic] are those of `NetworkDescription` and `Workload`: their classes are made from
these, so that no field is declared twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any

from odonata.agents.description import SEEDED, NetworkDescription
from odonata.agents.workload import Workload
from pdes.protocol import PROTOCOLS
from policies.register import check
from topology.settings import setting, settings_of

DURATION = 100 * 10**6
"""How long traffic is simulated by default, in ps; jobs run until they are done."""
INTERVAL = 10**7
"""The interval between two samples, in ps, where the duration is not known."""

JOB_INTERVAL = 6 * 3600 * 10**12
"""The interval between two samples where only jobs are simulated, in ps: a quarter of a day."""


def _section(name: str, home: str, *owners: type, base: type = object) -> Any:
    """Returns a frozen dataclass of the fields of `owners` that are set in one section; the field
    of a policy is followed by its parameters."""
    found = []
    for owner in owners:
        ours = {one.name for one, how in settings_of(owner)
                if (how.section or OWN[owner]) == home}  # fmt: skip
        found += [
            (one.name, one.type, field(default=one.default, metadata=one.metadata))
            for one in fields(owner)
            if one.name.removesuffix("_parameters") in ours
        ]
    made = make_dataclass(name, found, bases=(base,), frozen=True)
    made.__module__ = __name__
    return made


OWN: dict[type, str] = {NetworkDescription: "network", Workload: "scheduler"}
"""The section of the fields of a class, where they do not say another."""

NetworkSettings = _section("NetworkSettings", "network", NetworkDescription)
SchedulerSettings = _section("SchedulerSettings", "scheduler", Workload)
NicSettings = _section("NicSettings", "nic", NetworkDescription, Workload)

OF_NODES = frozenset(each.name for each in fields(NetworkDescription)) & frozenset(
    each.name for each in fields(NicSettings)
)
"""The fields of [nic] that are about every packet, not about messages of jobs."""


@dataclass(frozen=True)
class _Running:
    """The section [run]: how long is simulated, and how. Times are picoseconds."""

    end: int | None = setting(
        DURATION, "time", "How much time is simulated; done: until nothing is left to happen.",
        name="duration", above=0, none="done", otherwise="100 us, and with jobs done",
    )  # fmt: skip
    protocol: str = setting(
        "window", "word", "How ranks agree on how far it is safe to go.", words=(*PROTOCOLS,)
    )
    checkpoint_every: int | None = setting(
        None, "time", "Simulated time between two checkpoints.", above=0, none="never"
    )

    def __post_init__(self) -> None:
        check(self).refuse()


RunSettings = _section("RunSettings", "run", NetworkDescription, base=_Running)


def seeds_of(run: Any) -> dict[str, int]:
    """Returns the seeds of [run]: that of all that has none of its own, and those of what may have
    one."""
    own = {what: getattr(run, f"{what}_seed") for what in SEEDED}
    return {"others": run.seed} | {
        what: run.seed if seed is None else seed for what, seed in own.items()
    }


def _of_network(name: str) -> Any:
    """Returns a field of `NetworkDescription` that is set in another section."""
    (one,) = (one for one in fields(NetworkDescription) if one.name == name)
    return field(default=one.default, metadata=one.metadata)


@dataclass(frozen=True)
class Metrics:
    """The section [metrics]: a sample every `interval_ps` of simulated time. A crash may lose what
    was sampled in `flush_ps` of wall time."""

    interval_ps: int = setting(
        INTERVAL, "time", "Simulated time between two samples.", above=0,
        otherwise="10 us, for 20 .. 1,000 samples; of jobs 1 h or more, for at most 1,000",
    )  # fmt: skip
    ports: bool = setting(True, "flag", "Keep the counters of every port.")
    channels: bool = setting(False, "flag", "Keep the counters of every virtual channel.")
    trace_packets: int | None = _of_network("trace_packets")
    flush_ps: int = setting(
        2 * 10**12, "time", "Wall time whose samples a crash may lose.",
        least=10**9, most=60 * 10**12,
    )  # fmt: skip

    def __post_init__(self) -> None:
        check(self).refuse()
