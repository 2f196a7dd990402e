"""Reads the [[jobs]] of an experiment: their stages or profiles, and whether they are sensitive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from odonata.agents.profile import Profile
from odonata.agents.workload import most_iterations
from odonata.experiment.experiment import (
    BY_PATH,
    COUNT,
    KEYS,
    MOST_JOBS,
    NAME_LENGTH,
    OF_A_PATTERN,
    SENSITIVITY_KEY,
    numbered,
)
from odonata.experiment.keys import Key
from odonata.experiment.policies import Policies
from odonata.experiment.profiles import built_in, path_of, profile_in, stages_of, unfit
from odonata.experiment.sensitivity import Table, read_table
from odonata.experiment.values import read
from odonata.jobs.request import Job, Stage
from pdes.errors import Refused
from topology import Dragonfly

CALLED = ("user", "project", "application")
"""Keys of a job that are names, as its own name is."""


class JobSections(Policies):
    """The jobs of an experiment while it is built."""

    def __init__(
        self, where: str, plugins: Sequence[Path | str] = (), stand_in: bool = False
    ) -> None:
        super().__init__(where, plugins, stand_in)
        self.owners: list[str] = []
        """The section, as "jobs[0]", that each job is from."""
        self.profiles: dict[str, Profile] = {}
        """The application profiles of [[jobs]], by section."""
        self.known: Table = {}
        """Which applications congestion slows down, as the file of `scheduler.sensitivity` says."""

    def _in(self, section: str, field: str) -> Key:
        kind = section.partition("[")[0]
        name = next(key.name for key in KEYS if key.section == kind and key.field == field)
        return self.keys[f"{section}.{name}"]

    def _check_jobs(self, machine: Dragonfly) -> None:
        """Check what a job needs before it can be built."""
        total, most = 0, machine.n_nodes
        shape = [BY_PATH[f"machine.{name}"] for name in ("preset", "nodes", "routers", "groups")]
        for section in self.sections["jobs"]:
            nodes, name, count = (self.keys[f"{section}.{k}"] for k in ("nodes", "name", "count"))
            if nodes.path not in self.given:
                self.bad.add(nodes.path)
                self.note(f"{self.where}: {nodes.path}: must be given: how many it needs",
                          self.place(nodes))  # fmt: skip
            elif self.values.get(nodes.path, 0) > most:
                self.complain(f"the machine has {most:,}", nodes, *shape)
                self.bad.add(nodes.path)
            for text in (name, *(self.keys[f"{section}.{k}"] for k in CALLED)):
                called = self.get(text.path)
                if called and not (called.isprintable() and len(called) <= NAME_LENGTH):
                    self.complain(f"at most {NAME_LENGTH} characters that can be printed", text)
            self._stages(section)
            total += self.get(count.path)
            if total > MOST_JOBS:
                self.complain(f"{total:,} jobs in all; at most {MOST_JOBS:,}", count)
                total -= self.values.get(count.path, 1)

    def _stages(self, section: str) -> None:
        """Read the stages of a job, or else its profile, if it has any; then it has no pattern of
        its own."""
        key, profile = self.keys[f"{section}.stages"], self.keys[f"{section}.profile"]
        tables = self.get(key.path)
        if key.path in self.bad or profile.path in self.bad:
            return
        if tables and self._changed(profile) and not self._changed(key):
            tables = self.values[key.path] = ()
        if not tables:
            self._profile(section)
            return
        problems: list[str] = []
        made = stages_of(tables, self.where, key.path, problems)
        problems = problems or self._unfit(section, made, self.where, key.path)
        self.values[key.path] = () if problems else made
        for line in problems:
            self.note(line, self.place(key))
            self.bad.add(key.path)
        self._no_pattern(section, key, "its stages")

    def _unfit(self, section: str, stages: tuple[Stage, ...], where: str, path: str) -> list[str]:
        """Returns what is wrong with the stages of a job."""
        if f"{section}.nodes" in self.bad:
            return []
        nodes, tasks = self.get(f"{section}.nodes"), self.get("scheduler.tasks_per_node")
        return [*unfit(stages, max(1, nodes), max(1, tasks), where, path)]

    def _changed(self, key: Key) -> bool:
        """Tells whether a key was set on the command line."""
        return key.path in self.given and bool(self.given[key.path].change)

    def _profile(self, section: str) -> None:
        key = self.keys[f"{section}.profile"]
        name = self.get(key.path)
        if not name:
            return
        try:
            path = path_of(name, self.home(key.path))
            found = profile_in(path)
            problems = self._unfit(section, found.stages, str(path), "stages")
            counted = f"{section}.iterations" in self.given or f"{section}.nodes" in self.bad
            if not problems and not counted:
                tasks = self.get(f"{section}.nodes") * self.get("scheduler.tasks_per_node")
                most = most_iterations(found.stages, tasks)
                if found.iterations > most:
                    problems = [f"{path}: iterations = {found.iterations}: at most {most}, on so "
                                "many tasks"]  # fmt: skip
            if problems:
                raise Refused("\n".join(problems))
            self.profiles[section] = found
        except Refused as refusal:
            if self.stand_in:
                self.missing.append(f"profile {name!r}")
                return
            self.complain(str(refusal), key)
            self.bad.add(key.path)
            return
        if name not in built_in():
            self.values[key.path] = str(path)
        self._no_pattern(section, key, f"the stages of profile {self.profiles[section].name}")

    def _read_sensitivity(self) -> None:
        """Read what is known of applications, if a file is named."""
        name = self.get(SENSITIVITY_KEY.path)
        if name:
            try:
                self.known = read_table((self.home(SENSITIVITY_KEY.path) / name).absolute())
            except Refused as refusal:
                self.complain(str(refusal), SENSITIVITY_KEY)

    def _sensitive(self, section: str, job: Job) -> bool | None:
        """Returns whether congestion slows a job down: as it says itself, or the file of
        `scheduler.sensitivity`, or its profile. With another profile than that of the file, what
        the file says of the job was about the first."""
        own, profile = self.keys[f"{section}.sensitive"], self.keys[f"{section}.profile"]
        if own.path in self.given and (self._changed(own) or not self._changed(profile)):
            return job.sensitive
        names = [job.application, job.does if job.profile else ""]
        for name in names:
            if name in self.known:
                return self.known[name].sensitive
        return self.profiles[section].sensitive if section in self.profiles else None

    def _no_pattern(self, section: str, key: Key, instead: str) -> None:
        """Refuse the pattern of a job that has stages."""
        for other in (self.keys[f"{section}.{it}"] for it in OF_A_PATTERN):
            if other.path in self.given and self.get(other.path) != self._usual(other):
                self.complain(f"{instead} say that", other, key)
                self.bad.add(other.path)

    def _usual(self, key: Key) -> Any:
        """Returns the default of a key, as its field has it."""
        return None if key.default is None else read(key, key.default)

    def _jobs(self, without: set[str]) -> tuple[Job, ...]:
        """Returns what was given and is valid."""
        made: list[Job] = []
        self.owners = []
        for section in self.sections["jobs"]:
            fields = {field: value for field, value in self.fields(section).items()
                      if self._in(section, field).path not in without}  # fmt: skip
            count, name = self.get(f"{section}.{COUNT.name}"), fields.pop("name", "")
            job = Job(**({"nodes": 2} | fields))
            found = None if f"{section}.stages" in without else self.profiles.get(section)
            if found and job.profile:
                tasks = max(1, self.get("scheduler.tasks_per_node"))
                job = replace(job, stages=found.stages_for(tasks))
                if f"{section}.iterations" not in self.given:
                    job = replace(job, iterations=found.iterations)
            job = replace(job, sensitive=self._sensitive(section, job))
            made += [replace(job, name=numbered(name, k + 1) if count > 1 else name,
                             number=None if job.number is None else job.number + k)
                     for k in range(count)]  # fmt: skip
            self.owners += [section] * count
        return tuple(made)
