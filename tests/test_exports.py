from __future__ import annotations

import pkgutil

import odonata


def test_the_public_face_is_exactly_this() -> None:
    assert dir(odonata) == [
        "AllocationPolicy", "Aries", "Dragonfly", "Experiment", "Fault", "Floor", "Job",
        "JobRecord", "LinkClass", "Network", "PRESETS", "Performance", "Phold", "Refused",
        "Result", "Routing", "Run", "SchedulingPolicy", "Traffic", "Workload", "__version__",
        "allocation", "aries", "busiest", "cable_matrix", "carried", "discipline", "job_records",
        "latency_percentiles", "links", "load", "open", "performance", "place", "run",
        "stall_to_flit", "summary", "system", "traffic_matrix", "utilisation",
    ]  # fmt: skip
    modules = {module.name for module in pkgutil.iter_modules(odonata.__path__)}
    assert not modules & {*dir(odonata)}, "a module would hide what has its name"
    assert all(getattr(odonata, name) for name in dir(odonata))
