"""What a simulation depends on besides its case: the sources of the simulator, as a digest."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import odonata
import pdes
import policies
import topology

SIMULATING = ("agents", "cluster", "experiment", "jobs", "results", "traces")
"""The folders of `odonata` that decide what a simulation gives."""


@cache
def sources() -> str:
    """Returns a digest of all files of Python that decide what a simulation gives."""
    homes = [Path(str(package.__file__)).parent for package in (pdes, topology, policies)]
    homes += [Path(str(odonata.__file__)).parent / name for name in SIMULATING]
    total = hashlib.sha256()
    for home in homes:
        for path in sorted(home.rglob("*.py")):
            total.update(path.relative_to(home).as_posix().encode() + b"\0")
            total.update(path.read_bytes())
    return total.hexdigest()
