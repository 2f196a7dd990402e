"""`odonata watch`: a run, a sweep or a study that goes on, or is over, followed in the terminal.

It reads what is on disk and asks nothing of whoever writes it, so it can be started and stopped at
will, on any machine that sees the files. Nothing heavy is imported before there is something to
show.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from odonata.commands.group import SETTINGS
from odonata.experiment.progress import bar
from odonata.experiment.terminal import plain_console
from odonata.experiment.units import show_count, show_duration, show_time

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console, RenderableType
    from rich.text import Text

    from odonata.results.run import Run

SAMPLES = 32
"""How many of the latest samples are shown."""
BARS = "▁▂▃▄▅▆▇█"
QUIET = 5
"""Times the longest wait between two flushes: after that a run may well be dead."""


@click.command("watch", context_settings=SETTINGS)
@click.argument("path", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--every", default=1.0, show_default=True, help="Seconds between two looks.")
@click.option("--once", is_flag=True, help="One look; so too where this is not a terminal.")
def command(path: Path, every: float, once: bool) -> None:
    """Follow the run, the sweep or the study in DIR while it goes on."""
    watch(path, every, once, plain_console(markup=False))


class Frame(NamedTuple):
    """Returns what is shown, and whether it will ever change."""

    shown: RenderableType
    over: bool


def watch(path: Path, every: float, once: bool, console: Console) -> None:
    """Follow a run, a sweep or a study until it is over, or until the user stops it; from its
    beginning, if it is about to be started."""
    from rich.live import Live

    from pdes.join import claimed
    from pdes.stream import NAME

    while not once and claimed(path) and not (path / NAME.format(0)).exists():
        time.sleep(every)
    if once or not console.is_terminal:
        console.print(frame(path).shown)
        return
    with Live(console=console, auto_refresh=False, transient=False) as live:
        while True:
            now = frame(path)
            live.update(now.shown, refresh=True)
            if now.over:
                return
            time.sleep(every)


def frame(path: Path) -> Frame:
    """Returns what there is to be seen in a directory now."""
    from odonata.study.store import every_path_in

    if every_path_in(path):
        from odonata.commands.watch_study import of_study

        return Frame(*of_study(path))
    return of_run(path)


def of_run(path: Path) -> Frame:
    from rich.console import Group
    from rich.text import Text

    from odonata.results.run import open as open_run
    from pdes.join import status_of
    from pdes.stream import COMPLETE, DIED, FAILED, STOPPED

    status, age = status_of(path)
    with open_run(path) as run:
        flush_s = float(run.attributes["flush_s"])
        if status == COMPLETE:
            state = Text("complete", "green")
        elif status == STOPPED:
            state = Text(f"stopped at a checkpoint; odonata run --resume -o {path}", "yellow")
        elif status in (FAILED, DIED):
            how = "failed" if status == FAILED else "died"
            state = Text(f"{how}; odonata run --resume -o {path}", "red")
        elif age > QUIET * max(flush_s, 1.0):
            state = Text(f"nothing written for {age:.0f} s: in a long interval, or dead", "red")
        else:
            state = Text("running", "cyan")
        over = status in (COMPLETE, STOPPED, FAILED, DIED)
        packets = run.has("network")
        heading = _heading(run, state, over) if packets else _of_jobs(run, state)
        rows: list[RenderableType] = [heading]
        if run.missing:
            rows.append(Text(run.missing, "yellow"))
        if len(run.time):
            rows.append(_series(run) if packets else _queue(run))
        return Frame(Group(*rows), over)


def _heading(run: Run, state: Text, over: bool) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from odonata.results.job_table import tally

    end, reached = run.experiment.run.end, run.reached_ps
    counts = tally(run.job_records, reached) if run.has("jobs") else None
    reached = run.simulated_ps
    done = reached / end if end else 1.0
    if end is None:
        done = counts.done / sum(counts) if counts else float(run.complete)
    wall = run.engine.wall_s.data.sum(axis=0).max() if len(run.time) else 0.0
    events = int(run.engine.events.sum()) if len(run.time) else 0
    pace = f"  {show_count(events / wall)} events/s" if wall else ""
    left = ""
    if not over and reached and wall and end is not None:
        left = f"  {wall / reached * (end - reached):.0f} s left"
    name = Text.assemble((run.experiment.name, "bold"), "  ", state)
    of = "" if end is None else f" of {show_time(end)}"
    line = Text(f"{bar(done)}  {show_time(reached)}{of}{pace}{left}")
    return Group(name, line, Text(f"jobs: {counts}")) if counts else Group(name, line)


def _of_jobs(run: Run, state: Text) -> RenderableType:
    """Returns the heading of a run of the job fidelity: how many of its jobs are done."""
    import numpy as np
    from rich.console import Group
    from rich.text import Text

    from odonata.jobs.schedule import STATES

    counts = np.bincount(run.schedule.state, minlength=len(STATES))
    done = int(run.schedule.done.sum()) / max(1, len(run.schedule))
    name = Text.assemble((run.experiment.name, "bold"), "  ", state)
    listed = ", ".join(f"{count:,} {word}" for word, count in zip(STATES, counts, strict=True)
                       if count)  # fmt: skip
    line = Text(f"{bar(done)}  {show_duration(run.simulated_us / 1e6)} simulated")
    return Group(name, line, Text(f"jobs: {listed}"))


def _queue(run: Run) -> RenderableType:
    """Returns the queue and the busy nodes of the latest samples."""
    import numpy as np
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2))
    for _ in range(3):
        shown.add_column(no_wrap=True)
    last = run.system.isel(time=slice(-SAMPLES, None))
    for name, word, most in (("busy_nodes", "nodes in use", run.n_nodes), ("queue", "queue", 0),
                             ("running", "running", 0)):  # fmt: skip
        values = last[name].data[:, 0].astype(np.float64)
        words = f"{values[-1]:,.0f}" + (f" of {most:,}" if most else " jobs")
        shown.add_row(word, sparkline(values, float(most)), words)
    return shown


def _series(run: Run) -> RenderableType:
    import numpy as np
    from rich.table import Table

    from odonata.results.derived import system

    series = system(run, SAMPLES)
    shown = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2))
    for _ in range(3):
        shown.add_column(no_wrap=True)
    lines: list[tuple[str, str, Callable[[float], str]]] = [
             ("accepted", "accepted", lambda v: f"{v:.3f} of a node's link"),
             ("latency", "latency_ns", lambda v: f"{v:,.0f} ns, mean"),
             ("local links", "local_busy", lambda v: f"{v:.1%} in use"),
             ("global links", "global_busy", lambda v: f"{v:.1%} in use"),
             ("stalled", "local_stalled", lambda v: f"{v:.1%} of local links' time"),
             ]  # fmt: skip
    for name, key, words in lines:
        if key in series:
            values = series[key].data
            known = values[np.isfinite(values)]
            shown.add_row(name, sparkline(values), words(known[-1]) if len(known) else "")
    return shown


def sparkline(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], most: float = 0.0) -> str:
    """Returns a line of bars from zero to the largest, or to `most`; a gap where there is no
    value."""
    import numpy as np

    top = max(most, np.nanmax(values)) if np.isfinite(values).any() else 0.0
    marks = [" " if not np.isfinite(v) else
             BARS[min(len(BARS) - 1, int(v / top * len(BARS)))] if top else BARS[0]
             for v in values]  # fmt: skip
    return "".join(marks)
