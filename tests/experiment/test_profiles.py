"""Application profiles: those that come with the package, and a user's in TOML."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import odonata
from odonata.experiment.profiles import built_in, parsed, profile
from odonata.experiment.reading import load, parse
from odonata.figures import report
from odonata.results.execution import RunOptions, execute
from pdes.errors import Refused

DOCS = Path(__file__).parents[2] / "docs" / "applications.md"
JOB = """
machine.preset = "kim-72"
[[jobs]]
nodes = 8
profile = "mine.toml"
"""
APPLICATIONS = ("graph500", "hacc", "hpcg", "lammps", "milc", "miniamr", "minimd", "qmcpack")


GOOD = ("run_time_s = 1\ncommunication = 0.5\nrank_bytes_per_s = 2\nsends_per_s = 1\n"
        "allreduces_per_s = 1\n")  # fmt: skip


def refusal(text: str) -> list[str]:
    with pytest.raises(Refused) as refused:
        parsed(text, "mine", "mine.toml")
    return str(refused.value).split("\n")


def blocks() -> list[str]:
    return re.findall(r"```toml\n(.*?)```", DOCS.read_text(), re.DOTALL)


def test_the_example_of_the_docs_is_short_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under 30 lines, as it stands; the experiment beside it refers to it."""
    (example,) = (block for block in blocks() if block.startswith("# stencil.toml"))
    (job,) = (block for block in blocks() if "stencil.toml" in block and "[[jobs]]" in block)
    assert len(example.splitlines()) < 30
    (tmp_path / "stencil.toml").write_text(example)
    above = 'machine.preset = "kim-72"\nnetwork.routing = "adaptive"\n'
    (tmp_path / "mine.toml").write_text(above + job)
    finished = execute(RunOptions(tmp_path / "mine.toml", out=tmp_path / "out"))
    assert finished is not None
    with odonata.open(tmp_path / "out") as run:
        assert run.jobs.pattern.item() == "stencil"
        assert run.jobs.communication.item() > 0
        found = run.job_network[0]
        assert found.stages == ("exchange", "look up", "norm")
        assert found.packets == run.nodes.received_packets.sum().item()
        assert (run.read("jobs/latencies").sum(axis=0)
                == run.groups.latencies.sum(("time", "group")).data).all()  # fmt: skip
        monkeypatch.setattr(report, "inlined", lambda *_: "")  # the text will do
        assert "stencil" in report.page(run)
    (tmp_path / "stencil.toml").unlink()  # a run opens without its profile
    with odonata.open(tmp_path / "out") as run:
        assert not run.missing
        assert run.jobs.communication.item() > 0
        assert run.job_network[0].stages == ("exchange", "look up", "norm")


@pytest.mark.parametrize("name", built_in())
def test_every_profile_says_where_it_comes_from(name: str) -> None:
    found = profile(name)
    assert found.about
    assert found.source
    if name in APPLICATIONS:
        assert found.measured is not None
        assert found.sensitive is (name not in ("graph500", "hpcg"))
        assert found.measured.communication == pytest.approx(
            sum(part for _, part in found.measured.operations), abs=0.012
        )


