"""What is streamed, on as many ranks as these tests are run on: the same bits as on one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import pytest
from machines import PARALLEL, US, network

from odonata.agents.network import Network
from pdes.driver import run
from pdes.join import join
from pdes.stream import Recording
from pdes.transport import Serial, world

pytestmark = pytest.mark.mpi(min_size=2)

TABLES = ("ports", "channels", "nodes", "groups")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The same for all."""
    return Path(world().everyone(str(tmp_path))[0])


def bits(directory: Path) -> dict[str, tuple[Any, bytes]]:
    """Returns the content of every dataset but the engine's own."""
    found = {}

    def note(name: str, thing: Any) -> None:
        if isinstance(thing, h5py.Dataset) and not name.startswith("engine/"):
            found[name] = (thing.shape, thing.dtype), thing[:].tobytes()

    with h5py.File(directory / "run.h5") as file:
        file.visititems(note)
    return found


def recorded(
    model: Network, end: int, directory: Path, alone: bool = False, every: int = US, **how: Any
) -> None:
    transport = Serial() if alone else world()
    if alone and world().rank > 0:
        return
    run(model, end, record=Recording(directory, every, TABLES), transport=transport,
        show_compiling=False, **how)  # fmt: skip
    if world().rank == 0:
        join(directory, directory / "run.h5")


def assert_same(one: Path, other: Path, samples: int | None = None) -> None:
    world().everyone(None)
    if world().rank == 0:
        ours, theirs = bits(one), bits(other)
        assert {*ours} == {*theirs}
        assert len(ours) > 30
        assert not [name for name in ours if ours[name] != theirs[name]]
        if samples is not None:
            assert ours["time_ps"][0][0] == (samples,)
    world().everyone(None)


@pytest.mark.parametrize(
    ("routing", "protocol"),
    [("minimal", "window"), ("ugal-l", "null"),
     *(pytest.param(*it, marks=pytest.mark.long) for it in (("minimal", "null"),
                                                            ("ugal-l", "window")))],
)  # fmt: skip
def test_any_ranks_and_protocol_give_the_same_bits(
    place: Path, routing: str, protocol: str
) -> None:
    model = network(PARALLEL, routing=routing, pattern="adversarial", load=0.8)
    end = 5 * US + 17
    recorded(model, end, place / "ranks", protocol=protocol)
    recorded(model, end, place / "alone", alone=True)
    assert_same(place / "ranks", place / "alone", samples=6)


@pytest.mark.parametrize("protocol", [pytest.param("window", marks=pytest.mark.long), "null"])
def test_samples_end_at_the_same_time_when_all_is_silent(place: Path, protocol: str) -> None:
    """Whatever events are left pending on a rank: credits that return, wakes that are stale. Other
    ranks, other seeds."""
    for seed in (world().size, world().size + 10):
        model = network(PARALLEL, load=0.9, messages=5, seed=seed)
        ranks, alone = (place / f"{who}{seed}" for who in ("ranks", "alone"))
        recorded(model, 99 * US, ranks, every=20_000, protocol=protocol)
        recorded(model, 99 * US, alone, every=20_000, alone=True)
        assert_same(ranks, alone)


@pytest.mark.parametrize("every", [pytest.param(US, marks=pytest.mark.long), 1_300_000])
def test_a_checkpoint_in_the_middle_changes_no_bit(place: Path, every: int) -> None:
    model = network(PARALLEL, routing="ugal-l", pattern="adversarial", load=0.8)
    saved = place / "saved"
    recorded(model, 3 * US, place / "ranks", checkpoint_dir=saved, checkpoint_every=every)
    recorded(model, 6 * US, place / "ranks", checkpoint_dir=saved, resume=saved)
    recorded(model, 6 * US, place / "alone", alone=True)
    assert_same(place / "ranks", place / "alone", samples=6)


def test_a_checkpoint_after_all_is_silent_changes_no_bit(place: Path) -> None:
    model, saved = network(PARALLEL, load=0.9, messages=7), place / "saved"
    recorded(model, 90 * US, place / "ranks", checkpoint_dir=saved, checkpoint_every=40 * US)
    recorded(model, 99 * US, place / "ranks", checkpoint_dir=saved, resume=saved)
    recorded(model, 99 * US, place / "alone", alone=True)
    assert_same(place / "ranks", place / "alone")
