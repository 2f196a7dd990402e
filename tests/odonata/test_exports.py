from __future__ import annotations

import odonata


def test_the_public_face_is_exactly_this() -> None:
    assert dir(odonata) == ["Fault", "Phold", "Refused", "Result", "__version__", "run"]
    assert all(getattr(odonata, name) for name in dir(odonata))
