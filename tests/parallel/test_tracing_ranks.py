"""Traced packets, on as many ranks as these tests are run on: the same bytes as on one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import pytest
from machines import US, network

from odonata.agents.tracing import LOGS
from pdes.driver import Result, run
from pdes.join import join
from pdes.stream import Recording
from pdes.transport import Serial, Transport, world

pytestmark = pytest.mark.mpi(min_size=2)

END = 6 * US


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Returns one directory for all ranks, which is removed when all of them have left it."""
    yield Path(world().everyone(str(tmp_path))[0])
    world().everyone(None)


def recorded(place: Path, transport: Transport, end: int = END, **how: Any) -> Result:
    model = network(routing="adaptive", load=0.9, trace_packets=3)
    record = Recording(place, US, (), logs=(*LOGS,))
    return run(model, end, record=record, transport=transport, show_compiling=False, **how)


def merged(place: Path) -> dict[str, bytes]:
    found = {}
    join(place, place / "run.h5")
    with h5py.File(place / "run.h5") as file:
        for log in LOGS:
            assert len(file[log]["packet"]) > 500
            for name, column in file[log].items():
                found[f"{log}/{name}"] = column[:].tobytes()
    return found


@pytest.mark.parametrize("protocol", [pytest.param("window", marks=pytest.mark.long), "null"])
def test_paths_are_those_of_one_rank_also_after_a_restart(place: Path, protocol: str) -> None:
    ranks = world()
    together = recorded(place / "ranks", ranks, protocol=protocol)
    recorded(place / "parts", ranks, END - 1, protocol=protocol, checkpoint_dir=place / "saved",
             checkpoint_every=2 * US + 12_345)  # fmt: skip
    resumed = recorded(place / "parts", ranks, protocol=protocol, resume=place / "saved")
    assert resumed.resumed is not None
    if ranks.rank == 0:
        one = recorded(place / "one", Serial())
        assert one.digest == together.digest == resumed.digest
        alone = merged(place / "one")
        assert merged(place / "ranks") == alone
        assert merged(place / "parts") == alone
