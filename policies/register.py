"""Policies by name: those of this package, and those that other packages and files bring.

There is one register per kind. Each holds an `Entry` per policy, which says what the policy is,
where it comes from and what it may be given; `make` returns the policy itself.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from pdes.errors import Refused
from policies import plugins
from policies.parameters import Parameter

KINDS = ("routing", "allocation", "scheduling", "power", "bidding", "traffic", "pattern", "profile")
MISSING = "its plug-in is missing"

Values = Mapping[str, Any] | Iterable[tuple[str, Any]]


@dataclass(frozen=True)
class Entry:
    """What a register knows of one policy."""

    kind: str
    name: str
    about: str = ""
    """One line."""
    source: str = ""
    """The paper."""
    build: Callable[..., Any] | None = None
    """Returns the policy, from its parameters as keyword arguments."""
    parameters: tuple[Parameter, ...] = ()
    memory: bool = False
    """Does it remember anything between two questions?"""
    home: str = ""
    """The module and name of what was registered."""
    plugin: str = ""
    """The file or the distribution that brought it; empty if it is built in."""
    missing: bool = False
    """It stands for one whose plug-in is not here."""

    def make(self, values: Values = ()) -> Any:
        """Returns the policy with these parameters, the others as they are by default. Refused
        where there is no such parameter or it cannot have that value."""
        whose = f"{self.kind} {self.name}"
        if self.missing or self.build is None:
            raise Refused(f"{whose}: {MISSING}; give it with --plugin FILE, or install it")
        given, known = dict(values), {each.name: each for each in self.parameters}
        for name in given:
            if name not in known:
                have = f"it has {', '.join(known)}" if known else "it has no parameters"
                raise Refused(f"{whose}: {name}: unknown; {have}{_meant(name, known)}")
        made = {
            each.name: each.checked(given.get(each.name, each.default), whose)
            for each in self.parameters
        }
        try:
            return self.build(**made)
        except ValueError as error:
            raise Refused(f"{whose}: {error}") from error


E = TypeVar("E", bound=Entry)


class Register(dict[str, E], Generic[E]):
    """Entries of one kind, by name.

    Another package adds its own by an entry point of the group `odonata.KIND`, which names the
    module, or something in it, that registers them. It is not imported before somebody asks for a
    name that is unknown, or for all of them.
    """

    def __init__(self, kind: str, entry: type[E]) -> None:
        super().__init__()
        self.kind = kind
        self.entry = entry
        self.broken: dict[str, str] = {}
        """Entry points that could not be loaded, and why."""
        self._loaded = False

    def add(self, entry: E) -> None:
        """Enter a policy. The same one may be entered again, as where a module is reloaded or a
        plug-in was edited; under a name that something else has, none is."""
        entry = dataclasses.replace(entry, plugin=plugins.origin())
        there = self.get(entry.name)
        same = there is None or there.missing or there.home == entry.home
        if there is not None and not same and (not entry.plugin or there.plugin != entry.plugin):
            raise ValueError(f"{self.kind} {entry.name!r} is {there.home}: choose another name")
        self[entry.name] = entry
        plugins.note(self.kind, entry.name)

    def known(self, name: str) -> bool:
        """Tells whether there is one of that name, after looking at what other packages bring."""
        if name not in self or self[name].missing:
            self.load()
        return name in self and not self[name].missing

    def named(self, name: str) -> E:
        """Returns the entry of that name; refused where there is none, with those that are near."""
        if not self.known(name) and name not in self:
            if name in self.broken:
                raise Refused(f"{self.kind} {name!r}: its {self.broken[name]}")
            raise Refused(f"{self.kind} {name!r}: one of {', '.join(self)}{_meant(name, self)}")
        return self[name]

    def make(self, name: str, values: Values = ()) -> Any:
        """Returns the policy of that name with these parameters (`Entry.make`)."""
        return self.named(name).make(values)

    def placeholder(self, name: str) -> E:
        """Returns the entry of that name or, where there is none, enters one that stands for it: so
        that what a run left can be opened without the plug-in that ran. It refuses to be made."""
        if not self.known(name) and name not in self:
            self[name] = self.entry(self.kind, name, MISSING, missing=True)
        return self[name]

    def load(self) -> None:
        """Import what other packages and the environment's plug-ins bring; once."""
        if self._loaded:
            return
        self._loaded = True
        plugins.load_from_environment()
        for point in entry_points(group=f"odonata.{self.kind}"):
            try:
                with plugins.coming_from(point.dist.name if point.dist else point.value):
                    point.load()
            except Exception as error:  # theirs, and nobody else's policies may suffer
                why = f"{type(error).__name__}: {error}"
                self.broken[point.name] = f"entry point {point.value} does not load: {why}"


def _meant(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), 3, 0.5)
    return f"; did you mean {' or '.join(near)}?" if near else ""


REGISTERS: dict[str, Register[Any]] = {kind: Register(kind, Entry) for kind in KINDS}
"""The register of each kind; those of built-in policies fill as their packages are imported."""


def register(kind: str) -> Register[Any]:
    """Returns the register of one kind."""
    return REGISTERS[kind]


def placeholder(kind: str, name: str) -> Entry:
    """Returns what stands for a policy whose plug-in is gone (`Register.placeholder`)."""
    entry: Entry = REGISTERS[kind].placeholder(name)
    return entry
