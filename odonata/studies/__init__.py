"""Studies of published work, one folder each: its cases, its simulation, its claims, its figures.

Each is a `Study` (`odonata.study.contract`), listed here by its name.
"""

from __future__ import annotations

import difflib
import importlib
from typing import Any

from odonata.study.contract import Study
from pdes.errors import require

STUDIES = {
    "level-spread": "odonata.studies.levelspread:LevelSpread",
    "wallace": "odonata.studies.wallace:Wallace",
    "rumyantsev": "odonata.studies.rumyantsev:Rumyantsev",
    "rmap": "odonata.studies.rmap:Rmap",
    "congestion": "odonata.studies.congestion:Congestion",
    "nedd": "odonata.studies.nedd:NeDD",
    "regulation": "odonata.studies.regulation:Regulation",
    "aqa": "odonata.studies.aqa:Aqa",
    "bidding": "odonata.studies.bidding:Bidding",
    "together": "odonata.studies.together:Together",
}
"""The modules of the studies; importing one is cheap, and heavy imports come when it simulates."""


def named(name: str) -> Study[Any, Any, Any]:
    """Returns a study by name. Raises Refused, with the nearest name, where there is none."""
    near = difflib.get_close_matches(name, STUDIES, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    require(name in STUDIES, f"study {name!r}: one of {', '.join(STUDIES)}{hint}")
    module, _, made = STUDIES[name].partition(":")
    study: Study[Any, Any, Any] = getattr(importlib.import_module(module), made)()
    return study
