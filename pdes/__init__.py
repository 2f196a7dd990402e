"""A conservative parallel discrete-event engine on MPI. It knows no network.

To understand it, read in this order: `clock` (units of time), `events` (the 32-byte row), `queue`,
`random`, `parcels`, `model` (what a model gives), `phold` (the shortest one), `loop` (the compiled
hot loop), `rules` and `decisions` (what is broken, and what is handled in Python), `protocol` (how
ranks agree), `engine` (one rank), `driver` (from the first event to the last). Beside these stand
`partition`, `outbox`, `transport` with `mailbox`, `launcher` and `watchman` (with `watch`, its
process), `advice`, `checkpoint` and `dealing` (on other ranks), `metrics`, `stream`, `log`, `past`,
`turnover`, `join`, `disk` and `hdf5` (what is recorded), `signals`, `arrays`, `errors`, and `jit`,
where the compiler is met (with `records`, how tuples are passed to kernels, and `inlining`).

To write a model, all that is needed can be had from here: see docs/models.md.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "pdes.dealing": ("ByAgent", "Deals", "Other"),
    "pdes.driver": ("Result", "run"),
    "pdes.errors": ("Fault", "Refused"),
    "pdes.events": ("Rows", "agent_of", "key_of", "kind_of", "pack", "port_of"),
    "pdes.jit": ("entry", "kernel", "record"),
    "pdes.launcher": ("rank",),
    "pdes.loop": ("Sim", "drop_parcel", "local", "new_parcel", "schedule"),
    "pdes.log": ("Field", "Log"),
    "pdes.model": ("Audits", "Carries", "Decides", "Decision", "Ends", "Lookahead", "Model",
                   "Streams"),
    "pdes.partition": ("Partition",),
    "pdes.queue": ("rows_of",),
    "pdes.stream": ("Recording", "Series", "Table"),
    "pdes.random": ("below", "draw", "exponential", "uniform"),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'pdes' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
