"""Odonata simulates a dragonfly supercomputer: packets in its network, jobs on its nodes, watts in
its budget. This is its public face; importing it is cheap, and what is heavy comes when first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from odonata._version import __version__

__all__ = ["Fault", "Phold", "Refused", "Result", "__version__", "run"]

_HOMES = {
    "Fault": "pdes.errors",
    "Phold": "pdes.phold",
    "Refused": "pdes.errors",
    "Result": "pdes.driver",
    "run": "pdes.driver",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'odonata' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
