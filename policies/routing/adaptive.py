"""Adaptive: by a detour when its port has more than `threshold` times the free buffer space of the
straight one.

This is the choice between shortest and Valiant paths by local queues of Kim et al. as the SST
simulator makes it, which the Level-Spread study ran on: it compares what is free, not what is
queued, so that with empty buffers everything goes straight (a detour never has twice the space),
and a detour is taken only when the buffer ahead is more than half full. Space is compared as part
of a buffer, because local and global links may have buffers of different sizes; there is no bias.
It is asked at the entry to the network; on entry to the intermediate group the way that is left is
straight.
"""

from __future__ import annotations

from pdes.jit import kernel
from policies.routing.base import Outlook, Routing


@kernel
def detours(straight: Outlook, detour: Outlook, threshold: float, bias: int, word: int) -> bool:
    return detour.free > threshold * straight.free  # type: ignore[no-any-return]


Routing(
    "adaptive",
    detours,
    sees="port",
    threshold=2.0,
    about="by a detour with twice the free buffers, as in SST (Kim 2008; Zhang 2021, 3.3.2)",
)
