"""Valiant: always by a non-minimal path through a group (or a router) chosen at random.

It sees nothing. Any traffic between groups becomes uniform traffic twice, so that half the
injection bandwidth gets through whatever the pattern, and no pattern does better.
"""

from __future__ import annotations

from policies.routing.base import Outlook, routing


@routing(
    "valiant",
    about="always by a random group or router",
    source="Valiant 1982; Kim et al., ISCA 2008",
)
def non_minimal(minimal: Outlook, valiant: Outlook, threshold: float, bias: int, word: int) -> bool:
    return True
