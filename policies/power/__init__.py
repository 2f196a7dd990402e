"""How many watts a job may draw: its configuration at its start, and caps from then on.

Read `base`, the contract; docs/policies.md has a worked example.
"""

from __future__ import annotations

from policies.power.base import (
    POWERS,
    Caps,
    Choice,
    Configuration,
    Powered,
    PowerPolicy,
    PowerView,
    power,
)

__all__ = [
    "POWERS",
    "Caps",
    "Choice",
    "Configuration",
    "PowerPolicy",
    "PowerView",
    "Powered",
    "power",
]
