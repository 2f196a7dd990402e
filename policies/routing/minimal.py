"""Minimal: always the minimal path, at most one local, one global and one local hop.

It sees nothing. Best where traffic is spread evenly; where all of a group sends to one other group
everything goes through the few global links between the two, and 1/(a·p) of the injection bandwidth
is all that gets through where there is one.
"""

from __future__ import annotations

from policies.routing.base import Outlook, routing


@routing(
    "minimal",
    always_minimal=True,
    about="the minimal path, whatever happens",
    source="Kim et al., ISCA 2008",
)
def non_minimal(minimal: Outlook, valiant: Outlook, threshold: float, bias: int, word: int) -> bool:
    return False
