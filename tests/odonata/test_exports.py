from __future__ import annotations

import odonata


def test_the_public_face_is_exactly_this() -> None:
    assert dir(odonata) == [
        "Aries", "Dragonfly", "Fault", "LinkClass", "Network", "Performance", "Phold", "Refused",
        "Result", "Routing", "Traffic", "__version__", "aries", "performance", "run",
    ]  # fmt: skip
    assert all(getattr(odonata, name) for name in dir(odonata))
