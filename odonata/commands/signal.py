"""`odonata signal`: what a regulation signal is like, beside the one that is made by default and a
day of a real one."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import Quantity, json_option, plot_option
from odonata.commands.output import print_json, print_table
from odonata.experiment.units import show_duration, time_ps
from pdes import launcher
from pdes.errors import Refused
from pdes.replacing import check_place

if TYPE_CHECKING:
    from odonata.jobs.series import Steps
    from odonata.jobs.signal import Statistics

SUFFIXES = (".csv", ".csv.gz")
US = 10**6
"""Picoseconds."""
HOUR_US = 3600 * 10**6
SAMPLES = 20
"""With how many seeds the default signal is made, to see how it varies."""
LONGEST_H, SHORTEST_H = 24.0, 0.25
"""The lengths of signals of the default that one of any length is compared with."""
TERMS = f"""default: the synthetic signal of an experiment, as long as this one (a day
at most): the median of {SAMPLES} seeds, and from the least to the most of them;
* where this one is well beyond these. RegD: a day of PJM's, 2 s apart"""
MARGIN = 0.25
"""Beyond the least and the most of the default a figure is marked, by this part of their distance:
that of some more seeds is less."""


class Made(NamedTuple):
    """A signal that is shown."""

    name: str
    steps: Steps
    until_us: int


def parse_memory(text: str) -> tuple[int, int]:
    """Read '90 s, 20 s': two time constants, in ps."""
    words = [word.strip() for word in text.split(",")]
    if len(words) != 2:
        raise ValueError(f"{text!r}: two times are needed, as '90 s, 20 s'; 0 s is none")
    return time_ps(words[0]), time_ps(words[1])


@click.command("signal", context_settings=SETTINGS)
@click.argument("file", required=False, metavar="[FILE.csv]", type=click.Path(path_type=Path))
@click.option("--synthetic", is_flag=True, help="A signal that is made, in place of a file.")
@click.option("--deviation", type=float, help="The standard deviation of one that is made.  "
              "[default: 0.4]")  # fmt: skip
@click.option("--memory", type=Quantity("TIMES", parse_memory), help="The time constants of its "
              "two filters.  [default: 90 s, 20 s]")  # fmt: skip
@click.option("--interval", type=Quantity("TIME", time_ps), help="How often it changes.  [default: "
              "4 s]")  # fmt: skip
@click.option("--hours", type=float, help="How long it is.  [default: 24]")
@click.option("--seed", type=click.IntRange(0), help="Its seed.  [default: 1]")
@click.option("--repair", is_flag=True, help="Repair the file, aloud: have the last value hold "
              "where one is missing, the last count where a time comes again, and clip what is "
              "beyond -1 and 1.")  # fmt: skip
@click.option("--gaps", type=click.Choice(["refuse", "hold"]), default="refuse", show_default=True,
              help="What becomes of gaps in the times of the file.")  # fmt: skip
@click.option("--csv", type=click.Path(path_type=Path), metavar="OUT", help="Write the signal: "
              "what --repair made of a file, or one that was made.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the file of --csv, if there is one.")
@plot_option
@json_option
def command(**asked: Any) -> None:
    """Show what a regulation signal is like: a FILE.csv of one's own, or one that is made.

    The file has a column of times (time_s, or time for dates) and one called signal, from -1 to 1.
    """
    if launcher.rank() == 0:
        report(**asked)


