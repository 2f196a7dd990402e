"""Odonata simulates a dragonfly supercomputer: packets in its network, jobs on its nodes, watts in
its budget. This is its public face; importing it is cheap, and what is heavy comes when first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from odonata._version import __version__

__all__ = [
    "PRESETS",
    "AllocationPolicy",
    "Aries",
    "Dragonfly",
    "Experiment",
    "Fault",
    "Floor",
    "Job",
    "JobRecord",
    "LinkClass",
    "Network",
    "Performance",
    "Phold",
    "Refused",
    "Result",
    "Routing",
    "Run",
    "SchedulingPolicy",
    "Traffic",
    "Workload",
    "__version__",
    "allocation",
    "aries",
    "busiest",
    "cable_matrix",
    "carried",
    "discipline",
    "job_records",
    "latency_percentiles",
    "links",
    "load",
    "open",
    "performance",
    "place",
    "run",
    "stall_to_flit",
    "summary",
    "system",
    "traffic_matrix",
    "utilisation",
]

_HOMES = {
    "AllocationPolicy": "policies.allocation",
    "Aries": "odonata.counters",
    "Dragonfly": "topology",
    "Experiment": "odonata.experiment.reading",
    "Fault": "pdes.errors",
    "Floor": "policies.allocation",
    "Job": "odonata.agents.jobs",
    "JobRecord": "odonata.measured",
    "LinkClass": "topology",
    "Network": "odonata.agents.network",
    "PRESETS": "topology.presets",
    "Performance": "odonata.measured",
    "Phold": "pdes.phold",
    "Refused": "pdes.errors",
    "Result": "pdes.driver",
    "Routing": "policies.routing",
    "Run": "odonata.results",
    "SchedulingPolicy": "policies.scheduling",
    "Traffic": "odonata.agents.traffic",
    "Workload": "odonata.agents.jobs",
    "allocation": "policies.allocation",
    "aries": "odonata.counters",
    "busiest": "odonata.derived",
    "cable_matrix": "odonata.derived",
    "carried": "odonata.derived",
    "discipline": "policies.scheduling",
    "job_records": "odonata.measured",
    "latency_percentiles": "odonata.derived",
    "links": "odonata.measured",
    "load": "odonata.experiment.reading",
    "open": "odonata.results",
    "performance": "odonata.measured",
    "place": "odonata.allocate",
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
