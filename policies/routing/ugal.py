"""UGAL: straight, unless the queue on the straight way is more than `threshold` times that on a
random detour, plus `bias`.

The threshold of 2 is the ratio of the ways' lengths: a detour takes two global hops, not one. The
bias, four packets, is what meets by chance at a port with nothing wrong: without it every tenth
packet took a detour at a load of 0.1, and UGAL-L carried 0.84 of uniform traffic of 0.88. (Four was
chosen by looking at outcomes; sixteen does as well. What a detour is longer by, at the speed of the
links, would be 22 on the default machine.)
UGAL-L compares the two output ports of the packet's first router, which is what hardware can see;
congestion at a cable of another router of the group shows there only once it has filled the buffers
on the way. UGAL-G compares the cables themselves, wherever in the group they are: the ideal that
UGAL-L is measured against.
"""

from __future__ import annotations

from pdes.jit import kernel
from policies.routing.base import Outlook, Routing


@kernel
def detours(straight: Outlook, detour: Outlook, threshold: float, bias: int, word: int) -> bool:
    return straight.queued > threshold * detour.queued + bias  # type: ignore[no-any-return]


Routing(
    "ugal-l",
    detours,
    sees="port",
    threshold=2.0,
    bias=4,
    about="the shorter queue of this router, detours counting double (Singh 2005; Kim 2008)",
)
Routing(
    "ugal-g",
    detours,
    sees="cable",
    threshold=2.0,
    bias=4,
    about="the same, but sees the queues at every global cable of the group (Kim 2008)",
)