def report(
    file: Path | None,
    *,
    synthetic: bool = False,
    deviation: float | None = None,
    memory: tuple[int, int] | None = None,
    interval: int | None = None,
    hours: float | None = None,
    seed: int | None = None,
    repair: bool = False,
    gaps: str = "refuse",
    csv: Path | None = None,
    overwrite: bool = False,
    plot: Path | None = None,
    as_json: bool = False,
) -> None:
    """Read or make the signal, and print, write and draw what it is like."""
    from odonata.jobs.signal import REGD, statistics

    made = {"--deviation": deviation, "--memory": memory, "--interval": interval,
            "--hours": hours, "--seed": seed}  # fmt: skip
    check(file, synthetic, [name for name, value in made.items() if value is not None], repair)
    check_out(csv, overwrite)
    if plot is not None:
        from odonata.figures.style import check_name

        check_name(plot)
    if file is not None:
        shown = read(file, repair, gaps)
    else:
        shown = make(deviation, memory, interval, 24.0 if hours is None else hours,
                     1 if seed is None else seed)  # fmt: skip
    steps = shown.steps
    found = statistics(steps.times, steps.values, shown.until_us)
    usual = usual_of(found.hours)
    if csv is not None:
        write_csv(csv, steps)
    if plot is not None:
        from odonata.figures.signal import write

        write(shown.name, steps, shown.until_us, plot)
    if as_json:
        print_json(facts(shown.name, found, usual, REGD) | {
            "written": None if csv is None else str(csv)})  # fmt: skip
        return
    print_table(*tables(shown.name, found, usual, REGD), highlight=False)
    for path in (csv, plot):
        if path is not None:
            print(f"written to {path}")


# -- the signal


def check(file: Path | None, synthetic: bool, made: list[str], repair: bool) -> None:
    """Refuse options that do not belong together; `made` are those of a signal that is made."""
    if file is None and not synthetic:
        raise Refused("which signal? a FILE.csv, or --synthetic")
    if file is not None and synthetic:
        raise Refused(f"{file} and --synthetic: name a file, or have a signal made, not both")
    if file is not None and made:
        raise Refused(f"{made[0]}: only with --synthetic; a file is taken as it is")
    if file is None and repair:
        raise Refused("--repair: of which file? a signal that is made is sound")
    if file is not None and not file.name.lower().endswith(SUFFIXES):
        raise Refused(f"{file}: the name must end in {' or '.join(SUFFIXES)}: save the signal as "
                      "CSV")  # fmt: skip


def read(file: Path, repair: bool, gaps: str) -> Made:
    """Returns the signal of a file, as a run would read it; refusals name our options."""
    import numpy as np

    from odonata.jobs.series_repair import CURE
    from odonata.jobs.series_text import HOLD, read_steps

    try:
        steps = read_steps(str(file), "signal", US, "", gaps=gaps, alone=True,
                           repair="repair" if repair else "refuse")  # fmt: skip
    except Refused as refusal:
        words = str(refusal).replace(f'gaps = "{HOLD}"', f"--gaps {HOLD}")
        raise Refused(words.replace(CURE, "--repair")) from None
    apart = np.diff(steps.times)
    last = int(np.median(apart)) if len(apart) else HOUR_US
    return Made(str(file), steps, int(steps.times[-1]) + last)


def make(
    deviation: float | None,
    memory: tuple[int, int] | None,
    interval: int | None,
    hours: float,
    seed: int,
) -> Made:
    """Returns a signal as the market of an experiment makes it; None: as by default."""
    from odonata.jobs.market import MarketSettings

    if not 0 < hours <= 24 * 366 * 10:
        raise Refused(f"--hours {hours:g}: more than 0, at most ten years")
    given = {"signal_deviation": deviation, "signal_interval_ps": interval,
             "signal_slow_memory_ps": memory and memory[0],
             "signal_fast_memory_ps": memory and memory[1]}  # fmt: skip
    until_us = max(1, round(hours * HOUR_US))
    try:
        settings = MarketSettings(signal="synthetic", **{
            name: value for name, value in given.items() if value is not None
        })  # type: ignore[arg-type]  # fmt: skip
        steps = settings.steps("signal", US, seed=seed, until=until_us)
    except Refused as refusal:
        words = str(refusal).replace("market.", "")
        for name in ("slow_memory", "fast_memory"):
            words = words.replace(f"signal_{name}", "--memory")
        raise Refused(words.replace("signal_", "--")) from None
    return Made(f"synthetic, seed {seed}", steps, max(until_us, steps.begins[-1] + 1))


def usual_of(hours: float) -> list[Statistics]:
    """Returns what signals of the default are like that have this length, nearly."""
    from odonata.jobs.signal import statistics

    length = min(LONGEST_H, max(SHORTEST_H, hours))
    made = [make(None, None, None, length, 100 + each) for each in range(SAMPLES)]
    return [statistics(one.steps.times, one.steps.values, one.until_us) for one in made]


