"""The errors of the log-polynomial model on what it was not trained on, and what noise in the
measurements does to them."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from odonata.provisioning.fitted import tables
from odonata.provisioning.table import Table
from policies.power.prediction import predict
from policies.views import Choices, choices_of

if TYPE_CHECKING:
    from odonata.studies.rmap.simulation import Lists, Rows, Trained

Floats = npt.NDArray[np.float64]
BIN, BINS = 0.02, 40
"""Histograms of errors: the width of a bin, and how many there are on each side of 0."""
NOISE = 77
"""The purpose of its random numbers."""
LIMITS = {"mean": 0.10, "median": 0.077, "third quartile": 0.132, "max": 0.33}
"""Printed: what the error of the time is below, of each application."""
UNDER_10, UNDER_15 = 0.04, 0.0
"""Printed: the shares of points whose power is predicted too low by more than 10 and 15 %."""


def with_noise(table: Table, noise_time: float, noise_power: float, seed: int) -> Table:
    """Returns a table with lognormal noise of these levels in its seconds and watts: as it would be
    measured where runs differ so much."""
    words = (NOISE, seed, zlib.crc32(table.application.encode()))
    of_time, of_power = np.random.default_rng(words).standard_normal((2, len(table)))
    return replace(table, seconds=table.seconds * np.exp(noise_time * of_time),
                   watts=table.watts * np.exp(noise_power * of_power))  # fmt: skip


def trained(case: Trained) -> tuple[Rows, Lists]:
    """Returns the errors of each application: of the time, relative to what was measured, and how
    often power was predicted too low. Numbers are means over trainings, of what each has; `highest`
    and `lowest` are of all points of all trainings. `kept` is how many trainings keep every limit
    that the thesis prints; the row `all` is of the points of all applications together. Lists are
    histograms over all trainings, and numbers of each training."""
    rows: Rows = {}
    lists: Lists = {}
    edges: Floats = BIN * np.arange(-BINS, BINS + 1, dtype=np.float64)
    every_kept = np.ones((2, case.trainings), np.bool_)
    pooled: list[list[Floats]] = [[] for _ in range(case.trainings)]
    for name, table in tables("cab").items():
        found, kept, of_time, of_power = [], [], [], []
        for seed in range(1, case.trainings + 1):
            here = with_noise(table, case.noise_time, case.noise_power, seed)
            choices = _below_turbo(here) if case.without_turbo else here.choices
            time_error, power_error = errors(name, choices, case.share, seed, case.sampling)
            one = summary(time_error, power_error)
            found.append(one)
            kept.append(keeps(one))
            of_time.append(time_error)
            of_power.append(power_error)
            pooled[seed - 1].append(power_error)
        every_kept &= np.array(kept).T
        every_time, every_power = np.concatenate(of_time), np.concatenate(of_power)
        rows[name] = {what: float(np.mean([one[what] for one in found])) for what in found[0]} | {
            "highest": float(abs(every_time).max()),
            "lowest power": float(every_power.min()),
            "kept time": float(np.mean([one for one, _ in kept])),
            "kept power": float(np.mean([two for _, two in kept])),
        }
        lists[name] = {
            "quartiles": np.percentile(abs(every_time), (0, 25, 50, 75, 100)).tolist(),
            "time": _counts(every_time, edges),
            "power": _counts(every_power, edges),
        } | {what: [one[what] for one in found] for what in LIMITS}
    lists["all"] = {
        f"under {percent}": [float((np.concatenate(one) < -percent / 100).mean())
                             for one in pooled] for percent in (10, 15)
    }  # fmt: skip
    rows["all"] = _of_all(np.array([np.concatenate(one) for one in pooled])) | {
        "kept time": float(every_kept[0].mean()), "kept power": float(every_kept[1].mean()),
    }  # fmt: skip
    return rows, lists


def errors(
    name: str, choices: Choices, share: float, seed: int, sampling: str = "random"
) -> tuple[Floats, Floats]:
    """Returns the relative errors of time and power on the points that the model was not trained
    on, below 0 where it says too little; on all points where it was trained on all."""
    found = predict(name, choices, share, seed, sampling)
    held = ~found.trained if not found.trained.all() else found.trained
    return ((found.time / choices.time - 1.0)[held], (found.watts / choices.watts - 1.0)[held])


def summary(time_error: Floats, power_error: Floats) -> dict[str, float]:
    """Returns what the thesis says of errors."""
    size = abs(time_error)
    median, third = np.percentile(size, (50, 75)).tolist()
    return {
        "mean": float(size.mean()),
        "median": median,
        "third quartile": third,
        "max": float(size.max()),
        "under 10": float((power_error < -0.10).mean()),
        "under 15": float((power_error < -0.15).mean()),
        "lowest": float(power_error.min()),
        "power": float(abs(power_error).mean()),
    }


def keeps(found: dict[str, float]) -> tuple[bool, bool]:
    """Returns whether errors keep the limits that the thesis prints: of time, and of power."""
    return (all(found[what] < limit for what, limit in LIMITS.items()),
            found["under 10"] <= UNDER_10 and found["under 15"] <= UNDER_15)  # fmt: skip


def _of_all(power_error: Floats) -> dict[str, float]:
    """Returns what the thesis says of power, of the points of all applications together: the mean
    and the ends over trainings of the shares that are predicted too low."""
    found: dict[str, float] = {}
    for percent in (10, 15):
        shares = (power_error < -percent / 100).mean(axis=1)
        ends = np.percentile(shares, (5, 95)).tolist()
        found |= {f"under {percent}": float(shares.mean()), f"under {percent} least": ends[0],
                  f"under {percent} most": ends[1]}  # fmt: skip
    return found | {"lowest": float(power_error.min(axis=1).mean())}


def _below_turbo(table: Table) -> Choices:
    known = table.choices
    low = np.flatnonzero(known.cap_w < known.cap_w.max())
    return choices_of(*(column[low] for column in known.columns))


def _counts(errors: Floats, edges: Floats) -> list[float]:
    """Returns the share of errors in each bin; those beyond count in the outermost."""
    counts, _ = np.histogram(np.clip(errors, edges[0], edges[-1]), edges)
    return np.round(counts / len(errors), 6).tolist()  # type: ignore[no-any-return]
