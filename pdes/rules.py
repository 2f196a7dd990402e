"""The words for a rule that a model broke: which event did it, and which event came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pdes.errors import Fault
from pdes.events import KEY, TIME, unpack
from pdes.loop import LATE, NOBODY, PAST, TOO_SOON
from pdes.model import Model

Event = Sequence[int]
"""The words of an event, as Python's integers."""


def describe(model: Model, event: Event) -> str:
    """Returns an event's kind, place and time."""
    kind, agent, port = unpack(event[KEY])
    word = dict(enumerate(model.kinds)).get(kind, f"kind {kind}")
    return f"'{word}' at agent {agent} port {port}, {event[TIME]} {model.tick}"


class Rules(NamedTuple):
    """The rules that a model may not break on one rank, and the sentence for a broken one."""

    model: Model
    agents: int
    """The number of agents on all ranks."""
    lookahead: int

    def broken(self, rule: int, cause: Event, culprit: Event, reached: int) -> str:
        """Returns the sentence for a rule of `pdes.loop`: `cause` made `culprit`, on a rank that
        has reached this time."""
        model, tick = self.model, self.model.tick
        if rule == LATE:
            return (
                f"{model.name}: {describe(model, culprit)} came from another rank into the past: "
                f"this one has reached {reached} {tick}"
            )
        did = f"{model.name}: event {describe(model, cause)} made {describe(model, culprit)}"
        delay = culprit[TIME] - cause[TIME]
        if rule == PAST:
            return f"{did}: a negative delay ({delay} {tick}), into the past"
        if rule == TOO_SOON:
            return (
                f"{did}, on another rank after {delay} {tick}: less than the lookahead of "
                f"{self.lookahead} {tick} that the model promised"
            )
        if rule == NOBODY:
            return f"{did}: there are only {self.agents} agents"
        return f"{did}: more events than its fanout of {model.fanout}"

    def same_on_all_ranks(self, what: str, found: Sequence[Any]) -> None:
        """Raise a Fault where ranks differ in what may not follow from a rank's own part of the
        model, which may be a single unit: the words of a row of `what`, say. `found` has each
        rank's."""
        for rank, theirs in enumerate(found):
            if theirs != found[0]:
                raise Fault(
                    f"{self.model.name}: rows of `{what}` have {found[0]} on rank 0 and {theirs} "
                    f"on rank {rank}: they may not depend on a rank's part of the model"
                )
