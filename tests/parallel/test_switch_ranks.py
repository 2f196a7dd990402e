"""Routers with a crossbar and nodes that push back, on as many ranks as these tests are run on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import US, alone, network

from odonata.results.performance import performance
from pdes.driver import run
from pdes.transport import world

pytestmark = pytest.mark.mpi(min_size=2)

EVERYTHING: dict[str, Any] = {
    "crossbar": 1.2, "routing": "adaptive", "sight": "output", "credits": "flit", "detours": True,
    "arbiter": "age", "output_buffer": 1024, "allocation_ps": 3_000, "credit_delay_ps": 5_000,
    "ejection": 6e9, "ejection_buffer": 1024, "injection_channels": 2,
}  # fmt: skip
DIRECT: dict[str, Any] = EVERYTHING | {
    "routing": "par", "sight": "far", "credits": "head", "output_buffer": None,
    "arbiter": "round-robin", "duplex": "half", "ejection": 40e9, "injection_channels": 1,
    "load": 0.15, "ejection_buffer": 8192, "local_buffer": 8192, "global_buffer": 8192,
}  # fmt: skip
"""At a higher load its half-duplex nodes would deadlock."""


@pytest.mark.parametrize("protocol", ["window", "null"])
@pytest.mark.parametrize("inside", [EVERYTHING, DIRECT], ids=["buffered", "direct"])
def test_the_answer_is_that_of_one_rank(inside: dict[str, Any], protocol: str) -> None:
    model = network(**inside)
    result = run(model, 3 * US, protocol=protocol, show_compiling=False)
    here = alone(model)
    assert result.ranks == world().size
    assert result.digest == here.digest
    assert performance(model, result) == performance(model, here)
    assert (result.outcome["inputs"] == here.outcome["inputs"]).all()


def test_a_checkpoint_in_the_middle_changes_nothing_inside_a_crossbar(tmp_path: Path) -> None:
    place = Path(world().everyone(str(tmp_path))[0])
    model = network(**EVERYTHING)
    run(model, 2 * US + 1, checkpoint_dir=place, checkpoint_every=US)
    resumed = run(model, 4 * US, checkpoint_dir=place, resume=place)
    assert resumed.resumed_ps == 2 * US
    assert resumed.digest == alone(model, 4 * US).digest
