"""The accounting of Slurm, as `sacct --parsable2` prints it: a title line, then a job per line.

Its dates are local times without a zone. Where nobody gives the zone, they are taken as if clocks
were never changed: across a change the time between two submissions, and a wait time, is wrong by
an hour. Run times are not, since Slurm tells them by themselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo

from odonata.traces.clock import LATEST_US, WallClock, instant_us, zone_of
from odonata.traces.columns import LONGEST_US, MOST_NODES, Rows
from odonata.traces.lines import Where, blocks, lines
from odonata.traces.trace import SECOND, UNKNOWN, Trace
from pdes.errors import Refused

COMMAND = ("sacct --allusers --allocations --parsable2 --starttime=DATE --format=JobID,Submit,"
           "Start,End,ElapsedRaw,TimelimitRaw,NNodes,User,Account,JobName,State")  # fmt: skip
SIZES = ("nnodes", "allocnodes", "reqnodes")
UNLIMITED = ("", "unlimited", "partition_limit", "unknown", "none", "infinite", "invalid")
NO_DATE = ("", "unknown", "none", "n/a")
STEP = "a step, not a job"
RUNNING = "still running when it was recorded"
PENDING = "still waiting when it was recorded"
NOT_STARTED = "cancelled, or ended, before it started"
BROKEN = "a line that has not as many fields as the title line"
NO_SUBMIT = "time of submission not readable"
NO_RUN = "run time not readable"
BAD_LIMIT = "time limit not readable: taken as unknown"
ELIGIBLE = "time of submission not readable: when it became eligible is taken"
BAD_START = "start not readable: wait time taken as unknown"

_SPAN = re.compile(r"(?:([0-9]{1,9})-)?(?:([0-9]{1,9}):)?([0-9]{1,9}):([0-9]{1,2})(?:\.([0-9]+))?")
_WHOLE, _EPOCH_SECONDS = re.compile(r"[0-9]{1,12}"), re.compile(r"[0-9]{9,11}")
_LEADING, _SIZE = re.compile(r"[0-9]{1,18}"), re.compile(r"0*[1-9][0-9]*")


def read(pieces: Iterable[bytes], path: Where, zone: str | None = None) -> Trace:
    """Returns the trace that the pieces of a file's text hold; `path` is for its name, and for what
    is refused. The earliest submission is at 0. Dates without a zone are of `zone`; where none is
    given, they have to be all alike for the trace to have a wall clock."""
    reading = Reading(zone_of(zone) if zone else None)
    zone = None if reading.zone is None else str(reading.zone)
    text = lines(blocks(pieces, path))
    title = next(text, "").strip()
    titles = [name.strip().lower() for name in title.split("|")]
    _require_columns(titles, path)
    rows = Rows()
    for line in text:
        rows.records += 1
        fields = line.split("|")
        if len(fields) != len(titles):
            rows.dropped[BROKEN] += 1
        elif fields[0].strip().lower() == titles[0]:  # files put together
            rows.records -= 1
        elif reason := _add(rows, dict(zip(titles, map(str.strip, fields), strict=True)), reading):
            rows.dropped[reason] += 1
    clock = None
    if rows.kept:
        first = min(row[1] for row in rows.kept)
        rows.kept = [(row[0], row[1] - first, *row[2:]) for row in rows.kept]
        clock = reading.clock(first, zone)
    return rows.trace(path, header=(title,), clock=clock)


@dataclass
class Reading:
    """How dates are read, and which kinds of them there were."""

    zone: tzinfo | None
    instants: bool = False
    """Whether there was one with a zone, or in seconds since 1970."""
    local: bool = False

    def date_us(self, text: str, after_us: int | None = None) -> int | None:
        """Returns a date in us since 1970; as if local times were universal ones, where no zone is
        given. Also one that is told in seconds (SLURM_TIME_FORMAT=%s). None where it is none. Of a
        local time that comes twice it is the first after `after_us`."""
        if _EPOCH_SECONDS.fullmatch(text):
            self.instants = True
            return int(text) * SECOND
        if not text[:1].isdigit():
            return None
        try:
            date = datetime.fromisoformat(text)
            found = instant_us(date, self.zone, after_us)
        except (ValueError, OverflowError):
            return None
        self.instants |= date.tzinfo is not None
        self.local |= date.tzinfo is None
        return found

    def clock(self, begin_us: int, zone: str | None) -> WallClock | None:
        """Returns the wall clock of a trace whose first submission was at this date."""
        if not 0 < begin_us <= LATEST_US or (self.instants and self.local and zone is None):
            return None
        return WallClock(begin_us, zone, local=self.local and zone is None)


def _require_columns(titles: list[str], path: Where) -> None:
    needed = {
        "JobID": {"jobid", "jobidraw"} & {*titles},
        "Submit": {"submit", "eligible"} & {*titles},
        "ElapsedRaw": {"elapsed", "elapsedraw"} & {*titles} or {"start", "end"} <= {*titles},
        "NNodes": {*SIZES} & {*titles},
    }
    if missing := [name for name, there in needed.items() if not there]:
        raise Refused(f"{os.fspath(path)}: the title line has no {', '.join(missing)}: "
                      f"{COMMAND} prints what is needed")  # fmt: skip


def _add(rows: Rows, job: dict[str, str], reading: Reading) -> str | None:
    """Keep a job, or return why not."""
    identity = job.get("jobid") or job.get("jobidraw", "")
    if "." in identity or "." in job.get("jobidraw", ""):
        return STEP
    state = job.get("state", "").upper()
    submit_us = reading.date_us(job.get("submit", ""))
    start_us = reading.date_us(job.get("start", ""), None if submit_us is None else submit_us - 1)
    end_us = reading.date_us(job.get("end", ""), None if start_us is None else start_us - 1)
    run_us = _run_us(job, start_us, end_us)
    if state.startswith(("PENDING", "REQUEUED", "REQUEUE_HOLD", "CONFIGURING")) and not run_us:
        return PENDING
    if state.startswith(("RUNNING", "SUSPENDED", "COMPLETING", "RESIZING", "STAGE_OUT", "SIGNALING",
                         "STOPPED")):  # fmt: skip
        return RUNNING
    if not state and "end" in job and end_us is None and job["end"].lower() in NO_DATE:
        return RUNNING if start_us is not None else PENDING
    if not run_us and (state.startswith(("CANCELLED", "REVOKED"))
                       or ("start" in job and job["start"].lower() in NO_DATE)):  # fmt: skip
        return NOT_STARTED
    if run_us is None:
        return NO_RUN
    repaired = []
    if submit_us is None:
        submit_us = reading.date_us(job.get("eligible", ""))
        if submit_us is None:
            return NO_SUBMIT
        repaired += [ELIGIBLE] if "submit" in job else []
    wait_us = UNKNOWN
    if start_us is not None:
        wait_us = start_us - submit_us if start_us >= submit_us else -2
    elif "start" in job:
        repaired.append(BAD_START)
    limit_us = _limit_us(job)
    if limit_us is None:
        limit_us = UNKNOWN
        repaired.append(BAD_LIMIT)
    kept = len(rows.kept)
    rows.add(_number(job.get("jobidraw", "") or identity), submit_us, wait_us, run_us, _size(job),
             limit_us, job.get("user", ""), job.get("account", ""),
             job.get("jobname") or job.get("partition", ""))  # fmt: skip
    if len(rows.kept) > kept:
        rows.repaired.update(repaired)
    return None


def _number(identity: str) -> int:
    """Returns the number of a job: of 123, of 123_4 (of an array) and of 123+1 it is 123."""
    found = _LEADING.match(identity)
    return int(found[0]) if found else UNKNOWN


def _size(job: dict[str, str]) -> int:
    """Returns how many nodes it had or asked for; 0 where that is not known."""
    for name in SIZES:
        if _SIZE.fullmatch(job.get(name, "")):
            return int(job[name]) if len(job[name]) < 19 else MOST_NODES + 1
    return 0


def _run_us(job: dict[str, str], start_us: int | None, end_us: int | None) -> int | None:
    """Returns the run time in us: what is told in seconds, in hours and minutes, or by dates."""
    if found := _WHOLE.fullmatch(job.get("elapsedraw", "")):
        return int(found[0]) * SECOND
    if (span := _span_us(job.get("elapsed", ""))) is not None:
        return span
    if start_us is None or end_us is None or end_us < start_us:
        return None
    return end_us - start_us


def _limit_us(job: dict[str, str]) -> int | None:
    """Returns the time limit in us, UNKNOWN where there is none; None where it is not readable."""
    raw, text = job.get("timelimitraw", ""), job.get("timelimit", "")
    if _WHOLE.fullmatch(raw):
        return int(raw) * 60 * SECOND
    span = _span_us(text)
    if span is not None:
        return span
    return UNKNOWN if {raw.lower(), text.lower()} <= {*UNLIMITED} else None


def _span_us(text: str) -> int | None:
    """Returns a time like [DD-]HH:MM:SS or MM:SS in us."""
    found = _SPAN.fullmatch(text)
    if not found:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
    time = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return min(time * SECOND + int((found[5] or "0").ljust(6, "0")[:6]), LONGEST_US + 1)
