"""The paths of packets in the files of a run: read, written as CSV, drawn, shown by commands."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import pytest
from machines import US, network
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from odonata.agents.tracing import LOGS
from odonata.figures import packet_timeline as timeline
from odonata.results.execution import RunOptions, execute
from odonata.results.packet_trace import WAITS
from odonata.results.run import Run
from pdes.driver import run as simulate
from pdes.errors import Refused
from pdes.join import join
from pdes.stream import Recording
from pdes.transport import Serial

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "howto" / "debugging.md").read_text()
(FILE,) = re.findall(r"^```toml\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the page about debugging."""
    place = tmp_path_factory.mktemp("traced")
    (place / "mine.toml").write_text(FILE)
    execute(RunOptions(place / "mine.toml", place / "out", trace_packets=10, progress=False))
    return place / "out"


def test_the_documented_logs_are_what_is_written(out: Path) -> None:
    text = (DOCS / "results.md").read_text()
    rows = re.findall(r"^\| `(packet_\w+/\w+)` \| ([\w, ]+) \| (\w+) \| +\|", text, re.MULTILINE)
    found = {}
    with Run(out) as run:
        for log in LOGS:
            for name, dataset in run.file[log].items():
                dims = ", ".join(dim.label for dim in dataset.dims)
                found[f"{log}/{name}"] = (dims, dataset.attrs["unit"])
    assert {name: (dims, unit) for name, dims, unit in rows} == found


def test_the_python_of_the_page_about_results_runs(out: Path) -> None:
    text = (DOCS / "results.md").read_text().split("## Packets, hop by hop")[1]
    code = "\n".join(re.findall(r"^    (.*)$", text.split("\n## ")[0], re.MULTILINE))
    names: dict[str, Any] = {}
    exec(code.replace("out/mine", str(out)), names)
    assert len(names["trace"].hops.to_dataframe()) == len(names["trace"].hops.row) > 1000
    assert names["path"].number == 861
    names["run"].close()