def test_a_job_with_a_profile_is_written_and_read_again(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[[stages]]\nmessage = '1 KiB'\n")
    path = tmp_path / "experiment.toml"
    path.write_text(JOB)
    made = load(path)
    assert made.jobs[0].profile == str(tmp_path / "mine.toml")
    assert parse(made.to_toml(), "elsewhere/experiment.toml") == made


def test_the_sizes_of_a_profile_follow_the_tasks_of_a_node() -> None:
    text = "[[jobs]]\nnodes = 8\nprofile = 'milc'\n[scheduler]\ntasks_per_node = {}"
    two, four = (parse(text.format(tasks), "demo.toml").jobs[0].stages[0] for tasks in (2, 4))
    assert two.message_bytes == 2 * four.message_bytes


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ["mine.toml: needs at least one [[stages]]"]),
        ("stages = 3", ["mine.toml: needs at least one [[stages]]"]),
        ("[[stages]]\npatern = 'halo3d'", ["mine.toml: stages[0].patern: unknown; did you mean "
                                           "pattern?"]),
        ("[[stages]]\nmessage = 8", ['mine.toml: stages[0].message = 8: a bare number; a size with '
                                     'its unit, as "4 KiB"']),
        ("[[stages]]\n[[stages]]\nwait = 'forever'",
         ['mine.toml: stages[1].wait = "forever": one of messages, departures, replies, nothing']),
        ("[[stages]]\nrepeat = 0", ["mine.toml: stages[0].repeat = 0: 1 .. 2**20"]),
        ("[[stages]]\nmessage = '0 B'\nreply = '0 B'\ncompute = '2 h'",
         ['mine.toml: stages[0].message = "0 B": at least 1 B, below 1 TiB',
          'mine.toml: stages[0].reply = "0 B": at least 1 B, below 1 TiB',
          'mine.toml: stages[0].compute = "2 h": 0 .. an hour']),
        ("iterations = 0\n[[stages]]", ["mine.toml: iterations = 0: 1 .. 2**23 - 1"]),
        ("[[stages]]\nimbalance = -1", ["mine.toml: stages[0].imbalance = -1: 0 .. 100"]),
        ("measured = 3\n[[stages]]", ["mine.toml: measured = 3: a table"]),
        ("nodes = -3\n[[stages]]", ["mine.toml: nodes = -3: at least 1, or unknown"]),
        (f"[[stages]]\n[measured]\n{GOOD}operations = 3",
         ["mine.toml: measured.operations = 3: a table"]),
        (f"[[stages]]\n[measured]\n{GOOD}operations = {{ wait = 2 }}",
         ["mine.toml: measured.operations.wait = 2: a number, 0 .. 1"]),
        (f"[[stages]]\n[measured]\n{GOOD}operations = {{ waits = 0.2 }}",
         ["mine.toml: measured.operations.waits: unknown; one of allreduce, bcast, p2p, wait, "
          "test, barrier, other"]),
        (f"[[stages]]\n[measured]\n{GOOD.replace('0.5', '5')}".replace("= 2", "= nan"),
         ["mine.toml: measured.communication = 5: a number, 0 .. 1",
          "mine.toml: measured.rank_bytes_per_s = nan: a number, at least 0"]),
        ("[[stages]", ["mine.toml: line 1, column 9: Expected ']]' at the end of an array "
                       "declaration"]),
        ("nodes = 'few'\nspeed = 3\n[[stages]]\ncompute = 'long'",
         ['mine.toml: nodes = "few": a whole number, or unknown',
          "mine.toml: speed: unknown; one of about, source, iterations, tasks_per_node, nodes, "
          "sensitive",
          'mine.toml: stages[0].compute = "long": not a time: a number and one of ps, ns, us, ms, '
          "s, min, h, d"]),
    ],
)  # fmt: skip
def test_wrong_stages_are_refused_by_name(text: str, lines: list[str]) -> None:
    assert refusal(text) == lines


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("profile = 'milk'", "did you mean milc?"),
        ("profile = 'gone.toml'", "there is no such file"),
        ("profile = 'milc'\npattern = 'halo3d'", "the stages of profile milc say that"),
        ("profile = 'milc'\nmessage = '1 KiB'\ncompute = '1 us'", "the stages of profile milc"),
        ("on = [1, 2]", "as many labels as it has nodes"),
        ("on = '0-6'", "as many labels as it has nodes"),
        (
            "nodes = 4\non = '0-3'\n[[jobs]]\nnodes = 4\nname = 'load'\nbackground = true\n"
            "on = '3-6'",
            "node 3 is also one of load, which is in the background",
        ),
        ("on = '3-1'", "3-1 has no numbers"),
        ("on = '0-3, 99-999999999999'", "at most 10,000,000"),
    ],
)
def test_a_job_with_a_wrong_profile_is_refused(text: str, words: str) -> None:
    if "message" in text:
        text = text.replace("'1 KiB'", "'2 KiB'")
    with pytest.raises(Refused, match=re.escape(words)):
        parse(f"[[jobs]]\n{'' if text.startswith('nodes') else 'nodes = 4'}\n{text}", "demo.toml")


