"""CSV files of interarrival times, delays, service times and cores, as of the Karelian cluster.

They are the data sets of the R package hpcwld. A row is a job; all times are in seconds.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable

from odonata.traces.columns import LONGEST_US, MOST_NODES, NO_SIZE, TOO_LONG, Rows, microseconds
from odonata.traces.lines import Where, blocks, lines
from odonata.traces.trace import SECOND, Trace
from pdes.errors import Refused

COLUMNS = ("interarrival", "delays", "service", "cores_used")
BROKEN = "a row that has not as many fields as the header, or fields that are not numbers"
NO_SERVICE = "service time of 0 or less"
NEGATIVE_GAP = "time since the job before it below 0: taken as 0"


def read(pieces: Iterable[bytes], path: Where) -> Trace:
    """Returns the trace that the pieces of a file's text hold; `path` is for its name, and for what
    is refused.

    A job is submitted when all gaps up to its own have passed, so the first after the first gap.
    The gaps of rows that are dropped count too, unless they are not readable.
    """
    text = lines(blocks(pieces, path))
    titles = [name.strip().lower() for name in _fields(next(text, ""))]
    if missing := [name for name in COLUMNS if name not in titles]:
        raise Refused(
            f"{os.fspath(path)}: the first line has no column {', '.join(missing)}: "
            f"the columns must be {','.join(COLUMNS)}"
        )
    places = [titles.index(name) for name in COLUMNS]
    rows, now_us = Rows(), 0
    for line in text:
        number = rows.records = rows.records + 1
        fields = _fields(line)
        values = [microseconds(fields[at].strip()) if at < len(fields) else None for at in places]
        if len(fields) != len(titles) or None in values:
            rows.dropped[BROKEN] += 1
            continue
        gap_us, wait_us, run_us, cores_us = (value or 0 for value in values)
        if gap_us > LONGEST_US or now_us + gap_us > LONGEST_US:
            rows.dropped[TOO_LONG] += 1
            continue
        now_us += max(0, gap_us)
        cores = -(-cores_us // SECOND) if cores_us <= MOST_NODES * SECOND else MOST_NODES + 1
        if cores_us < SECOND:
            rows.dropped[NO_SIZE] += 1
        elif run_us <= 0:
            rows.dropped[NO_SERVICE] += 1
        else:
            kept = len(rows.kept)
            rows.add(number, now_us, wait_us if wait_us >= 0 else min(wait_us, -2), run_us, cores,
                     -1)  # fmt: skip
            rows.repaired[NEGATIVE_GAP] += gap_us < 0 and len(rows.kept) > kept
    return rows.trace(path)


def _fields(line: str) -> list[str]:
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], skipinitialspace=True), [])
    except csv.Error:
        return []
