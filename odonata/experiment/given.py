"""The values that a file and its changes give, key by key, and their problems."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from odonata.agents.routers import ROUTERS
from odonata.experiment.experiment import (
    BY_PATH,
    INCLUDE_KEY,
    KEYS,
    OTHERS,
    REPEATED,
    SECTIONS,
    SEED,
    SWEEP,
    needs_jobs,
    of,
)
from odonata.experiment.keys import Key
from odonata.experiment.values import (
    all_are,
    bracketed,
    from_shell,
    nearest,
    plain,
    read,
    section_names,
    show,
    unknown,
)
from topology.presets import PRESETS

PARAMETRISED = ("allocation", "scheduling", "power", "bidding")
"""Kinds of policies that can be a table: a name, and parameters."""
LONG = ("run", "metrics", "power", "market")
"""Sections in which times may be years, where only jobs are simulated."""
ROUTING_TABLE = "; by its name alone: its parameters are network.threshold and network.bias"
ORDER = {key.path: place for place, key in enumerate(KEYS)}
SECTION_ORDER = {section: place for place, section in enumerate(("", *SECTIONS))}
NONE = "none"
"""Given with `--set` in place of a section: there is none."""
ONE_OF_SEVERAL = re.compile(rf"({'|'.join(REPEATED)})\[(\d{{1,9}}|\+)\]")
"""A whole job or traffic, by its number; or one more."""


class Value(NamedTuple):
    """A value, as TOML has it; the `--set` it is from, if it is not from a file; and the file that
    it is from, or that was changed."""

    given: Any
    change: str = ""
    file: str = ""


class Given:
    """All that was given, and the problems that were found; these are collected to the end."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.lines: list[tuple[tuple[int, ...], str]] = []
        """Problems, each with the place of its key: they are shown in that order."""
        self.keys: dict[str, Key] = {
            path: key for path, key in BY_PATH.items() if key.section != "jobs"
        }
        """All that can be set here, by path."""
        self.sections: dict[str, list[str]] = {name: [] for name in SECTIONS}
        """The sections that are there, by kind: "jobs[0]", "jobs[1]" of "jobs"."""
        self.given: dict[str, Value] = {}
        self.parameters: dict[str, dict[str, Value]] = {}
        """Parameters of policies, by the path of the policy's key."""
        self.values: dict[str, Any] = {}
        """Values that were given and are of their kind, by path; as the fields have them."""
        self.not_loaded = False
        """A plug-in is not there, or cannot be imported."""
        self.bad: set[str] = set()
        """Paths about which a problem was reported."""
        self._dropped: dict[str, str] = {}
        """Jobs and traffic that are to be dropped, each with the `--set` that said so."""

    def take_file(self, tree: Mapping[str, Any], file: str) -> None:
        """Take all that a file says; a key, or all [[jobs]], that a file before it has given are
        replaced."""
        for name, value in tree.items():
            if name in (INCLUDE_KEY.name, SWEEP):
                continue  # which `reading` and `odonata.sweeps` read
            if name in REPEATED and (name == "jobs" or isinstance(value, list)):
                self._take_several(name, value, Value(None, "", file))
            elif name in SECTIONS and isinstance(value, dict):
                if self.sections[name] not in ([], [name]):
                    self._forget(name)
                self._take_section(name, name, value, Value(None, "", file))
            elif name in SECTIONS:
                self.sections[name] = [name]
                self.note(f"{file}: {name} = {show(value)}: a section, [{name}]")
            elif name in BY_PATH:
                self._give(name, Value(value, "", file))
            elif isinstance(value, dict) or (value and all_are(value, dict)):
                near = nearest(name, SECTIONS)
                meant = f"did you mean {bracketed(near)}?" if near else f"one of {section_names()}"
                said = f"[{plain(name)}]" if isinstance(value, dict) else f"[[{plain(name)}]]"
                self.note(f"{file}: {said}: unknown; {meant}")
            else:
                self.note(f"{file}: {plain(name)}: {unknown(name)}")

    def _take_section(
        self, kind: str, section: str, content: Mapping[str, Any], source: Value
    ) -> None:
        """Take the keys of a section; `source` says where they are from."""
        if section not in self.sections[kind]:
            self.sections[kind].append(section)
        for name, value in _with_seeds(section, content):
            path = f"{section}.{name}"
            if path in self.keys:
                said = f"{source.change}: {path} = {show(value)}" if source.change else ""
                self._give(path, source._replace(given=value, change=said))
            else:
                self.note(f"{source.change or source.file}: {plain(path)}: {unknown(path)}")

    def _take_several(self, kind: str, tables: Any, source: Value) -> None:
        """Take all [[jobs]], or all [[traffic]], in place of those that there are."""
        each = "one for each job" if kind == "jobs" else "one for each kind of it"
        said = source.change or f"{source.file}: {kind} = {show(tables)}"
        if not isinstance(tables, list) or not tables:
            self.note(f"{said}: [[{kind}]], {each}")
            return
        self._forget(kind)
        for key in of(kind):
            self.keys.pop(key.path, None)
        for number, table in enumerate(tables):
            self._take_one(kind, f"{kind}[{number}]", table, source)

    def _take_one(self, kind: str, section: str, table: Any, source: Value) -> None:
        """Take one of [[jobs]] or [[traffic]], in place of the one of that number, if there is
        one."""
        self._forget_keys(section)
        self.keys |= {key.path: key for key in map_within(kind, section)}
        if isinstance(table, dict):
            self._take_section(kind, section, table, source)
        else:
            said = source.change or f"{source.file}: {section} = {show(table)}"
            self.note(f"{said}: a table, [[{kind}]]")
            self._take_section(kind, section, {}, source)

    def _forget(self, kind: str) -> None:
        """Forget a section, or all of a kind, as if nobody had given it."""
        for section in self.sections[kind]:
            self._forget_keys(section)
        self._forget_keys(kind)
        self.sections[kind] = []
        if kind != "jobs":
            self.keys |= {key.path: key for key in of(kind)}

    def _forget_keys(self, section: str) -> None:
        for known in (self.given, self.parameters):
            for path in [path for path in known if path.startswith(f"{section}.")]:
                del known[path]

    def _give(self, path: str, value: Value) -> None:
        """Read a table in place of a policy: its name, and parameters."""
        self.parameters.pop(path, None)
        table = self.keys[path].how.register in PARAMETRISED and isinstance(value.given, dict)
        if table and "name" in value.given:
            inner = dict(value.given)
            self.given[path] = value._replace(given=inner.pop("name"))
            self.parameters[path] = {k: value._replace(given=v) for k, v in inner.items()}
        else:
            self.given[path] = value

    def take_change(self, change: str) -> None:
        """Take a `--set`: a key and its value, or all of a section, or none of it."""
        path, equals, text = (part.strip() for part in change.partition("="))
        path = self._numbered(path)
        said = f"--set {plain(change)}"
        source = Value(None, said, self.where)
        policy, _, parameter = path.rpartition(".")
        if not equals:
            self.note(f"{said}: a key and a value, as machine.groups=33")
        elif path in SECTIONS and from_shell(text) == NONE:
            self._forget(path)
            self._forget_what_needs_jobs()
        elif path in REPEATED and text.startswith("["):
            self._take_several(path, from_shell(text), source)
        elif ONE_OF_SEVERAL.fullmatch(path):
            self._take_whole(path, text, source)
        elif path in SECTIONS and path != "jobs":
            self.note(f"{said}: a section; set one of its keys, as {of(path)[0].path}, or {NONE}")
        elif path == SEED and text.startswith("{"):
            self._take_section("run", "run", {"seed": from_shell(text)}, source)
        elif path in self.keys:
            given = self._from_shell(self.keys[path].kind, text)
            self._give(path, source._replace(given=given))
        elif policy in self.keys and self.keys[policy].how.register in PARAMETRISED:
            value = source._replace(given=from_shell(text))
            if parameter == "name":  # the file's parameters are those of another policy
                self.given[policy] = value
                kept = self.parameters.pop(policy, {})
                if changed := {k: one for k, one in kept.items() if one.change}:
                    self.parameters[policy] = changed
            else:
                self.parameters.setdefault(policy, {})[parameter] = value
        else:
            self.note(f"{said}: {self._which(path) or unknown(path)}")

    def _take_whole(self, section: str, text: str, source: Value) -> None:
        """Take one whole job or traffic, given as a table: in place of that of this number, or
        after the last; or, given as none, drop it."""
        kind, _, number = section.rstrip("]").partition("[")
        there = self.sections[kind]
        if kind == "traffic" and there == ["traffic"]:
            self.note(f"{source.change}: {self.where} has one [traffic], and not [[traffic]]; set "
                      f"its keys, as traffic.load, or traffic={NONE}")  # fmt: skip
            return
        following = len(there)
        if number == "+" or int(number) == following:
            section = f"{kind}[{following}]"
        elif section not in there:
            self.note(f"{source.change}: {self._which(section) or 'there is none'}, and a new one "
                      f"would be {kind}[{following}], or {kind}[+]")  # fmt: skip
            return
        if from_shell(text) == NONE and section in there:
            self._dropped[section] = source.change
        elif from_shell(text) == NONE:
            self.note(f"{source.change}: {self.where} has no {section} that could be dropped")
        else:
            self._dropped.pop(section, None)
            self._take_one(kind, section, from_shell(text), source)

    def drop(self) -> None:
        """Drop what `--set` has dropped of [[jobs]] and [[traffic]]. Until now they had the numbers
        of the file, whatever was dropped before."""
        for section in self._dropped:
            kind = section.partition("[")[0]
            self._forget_keys(section)
            self.sections[kind].remove(section)
            if not self.sections[kind]:
                self._forget(kind)
        if self._dropped:
            self._forget_what_needs_jobs()

    def _forget_what_needs_jobs(self) -> None:
        """Forget what files say about jobs, where these have been dropped."""
        if not self.sections["jobs"] and not self.of_jobs:
            about = [path for path, value in self.given.items() if not value.change
                     and (needs_jobs(self.keys[path]) or path.startswith("power."))]  # fmt: skip
            for path in about:
                del self.given[path]
                self.parameters.pop(path, None)
            self.sections["power"] = []

    def _from_shell(self, kind: str, text: str) -> Any:
        value = from_shell(text)
        if kind == "text" and not isinstance(value, str):
            return text
        if kind == "number" and re.fullmatch(r"[+-]?(\d+\.|\.\d+)", text):
            return float(text)  # as a shell's user writes it
        if kind == "flag" and text in ("True", "False"):
            return text == "True"
        return value

    def _numbered(self, path: str) -> str:
        """Returns a path in its usual form: jobs.0.nodes is jobs[0].nodes, and so is
        jobs[fft].nodes if that is its name; and the only traffic there is, is traffic[0] too."""
        if path == f"{SEED}.{OTHERS}":
            return SEED
        path = re.sub(rf"^({'|'.join(REPEATED)})\.(\d+)\b", r"\1[\2]", path)
        if named := re.match(r"jobs\[([^]]*)\]", path):
            called = [
                section
                for section in self.sections["jobs"]
                if (name := self.given.get(f"{section}.name")) and name.given == named[1]
            ]
            if len(called) == 1:
                path = called[0] + path[named.end() :]
        if self.sections["traffic"] == ["traffic[0]"]:
            return re.sub(r"^traffic\.", "traffic[0].", path)
        if self.sections["traffic"] in ([], ["traffic"]):
            return re.sub(r"^traffic\[0\]\.", "traffic.", path)
        return path

    def _which(self, path: str) -> str:
        """Returns the problem of a change to one of several sections that is not there, if it is
        that."""
        section, _, name = path.partition(".")
        kind = section.partition("[")[0]
        there = self.sections.get(kind, [])
        if kind not in REPEATED or section in there:
            return ""
        if not there:
            return f"{self.where} has no [[jobs]]" if kind == "jobs" else ""
        some = f" to {there[-1]}" if len(there) > 1 else ""
        what = "job" if kind == "jobs" else kind
        first = of(kind)[1 if kind == "jobs" else 0].name
        return (f"which {what}? {self.where} has {there[0]}{some}, as "
                f"{there[-1]}.{name or first}")  # fmt: skip

    def home(self, path: str) -> Path:
        """Returns the folder of the file that gave a key: what the key names is relative to it."""
        given = self.given.get(path)
        return Path(given.file if given and given.file else self.where).parent

    # -- problems

    def note(self, line: str, place: tuple[int, ...] = (-1,)) -> None:
        self.lines.append((place, line))

    def place(self, key: Key) -> tuple[int, ...]:
        """Returns the place of a key among all keys, in the order in which a file has them."""
        kind, _, number = key.section.partition("[")
        section, _, policy = kind.partition(".")
        path = kind if policy else f"{kind}.{key.name}".lstrip(".")
        return SECTION_ORDER[section], int(number.rstrip("]") or 0), ORDER[path]

    def complain(self, rule: str, key: Key, *others: Key, found: str = "") -> None:
        """Report a problem about a key, unless it, or another it is about, is wrong already.
        `found`: the value that it was found to have, where it may follow from others."""
        if not self.bad.isdisjoint(other.path for other in (key, *others)):
            return
        self.bad.add(key.path)
        given = self.given.get(key.path)
        if given is None:
            line = f"{self.where}: {key.path} = {self._default(key, found)}: {rule}"
        elif given.change:
            line = f"{given.change}: {rule}"
        else:
            line = f"{given.file}: {key.path} = {show(given.given)}: {rule}"
        self.note(line, self.place(key))

    def _default(self, key: Key, found: str = "") -> str:
        """Returns the value of a key that was not given, and why it has it."""
        if key.owner == "machine":
            preset = self.get("machine.preset")
            return f"{key.write(key.of(PRESETS[preset].machine))} (as in {preset})"
        if key.path == "run.duration":
            return "done (by default, with jobs)" if self.sections["jobs"] else "100 us"
        router = self.get("network.router")
        if key.section in ("network", "nic") and key.field in ROUTERS.get(router, ()):
            return f"{key.write(ROUTERS[router][key.field])} (as in router {router})"
        if key.default is None:
            return found or key.how.otherwise
        return f"{show(key.default)} (by default)"

    # -- values

    def read_all(self) -> None:
        """Convert each value to that of its field, or report a problem."""
        for path in self.given:
            try:
                self.values[path] = self.read_one(path)
            except ValueError as error:
                named = self.keys[path].how.register and isinstance(self.given[path].given, str)
                if self.not_loaded and named:
                    self.bad.add(path)  # which the plug-in may have brought
                table = isinstance(self.given[path].given, dict)
                unnamed = table and self.keys[path].how.register in PARAMETRISED
                hint = ROUTING_TABLE if table and not unnamed and path == "network.routing" else ""
                self.complain("its name is missing: " * unnamed + str(error) + hint,
                              self.keys[path])  # fmt: skip

    def read_one(self, path: str) -> Any:
        """Returns a value as its field has it. Raises ValueError saying what is accepted."""
        key = self.keys[path]
        return read(key, self.given[path].given, self.of_jobs and key.section in LONG)

    @property
    def of_jobs(self) -> bool:
        """Tells whether this is an experiment of the job fidelity."""
        return "fidelity" in self.given and self.given["fidelity"].given == "job"

    def good(self, path: str) -> bool:
        """Tells whether it was given and is valid."""
        return path in self.values and path not in self.bad

    def get(self, path: str) -> Any:
        """Returns the value that was given, if it is valid, or else the default."""
        if self.good(path):
            return self.values[path]
        return read(self.keys[path], self.keys[path].default)

    def fields(self, section: str) -> dict[str, Any]:
        """Returns what was given in a section and is valid, by field."""
        kind = section.partition("[")[0]
        return {
            key.field: self.values[path]
            for key in of(kind)
            if key.field and self.good(path := f"{section}.{key.name}")
        }


def _with_seeds(section: str, content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Returns the keys of a section and their values; those of a table of seeds one by one."""
    for name, value in content.items():
        if f"{section}.{name}" == SEED and isinstance(value, dict) and value:
            for what, seed in value.items():
                yield name if what == OTHERS else f"{name}.{what}", seed
        else:
            yield name, value


def map_within(kind: str, section: str) -> list[Key]:
    """Returns the keys of one of several sections of a kind."""
    return [key.within(section) for key in of(kind)]
