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
    "Discipline",
    "Dragonfly",
    "Ended",
    "Experiment",
    "Fault",
    "Job",
    "JobRecord",
    "LinkClass",
    "Network",
    "Performance",
    "Phold",
    "Refused",
    "Request",
    "Result",
    "Routing",
    "Run",
    "Running",
    "SchedulingPolicy",
    "Sight",
    "Sizes",
    "Traffic",
    "View",
    "Workload",
    "__version__",
    "allocation",
    "aries",
    "busiest",
    "cable_matrix",
    "carried",
    "discipline",
    "fitting",
    "job_records",
    "latency_percentiles",
    "links",
    "load",
    "load_plugin",
    "open",
    "parameter",
    "performance",
    "place",
    "routing",
    "run",
    "scheduling",
    "stall_to_flit",
    "summary",
    "system",
    "traffic_matrix",
    "utilisation",
]

_HOMES = {
    "AllocationPolicy": "policies.allocation",
    "Aries": "odonata.results.aries",
    "Discipline": "policies.scheduling",
    "Dragonfly": "topology",
    "Ended": "policies.views",
    "Experiment": "odonata.experiment.reading",
    "Fault": "pdes.errors",
    "Job": "odonata.agents.jobs",
    "JobRecord": "odonata.results.performance",
    "LinkClass": "topology",
    "Network": "odonata.agents.network",
    "PRESETS": "topology.presets",
    "Performance": "odonata.results.performance",
    "Phold": "pdes.phold",
    "Refused": "pdes.errors",
    "Request": "policies.views",
    "Result": "pdes.driver",
    "Routing": "policies.routing",
    "Run": "odonata.results.run",
    "Running": "policies.views",
    "SchedulingPolicy": "policies.scheduling",
    "Sight": "policies.views",
    "Sizes": "policies.memory",
    "Traffic": "odonata.agents.traffic",
    "View": "policies.views",
    "Workload": "odonata.agents.jobs",
    "allocation": "policies.allocation",
    "aries": "odonata.results.aries",
    "busiest": "odonata.results.derived",
    "cable_matrix": "odonata.results.derived",
    "carried": "odonata.results.derived",
    "discipline": "policies.scheduling",
    "fitting": "policies.scheduling",
    "job_records": "odonata.results.performance",
    "latency_percentiles": "odonata.results.derived",
    "links": "odonata.results.performance",
    "load": "odonata.experiment.reading",
    "load_plugin": "policies.plugins",
    "open": "odonata.results.run",
    "parameter": "policies.parameters",
    "performance": "odonata.results.performance",
    "place": "odonata.jobs.placement",
    "routing": "policies.routing",
    "run": "pdes.driver",
    "scheduling": "policies.scheduling",
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
