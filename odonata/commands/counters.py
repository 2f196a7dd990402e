"""`odonata counters`: the counters of a run as an operator reads them."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import Quantity, json_option
from odonata.commands.output import print_json, print_table, say_missing
from pdes import launcher
from pdes.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odonata.results.operator_counters import Counters
    from odonata.results.run import Run


def read_threshold(text: str) -> str | float | dict[str, float]:
    """Returns the threshold that is asked for: median, a number, or one for each class."""
    from odonata.results.derived import CLASSES

    if text == "median":
        return text
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        values = []
    if len(values) not in (1, 2) or not all(0 <= value < float("inf") for value in values):
        raise ValueError(f"{text!r}: median, or one or two numbers of stalls per second, "
                         "electrical and optical, such as 5410794,933")  # fmt: skip
    return values[0] if len(values) == 1 else dict(zip(CLASSES, values, strict=True))


@click.command("counters", context_settings=SETTINGS)
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write all samples of all routers as CSV, or all jobs.")  # fmt: skip
@click.option("--jobs", "by_job", is_flag=True, help="A row per job in place of routers.")
@click.option("--threshold", type=Quantity("median|N|N,N", read_threshold), default="median",
              show_default=True, help="Leave out tiles with fewer stalls per second, for "
              "electrical and for optical ones; 0 leaves out none.")  # fmt: skip
@click.option("--stalls", "kind", type=click.Choice(["all", "credit"]), default="all",
              show_default=True, help="Stalls for any reason, as Aries counts them, or only those "
              "for lack of credit or room.")  # fmt: skip
@json_option
def command(
    directory: Path, out: Path | None, by_job: bool, threshold: Any, kind: str, as_json: bool
) -> None:
    """Show the counters of the run in DIR as an operator of a Cray Aries machine reads them: flits
    and stalls of network and processor tiles, and stall-to-flit ratios; finished or not."""
    if launcher.rank() == 0:
        show(directory, out, by_job, threshold, kind, as_json)


def show(
    directory: Path, out: Path | None, by_job: bool, threshold: Any, kind: str, as_json: bool
) -> None:
    from odonata.results.operator_counters import counters_of
    from odonata.results.run import open as open_run

    with open_run(directory) as run:
        say_missing(run)
        if not run.has("network"):
            raise Refused(f'{directory}: fidelity = "job": there are no packets to count')
        if not len(run.time):
            raise Refused(f"{directory}: no sample has been written yet")
        if by_job and not run.has("jobs"):
            raise Refused(f"{directory}: ran no jobs ([[jobs]])")
        if out is not None and not out.absolute().parent.is_dir():
            raise Refused(f"-o {out}: there is no directory {out.parent}")
        (_jobs if by_job else _routers)(run, counters_of(run), out, threshold, kind, as_json)


def _routers(
    run: Run, seen: Counters, out: Path | None, threshold: Any, kind: str, as_json: bool
) -> None:
    from odonata.results.operator_table import MOST_SHOWN, router_facts, router_table, write_routers

    if out is not None:
        with _written(out) as file:
            write_routers(file, seen, run.machine.nodes, seen.stall_to_flit(threshold, kind))
        if not as_json:
            print(out)
            return
    facts = router_facts(run.machine, seen, threshold, kind)
    if as_json:
        print_json({**_about(run, seen, threshold, kind), "routers": facts})
    else:
        some = "the most congested of " if len(facts) > MOST_SHOWN else ""
        print_table(f"{_title(run)}: {some}{len(facts):,} routers", router_table(facts, kind),
                    _thresholds(seen, threshold, kind), least=80, highlight=False)  # fmt: skip


def _jobs(
    run: Run, seen: Counters, out: Path | None, threshold: Any, kind: str, as_json: bool
) -> None:
    from odonata.results.operator_counters import job_counters
    from odonata.results.operator_table import JOB_COLUMNS, job_rows, job_table, write_jobs

    found = job_counters(run, None, threshold, kind, seen)
    rows = list(job_rows(run.machine, run.job_records, found))
    if out is not None:
        with _written(out) as file:
            write_jobs(file, rows)
        if not as_json:
            print(out)
            return
    if as_json:
        facts = [dict(zip(JOB_COLUMNS, row, strict=True)) for row in rows]
        print_json({**_about(run, seen, threshold, kind), "jobs": facts})
    else:
        print_table(f"{_title(run)}: {len(rows):,} jobs", job_table(rows),
                    _thresholds(seen, threshold, kind), least=80, highlight=False)  # fmt: skip


@contextmanager
def _written(out: Path) -> Iterator[TextIO]:
    """Gives a file that takes its name when all of it is there."""
    from pdes.replacing import replacing

    with replacing(out) as part, part.open("w", encoding="utf-8", newline="") as file:
        yield file


def _about(run: Run, seen: Counters, threshold: Any, kind: str) -> dict[str, Any]:
    from odonata.results.operator_counters import MATERIALS

    found = seen.thresholds(threshold, kind)
    return {"time_ps": int(run.time[-1]), "samples": len(run.time), "complete": run.complete,
            "stalls": kind,
            "thresholds": {made: found[name] for name, made in MATERIALS.items()}}  # fmt: skip


def _title(run: Run) -> str:
    from rich.markup import escape

    from odonata.experiment.units import show_time
    from odonata.results.run import INCOMPLETE

    state = "" if run.complete else f" ({INCOMPLETE[run.state]})"
    return f"[bold]{escape(run.experiment.name)}[/bold], {show_time(int(run.time[-1]))}{state}"


def _thresholds(seen: Counters, threshold: Any, kind: str) -> str:
    from odonata.experiment.units import show_count
    from odonata.results.operator_counters import MATERIALS

    found = seen.thresholds(threshold, kind)
    if not any(found.values()):
        return "Ratios leave out no tile: the threshold is 0."
    listed = " and ".join(f"{show_count(found[name])} ({made})" for name, made in MATERIALS.items())
    return (
        f"Ratios leave out what tiles had in intervals with fewer stalls per second than {listed}."
    )
