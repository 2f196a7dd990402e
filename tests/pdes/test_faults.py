"""A rule broken on one rank ends every rank, with that reason and no other. Needs processes of its
own: what is tested is that they end."""

from __future__ import annotations

import subprocess

import pytest
from conftest import model_on_two_ranks


def rogue_run(parameters: str, protocol: str) -> subprocess.CompletedProcess[str]:
    return model_on_two_ranks(f"Rogue({parameters})", 10**9, protocol)


RULES = [
    ("delay=-300", "rank 0: rogue: event 'tick' at agent 0 port 0, 0 ps made"),
    ("target=3, delay=7", "after 7 ps: less than the lookahead of 500000 ps"),
    ("target=99", "there are only 4 agents"),
]


@pytest.mark.parametrize(
    ("parameters", "reason", "protocol"),
    [(*RULES[1], "null"),
     *(pytest.param(*rule, protocol, marks=pytest.mark.long)
       for rule in RULES for protocol in ("window", "null")
       if (rule, protocol) != (RULES[1], "null"))],
)  # fmt: skip
def test_a_fault_on_one_rank_ends_all(parameters: str, reason: str, protocol: str) -> None:
    done = rogue_run(parameters, protocol)
    assert done.returncode == 1
    assert done.stderr.count(reason) == 1
    assert done.stderr.count("odonata: rank") == 1
