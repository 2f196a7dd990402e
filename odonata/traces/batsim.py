"""Workloads of Batsim: a JSON file of jobs and of the profiles that tell what they do.

Only run times count here, so a job is kept if its profile is a delay, or if the job or its profile
has a "runtime".
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

from odonata.traces.columns import MOST_NODES, NO_SIZE, Rows, rounded
from odonata.traces.lines import Where, words
from odonata.traces.trace import UNKNOWN, Trace
from pdes.errors import Refused

USERS = ("user", "user_id", "uid", "user_name", "subid")
PROJECTS = ("project", "group", "group_id", "gid", "account")
SHAPE = (
    '{"nb_res": 4, "jobs": [{"id": "0", "subtime": 0, "res": 2, "profile": "p"}], '
    '"profiles": {"p": {"type": "delay", "delay": 10}}}'
)


def read(pieces: Iterable[bytes], path: Where) -> Trace:
    """Returns the trace that the pieces of a file's text hold; `path` is for its name, and for what
    is refused."""
    where = os.fspath(path)
    workload = _parsed(b"".join(pieces), where)
    if not isinstance(workload, dict) or not isinstance(workload.get("jobs"), list):
        raise Refused(f'{where}: it has no list "jobs": a Batsim workload is like {SHAPE}')
    profiles = workload.get("profiles", {})
    if not isinstance(profiles, dict):
        raise Refused(
            f'{where}: its "profiles" are not an object: a Batsim workload is like {SHAPE}'
        )
    rows = Rows()
    for position, job in enumerate(workload["jobs"]):
        rows.records += 1
        if reason := _add(rows, job, position, profiles):
            rows.dropped[reason] += 1
    nodes = _number(workload.get("nb_res"))
    fine = nodes is not None and 1 <= nodes <= MOST_NODES and nodes == int(nodes)
    return rows.trace(path, int(nodes) if fine and nodes is not None else None)


def _parsed(text: bytes, where: str) -> Any:
    try:
        return json.loads(words(text), parse_float=_decimal, parse_constant=str)
    except json.JSONDecodeError as error:
        raise Refused(f"{where}: damaged JSON in line {error.lineno}, column {error.colno}: "
                      f"{error.msg}; fetch or write it again") from error  # fmt: skip
    except RecursionError as error:
        raise Refused(f"{where}: JSON that is nested too deeply: a Batsim workload is like "
                      f"{SHAPE}") from error  # fmt: skip
    except ValueError as error:  # a whole number of thousands of digits
        raise Refused(f"{where}: JSON with a number that is too long: {error}") from error


def _decimal(text: str) -> Decimal | str:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of 20 digits
        return text


def _number(value: Any) -> Decimal | None:
    """Returns a number of JSON, None for anything else: true, too, and nan and inf."""
    return (
        Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None
    )


def _add(rows: Rows, job: Any, position: int, profiles: dict[str, Any]) -> str | None:
    """Keep a job, or return why not."""
    if not isinstance(job, dict):
        return "a job that is not an object"
    subtime, size = _number(job.get("subtime")), _number(job.get("res"))
    if subtime is None or subtime < 0:
        return "time of submission unknown or below 0"
    if size is None or size <= 0 or size != size.to_integral_value():
        return NO_SIZE
    name = job.get("profile")
    profile = profiles.get(name) if isinstance(name, str) else None
    run = _number(job.get("runtime"))
    if run is None:
        if not isinstance(profile, dict):
            return "profile not among the profiles"
        kind = profile.get("type")
        run = _number(profile.get("runtime"))
        if run is None and kind == "delay":
            run = _number(profile.get("delay"))
        elif run is None:
            told = " ".join(kind.split())[:40] if isinstance(kind, str) else "unknown"
            return f"profile type {told} has no run time"
    if run is None or run < 0:
        return "run time unknown"
    asked = _number(job.get("walltime"))
    limit_us = UNKNOWN if asked is None or asked == UNKNOWN else max(rounded(asked), 0)
    nodes = int(size) if size <= MOST_NODES else MOST_NODES + 1
    rows.add(_identity(job.get("id"), position), rounded(subtime), UNKNOWN, rounded(run), nodes,
             limit_us, _text(job, USERS), _text(job, PROJECTS),
             name if isinstance(name, str) else "")  # fmt: skip
    return None


def _identity(given: Any, position: int) -> int:
    """Returns the number of a job: of 7, "7" or "w0!7" it is 7; of others, its position."""
    found = re.fullmatch(r"(?:.*!)?([0-9]{1,18})", str(given), re.ASCII | re.DOTALL)
    return int(found[1]) if found else position


def _text(job: dict[str, Any], keys: Iterable[str]) -> str:
    for key in keys:
        value = job.get(key)
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return "" if value == UNKNOWN else str(value)
    return ""
