"""A scheduler that follows a target, on the ranks that these tests are run on: the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from following import JOBS, TYPES, columns, following, recorded
from machines import US

from pdes.driver import run
from pdes.transport import Serial, world

pytestmark = pytest.mark.mpi(min_size=2)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Returns one directory for all ranks, which is removed when all of them have left it."""
    yield Path(world().everyone(str(tmp_path))[0])
    world().everyone(None)


EXCLUDES = {"exclude_after": 1, "exclude_for_ps": 60 * US, "hour_ps": 20 * US}


@pytest.mark.parametrize(("protocol", "market"), [("window", {}), ("null", {}), ("null", EXCLUDES)])
def test_a_target_that_is_followed_gives_the_same_bits(
    protocol: str, market: dict[str, Any]
) -> None:
    model = following(*JOBS, power={"types": TYPES}, market=market)
    together = run(model, None, protocol=protocol, show_compiling=False)
    assert together.ranks == world().size
    alone = run(model, None, transport=Serial(), show_compiling=False)
    assert (together.digest, together.time_ps) == (alone.digest, alone.time_ps)


@pytest.mark.parametrize("protocol", ["window", pytest.param("null", marks=pytest.mark.long)])
def test_restarted_in_the_middle_of_an_hour_all_is_written(place: Path, protocol: str) -> None:
    ranks, cut, model = world(), 57 * US, following(*JOBS)
    recorded(model, place / "parts", ranks, cut + 1, protocol=protocol,
             checkpoint_dir=place / "saved", checkpoint_every=cut)  # fmt: skip
    rest = recorded(model, place / "parts", ranks, None, protocol=protocol,
                    resume=place / "saved")  # fmt: skip
    assert rest.resumed == cut
    if ranks.rank == 0:
        alone = recorded(model, place / "one")
        assert rest.digest == alone.digest
        ours, theirs = columns(place / "parts"), columns(place / "one")
        assert ours.keys() == theirs.keys()
        for name, values in theirs.items():
            assert ours[name].tobytes() == values.tobytes(), name
        assert (theirs["caps/cap_w"] < 0).any()
        assert np.isnan(theirs["caps/cap_w"]).any()
        assert len(theirs["bids/average_w"]) > 2
