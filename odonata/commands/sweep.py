"""`odonata sweep`: experiments of one file that differ in some keys and in their seeds."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import Quantity, jobs_option, json_option, plugin_option
from odonata.commands.output import print_json
from odonata.experiment.terminal import plain_console
from odonata.sweeps import FORMATS, LOGS, WIDTHS
from pdes.errors import Fault, Refused
from pdes.replacing import write_whole
from pdes.shown import say

if TYPE_CHECKING:
    from rich.table import Table

    from odonata.study.filling import Ran
    from odonata.sweeps.plan import Plan
    from odonata.sweeps.table import Baseline, Swept


SATURATION = "saturation.csv"


@click.command("sweep", context_settings=SETTINGS)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE,VALUE",
    help="A key and the values that it takes in turn: network.routing=minimal,ugal-l, or "
    "traffic.load=0.1:0.9:0.1; with one value, as in `odonata run`; repeatable.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="Simulate each combination with so many seeds, from run.seed on.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where results go; what is there already is not simulated again.  [default: "
    "out/sweep-NAME]",
)
@jobs_option
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="NAME",
    help="A figure to show, as mean_latency_ns; repeatable.",
)
@click.option("--figures", "listing", is_flag=True, help="Only list the figures that there are.")
@click.option(
    "--against",
    metavar="AXIS=VALUE",
    help="Compare with the runs that have this value: ratios, and whether they are significant.",
)
@click.option(
    "--interval",
    type=click.Choice(("t", "bootstrap")),
    help="How confidence intervals are computed.  [default: t]",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="PART",
    help="How often an interval has the true mean.  [default: 0.95]",
)
@click.option(
    "--plot",
    metavar="FIGURE:X[:HUE]",
    help="Draw a figure over an axis, in colours for another; all other axes are panels.",
)
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="What the picture of --plot is saved as.  [default: png]",
)
@click.option(
    "--width",
    type=click.Choice(WIDTHS),
    help="How wide it is: for a screen, or as one "
    "column or all the text of a paper, with fonts of a paper.  [default: screen]",
)
@click.option("--log", type=click.Choice(LOGS), help="Which of its axes are logarithmic.")
@click.option(
    "--ratio",
    is_flag=True,
    default=None,
    help="Draw ratios to the runs that --against names, not the figure itself.",
)
@click.option(
    "--over",
    metavar="AXIS",
    help="Average over an axis, or several with commas: tables, CSV and pictures take its values, "
    "with all seeds, as repetitions.",
)
@click.option(
    "--saturation",
    type=click.FloatRange(0, 1),
    metavar="PART",
    help="Stop past saturation on the axis traffic.load, and look between its loads for the one at "
    "which the network saturates, as finely as this part of it: 0.01.",
)
@click.option(
    "--optimise",
    metavar="FIGURE",
    help="In place of all combinations, look for the one with the least FIGURE; keys may also have "
    "ranges, as traffic.load=0.1..0.9. Needs the extra `optimise` (Optuna).",
)
@click.option(
    "--direction",
    type=click.Choice(("minimise", "maximise")),
    help="Whether --optimise looks for the least or the greatest.  [default: minimise]",
)
@click.option(
    "--trials",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="How many combinations --optimise tries.  [default: 50]",
)
@plugin_option
@click.option("--share", type=Quantity("I/N", lambda text: share_of(text)),
              help="Simulate only the I-th of N shares, of a Slurm array say; --report shows all "
              "of them together.")  # fmt: skip
@click.option("--report", "only", is_flag=True, help="Simulate nothing: show what is in DIR.")
@click.option("--check", is_flag=True, help="Only say what would be simulated, or what is wrong.")
@json_option
def command(
    file: Path | None, changes: tuple[str, ...], out: Path | None, jobs: int, listing: bool,
    plugins: tuple[Path, ...], share: tuple[int, int] | None, only: bool, check: bool,
    optimise: str | None, direction: str | None, trials: int | None,
    as_json: bool, **wanted: Any,
) -> None:  # fmt: skip
    """Run the experiment FILE once for each combination of values, with each seed, and show the
    mean and the 95 % confidence interval of its figures.

    What is varied can also stand in the file, in a section [sweep]. A sweep that was cut short goes
    on with the same command.
    """
    from pdes.transport import together, world

    given = {name: value for name, value in wanted.items() if value not in (None, ())}
    if only and not optimise:
        if world().rank == 0:
            _show_kept(out, given, listing, as_json)
        return
    if not optimise and (trials is not None or direction is not None):
        raise Refused("--trials and --direction are about --optimise FIGURE")
    if file is None:
        raise Refused("which experiment? odonata sweep FILE --set network.routing=minimal,ugal-l")
    path, out = file, out or Path("out") / f"sweep-{file.stem}"
    if optimise:
        from odonata.commands.sweep_optimum import Wish
        from odonata.commands.sweep_optimum import optimise as look

        refuse_beside_a_search(given, {"--share": share, "--report": only, "--check": check,
                                       "--figures": listing})  # fmt: skip
        wish = Wish(optimise, direction or "minimise", trials or 50, given.get("seeds"))
        look(path, changes, plugins, wish, out, jobs, as_json)
        return
    from odonata.sweeps.plan import planned

    plan = together(world(), lambda: planned(path, changes, plugins, given))
    check_shown(plan)
    if listing:
        if world().rank == 0:
            _list_figures(plan, out)
        return
    if check:
        if world().rank == 0:
            _show_plan(plan, out, as_json)
        return
    run(plan, out, jobs, share, as_json)


def refuse_beside_a_search(given: Mapping[str, Any], others: Mapping[str, Any]) -> None:
    """Refuse the options that have no meaning beside --optimise, which ends with a ranking."""
    unfit = [f"--{name.removesuffix('s')}" for name in given if name != "seeds"]
    unfit += [name for name, value in others.items() if value]
    if unfit:
        raise Refused(f"--optimise ranks trials by one figure: {', '.join(unfit)} cannot be used "
                      "with it")  # fmt: skip


def share_of(text: str) -> tuple[int, int]:
    """Returns which share of how many a text such as 3/10 is."""
    part, slash, whole = text.partition("/")
    if not (slash and part.isdigit() and whole.isdigit() and 1 <= int(part) <= int(whole) <= 9999):
        raise ValueError(f"{text!r}: a share and how many there are, as 3/10; the first is 1")
    return int(part), int(whole)


def check_shown(plan: Plan) -> None:
    """Refuse a baseline or a drawing over what is no axis, before anything is simulated."""
    from odonata.sweeps.drawing import JOB
    from odonata.sweeps.table import Swept

    axes = {axis.name: axis.labels for axis in plan.axes}
    baseline_of(axes, plan.wanted.against)
    _, *drawn = plan.wanted.plot.split(":")
    for axis in drawn:
        if axis.strip() not in (*axes, JOB):
            raise Refused(f"--plot {plan.wanted.plot}: {axis}: no axis of this sweep; there are "
                          f"{', '.join([*axes, JOB])}")  # fmt: skip
    averaged(Swept.of(plan.facts(), {}), vars(plan.wanted))


def averaged(found: Swept, wanted: Mapping[str, Any]) -> Swept:
    """Returns results averaged over the axes that --over names. Refused where one of them is
    needed, or a ratio has no baseline."""
    if wanted["ratio"] and not (wanted["against"] and wanted["plot"]):
        raise Refused("--ratio: of what, to what? --plot FIGURE:X:HUE --against AXIS=VALUE")
    if not wanted["over"]:
        return found
    try:
        found = found.over(*(word.strip() for word in wanted["over"].split(",")))
    except Refused as refusal:
        raise Refused(f"--over {wanted['over']}: {refusal}") from None
    for option in ("against", "plot"):
        if not found.averaged.keys().isdisjoint(re.split(r"[:=]", wanted[option])):
            raise Refused(f"--over {wanted['over']}: --{option} {wanted[option]} is about it")
    return found


def run(plan: Plan, out: Path, jobs: int, share: tuple[int, int] | None, as_json: bool) -> None:
    """Simulate what is missing, and show the results on one rank."""
    from odonata.study.filling import fill
    from odonata.sweeps.kept import open_sweep, study_of
    from pdes.transport import together, world

    study = together(world(), lambda: study_of(plan, share))
    ran, kept = fill(study, plan, out, jobs)
    if world().rank > 0:
        return
    study.conclude(kept.outcomes, out)
    found = open_sweep(out)
    if ran.stopped or (share and found.missing):
        _tell_missing(found, ran, share, out, as_json)
        failed = len(found.failures) + len(ran.failures)
        if failed and not ran.stopped:
            raise Fault(f"{failed:,} of {len(plan.points):,} points have failed so far")
        return
    show(found, out, vars(plan.wanted), as_json, plan.file)
    if not as_json:
        print(ran)
    if found.failures or ran.failures:
        raise Fault(f"{len(found.failures) + len(ran.failures):,} of {len(plan.points):,} points "
                    "have failed; the table is of the others")  # fmt: skip


def _tell_missing(
    found: Swept, ran: Ran, share: tuple[int, int] | None, out: Path, as_json: bool
) -> None:
    """Print what was simulated just now, and how all of it is shown."""
    if as_json:
        print_json({"out": str(out), "share": share, **asdict(ran), "missing": found.missing})
        return
    for line in found.failures:
        say(f"failed: {line}")
    which = f"share {share[0]} of {share[1]}: " if share else ""
    print(f"odonata: {which}{ran}; {found.missing:,} of {len(found.keys):,} points are missing; "
          f"what there is: odonata sweep --report -o {out}", file=sys.stderr)  # fmt: skip


def _show_kept(out: Path | None, given: dict[str, Any], listing: bool, as_json: bool) -> None:
    """Show what there is of a sweep."""
    from odonata.sweeps.kept import open_sweep, plan_in

    if out is None:
        raise Refused("which sweep? odonata sweep --report -o DIR")
    wanted = {**plan_in(out)["wanted"], **given}
    found = replace(open_sweep(out), method=wanted["interval"], confidence=wanted["confidence"])
    if listing:
        print(*found.figures, sep="\n")
        return
    show(found, out, wanted, as_json, plan_in(out)["file"])


def _list_figures(plan: Plan, out: Path) -> None:
    """Print the names of the figures of a sweep: of what there is of it, or else of its first
    point, which is simulated for this alone."""
    from odonata.study.store import every_path_in
    from odonata.sweeps.kept import open_sweep
    from odonata.sweeps.outcomes import simulate
    from odonata.sweeps.study import PLAN
    from odonata.sweeps.table import Swept

    kept = (out / PLAN).exists() and every_path_in(out)
    figures = open_sweep(out).figures if kept else ()
    if not figures:
        first = plan.points[0]
        outcome = simulate(first)
        if outcome.failed:
            raise Fault(f"{first}: {outcome.failed}")
        figures = Swept({}, (first.seed,), ("",), {"": outcome}).figures
    print(*figures, sep="\n")


def _show_plan(plan: Plan, out: Path, as_json: bool) -> None:
    """Print what would be simulated."""
    axes = {axis.name: list(axis.labels) for axis in plan.axes}
    if as_json:
        print_json({"out": str(out), "axes": axes, "seeds": list(plan.seeds),
                    "points": len(plan.points)})  # fmt: skip
        return
    for name, labels in axes.items():
        print(f"{name}: {', '.join(labels)}")
    print(f"seeds: {', '.join(map(str, plan.seeds))}")
    apart = len({point.key for point in plan.points})
    same = f" ({apart:,} that differ)" if apart < len(plan.points) else ""
    print(f"odonata: this can be run: {len(plan.points):,} points{same}, into {out}",
          file=sys.stderr)  # fmt: skip


def _shown(found: Swept, figures: Sequence[str], out: Path) -> list[str]:
    """Returns the figures that are shown."""
    try:
        return [found.named(name) for name in figures] or [*found.usual]
    except Refused as refusal:
        raise Refused(f"{refusal}; all that was simulated is kept: odonata sweep --report -o {out} "
                      "--figure NAME") from None  # fmt: skip


def show(whole: Swept, out: Path, wanted: Mapping[str, Any], as_json: bool, file: str) -> None:
    """Write the files of a sweep, and print its table, as it is `wanted`."""
    from odonata.sweeps.drawing import draw
    from odonata.sweeps.page import write_page

    if not whole.known:
        raise Refused(f"{out}: no point of this sweep has been simulated yet")
    found = averaged(whole, wanted)
    figures, plot = _shown(found, wanted["figures"], out), wanted["plot"]
    baseline = baseline_of(found.axes, wanted["against"])
    how = {"baseline": baseline if wanted["ratio"] else None, "log": wanted["log"],
           "width": wanted["width"]}  # fmt: skip
    written = [*found.write(out, baseline), write_page(found, figures, baseline, out, file)]
    if found.saturation:
        write_whole(out / SATURATION, found.saturation.summary_csv())
        written.append(out / SATURATION)
    refusal = None
    try:
        written += [draw(found, plot, out, wanted["format"], **how)] if plot else []
    except Refused as reason:  # told when all else has been shown
        refusal = reason
    if as_json:
        print_json(facts(found, figures, baseline, out, written))
    else:
        _print(found, figures, baseline, written)
    if refusal:
        raise refusal


def _print(
    found: Swept, figures: Sequence[str], baseline: Baseline | None, written: Sequence[Path]
) -> None:
    """Print the tables of a sweep, and what is to be known of them."""
    from rich.measure import Measurement

    from odonata.sweeps.words import by_kind, notes

    console = plain_console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = max(console.width, 200)
    if found.saturation and found.saturation.figures:
        console.print(_table(found.saturation, found.saturation.figures, None))
        console.print()
    for some in by_kind(figures):
        whole = _table(found, some, baseline)
        unbound = console.options.update(max_width=100_000)
        fits = Measurement.get(console, unbound, whole).maximum <= console.width
        for table in [whole] if fits else [_table(found, [one], baseline) for one in some]:
            console.print(table)
            console.print()
    for note in notes(found, baseline):
        console.print(note, soft_wrap=True)
    console.print(f"written: {', '.join(map(str, written))}", soft_wrap=True)


def baseline_of(axes: Mapping[str, Sequence[str]], against: str) -> Baseline | None:
    """Returns the baseline that was asked for, None where there is none."""
    from odonata.sweeps.table import Baseline

    if not against:
        return None
    axis, equals, label = (part.strip() for part in against.partition("="))
    if not equals or label not in axes.get(axis, ()):
        have = "; ".join(f"{name}={', '.join(labels)}" for name, labels in axes.items())
        raise Refused(f"--against {against}: an axis and one of its values; there are {have}")
    return Baseline(axis, label)


def _table(found: Swept, figures: Sequence[str], baseline: Baseline | None) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from odonata.sweeps.words import heads, rows

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    words = len(found.axes) + 1
    for place, head in enumerate(heads(found, figures, baseline)):
        left = place < words and (place < len(found.axes) or head == "job")
        table.add_column(Text(head), justify="left" if left else "right", no_wrap=True)
    for row in rows(found, figures, baseline):
        table.add_row(*map(Text, row))
    return table


def facts(
    found: Swept, figures: Sequence[str], baseline: Baseline | None, out: Path,
    written: Sequence[Path],
) -> dict[str, Any]:  # fmt: skip
    """Returns the results for JSON."""
    rows = []
    saturation = found.saturation and [
        {**dict(zip(found.saturation.axes, cell.labels, strict=True)), "figure": name,
         **_numbers(found.saturation.interval(cell))}
        for name in found.saturation.figures for cell in found.saturation.cells(name)
    ]  # fmt: skip
    for name in figures:
        beside = found.against(name, baseline) if baseline else {}
        for cell in found.cells(name):
            row = {
                **dict(zip(found.axes, cell.labels, strict=True)),
                "figure": name,
                **({"job": cell.job} if cell.job else {}),
                **_numbers(found.interval(cell)),
                "steady_state": found.judged(cell.labels) or None,
            }
            if cell in beside:
                row |= {"ratio": _numbers(beside[cell].ratio),
                        "difference": _numbers(beside[cell].difference),
                        "significant": beside[cell].significant}  # fmt: skip
            rows.append(row)
    return {
        "out": str(out), "axes": {name: list(labels) for name, labels in found.axes.items()},
        **({"over": {name: list(labels) for name, labels in found.averaged.items()}}
           if found.averaged else {}),
        "seeds": list(found.seeds), "missing": found.missing, "failures": found.failures,
        "interval": found.method, "confidence": found.confidence, "results": rows,
        **({"saturation": saturation} if saturation is not None else {}),
        "files": [str(path) for path in written],
    }  # fmt: skip


def _numbers(made: Any) -> dict[str, Any]:
    """Returns an interval for JSON, with null for what is not known."""
    return {name: None if value != value else value for name, value in made._asdict().items()}
