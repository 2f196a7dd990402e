from __future__ import annotations

import odonata


def test_the_public_face_is_exactly_this() -> None:
    assert dir(odonata) == [
        "Aries", "Dragonfly", "Fault", "LinkClass", "Network", "PRESETS", "Performance", "Phold",
        "Refused", "Result", "Routing", "Traffic", "__version__", "aries", "links", "performance",
        "run",
    ]  # fmt: skip
    for _ in range(2):  # what is fetched once must not be hidden by a module of that name
        assert all(getattr(odonata, name) for name in dir(odonata))
        assert callable(odonata.performance)
