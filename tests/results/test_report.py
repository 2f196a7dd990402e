"""`odonata report` and `odonata compare`, on small runs of a 72-node machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import h5py
import matplotlib.image
import numpy as np
import pytest
from click.testing import CliRunner
from conftest import PATIENCE

import odonata
from odonata.commands.cli import cli
from odonata.commands.side_by_side import labels_of
from odonata.figures import contents as pictures
from odonata.figures import network as figures
from odonata.figures.contents import FIGURES
from odonata.figures.report import page
from odonata.figures.style import MOST_POINTS, cumulated
from odonata.results import derived
from odonata.results.derived import latency_percentiles, stall_to_flit, summary
from odonata.results.execution import RunOptions, execute
from odonata.results.measured import Measured
from odonata.results.summary_rows import sections
from pdes.errors import Refused
from pdes.stream import RUNNING

EXPERIMENT = """
name = "small <script> & co"
about = "</title><img src=http://example.org/x.png onerror=alert(1)>"
[machine]
preset = "kim-72"
[network]
routing = "minimal"
[traffic]
pattern = "adversarial"
load = 0.1
warmup = "2 us"
[run]
duration = "10 us"
[metrics]
interval = "1 us"
"""

Make = Callable[..., Path]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Runs the experiment with changes, into a directory of its own."""
    home = tmp_path_factory.mktemp("runs")
    file = home / "small.toml"
    file.write_text(EXPERIMENT)

    def made(name: str, *changes: str) -> Path:
        if not (home / name).exists():
            execute(RunOptions(file, home / name, changes, progress=False))
        return home / name

    return made


@pytest.fixture(scope="module")
def small(make: Make) -> Path:
    return make("small")


def cut(directory: Path, target: Path, samples: int) -> Path:
    """A run that died after so many samples."""
    shutil.copytree(directory, target)
    (target / "run.h5").unlink()
    with h5py.File(target / "rank-0000.h5", "r+") as file:
        file["time_ps"].resize(samples, 0)
        file["status"][()] = RUNNING
    return target


def invoke(*words: Any) -> str:
    result = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


class Page(HTMLParser):
    """What a page asks for, and what it says."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.handlers: list[str] = []
        self.ids: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.links += [value or ""] if name in ("src", "href", "xlink:href", "srcset") else []
            self.handlers += [name] if name.startswith("on") else []
            self.ids += [value or ""] if name == "id" else []

    def handle_data(self, data: str) -> None:
        self.words += data


def shown(directory: Path) -> tuple[str, Page]:
    with odonata.open(directory) as run:
        text = page(run)
    return text, Page(text)


@pytest.fixture(scope="module")
def whole(small: Path) -> tuple[str, Page]:
    """With all figures, which takes seconds to draw."""
    return shown(small)


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Draw no other figures than these."""

    def few(*names: str) -> None:
        chosen = [picture for picture in FIGURES if picture.name in names]
        assert len(chosen) == len(names)
        monkeypatch.setattr(pictures, "FIGURES", chosen)

    return few


# -- the page


def test_a_page_asks_for_nothing_outside_itself(whole: tuple[str, Page]) -> None:
    text, seen = whole
    assert not {"script", "link", "iframe", "object", "embed", "base"} & set(seen.tags)
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in seen.links)
    assert all(match.startswith("#") for match in re.findall(r"url\(([^)]*)\)", text))
    assert "@import" not in text
    assert not seen.handlers


def test_names_on_a_page_are_its_own(whole: tuple[str, Page]) -> None:
    text, seen = whole
    assert len(set(seen.ids)) == len(seen.ids)
    asked = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', text)
    assert {a or b for a, b in asked} <= set(seen.ids)


def test_what_a_user_wrote_is_escaped(whole: tuple[str, Page]) -> None:
    text, seen = whole
    assert "<script" not in text
    assert "img" not in seen.tags
    assert "small <script> & co" in seen.words
    assert "</title><img src=http://example.org/x.png onerror=alert(1)>" in seen.words


