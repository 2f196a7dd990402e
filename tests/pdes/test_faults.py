"""A rule broken on one rank ends every rank, with that reason and no other. Needs processes of its
own: what is tested is that they end."""

from __future__ import annotations

import subprocess
from typing import Any

import numpy as np
import pytest
from conftest import model_on_two_ranks
from threads import go

from pdes.errors import Fault
from pdes.phold import Phold
from pdes.rules import Rules


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


class Uneven(Phold):
    """Has a row whose words are as many as the agents of a rank."""

    def fingerprint(self, state: Any) -> Any:
        return np.zeros((1, len(state.handled)))


def test_rows_that_depend_on_a_ranks_part_are_a_fault_and_not_a_truncated_message() -> None:
    model = Uneven(processes=5, population=2)
    go(model, 10**6, 1)
    with pytest.raises(AssertionError, match=r"`fingerprint` have \(2,\) on rank 0 and \(3,\) on"):
        go(model, 10**6, 2)


def test_a_rank_that_has_another_outcome_is_named() -> None:
    rules = Rules(Phold(), 1, 0)
    rules.same_on_all_ranks("outcome", [["a"], ["a"], ["a"]])
    with pytest.raises(
        Fault, match=r"phold: rows of `outcome` have \['a'\] on rank 0 and \[\] on rank 2"
    ):
        rules.same_on_all_ranks("outcome", [["a"], ["a"], []])
