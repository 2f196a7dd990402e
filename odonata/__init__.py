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
    "Experiment",
    "Fault",
    "LinkClass",
    "Network",
    "Performance",
    "Phold",
    "Refused",
    "Result",
    "Routing",
    "Run",
    "Traffic",
    "__version__",
    "aries",
    "busiest",
    "cable_matrix",
    "carried",
    "latency_percentiles",
    "links",
    "load",
    "open",
    "performance",
    "run",
    "stall_to_flit",
    "summary",
    "system",
    "traffic_matrix",
    "utilisation",
]

_HOMES = {
    "Aries": "odonata.counters",
    "Dragonfly": "topology",
    "Experiment": "odonata.experiment",
    "Fault": "pdes.errors",
    "LinkClass": "topology",
    "Network": "odonata.agents.network",
    "PRESETS": "topology.presets",
    "Performance": "odonata.measured",
    "Phold": "pdes.phold",
    "Refused": "pdes.errors",
    "Result": "pdes.driver",
    "Routing": "policies.routing",
    "Run": "odonata.results",
    "Traffic": "odonata.agents.traffic",
    "aries": "odonata.counters",
    "busiest": "odonata.derived",
    "cable_matrix": "odonata.derived",
    "carried": "odonata.derived",
    "latency_percentiles": "odonata.derived",
    "links": "odonata.measured",
    "load": "odonata.experiment",
    "open": "odonata.results",
    "performance": "odonata.measured",
    "run": "pdes.driver",
    "stall_to_flit": "odonata.derived",
    "summary": "odonata.derived",
    "system": "odonata.derived",
    "traffic_matrix": "odonata.derived",
    "utilisation": "odonata.derived",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'odonata' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
