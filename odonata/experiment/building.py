"""Builds an experiment from what was given; a rule that is broken names the key to blame."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from odonata.agents import layout as w
from odonata.agents.routers import ROUTERS
from odonata.agents.traffic import Traffic
from odonata.agents.workload import Workload
from odonata.experiment.experiment import (
    BY_PATH,
    KEYS,
    MIX_KEY,
    NAME_LENGTH,
    OF_JOB_RUNS,
    ROUTER_KEY,
    Experiment,
    JobExperiment,
    needs_jobs,
    of,
)
from odonata.experiment.job_sections import JobSections
from odonata.experiment.keys import SERIES, Key
from odonata.experiment.sections import (
    DURATION,
    INTERVAL,
    JOB_INTERVAL,
    OF_NODES,
    Metrics,
    NetworkSettings,
    NicSettings,
    RunSettings,
    SchedulerSettings,
)
from odonata.experiment.units import show_count, show_time
from odonata.jobs.market import MarketSettings
from odonata.jobs.power import FILE, Power
from odonata.jobs.request import Job
from odonata.jobs.series_text import FILES, check_steps
from odonata.traces.source import Source
from pdes import launcher
from pdes.arrays import host_memory
from pdes.clock import TICKS
from pdes.errors import Refused
from topology import BadMachine, Dragonfly
from topology.presets import PRESETS

JOB_HOURS = (1, 6, 24, 7 * 24, 30 * 24, 365 * 24)
"""The intervals between samples of a job run that are chosen from, in hours."""
HOUR_US = 3600 * 10**6
MOST_SAMPLES, MOST_CHECKPOINTS = 100_000, 100_000
HOMES = {"machine": ("machine",), "network": ("network", "run", "nic", "metrics"),
         "workload": ("scheduler", "nic")}  # fmt: skip
"""The sections that have the keys of a part of a network."""
ONLY_PACKETS = ("network", "traffic", "jobs", "nic")
"""Sections that mean nothing where only jobs are simulated."""


class Building(JobSections):
    """An experiment while it is built from what was given."""

    sources: Sequence[str] = ()
    """The section that each traffic of the experiment is from."""

    def experiment(self) -> Experiment | JobExperiment:
        """Returns the experiment. Refused with all that is wrong."""
        self.load_plugins()
        self.read_all()
        parameters = self.policy_parameters()
        self._name()
        made = self._of_jobs(parameters) if self.of_jobs else self._of_packets(parameters)
        if self.lines:
            raise Refused("\n".join(line for _, line in sorted(self.lines, key=lambda it: it[0])))
        return made

    def _of_packets(self, parameters: dict[str, Any]) -> Experiment:
        self._only_in("job", (path for path in self.given if path.startswith("trace.")))
        self._need_jobs()
        power: Power | None = self._supplied("power", Power, parameters)
        power = power if self.sections["jobs"] else None
        market: MarketSettings | None = self._supplied("market", MarketSettings, parameters)
        machine = self._machine()
        mixed = {section: self._mixed(section) for section in self._traffics()}
        traffic = tuple(part for parts in mixed.values() for part in parts)
        self.sources = [section for section, parts in mixed.items() for _ in parts]
        jobs, scheduling = self._workload(machine, parameters)
        end, metrics = self._time()
        made = Experiment(
            name=self.values["name"],
            about=self.get("about"),
            machine=machine,
            network=NetworkSettings(**self._routers()),
            traffic=traffic,
            jobs=jobs,
            scheduler=SchedulerSettings(**_of(SchedulerSettings, scheduling)),
            nic=NicSettings(**_of(NicSettings, scheduling), **self._nodes()),
            run=RunSettings(**self.fields("run") | {"end": end}),
            metrics=metrics,
            plugins=tuple(self.plugins),
            missing=tuple(dict.fromkeys(self.missing)),
            power=power,
            market=market,
        )
        need = memory_bytes(machine, 1)
        try:
            model = made.model()
            need = memory_bytes(machine, model.channels, model.switched)
        except Refused as refusal:
            if refusal.problems:
                self._blame(refusal.problems)
            elif not self._blame_supply(str(refusal)):
                raise
        self._memory(machine, need)
        return made

    def _routers(self) -> dict[str, Any]:
        """Returns what is given about routers, over the defaults of those that are named."""
        named = ROUTERS[self.get(ROUTER_KEY.path)]
        inside = {name: value for name, value in named.items() if name not in OF_NODES}
        return {**inside, **self.fields("network")}

    def _nodes(self) -> dict[str, Any]:
        """Returns what is given in [nic] and is not about messages of jobs, over what goes with the
        routers that are named."""
        given = {**ROUTERS[self.get(ROUTER_KEY.path)], **self.fields("nic")}
        return {name: value for name, value in given.items() if name in OF_NODES}

    def _of_jobs(self, parameters: dict[str, Any]) -> JobExperiment:
        self._only_in("packet", (
            path for path, key in self.keys.items() if path in self.given
            and (key.section.partition("[")[0] in ONLY_PACKETS
                 or key.name not in OF_JOB_RUNS.get(key.section, (key.name,)))
        ))  # fmt: skip
        machine = self._machine() if any(it.startswith("machine.") for it in self.given) else None
        allocation = BY_PATH["scheduler.allocation"]
        if machine is None and allocation.path in self.given and not self.stand_in:
            self.complain("there is no [machine] on which jobs could be placed", allocation)
        home, fields = self.home("trace.file"), self.fields("trace")
        if fields.get("file"):
            fields["file"] = str((home / fields["file"]).absolute())
        how = {name: value for name, value in self.fields("scheduler").items()
               if name in OF_JOB_RUNS["scheduler"]}  # fmt: skip
        power: Power | None = self._supplied("power", Power, parameters)
        market: MarketSettings | None = self._supplied("market", MarketSettings, parameters)
        if market is not None and power is None:
            self.complain("there is no [power] that could be offered", BY_PATH["market.bidding"])
        end, metrics = self._time()
        source: Source = self._made(Source, "trace.", fields)
        if power is not None and power.regulates:
            source = self._extended(source)
        made = JobExperiment(
            name=self.values["name"],
            about=self.get("about"),
            machine=machine,
            trace=source,
            scheduler=SchedulerSettings(**how, **parameters),
            run=RunSettings(**self.fields("run") | {"end": end}),
            metrics=metrics,
            plugins=tuple(self.plugins),
            missing=tuple(dict.fromkeys(self.missing)),
            power=power,
            market=market,
        )
        if not self.lines and not self.stand_in:
            try:
                span_us = made.model().trace.span_us
            except Refused as refusal:
                words = str(refusal)
                if self._blame_supply(words):
                    return made
                to_blame = "nodes" if "nodes" in words and not fields.get("file") else "file"
                to_blame = "mix" if fields.get("mix") else to_blame
                for key in ("jobs", "shares"):
                    if words.startswith(f"{key} = "):
                        to_blame, words = key, words.partition(": ")[2]
                self.complain(words, BY_PATH[f"trace.{to_blame}"])
            else:
                if "metrics.interval" not in self.given:
                    interval_ps = usual_job_interval(span_us)
                    made = replace(made, metrics=replace(metrics, interval_ps=interval_ps))
        return made

    def _extended(self, source: Source) -> Source:
        """Returns a source none of whose jobs is killed, as where they are regulated by type."""
        key = BY_PATH["trace.overrun"]
        if self.good(key.path) and source.overrun == "kill" and not self.stand_in:
            self.complain("a policy that regulates jobs by type kills none: leave it out", key)
        return replace(source, overrun="extend")

    def _supplied(self, section: str, make: type, parameters: dict[str, Any]) -> Any:
        """Returns what [power] or [market] says, None where there is none; a file of steps is read,
        so that what is wrong in it is found now. The parameters of its policy are taken from
        `parameters`."""
        policy = next(key for key in of(section) if key.how.register).parameters
        of_policy = parameters.pop(policy, ())
        known = any(it.startswith(f"{section}.") for it in self.given)
        unknown = any(f": {section}." in line for _, line in self.lines)  # one of its keys is
        if not known and (unknown or not self.sections[section]):
            return None
        fields = self.fields(section)
        for key in of(section):
            given, home = fields.get(key.field), self.home(key.path)
            if key.name in ("demand", "applications", "types") and isinstance(given, str):
                fields[key.field] = (
                    str((home / given).absolute()) if given.endswith(FILE) else given
                )
            if key.kind not in SERIES or given is None:
                continue
            if isinstance(given, str) and given.lower().endswith(FILES):
                given = fields[key.field] = str((home / given).absolute())
            if not self.stand_in:
                try:
                    check_steps(given, SERIES[key.kind], TICKS["us" if self.of_jobs else "ps"], "",
                                gaps=self.get(f"{section}.gaps"))  # fmt: skip
                except Refused as refusal:
                    self.complain(str(refusal), key)
                    del fields[key.field]
        return self._made(make, f"{section}.", fields | {policy: of_policy})

    def _blame_supply(self, words: str) -> bool:
        """Blame the key of [power] or [market] that a refusal begins with, as in
        'power.cap = 3 W: …' or 'power.cap: cap.csv: …'; tells whether it was one."""
        path, _, rest = words.partition(" ")
        key = BY_PATH.get(path.removesuffix(":"))
        if key is None or key.section not in ("power", "market"):
            return False
        value, _, rule = ("", "", rest) if path.endswith(":") else rest[2:].partition(": ")
        self.complain(rule, key, found=value)
        return True

    def _only_in(self, fidelity: str, paths: Iterable[str]) -> None:
        """Blame the first of these keys of a section, which belong to the other fidelity."""
        seen = set()
        for path in [*paths]:
            section = self.keys[path].section.partition("[")[0]
            if section not in seen and path not in self.bad:
                seen.add(section)
                self.complain(f'only with fidelity = "{fidelity}"', self.keys[path])

    # -- whom to blame

    def _key(self, path: str) -> Key:
        """Returns the key of a field, by its path in a network."""
        owner, dot, field = path.partition(".")
        if job := re.fullmatch(r"workload\.jobs\.(\d+)\.(.+)", path):
            return self._in(self.owners[int(job[1])], job[2])
        if owner == "traffic":
            number = re.match(r"(\d+)\.", field)
            sections = self.sources or self._traffics()
            section = sections[int(number[1]) if number else 0]
            return self._in(section, field[number.end() :] if number else field)
        if owner in ("trace", "power", "market"):
            return self._in(owner, field)
        if not dot or owner not in HOMES:
            owner, field = "network", path
        return next(key for key in KEYS if key.section in HOMES[owner] and key.field == field)

    def _blame(self, problems: Iterable[Any], prefix: str = "") -> None:
        for problem in problems:
            about = [self._key(prefix + name) for name in problem.fields]
            self.complain(problem.rule, *about, found=problem.given.partition(" = ")[2])

    def _made(self, make: Callable[..., Any], prefix: str, given: dict[str, Any]) -> Any:
        """Returns an object of the fields given; where it is refused, without those to blame, so
        that other problems can be found too."""
        while True:
            try:
                return make(**given)
            except (Refused, BadMachine) as refusal:
                problems = refusal.problems
                self._blame(problems, prefix)
                first = {problem.fields[0] for problem in problems} & given.keys()
                any_of = {name for problem in problems for name in problem.fields} & given.keys()
                if not any_of:
                    raise
                given = {k: v for k, v in given.items() if k not in (first or any_of)}

    # -- parts

    def _name(self) -> None:
        name = self.values.setdefault("name", Path(self.where).stem)
        fine = name.isprintable() and "/" not in name and name.strip(". ")
        if not fine or len(name) > NAME_LENGTH:
            self.complain(f"of 1 to {NAME_LENGTH} characters that can be printed, without a /",
                          BY_PATH["name"])  # fmt: skip

    def _need_jobs(self) -> None:
        """Where there are no jobs, blame the first key of a section that needs them."""
        for section in ("scheduler", "nic", "run") if not self.sections["jobs"] else ():
            ours = [path for path in self.given if path.startswith(f"{section}.")
                    and needs_jobs(self.keys[path])]  # fmt: skip
            if ours:
                self.complain("there are no [[jobs]] that it could be about", self.keys[ours[0]])
                self.bad.update(ours)
        alone = BY_PATH["run.dedicated_scheduler"]
        of_power = [it for it in self.given if it.startswith("power.")]
        named = any(": power." in line for _, line in self.lines)  # one of its keys is unknown
        if not self.sections["jobs"] and (of_power or (self.sections["power"] and not named)):
            first = (of_power or ["power.policy"])[0]
            meant = '; did you mean fidelity = "job"?' if self.sections["trace"] else ""
            self.complain(f"there are no [[jobs]] whose power it could be{meant}", self.keys[first])
        if not self.sections["jobs"] and self.get(alone.path):
            self.complain("there are no [[jobs]] that it could schedule", alone)

    def _traffics(self) -> list[str]:
        """Returns the sections of traffic. Where nothing is given about traffic, and there are
        jobs, there is none."""
        given = any(path.startswith("traffic.") for path in self.given)
        if self.sections["traffic"] or not (given or not self.sections["jobs"]):
            return self.sections["traffic"]
        return ["traffic"]

    def _traffic(self, section: str) -> Traffic:
        fields = self.fields(section)
        fields.setdefault("message_bytes", max(1, self.get("network.packet")))
        prefix = f"traffic.{self._traffics().index(section)}."
        made: Traffic = self._made(Traffic, prefix, fields)
        return made

    def _mixed(self, section: str) -> list[Traffic]:
        """Returns the traffic of a section: one for each size, where messages have several."""
        key, whole = self.keys[f"{section}.{MIX_KEY.name}"], self._traffic(section)
        mix = self.get(key.path)
        if not mix or key.path in self.bad:
            return [whole]
        for name in ("message", "messages"):
            other = self.keys[f"{section}.{name}"]
            if other.path in self.given:
                self.complain(f"not beside {key.name}, which says how large messages are and how "
                              "many there are of each size", other, key)  # fmt: skip
        if whole.arrivals != "poisson":
            self.complain("only with Poisson arrivals", key, self.keys[f"{section}.arrivals"])
        if any(size < 1 for size, _ in mix):
            self.complain("sizes of 1 B at least", key)
            return [whole]
        total = sum(size * part for size, part in mix)
        return [replace(whole, message_bytes=size, load=whole.load * size * part / total)
                for size, part in mix]  # fmt: skip

    def _machine(self) -> Dragonfly:
        start, fields = PRESETS[self.get("machine.preset")].machine, self.fields("machine")
        for name in ("terminal", "local", "global_"):
            prefix = f"{name}."
            ours = {field.removeprefix(prefix): fields.pop(field)
                    for field in [*fields] if field.startswith(prefix)}  # fmt: skip
            make = partial(replace, getattr(start, name))
            start = replace(start, **{name: self._made(make, f"machine.{prefix}", ours)})
        made: Dragonfly = self._made(partial(replace, start), "machine.", fields)
        return made

    def _workload(
        self, machine: Dragonfly, parameters: dict[str, Any]
    ) -> tuple[tuple[Job, ...], dict[str, Any]]:
        """Returns the jobs, and how they are scheduled; where these are refused, without what is to
        blame, as in `_made`."""
        if not self.sections["jobs"]:
            return (), {}
        self._check_jobs(machine)
        self._read_sensitivity()
        without: set[str] = set()
        while True:
            jobs = self._jobs(without)
            how = {name: value for section in ("scheduler", "nic")
                   for name, value in self.fields(section).items() if name not in OF_NODES
                   and self._key(f"workload.{name}").path not in without}  # fmt: skip
            try:
                Workload(jobs, **how, **parameters)
            except Refused as refusal:
                self._blame(refusal.problems, "workload.")
                about = [[self._key(f"workload.{name}").path for name in problem.fields]
                         for problem in refusal.problems]  # fmt: skip
                first, any_of = {paths[0] for paths in about}, {p for paths in about for p in paths}
                if any_of <= without:
                    raise
                without |= any_of if first <= without else first
            else:
                return jobs, how | parameters

    # -- how large, how long

    def _memory(self, machine: Dragonfly, need: int) -> None:
        """Refuse what cannot be held, before anything tries."""
        if any(path.startswith("machine.") for path in self.bad):
            return
        have = host_memory() * launcher.hosts()
        if need > have:
            self.complain(
                f"{machine.n_nodes:,} nodes and {machine.n_routers:,} routers of {machine.radix} "
                f"ports need {show_count(need)}B of memory, and there are {show_count(have)}B",
                BY_PATH[self._largest()],
            )

    def _largest(self) -> str:
        """Returns a key that was given and makes the machine large."""
        sizes = ("groups", "routers", "nodes", "global_links", "preset")
        return next((f"machine.{name}" for name in sizes if f"machine.{name}" in self.given),
                    "machine.preset")  # fmt: skip

    def _end(self) -> int | None:
        duration = BY_PATH["run.duration"]
        end: int | None = None if self.sections["jobs"] or self.of_jobs else DURATION
        if self.good(duration.path):
            end = self.values[duration.path]
        for section in self._traffics() if not self.of_jobs else ():
            end = self._end_of(section, end, duration)
        return end

    def _end_of(self, section: str, end: int | None, duration: Key) -> int | None:
        """The same, if it suits this traffic; else 100 us, for whatever else may be wrong."""
        stop, warmup = self.get(f"{section}.stop"), self.get(f"{section}.warmup")
        stops = stop is not None or self.get(f"{section}.messages") is not None
        if end is None and not stops and not self.sections["jobs"]:
            self.complain(f"nodes would never stop sending: a time, or {section}.messages, or "
                          f"{section}.stop", duration)  # fmt: skip
            return DURATION
        if end is not None and warmup >= end:
            self.complain(f"must be less than the duration of {show_time(end)}, or nothing is "
                          "measured", self.keys[f"{section}.warmup"], duration)  # fmt: skip
        if stop is not None and warmup >= stop:
            self.complain(
                f"must be less than {section}.stop, {show_time(stop)}, or nothing is measured",
                *(self.keys[f"{section}.{name}"] for name in ("warmup", "stop")),
            )
        return end

    def _time(self) -> tuple[int | None, Metrics]:
        """Check the rules of [run] and of [metrics], which no class has."""
        duration, interval = BY_PATH["run.duration"], BY_PATH["metrics.interval"]
        end = self._end()
        checkpoint = self.get("run.checkpoint_every")
        often = BY_PATH["run.checkpoint_every"]
        if checkpoint and end is not None and -(-end // checkpoint) > MOST_CHECKPOINTS:
            self.complain(f"{-(-end // checkpoint):,} checkpoints in {show_time(end)}; at most "
                          f"{MOST_CHECKPOINTS:,}", often, duration)  # fmt: skip
        usual = JOB_INTERVAL if self.of_jobs else usual_interval(end)
        every = self.values.get(interval.path, usual)
        if end is not None and -(-end // every) > MOST_SAMPLES:
            least = show_time(round_up(-(-end // MOST_SAMPLES)))
            self.complain(f"{-(-end // every):,} samples in {show_time(end)}; at most "
                          f"{MOST_SAMPLES:,}, as with {least}", interval, duration)  # fmt: skip
        return end, Metrics(**{"interval_ps": every} | self.fields("metrics"))


def _of(section: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Returns the values that are fields of a section."""
    return {name: value for name, value in values.items() if hasattr(section, name)}


