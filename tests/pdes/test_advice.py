from __future__ import annotations

import re

import pytest
from conftest import code_on_ranks

from odonata.cluster.model import Cluster
from pdes.advice import MANY_EVENTS, on_ranks
from pdes.clock import show_ticks
from pdes.model import Lookahead

LINK = Lookahead(10_000, "the cable from group 1 to group 2")


def spent(handlers: float, waiting: float) -> dict[str, float]:
    return {"handlers": handlers, "queue": 0.1, "exchange": 0.1, "waiting": waiting}


def test_ranks_slower_than_one_are_told_with_the_link() -> None:
    words = on_ranks(2, 42_000, 1000, spent(0.4, 5.4), LINK, "ps")
    assert words == (
        "2 ranks took 6 s, and one would take about 1 s: they agreed after every 42 events, "
        "because the cable from group 1 to group 2 may take only 10 ns (the lookahead). Use "
        "fewer ranks, or a longer latency there"
    )


def test_ranks_that_have_nothing_to_do_are_told_so() -> None:
    """No latency is to blame, and none would help."""
    lookahead = Lookahead(30 * 24 * 3600 * 10**6, "all of a job run", one_rank=True)
    words = on_ranks(4, 42_000, 1000, spent(0.4, 5.4), lookahead, "us")
    assert words == (
        "4 ranks took 6 s, and one would take about 2 s: all of a job run is on one rank, whatever "
        "their number. Use one rank"
    )
    assert Cluster.lookahead(None, None).one_rank  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ranks", "events", "rounds", "seconds"),
    [
        (1, 42_000, 1000, spent(0.4, 5.4)),
        (2, 42_000, 1000, spent(0.4, 0.4)),  # twice as slow would be one
        (4, 42_000, 1000, spent(1.0, 2.0)),
        (2, 42_000, 1000, spent(0.04, 0.54)),  # it took no time
        (2, MANY_EVENTS * 1000, 1000, spent(0.4, 5.4)),  # not because of the lookahead
    ],
)
def test_ranks_that_help_or_wait_for_other_reasons_are_not(
    ranks: int, events: int, rounds: int, seconds: dict[str, float]
) -> None:
    assert on_ranks(ranks, events, rounds, seconds, LINK, "ps") is None


@pytest.mark.parametrize(
    ("model", "end", "advised"),
    [
        ("Phold(processes=64, population=1, lookahead_ps=1_000)", 2 * 10**8, True),
        pytest.param(
            "Phold(processes=1024, population=16, lookahead_ps=900_000)",
            4 * 10**8,
            False,
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_real_run_says_so_once(model: str, end: int, advised: bool) -> None:
    """However fast the machine is: a run counts here from 0.02 s on."""
    code = (
        "from pdes import advice; from pdes.driver import run; from pdes.phold import Phold; "
        f"advice.LEAST_SECONDS = 0.02; run({model}, {end})"
    )
    said = code_on_ranks(2, code).stderr
    words = re.findall("odonata: warning: 2 ranks took .* an event from process 31 to 32 ", said)
    assert len(words) == advised


@pytest.mark.parametrize(
    ("ticks", "tick", "shown"),
    [
        (0, "us", "0 us"),
        (999, "ps", "999 ps"),
        (90_000, "ps", "90 ns"),
        (1_500_000, "ps", "1.5 us"),
        (1_000_001, "ps", "1.000001 us"),
        (1_500, "us", "1.5 ms"),
        (7_200, "s", "7,200 s"),
    ],
)
def test_a_time_is_shown_exactly_in_the_largest_unit_not_above_it(
    ticks: int, tick: str, shown: str
) -> None:
    assert show_ticks(ticks, tick) == shown
