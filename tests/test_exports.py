from __future__ import annotations

import pkgutil

import odonata


def test_the_public_face_is_exactly_this() -> None:
    assert dir(odonata) == [
        "Admitted", "AllocationPolicy", "Aries", "Bid", "BiddingPolicy", "Budget", "Caps",
        "Choices", "Cluster", "Configuration", "Discipline", "Dragonfly", "Ended", "Experiment",
        "Fault", "Job", "JobExperiment", "JobRecord", "LinkClass", "Market", "Measures", "Mold",
        "Moment",
        "NOBODY", "NO_MORE", "Network", "PRESETS", "Performance", "Phold", "Power", "PowerDesk",
        "PowerMeasures", "PowerPolicy", "PowerRecord", "PowerView", "Powered", "Readings",
        "Refused", "Request", "Result", "Routing", "Run", "Running", "Schedule",
        "SchedulingPolicy", "Sight", "Sizes", "Source", "Swept", "Target", "Trace", "Traffic",
        "Trial", "View", "Workload",
        "__version__", "allocation", "aries", "backfilling", "bidding", "busiest", "cable_matrix",
        "carried", "check_policy", "counters_of", "discipline", "draw_schedules", "fitting",
        "job_counters", "job_records", "latency_percentiles", "links", "load", "load_plugin",
        "measures", "network_energy", "open", "open_sweep", "parameter", "pattern", "performance",
        "place", "power", "power_measures", "read_trace", "recorded", "reproduction", "routing",
        "run", "scheduling", "simulate", "stall_to_flit", "summary", "sweep", "system",
        "traffic_matrix", "traffic_pattern", "utilisation",
    ]  # fmt: skip
    modules = {module.name for module in pkgutil.iter_modules(odonata.__path__)}
    assert not modules & {*dir(odonata)}, "a module would hide what has its name"
    assert all(getattr(odonata, name) is not None for name in dir(odonata))
