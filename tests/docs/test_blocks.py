"""Every block of code on every page is what its language says: an experiment that can be run, a
command that the command line accepts, or Python that runs. What is none of these is `text`."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import dropwhile
from pathlib import Path

import click
import matplotlib as mpl
import pytest
from files import forget_plugins
from pages import DOCS, PAGES, ROOT, Block, blocks, name_of

import odonata
from odonata.commands.cli import cli
from odonata.experiment.profiles import profile_in
from odonata.experiment.reading import load
from odonata.traces import swf
from policies.register import PLUGINS, REGISTERS, load_plugin

TUTORIAL = DOCS / "tutorial" / "first-study.md"
ALL = [block for page in PAGES for block in blocks(page)]
LANGUAGES = {"sh", "console", "toml", "python", "text"}
OTHER = {"export", "grep", "make", "pip", "python", "python3", "sacct", "sbatch", "source"}
"""Commands of others that pages may show."""
LAUNCHERS = {"mpiexec", "mpirun", "srun"}
JOINED, ASSIGNED = ("|", "&&"), re.compile(r"\w+=\S*")
NEED_JOBS = {"scheduler", "power", "nic"}
"""Sections that an experiment may have only if it runs jobs."""


def of(language: str) -> list[Block]:
    return [block for block in ALL if block.language == language]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of its own, and what plug-ins registered is forgotten afterwards."""
    before = {kind: dict(each) for kind, each in REGISTERS.items()}
    monkeypatch.setenv("ODONATA_JIT", os.environ.get("ODONATA_JIT", "1"))  # --debug changes it
    yield tmp_path
    forget_plugins()
    for kind, each in REGISTERS.items():
        each.clear()
        each.update(before[kind])


def put_files(page: Path, place: Path) -> None:
    """Write the files of a page that blocks name in their first lines; of two, the last."""
    for block in blocks(page):
        if block.file:
            (place / block.file).write_text(block.text)


def test_every_block_says_what_it_is() -> None:
    assert [str(block) for block in ALL if block.language not in LANGUAGES] == []
    assert len(of("toml")) > 30
    assert len(of("sh")) > 40
    assert len(of("python")) > 40


# -- TOML


@pytest.mark.parametrize("block", of("toml"), ids=str)
def test_a_block_of_toml_is_an_experiment_that_can_be_run(block: Block, place: Path) -> None:
    """A block may also be a part of an experiment, which is then added to a job, or an application
    profile. Plug-ins are those of the page, or of the page about policies."""
    put_files(block.page, place)
    read, text = tomllib.loads(block.text), block.text
    if block.file == "pyproject.toml":
        assert "project" in read
        return
    if "stages" in read:
        assert profile_in(place / block.file).stages
        return
    for name in read.get("plugins", ()):
        if not (place / name).exists():
            (place / name).write_text(elsewhere(name).text)
    if "plugins" not in read:
        for file in place.glob("[!t]*.py"):
            load_plugin(file)
    if "nasa.swf.gz" in text:
        put_trace(place)
    if read.keys() & NEED_JOBS and not read.keys() & {"jobs", "trace"}:
        text += "[[jobs]]\nnodes = 4\n"
    (place / "it.toml").write_text(text.replace('sensitivity = "sensitive.toml"', ""))
    load(place / "it.toml").model()


def put_trace(place: Path) -> None:
    """Write a small trace under the name of one that many pages use."""
    trace, _ = odonata.Source(model="lublin", jobs=5000, nodes=256, load=0.8).trace()
    swf.write(place / "nasa.swf.gz", trace)


def elsewhere(name: str) -> Block:
    """The file of this name on the page about policies."""
    return next(it for it in blocks(DOCS / "policies.md") if it.file == name)


# -- commands


def commands(block: Block) -> Iterator[list[str]]:
    """Yields the words of the commands of a block, without comments, and joined over lines."""
    text = block.text
    if block.language == "console":
        text = "\n".join(re.findall(r"^\$ (.*)$", text, re.MULTILINE))
    for line in text.replace("\\\n", " ").split("\n"):
        words = shlex.split(line, comments=True)
        for several in (words, *(words[at + 1 :] for at, it in enumerate(words) if it in JOINED)):
            end = next((at for at, it in enumerate(several) if it in (*JOINED, ">")), None)
            one = [*dropwhile(ASSIGNED.fullmatch, several[:end])]
            if one:
                yield one


@pytest.mark.parametrize("block", [*of("sh"), *of("console")], ids=str)
def test_a_command_of_a_block_is_accepted(block: Block, place: Path) -> None:
    for words in commands(block):
        for word in words:
            if re.match(r"(scripts|slurm_jobs|docs)/", word):
                assert (ROOT / word).exists(), word
        if words[0] in LAUNCHERS:
            after = words.index("odonata") if "odonata" in words else words.index("python")
            words = words[after:]
        if words[0] == "odonata":
            accepted(words[1:])
        else:
            assert words[0] in OTHER, words


def accepted(words: list[str]) -> None:
    """Have click parse a command, all of it; a file that it reads need not be there."""
    context, name, command = None, "odonata", cli
    with suppress(click.exceptions.Exit):  # by --help and --version, which nothing is wrong with
        while isinstance(command, click.Group):
            context = command.make_context(name, [*words], parent=context)
            rest = [*context._protected_args, *context.args]
            if not rest:
                assert command.invoke_without_command, f"odonata {name}: which command?"
                return
            name, command, words = command.resolve_command(context, rest)
        for parameter in command.params:
            if isinstance(parameter.type, click.Path):
                parameter.type.exists = False
        command.make_context(name, [*words], parent=context)


def test_a_command_that_is_wrong_would_be_found() -> None:
    for line in ("run x.toml --overwite", "nothing", "bench", "report x --format doc"):
        with pytest.raises((click.UsageError, AssertionError)):
            accepted(line.split())
    accepted(["study", "load-latency", "--help"])


