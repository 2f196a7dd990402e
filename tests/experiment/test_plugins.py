"""Policies in an experiment file: their parameters, and plug-ins that bring them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import PATIENCE, clean_environment, command
from files import conforms, forget_plugins, refusal

from odonata.experiment.experiment import Experiment
from odonata.experiment.reading import load, parse
from pdes.errors import Refused
from policies.register import PLUGINS

DOC = (Path(__file__).parents[2] / "docs" / "policies.md").read_text()
PLUGIN = """
from odonata import allocation, discipline
from policies.parameters import parameter


@allocation("backwards", about="the last that are idle", source="a test")
def backwards(sight, job, rng, *,
              spare=parameter(0, unit="nodes", about="left idle", least=0),
              pause=parameter(0, unit="time", about="between two"),
              share=0.5, loud=False, tag="x"):
    return sight.labels[::-1][: job.nodes]


@discipline("newest", about="the newest first", source="a test", strict=False)
def newest(queue):
    return list(range(len(queue)))[::-1]
"""
FILE = """
plugins = ["mine.py"]
[[jobs]]
nodes = 4
[scheduler]
order = "newest"
[scheduler.allocation]
name = "backwards"
spare = 2
pause = "5 us"
share = 1
loud = true
tag = "y"
"""
GIVEN = (("spare", 2), ("pause", 5 * 10**6), ("share", 1.0), ("loud", True), ("tag", "y"))


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "mine.py").write_text(PLUGIN)
    (tmp_path / "mine.toml").write_text(FILE)
    yield tmp_path / "mine.toml"
    forget_plugins("backwards", "newest")


def refusals(path: Path, *changes: str) -> list[str]:
    with pytest.raises(Refused) as refused:
        load(path, changes)
    return str(refused.value).replace(f"{path}: ", "").split("\n")


def test_a_plugin_beside_the_file_brings_policies_with_parameters(file: Path) -> None:
    made = load(file)
    assert made.plugins == (str(file.parent / "mine.py"),)
    assert (made.scheduler.allocation, made.scheduler.order) == ("backwards", "newest")
    assert made.scheduler.allocation_parameters == GIVEN
    assert made.model().workload.allocation_parameters == GIVEN  # type: ignore[union-attr]
    assert 'allocation = { name = "backwards", spare = 2, pause = "5 us"' in made.to_toml()
    assert parse(made.to_toml(), "elsewhere/mine.toml") == made


def test_a_plugin_may_be_given_beside_the_file(file: Path) -> None:
    alone = FILE.replace('plugins = ["mine.py"]', "")
    (file.parent / "alone.toml").write_text(alone)
    assert load(file.parent / "alone.toml", ["name=mine"], [file.parent / "mine.py"]) == load(file)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("spar=3", "unknown; backwards has spare, pause, share, loud, tag; did you mean spare?"),
        ("spare=-1", "at least 0"),
        ("spare=two", "a whole number"),
        ("pause=5", 'a bare number; a time with its unit, as "1.5 us"'),
        ("pause=5 parsecs", "not a time: a number and one of ps, ns, us, ms, s, min, h, d"),
        ("loud=1", "true or false"),
    ],
)
def test_a_wrong_parameter_is_told_with_what_is_accepted(
    file: Path, change: str, line: str
) -> None:
    change = f"scheduler.allocation.{change}"
    assert refusals(file, change) == [f"--set {change}: {line}"]


def test_problems_of_a_table_are_told_with_the_file(file: Path) -> None:
    file.write_text(FILE.replace("spare = 2", "spare = 2.5").replace("tag", "tg"))
    assert refusals(file) == [
        "scheduler.allocation.tg: unknown; backwards has spare, pause, share, loud, tag; did you "
        "mean tag?",
        "scheduler.allocation.spare = 2.5: a whole number",
    ]
    assert refusal("[[jobs]]\nnodes = 2\n[scheduler.allocation]\nname = 'rdn'\nwidth = 3") == [
        "demo.toml: scheduler.allocation.width: unknown; rdn has no parameters"
    ]
    (line,) = refusal("[[jobs]]\nnodes = 2\n[scheduler.order]\nwidth = 3")
    assert line.startswith("demo.toml: scheduler.order = a table: its name is missing: one of fcfs")


def test_another_policy_takes_nothing_of_the_parameters_of_the_one_it_replaces(file: Path) -> None:
    made = load(file, ["scheduler.allocation=rdn"])
    assert (made.scheduler.allocation, made.scheduler.allocation_parameters) == ("rdn", ())
    whole = load(file, ["scheduler.allocation={name = 'backwards', spare = 7}"])
    assert whole.scheduler.allocation_parameters == (("spare", 7),)


def test_a_parameter_of_the_usual_policy_can_be_set_or_is_refused_too() -> None:
    change = "scheduler.allocation.width=8"
    assert refusal("[[jobs]]\nnodes = 2", change) == [
        f"--set {change}: unknown; level-spread has no parameters"
    ]
    assert refusal("", change) == [f"--set {change}: unknown; level-spread has no parameters"]


def test_a_plugin_that_cannot_be_loaded_is_told_once_with_its_line(file: Path) -> None:
    (file.parent / "mine.py").write_text("import os\n1 / 0\n")
    (line,) = refusals(file)
    assert line == (f'plugins = ["mine.py"]: plug-in {file.parent / "mine.py"}, line 2: '
                    "ZeroDivisionError: division by zero")  # fmt: skip


def test_a_plugin_that_has_been_moved_is_given_by_its_new_place(file: Path) -> None:
    made = load(file)
    moved = file.parent / "away" / "mine.py"
    moved.parent.mkdir()
    (file.parent / "mine.py").rename(moved)
    forget_plugins("backwards", "newest")
    (line,) = refusals(file)
    assert line.endswith("; --plugin PLACE/mine.py says where it has been moved to")
    again = load(file, plugins=[moved])
    assert again.plugins == (str(moved),)
    assert again.model() == made.model()
    (file.parent / "mine.py").write_text(PLUGIN)  # one that is there is the one that is meant
    assert load(file).plugins == (str(file.parent / "mine.py"),)


def test_a_file_stands_for_one_that_has_been_moved_and_not_for_two(file: Path) -> None:
    other = PLUGIN.replace("backwards", "forwards").replace("newest", "oldest")
    for place, text in (("a", PLUGIN), ("b", other)):
        (file.parent / place).mkdir()
        (file.parent / place / "mine.py").write_text(text)
    file.write_text(FILE.replace('["mine.py"]', '["was/a/mine.py", "was/b/mine.py"]'))
    a, b = (file.parent / place / "mine.py" for place in ("a", "b"))
    with pytest.raises(Refused, match=r"plug-in .*was/b/mine.py: No such file"):
        load(file, plugins=[a])
    assert load(file, plugins=[a, b]).plugins == (str(a), str(b))
    file.write_text(FILE.replace('["mine.py"]', '["was/mine.py"]').replace("newest", "youngest"))
    with pytest.raises(Refused, match=f"was/mine.py is not there, {a} was taken for it"):
        load(file, plugins=[a])
    forget_plugins("forwards", "oldest")


def test_another_name_has_none_of_the_parameters_of_the_file(file: Path) -> None:
    made = load(file, ["scheduler.allocation.name=rdn"])
    assert (made.scheduler.allocation, made.scheduler.allocation_parameters) == ("rdn", ())
    changes = ["scheduler.allocation.spare=5", "scheduler.allocation.name=backwards"]
    assert load(file, changes).scheduler.allocation_parameters == (("spare", 5),)


def test_a_routing_is_given_by_its_name_alone(file: Path) -> None:
    file.write_text('network.routing = { name = "ugal-l", threshold = 2.0 }')
    (line,) = refusals(file)
    assert line.endswith("by its name alone: its parameters are network.threshold and network.bias")


def test_what_a_run_left_is_read_without_the_plugin_and_says_what_is_missing(file: Path) -> None:
    text = load(file).to_toml()
    (file.parent / "mine.py").unlink()
    forget_plugins("backwards", "newest")
    made = parse(text, "out", stand_in=True)
    assert made.missing == ("allocation 'backwards'", "scheduling 'newest'")
    assert made.model().workload.allocation == "backwards"  # type: ignore[union-attr]
    assert made.to_toml() == text
    assert not PLUGINS
    with pytest.raises(Refused, match="No such file"):
        parse(text, "out")
    with pytest.raises(Refused, match=r'scheduler\.allocation = "backwards": one of'):
        parse(text.replace(f'"{file.parent / "mine.py"}"', ""), "out")


POWERED = """
plugins = ["powered.py"]
[power]
policy = { name = "sleepy", after = 60.0 }
cap = "100 W"
"""
PACKETS = POWERED + "[[jobs]]\nnodes = 4\n"
MONTHS = (
    'fidelity = "job"'
    + POWERED
    + """
