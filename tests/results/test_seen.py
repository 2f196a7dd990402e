"""What the scheduler saw of the network when it started a job: the log, its reading, its maps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from odonata.commands.cli import cli
from odonata.figures import contents as pictures
from odonata.figures import seen as maps
from odonata.figures.report import page
from odonata.figures.style import BLUE, NOTHING, style
from odonata.results.execution import RunOptions, execute
from odonata.results.run import Run
from odonata.results.seen import Seen, cells, placed, quantity, rate, unseen

DOC = Path(__file__).parents[2] / "docs" / "results.md"
FILE = """
name = "seen"
[machine]
preset = "kim-72"
[network]
routing = "adaptive"
[scheduler]
allocation = { name = "nedd", intervals = 2 }
telemetry = "4.000007 us"   # so that nothing happens at the instant of a reading
telemetry_delay = "3 us"
launch = "1 us"
[[jobs]]
name = "hog"
nodes = 20
pattern = "all-to-all"
message = "4 KiB"
iterations = 40
background = true
on = "0-38:2"
[[jobs]]
name = "early"
nodes = 4
pattern = "halo2d"
arrival = "1 us"
[[jobs]]
name = "insensitive <i>"
nodes = 8
pattern = "halo2d"
arrival = "21 us"
sensitive = false
[[jobs]]
name = "unknown"
nodes = 4
pattern = "halo2d"
arrival = "21 us"
[[jobs]]
name = "sensitive"
nodes = 8
pattern = "halo2d"
arrival = "22 us"
sensitive = true
[[jobs]]
name = "short of counters"
nodes = 4
pattern = "halo2d"
arrival = "9 us"
sensitive = true
[metrics]
interval = "4.000007 us"
"""
HOG, EARLY, INSENSITIVE, UNKNOWN, SENSITIVE, SHORT = range(6)
US, EVERY = 10**6, 4_000_007


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("seen")
    (home / "seen.toml").write_text(FILE)
    return home


def made(home: Path, name: str, *changes: str) -> Run:
    execute(RunOptions(home / "seen.toml", home / name, changes, progress=False))
    return Run(home / name)


@pytest.fixture(scope="module")
def run(home: Path) -> Run:
    return made(home, "out")


def of(run: Run, number: int) -> Seen:
    seen = run.seen[number]
    assert seen is not None
    return seen


def test_what_was_seen_is_what_the_run_measured_in_those_intervals(run: Run) -> None:
    """Readings are at about 4, 8, 12 us and so on; at 21 us, those of 16 us have arrived."""
    for number, time, ends in (
        (INSENSITIVE, 21, (3, 4)),
        (SENSITIVE, 22, (3, 4)),
        (SHORT, 9, (1,)),
    ):
        seen = of(run, number)
        assert (seen.time_ps, seen.age_ps) == (time * US, time * US - EVERY * ends[-1])
        assert seen.seconds == pytest.approx(EVERY * 1e-12 * len(ends))
        received = run.nodes.received_bytes.data[[end - 1 for end in ends]].sum(0)
        assert (seen.received_bytes == received.reshape(-1, run.machine.nodes).sum(1)).all()
        assert seen.sent_bytes.sum() >= seen.received_bytes.sum() * 0.5 > 0
        stalls = run.ports[["stall_ps", "wait_ps"]].isel(time=[end - 1 for end in ends])
        assert (seen.stall_ps == stalls.stall_ps.data.sum((0, 2))).all()
        assert (seen.wait_ps == stalls.wait_ps.data.sum((0, 2))).all()


def test_where_nothing_had_been_reported_nothing_is_told(run: Run, home: Path) -> None:
    assert [seen is None for seen in run.seen] == [True, True, *[False] * 4]
    with h5py.File(home / "out" / "run.h5") as file:
        rows = dict(zip(file["seen/job"][:], file["seen/age_ps"][:], strict=True))
        assert rows[EARLY] == -1
        assert HOG not in rows, "its user named its nodes"
        assert not np.isin([HOG, EARLY], file["seen_routers/job"][:]).any()
        counters = np.stack([file[f"seen_routers/{name}"][:] for name in (
            "sent_bytes", "received_bytes", "stall_ps", "wait_ps")])  # fmt: skip
        assert counters.any(0).all(), "routers of which there is nothing to tell have no row"


@pytest.mark.long
def test_a_scheduler_that_is_told_nothing_leaves_no_such_log(home: Path) -> None:
    with made(home, "plain", "scheduler.allocation=simple", "scheduler.telemetry=auto") as plain:
        assert plain.seen == placed(plain) == []
        assert "seen" not in plain.file
        assert "seen_routers" not in plain.file
        assert "seen" not in [picture.name for picture in pictures.of(plain)]
        assert "What the scheduler saw" not in page(plain)


def test_idle_nodes_are_those_that_no_job_had(run: Run) -> None:
    short, first, second = of(run, SHORT), of(run, INSENSITIVE), of(run, UNKNOWN)
    ended = run.job_records[EARLY].end_ps
    assert ended is not None
    assert ended < short.time_ps
    assert np.flatnonzero(~short.idle).tolist() == sorted(run.job_records[HOG].labels)
    assert (first.time_ps, second.time_ps) == (21 * US, 21 * US)
    taken = {*np.flatnonzero(~second.idle).tolist()} - {*np.flatnonzero(~first.idle).tolist()}
    assert taken == {*run.job_records[INSENSITIVE].labels}


def test_a_job_is_compared_with_the_routers_that_had_idle_nodes(run: Run) -> None:
    sensitive, insensitive = of(run, SENSITIVE), of(run, INSENSITIVE)
    assert sensitive.traffic_of_job < sensitive.traffic_of_all
    assert insensitive.traffic_of_job > insensitive.traffic_of_all
    by_hand = [sensitive.traffic[it] for it in {n // 2 for n in sensitive.record.labels}]
    assert sensitive.traffic_of_job == pytest.approx(np.mean(by_hand))
    assert rate(0.0) == "0 B/s"
    assert rate(1.23456e9) == "1.23 GB/s"


def test_sensitive_jobs_come_first_and_those_with_nodes_of_their_own_choice_not_at_all(
    run: Run,
) -> None:
    names = [cells(job, quantity(run))[:2] for job in placed(run)]
    assert names == [("short of counters", "sensitive"), ("sensitive", "sensitive"),
                     ("insensitive <i>", "insensitive"), ("unknown", "unknown")]  # fmt: skip


def test_the_documented_logs_are_what_is_written(run: Run) -> None:
    rows = re.findall(r"^\| `(seen\w*/\w+)` \| ([\w, ]+) \| (\w+) \| +\|", DOC.read_text(), re.M)
    found = {}
    for log in ("seen", "seen_routers"):
        for name, dataset in run.file[log].items():
            dims = ", ".join(dim.label for dim in dataset.dims)
            found[f"{log}/{name}"] = (dims, dataset.attrs["unit"])
    assert {name: (dims, unit) for name, dims, unit in rows} == found


# -- for people


def drawn(run: Run) -> Figure:
    with style():
        figure = Figure(figsize=maps.size(run), layout="constrained")
        FigureCanvasAgg(figure)
        maps.seen_maps(run, figure.subplots())
        figure.canvas.draw()  # what cannot be laid out warns
    return figure


def panels(figure: Figure) -> list[Any]:
    return [axes for axes in figure.axes if axes.get_xlabel().startswith("group")]


def test_a_map_has_the_traffic_of_every_router_and_outlines_those_of_the_job(run: Run) -> None:
    found = panels(drawn(run))
    assert [axes.get_title() for axes in found] == [
        "short of counters: sensitive", "sensitive: sensitive", "insensitive <i>: insensitive",
        "unknown: unknown"]  # fmt: skip
    m = run.machine
    for axes, job in zip(found, placed(run), strict=True):
        mesh = next(it for it in axes.collections if isinstance(it, QuadMesh))
        shown = np.ma.getdata(mesh.get_array()).reshape(m.routers, m.groups).T.reshape(-1)
        np.testing.assert_allclose(shown, job.traffic / 1e9)
        colours = mesh.get_facecolor().reshape(m.routers, m.groups, 4).transpose(1, 0, 2)
        none = [to_hex(it) == NOTHING for it in colours.reshape(-1, 4)]
        assert none == (job.traffic == 0).tolist()
        marks, quiet, own_routers = (
            it for it in axes.collections if isinstance(it, PolyCollection)
        )
        assert len(quiet.get_paths()) == sum(none) > 0
        assert len(own_routers.get_paths()) == len(job.routers)
        own = [to_hex(it) == BLUE for it in marks.get_facecolor()]
        assert np.flatnonzero(own).tolist() == sorted(job.record.labels)


@pytest.mark.long
def test_the_report_says_by_which_rule_jobs_were_placed(run: Run) -> None:
    words = page(run)
    for said in ("What the scheduler saw", "The allocation policy nedd (sensitive jobs to the "
                 "routers with least traffic, others to those with most) chose among the routers "
                 "that had idle nodes. 1 job was placed before the first report had come, when all "
                 "routers are equal to nedd.", "Traffic where they were placed",
                 "<td>insensitive &lt;i&gt;</td><td>insensitive</td>"):  # fmt: skip
        assert said in words


@pytest.mark.long
def test_without_any_report_the_page_says_so(home: Path) -> None:
    with made(home, "late", "scheduler.telemetry=1 ms") as late:
        assert placed(late) == []
        assert ("No job was placed after the first report had reached the scheduler. 5 jobs were "
                "placed before") in page(late)  # fmt: skip


def test_a_terminal_shows_the_table(home: Path) -> None:
    words = ["run", str(home / "seen.toml"), "-o", str(home / "shown"), "--no-progress"]
    said = CliRunner().invoke(cli, words).stdout
    assert re.search(r"traffic that the scheduler saw in the last \d+\.\d+ us", said)
    assert "1 job was placed before the first report had come" in said
    assert re.search(r"insensitive <i> +insensitive +5\.0 +[\d.]+ GB/s +[\d.]+ GB/s", said)


@pytest.mark.long
def test_of_a_policy_that_goes_by_stalls_the_stalls_are_shown(home: Path) -> None:
    with made(home, "stalls", "scheduler.allocation=low-stall-router") as stalls:
        assert quantity(stalls).name == "stalls"
        seen = of(stalls, SENSITIVE)
        assert seen.stalls.sum() == pytest.approx(seen.stall_ps.sum() / 1e12 / seen.seconds)
        mesh = next(it for it in panels(drawn(stalls))[0].collections if isinstance(it, QuadMesh))
        assert np.ma.getdata(mesh.get_array()).sum() == pytest.approx(
            placed(stalls)[0].stalls.sum()
        )
        assert "Stalls where they were placed" in page(stalls)


def test_jobs_that_were_placed_before_any_report_are_counted(home: Path) -> None:
    with made(home, "blind", "scheduler.telemetry=1 ms") as blind:
        assert "5 jobs were placed before the first report" in unseen(blind)
        assert unseen(blind).endswith("when all routers are equal to nedd.")
    no_reader = ("scheduler.allocation=fewer-router", "scheduler.telemetry=1 ms")
    with made(home, "deaf", *no_reader) as deaf:
        assert unseen(deaf) == " 5 jobs were placed before the first report had come."
