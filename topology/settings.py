"""What a field of a dataclass says of itself to users: its unit, what it is about, what it accepts.

A key of an experiment file, its option on the command line and its line in `odonata schema` are
made from the field that it sets (`odonata.experiment.keys`), so that each is declared once. This
stands here because the machine has fields that users set, and the topology imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields
from typing import Any

HOME = "setting"
"""Where in a field's metadata its setting is."""


@dataclass(frozen=True)
class Setting:
    """How a user sets a field. `kind` is one of `odonata.experiment.keys.KINDS`, or "links" for a
    field that is itself made of settings."""

    kind: str
    about: str
    name: str = ""
    """The name of its key; by default the field's, without a unit at its end."""
    section: str = ""
    """The section its key is in, where that is not the one of its class."""
    words: tuple[str, ...] = ()
    """The words that are accepted; in place of a list of numbers, if the kind is that."""
    register: str = ""
    """The kind of policies whose names are accepted."""
    none: str = ""
    """The word that stands for None."""
    otherwise: str = ""
    """What it is if not given, where that depends on something else; in words."""
    least: float | None = None
    above: float | None = None
    most: float | None = None
    """The limits of a number, which the class enforces; here for editors."""
    option: str = ""
    """The name of its option on the command line, where that differs from the key's."""


def required(kind: str, about: str, **more: Any) -> dict[str, Setting]:
    """The metadata of a field without a default: `nodes: int = field(metadata=required(...))`."""
    return {HOME: Setting(kind, about, **more)}


def setting(default: Any, kind: str, about: str, **more: Any) -> Any:
    """A field that has a default and that a user can set."""
    return field(default=default, metadata={HOME: Setting(kind, about, **more)})


def settings_of(owner: type) -> Iterator[tuple[Field[Any], Setting]]:
    """The fields of a dataclass that a user can set, in their order."""
    for one in fields(owner):
        if HOME in one.metadata:
            yield one, one.metadata[HOME]
