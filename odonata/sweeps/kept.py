"""A sweep from its file to its results; and on disk, where its plan is in `sweep.json` and each
outcome is a line, as studies keep them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from odonata.study.filling import fill
from odonata.study.store import read
from odonata.sweeps.axes import OPTIONS, Wanted, axes_of, fits
from odonata.sweeps.optimising import TRIALS
from odonata.sweeps.plan import Plan, planned
from odonata.sweeps.saturating import Saturating
from odonata.sweeps.study import PLAN, Sweep
from odonata.sweeps.table import Swept
from pdes.checksum import is_intact
from pdes.errors import Refused

USUAL = {name: getattr(Wanted(), name) for name in OPTIONS[6:]}
"""What nobody had asked for before there was such an option."""
READER = Sweep(Plan("", (), (), (), Wanted(), ()))
"""Reads the outcomes of any sweep: of no point in particular."""


def plan_in(directory: Path) -> dict[str, Any]:
    """Returns what `Sweep.begin` has written. What older versions wrote has no checksum."""
    try:
        text = (directory / PLAN).read_bytes()
        facts: dict[str, Any] = json.loads(text)
        axes, wanted = facts["axes"], facts["wanted"]
        whole = is_intact(text) is not False
        whole &= all(isinstance(label, str) for labels in axes.values() for label in labels)
        facts["wanted"] = wanted = {**USUAL, **wanted}
        whole &= all(fits(name, wanted[name]) for name in OPTIONS)
        whole &= all(isinstance(seed, int) for seed in facts["seeds"])
        size = math.prod(map(len, axes.values())) * len(facts["seeds"])
        if whole and isinstance(facts["file"], str) and len(facts["points"]) == size:
            return facts
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass
    if (directory / TRIALS).exists():
        raise Refused(f"{directory}: holds a search; the command that made it shows it again, and "
                      f"simulates nothing; all trials are in {directory / TRIALS}")  # fmt: skip
    raise Refused(f"{directory}: holds no sweep ({PLAN} is not there, or damaged; the command that "
                  "made the sweep writes it again)")  # fmt: skip


def open_sweep(directory: Path | str) -> Swept:
    """Returns the results of the sweep in a directory, finished or not."""
    facts = plan_in(Path(directory))
    return Swept.of(facts, read(Path(directory), READER).outcomes)


def study_of(plan: Plan, part: tuple[int, int] | None = None) -> Sweep:
    """Returns the study of a plan, or of a part of it."""
    return (Saturating if plan.wanted.saturation else Sweep)(plan, part)


def sweep(
    file: Path | str,
    axes: Mapping[str, Any] | None = None,
    *,
    seeds: int | None = None,
    changes: Sequence[str] = (),
    out: Path | str | None = None,
    jobs: int = 1,
    plugins: Sequence[Path | str] = (),
) -> Swept:
    """Simulate the experiment in a file once for each combination of the values of `axes`, with
    each seed, and return the results: `sweep("mine.toml", {"network.routing": ["minimal",
    "ugal-l"]}, seeds=5).data` is an xarray dataset.

    An axis is a key with a list of values, or a name with a dictionary of changes for each label,
    as in the section [sweep] of a file; both are added to those of the file. `changes` are made to
    all, as `--set` does. With `out` every outcome is kept there, and what is there is not simulated
    again. `jobs` processes work at a time; under mpiexec all ranks do, and the first has the
    results.
    """
    wanted = {} if seeds is None else {"seeds": seeds}
    problems: list[str] = []
    varied = [*axes_of(axes or {}, "axes", problems)]
    if problems:
        raise Refused("\n".join(problems))
    plan = planned(Path(file), changes, plugins, wanted, varied)
    study = study_of(plan)
    _, store = fill(study, plan, None if out is None else Path(out), jobs)
    return Swept.of(study.facts(store.outcomes), store.outcomes)
