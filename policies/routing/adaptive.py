"""Adaptive: by a non-minimal path when its port has more than `threshold` times the free buffer
space of the minimal one.

This is the choice between minimal and Valiant paths by local queues of Kim et al. as the SST
simulator makes it, which the Level-Spread study ran on: it compares what is free, not what is
queued, so that with empty buffers every path is minimal (no other ever has twice the space), and a
non-minimal path is taken only when the buffer ahead is more than half full. Space is compared as
part of a buffer, because local and global links may have buffers of different sizes; there is no
bias. It is asked at the entry to the network; on entry to the intermediate group the rest of the
path is minimal.
"""

from __future__ import annotations

from policies.routing.base import Outlook, routing


@routing(
    "adaptive",
    sees="port",
    threshold=2.0,
    about="non-minimal where that has twice the free buffer space, as in SST",
    source="Kim et al., ISCA 2008; Zhang 2021, 3.3.2",
)
def non_minimal(minimal: Outlook, valiant: Outlook, threshold: float, bias: int, word: int) -> bool:
    return valiant.free > threshold * minimal.free  # type: ignore[no-any-return]
