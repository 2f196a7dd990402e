"""Groups of commands that are imported only when they are called."""

from __future__ import annotations

import importlib
import os
from typing import Any

import click

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""The settings of every command."""


class LazyGroup(click.Group):
    """Commands by name, each with its line of help. A command is imported when it is called: it is
    `command` in `odonata.commands.NAME`, or in `home`.NAME."""

    def __init__(
        self, *args: Any, lines: dict[str, str], home: str = "odonata.commands", **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self.lines, self.home = lines, home

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.lines]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.lines:
            return None
        module = importlib.import_module(f"{self.home}.{name.replace('-', '_')}")
        return module.command  # type: ignore[no-any-return]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # Which must be known before the first kernel is imported.
        if "--debug" in args or args[:1] == ["debug"]:
            os.environ["ODONATA_JIT"] = "0"
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*self.lines.items()])
