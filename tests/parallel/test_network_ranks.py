"""The network, on as many ranks as these tests are run on: the same bytes as on one."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from machines import PARALLEL, PATTERNS, ROUTINGS, SMALL, US, alone, network

from odonata.results.performance import performance
from pdes.driver import run
from pdes.errors import Fault
from pdes.transport import world

pytestmark = pytest.mark.mpi(min_size=2)


@pytest.mark.parametrize("protocol", ["window", "null"])
@pytest.mark.parametrize(
    ("routing", "pattern"),
    [*product(ROUTINGS, ("uniform", "adversarial")), *product(("ugal-l",), PATTERNS[2:])],
)
def test_every_routing_and_traffic_gives_the_same_digest(
    routing: str, pattern: str, protocol: str
) -> None:
    model = network(routing=routing, pattern=pattern)
    result = run(model, 3 * US, protocol=protocol, show_compiling=False)
    here = alone(model)
    assert result.ranks == world().size
    assert result.digest == here.digest
    figures = performance(model, result)
    assert figures == performance(model, here)
    assert figures.packets > 0


@pytest.mark.parametrize("protocol", ["window", "null"])
def test_parallel_cables_by_router_store_and_forward_too(protocol: str) -> None:
    model = network(PARALLEL, routing="par", via="router", forwarding="store", load=0.9)
    assert run(model, 5 * US, protocol=protocol).digest == alone(model, 5 * US).digest


def test_a_checkpoint_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    place = Path(world().everyone(str(tmp_path))[0])
    model = network(routing="ugal-l", pattern="adversarial")
    run(model, 2 * US + 1, checkpoint_dir=place, checkpoint_every=US)
    resumed = run(model, 4 * US, checkpoint_dir=place, resume=place)
    assert resumed.resumed_ps == 2 * US
    assert resumed.digest == alone(model, 4 * US).digest


def test_a_deadlock_is_reported_with_the_same_cycle() -> None:
    model = network(
        SMALL, vcs="one", load=1.0, routing="valiant", message_bytes=512, terminal_buffer=512,
        local_buffer=512, global_buffer=512,
    )  # fmt: skip
    cycles = []
    for result in (run(model, 60 * US), alone(model, 60 * US)):
        with pytest.raises(Fault, match="deadlock") as fault:
            performance(model, result)
        cycles.append(str(fault.value))
    assert cycles[0] == cycles[1]
