"""Directories of `odonata latency -o` in which curves were kept before they were sweeps: their
points are taken over where the same are asked for, and are not simulated again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.experiment.experiment import Experiment
from odonata.experiment.units import time_ps
from odonata.results.register import flat
from odonata.results.steadiness import UNSETTLED
from odonata.study.contract import digest
from odonata.study.store import path_in
from odonata.sweeps.outcomes import SweepOutcome
from odonata.sweeps.plan import Point
from odonata.sweeps.saturating import Saturating
from pdes.checksum import is_intact
from pdes.driver import run
from pdes.shown import say
from pdes.transport import Serial
from topology.presets import PRESETS

STUDY, KEPT = "load-latency", "load-latency.jsonl"
"""What such a store is called in its first line, and the file that it then becomes."""


@dataclass(frozen=True)
class Continued(Saturating):
    """The study of a plan of which points were kept in the old way: by their keys."""

    older: Mapping[str, SweepOutcome] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "older": self.older}

    def simulate(self, case: Point) -> SweepOutcome:
        return self.older.get(case.key) or super().simulate(case)


def continued(study: Saturating, directory: Path) -> Saturating:
    """Returns the study with what a directory has kept in the old way, if anything; its file makes
    room for that of the sweep."""
    path, old = path_in(directory), directory / KEPT
    if not old.exists() and path.exists():
        with path.open("rb") as file:
            first = file.readline()
        if is_intact(first) is False or json.loads(first or b"{}").get("study") != STUDY:
            return study
        path.rename(old)
        say(f"{old}: points that were kept before curves were sweeps; those that are asked for are "
            "taken over")  # fmt: skip
    if not old.exists():
        return study
    _, *lines = old.read_bytes().splitlines(keepends=True)
    whole = [line for line in lines if line.endswith(b"\n") and is_intact(line) is not False]
    known = {line["key"]: line for line in map(json.loads, whole)}
    older: dict[str, SweepOutcome] = {}
    for point in study.plan.points:
        line = known.get(_key(point, time_ps(study.plan.wanted.longest)))
        if line is not None:
            older |= _outcomes(study, point, line)
    return Continued(study.plan, study.part, older)


def _outcomes(study: Saturating, point: Point, line: Mapping[str, Any]) -> dict[str, SweepOutcome]:
    """Returns what a line has of the last run at a load; runs before it, which were shorter, are
    not known but for not having settled."""
    figures = dict(line["performance"])
    found = figures.pop("steadiness")
    last = SweepOutcome({**dict(flat(figures)), "events": float(line["events"])}, {},
                        line["digest"], "", {}, found["verdict"], found["why"],
                        dict(flat(found)))  # fmt: skip
    before = replace(last, figures={**last.figures, "events": 0.0}, verdict=UNSETTLED)
    made, stretch = {}, 1
    while stretch <= line["stretch"]:
        key = study.point(point, stretch).key
        made[key] = last if stretch == line["stretch"] else before
        stretch *= 2
    return made


def _key(point: Point, longest_ps: int) -> str:
    """Returns the key that a point had."""
    made = point.experiment()
    assert isinstance(made, Experiment)
    network = made.model()
    parameters = {name.replace("traffic.0.", "traffic."): value
                  for name, value in network.parameters().items()}  # fmt: skip
    fields = {
        "routing": network.routing, "load": network.traffic[0].load, "end_ps": made.run.end,
        "longest_ps": longest_ps, "mark": _mark(network.routing), "network": parameters,
    }  # fmt: skip
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@cache
def _mark(routing: str) -> str:
    """Returns a digest of this simulator in a short run with a routing."""
    machine = PRESETS["kim-72"].machine
    found = []
    for pattern in ("uniform", "adversarial"):
        network = Network(machine, (Traffic(pattern, load=0.3),), routing=routing)
        found.append(run(network, 2_000_000, transport=Serial()).digest)
    return digest(found)
