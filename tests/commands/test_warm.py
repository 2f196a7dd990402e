"""What `odonata warm` has compiled, a run does not compile."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from odonata.commands.warm import PARTS, variants
from policies.routing import ROUTINGS

Command = Callable[..., subprocess.CompletedProcess[str]]

EXPERIMENT = """
[machine]
preset = "kim-72"
[network]
routing = "minimal"
[traffic]
pattern = "uniform"
load = 0.1
warmup = "1 us"
[run]
duration = "2 us"
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text(EXPERIMENT)
    return file


def test_what_is_warm_is_not_compiled_again(
    odonata: Command, experiment: Path, tmp_path: Path
) -> None:
    warm = ["warm", str(experiment), "--jobs", "1", "--json"]
    odonata(*warm)  # the first may have to compile it
    facts = json.loads(odonata(*warm).stdout)
    (found,) = facts["variants"]
    assert (found["variant"], found["compiled"]) == (str(experiment), False)
    ran = odonata("run", str(experiment), "-o", str(tmp_path / "out"))
    assert "compil" not in ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.toml", "out"]


def test_without_a_file_it_is_every_routing_of_traffic_and_of_jobs(experiment: Path) -> None:
    every = [str(each) for each in variants((), (), ())]
    assert sorted(every) == sorted(f"{how} routing of {part}" for how in ROUTINGS for part in PARTS)
    assert [str(each) for each in variants([experiment], (), ())] == [str(experiment)]
    besides = [str(each) for each in variants([experiment], ["traffic"], ())]
    assert besides == [str(experiment), *sorted(one for one in every if one.endswith("traffic"))]


def test_a_file_that_is_wrong_is_refused_before_any_is_compiled(
    odonata: Command, experiment: Path
) -> None:
    other = experiment.with_name("other.toml")
    other.write_text(EXPERIMENT.replace('"minimal"', '"shortest"'))
    done = odonata("warm", str(experiment), str(other), "--jobs", "1")
    assert done.returncode != 0
    assert "network.routing" in done.stderr
    assert done.stdout == ""
