"""Odonata simulates a dragonfly supercomputer: packets in its network, jobs on its nodes, watts in
its budget. This is its public face; importing it is cheap, and what is heavy comes when first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from odonata._version import __version__

__all__ = [
    "PRESETS",
    "Aries",
    "Dragonfly",
    "Fault",
    "LinkClass",
    "Network",
    "Performance",
    "Phold",
    "Refused",
    "Result",
    "Routing",
    "Traffic",
    "__version__",
    "aries",
    "links",
    "performance",
    "run",
]

_HOMES = {
    "Aries": "odonata.counters",
    "Dragonfly": "topology",
    "Fault": "pdes.errors",
    "LinkClass": "topology",
    "Network": "odonata.agents.network",
    "PRESETS": "topology.presets",
    "Performance": "odonata.measured",
    "Phold": "pdes.phold",
    "Refused": "pdes.errors",
    "Result": "pdes.driver",
    "Routing": "policies.routing",
    "Traffic": "odonata.agents.traffic",
    "aries": "odonata.counters",
    "links": "odonata.measured",
    "performance": "odonata.measured",
    "run": "pdes.driver",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'odonata' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