# -- the file


def check_out(csv: Path | None, overwrite: bool) -> None:
    """Refuse what cannot be written, before anything is read."""
    if csv is None:
        if overwrite:
            raise Refused("--overwrite: of which file? --csv OUT")
        return
    check_place(csv, "--csv", (".csv",), overwrite)


def write_csv(path: Path, steps: Steps) -> None:
    """Write a signal that an experiment reads back as it is."""
    from pdes.replacing import replacing

    rows = zip(steps.begins, steps.levels, strict=True)
    text = "".join(f"{_seconds(time)},{level!r}\n" for time, level in rows)
    with replacing(path.resolve()) as part:  # a link stays one
        part.write_text(f"time_s,signal\n{text}", encoding="utf-8")


def _seconds(time_us: int) -> str:
    whole, rest = divmod(time_us, 10**6)
    return f"{whole}.{rest:06d}".rstrip("0") if rest else f"{whole}"


# -- what is shown


def rows_of(found: Statistics) -> dict[str, float]:
    """Returns the figures that are compared, by what they are."""
    rows = {"mean": found.mean, "standard deviation": found.deviation, "least": found.least,
            "most": found.most}  # fmt: skip
    rows |= {f"autocorrelation at {lag} s": value for lag, value in found.autocorrelation.items()}
    return rows | {
        "step per second, median": found.ramp_median, "95 %": found.ramp_p95,
        "largest": found.ramp_most, "mileage per hour": found.mileage,
        "time at the ends": found.at_ends,
    }  # fmt: skip


def tables(
    name: str, found: Statistics, usual: list[Statistics], regd: Statistics
) -> tuple[Any, ...]:
    """Returns a table of the signal, the default and RegD, and what its columns are."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    shown.add_column("", no_wrap=True, style="dim")
    for title in ("this one", "", "default", "from .. to", "RegD"):
        shown.add_column(title, justify="left" if not title else "right", no_wrap=True)
    there, ours, others = rows_of(regd), rows_of(found), [rows_of(one) for one in usual]
    for key, value in ours.items():
        values = sorted(one[key] for one in others if not math.isnan(one[key]))
        middle, ends, mark = "-", "-", ""
        if values:
            middle = _figure(values[len(values) // 2])
            ends = f"{_figure(values[0])} .. {_figure(values[-1])}"
            mark = "" if math.isnan(value) or _within(value, values) else "*"
        shown.add_row(key, _figure(value), mark, middle, ends, _figure(there[key]))
    return Text.assemble((name, "bold"), (f": {_about(found)}", "dim")), shown, Text(), Text(
        TERMS, "dim")  # fmt: skip


def _within(value: float, values: list[float]) -> bool:
    """Tells whether a value is about as far as others go."""
    room = MARGIN * (values[-1] - values[0]) + 1e-9
    return values[0] - room <= value <= values[-1] + room


def _about(found: Statistics) -> str:
    words = (
        f"{show_duration(found.hours * 3600)}, {found.samples:,} value{'s'[: found.samples - 1]}"
    )
    if math.isnan(found.spacing_s):
        return words
    least, most = found.spacings_s
    if least == most:
        return f"{words}, {found.spacing_s:g} s apart"
    return f"{words}, {found.spacing_s:g} s apart (from {least:g} to {most:g} s)"


def _figure(value: float) -> str:
    if math.isnan(value):
        return "-"
    text = f"{value:.3g}" if abs(value) >= 10 else f"{value:.4f}" if abs(value) < 0.1 else (
        f"{value:.3f}")  # fmt: skip
    return "0" if float(text) == 0 else text


def facts(
    name: str, found: Statistics, usual: list[Statistics], regd: Statistics
) -> dict[str, Any]:
    """Returns all that is known, for programs; null where nothing can be said."""
    return {"source": name, "signal": _plain(asdict(found)),
            "default": [_plain(asdict(one)) for one in usual],
            "regd": _plain(asdict(regd))}  # fmt: skip


def _plain(value: Any) -> Any:
    """Returns a value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value
