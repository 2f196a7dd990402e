"""`odonata schema` shows every key, and its JSON Schema accepts what is accepted."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from files import FILES, OPEN, SCHEMA, WRONG, attempt, conforms, fits, written

from odonata.commands.cli import cli
from odonata.experiment.experiment import KEYS, SECTIONS, needs_jobs, of
from odonata.experiment.keys import Key
from odonata.experiment.reading import parse


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_schema_accepts_what_we_ship(path: Path) -> None:
    conforms(tomllib.loads(path.read_text()))


def test_the_schema_shows_every_key_and_its_default_conforms() -> None:
    for key in KEYS:
        part = SCHEMA["properties"][key.section] if key.section else SCHEMA
        part = part["anyOf"][0] if "anyOf" in part else part.get("items", part)
        name, _, seeded = key.name.partition(".")
        shown = part["properties"][name]
        shown = shown["anyOf"][1]["properties"][seeded] if seeded else shown
        assert shown["description"].startswith(key.about)
        default = [*key.default] if isinstance(key.default, tuple) else key.default
        assert shown.get("default") == default
        if default is not None:
            conforms(default, shown)


BEYOND = {'"1e999 MW"', '"1e999 MWh"', '"0.5 ps"', '"1e30 s"', '"0.5 B"', '"1e99 GiB"',
          '"0 GB/s"', '"1e999 GB/s"'}  # fmt: skip
"""What no pattern can tell."""


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_the_schema_refuses_what_is_of_another_kind(key: Key) -> None:
    for value in WRONG[key.kind]:
        tree = tomllib.loads(written({key.path: value}))
        tree = tree | {"jobs": [{"nodes": 2} | tree["jobs"]]} if "jobs" in tree else tree
        assert value in BEYOND or not fits(tree), value


@pytest.mark.parametrize("key", [k for k in KEYS if k.kind in ("whole", "number")],
                         ids=lambda key: key.path)  # fmt: skip
def test_the_limits_in_the_schema_are_those_that_are_enforced(key: Key) -> None:
    def complaints(value: float) -> list[str]:
        jobs = "jobs = [{nodes = 2}]\n" * (needs_jobs(key) or key.section == "power")
        room = {"machine": {"machine.links_per_pair": "1"},
                "market": {"market.signal": '"synthetic"'}}.get(key.section, {})  # fmt: skip
        if key.section == "jobs":
            jobs, room = "", {"jobs.nodes": "2"}
        text = written(room | {key.path: str(value)}).replace("[jobs]", "[[jobs]]")
        if key.section in ("trace", "market"):
            jobs = 'fidelity = "job"\n'
        _, problems = attempt(jobs + text)
        path = key.path.replace("jobs.", "jobs[0].")
        return [line for line in problems if f": {path} = " in line]

    for limit, step in ((key.how.least, -1), (key.how.above, 0), (key.how.most, 1)):
        if limit is not None:
            assert complaints(limit + step), limit
    if key.how.least is not None and key.path != "machine.global_links":
        assert not complaints(key.how.least)
    if key.how.above is not None:
        assert not complaints(key.how.above + 1e-3)


def test_the_template_loads_and_is_all_defaults() -> None:
    text = CliRunner().invoke(cli, ["schema", "--toml"]).stdout
    assert parse(text, "experiment.toml") == parse("", "experiment.toml")
    assert max(map(len, text.splitlines())) <= 100
    conforms(tomllib.loads(text))
    everything = re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE)
    assert parse(everything, "x.toml") == parse("", "experiment.toml")
    assert sum(map(len, tomllib.loads(everything).values())) > len(OPEN)
    shown = re.sub(r"^#(\w+ = |\[)", r"\1", text, flags=re.MULTILINE)
    jobs = re.sub(r"\[traffic\].*?(?=\n# A job)", "", shown, flags=re.DOTALL)
    made = parse(jobs, "x.toml")
    assert made == parse("[[jobs]]\nnodes = 16", "x.toml")
    assert set(tomllib.loads(jobs)["jobs"][0]) == {key.name for key in of("jobs")}


def test_the_table_shows_every_key() -> None:
    shown = CliRunner().invoke(cli, ["schema"]).stdout
    assert all(re.search(rf"^ *{key.name} ", shown, re.MULTILINE) for key in KEYS)
    assert "[[jobs]]" in shown
    assert all(f"[{section}]" in shown for section in SECTIONS)
    assert json.loads(CliRunner().invoke(cli, ["schema", "--json"]).stdout) == SCHEMA
