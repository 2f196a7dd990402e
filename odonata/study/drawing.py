"""Draws the figures of a study, those that there are outcomes for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def draw_all(
    makers: Mapping[str, Callable[[Any, Any], Any]],
    asked: Any,
    outcomes: Any,
    directory: Path,
    pdf: bool,
) -> list[Path]:
    """Draw what each maker makes of what was asked for and of the outcomes, under its name; one
    that returns None has nothing to draw. Returns where the figures are, in a directory that is
    made if it is needed."""
    from odonata.figures.network import save, style

    drawn = []
    with style():
        for name, make in makers.items():
            figure = make(asked, outcomes)
            if figure is None:
                continue
            directory.mkdir(parents=True, exist_ok=True)
            for kind in ("png", "pdf") if pdf else ("png",):
                drawn.append(directory / f"{name}.{kind}")
                save(figure, drawn[-1], kind)
    return drawn