[trace]
model = "lublin"
jobs = 3
nodes = 8
[market]
bidding = "shy"
"""
)
SLEEPY = """
from odonata import Bid, BiddingPolicy, PowerPolicy, bidding, parameter, power


@power("sleepy", about="whose idle nodes sleep", source="a test")
class Sleepy(PowerPolicy):
    after: float = parameter(0.0, about="s")

    @property
    def sleep_after_s(self):
        return self.after if self.after > 1.0 else -1.0


@bidding("shy", about="which offers nothing", source="a test")
class Shy(BiddingPolicy):
    def bid(self, market):
        return Bid(0.0, 0.0)
"""


@pytest.mark.parametrize(("text", "names"), [
    (PACKETS.replace("60.0", "1.0").replace('"100 W"', '"none"'), ("power 'sleepy'",)),
    (MONTHS, ("power 'sleepy'", "bidding 'shy'")),
])  # fmt: skip
def test_power_and_bidding_policies_may_be_gone_as_well(
    tmp_path: Path, text: str, names: tuple[str, ...]
) -> None:
    """100 W are enough only for nodes that sleep, which nobody can tell of what is gone."""
    (tmp_path / "powered.py").write_text(SLEEPY)
    (tmp_path / "x.toml").write_text(text)
    kept = load(tmp_path / "x.toml").to_toml()
    (tmp_path / "powered.py").unlink()
    forget_plugins("sleepy", "shy")
    made = parse(kept, "out", stand_in=True)
    assert made.missing == names
    assert made.to_toml() == kept


def test_an_experiment_that_needs_no_plugin_misses_none(file: Path) -> None:
    made: Experiment = parse(load(file).to_toml(), "out", stand_in=True)
    assert made.missing == ()
    conforms(tomllib.loads(FILE.replace("backwards", "rdn").replace("newest", "fcfs")))


def test_a_plugin_that_was_changed_is_another_run(file: Path) -> None:
    """Its checkpoints are not gone on with."""
    before = load(file).model().parameters()
    (file.parent / "mine.py").write_text(PLUGIN.replace("[::-1]", "[::-1].copy()"))
    after = load(file).model().parameters()
    assert set(json.loads(str(before["plugins"]))) == {"allocation backwards", "scheduling newest"}
    assert {**before, "plugins": ""} == {**after, "plugins": ""}
    assert before["plugins"] != after["plugins"]


@pytest.mark.long
def test_a_plugin_of_four_kinds_runs_on_two_ranks_and_its_run_is_read_without_it(
    odonata: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """The example of docs/policies.md; with the JIT off, so that nothing need be compiled."""
    code = next(it for it in re.findall(r"```python\n(.*?)```", DOC, re.DOTALL) if "mine.py" in it)
    policies = code.split("\n\n\n")[1:]
    assert [re.search(r"@(\w+)\(", it)[1] for it in policies] == [  # type: ignore[index]
        "routing", "allocation", "discipline", "pattern"
    ]  # fmt: skip
    assert all(len(it.splitlines()) < 25 for it in policies)
    (tmp_path / "mine.py").write_text(code)
    file = next(it for it in re.findall(r"```toml\n(.*?)```", DOC, re.DOTALL) if "kim-72" in it)
    (tmp_path / "mine.toml").write_text(file)
    words = ("run", "mine.toml", "--plugin", "mine.py", "--set", "jobs[0].message=64 B", "--json")
    ran = [odonata(*words, "-o", f"out-{ranks}", ranks=ranks, ODONATA_JIT="0") for ranks in (2, 1)]
    assert [done.returncode for done in ran] == [0, 0], [done.stderr for done in ran]
    digests = [json.loads(done.stdout)["digest"] for done in ran]
    assert digests[0] == digests[1]

    (tmp_path / "mine.py").unlink()
    four = "routing 'mine', pattern 'mine', allocation 'mine', scheduling 'mine'"
    for words in (("report", "out-2"), ("compare", "out-2", "out-1"), ("diff", "out-2", "out-1")):
        done = odonata(*words)
        assert done.returncode == 0, done.stderr
        said = [line for line in done.stderr.splitlines() if "missing" in line]
        assert len(said) == len(words) - 1
        assert all(f"mine.py) of {four} is missing" in line for line in said), said
    assert "is missing; all that was" in " ".join(odonata("watch", "out-2").stdout.split())
    read = "import odonata; run = odonata.open('out-2'); print(run, len(run.job_records))"
    opened = subprocess.run([sys.executable, "-c", read], cwd=tmp_path, capture_output=True,
                            text=True, check=True)  # fmt: skip
    assert f"the plug-in of {four} is missing" in opened.stdout
    assert opened.stdout.endswith(" 4\n")


STOPS_ITSELF = """
import os, signal
from odonata import allocation


