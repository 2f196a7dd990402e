"""An experiment file: a machine, its routers, its traffic or its jobs, how long, and what is kept.

It is TOML; what it may hold is in `keys`, and `odonata schema` tells. A key that is not
given has its default. Nothing runs before everything was read, and whoever wrote it is told all
that is wrong at once, one problem a line: the file (or the `--set`), the key, the value, and what
is accepted. A problem between two keys is told unless one of them is wrong already.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from odonata.agents.layout import BINS, LINE, NODE_WORDS, PADDING
from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.agents.workload import Workload
from odonata.experiment import keys
from odonata.experiment.keys import (
    BY_FIELD,
    BY_PATH,
    JOB_KEYS,
    JOBS,
    KEYS,
    MOST_JOBS,
    NAME_LENGTH,
    NOT_OF_JOBS,
    OF_JOBS,
    SECTIONS,
    Key,
)
from odonata.experiment.units import show_count, show_time
from odonata.experiment.values import (
    all_are,
    bracketed,
    from_shell,
    nearest,
    plain,
    read,
    section_names,
    show,
    syntax,
    unknown,
)
from odonata.jobs.request import Job
from pdes import launcher
from pdes.errors import Refused
from topology import BadMachine, Dragonfly
from topology.presets import PRESETS

LONGEST_FILE = 2**25
"""Bytes; room for as many jobs as there may be, with every key of each."""
MOST_SAMPLES, MOST_CHECKPOINTS = 100_000, 100_000
FLUSH_PS = (10**9, 60 * 10**12)
"""Of wall time, as any time in picoseconds: from a millisecond to a minute."""
MACHINE, TRAFFIC, NETWORK = "network.machine.", "network.traffic.", "network."
"""Where in an experiment their fields are."""
DURATION = 100 * 10**6
"""Of traffic, if nobody says otherwise; jobs run until they are done."""
INTERVAL = 10**7


@dataclass(frozen=True)
class Metrics:
    """What is kept of a run: a sample every `interval_ps` of simulated time. `flush_s` of wall time
    is what a crash may lose."""

    interval_ps: int
    ports: bool
    channels: bool
    flush_s: float


@dataclass(frozen=True)
class Experiment:
    """What one file asks for. Times are picoseconds."""

    name: str
    about: str
    network: Network
    end: int | None
    """None: when nothing is left to happen."""
    protocol: str
    checkpoint_every: int | None
    metrics: Metrics

    def to_toml(self) -> str:
        """All of it, nothing left to defaults: `parse` makes an equal experiment of it."""
        lines, section = [], ""
        for key, value in self.settings():
            if key.section != section:
                section = key.section
                plain, bracket, _ = section.partition("[")
                lines += ["", f"[[{plain}]]" if bracket else f"[{section}]"]
            lines.append(f"{key.name} = {key.write(value)}")
        return "\n".join(lines) + "\n"

    def settings(self) -> list[tuple[Key, Any]]:
        """All that it is, key by key, as a file would have it: what does not apply is not there;
        jobs that are alike are one, and counted."""
        found: list[tuple[Key, Any]] = []
        without = NOT_OF_JOBS if self.network.workload else OF_JOBS
        for section in ("", *SECTIONS):
            if section == OF_JOBS[0] and self.network.workload:
                for number, (job, count) in enumerate(folded(self.network.workload.jobs)):
                    found += [(key, count if key.name == "count" else getattr(job, key.field))
                              for key in keys.of_job(number)]  # fmt: skip
            found += [(key, self.value(key)) for key in keys.of(section) if section not in without
                      and (key.path != "machine.preset" or self.is_preset)]  # fmt: skip
        return found

    def written(self) -> dict[str, str]:
        """The same as TOML, by path."""
        return {key.path: key.write(value) for key, value in self.settings()}

    @property
    def is_preset(self) -> bool:
        """Is its machine one of those with a name?"""
        return PRESETS[preset_of(self.network.machine)].machine == self.network.machine

    def value(self, key: Key) -> Any:
        """Of one of KEYS that applies, as `Key.write` takes it."""
        if key.path == "machine.preset":
            return preset_of(self.network.machine)
        if key.path == "metrics.flush":
            return round(self.metrics.flush_s * 10**12)
        if key.field.startswith(TRAFFIC):
            part: Any = self.network.traffic[0] if key.section in NOT_OF_JOBS else None
            return getattr(part or self.network.workload, key.last)
        return attrgetter(key.field)(self)


def load(path: Path, changes: Sequence[str] = ()) -> Experiment:
    """The experiment in a file, with `changes` such as "machine.groups=33". Refused, or right."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(LONGEST_FILE + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise Refused(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Refused(f"{path}: line {line}: not text in UTF-8, which TOML is") from None
    except ValueError as error:
        raise Refused(f"{str(path)!r}: {error}") from None
    if len(content) > LONGEST_FILE:
        raise Refused(f"{path}: more than {LONGEST_FILE} bytes: this is no experiment")
    return parse(text, str(path), changes)


