"""Logs, on as many ranks as these tests are run on: merged, they are the bytes of one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import pytest
from probe import YEAR, Diary

from pdes.driver import run
from pdes.join import join
from pdes.stream import Recording
from pdes.transport import Serial, Transport, world

pytestmark = pytest.mark.mpi(min_size=2)

LOGS = ("visits", "moves", "never")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Returns one directory for all ranks, which is removed when all of them have left it."""
    yield Path(world().everyone(str(tmp_path))[0])
    world().everyone(None)


def logged(place: Path, transport: Transport, end: int = 2 * YEAR, **how: Any) -> None:
    record = Recording(place, YEAR // 3, (), logs=LOGS)
    run(Diary(), end, record=record, transport=transport, show_compiling=False, **how)


def merged(place: Path) -> dict[str, tuple[str, bytes]]:
    found = {}
    join(place, place / "run.h5")
    with h5py.File(place / "run.h5") as file:
        for log in LOGS:
            for name, column in file[log].items():
                found[f"{log}/{name}"] = str(column.dtype), column[:].tobytes()
    return found


@pytest.mark.parametrize("protocol", [pytest.param("window", marks=pytest.mark.long), "null"])
def test_merged_they_are_the_bytes_of_one(place: Path, protocol: str) -> None:
    """Undisturbed, and with a restart."""
    ranks = world()
    logged(place / "ranks", ranks, protocol=protocol)
    logged(place / "parts", ranks, 2 * YEAR - 1, protocol=protocol, checkpoint_dir=place / "saved",
           checkpoint_every=YEAR // 7)  # fmt: skip
    logged(place / "parts", ranks, protocol=protocol, resume=place / "saved")
    if ranks.rank == 0:
        logged(place / "one", Serial())
        alone = merged(place / "one")
        assert len(alone["visits/agent"][1]) > 4 * 3900
        assert merged(place / "ranks") == alone
        assert merged(place / "parts") == alone