# -- Python


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the runs are that several pages open."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def runs(go: Callable[..., str], made: Path, place: Path) -> Callable[[str], None]:
    """Makes the runs that the code of a page opens, each as short as it can be, and once."""
    experiments = ROOT / "scripts" / "experiments"
    recipes = {
        "demo": ("run.duration=12us",),
        "jobs": ("scheduler.telemetry=20us", "jobs[1].arrival=100us", "jobs[1].iterations=2",
                 "jobs[0].iterations=1", "jobs[2].iterations=1", "jobs[3].iterations=3"),
        "months": ("trace.jobs=500",),
        "power": ("trace.first=60",),
        "market": ("trace.jobs=40", "power.policy=none", "market.bidding.name=fixed",
                   "market.bidding.average=40000", "market.bidding.reserve=2000"),
        "regulated": ("run.duration=2min", "market.bidding.steps=2", "market.hour=2min"),
    }  # fmt: skip

    def make(code: str) -> None:
        for name in {*re.findall(r'"out/(\w+)', code)} & {*recipes}:
            if not (made / name).exists():
                changes = (word for change in recipes[name] for word in ("--set", change))
                file = experiments / f"{name if name != 'market' else 'months'}.toml"
                go("run", file, "-o", made / name, *changes, "--json")
            shutil.copytree(made / name, place / "out" / name)
        if "nasa.swf.gz" in code:
            put_trace(place)

    return make


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != TUTORIAL and any(
        it.language == "python" for it in blocks(page))],
    ids=name_of,
)  # fmt: skip
def test_the_python_of_a_page_runs_from_top_to_bottom_and_prints_what_the_page_shows(
    page: Path,
    place: Path,
    runs: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    put_files(page, place)
    runs("\n".join(it.text for it in blocks(page) if it.language == "python" and not it.file))
    monkeypatch.chdir(place)
    run_python(page, capsys)


def run_python(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the Python of a page, here. What is a file is loaded as a plug-in, unless it is a test.
    Numbers that are printed may be others: another version of NumPy may draw otherwise."""
    mpl.use("agg")
    names: dict[str, object] = {"odonata": odonata}
    for block in (it for it in blocks(page) if it.language == "python"):
        if block.file:
            if not block.file.startswith("test_") and block.file not in loaded():
                load_plugin(block.file)
            continue
        with warnings.catch_warnings():
            if "evalys" in block.text:  # it calls what pandas is about to remove
                warnings.simplefilter("ignore")
            exec(compile(block.text, str(block), "exec"), names)
        shown, printed = shown_after(block), capsys.readouterr().out
        assert shown is None or without_numbers(printed) == without_numbers(shown), block
        for picture in re.findall(r'"([\w-]+\.png)"', block.text):
            assert Path(picture).stat().st_size > 20_000, picture


def shown_after(block: Block) -> str | None:
    """Returns the text that a page shows directly below a block, as what it prints."""
    after = next((it for it in blocks(block.page) if it.line > block.line), None)
    between = after.line - block.line - block.text.count("\n") if after else 0
    return after.text if after and after.language == "text" and between == 3 else None


def without_numbers(text: str) -> list[str]:
    return re.sub(r"[\d.,]+", "0", text).split()


def loaded() -> set[str]:
    return {Path(path).name for path in PLUGINS}


# -- what pages promise


def test_ten_lines_lead_from_a_trace_to_a_figure() -> None:
    code = next(it for it in blocks(DOCS / "months-of-jobs.md") if it.language == "python")
    assert len(code.text.splitlines()) <= 10
    assert '"months.png"' in code.text


@pytest.mark.long
def test_the_tutorial_prints_what_it_shows_in_the_shell_and_in_python(
    place: Path,
    odonata: Callable[..., subprocess.CompletedProcess[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every line of a text is in what the commands above it printed; what is between may differ."""
    put_files(TUTORIAL, place)
    said, lines = "", 0
    for block in blocks(TUTORIAL):
        if block.language == "python":
            break
        if block.language == "sh":
            said = ""
            for words in commands(block):
                assert words[0] == "odonata", words
                done = odonata(*words[1:])
                assert done.returncode == 0, done.stderr
                said += " ".join(done.stdout.split())
        if block.language == "text":
            for line in block.text.splitlines():
                assert " ".join(line.split()) in said, line
                lines += 1
    assert lines > 20
    assert (place / "out" / "level-spread" / "report.html").stat().st_size > 100_000
    monkeypatch.chdir(place)
    run_python(TUTORIAL, capsys)


def test_the_job_patterns_of_the_page_about_patterns_run(
    place: Path, go: Callable[..., str]
) -> None:
    """With the JIT off, so that nothing need be compiled."""
    put_files(DOCS / "howto" / "own-pattern.md", place)
    shown = json.loads(go("run", "master.toml", "-o", "out", "--json", ODONATA_JIT="0"))
    assert [(job["pattern"], job["end_ps"] is not None) for job in shown["jobs"]] == [
        ("master", True), ("butterfly", True)
    ]  # fmt: skip


def test_the_traffic_patterns_of_the_page_about_patterns_go_where_it_says(place: Path) -> None:
    put_files(DOCS / "howto" / "own-pattern.md", place)
    for name in ("clustered.py", "halfway.py"):
        load_plugin(place / name)
    to = {name: REGISTERS["traffic"][name].destination for name in ("clustered", "halfway")}
    near = [to["clustered"](13, 72, 8, word) // 8 for word in range(100)]
    assert near.count(1) >= 80
    assert [to["halfway"](node, 72, 8, 0) for node in (0, 35, 36, 71)] == [36, 71, 0, 35]
