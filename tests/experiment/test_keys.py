"""Every key is made from the field that it sets; so are options."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import MISSING, fields
from typing import Any

import click
import pytest
from click.testing import CliRunner
from conftest import clean_environment

from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.agents.workload import Workload
from odonata.commands.options import network_options
from odonata.experiment.experiment import (
    COUNT,
    INCLUDE_KEY,
    KEYS,
    MIX_KEY,
    PRESET_KEY,
    ROUTER_KEY,
    SECTIONS,
    SENSITIVITY_KEY,
    Experiment,
    needs_jobs,
    of,
)
from odonata.experiment.keys import KINDS, PRESET, Key
from odonata.experiment.reading import parse
from odonata.experiment.sections import OF_NODES
from odonata.experiment.values import read, words_of
from odonata.jobs.request import Job
from topology import Dragonfly
from topology.presets import PRESETS
from topology.settings import settings_of

PARTS = {"machine", "traffic", "workload", "jobs", "power", "market", "numbers", "stages"}
"""Fields of a network, or of its workload, that are sections of their own."""
WORDS = [key for key in KEYS if key.kind == "word"]


def test_without_a_word_an_experiment_is_the_defaults_of_the_classes() -> None:
    made = parse("", "x.toml")
    assert made == Experiment("x", metrics=made.metrics)
    assert made.model() == Network(PRESETS[PRESET].machine, Traffic())


@pytest.mark.parametrize("owner", [Dragonfly, Network, Traffic, Workload, Job])
def test_every_field_of_a_part_can_be_set_and_has_one_key(owner: Any) -> None:
    declared = {one.name for one, _ in settings_of(owner)} | PARTS
    assert {f.name for f in fields(owner) if not f.name.endswith("_parameters")} <= declared


def test_a_path_names_one_key_and_every_key_but_six_sets_a_field() -> None:
    assert len({key.path for key in KEYS}) == len(KEYS)
    assert [key for key in KEYS if not key.field] == [
        INCLUDE_KEY, PRESET_KEY, ROUTER_KEY, MIX_KEY, COUNT, SENSITIVITY_KEY]  # fmt: skip
    assert {key.section for key in KEYS} == {"", *SECTIONS}


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_a_key_says_what_it_holds_and_its_default_reads_as_the_fields(key: Key) -> None:
    assert key.kind in KINDS
    assert key.about.endswith(".")
    assert key.default is not None or key.how.otherwise
    owners = {"traffic": Traffic, "jobs": Job, "scheduler": Workload, "nic": Workload,
              "network": Network}  # fmt: skip
    if key.default is not None and key.field and key.section in owners:
        owner = Network if key.field in OF_NODES else owners[key.section]
        field = next(f for f in fields(owner) if f.name == key.field)
        assert field.default is not MISSING
        assert read(key, key.default) == field.default


@pytest.mark.parametrize("key", WORDS, ids=lambda key: key.path)
def test_every_word_of_a_key_is_accepted(key: Key) -> None:
    assert words_of(key)
    for word in words_of(key):
        assert read(key, word) == word


def parts_of(network: Network) -> tuple[Traffic, ...]:
    return network.traffic if isinstance(network.traffic, tuple) else (network.traffic,)


def test_options_are_made_from_the_keys() -> None:
    @click.command()
    @network_options
    def tell(network: Network) -> None:
        (traffic,) = parts_of(network)
        print(traffic.messages, network.threshold, network.bias, traffic.stop_ps)

    def printed(*words: str) -> str:
        return CliRunner().invoke(tell, ["--preset", "codes-c", *words]).output

    assert printed() == "50 None None None\n"
    assert printed(
        "--messages", "any", "--bias", "-4 KiB", "--stop", "1us", "--threshold", "2"
    ) == ("None 2.0 -4096 1000000\n")
    assert "'many' is not a whole number; or any" in printed("--messages", "many")
    named = {option.name for option in tell.params}
    known = {key.option for section in ("machine", "network", "traffic") for key in of(section)}
    known |= {key.option for key in of("nic") if not needs_jobs(key)}
    assert named == known - {MIX_KEY.option} | {"seed", "plugins"}


def test_the_keys_of_a_machine_need_no_kernels() -> None:
    code = "import sys, odonata.commands.options; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env=clean_environment())
