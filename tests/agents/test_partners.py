"""Traffic in which every node has a fixed partner: the patterns of the field, by their definitions;
and messages of several sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import SMALL, US, alone

from odonata.agents.layout import DELIVERED
from odonata.agents.network import Network
from odonata.agents.partners import FIXED
from odonata.agents.traffic import Traffic
from odonata.experiment.experiment import Experiment
from odonata.experiment.reading import parse
from odonata.results.performance import performance
from pdes.errors import Refused
from topology import Dragonfly

machines = st.builds(
    lambda p, a, g: Dragonfly(p, a, 9, g, links_per_pair=None if g == 1 else 1),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 9),
).filter(lambda machine: machine.n_nodes > 1)
POWER = Dragonfly(4, 4, 2, 8, links_per_pair=1)
"""128 nodes."""


def bits(node: int) -> str:
    return f"{node:07b}"


@pytest.mark.parametrize(
    ("pattern", "rule"),
    [
        ("bit-complement", lambda word: "".join("10"[int(bit)] for bit in word)),
        ("bit-reverse", lambda word: word[::-1]),
        ("shuffle", lambda word: word[1:] + word[0]),
    ],
)
def test_on_a_power_of_two_bits_are_moved_as_the_textbook_says(pattern: str, rule: object) -> None:
    to = FIXED[pattern].partners(POWER, 1)
    assert [bits(node) for node in to.tolist()] == [
        rule(bits(node)) for node in range(128)]  # type: ignore[operator]  # fmt: skip


@given(machines, st.sampled_from(sorted(FIXED)), st.integers(0, 2**32))
def test_every_node_is_the_partner_of_one(machine: Dragonfly, pattern: str, seed: int) -> None:
    fixed = FIXED[pattern]
    if fixed.problem(machine):
        with pytest.raises(Refused, match="it needs"):
            Network(machine, Traffic(pattern))
        return
    to = fixed.partners(machine, seed)
    assert sorted(to.tolist()) == list(range(machine.n_nodes))
    whole = Traffic(pattern).partners(machine, seed, 0, machine.n_nodes)
    half = machine.n_nodes // 2
    assert (Traffic(pattern).partners(machine, seed, half, machine.n_nodes) == whole[half:]).all()


def test_tornado_goes_almost_half_around_the_groups() -> None:
    assert FIXED["tornado"].partners(SMALL, 1)[:9].tolist() == [*range(32, 41)]
    assert FIXED["tornado"].partners(POWER, 1)[0] == 3 * 16
    assert "three groups" in FIXED["tornado"].problem(Dragonfly(2, 2, 1, 2))


def test_neighbours_and_what_no_machine_can_have() -> None:
    assert FIXED["neighbour"].partners(SMALL, 1).tolist() == [*range(1, 72), 0]
    assert FIXED["bit-reverse"].problem(SMALL) == (
        "a power of two of nodes, as 64 or 128; this machine has 72"
    )
    assert "even" in FIXED["shuffle"].problem(Dragonfly(1, 3, 1, 3))


@pytest.mark.parametrize("pattern", ["tornado", "bit-complement", "shuffle", "neighbour"])
def test_messages_go_to_the_partner_and_nowhere_else(pattern: str) -> None:
    model = Network(SMALL, Traffic(pattern, 0.3, messages=2))
    result = alone(model, 100 * US)
    partners = FIXED[pattern].partners(SMALL, 1)
    delivered = 2 * np.bincount(partners[partners != np.arange(72)], minlength=72)
    assert result.outcome["nodes"][:, DELIVERED].tolist() == delivered.tolist()
    assert performance(model, result).messages == delivered.sum()


# -- messages of several sizes


def made(text: str) -> Experiment:
    found = parse(text, "mix.toml")
    assert isinstance(found, Experiment)
    return found


MIX = '[machine]\npreset = "kim-72"\n[traffic]\nload = 0.4\nmix = [["64 B", 9], ["2 KiB", 1]]\n'


def test_a_mix_is_a_traffic_for_each_size_that_together_offer_the_load() -> None:
    small, large = made(MIX).traffic
    assert (small.message_bytes, large.message_bytes) == (64, 2048)
    assert small.load + large.load == pytest.approx(0.4)
    rates = [it.load / it.message_bytes for it in (small, large)]
    assert rates[0] / rates[1] == pytest.approx(9)
    assert made(made(MIX).to_toml()).traffic == (small, large)


def test_a_mix_arrives_in_its_parts() -> None:
    experiment = made(MIX + "[run]\nduration = '40 us'\n")
    found = performance(experiment.model(), alone(experiment.model(), experiment.run.end or 0))
    assert found.offered == pytest.approx(0.4, rel=0.05)
    mean_size = 0.9 * 64 + 0.1 * 2048
    expected = 0.4 * 72 * experiment.machine.terminal.bandwidth * 40e-6 / mean_size
    assert found.messages == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('message = "1 KiB"', "not beside mix"),
        ("messages = 3", "not beside mix"),
        ('arrivals = "bernoulli"', "only with Poisson arrivals"),
    ],
)
def test_what_a_mix_cannot_be_is_refused(more: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        made(MIX + more)


def test_a_problem_of_one_of_several_sizes_names_the_section() -> None:
    two = '[[traffic]]\nload = 0.1\nmix = [["64 B", 1], ["1 KiB", 1]]\n[[traffic]]\nstride = 0\n'
    with pytest.raises(Refused, match=r"traffic\[1\]\.stride = 0"):
        made(two + 'pattern = "adversarial"')
