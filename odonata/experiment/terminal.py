"""The console on which tables and progress are drawn: names of jobs and files are shown there as
they are, and none of their characters is obeyed; words and numbers of tables are never cut."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from pdes.shown import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Column, Table

NUMBER = re.compile(r"[-+±~<>]?\d")
"""What a number begins with."""


def plain_console(**how: Any) -> Console:
    """Returns a console of rich's. `how` is as for rich's own."""
    return _kind()(**how)  # type: ignore[no-any-return]


@cache
def _kind() -> Any:
    """Returns the class; rich is loaded when something is drawn, and not before."""
    from rich.console import Console, Group
    from rich.segment import Segment
    from rich.table import Table

    class Plain(Console):
        def render(self, *what: Any, **how: Any) -> Any:
            """Whatever is drawn comes by here as text with a style, apart from what moves the
            cursor."""
            for segment in super().render(*what, **how):
                text, style, control = segment
                yield segment if control else Segment(plain(text), style)

        def print(self, *what: Any, **how: Any) -> None:
            """Tables are as wide as their words and numbers need, however narrow the terminal."""
            each = [part for one in what for part in (one.renderables if isinstance(one, Group)
                                                      else [one])]  # fmt: skip
            before, tables = self.width, [part for part in each if isinstance(part, Table)]
            self.width = max([before, *(width_of(table, self) for table in tables)])
            super().print(*what, **how)
            self.width = before

    return Plain


def width_of(table: Table, console: Console) -> int:
    """Returns how wide a table is drawn: on the console as far as that is possible without cutting
    a word or a number of it in two. Gives its columns their widths, the widest first made narrower,
    where rich would cut."""
    from rich.measure import Measurement

    unbound = console.options.update(max_width=100_000)

    def lengths(column: Column) -> tuple[int, int]:
        """Returns how wide it must be and how wide it would be."""
        if column.width is not None:
            return column.width, column.width
        least, most = column.min_width or 0, column.min_width or 0
        for cell in (column.header, *column.cells):
            needs, wants = Measurement.get(console, unbound, cell)
            whole = column.no_wrap or (column.justify == "right" and NUMBER.match(str(cell)))
            needs = wants if whole else min(needs, column.max_width or needs)
            least, most = max(least, needs), max(most, wants)
        if column.max_width is not None:  # words that are longer go on in the next line
            column.max_width = most = max(least, min(most, column.max_width))
            column.overflow = "fold"
        return least, most

    if not table.columns:
        return 0
    least, widths = map(list, zip(*map(lengths, table.columns), strict=True))
    around = Measurement.get(console, unbound, table).maximum - sum(widths)
    room = max(console.width, table.min_width or 0) - around
    if sum(widths) > room:
        while sum(widths) > max(room, sum(least)):
            _, widest = max((width, at) for at, width in enumerate(widths) if width > least[at])
            widths[widest] -= 1
        for column, width in zip(table.columns, widths, strict=True):
            column.width = width
    return int(sum(widths) + around)
