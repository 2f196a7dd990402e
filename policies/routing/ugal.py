"""UGAL: minimal, unless the queue on the minimal path is more than `threshold` times that on a
random non-minimal one, plus `bias`.

The threshold of 2 is the ratio of the paths' lengths: a non-minimal one takes two global hops, not
one. The bias, four packets, is what meets by chance at a port with nothing wrong: without it every
tenth packet took a non-minimal path at a load of 0.1, and UGAL-L carried 0.84 of uniform traffic of
0.88. (Four was chosen by looking at outcomes; sixteen does as well. What a non-minimal path is
longer by, at the speed of the links, would be 22 on the default machine.)
UGAL-L compares the two output ports of the packet's first router, which is what hardware can see;
congestion at a global link of another router of the group shows there only once it has filled the
buffers on the way. UGAL-G compares the global links themselves, wherever in the group they are: the
ideal that UGAL-L is measured against.
"""

from __future__ import annotations

from policies.routing.base import Outlook, routing


@routing(
    "ugal-g",
    sees="cable",
    threshold=2.0,
    bias=4,
    about="as ugal-l, but it sees the queues at every global link of the group",
    source="Kim et al., ISCA 2008",
)
@routing(
    "ugal-l",
    sees="port",
    threshold=2.0,
    bias=4,
    about="the shorter queue of this router, non-minimal paths counting double",
    source="Singh 2005; Kim et al., ISCA 2008",
)
def non_minimal(minimal: Outlook, valiant: Outlook, threshold: float, bias: int, word: int) -> bool:
    return minimal.queued > threshold * valiant.queued + bias  # type: ignore[no-any-return]
