"""Valiant: always by a detour through a group (or a router) chosen at random.

It sees nothing. Any traffic between groups becomes uniform traffic twice, so that half the
injection bandwidth gets through whatever the pattern, and no pattern does better.
"""

from __future__ import annotations

from pdes.jit import kernel
from policies.routing.base import Outlook, Routing


@kernel
def detours(straight: Outlook, detour: Outlook, threshold: float, bias: int, word: int) -> bool:
    return True


Routing(
    "valiant",
    detours,
    about="always by a random group or router (Valiant 1982; Kim et al., ISCA 2008)",
)
