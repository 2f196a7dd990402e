"""Small machines with every feature, and runs of them."""

from __future__ import annotations

from typing import Any

from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from pdes.driver import Result, run
from pdes.transport import Serial
from topology import Dragonfly, LinkClass

US = 10**6
ROUTINGS = ("minimal", "valiant", "ugal-l", "ugal-g", "par", "adaptive")
PATTERNS = ("uniform", "adversarial", "permutation", "transpose", "hotspot")

SMALL = Dragonfly(
    2, 4, 2, 9, cabling="relative",
    terminal=LinkClass(10e9, 7_000), local=LinkClass(12e9, 11_000), global_=LinkClass(8e9, 40_000),
)  # fmt: skip
PARALLEL = Dragonfly(2, 4, 3, 4, cabling="circulant")
"""Four cables between any two of its groups."""

EVERYTHING: dict[str, Any] = {
    "crossbar": 1.2, "routing": "adaptive", "sight": "output", "credits": "flit", "detours": True,
    "arbiter": "age", "output_buffer": 1024, "allocation_ps": 3_000, "credit_delay_ps": 5_000,
    "ejection": 6e9, "ejection_buffer": 1024, "injection_channels": 2,
}  # fmt: skip
DIRECT: dict[str, Any] = EVERYTHING | {
    "routing": "par", "sight": "far", "credits": "head", "output_buffer": None,
    "arbiter": "round-robin", "duplex": "half", "ejection": 40e9, "injection_channels": 1,
    "load": 0.15, "ejection_buffer": 8192, "local_buffer": 8192, "global_buffer": 8192,
}  # fmt: skip
"""What is inside of routers and nodes, in the two variants of the kernels that most tests share,
because each takes long to compile (`make warm` does). At a higher load the half-duplex nodes of the
second would deadlock."""


def network(machine: Dragonfly = SMALL, **given: Any) -> Network:
    """Tight buffers, messages of more than one packet, a load that makes packets wait."""
    names = Traffic.__dataclass_fields__
    traffic = {"load": 0.6, "message_bytes": 1200}
    traffic |= {name: given.pop(name) for name in [*given] if name in names}
    settings = {"terminal_buffer": 1024, "local_buffer": 1024, "global_buffer": 2048,
                "delay_ps": 20_000} | given  # fmt: skip
    return Network(machine, Traffic(**traffic), **settings)


def alone(model: Network, end: int = 3 * US, **how: Any) -> Result:
    return run(model, end, transport=Serial(), show_compiling=False, **how)
