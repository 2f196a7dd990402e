"""Policies by name: those of this package, and those that other packages bring."""

from __future__ import annotations

import difflib
from importlib.metadata import entry_points
from typing import Generic, Protocol, TypeVar

from pdes.errors import Refused


class Policy(Protocol):
    """What any policy tells of itself."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def source(self) -> str: ...


Kind = TypeVar("Kind", bound=Policy)


class Register(dict[str, Kind], Generic[Kind]):
    """Policies of one kind, by name.

    Another package adds its own by an entry point of the group `odonata.KIND`, which names the
    module, or something in it, that registers them. It is not imported before somebody asks for a
    name that is unknown, or for all of them.
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.broken: dict[str, str] = {}
        """Entry points that could not be loaded, and why."""
        self._homes: dict[str, tuple[str, str]] = {}
        self._loaded = False

    def add(self, policy: Kind, home: tuple[str, str]) -> None:
        """`home`: module and name of what was registered. It may be registered again, as where a
        module is reloaded; under a name that something else has, nothing is."""
        if self._homes.setdefault(policy.name, home) != home:
            owner = ".".join(self._homes[policy.name])
            raise ValueError(f"{self.kind} {policy.name!r} is {owner}: choose another name")
        self[policy.name] = policy

    def named(self, name: str) -> Kind:
        """Refused where there is none."""
        if name not in self:
            self.load()
        if name in self:
            return self[name]
        if name in self.broken:
            raise Refused(f"{self.kind} {name!r}: its {self.broken[name]}")
        near = difflib.get_close_matches(name, self, 3, 0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise Refused(f"{self.kind} {name!r}: one of {', '.join(self)}{hint}")

    def load(self) -> None:
        """Import what other packages bring; once."""
        if self._loaded:
            return
        self._loaded = True
        for point in entry_points(group=f"odonata.{self.kind}"):
            try:
                point.load()
            except Exception as error:  # theirs, and nobody else's policies may suffer
                why = f"{type(error).__name__}: {error}"
                self.broken[point.name] = f"entry point {point.value} does not load: {why}"
