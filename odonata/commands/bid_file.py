"""A bid in a file of JSON: what `odonata bid -o DIR` leaves in DIR/bid.json, and what
`odonata regulate --bid DIR/bid.json` offers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pdes.errors import Refused

SUFFIX = ".json"
FOR = ("workload", "nodes", "load", "standby", "policy", "preemption", "types", "deviation",
       "prices")  # fmt: skip
"""What a bid is made for: with another one of these it may come to something else."""


def read_bid(path: Path) -> dict[str, Any]:
    """Returns what a file says of a bid. Refused where it says no average and no reserve."""
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise Refused(f"--bid {path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise Refused(f"--bid {path}: it is no JSON, as `odonata bid -o DIR` writes it") from None
    numbers: list[Any] = [None]
    weights = found.get("weights", {}) if isinstance(found, dict) else None
    if isinstance(weights, dict) and not any(set(" =,") & {*name} for name in weights):
        numbers = [found.get("average_w"), found.get("reserve_w"), *weights.values()]
    if not all(map(_is_part, numbers)):
        raise Refused(f"--bid {path}: it has no average_w and reserve_w in watts, with weights by "
                      "type, as `odonata bid -o DIR` writes them")  # fmt: skip
    if found["reserve_w"] > found["average_w"]:
        raise Refused(f"--bid {path}: a reserve from 0 W up to the average")
    return dict(found)


def _is_part(value: Any) -> bool:
    """Tells whether this is a number that is not below 0."""
    if type(value) not in (int, float):
        return False
    try:
        return 0.0 <= float(value) < math.inf
    except OverflowError:
        return False


def parameters(found: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters of the bidding policy `fixed` that offers what a file says."""
    weights = " ".join(f"{name}={share!r}" for name, share in found.get("weights", {}).items())
    made = {"average": float(found["average_w"]), "reserve": float(found["reserve_w"])}
    return made | ({"weights": weights} if weights else {})


def other_than(found: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Returns for what else a bid was made than what there is here; empty if for nothing else, or
    if its file does not say it."""
    made = found.get("made_for", {})
    made = made if isinstance(made, dict) else {}
    other = [name for name in FOR if name in made and made[name] != here[name]]
    return "; ".join(f"{name} {_shown(made[name])}, here {_shown(here[name])}" for name in other)


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)
