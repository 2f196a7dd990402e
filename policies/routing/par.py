"""PAR: UGAL-L's choice, made again at each router of the source's group while the packet still goes
straight.

So a packet that was sent towards its cable finds out there, where the cable's own queue is in
sight, and may still turn away; once on a detour it stays on it. It costs one more local channel.
"""

from __future__ import annotations

from policies.routing.base import Routing
from policies.routing.ugal import detours

Routing(
    "par",
    detours,
    sees="port",
    revises=True,
    threshold=2.0,
    bias=4,
    about="UGAL-L, asked again until the packet leaves its group (Jiang et al., ISCA 2009)",
)
