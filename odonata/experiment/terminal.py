"""The console on which tables and progress are drawn: names of jobs and files are shown there as
they are, and none of their characters is obeyed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pdes.shown import plain

if TYPE_CHECKING:
    from rich.console import Console


def plain_console(**how: Any) -> Console:
    """Returns a console of rich's. `how` is as for rich's own."""
    return _kind()(**how)  # type: ignore[no-any-return]


@cache
def _kind() -> Any:
    """Returns the class; rich is loaded when something is drawn, and not before."""
    from rich.console import Console
    from rich.segment import Segment

    class Plain(Console):
        def render(self, *what: Any, **how: Any) -> Any:
            """Whatever is drawn comes by here as text with a style, apart from what moves the
            cursor."""
            for segment in super().render(*what, **how):
                text, style, control = segment
                yield segment if control else Segment(plain(text), style)

    return Plain