@allocation("last", about="the last that are idle", source="a test")
def last(sight, job, rng):
    if "STOP_HERE" in os.environ:
        os.kill(os.getpid(), signal.SIGTERM)
    return sight.labels[::-1][: job.nodes]
"""
RUN = """
plugins = ["mine.py"]
machine.preset = "kim-72"
[[jobs]]
nodes = 4
message = "64 B"
[scheduler]
allocation = "last"
"""


@pytest.mark.long
def test_a_run_goes_on_with_its_plugin_elsewhere_and_not_with_another(
    odonata: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """What is in the file counts, and not where it is."""
    (tmp_path / "mine.py").write_text(STOPS_ITSELF)
    (tmp_path / "mine.toml").write_text(RUN)

    def run(*words: str, status: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        done = odonata("run", *words, "--json", ODONATA_JIT="0", **more)
        assert done.returncode == status, done.stderr
        return done

    whole = json.loads(run("mine.toml", "-o", "whole").stdout)
    stopped = json.loads(run("mine.toml", "-o", "out", STOP_HERE="1").stdout)
    assert (whole["completed"], stopped["completed"]) == (True, False)

    (tmp_path / "away").mkdir()
    (tmp_path / "mine.py").rename(tmp_path / "away" / "mine.py")
    assert "--plugin PLACE/mine.py" in run("--resume", "-o", "out", status=2).stderr

    (tmp_path / "edited").mkdir()
    (tmp_path / "edited" / "mine.py").write_text(STOPS_ITSELF.replace("[::-1]", ""))
    other = run("--resume", "-o", "out", "--plugin", "edited/mine.py", status=2).stderr
    assert "edited/mine.py (which brings allocation last) has changed since this run" in other

    went_on = json.loads(run("--resume", "-o", "out", "--plugin", "away/mine.py").stdout)
    assert went_on["digest"] == whole["digest"]
    assert "away/mine.py" in (tmp_path / "out" / "experiment.toml").read_text()
    run("mine.toml", "-o", "bare", "--no-metrics", "--plugin", "away/mine.py", STOP_HERE="1")
    words = ("--resume", "-o", "bare", "--no-metrics")
    (tmp_path / "away" / "mine.py").write_text(STOPS_ITSELF + "# edited")
    assert "has changed since" in run(*words, status=2).stderr
    (tmp_path / "away" / "mine.py").write_text(STOPS_ITSELF)
    assert json.loads(run(*words).stdout)["digest"] == whole["digest"]
    in_table = re.search(r"simulated .*?([0-9.]+) us", odonata("compare", "out", "whole").stdout)
    assert in_table
    watched = odonata("watch", "whole").stdout
    assert f" {float(in_table[1]):g} us " in watched  # and not when it was noticed


ROUTINGS = """
from odonata import routing


