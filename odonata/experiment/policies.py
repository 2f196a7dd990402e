"""Policies that an experiment names: the plug-ins that bring them, and their parameters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from odonata.experiment.experiment import BY_PATH
from odonata.experiment.given import Given, Value
from odonata.experiment.keys import Key, parameter_keys
from odonata.experiment.values import from_shell, plain, read
from pdes.errors import Refused
from policies.register import REGISTERS, load_plugin, plugin_path
from topology.settings import meant


def shell_parameters(
    kind: str, policy: str, given: Sequence[str], option: str = "--parameter", long: bool = False
) -> dict[str, Any]:
    """Returns the parameters of a policy of this kind (order or allocation, as the keys of
    [scheduler], or power), from texts such as "spare=2"; refused where a value cannot be read.
    `long` times may be years. Whether the policy has them is found out when it is made."""
    key = BY_PATH["power.policy" if kind == "power" else f"scheduler.{kind}"]
    known = parameter_keys(key, REGISTERS[key.how.register].named(policy).name)
    found = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals):
            raise Refused(f"{option} {plain(text)}: a name and a value, as spare=2")
        try:
            meant = from_shell(value)
            found[name] = read(known[name], meant, long) if name in known else meant
        except ValueError as error:
            raise Refused(f"{option} {plain(text)}: {error}") from None
    return found


class Policies(Given):
    """What was given, with the plug-ins it names and more `plugins`. One of these stands for one
    that the file names, is not there and has the same file name: it has been moved. With `stand_in`
    none is loaded, and an entry without a kernel stands in for each that is missing."""

    def __init__(
        self, where: str, plugins: Sequence[Path | str] = (), stand_in: bool = False
    ) -> None:
        super().__init__(where)
        self.plugins = [str(plugin_path(path)) for path in plugins]
        self.stand_in = stand_in
        self.moved: dict[str, str] = {}
        """Plug-ins that the file names and are not there, and what was taken for each."""
        self.missing: list[str] = []
        """The policies that are named and are missing, where something stands in for them."""

    def load_plugins(self) -> None:
        """Those of the file are named relative to it."""
        key = BY_PATH["plugins"]
        try:
            named = read(key, self.given["plugins"].given if "plugins" in self.given else ())
        except ValueError:
            named = ()  # the problem is found when all values are read
        home = self.home(key.path)
        try:
            paths = [self._moved(plugin_path(name, home)) for name in named]
        except Refused as refusal:
            paths = []
            if not self.stand_in:
                self.not_loaded = True
                self.complain(str(refusal), key)
        self.plugins = [*dict.fromkeys((*paths, *self.plugins))]
        for path in self.plugins if not self.stand_in else ():
            try:
                load_plugin(path)
            except Refused as refusal:
                if path not in paths:
                    raise
                moved = (
                    ""
                    if os.path.exists(path)
                    else f"; --plugin PLACE/{Path(path).name} says where it has been moved to"
                )
                self.not_loaded = True
                self.complain(f"{refusal}{moved}", key)
        if self.stand_in:
            self._stand_in()

    def _moved(self, path: Path) -> str:
        """Returns where a plug-in is now that the file names."""
        left = [place for place in self.plugins if place not in self.moved.values()]
        places = [place for place in left if Path(place).name == path.name]
        if os.path.exists(path) or not places:
            return str(path)
        self.moved[str(path)] = places[0]
        return places[0]

    def _stand_in(self) -> None:
        for path, value in self.given.items():
            kind = self.keys[path].how.register
            if kind and isinstance(value.given, str) and not REGISTERS[kind].known(value.given):
                REGISTERS[kind].placeholder(value.given)
                self.values[path] = value.given
                self.missing.append(f"{kind} {value.given!r}")

    def read_one(self, path: str) -> Any:
        if path in self.values:
            return self.values[path]
        try:
            return super().read_one(path)
        except ValueError as error:
            if not (self.moved and self.keys[path].how.register):
                raise
            taken = "; ".join(f"{old} is not there, {new} was taken for it"
                              for old, new in self.moved.items())  # fmt: skip
            raise ValueError(f"{error}; {taken}") from error

    def policy_parameters(self) -> dict[str, tuple[tuple[str, Any], ...]]:
        """Returns the parameters of policies, by the field that has them."""
        found = {}
        for path, given in self.parameters.items():
            if path in self.bad:
                continue
            key, policy = self.keys[path], self.get(path)
            if not REGISTERS[key.how.register].known(policy):
                found[key.parameters] = tuple((k, value.given) for k, value in given.items())
                continue
            known = parameter_keys(key, policy)
            for name in given:
                if name not in known:
                    self._no_parameter(key, policy, name, [*known])
            good = [self._parameter(known[name], name, policy, key, value)
                    for name, value in given.items() if name in known]  # fmt: skip
            found[key.parameters] = tuple(pair for pair in good if pair)
            self._try(key, policy, found[key.parameters])
        return found

    def _parameter(
        self, key: Key, name: str, policy: str, owner: Key, value: Value
    ) -> tuple[str, Any] | None:
        """Returns name and value of a parameter, or None after reporting a problem."""
        self.keys[key.path], self.given[key.path] = key, value
        try:
            return name, read(key, value.given)
        except ValueError as error:
            self.complain(str(error), key)
        return None

    def _no_parameter(self, key: Key, policy: str, name: str, known: list[str]) -> None:
        have = f"{policy} has {', '.join(known)}" if known else f"{policy} has no parameters"
        given = self.parameters[key.path][name]
        where = given.change or f"{given.file}: {plain(f'{key.path}.{name}')}"
        self.note(f"{where}: unknown; {have}{meant(name, known)}", self.place(key))

    def _try(self, key: Key, policy: str, parameters: tuple[tuple[str, Any], ...]) -> None:
        """Report what the policy itself finds wrong with its parameters together."""
        try:
            REGISTERS[key.how.register].make(policy, parameters)
        except Refused as refusal:
            self.complain(str(refusal), key)
