"""Every feature of a packet run with every other, on as many ranks as these tests are run on: the
bits of one rank.

`make parallel` runs these without the compiler (``ODONATA_JIT=0``): no combination of features has
to be compiled for them, and every index is checked. `make test-long` has every combination so, and
some of them compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from matrix import END, FACTORS, Case, crossed, network_of, products
from threads import bits

from odonata.agents.audit import conclude
from odonata.agents.network import Network
from pdes.driver import Result, run
from pdes.jit import ENABLED
from pdes.stream import Recording
from pdes.transport import Serial, Transport, world

pytestmark = pytest.mark.mpi(min_size=2)
interpreted = pytest.mark.skipif(
    ENABLED, reason="so many kernels take long: run with ODONATA_JIT=0"
)

T = TypeVar("T")

CUT, EVERY_PS = 500_000, 300_000
CHEAP = ("jobs", "nodes", "inputs")
"""The tables that are written: one of the scheduler's, and two of agents."""
NAMED = ("ideal", "merlin", "ejection")
USUAL = crossed(
    products(inside=NAMED, load=["traffic"]),
    products(inside=NAMED, load=["jobs"], knows=["nothing", "telemetry", "power"],
             scheduler=FACTORS["scheduler"]),
)  # fmt: skip
"""Each kind of router with each kind of run and each place of the scheduler, and all pairs."""
EVERY = crossed(
    products(**{name: FACTORS[name] for name in ("inside", "load", "knows", "scheduler")})
)
COMPILED = crossed(
    products(inside=NAMED, load=["both"], knows=["nothing", "telemetry+power"],
             scheduler=FACTORS["scheduler"], kept=[False])
)[:18]  # fmt: skip
"""Six programs; what else it would take for all pairs is left to the interpreter."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Returns one directory for all ranks, which is removed when all of them have left it."""
    yield Path(world().everyone(str(tmp_path))[0])
    world().everyone(None)


def leg(
    case: Case, model: Network, end: int, where: Path, transport: Transport, **how: Any
) -> Result | None:
    """Run on these ranks, or on the first of them alone, for which the others wait."""
    tables = [name for name in model.tables(EVERY_PS) if name in CHEAP]
    logs = (*model.logs(),)
    record = Recording(where, EVERY_PS, (*tables,), logs=logs) if case.kept else None

    def go() -> Result:
        return run(model, end, record=record, transport=transport, show_compiling=False, **how)

    return go() if transport.size > 1 else on_first(go)


def on_first(action: Callable[[], T]) -> T | None:
    """Do it on the first rank; the others sleep meanwhile."""
    return world().leader_first(lambda: action() if world().rank == 0 else None)


def ran(case: Case, model: Network, where: Path) -> Result | None:
    """Run a case, with its restart."""
    ranks, how = world(), {"protocol": case.protocol}
    if case.restart == "never":
        return leg(case, model, END, where, ranks, **how)
    first, then = ranks, ranks
    apart = replace(model, dedicated_scheduler=not model.dedicated_scheduler)
    if case.restart == "from one":
        first = Serial()
    elif case.restart == "on one":
        then = Serial()
    kept = where.parent / "saved"
    leg(case, apart if case.restart == "otherwise" else model, CUT + 1, where, first,
        checkpoint_dir=kept, checkpoint_every=CUT, **how)  # fmt: skip
    return leg(case, model, END, where, then, resume=kept, **how)


SUMS, ANY_ORDER = ("by_job", "spent", "job_latencies", "bytes", "flows"), ("blocked", "waits")


def figures(result: Result) -> dict[str, Any]:
    """Returns the outcome as it is on any ranks. Which events are pending says more than what
    happened: a credit on its way is one only where it comes from another rank."""
    found = {name: array for name, array in result.outcome.items() if name != "pending"}
    found |= {name: found[name].sum(axis=0) for name in SUMS if name in found}
    return found | {name: np.array(sorted(found[name].tolist())) for name in ANY_ORDER}


def assert_same_as_one(case: Case, place: Path) -> None:
    model = network_of(case, world().size)
    together = ran(case, model, place / "ranks")
    here = leg(case, model, END, place / "one", Serial())
    world().everyone(None)

    def compare() -> None:
        assert together is not None
        assert here is not None
        assert (together.resumed is not None) == (case.restart != "never")
        assert together.digest == here.digest
        assert together.time == here.time == END
        assert conclude(model, together.outcome) is None
        ours, theirs = figures(together), figures(here)
        assert [name for name in theirs if not np.array_equal(ours[name], theirs[name])] == []
        assert together.outcome["nodes"].any()
        if case.kept:
            assert bits(place / "ranks") == bits(place / "one")

    on_first(compare)


@interpreted
@pytest.mark.parametrize("case", USUAL, ids=str)
def test_every_kind_of_router_run_and_scheduler_gives_the_bits_of_one_rank(
    case: Case, place: Path
) -> None:
    assert_same_as_one(case, place)


@interpreted
@pytest.mark.long
@pytest.mark.parametrize("case", EVERY, ids=str)
def test_every_combination_gives_the_bits_of_one_rank(case: Case, place: Path) -> None:
    assert_same_as_one(case, place)


@pytest.mark.long
@pytest.mark.skipif(not ENABLED, reason="as the two above")
@pytest.mark.parametrize("case", COMPILED, ids=str)
def test_compiled_the_kinds_of_routers_give_the_bits_of_one_rank(case: Case, place: Path) -> None:
    assert_same_as_one(case, place)
