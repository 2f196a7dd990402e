"""PAR: UGAL-L's choice, made again at each router of the source's group while the packet is still
on its minimal path.

So a packet that was sent towards its global link finds out there, where the link's own queue is in
sight, and may still turn away; once on a non-minimal path it stays on it. It costs one more local
channel.
"""

from __future__ import annotations

from policies.routing.base import routing
from policies.routing.ugal import non_minimal

routing(
    "par",
    sees="port",
    revises=True,
    threshold=2.0,
    bias=4,
    about="UGAL-L, asked again until the packet leaves its group",
    source="Jiang et al., ISCA 2009",
)(non_minimal)
