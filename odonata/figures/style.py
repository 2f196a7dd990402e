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
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)

from pdes.errors import Refused

Floats = npt.NDArray[np.float64]

FORMATS = ("png", "svg", "pdf")
INK, GREY, FAINT, GRID = "#22303c", "#6b7884", "#b9c3cc", "#e6eaee"
BLUE, ORANGE, GREEN, PURPLE = "#0067a5", "#d9730d", "#14a06c", "#9f6a8e"
RUN_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, INK, "#d8cd00", "#fba8b4", "#72d2ee")
"""Colours that stay apart whichever cones an eye lacks. In print without colour, curves are told by
their marks and dashes."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
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
COLUMN, TEXT = 3.4, 7.1
"""The widths of a column, and of both, of a paper, in inches."""
PRINT: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7.5,
    "legend.title_fontsize": 7.5,
}
"""Fonts of a figure that is printed as large as it is."""
MOST_POINTS = 1000
"""The largest number of points of a curve of a distribution."""


@contextmanager
def style(printed: bool = False) -> Iterator[None]:
    """Apply our style, whatever a user's matplotlibrc says; without warnings about letters of a
    run's name that the font lacks. A figure that is `printed` has the fonts of a paper."""
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE | (PRINT if printed else {}))
        warnings.filterwarnings("ignore", "Glyph")
        yield


def curves(count: int) -> list[dict[str, Any]]:
    """Returns how so many curves look. Where several coincide all are seen: each is thinner than
    the one beneath it, and has smaller marks and gaps of its own."""
    last = max(1, count - 1)
    return [
        {"color": colour, "marker": mark, "lw": 2.2 - 1.1 * at / last, "ms": 6.0 - 2.0 * at / last,
         "ls": (0, (4, 1.5 + 0.5 * at)) if at else "-", "zorder": 3 + at}
        for at, (colour, mark) in enumerate(zip(RUN_COLOURS, MARKERS, strict=True)) if at < count
    ]  # fmt: skip


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
    axes.tick_params(labelsize=min(8, mpl.rcParams["font.size"] - 0.5), length=2.5, color=FAINT)


def say(axes: Axes, words: str, alone: bool = False) -> None:
    """Write a text in place of a curve that would lie on an axis; `alone`, without axes."""
    if alone:
        axes.set_axis_off()
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes, color=GREY)


def title(axes: Axes, words: str) -> None:
    axes.set_title(words, loc="left", fontweight="bold")


def remark(axes: Axes, words: str, loc: Any = "right") -> None:
    axes.set_title(words, loc=loc, fontsize=8.5, color=GREY)


def legend_above(axes: Axes, side: str = "right", **more: Any) -> None:
    """Add a legend above a panel, in line with its title."""
    where: dict[str, Any] = {"loc": f"lower {side}", "bbox_to_anchor": (side == "right", 1.0)}
    usual = {"borderaxespad": 0.2, "handlelength": 1.6, "columnspacing": 1.4}
    axes.legend(**where | usual | more)


def brief(name: str, most: int = 18) -> str:
    """Returns a name of at most so many letters, all of which can be printed."""
    text = "".join(letter if letter.isprintable() else " " for letter in name)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def keyed(name: str) -> str:
    """Returns a name for a legend, which leaves out those that begin with an underscore."""
    return f" {name}" if name.startswith("_") else name


def top(*values: Any, least: float = 0.0) -> float:
    """Returns the end of an axis that begins at zero: a little above the largest finite value."""
    every = np.concatenate([np.asarray(some, float).ravel() for some in values] or [np.zeros(1)])
    every = every[np.isfinite(every)]
    most = float(every.max()) if len(every) else 0.0
    return max(most * 1.06, least) or 1.0


def thousands(value: float, _: Any = None) -> str:
    return f"{value:,.10g}"


def from_zero(axes: Axes) -> None:
    """Let the y axis begin at 0 and end above all that is drawn."""
    axes.set_ylim(0, top([max(axes.dataLim.ymax, 0.0)]))


def log_ticks(axes: Axes, which: str = "x") -> None:
    """Set round numbers that suit the range: 1, 2, 5, or powers of ten where there are many."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    decades = np.arange(np.floor(np.log10(low)) - 1, np.ceil(np.log10(high)) + 1)
    wide = np.log10(high / low)
    steps = (1, 1.5, 2, 3, 4, 5, 7) if wide < 0.8 else (1, 2, 5) if wide < 2.6 else (1,)
    ticks = [step * 10**decade for decade in decades for step in steps]
    shown = [tick for tick in ticks if low <= tick <= high]
    if len(shown) < 2:
        shown = [tick for tick in MaxNLocator(4).tick_values(low, high) if low <= tick <= high]
    axis.set_ticks(shown)
    axis.set_major_formatter(FuncFormatter(thousands))
    axis.set_minor_locator(LogLocator(subs=tuple(range(2, 10))))
    axis.set_minor_formatter(NullFormatter())


def duration_axis(
    axes: Axes, which: str, low: float, high: float, ticks: Mapping[int, str]
) -> None:
    """Make an axis one of durations, in seconds, logarithmic, with those of the ticks that fit."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    getattr(axes, f"set_{which}scale")("log")
    getattr(axes, f"set_{which}lim")(low, high)
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: ticks.get(round(value), "")))
    axis.set_minor_locator(NullLocator())


def cumulated(values: Floats) -> tuple[Floats, Floats]:
    """Returns the cumulative distribution, as corners of its steps, from 0 to 1. Of many values
    only some are kept, the smallest and the largest among them."""
    x, n = np.sort(values), len(values)
    kept = np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).astype(int))
    return np.concatenate((x[:1], x[kept])), np.concatenate(([0.0], (kept + 1) / n))


# -- figures and files


def canvas(size: tuple[float, float], layout: Any = "constrained") -> Figure:
    """Returns an empty figure of this size in inches, which no window shows."""
    figure = Figure(figsize=size, facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    return figure


def panels_of(
    wide: float, high: float, rows: int = 1, columns: int = 1,
    height_ratios: tuple[float, ...] | None = None,
    width_ratios: tuple[float, ...] | None = None, **margins: float,
) -> tuple[Figure, Any]:  # fmt: skip
    """Returns a figure of this size in inches, and its panels as an array of rows and columns."""
    figure = canvas((wide, high), None)
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
