from __future__ import annotations

import pkgutil

import odonata


def test_the_public_face_is_exactly_this() -> None:
    assert dir(odonata) == [
        "Aries", "Dragonfly", "Experiment", "Fault", "LinkClass", "Network", "PRESETS",
        "Performance", "Phold", "Refused", "Result", "Routing", "Run", "Traffic", "__version__",
        "aries", "busiest", "cable_matrix", "carried", "latency_percentiles", "links", "load",
        "open", "performance", "run", "stall_to_flit", "summary", "system", "traffic_matrix",
        "utilisation",
    ]  # fmt: skip
    modules = {module.name for module in pkgutil.iter_modules(odonata.__path__)}
    assert not modules & {*dir(odonata)}, "a module would hide what has its name"
    assert all(getattr(odonata, name) for name in dir(odonata))
