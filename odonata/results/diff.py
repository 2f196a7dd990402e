"""`odonata diff`: are the metrics of two runs the same, bit for bit, and if not, where?

What depends on the machine that the simulation ran on is left aside: `engine/`, and attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from odonata.experiment.units import show_time
from odonata.results.run import Run
from pdes.clock import TICKS
from pdes.errors import Refused

ASIDE = "engine/"
BLOCK_BYTES = 1 << 26


@dataclass(frozen=True)
class Difference:
    """A dataset that is not the same in both runs."""

    dataset: str
    what: str
    values: int | None = None
    """The number of values that differ, where the shapes are the same."""
    first: str | None = None
    """Where the first difference is, and the value in either run."""


@dataclass(frozen=True)
class Verdict:
    datasets: int
    samples: int
    values: int
    """The number of datasets that were compared."""
    differences: list[Difference]

    @property
    def same(self) -> bool:
        return not self.differences


def compare(a: Run, b: Run) -> Verdict:
    if a.tick != b.tick:
        raise Refused(f"{a.path} and {b.path}: one simulated packets and the other jobs: they have "
                      "no dataset in common")  # fmt: skip
    ours, theirs = _datasets(a), _datasets(b)
    differences, values = [], 0
    for name in sorted({*ours, *theirs}):
        if name not in ours or name not in theirs:
            where = a.path if name in ours else b.path
            differences.append(Difference(name, f"only in {where}"))
            continue
        one, other = ours[name], theirs[name]
        fixed = int(_sampled(one))  # lengths in time may differ
        if one.shape[fixed:] != other.shape[fixed:] or one.dtype != other.dtype:
            differences.append(Difference(
                name, f"{one.dtype} {list(one.shape)} and {other.dtype} {list(other.shape)}"
            ))  # fmt: skip
        else:
            values += min(one.size, other.size)
            if found := _values(name, a, b):
                differences.append(found)
    if len(a.time) != len(b.time):
        lengths = f"{len(a.time)} samples and {len(b.time)}; of others, those that both have"
        differences.append(Difference(f"time_{a.tick}", lengths))
    return Verdict(len({*ours, *theirs}), min(len(a.time), len(b.time)), values, differences)


def _datasets(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def note(name: str, thing: Any) -> None:
        if isinstance(thing, h5py.Dataset) and not name.startswith(ASIDE):
            found[name] = thing

    run.file.visititems(note)
    return found


def _sampled(dataset: Any) -> bool:
    return bool(dataset.dims[0].label == "time")


def _values(name: str, a: Run, b: Run) -> Difference | None:
    """Compare two datasets as bytes, some samples at a time, as far as both have samples."""
    one, other = a.file[name], b.file[name]
    rows = max(1, BLOCK_BYTES // max(1, one.dtype.itemsize * int(np.prod(one.shape[1:]))))
    count, first, samples = 0, None, min(len(one), len(other))
    for start in range(0, samples, rows):
        left, right = (run.read(name, slice(start, min(start + rows, samples))) for run in (a, b))
        if left.tobytes() == right.tobytes():
            continue
        apart = np.argwhere(left != right)
        count += len(apart)
        if first is None and len(apart):
            at = tuple(apart[0].tolist())
            names = [f"{label.label} {i}" for label, i in zip(one.dims, at, strict=True)]
            if _sampled(one):
                when = show_time(int(a.time[start + at[0]]) * TICKS[a.tick])
                names[0] = f"sample {start + at[0]} ({when})"
            first = f"{', '.join(names)}: {left[at]} and {right[at]}"
    return Difference(name, f"{count:,} of {one.size:,} values", count, first) if count else None


def words_for(verdict: Verdict, a: Run, b: Run) -> str:
    if verdict.same:
        return (f"the same, bit for bit: {verdict.datasets} datasets, {verdict.samples} samples, "
                f"{verdict.values:,} values")  # fmt: skip
    lines = [f"{a.path} and {b.path} differ in {len(verdict.differences)} of "
             f"{verdict.datasets} datasets:"]  # fmt: skip
    for found in verdict.differences:
        lines.append(f"  {found.dataset}: {found.what}"
                     + (f"; the first at {found.first}" if found.first else ""))  # fmt: skip
    return "\n".join(lines)
