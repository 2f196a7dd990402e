"""Routers with a crossbar and nodes that push back, on as many ranks as these tests are run on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import DIRECT, EVERYTHING, US, alone, network

from odonata.results.performance import performance
from pdes.driver import run
from pdes.transport import world

pytestmark = pytest.mark.mpi(min_size=2)


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
