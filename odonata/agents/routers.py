"""Routers by name: what is inside of those of other simulators, as near as packets allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ROUTERS: Mapping[str, Mapping[str, Any]] = {
    "ideal": {},
    "merlin": {
        "crossbar": 1.0,
        "arbiter": "least-recent",
        "output_buffer": 14_000,
        "credits": "head",
        "sight": "output",
        "detours": True,
    },
    "booksim": {
        "crossbar": 2.0,
        "arbiter": "round-robin",
        "output_buffer": None,
        "credits": "flit",
        "forwarding": "flit",
        "injection_channels": 2,
    },
}
"""The fields of `NetworkDescription` that each sets, where nothing else is said. merlin: SST's
hr_router with its defaults and the buffers of the Level-Spread study. booksim: the iq_router of
BookSim 2, with the speed-up of its dragonfly example; what depends on its clock (`allocation`,
`credit_delay`) is to be given beside it."""