@routing("fine", sees="nothing", about="now and then", source="a test")
def fine(minimal, valiant, threshold, bias, word):
    return word < 2**30
"""


def test_a_routing_of_ones_own_is_measured_by_its_name(
    odonata: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(ROUTINGS)
    own = ("--plugin", "mine.py", "--preset", "kim-72", "--json")
    phases = ("--loads", "0.1", "--warmup", "100ns", "--measure", "300ns", "--drain", "200ns")
    done = odonata("latency", *own, *phases, "--routing", "fine,minimal", "--jobs", "1",
                   ODONATA_JIT="0")  # fmt: skip
    assert done.returncode == 0, done.stderr
    curves = json.loads(done.stdout)["curves"]
    assert [curve["routing"] for curve in curves] == ["fine", "minimal"]
    unknown = odonata("bench", "dragonfly", *own[2:], "--routing", "fine")
    assert unknown.returncode == 2


RAISES = """
import os, signal
from odonata import allocation


@allocation("last", about="one that raises", source="a test")
def last(sight, job, rng):
    {}
"""


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "SystemExit"])
def test_a_policy_that_raises_what_is_no_exception_is_named(
    odonata: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
    raised: str,
    ranks: int,
) -> None:
    """Python's own words for "the user pressed Ctrl-C" and "end here" are a mistake of the
    plug-in's where no signal has come."""
    (tmp_path / "mine.py").write_text(RAISES.format(f"raise {raised}('of mine')"))
    (tmp_path / "mine.toml").write_text(RUN)
    done = odonata("run", "mine.toml", "-o", "out", ranks=ranks, ODONATA_JIT="0")
    assert done.returncode == 1
    said = f"allocation last, asked for 4 nodes, failed: {raised}: of mine ("
    assert said in done.stderr
    assert f"{tmp_path / 'mine.py'}, line 8)" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "SystemExit"])
def test_a_plugin_that_raises_what_is_no_exception_while_it_is_loaded_is_named(
    odonata: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, raised: str
) -> None:
    (tmp_path / "mine.py").write_text(f"raise {raised}('of mine')")
    (tmp_path / "mine.toml").write_text(RUN)
    done = odonata("run", "mine.toml", "-o", "out", ODONATA_JIT="0")
    assert done.returncode == 2
    assert f"plug-in {tmp_path / 'mine.py'}, line 1: {raised}: of mine" in done.stderr


def test_ctrl_c_while_a_policy_decides_is_no_mistake_of_the_policy(tmp_path: Path) -> None:
    """In a process of its own, that heeds SIGINT also where these tests were told to ignore it."""
    (tmp_path / "mine.py").write_text(RAISES.format("os.kill(os.getpid(), signal.SIGINT)"))
    (tmp_path / "mine.toml").write_text(RUN)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        done = subprocess.run(
            command("run", "mine.toml", "-o", "out"), capture_output=True, text=True, cwd=tmp_path,
            timeout=PATIENCE, check=False, env={**clean_environment(), "ODONATA_JIT": "0"},
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.returncode == 130
    assert "odonata: interrupted; what was measured is in out" in done.stderr
    assert "failed" not in done.stderr
