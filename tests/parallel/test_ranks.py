"""On every number of ranks: the same bytes as alone. Run under mpiexec with --with-mpi."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import Net, Rogue
from probe import YEAR, Probe

from pdes.driver import run
from pdes.errors import Refused
from pdes.events import PORT_BITS, Rows
from pdes.phold import Phold
from pdes.transport import Mpi, Serial, world

pytestmark = pytest.mark.mpi(min_size=2)


@pytest.fixture
def ranks() -> Iterator[Mpi]:
    transport = world()
    assert isinstance(transport, Mpi)
    yield transport
    transport.everyone(None)


@pytest.fixture
def shared(ranks: Mpi, tmp_path: Path) -> Path:
    """One directory for all ranks."""
    return ranks.everyone(tmp_path)[0]


@pytest.mark.parametrize("protocol", ["window", "null"])
@pytest.mark.parametrize(
    "model",
    [
        Phold(seed=1),
        Phold(processes=50, population=1, remote=1.0, seed=2),
        Phold(processes=64, population=40, remote=1.0, lookahead_ps=900_000, seed=3),
        Phold(processes=40, population=2, lookahead_ps=1_000, mean_ps=100_000, seed=4),
        Phold(processes=9, population=1, remote=0.02, seed=5),
        Phold(processes=30, population=0, seed=6),
        Phold(processes=12, population=2, remote=1.0, mean_ps=500_000, seed=7),
    ],
    ids=["benchmark", "sparse", "dense", "short-sighted", "lonely", "empty", "exact"],
)
def test_ranks_give_the_same_bytes_as_one(ranks: Mpi, model: Phold, protocol: str) -> None:
    end = 20_000_000 if model.lookahead_ps > 1_000 else 2_000_000
    alone = run(model, end, transport=Serial())
    together = run(model, end, protocol=protocol)
    assert together.ranks == ranks.size
    assert (together.events, together.digest) == (alone.events, alone.digest)


@pytest.mark.parametrize("protocol", ["window", "null"])
@pytest.mark.parametrize("seed", [3, 4])
def test_a_model_with_everything_gives_the_same_bytes_as_one(protocol: str, seed: int) -> None:
    alone = run(Net(seed=seed), 10**6, transport=Serial())
    together = run(Net(seed=seed), 10**6, protocol=protocol)
    assert alone.events > 20_000
    assert (together.events, together.digest) == (alone.events, alone.digest)


@pytest.mark.parametrize("protocol", ["window", "null"])
def test_years_of_nothing_but_decisions_give_the_same_bytes_as_one(
    ranks: Mpi, shared: Path, protocol: str
) -> None:
    """Ten years on two ranks: twenty thousand decisions, undisturbed and with a restart."""
    years, least = (10, 19_900) if ranks.size == 2 else (3, 5_900)
    cut, end = years * YEAR * 6 // 10, years * YEAR
    alone = run(Probe(), end, transport=Serial())
    together = run(Probe(), end, protocol=protocol, checkpoint_dir=shared, checkpoint_every=cut)
    resumed = run(Probe(), end, protocol=protocol, resume=shared)
    assert alone.events > least
    assert {(r.events, r.digest) for r in (alone, together, resumed)} == {
        (alone.events, alone.digest)
    }
    assert resumed.resumed == cut


class Interrupted(Probe):
    """Gets a signal when agent 0 has been visited for a year."""

    def decide(self, state: Any, time: int, key: int, a: int, b: int) -> Any:
        if time > YEAR and key >> PORT_BITS == 0:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().decide(state, time, key, a, b)


@pytest.mark.parametrize("protocol", ["window", "null"])
def test_a_signal_among_decisions_stops_all_ranks_where_they_can_go_on(
    shared: Path, protocol: str
) -> None:
    stopped = run(Interrupted(), 2 * YEAR, protocol=protocol, checkpoint_dir=shared)
    assert not stopped.completed
    assert YEAR < stopped.time < YEAR + 10 * Probe().mean
    resumed = run(Probe(), 2 * YEAR, protocol=protocol, resume=shared)
    alone = run(Probe(), 2 * YEAR, transport=Serial())
    assert resumed.resumed == stopped.time
    assert (resumed.events, resumed.digest) == (alone.events, alone.digest)


def test_the_outcome_is_whole_and_in_agent_order_on_every_rank() -> None:
    model = Phold(processes=77, seed=5)
    alone = run(model, 10_000_000, transport=Serial()).outcome["handled"]
    assert run(model, 10_000_000).outcome["handled"].tolist() == alone.tolist()


class Picky(Phold):
    """Refuses on one rank what it takes on the others."""

    def start(self, state: Any, first: int, last: int) -> Rows:
        if first > 0:
            raise Refused("this rank does not like its first events")
        return super().start(state, first, last)


def test_what_one_rank_refuses_all_refuse(ranks: Mpi) -> None:
    with pytest.raises(Refused, match="this rank does not like its first events"):
        run(Picky(processes=40), 10**6)


@pytest.mark.parametrize("protocol", ["window", "null"])
def test_a_restart_on_ranks_gives_the_same_bytes_as_one(shared: Path, protocol: str) -> None:
    model, end = Phold(processes=100, seed=8), 30_000_000
    run(model, 25_000_000, protocol=protocol, checkpoint_dir=shared, checkpoint_every=3_000_017)
    resumed = run(model, end, protocol=protocol, resume=shared)
    assert resumed.digest == run(model, end, transport=Serial()).digest


def test_a_checkpoint_of_one_protocol_serves_the_other(shared: Path) -> None:
    model, end = Phold(processes=100, seed=8), 30_000_000
    run(model, 25_000_000, protocol="null", checkpoint_dir=shared, checkpoint_every=4_000_000)
    resumed = run(model, end, protocol="window", resume=shared)
    assert resumed.digest == run(model, end, transport=Serial()).digest


def test_a_part_damaged_on_one_rank_is_refused_on_all(ranks: Mpi, shared: Path) -> None:
    model = Phold(processes=100, seed=8)
    run(model, 9_000_000, checkpoint_dir=shared, checkpoint_every=4_000_000)
    (part,) = shared.glob("phold-*/at-0000000000008000000/rank-0001.h5")
    if ranks.rank == 0:
        part.write_bytes(part.read_bytes()[:-100])
    ranks.everyone(None)
    with pytest.raises(Refused, match=r"rank-0001\.h5: does not match its checksum"):
        run(model, 9_000_000, resume=shared)


def test_a_late_null_resume_does_not_creep_from_time_zero(shared: Path) -> None:
    """From 0 to 2 ms in steps of the lookahead would be four thousand rounds."""
    model = Phold(processes=8, population=1, seed=2)
    every = 2_000_000_000
    run(model, every + 1, checkpoint_dir=shared, checkpoint_every=every)
    resumed = run(model, every + 10_000_000, protocol="null", resume=shared)
    assert resumed.resumed_ps == every
    assert resumed.rounds < 1000


def test_zero_lookahead_between_ranks_is_refused_with_its_cause() -> None:
    with pytest.raises(Refused, match="the cable from agent 1 to agent 2 may take 0 ps"):
        run(Rogue(promised=0), 10**6)


def test_more_ranks_than_partitions_are_refused(ranks: Mpi) -> None:
    with pytest.raises(Refused, match=f"{ranks.size} ranks: this model has 1 partition,"):
        run(Rogue(agents=1), 10**6)


def test_letters_of_any_length_arrive_whole(ranks: Mpi) -> None:
    """Random lengths, many longer than the room there was at first, checked word for word."""
    for step in range(40):
        lengths = np.random.default_rng(step).geometric(1 / 200, (ranks.size, ranks.size)) - 1
        if step % 5 == 4:
            lengths[:] = 0
        letters, places = [], [0]
        for peer in range(ranks.size):
            n = int(lengths[ranks.rank, peer])
            body = np.arange(4 * n).reshape(n, 4) + 1000 * ranks.rank + peer
            letters += [[[step, n, 0, ranks.rank]], body]
            places.append(places[-1] + n + 1)
        arrived = ranks.exchange(np.concatenate(letters).astype(np.int64), places)
        for peer, letter in zip(ranks._peers, arrived, strict=True):
            n = int(lengths[peer, ranks.rank])
            assert letter[0].tolist() == [step, n, 0, peer]
            assert (letter[1:] == np.arange(4 * n).reshape(n, 4) + 1000 * peer + ranks.rank).all()


def test_posts_arrive_in_order(ranks: Mpi) -> None:
    for number in range(50):
        for peer in ranks._peers:
            ranks.post(peer, np.full((1 + number * 20, 4), number))
    seen = dict.fromkeys(ranks._peers, 0)
    while any(count < 50 for count in seen.values()):
        for sender, rows in ranks.collect(wait=True):
            assert rows.shape == (1 + seen[sender] * 20, 4)
            assert (rows == seen[sender]).all()
            seen[sender] += 1


def test_gather_keeps_rank_order_and_unequal_lengths(ranks: Mpi) -> None:
    parts = ranks.gather(np.full((ranks.rank + 1, 2), ranks.rank, np.uint64))
    assert (parts is None) == (ranks.rank > 0)
    if parts is not None:
        assert [len(part) for part in parts] == list(range(1, ranks.size + 1))
        assert [int(part[0, 0]) for part in parts] == list(range(ranks.size))


def test_one_rank_of_a_host_goes_first(ranks: Mpi, shared: Path) -> None:
    def act() -> bool:
        first = not (shared / "done").exists()
        (shared / "done").write_text("")
        return first

    assert ranks.everyone(ranks.leader_first(act)) == [True] + [False] * (ranks.size - 1)
