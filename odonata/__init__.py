"""Odonata simulates a dragonfly supercomputer: packets in its network, jobs on its nodes, watts in
its budget. This is its public face; importing it is cheap, and what is heavy comes when first used.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

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
    "Aries": "odonata.results.aries",
    "Dragonfly": "topology",
    "Experiment": "odonata.experiment.reading",
    "Fault": "pdes.errors",
    "Floor": "policies.allocation",
    "Job": "odonata.jobs.request",
    "JobRecord": "odonata.results.performance",
    "LinkClass": "topology",
    "Network": "odonata.agents.network",
    "PRESETS": "topology.presets",
    "Performance": "odonata.results.performance",
    "Phold": "pdes.phold",
    "Refused": "pdes.errors",
    "Result": "pdes.driver",
    "Routing": "policies.routing",
    "Run": "odonata.results.run",
    "SchedulingPolicy": "policies.scheduling",
    "Traffic": "odonata.agents.traffic",
    "Workload": "odonata.agents.workload",
    "allocation": "policies.allocation",
    "aries": "odonata.results.aries",
    "busiest": "odonata.results.derived",
    "cable_matrix": "odonata.results.derived",
    "carried": "odonata.results.derived",
    "discipline": "policies.scheduling",
    "job_records": "odonata.results.performance",
    "latency_percentiles": "odonata.results.derived",
    "links": "odonata.results.performance",
    "load": "odonata.experiment.reading",
    "open": "odonata.results.run",
    "performance": "odonata.results.performance",
    "place": "odonata.jobs.placement",
    "run": "pdes.driver",
    "stall_to_flit": "odonata.results.derived",
    "summary": "odonata.results.derived",
    "system": "odonata.results.derived",
    "traffic_matrix": "odonata.results.derived",
    "utilisation": "odonata.results.derived",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'odonata' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
