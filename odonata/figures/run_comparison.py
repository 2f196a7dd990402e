"""Packet runs over each other in one picture: load, latency, links and, where jobs ran, these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from odonata.figures import network as figures
from odonata.figures.style import DASHES, INK, RUN_COLOURS, dress, save, style
from odonata.results.run import Run
from odonata.results.statistics import interval
from pdes.errors import Refused

MOST_DRAWN = len(RUN_COLOURS)
"""How many runs, or groups of runs, can be distinguished in one picture."""
MOST_JOBS = 24
"""How many names of jobs have room in one panel."""


def draw_runs(groups: Mapping[str, Sequence[Run]], path: Path) -> None:
    """Draw load, latency and global links over time, and the latencies of all packets; where all
    have jobs, also the run time of each job. Each group of runs has a colour."""
    if len(groups) > MOST_DRAWN:
        raise Refused(f"--plot: {len(groups)} runs: at most {MOST_DRAWN} can be distinguished")
    every = [run for runs in groups.values() for run in runs]
    jobs = all(run.experiment.jobs for run in every)
    with style():
        canvas = Figure(figsize=(11.5, 10.6 if jobs else 7.4), facecolor="white",
                        layout="constrained")  # fmt: skip
        FigureCanvasAgg(canvas)
        shape: Any = [["load", "latency"], ["links", "tail"], *[["jobs", "jobs"]] * jobs]
        panels = canvas.subplot_mosaic(shape)
        four = [panels[name] for name in ("load", "latency", "links", "tail")]
        keys = []
        for (label, runs), colour in zip(groups.items(), RUN_COLOURS, strict=False):
            state = "" if all(run.complete for run in runs) else " (incomplete)"
            keys.append(Line2D([], [], color=colour, lw=2, label=label + state))
            for run in runs:
                figures.overlay(run, four, colour)
        figures.finish_overlay(every, four)
        if jobs:
            job_times(groups, panels["jobs"])
        taken, made = ("received", "sent") if jobs else ("accepted", "offered")
        keys += [Line2D([], [], color=INK, lw=1.4, label=f"{taken}, mean"),
                 Line2D([], [], color=INK, lw=0.9, ls=DASHES,
                        label=f"{made}, 99 %")]  # fmt: skip
        canvas.legend(keys, [str(handle.get_label()) for handle in keys],
                      loc="outside upper center", ncols=min(6, len(keys)))  # fmt: skip
        save(canvas, path)


def job_times(groups: Mapping[str, Sequence[Run]], axes: Axes) -> None:
    """Draw the run time of each job: the mean of the runs of a group, with its 95 % confidence
    interval where there are several."""
    names = [*dict.fromkeys(it.name for runs in groups.values() for run in runs
                            for it in run.job_records)][:MOST_JOBS]  # fmt: skip
    for number, (runs, colour) in enumerate(zip(groups.values(), RUN_COLOURS,
                                                strict=False)):  # fmt: skip
        shift = (number - (len(groups) - 1) / 2) * 0.7 / max(2, len(groups))
        for place, name in enumerate(names):
            times = [it.run_time_ps for run in runs for it in run.job_records if it.name == name]
            made = interval(times)
            if made.of:
                half = 0.0 if np.isnan(made.half) else made.half / 1e6
                axes.errorbar([place + shift], [made.mean / 1e6], [half], fmt="o", ms=5, capsize=3,
                              color=colour)  # fmt: skip
    crowded = len(names) > 8
    axes.set_xticks(range(len(names)), names, rotation=30 if crowded else 0,
                    ha="right" if crowded else "center")  # fmt: skip
    axes.set_ylim(0)
    axes.set_ylabel("run time of jobs (µs)")
    dress(axes)