def round_up(ps: int) -> int:
    """Returns a number rounded to 1, 2 or 5 times a power of ten."""
    unit = 1
    while 10 * unit < ps:
        unit *= 10
    return next(n * unit for n in (1, 2, 5, 10) if n * unit >= ps)


def usual_interval(end: int | None) -> int:
    """Returns the interval between samples, in ps: 10 us, which on a loaded machine costs 2 % of
    the time; but, where the end is known, so that there are 20 at least, and 1,000 at most."""
    if end is None:
        return INTERVAL
    return max(1000, round_up(min(max(10**7, -(-end // 1000)), -(-end // 20))))


def usual_job_interval(span_us: int) -> int:
    """Returns the interval between samples of a job run, in ps: so that there are at most 1,000 of
    them between the first submission and the last."""
    hours = next((hours for hours in JOB_HOURS if span_us <= 1000 * hours * HOUR_US), JOB_HOURS[-1])
    return hours * HOUR_US * 10**6


def memory_bytes(machine: Dragonfly, channels: int, switched: bool = False) -> int:
    """Returns the bytes of the arrays of a network while they are built; traffic comes on top."""
    ports = machine.n_routers * (machine.radix + machine.nodes)
    port = 8 * w.LINE * (1 + channels) + 8 * len(w.SLOW) * channels
    port += switched * 8 * (channels * (w.QUEUE_WORDS + w.LINE + 1) + len(w.CROSSING))
    making = 2 * 8 * w.LINE + 8 * 12
    gates = machine.groups**2 * machine.copies
    return (
        ports * (port + making)
        + machine.n_nodes * 8 * (len(w.OF_NODE) + 6)
        + machine.groups * 8 * (w.BINS + w.SPANS * len(w.FLOW))
        + gates * 8 * 4
        + machine.groups**2 * 8
    )
