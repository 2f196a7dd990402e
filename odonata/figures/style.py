"""How figures look and how they are saved: colours, dashes, fonts, axes, panels, names of files.

Draw within `style`. Every figure of a run, a comparison, a sweep and a study looks as this says.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pdes.errors import Refused

Floats = npt.NDArray[np.float64]

FORMATS = ("png", "svg", "pdf")
INK, GREY, FAINT, GRID = "#22303c", "#6b7884", "#b9c3cc", "#e6eaee"
BLUE, ORANGE, GREEN, PURPLE = "#0067a5", "#d9730d", "#2a8c6e", "#8e5aa8"
"""Colours and dashes that the colour-blind can distinguish and that, by their lightness, stay
distinct in print without colour."""
RUN_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, "#5c6b73", "#b8a000", "#c2529b", "#4fb0d9")
LIGHT_TO_DARK = LinearSegmentedColormap.from_list(
    "odonata", ["#dcebf5", "#9cc5e0", "#4a90bf", "#12619a", "#0b3a66", "#081d38"]
)
NOTHING, NO_CABLE = "#ffffff", "#d9dde1"
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "text.parse_math": False,  # a run may be called $x
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.titlesize": 9.5,
    "axes.unicode_minus": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.hashsalt": "odonata",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,  # publishers refuse type 3
}
GROUP_TICKS = partial(MaxNLocator, 9, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10])
DASHES = (0, (4, 2))
DOT: dict[str, Any] = {"color": ORANGE, "mec": "white", "mew": 0.8, "zorder": 4, "clip_on": False}
MOST_POINTS = 1000
"""The largest number of points of a curve of a distribution."""


@contextmanager
def style() -> Iterator[None]:
    """Apply our style, whatever a user's matplotlibrc says; without warnings about letters of a
    run's name that the font lacks."""
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        warnings.filterwarnings("ignore", "Glyph")
        yield


# -- axes


def dress(axes: Axes) -> None:
    axes.grid(color=GRID, lw=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def dress_small(axes: Axes, upright: bool = True) -> None:
    """Give a panel of a figure with several of them its grid (without `upright` lines, where x is
    no number) and small labels, and take away the lines above and on the right."""
    dress(axes)
    axes.grid(color=GRID, lw=0.7)
    if not upright:
        axes.grid(axis="x", visible=False)
    axes.tick_params(labelsize=8, length=2.5, color=FAINT)


def say(axes: Axes, words: str) -> None:
    """Write a text in place of a curve that would lie on an axis."""
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes, color=GREY)


def remark(axes: Axes, words: str, loc: Any = "right") -> None:
    axes.set_title(words, loc=loc, fontsize=8.5, color=GREY)


def top(*values: Any, least: float = 0.0) -> float:
    """Returns the end of an axis that begins at zero: a little above the largest finite value."""
    every = np.concatenate([np.asarray(some, float).ravel() for some in values] or [np.zeros(1)])
    every = every[np.isfinite(every)]
    most = float(every.max()) if len(every) else 0.0
    return max(most * 1.06, least) or 1.0


def thousands(value: float, _: Any = None) -> str:
    return f"{value:,.10g}"


def cumulated(values: Floats) -> tuple[Floats, Floats]:
    """Returns the cumulative distribution, as corners of its steps, from 0 to 1. Of many values
    only some are kept, the smallest and the largest among them."""
    x, n = np.sort(values), len(values)
    kept = np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).astype(int))
    return np.concatenate((x[:1], x[kept])), np.concatenate(([0.0], (kept + 1) / n))


# -- figures and files


def panels_of(
    wide: float, high: float, rows: int = 1, columns: int = 1,
    height_ratios: tuple[float, ...] | None = None,
    width_ratios: tuple[float, ...] | None = None, **margins: float,
) -> tuple[Figure, Any]:  # fmt: skip
    """Returns a figure of this size in inches, and its panels as an array of rows and columns."""
    figure = Figure(figsize=(wide, high), facecolor="white")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False, height_ratios=height_ratios,
                             width_ratios=width_ratios)  # fmt: skip
    figure.subplots_adjust(**margins)
    return figure, panels


def check_name(path: Path) -> None:
    """Refuse a file that cannot be drawn to."""
    if path.suffix.lstrip(".").lower() not in FORMATS:
        raise Refused(f"--plot {path}: the name must end in .{', .'.join(FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise Refused(f"--plot {path}: there is no directory {path.parent}")


def save(figure: Figure, target: Any, kind: str = "") -> None:
    """Save a figure to a path, as what its name ends in, or as this kind to a path or a file; the
    same figure always gives the same bytes."""
    kind = kind or target.suffix.lstrip(".").lower()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    figure.savefig(target, format=kind, dpi=200, metadata=undated[kind])


def draw_all(
    makers: Mapping[str, Callable[[Any], Any]], measured: Any, directory: Path, pdf: bool
) -> list[Path]:
    """Draw what each maker makes of what was measured, under its name; one that returns None has
    nothing to draw. Returns where the figures are, in a directory that is made if it is needed."""
    drawn = []
    with style():
        for name, make in makers.items():
            figure = make(measured)
            if figure is None:
                continue
            directory.mkdir(parents=True, exist_ok=True)
            for kind in ("png", "pdf") if pdf else ("png",):
                drawn.append(directory / f"{name}.{kind}")
                save(figure, drawn[-1], kind)
    return drawn