def parse(text: str, where: str, changes: Sequence[str] = ()) -> Experiment:
    """The same from text; `where` it is from is what problems are told with."""
    try:
        tree = tomllib.loads(text)
    except RecursionError:
        raise Refused(f"{where}: nested too deeply: sections, and keys in them, are all") from None
    except ValueError as error:  # of which TOMLDecodeError is one
        raise Refused(f"{where}: {syntax(str(error), text)}") from None
    reading = _Reading(where)
    reading.take_file(tree)
    for change in changes:
        reading.take_change(change)
    return reading.experiment()


def preset_of(machine: Dragonfly) -> str:
    """The preset that is this machine or, as any will do where all else is given, the default."""
    same = (name for name, preset in PRESETS.items() if preset.machine == machine)
    return next(same, keys.PRESET)


def folded(jobs: Sequence[Job]) -> Iterator[tuple[Job, int]]:
    """Jobs as [[jobs]] have them: one that stands for all that are alike, and how many these are;
    their names, if any, are numbered from 1."""
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
    """The name of one of several jobs that are alike."""
    return f"{name} {number}" if name else ""


def round_up(ps: int) -> int:
    """To 1, 2 or 5 times a power of ten."""
    unit = 1
    while 10 * unit < ps:
        unit *= 10
    return next(n * unit for n in (1, 2, 5, 10) if n * unit >= ps)


