"""The report of a sweep: one page with a table and small multiples of each of its figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from odonata import __version__
from odonata.figures.report import Shown, environment, inlined, style_sheet
from odonata.figures.style import style
from odonata.results.register import figure as figure_of
from odonata.sweeps.drawing import MOST_PANELS, panels, picture, usual
from odonata.sweeps.table import Baseline, Swept
from odonata.sweeps.words import heads, notes, rows
from pdes.replacing import write_whole

PAGE = "report.html"


def write_page(
    found: Swept, figures: Sequence[str], baseline: Baseline | None, out: Path, file: str
) -> Path:
    """Write the page of a sweep into its directory. Returns where it is."""
    write_whole(out / PAGE, page(found, figures, baseline, out, file))
    return out / PAGE


def page(
    found: Swept, figures: Sequence[str], baseline: Baseline | None, out: Path, file: str
) -> str:
    """Returns the page, as HTML."""
    done = len(found.keys) - found.missing
    axes = [(name, f"{len(labels)}", ", ".join(labels)) for name, labels in found.axes.items()]
    axes += [(f"{name}, averaged over", f"{len(labels)}", ", ".join(labels))
             for name, labels in found.averaged.items()]  # fmt: skip
    seeds = ", ".join(map(str, found.seeds))
    about, *problems = notes(found, baseline)
    return environment().get_template("sweep.html").render(
        name=Path(file).stem,
        version=__version__,
        style=style_sheet(),
        place=str(out),
        points=f"{done:,} of {len(found.keys):,} points of {file}",
        problems=[line for line in problems if not line.startswith(("×", "*"))],
        axes=[*axes, ("seeds", f"{len(found.seeds)}", seeds)],
        sections=[(figure_of(name).title, _figures(found, name, baseline)) for name in figures],
        footer=" ".join([about, *(line for line in problems if line.startswith(("×", "*")))]),
    )  # fmt: skip


def _figures(found: Swept, figure: str, baseline: Baseline | None) -> list[Shown]:
    """Returns a figure as small multiples, and as a table."""
    drawing = usual(found, figure)
    words = figure_of(figure).title
    with style():
        svg = inlined(picture(found, drawing), drawing.name.replace(".", "-"), words)
    over = f"over {drawing.x}" if drawing.x else "of all seeds"
    coloured = f", in colours for {drawing.hue}" * bool(drawing.hue)
    left, whole = len(panels(found, drawing)), MOST_PANELS
    only = f" The first {whole} of {left} panels; --plot draws others." * (left > whole)
    hollow = any(found.misleads(figure, labels) for labels in found.combinations)
    only += " Hollow points are not means of a steady state." * hollow
    caption = f"{words} {over}{coloured}; bars are confidence intervals of the means.{only}"
    table = rows(found, [figure], baseline)
    return [
        Shown(over.capitalize(), caption, drawing.name, wide=True, svg=svg),
        Shown("In numbers", "", "", wide=True, heads=heads(found, [figure], baseline), rows=table),
    ]
