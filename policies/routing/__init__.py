"""Which path a packet takes: the minimal one to its destination's group, or a non-minimal one.

A dragonfly has one minimal path (local, global, local) and as many non-minimal ones as it has other
groups. Every routing here answers one question, put to it when a packet comes from its node (and
for `par` at each router until the packet leaves its group): *by the non-minimal path through this
intermediate, chosen at random, or by the minimal one?* It is a function
`non_minimal(minimal, valiant, threshold, bias, word)`, compiled as a kernel, that is shown an
`Outlook` of either path and given 32 random bits. What it sees is the routing's `sees`:

* ``nothing``: they are not filled in;
* ``port``: the channel by which it would leave this router on either path;
* ``cable``: the channel of the global link on either path, wherever in this group that is.

To add one, write such a function under `@routing("mine", sees="port", about=..., source=...)`. Read
`base`, then `minimal`, `valiant`, `ugal`, `par`, `adaptive`; docs/policies.md has the rest.
"""

from __future__ import annotations

from policies.routing.base import ROUTINGS, Outlook, Routing, routing

from policies.routing import adaptive, minimal, par, ugal, valiant  # noqa: F401  isort: skip

__all__ = ["ROUTINGS", "Outlook", "Routing", "routing"]