def usual_interval(end: int | None) -> int:
    """Between samples: 10 us, which on a loaded machine costs 2 % of the time; but, where the end
    is known, so that there are 20 at least, and 1,000 at most."""
    if end is None:
        return INTERVAL
    return max(1000, round_up(min(max(10**7, -(-end // 1000)), -(-end // 20))))


def memory_bytes(machine: Dragonfly, channels: int) -> int:
    """What the arrays of a network take while they are made; traffic comes on top."""
    ports = machine.n_routers * (machine.radix + machine.nodes)
    port = 8 * LINE * (1 + channels) + 8 * (PADDING + 1) * channels
    making = 2 * 8 * LINE + 8 * 12
    gates = machine.groups**2 * machine.copies
    return (
        ports * (port + making)
        + machine.n_nodes * 8 * (NODE_WORDS + 6)
        + machine.groups * 8 * BINS
        + gates * 8 * 4
        + machine.groups**2 * 8
    )


def host_memory() -> int:
    """Bytes, of this host."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


# -- what is given


class _Given(NamedTuple):
    """A value, as TOML has it, and the `--set` it is from, if it is not from the file."""

    value: Any
    change: str = ""


class _Reading:
    """An experiment on its way from text; problems are collected until the end."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.lines: list[tuple[float, str]] = []
        """Problems, each with the place of its key, for they are told in that order."""
        self.keys: dict[str, Key] = dict(BY_PATH)
        """All that can be set here, by path."""
        self.sections: set[str] = set()
        self.jobs = 0
        """How many of [[jobs]] there are."""
        self.owners: list[int] = []
        """Of each job, the [[jobs]] it is from."""
        self.given: dict[str, _Given] = {}
        self.values: dict[str, Any] = {}
        """What was given and is of its kind, by path; as the fields have it."""
        self.bad: set[str] = set()
        """Paths that were complained about."""

    def take_file(self, tree: Mapping[str, Any]) -> None:
        for name, value in tree.items():
            if name in SECTIONS:
                self.sections.add(name)
                if isinstance(value, dict):
                    self._take_section(name, value)
                else:
                    self._note(f"{self.where}: {name} = {show(value)}: a section, [{name}]")
            elif name == JOBS:
                self._take_jobs(value)
            elif name in BY_PATH:
                self.given[name] = _Given(value)
            elif isinstance(value, dict) or (value and all_are(value, dict)):
                near = nearest(name, [*SECTIONS, JOBS])
                meant = f"did you mean {bracketed(near)}?" if near else f"one of {section_names()}"
                said = f"[{plain(name)}]" if isinstance(value, dict) else f"[[{plain(name)}]]"
                self._note(f"{self.where}: {said}: unknown; {meant}")
            else:
                self._note(f"{self.where}: {plain(name)}: {unknown(name)}")

    def _take_section(self, section: str, content: Mapping[str, Any]) -> None:
        for name, value in content.items():
            path = f"{section}.{name}"
            if path in self.keys:
                self.given[path] = _Given(value)
            else:
                self._note(f"{self.where}: {plain(path)}: {unknown(path)}")

    def _take_jobs(self, tables: Any) -> None:
        if not isinstance(tables, list) or not tables:
            self._note(f"{self.where}: {JOBS} = {show(tables)}: [[{JOBS}]], one for each job")
            return
        for number, table in enumerate(tables):
            self.keys |= {key.path: key for key in keys.of_job(number)}
            if isinstance(table, dict):
                self._take_section(f"{JOBS}[{number}]", table)
            else:
                self._note(f"{self.where}: {JOBS}[{number}] = {show(table)}: a table, [[{JOBS}]]")
        self.jobs = len(tables)

    def take_change(self, change: str) -> None:
        path, equals, text = (part.strip() for part in change.partition("="))
        path = re.sub(rf"^{JOBS}\.(\d+)\b", rf"{JOBS}[\1]", path)
        told = f"--set {plain(change)}"
        if not equals:
            self._note(f"{told}: a key and a value, as machine.groups=33")
        elif path in SECTIONS:
            self._note(f"{told}: a section; set one of its keys, as {keys.of(path)[0].path}")
        elif path not in self.keys:
            self._note(f"{told}: {self._no_job(path) or unknown(path)}")
        else:
            value = from_shell(text)
            kind = self.keys[path].kind
            if kind == "text" and not isinstance(value, str):
                value = text
            elif kind == "number" and re.fullmatch(r"[+-]?(\d+\.|\.\d+)", text):
                value = float(text)  # as a shell's user writes it
            elif kind == "flag" and text in ("True", "False"):
                value = text == "True"
            self.given[path] = _Given(value, told)

    def _no_job(self, path: str) -> str:
        """What to say of a change to one of [[jobs]] that is not there; if it is that."""
        section, _, name = path.partition(".")
        if not re.fullmatch(rf"{JOBS}(\[.*\])?", section) or f"{section}.nodes" in self.keys:
            return ""
        if not self.jobs:
            return f"{self.where} has no [[{JOBS}]]"
        last = self.jobs - 1
        some = f" to {JOBS}[{last}]" if last else ""
        return f"which job? {self.where} has {JOBS}[0]{some}, as {JOBS}[{last}].{name or 'nodes'}"

    # -- problems

    def _note(self, line: str, place: float = -1) -> None:
        self.lines.append((place, line))

    def _place(self, key: Key) -> float:
        """Among all keys; those of jobs are where [scheduler] begins."""
        number = re.fullmatch(rf"{JOBS}\[(\d+)\]", key.section)
        if number is None:
            return KEYS.index(key)
        names = [job_key.name for job_key in JOB_KEYS]
        before = KEYS.index(keys.of(OF_JOBS[0])[0]) - 1
        place = int(number[1]) * len(names) + names.index(key.name)
        return before + (1 + place) / (1 + len(names) * self.jobs)

    def _complain(self, rule: str, key: Key, *others: Key) -> None:
        """About a key; unless it, or another it is about, is wrong anyway."""
        if not self.bad.isdisjoint(other.path for other in (key, *others)):
            return
        self.bad.add(key.path)
        given = self.given.get(key.path)
        if given is None:
            line = f"{self.where}: {key.path} = {self._default(key)}: {rule}"
        elif given.change:
            line = f"{given.change}: {rule}"
        else:
            line = f"{self.where}: {key.path} = {show(given.value)}: {rule}"
        self._note(line, self._place(key))

    def _default(self, key: Key) -> str:
        """What a key is that was not given, and why."""
        if key.field.startswith(MACHINE):
            preset = self._get("machine.preset")
            value = attrgetter(key.field.removeprefix(MACHINE))(PRESETS[preset].machine)
            return f"{key.write(value)} (as in {preset})"
        return key.otherwise if key.default is None else f"{show(key.default)} (by default)"

    def _get(self, path: str) -> Any:
        """What was given, if it is any good, or else the default."""
        if path in self.values and path not in self.bad:
            return self.values[path]
        return read(self.keys[path], self.keys[path].default)

    def _key(self, field: str) -> Key:
        """By where it ends up; of a job, whichever of [[jobs]] that is from."""
        field = re.sub(r"\.(traffic\.0|workload)\.", ".traffic.", field)
        job = re.fullmatch(rf"{re.escape(TRAFFIC)}jobs\.(\d+)\.(\w+)", field)
        if job is None:
            return BY_FIELD[field]
        name = next(key.name for key in JOB_KEYS if key.field == job[2])
        return self.keys[f"{JOBS}[{self.owners[int(job[1])]}].{name}"]

    # -- what it makes

    def experiment(self) -> Experiment:
        """Of what was taken. Refused with all that is wrong."""
        for path, given in self.given.items():
            try:
                self.values[path] = read(self.keys[path], given.value)
            except ValueError as error:
                self._complain(str(error), self.keys[path])
        self._name()
        self._either()
        network = self._network()
        end, metrics = self._time()
        if self.lines or network is None:
            raise Refused("\n".join(line for _, line in sorted(self.lines, key=lambda it: it[0])))
        return Experiment(
            name=self.values["name"],
            about=self._get("about"),
            network=network,
            end=end,
            protocol=self._get("run.protocol"),
            checkpoint_every=self._get("run.checkpoint_every"),
            metrics=metrics,
        )

    def _name(self) -> None:
        name = self.values.setdefault("name", Path(self.where).stem)
        fine = name.isprintable() and "/" not in name and name.strip(". ")
        if not fine or len(name) > NAME_LENGTH:
            self._complain(f"of 1 to {NAME_LENGTH} characters that can be printed, without a /",
                           BY_PATH["name"])  # fmt: skip

    def _either(self) -> None:
        """Traffic or jobs: of a section that does not apply, whatever comes first is blamed."""
        rules = dict.fromkeys(OF_JOBS, f"there are no [[{JOBS}]] that it could be about")
        if self.jobs:
            rules = {NOT_OF_JOBS[0]: f"there are [[{JOBS}]], and what they send is all the traffic "
                     f"there is: leave out [{NOT_OF_JOBS[0]}], or them"}  # fmt: skip
        for section, rule in rules.items():
            ours = [path for path in self.given if path.startswith(f"{section}.")]
            if ours:
                self._complain(rule, self.keys[ours[0]])
                self.bad.update(ours)
            elif section in self.sections and section in NOT_OF_JOBS:
                self._note(f"{self.where}: [{section}]: {rule}")

    def _network(self) -> Network | None:
        machine = self._machine()
        made: dict[str, Any] = {}
        if self.jobs:
            made["workload"] = self._workload(machine)
        else:
            traffic = self._fields(TRAFFIC, NOT_OF_JOBS)
            traffic.setdefault("message_bytes", max(1, self._get("network.packet")))
            made["traffic"] = (self._made(Traffic, TRAFFIC, traffic),)
        network = None
        try:
            network = Network(machine, **made, **self._fields(NETWORK))
        except Refused as refusal:
            self._blame(NETWORK, refusal.problems)
        self._memory(machine, network.channels if network else 1)
        return network

    def _workload(self, machine: Dragonfly) -> Workload:
        """Where it is refused, without what is to blame, as in `_made`."""
        self._check_jobs(machine)
        without: set[str] = set()
        while True:
            jobs = self._jobs(without)
            how = {name: value for name, value in self._fields(TRAFFIC, OF_JOBS).items()
                   if self._key(TRAFFIC + name).path not in without}  # fmt: skip
            try:
                return Workload(jobs, **how)
            except Refused as refusal:
                self._blame(TRAFFIC, refusal.problems)
                about = [[self._key(TRAFFIC + name).path for name in problem.fields]
                         for problem in refusal.problems]  # fmt: skip
                first, any_of = {paths[0] for paths in about}, {p for paths in about for p in paths}
                if any_of <= without:
                    raise
                without |= any_of if first <= without else first

    def _check_jobs(self, machine: Dragonfly) -> None:
        """What a job needs before there can be one."""
        total, most = 0, machine.n_nodes
        shape = [BY_PATH[f"machine.{name}"] for name in ("preset", "nodes", "routers", "groups")]
        for number in range(self.jobs):
            path = f"{JOBS}[{number}]"
            nodes, name, count = (self.keys[f"{path}.{k}"] for k in ("nodes", "name", "count"))
            if nodes.path not in self.given:
                self.bad.add(nodes.path)
                self._note(f"{self.where}: {nodes.path}: must be given: how many it needs",
                           self._place(nodes))  # fmt: skip
            elif self.values.get(nodes.path, 0) > most:
                self._complain(f"the machine has {most:,}", nodes, *shape)
                self.bad.add(nodes.path)
            called = self._get(name.path)
            if called and not (called.isprintable() and len(called) <= NAME_LENGTH):
                self._complain(f"at most {NAME_LENGTH} characters that can be printed", name)
            if self._get(count.path) < 1:
                self._complain("at least 1", count)
            total += self._get(count.path)
            if total > MOST_JOBS:
                self._complain(f"{total:,} jobs in all; at most {MOST_JOBS:,}", count)
                total -= self.values.get(count.path, 1)

    def _jobs(self, without: set[str]) -> tuple[Job, ...]:
        """Of what was given and is any good."""
        made: list[Job] = []
        good = self.values.keys() - self.bad - without
        self.owners = []
        for number in range(self.jobs):
            fields = {key.field: self.values[key.path] for key in keys.of_job(number)
                      if key.path in good}  # fmt: skip
            count, name = fields.pop("count", 1), fields.pop("name", "")
            job = Job(**({"nodes": 2} | fields))
            made += [replace(job, name=numbered(name, k + 1) if count > 1 else name)
                     for k in range(count)]  # fmt: skip
            self.owners += [number] * count
        return tuple(made)

    def _machine(self) -> Dragonfly:
        start = PRESETS[self._get("machine.preset")].machine
        links = {
            name: self._made(
                partial(replace, getattr(start, name)),
                f"{MACHINE}{name}.",
                self._fields(f"{MACHINE}{name}."),
            )
            for name in ("terminal", "local", "global_")
        }
        start = replace(start, **links)
        made: Dragonfly = self._made(partial(replace, start), MACHINE, self._fields(MACHINE))
        return made

    def _fields(self, prefix: str, sections: Sequence[str] = ()) -> dict[str, Any]:
        """Of the object there: those that were given, in any section or only in those."""
        return {
            BY_PATH[path].last: value
            for path, value in self.values.items()
            if path in BY_PATH and path not in self.bad
            and BY_PATH[path].field == prefix + BY_PATH[path].last
            and (not sections or BY_PATH[path].section in sections)
        }  # fmt: skip

    def _made(self, make: Callable[..., Any], prefix: str, given: dict[str, Any]) -> Any:
        """An object of the fields given; where it is refused, without those to blame, so that
        whatever else is wrong can be found too."""
        while True:
            try:
                return make(**given)
            except (Refused, BadMachine) as refusal:
                problems = refusal.problems
                self._blame(prefix, problems)
                first = {problem.fields[0] for problem in problems} & given.keys()
                any_of = {name for problem in problems for name in problem.fields} & given.keys()
                if not any_of:
                    raise
                given = {k: v for k, v in given.items() if k not in (first or any_of)}

    def _blame(self, prefix: str, problems: Iterable[Any]) -> None:
        for problem in problems:
            about = [self._key(prefix + name) for name in problem.fields]
            self._complain(problem.rule, *about)

    def _memory(self, machine: Dragonfly, channels: int) -> None:
        """Refuse what cannot be held, before anything tries."""
        if any(path.startswith("machine.") for path in self.bad):
            return
        need, have = memory_bytes(machine, channels), host_memory() * launcher.hosts()
        if need > have:
            self._complain(
                f"{machine.n_nodes:,} nodes and {machine.n_routers:,} routers of {machine.radix} "
                f"ports need {show_count(need)}B of memory, and there are {show_count(have)}B",
                BY_PATH[self._largest()],
            )  # fmt: skip

    def _largest(self) -> str:
        """Of the keys that make a machine large, one that was given."""
        sizes = ("groups", "routers", "nodes", "global_links", "preset")
        return next((f"machine.{name}" for name in sizes if f"machine.{name}" in self.given),
                    "machine.preset")  # fmt: skip

    def _end(self) -> int | None:
        duration = BY_PATH["run.duration"]
        end: int | None = None if self.jobs else DURATION
        if duration.path in self.values and duration.path not in self.bad:
            end = self.values[duration.path]
        if end == 0:
            self._complain("above 0", duration)
        if self.jobs:
            return end
        stop = self._get("traffic.stop")
        if end is None and stop is None and self._get("traffic.messages") is None:
            self._complain("nodes would never stop sending: a time, or traffic.messages, or "
                           "traffic.stop", duration)  # fmt: skip
            end = DURATION
        if end is not None and self._get("traffic.warmup") >= end:
            self._complain(f"must be less than the duration of {show_time(end)}, or nothing is "
                           "measured", BY_PATH["traffic.warmup"], duration)  # fmt: skip
        if stop is not None and self._get("traffic.warmup") >= stop:
            self._complain(
                f"must be less than traffic.stop, {show_time(stop)}, or nothing is measured",
                *(BY_PATH[f"traffic.{k}"] for k in ("warmup", "stop")),
            )
        return end

    def _time(self) -> tuple[int | None, Metrics]:
        """The rules of [run] and of [metrics], which are nobody else's."""
        duration, interval = BY_PATH["run.duration"], BY_PATH["metrics.interval"]
        end = self._end()
        checkpoint = self._get("run.checkpoint_every")
        often = BY_PATH["run.checkpoint_every"]
        if checkpoint == 0:
            self._complain("above 0, or never", often)
        elif checkpoint and end is not None and -(-end // checkpoint) > MOST_CHECKPOINTS:
            self._complain(f"{-(-end // checkpoint):,} checkpoints in {show_time(end)}; at most "
                           f"{MOST_CHECKPOINTS:,}", often, duration)  # fmt: skip
        every = self.values.get("metrics.interval", usual_interval(end))
        if every == 0:
            self._complain("above 0", interval)
        elif end is not None and -(-end // every) > MOST_SAMPLES:
            least = show_time(round_up(-(-end // MOST_SAMPLES)))
            self._complain(f"{-(-end // every):,} samples in {show_time(end)}; at most "
                           f"{MOST_SAMPLES:,}, as with {least}", interval, duration)  # fmt: skip
        flush = self._get("metrics.flush")
        if not FLUSH_PS[0] <= flush <= FLUSH_PS[1]:
            self._complain(f"{' .. '.join(map(show_time, FLUSH_PS))}", BY_PATH["metrics.flush"])
        ports, channels = self._get("metrics.ports"), self._get("metrics.channels")
        return end, Metrics(every, ports, channels, flush / 10**12)
