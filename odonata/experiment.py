"""An experiment file: a machine, its routers, its traffic, how long, and what is kept of it.

It is TOML; what it may hold is in `odonata.keys`, and `odonata schema` tells. A key that is not
given has its default. Nothing runs before everything was read, and whoever wrote it is told all
that is wrong at once, one problem a line: the file (or the `--set`), the key, the value, and what
is accepted. A problem between two keys is told unless one of them is wrong already.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from odonata import keys
from odonata.agents.link import LINE, PADDING
from odonata.agents.network import Network
from odonata.agents.node import BINS, NODE_WORDS
from odonata.agents.traffic import Traffic
from odonata.keys import BY_FIELD, BY_PATH, KEYS, KINDS, NAME_LENGTH, READERS, SECTIONS, Key
from odonata.units import show_count, show_time
from pdes import launcher
from pdes.errors import Refused
from policies.routing import ROUTINGS
from topology import BadMachine, Dragonfly
from topology.presets import PRESETS

LONGEST_FILE = 2**20
"""Bytes."""
MOST_SAMPLES, MOST_CHECKPOINTS = 100_000, 100_000
FLUSH_PS = (10**9, 60 * 10**12)
"""Of wall time, as any time in picoseconds: from a millisecond to a minute."""
MACHINE, TRAFFIC, NETWORK = "network.machine.", "network.traffic.", "network."
"""Where in an experiment their fields are."""


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
    end: int
    protocol: str
    checkpoint_every: int | None
    metrics: Metrics

    def to_toml(self) -> str:
        """All of it, nothing left to defaults: `parse` makes an equal experiment of it."""
        lines = []
        for section in ("", *SECTIONS):
            lines += ["", f"[{section}]"] if section else []
            lines += [f"{key.name} = {key.write(self.value(key))}" for key in keys.of(section)
                      if key.path != "machine.preset" or self.is_preset]  # fmt: skip
        return "\n".join(lines) + "\n"

    @property
    def is_preset(self) -> bool:
        """Is its machine one of those with a name?"""
        return PRESETS[preset_of(self.network.machine)].machine == self.network.machine

    def value(self, key: Key) -> Any:
        """Of a key, as `Key.write` takes it."""
        if key.path == "machine.preset":
            return preset_of(self.network.machine)
        if key.path == "metrics.flush":
            return round(self.metrics.flush_s * 10**12)
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
        raise Refused(f"{where}: {_syntax(str(error), text)}") from None
    reading = _Reading(where)
    reading.take_file(tree)
    for change in changes:
        reading.take_change(change)
    return reading.experiment()


def preset_of(machine: Dragonfly) -> str:
    """The preset that is this machine or, as any will do where all else is given, the default."""
    same = (name for name, preset in PRESETS.items() if preset.machine == machine)
    return next(same, keys.PRESET)


def words_of(key: Key) -> tuple[str, ...]:
    """Of a word: those accepted, with what was registered since."""
    registers: dict[str, Iterable[str]] = {"machine.preset": PRESETS, "network.routing": ROUTINGS}
    return tuple(dict.fromkeys((*key.words, *registers.get(key.path, ()))))


def round_up(ps: int) -> int:
    """To 1, 2 or 5 times a power of ten."""
    unit = 1
    while 10 * unit < ps:
        unit *= 10
    return next(n * unit for n in (1, 2, 5, 10) if n * unit >= ps)


def usual_interval(end: int) -> int:
    """Between samples: 10 us, which on a loaded machine costs 2 % of the time; but so that there
    are 20 at least, and 1,000 at most."""
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
        self.lines: list[tuple[int, str]] = []
        """Problems, each with the place of its key, for they are told in that order."""
        self.given: dict[str, _Given] = {}
        self.values: dict[str, Any] = {}
        """What was given and is of its kind, by path; as the fields have it."""
        self.bad: set[str] = set()
        """Paths that were complained about."""

    def take_file(self, tree: Mapping[str, Any]) -> None:
        for name, value in tree.items():
            if name in SECTIONS:
                if isinstance(value, dict):
                    self._take_section(name, value)
                else:
                    self._note(f"{self.where}: {name} = {show(value)}: a section, [{name}]")
            elif name in BY_PATH:
                self.given[name] = _Given(value)
            elif isinstance(value, dict):
                near = _near(name, SECTIONS)
                meant = f"did you mean [{near}]?" if near else f"one of {_sections()}"
                self._note(f"{self.where}: [{_plain(name)}]: unknown; {meant}")
            else:
                self._note(f"{self.where}: {_plain(name)}: {unknown(name)}")

    def _take_section(self, section: str, content: Mapping[str, Any]) -> None:
        for name, value in content.items():
            path = f"{section}.{name}"
            if path in BY_PATH:
                self.given[path] = _Given(value)
            else:
                self._note(f"{self.where}: {_plain(path)}: {unknown(path)}")

    def take_change(self, change: str) -> None:
        path, equals, text = (part.strip() for part in change.partition("="))
        told = f"--set {_plain(change)}"
        if not equals:
            self._note(f"{told}: a key and a value, as machine.groups=33")
        elif path in SECTIONS:
            self._note(f"{told}: a section; set one of its keys, as {keys.of(path)[0].path}")
        elif path not in BY_PATH:
            self._note(f"{told}: {unknown(path)}")
        else:
            value = _toml_value(text)
            kind = BY_PATH[path].kind
            if kind == "text" and not isinstance(value, str):
                value = text
            elif kind == "number" and re.fullmatch(r"[+-]?(\d+\.|\.\d+)", text):
                value = float(text)  # as a shell's user writes it
            elif kind == "flag" and text in ("True", "False"):
                value = text == "True"
            self.given[path] = _Given(value, told)

    # -- problems

    def _note(self, line: str, place: int = -1) -> None:
        self.lines.append((place, line))

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
        self._note(line, KEYS.index(key))

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
        return _value(BY_PATH[path], BY_PATH[path].default)

    # -- what it makes

    def experiment(self) -> Experiment:
        """Of what was taken. Refused with all that is wrong."""
        for path, given in self.given.items():
            try:
                self.values[path] = _value(BY_PATH[path], given.value)
            except ValueError as error:
                self._complain(str(error), BY_PATH[path])
        self._name()
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

    def _network(self) -> Network | None:
        machine = self._machine()
        traffic = self._fields(TRAFFIC)
        traffic.setdefault("message_bytes", max(1, self._get("network.packet")))
        made = self._made(Traffic, TRAFFIC, traffic)
        network = None
        try:
            network = Network(machine, made, **self._fields(NETWORK))
        except Refused as refusal:
            self._blame(NETWORK, refusal.problems)
        self._memory(machine, network.channels if network else 1)
        return network

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

    def _fields(self, prefix: str) -> dict[str, Any]:
        """Of the object there: those that were given."""
        return {
            BY_PATH[path].last: value
            for path, value in self.values.items()
            if path not in self.bad and BY_PATH[path].field == prefix + BY_PATH[path].last
        }

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
            about = [BY_FIELD[prefix + name] for name in problem.fields]
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

    def _time(self) -> tuple[int, Metrics]:
        """The rules of [run] and of [metrics], which are nobody else's."""
        duration, interval = BY_PATH["run.duration"], BY_PATH["metrics.interval"]
        end = self._get("run.duration")
        if end == 0:
            self._complain("above 0", duration)
        if self._get("traffic.warmup") >= end:
            self._complain(f"must be less than the duration of {show_time(end)}, or nothing is "
                           "measured", BY_PATH["traffic.warmup"], duration)  # fmt: skip
        stop = self._get("traffic.stop")
        if stop is not None and self._get("traffic.warmup") >= stop:
            self._complain(
                f"must be less than traffic.stop, {show_time(stop)}, or nothing is measured",
                *(BY_PATH[f"traffic.{k}"] for k in ("warmup", "stop")),
            )
        checkpoint = self._get("run.checkpoint_every")
        often = BY_PATH["run.checkpoint_every"]
        if checkpoint == 0:
            self._complain("above 0, or never", often)
        elif checkpoint is not None and -(-end // checkpoint) > MOST_CHECKPOINTS:
            self._complain(f"{-(-end // checkpoint):,} checkpoints in {show_time(end)}; at most "
                           f"{MOST_CHECKPOINTS:,}", often, duration)  # fmt: skip
        every = self.values.get("metrics.interval", usual_interval(end))
        if every == 0:
            self._complain("above 0", interval)
        elif -(-end // every) > MOST_SAMPLES:
            least = show_time(round_up(-(-end // MOST_SAMPLES)))
            self._complain(f"{-(-end // every):,} samples in {show_time(end)}; at most "
                           f"{MOST_SAMPLES:,}, as with {least}", interval, duration)  # fmt: skip
        flush = self._get("metrics.flush")
        if not FLUSH_PS[0] <= flush <= FLUSH_PS[1]:
            self._complain(f"{' .. '.join(map(show_time, FLUSH_PS))}", BY_PATH["metrics.flush"])
        ports, channels = self._get("metrics.ports"), self._get("metrics.channels")
        return end, Metrics(every, ports, channels, flush / 10**12)


# -- one value


def _value(key: Key, value: Any) -> Any:
    """From TOML to what the field has. Raises ValueError saying what is accepted."""
    if key.none and value == key.none:
        return None
    accepted = KINDS[key.kind] + (f", or {key.none}" if key.none else "")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if key.kind == "word":
        return _word(words_of(key), value)
    if key.kind == "flag" and isinstance(value, bool):
        return value
    if key.kind == "whole" and number and isinstance(value, int):
        if abs(value) >= 2**63:
            raise ValueError(f"{accepted}, below 2**63")
        return value
    if key.kind == "number" and number:
        if not abs(value) < 2**63:
            raise ValueError(f"{accepted}, finite and below 2**63")
        return float(value)
    if key.kind == "text" and isinstance(value, str):
        if not value.isascii() and any(0xD800 <= ord(letter) < 0xE000 for letter in value):
            raise ValueError("text in UTF-8")
        return value
    if key.kind in READERS and isinstance(value, str):
        return _quantity(key, value)
    if key.kind in READERS and number:
        raise ValueError(f"a bare number; {accepted}")
    raise ValueError(accepted)


def _quantity(key: Key, text: str) -> float:
    try:
        return READERS[key.kind](text)
    except ValueError as error:  # which begins with the text, as we do
        rule = str(error).removeprefix(repr(text)).removeprefix(":").strip()
        raise ValueError(rule.removeprefix("is ") + (f"; or {key.none}" * bool(key.none))) from None


def _word(words: tuple[str, ...], value: Any) -> str:
    if isinstance(value, str) and value in words:
        return value
    near = _near(value, words) if isinstance(value, str) else None
    raise ValueError(f"one of {', '.join(words)}" + (f"; did you mean {near}?" if near else ""))


def show(value: Any) -> str:
    """A value of TOML, as in a file, but short."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _short(keys.quoted(value))
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a table"
    if isinstance(value, int) and abs(value) >= 10**30:
        return f"about 2**{abs(value).bit_length()}"
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return _short(str(value))


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _plain(name: str) -> str:
    """A name that need not be one, on one line."""
    return _short(name if name.isprintable() and name else keys.quoted(name))


# -- what was meant


def unknown(path: str) -> str:
    """What to say of a key that there is not: the nearest that there is."""
    section, _, name = path.rpartition(".")
    home = next((key for key in KEYS if key.name == name.lower().replace("-", "_")), None)
    if home and section in ("", *SECTIONS) and home.section != section:
        place = f"in [{home.section}]" if home.section else "above all sections"
        return f"unknown; it belongs {place}, as {home.path}"
    if home is None:
        names = [key.name for key in keys.of(section)] if section in ("", *SECTIONS) else []
        near = _near(name, names) or _near(name, [key.name for key in KEYS])
        home = next((key for key in KEYS if key.name == near), None)
    if home:
        return f"unknown; did you mean {home.path}?"
    if section in SECTIONS:
        return f"unknown; one of {', '.join(key.name for key in keys.of(section))}"
    return f"unknown; name, about, or a section: {_sections()}"


def _near(name: str, names: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name.lower(), list(names), 1)), None)


def _sections() -> str:
    return ", ".join(f"[{section}]" for section in SECTIONS)


def _toml_value(text: str) -> Any:
    """Of a `--set`: as TOML where it is, else as text."""
    try:
        tree = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return tree["value"] if len(tree) == 1 else text


def _syntax(message: str, text: str) -> str:
    """What tomllib says, the line first."""
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    if match:
        said = match[1].replace("Cannot overwrite a value", "a key that was given before")
        return f"line {match[2]}, column {match[3]}: {said}"
    if digits := re.search(r"\d{4300,}", text):  # which Python does not even try to read
        line = text.count("\n", 0, digits.start()) + 1
        return f"line {line}: a number of {len(digits[0])} digits"
    line = text.count("\n") + (not text.endswith("\n"))
    return f"line {line}: {message.removesuffix(' (at end of document)')}"
