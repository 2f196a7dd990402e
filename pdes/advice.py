"""The advice that a run prints when ranks did not help it."""

from __future__ import annotations

from collections.abc import Mapping

from pdes.clock import show_ticks
from pdes.model import Lookahead

LEAST_SECONDS = 1.0
"""Seconds: a shorter run prints no advice."""
MANY_EVENTS = 1000
"""Events handled between two agreements, on all ranks together. An agreement takes some 45 us, as
long as some hundred events; where there are more than this, ranks wait for another reason than a
short lookahead: for a processor, or for one rank that has more to do."""


def on_ranks(
    ranks: int,
    events: int,
    rounds: int,
    seconds: Mapping[str, float],
    lookahead: Lookahead,
    tick: str,
) -> str | None:
    """Returns a sentence where a short lookahead, or a model that is on one rank, made a run slower
    than one rank would have been, else None. `seconds` are means over ranks: what all of them spent
    on events, one rank would have spent, and nothing else."""
    work = seconds["handlers"] + seconds["queue"]
    wall = work + seconds["exchange"] + seconds["waiting"]
    per_round = events / max(1, rounds)
    if ranks == 1 or wall < LEAST_SECONDS or wall <= ranks * work or per_round >= MANY_EVENTS:
        return None
    slower = f"{ranks} ranks took {wall:.3g} s, and one would take about {ranks * work:.2g} s: "
    if lookahead.one_rank:
        return slower + f"{lookahead.cause} is on one rank, whatever their number. Use one rank"
    return slower + (
        f"they agreed after every {per_round:.3g} events, because {lookahead.cause} may take only "
        f"{show_ticks(lookahead.time, tick)} (the lookahead). Use fewer ranks, or a longer "
        "latency there"
    )
