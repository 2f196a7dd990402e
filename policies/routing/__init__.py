"""Which way a packet goes: straight to its destination's group, or by a detour.

A dragonfly has one shortest way (local, global, local) and as many detours as it has other groups.
Every routing here answers one question, put to it when a packet comes from its node (and for `par`
at each router until the packet leaves its group): *detour, by this candidate chosen at random, or
go straight?* It is a kernel `detours(straight, detour, threshold, bias, word)` that is shown two
`Outlook`s and given 32 random bits. What it sees is the routing's `sees`:

* ``nothing``: they are not filled in;
* ``port``: the channel by which it would leave this router on either way;
* ``cable``: the channel of the global cable on either way, wherever in this group that is.

To add one, write such a kernel and register it: `Routing("mine", detours, sees="port")`.
"""

from __future__ import annotations

from policies.routing.base import ROUTINGS, Outlook, Routing, routing

from policies.routing import adaptive, minimal, par, ugal, valiant  # noqa: F401  isort: skip

__all__ = ["ROUTINGS", "Outlook", "Routing", "routing"]
