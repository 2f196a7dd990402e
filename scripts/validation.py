"""What the claims of validate.py are made of: a row, a path through an empty network, a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from odonata import (
    Dragonfly,
    Network,
    Performance,
    performance,
    run,
)

US = 1_000_000
COLOURS = ("#30638e", "#d1495b", "#e0a030", "#3a9d5d", "#7b4fa3")


@dataclass(frozen=True)
class Row:
    what: str
    ours: float
    reference: float
    tolerance: str
    holds: bool | None
    """Whether the row holds; None: it is only shown, because the two models are known to differ
    there."""
    unit: str = ""


@dataclass(frozen=True)
class How:
    quick: bool
    plots: Path | None


def simulate(network: Network, after: int = 0) -> Performance:
    """Run through warm-up and measurement and so many picoseconds more, in which packets generated
    in the measurement may still be delivered."""
    traffic = network.traffic[0]
    assert traffic.measure_ps is not None
    end = traffic.warmup_ps + traffic.measure_ps + after
    return performance(network, run(network, end, show_compiling=False))


def within(what: str, ours: float, reference: float, part: float, unit: str = "") -> Row:
    holds = abs(ours - reference) <= part * reference
    return Row(what, ours, reference, f"± {part:.0%}", holds, unit)


@dataclass(frozen=True)
class Way:
    """The links between routers on a packet's path, and the name of such a path."""

    local: int
    across: int
    name: str = ""


def minimal_paths(machine: Dragonfly) -> tuple[Any, Any]:
    """Returns [routers, routers]: local and global links of the minimal path, where there is one
    cable between two groups."""
    assert machine.copies <= 1
    router = np.arange(machine.n_routers)
    group, place = router // machine.routers, router % machine.routers
    here, there = np.ix_(group, group)
    apart = here != there
    gate = (machine.gates()[:, :, 0] // machine.global_links)[np.ix_(group, group)]
    away = (gate != place[:, None]) & apart
    landed = (place[None, :] != gate.T) & apart
    near = ~apart & (router[:, None] != router[None, :])
    return away.astype(int) + landed + near, apart.astype(int)


def empty_ps(network: Network, way: Way) -> int:
    """Returns the latency of a packet alone: the links' latencies, the routers' pipelines, and the
    slowest link's serialisation; every link's where routers store and forward."""
    m = network.machine
    links = [m.terminal, *[m.local] * way.local, *[m.global_] * way.across, m.terminal]
    size = min(network.packet_bytes, network.traffic[0].message_bytes)
    takes = [round(size * 1e12 / link.bandwidth) for link in links]
    wires = sum(link.latency_ps for link in links) + (len(links) - 1) * network.delay_ps
    return wires + (sum(takes) if network.forwarding == "store" else max(takes))


def picture(path: Path, title: str, draw: Callable[[Any], None], width: float = 9) -> None:
    figure = Figure(figsize=(width, 5.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    draw(axes)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.grid(color="#e6eaee", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