HOSTILE = ("<script>alert(1)</script>", "{{ 7*7 }}", "{% include 'style.css' %}", "a \"b\" & 'c'")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_shown_as_it_was_written_and_never_run(
    small: Path, only: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """No figure has the name of a run, so none is drawn."""
    only()
    with odonata.open(small) as run:
        hostile = replace(run.experiment, name=name, about=f"about {name}")
        monkeypatch.setattr(run, "experiment", hostile)
        text = page(run)
    seen = Page(text)
    assert "script" not in seen.tags
    assert f"{name} · Odonata" in seen.words
    assert f"about {name}" in seen.words
    assert "49" not in seen.words.partition("Odonata run")[2].partition("nodes")[0]


def test_jobs_are_shown_as_they_were_named(tmp_path: Path, only: Any) -> None:
    """In the table and in the figures, of which names are part."""
    jobs = "".join(f"[[jobs]]\nname = {json.dumps(name)}\nnodes = 4\n" for name in HOSTILE)
    (tmp_path / "jobs.toml").write_text(
        f'name = "jobs"\n[machine]\npreset = "kim-72"\n[network]\nrouting = "adaptive"\n{jobs}'
    )
    execute(RunOptions(tmp_path / "jobs.toml", tmp_path / "out", progress=False))
    only()
    text, seen = shown(tmp_path / "out")
    assert "<script" not in text
    assert "script" not in seen.tags
    for name in HOSTILE:
        assert name in seen.words
    assert seen.tags.count("svg") == len(pictures.OF_JOBS)


def test_a_page_has_every_figure_the_experiment_and_where_it_comes_from(
    small: Path, whole: tuple[str, Page]
) -> None:
    text, seen = whole
    assert seen.tags.count("svg") == len(FIGURES)
    assert {picture.name for picture in FIGURES} <= set(seen.ids)
    assert "INCOMPLETE" not in text
    with odonata.open(small) as run:
        assert run.digest
        for words in (run.digest, run.attributes["experiment"], run.attributes["host"],
                      run.attributes["started"], run.packages["numpy"]):  # fmt: skip
            assert words in seen.words
        (rows,) = sections(Measured.of_run(run), run.reached_ps, run.complete)
        for name, value, _ in rows:
            assert name in seen.words
            assert value in seen.words


def test_a_page_is_the_same_whenever_it_is_made(small: Path, only: Any) -> None:
    only("latency", "cables")
    assert shown(small)[0] == shown(small)[0]


@pytest.mark.parametrize("samples", [0, pytest.param(1, marks=pytest.mark.long), 4])
def test_a_run_that_died_is_told_as_incomplete(
    small: Path, tmp_path: Path, samples: int, only: Any
) -> None:
    if samples == 4:
        only("latency-tail")
    died = cut(small, tmp_path / "died", samples)
    text, seen = shown(died)
    reached = f"{samples} us" if samples else "0 ps"
    assert f"INCOMPLETE: {reached} of 10 us; it died" in seen.words
    assert 'role="alert"' in text
    assert seen.tags.count("svg") == {0: 0, 1: 10, 4: 1}[samples]
    assert ("all of it warm-up, 2 us" in seen.words) == (samples == 1)
    assert ("no sample has been written yet" in seen.words) == (samples == 0)


def test_a_run_without_ports_says_so_in_place_of_figures(make: Make, only: Any) -> None:
    ports = ("utilisation-time", "stalled-time", "cables", "links", "link-stalls", "router-stalls",
             "group-stalls", "congestion-map")  # fmt: skip
    only("load", *ports)
    _, seen = shown(make("no-ports", "metrics.ports=false"))
    assert seen.words.count("Ports were not recorded (metrics.ports = false).") == len(ports)
    assert seen.tags.count("svg") == 1


def test_a_run_that_measured_no_packet_claims_no_latency(make: Make, only: Any) -> None:
    only("load", "latency-time", "latency", "latency-tail")
    quiet = make("quiet", "traffic.messages=0")
    _, seen = shown(quiet)
    assert "no packet was measured" in seen.words
    assert "none that was made after the warm-up of 2 us has arrived" in seen.words
    assert "0.0 ns" not in seen.words


@pytest.mark.long
def test_a_machine_of_one_group_has_a_page(make: Make, only: Any) -> None:
    only("stalled-time", "traffic", "cables", "links", "router-stalls", "group-stalls",
         "congestion-map")  # fmt: skip
    alone = make("alone", "machine.groups=1", "traffic.pattern=uniform")
    _, seen = shown(alone)
    assert seen.words.count("One group: there is no other.") == 2
    assert seen.tags.count("svg") == 5


# -- figures


def test_figures_show_what_the_datasets_have(small: Path) -> None:
    with odonata.open(small) as run:
        printed = summary(run)
        used, stalls = figures.by_link(run, "busy_ps"), figures.by_link(run, "stall_ps")
        assert {kind: len(some) for kind, some in used.items()} == {
            "global": 72, "local": 108, "eject": 72, "inject": 72}  # fmt: skip
        for kind, link in printed.links.items():
            assert used[kind].mean() == pytest.approx(link["utilisation"])
            assert used[kind].max() == pytest.approx(link["max_utilisation"])
        flits = int(run.ports.flits.isel(port=slice(2, 5)).sum())
        flit_ps = run.network.flit_bytes * 1e12 / run.machine.local.bandwidth
        ratio = stalls["local"].sum() * figures.span_ps(run) / flit_ps / flits
        assert ratio == pytest.approx(printed.links["local"]["stall_to_flit"])
        counts, _ = figures._whole_histogram(run)
        assert counts.sum() == printed.measured_packets
        means = figures.measured_means_ns(run)
        weights = run.groups.measured_packets.sum("group").data
        assert np.nansum(means * weights) / weights.sum() == pytest.approx(printed.mean_latency_ns)
        assert stall_to_flit(run).sizes["time"] == len(figures.edges_us(run)) - 1


def test_a_cable_carries_no_more_than_it_can(make: Make) -> None:
    with odonata.open(make("more", "traffic.load=0.5")) as run:
        full = run.machine.global_.bandwidth * figures.span_ps(run) / 1e12
        assert 0.9 * full < derived.cable_matrix(run).max() <= full


def test_many_samples_are_merged_without_changing_a_mean(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with odonata.open(small) as run:
        fine, packets = figures.over_time(run), summary(run).packets
    with odonata.open(small) as run:
        monkeypatch.setattr(figures, "MOST_STEPS", 4)
        monkeypatch.setattr(derived, "PIECE_BYTES", 1)
        coarse, edges = figures.over_time(run), figures.edges_us(run)
        assert edges.tolist() == [0, 3, 6, 9, 10]
        widths = np.diff(edges)
        for name in ("offered", "accepted", "global_busy", "local_stalled"):
            assert float(fine[name].mean()) == pytest.approx(
                float((coarse[name].data * widths).sum() / 10)
            )
        assert figures.histograms(run).sum() == summary(run).measured_packets <= packets
        percentile = float(latency_percentiles(run, [99])[0])
        printed = figures.percentiles_ns(run, [figures.histograms(run).sum(0)], [99])[0, 0]
        assert printed == pytest.approx(min(percentile, summary(run).max_latency_ns))


def test_a_distribution_ends_at_the_largest_value() -> None:
    values = np.random.default_rng(1).random(50_000)
    x, y = cumulated(values)
    assert len(x) <= MOST_POINTS + 1
    assert (x[0], x[-1], y[0], y[-1]) == (values.min(), values.max(), 0, 1)
    assert y[500] == (values <= x[500]).mean()


@pytest.mark.parametrize(("kind", "magic"), [
    pytest.param("pdf", b"%PDF", marks=pytest.mark.long), ("png", b"\x89PNG"),
    pytest.param("svg", b"<?xml", marks=pytest.mark.long),
])  # fmt: skip
def test_figures_are_files_of_their_kind(
    small: Path, tmp_path: Path, only: Any, kind: str, magic: bytes
) -> None:
    only("cables", "latency")
    printed = invoke("report", small, "--format", kind, "-o", tmp_path / "figures")
    assert printed.strip() == str(tmp_path / "figures")
    paths = sorted((tmp_path / "figures").iterdir())
    assert [path.name for path in paths] == [f"cables.{kind}", f"latency.{kind}"]
    assert all(path.read_bytes().startswith(magic) for path in paths)


def test_what_cannot_be_written_is_refused(small: Path, tmp_path: Path) -> None:
    for words in (["nowhere"], [str(small), "-o", str(tmp_path)],
                  [str(small), "-o", str(tmp_path / "no" / "such.html")],
                  [str(small), "--format", "pdf", "-o", str(small / "run.h5")]):  # fmt: skip
        with pytest.raises(Refused) as refused:
            CliRunner().invoke(cli, ["report", *words], catch_exceptions=False)
        assert "\n" not in str(refused.value)


# -- compare


def test_compare_tells_what_was_asked_differently_and_what_came_of_it(
    make: Make, small: Path, tmp_path: Path
) -> None:
    more = make("more", "traffic.load=0.5")
    printed = invoke("compare", small, more, "--plot", tmp_path / "both.png")
    lines = [line.split() for line in printed.splitlines()]
    assert lines[0] == ["small", "more"]
    assert ["traffic.load", "0.1", "0.5"] in lines
    assert not any(line and line[0] == "machine.groups" for line in lines)
    with odonata.open(small) as one, odonata.open(more) as other:
        first, second = summary(one).throughput, summary(other).throughput
    assert ["throughput", f"{first:.3f}", f"{second:.3f}", f"{second / first - 1:+.1%}"] in lines
    assert "more: saturated" in printed
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")


def test_compare_as_json_has_figures_and_changes(make: Make, small: Path, tmp_path: Path) -> None:
    died = cut(small, tmp_path / "died", 0)
    no_ports = make("no-ports", "metrics.ports=false")
    printed = json.loads(invoke("compare", small, no_ports, died, "--json"))
    one, other, nothing = printed["runs"]
    assert printed["differences"] == {"metrics.ports": ["true", "false", "true"]}
    assert one["figures"]["throughput"] == other["figures"]["throughput"]
    assert one["change"]["mean_latency_ns"] == 0
    assert other["figures"]["global.utilisation"] is None
    assert other["change"]["global.utilisation"] is None
    assert not nothing["complete"]
    assert set(nothing["figures"].values()) == {None}
    assert "died: INCOMPLETE: 0 ps of 10 us; it died" in printed["notes"]


def test_compare_knows_the_same_run(make: Make, small: Path) -> None:
    with odonata.open(small) as run:
        digest = run.digest
    printed = invoke("compare", small, make("again"))
    assert "asked for the same" in printed
    assert f"small = again: the same run (digest {digest[:12]})" in printed  # type: ignore[index]


def test_one_run_is_not_compared(small: Path) -> None:
    with pytest.raises(Refused, match="two runs at least"):
        CliRunner().invoke(cli, ["compare", str(small)], catch_exceptions=False)


def test_runs_of_one_name_are_told_by_their_paths() -> None:
    assert labels_of([Path("a/x"), Path("b/y")]) == ["x", "y"]
    assert labels_of([Path("a/x"), Path("b/x")]) == ["a/x", "b/x"]


# -- in a browser


def browser() -> str:
    names = (os.environ.get("CHROME", ""), "chromium", "chromium-browser", "google-chrome",
             "google-chrome-stable", "chrome")  # fmt: skip
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("NO BROWSER: no chromium or chrome on PATH, and $CHROME names none, so the "
                    "page was not opened in a real one")  # fmt: skip
    return found


def opened_by(chrome: str, page: Path, *more: str) -> tuple[str, set[str]]:
    """What the browser says, and what the page asked for: requests that the browser makes for
    itself have no origin. No name is resolved, so none of them gets anywhere."""
    log = page.with_suffix(".net.json")
    words = [chrome, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,2400",
             "--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars", "--no-first-run",
             "--disable-background-networking", "--disable-component-update",
             f"--user-data-dir={page.with_suffix('.profile')}", f"--log-net-log={log}"]  # fmt: skip
    said = subprocess.run([*words, *more, page.as_uri()], check=True, timeout=PATIENCE, text=True,
                          capture_output=True).stdout  # fmt: skip
    requests = re.findall(r'"initiator":"([^"]*)".*?"url":"(https?:[^"]*)', log.read_text())
    return said, {url for origin, url in requests if origin != "not an origin"}


def test_a_browser_without_a_network_shows_the_page(
    whole: tuple[str, Page], tmp_path: Path
) -> None:
    chrome = browser()
    path, picture = tmp_path / "report.html", tmp_path / "page.png"
    path.write_text(whole[0])
    _, asked = opened_by(chrome, path, f"--screenshot={picture}")
    assert not asked
    pixels = matplotlib.image.imread(picture)
    assert pixels.shape[:2] == (2400, 1200)
    for part in np.array_split(pixels[..., :3], 6):  # something in every sixth of it
        assert part.std() > 0.02
    seen = Page(opened_by(chrome, path, "--dump-dom")[0])
    assert "small <script> & co · Odonata" in seen.words
    assert "script" not in seen.tags
    assert seen.tags.count("svg") == len(FIGURES)


def test_a_request_of_a_page_would_be_noticed(tmp_path: Path) -> None:
    chrome = browser()
    (tmp_path / "page.html").write_text("<img src='http://example.org/x.png'>")
    _, asked = opened_by(chrome, tmp_path / "page.html", "--dump-dom")
    assert asked == {"http://example.org/x.png"}
