"""Reads what jobs demand from a CSV file: watts per node, by application, user, project or job."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence

import numpy as np

from odonata.traces.demand import Demand
from odonata.traces.lines import Where, pieces
from odonata.traces.trace import Trace
from pdes.errors import Refused

BY = ("application", "user", "project", "job")
ACCEPTED = f"a header of one of {', '.join(BY)}, then watts, and spread if any"


def read_demand(path: Where, trace: Trace, otherwise_w: float) -> Demand:
    """Returns what the jobs of a trace demand, by a file whose header is `application,watts` (or
    user, project, or job: its number in the trace), with a third column `spread` if power
    fluctuates: its standard deviation from one measurement to the next, as a part of the mean. Jobs
    that are not named demand `otherwise_w`."""
    rows = _rows(path)
    (line, header), *rest = rows or [(1, [])]
    names = [cell.strip().lower() for cell in header]
    if names not in ([by, "watts", *more] for by in BY for more in ([], ["spread"])):
        raise Refused(f"{path}: line {line}: {', '.join(names) or 'nothing'}: {ACCEPTED}")
    mean_w, spread = np.full(len(trace), float(otherwise_w)), np.zeros(len(trace))
    places, seen = _places(trace, names[0]), {""}
    codes = trace.number if names[0] == "job" else getattr(trace, names[0])
    for line, cells in rest:
        if len(cells) != len(names):
            raise Refused(f"{path}: line {line}: {len(cells)} columns, and the header has "
                          f"{len(names)}")  # fmt: skip
        name = cells[0].strip()
        if name not in places or name in seen:
            why = "twice" if name in seen and name else f"the trace has no such {names[0]}"
            raise Refused(f"{path}: line {line}: {name!r}: {why}")
        seen.add(name)
        watts, *more = (_number(path, line, column, cell) for column, cell in
                        zip(names[1:], cells[1:], strict=True))  # fmt: skip
        if watts <= 0 or any(not 0 <= part < 1 for part in more):
            raise Refused(f"{path}: line {line}: {', '.join(cells[1:])}: watts above 0, and a "
                          "spread from 0 to below 1")  # fmt: skip
        which = codes == places[name]
        mean_w[which], spread[which] = watts, more[0] if more else 0.0
    ones = np.ones(len(trace))
    return Demand(mean_w, spread, ones, ones)


def _rows(path: Where) -> list[tuple[int, list[str]]]:
    """Returns the lines that are neither empty nor comments, with their numbers, cut into cells."""
    try:
        text = b"".join(pieces(path)).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused(f"{path}: not text in UTF-8") from None
    lines = text.splitlines()
    return [(number, next(csv.reader([line]))) for number, line in enumerate(lines, 1)
            if line.strip() and not line.lstrip().startswith("#")]  # fmt: skip


def _places(trace: Trace, by: str) -> dict[str, int]:
    """Returns the numbers that the names in a file stand for."""
    if by == "job":
        return {str(number): number for number in trace.number.tolist()}
    known: Sequence[str] = getattr(trace, f"{by}s")
    return {name: place for place, name in enumerate(known) if name}


def _number(path: Where, line: int, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Refused(f"{path}: line {line}: {column} = {text.strip()!r}: a number, without a unit")
    return value
