"""Minimal: always the shortest way, at most one local, one global and one local hop.

It sees nothing. Best where traffic is spread evenly; where all of a group talks to one other group
everything goes through the few cables between the two, and 1/(a·p) of the injection bandwidth is
all that gets through where there is one.
"""

from __future__ import annotations

from pdes.jit import kernel
from policies.routing.base import Outlook, Routing


@kernel
def detours(straight: Outlook, detour: Outlook, threshold: float, bias: int, word: int) -> bool:
    return False


Routing(
    "minimal",
    detours,
    always_straight=True,
    about="the shortest way, whatever happens (Kim et al., ISCA 2008)",
)