def test_the_page_about_debugging_shows_what_is_printed(
    out: Path, go: Callable[..., str], python: Callable[..., str], tmp_path: Path
) -> None:
    followed, stopped = re.findall(r"^```text\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
    assert go("packet", out, "--packet", 861) == followed
    (tmp_path / "mine.toml").write_text(FILE)
    printed = python(
        "import io, sys; sys.stdin = io.StringIO('c\\nq\\n')\n"
        "from odonata.commands.cli import cli\n"
        "cli.main(['debug', 'mine.toml', '--packet', '861', '--no-checks', '--set', "
        "'run.duration=1100ns'], standalone_mode=False)"
    )
    assert stopped in printed


def test_the_slowest_are_listed_and_one_is_followed_as_json(
    out: Path, go: Callable[..., str]
) -> None:
    listed = go("packet", out)
    assert "689 packets were traced, 1 in 10 of each node" in listed
    assert re.search(r"861 .* 69 .* 7 .* 3 .* 5\.118179 us", listed)
    facts = json.loads(go("packet", out, "--json"))
    assert facts["slowest"][0] == 861
    path = json.loads(go("packet", out, "--packet", 861, "--json"))
    assert path["latency_ps"] == 5_118_179
    assert [hop["router"] for hop in path["hops"]] == [-1, 34, 32, 3]
    assert sum(sum(hop["waits_ps"].values()) for hop in path["hops"]) == sum(
        hop["start_ps"] - hop["arrived_ps"] for hop in path["hops"]
    )


def test_csv_has_every_hop(out: Path, go: Callable[..., str], tmp_path: Path) -> None:
    assert go("packet", out, "--csv", "hops.csv").splitlines()[-1] == "hops.csv"
    with (tmp_path / "hops.csv").open() as file:
        rows = list(csv.DictReader(file))
    with Run(out) as run:
        hops, done = run.packet_trace.hops, run.packet_trace.deliveries
        for name in hops:
            assert [int(row[str(name)]) for row in rows] == hops[name].data.tolist()
        when = dict(
            zip(done["packet"].data.tolist(), done["delivered_ps"].data.tolist(), strict=True)
        )
    for row in rows:
        assert row["delivered_ps"] == str(when.get(int(row["packet"]), ""))
    assert any(not row["delivered_ps"] for row in rows)


def test_a_timeline_has_a_bar_for_all_that_takes_time(out: Path, tmp_path: Path) -> None:
    with Run(out) as run:
        path = run.packet_trace.packet(861)
    figure = Figure(figsize=timeline.size(path))
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    timeline.packet_timeline(path, axes)
    waited: dict[str, float] = {}
    for bar in axes.patches:
        colour = to_hex(bar.get_facecolor())
        waited[colour] = waited.get(colour, 0) + bar.get_width()
    for cause, words in WAITS.items():
        took = sum(hop.waits_ps.get(cause, 0) for hop in path.hops) / 1e3
        assert waited.get(to_hex(timeline.COLOURS[words]), 0) == pytest.approx(took)
    assert len(axes.patches) == len(path.stays())
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["node 69  (VC 0)", "router 34  (VC 0)", "router 32  (VC 1)",
                      "router 3  (VC 0)", "node 7"]  # fmt: skip
    timeline.draw(path, tmp_path / "path.svg")
    assert (tmp_path / "path.svg").stat().st_size > 10_000
    with pytest.raises(Refused, match=r"must end in \.png"):
        timeline.draw(path, tmp_path / "path.gif")


def test_a_restart_changes_no_row(tmp_path: Path) -> None:
    def recorded(place: str, end: int, **how: Any) -> None:
        record = Recording(tmp_path / place, US, (), logs=(*LOGS,))
        model = network(routing="adaptive", load=0.9, trace_packets=2)
        simulate(model, end, record=record, transport=Serial(), show_compiling=False, **how)

    def rows(place: str) -> dict[str, bytes]:
        join(tmp_path / place, tmp_path / place / "run.h5")
        with h5py.File(tmp_path / place / "run.h5") as file:
            return {f"{log}/{name}": column[:].tobytes()
                    for log in LOGS for name, column in file[log].items()}  # fmt: skip

    recorded("whole", 6 * US)
    saved = tmp_path / "saved"
    recorded("parts", 6 * US - 1, checkpoint_dir=saved, checkpoint_every=2 * US + 12_345)
    recorded("parts", 6 * US, resume=saved)
    assert rows("parts") == rows("whole")
    assert len(rows("whole")["packet_hops/packet"]) > 8 * 2000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--trace-packets", "0"), "Invalid value for '--trace-packets'"),
        (("--set", "metrics.trace_packets=0"), "=0: 1 .. 2**63 - 1, or none"),
        (("--trace-packets", "5", "--no-metrics"), "are kept with the metrics"),
        (("--set", "metrics.trace_packets=few"), "metrics.trace_packets"),
    ],
)
def test_what_cannot_be_traced_is_refused_before_anything_is_simulated(
    words: tuple[str, ...], message: str, tmp_path: Path,
    odonata: Callable[..., subprocess.CompletedProcess[str]],
) -> None:  # fmt: skip
    (tmp_path / "mine.toml").write_text(FILE)
    done = odonata("run", "mine.toml", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_run_without_traced_packets_says_how_to_trace_them(
    tmp_path: Path, odonata: Callable[..., subprocess.CompletedProcess[str]], go: Callable[..., str]
) -> None:
    (tmp_path / "mine.toml").write_text(FILE)
    go("run", "mine.toml", "--set", "run.duration=1ns", "-o", "out", "--json", ODONATA_JIT="0")
    done = odonata("packet", "out")
    assert done.returncode == 2
    assert "no packets were traced: odonata run --trace-packets N" in done.stderr