@pytest.mark.parametrize(
    ("text", "labels"),
    [("0-3", (0, 1, 2, 3)), ("0-7:2", (0, 2, 4, 6)), (" 9, 3 - 5", (9, 3, 4, 5))],
)
def test_ranges_name_nodes(text: str, labels: tuple[int, ...]) -> None:
    experiment = parse(f"[[jobs]]\nnodes = 4\non = '{text}'", "demo.toml")
    assert experiment.jobs[0].on == labels


def test_a_run_keeps_the_stages_of_its_profile(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[[stages]]\npattern = "halo3d"\nmessage = "20 KiB"\n'
                    'name = "ghost \\"cells\\""\n'
                    '[[stages]]\npattern = "allreduce"\ncompute = "30 us"\nimbalance = 0.1\n'
                    'wait = "replies"\nreply = "8 B"\ngrid = "auto"\nrepeat = 3\n')  # fmt: skip
    text = "[[jobs]]\nnodes = 4\nprofile = 'mine.toml'\non = '0-6:2'"
    made = parse(text, str(tmp_path / "demo.toml"))
    kept = made.to_toml()
    assert 'on = "0-6:2"' in kept
    assert 'pattern = "all-to-all"\n' not in kept
    file.unlink()
    again = parse(kept, "elsewhere.toml")
    assert again == made
    assert again.to_toml() == kept
    assert not again.missing
    other = parse(kept, "elsewhere.toml", ["jobs[0].profile=milc"])
    assert other.jobs[0].stages == profile("milc").stages


def test_stages_may_stand_in_the_experiment() -> None:
    inside = ("[[jobs]]\nnodes = 4\n[[jobs.stages]]\npattern = 'halo2d'\nmessage = '2 KiB'\n"
              "[[jobs.stages]]\npattern = 'allreduce'")  # fmt: skip
    job = parse(inside, "demo.toml").jobs[0]
    assert [(stage.pattern, stage.message_bytes) for stage in job.stages] == [
        ("halo2d", 2048), ("allreduce", 1024)]  # fmt: skip
    assert job.does == "halo2d + allreduce"
    wrong = inside.replace("halo2d", "halo9d") + "\nrepeat = 0"
    with pytest.raises(Refused) as refused:
        parse(wrong, "demo.toml")
    lines = str(refused.value).splitlines()
    assert lines[0].startswith('demo.toml: jobs[0].stages[0].pattern = "halo9d": one of all-to-all')
    assert lines[1] == "demo.toml: jobs[0].stages[1].repeat = 0: 1 .. 2**20"
    with pytest.raises(Refused, match="its stages say that"):
        parse(inside.replace("nodes = 4", "nodes = 4\npattern = 'incast'"), "demo.toml")


def test_stages_that_do_not_fit_a_job_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        "[[stages]]\npattern = 'uniform'\ngrid = [2, 4]\n"
        "[[stages]]\npattern = 'halo2d'\ngrid = [3, 3]\n"
    )
    file = str(tmp_path / "demo.toml")
    with pytest.raises(Refused) as refused:
        parse("[[jobs]]\nnodes = 4\nprofile = 'mine.toml'", file)
    words = str(refused.value)
    for name in ("stages[0].grid = 2 × 4: uniform is on no grid",
                 "stages[1].grid = 3 × 3: it has 9 places for the job's 8 tasks"):  # fmt: skip
        assert f"{tmp_path / 'mine.toml'}: {name}" in words
    (tmp_path / "mine.toml").write_text("iterations = 9000\n[[stages]]\nrepeat = 1000")
    with pytest.raises(Refused, match=r"mine.toml: iterations = 9000: at most 8388, on so many"):
        parse("[[jobs]]\nnodes = 4\nprofile = 'mine.toml'", file)
    with pytest.raises(Refused, match=r"jobs\[0\].iterations = 3000000: at most"):
        parse("[[jobs]]\nnodes = 400\npattern = 'uniform'\niterations = 3_000_000", file)
