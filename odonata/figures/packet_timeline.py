"""The timeline of one packet: where it was, for how long, and what it waited for there."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from odonata.figures.style import (
    BLUE,
    FAINT,
    GREEN,
    ORANGE,
    PURPLE,
    canvas,
    check_name,
    dress,
    save,
    style,
)
from odonata.results.packet_trace import DRAINING, SENDING, WAITS, PacketPath

COLOURS = {
    SENDING: BLUE,
    **dict(zip(WAITS.values(), ("#c9cfd4", "#b8a000", "#c2529b", "#9aa5ad", ORANGE, PURPLE),
               strict=True)),
    DRAINING: GREEN,
}  # fmt: skip


def size(path: PacketPath) -> tuple[float, float]:
    """Returns the size of the figure in inches."""
    return 10.0, 1.9 + 0.42 * len(path.places)


def packet_timeline(path: PacketPath, axes: Axes) -> None:
    """Draw a row for each place on the path: bars for what the packet did there, and a line from
    when its first byte left one place to when the next handled it."""
    begin = path.generated_ps
    stays = path.stays()
    for stay in stays:
        took, since = (stay.end_ps - stay.begin_ps) / 1e3, (stay.begin_ps - begin) / 1e3
        axes.barh(stay.place, took, left=since, height=0.56, color=COLOURS[stay.what], zorder=3)
    for place, hop in enumerate(path.hops):
        axes.plot([(hop.start_ps - begin) / 1e3, (hop.next_ps - begin) / 1e3], [place, place + 1],
                  color=FAINT, lw=1.2, zorder=2)  # fmt: skip
    over = path.delivered_ps if path.delivered_ps is not None else path.hops[-1].next_ps
    axes.plot((over - begin) / 1e3, len(path.hops), marker="D" if path.delivered_ps else "x",
              color=GREEN, ms=6, zorder=4)  # fmt: skip
    by_vc = [f"{name}  (VC {hop.vc})" for name, hop in zip(path.places, path.hops, strict=False)]
    axes.set_yticks(range(len(path.places)), [*by_vc, path.places[-1]])
    axes.set_ylim(len(path.places) - 0.5, -0.5)
    axes.set_xlim(0, max(1e-3, 1.03 * (over - begin) / 1e3))
    axes.set_xlabel("time since its message was generated (ns)")
    dress(axes)
    shown = [what for what in COLOURS if any(stay.what == what for stay in stays)]
    axes.legend(handles=[Patch(color=COLOURS[what], label=_label(what)) for what in shown],
                loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=min(4, len(shown)),
                borderaxespad=0.2)  # fmt: skip


def _label(what: str) -> str:
    return f"waits {what}" if what in (*WAITS.values(), DRAINING) else what


def draw(path: PacketPath, target: Path) -> None:
    """Draw the timeline into a file; refused where its name does not end in .png, .svg or .pdf."""
    check_name(target)
    with style():
        figure = canvas(size(path))
        figure.suptitle(path.words()[0], x=0.01, ha="left", fontsize=10.5, fontweight="bold")
        packet_timeline(path, figure.subplots())
        save(figure, target)
