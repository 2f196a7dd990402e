"""The kernel that reads lines of the Standard Workload Format straight into columns.

Numbers are read as their digits (the first 18 that count) and a power of ten, so that a decimal is
never a binary fraction: 0.1 s is 100,000 us. Scientific notation is a number too; nan and inf are
not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from odonata.traces.columns import (
    LONGEST_US,
    MOST_NODES,
    NO_REQUEST,
    NO_SIZE,
    NO_WAIT,
    TOO_LARGE,
    TOO_LONG,
)
from odonata.traces.trace import SECOND, UNKNOWN
from pdes.jit import entry, kernel

NUMBER, SUBMIT, WAIT, RUN, NODES, REQUESTED, USER, GROUP, EXECUTABLE = range(9)
"""The columns that are kept, as rows of the array that the kernel fills."""
COLUMNS = 9
FIELDS, MORE_FIELDS = 18, 21
"""Numbers of a record. Those of some machines have three fields more, or text, which are not read:
`{1,1} q_1d 1:ppn=4`. A line of 19 numbers is taken for a damaged one."""
SHORTEST_LINE = 2 * FIELDS
"""Bytes, with its end; a block has no more jobs than this goes into it, plus one."""

(FEW_FIELDS, NOT_NUMBERS, FRACTION, PARTIAL, NO_SUBMIT, CANCELLED, NO_RUN, SIZELESS, GIANT, LONG,
 KEPT, REQUEST, WAITED, ROUNDED) = range(14)  # fmt: skip
DROPPED = {
    FEW_FIELDS: "a line that has not 18 fields (or 21, or text after the 18th)",
    NOT_NUMBERS: "a line with fields that are not numbers",
    FRACTION: "a fraction (or more than 18 digits) where a whole number belongs",
    PARTIAL: "part of a checkpointed job (status 2, 3 or 4): only the whole job counts",
    NO_SUBMIT: "time of submission unknown or below 0",
    CANCELLED: "cancelled before it ran (status 5, run time 0)",
    NO_RUN: "run time unknown",
    SIZELESS: NO_SIZE,
    GIANT: TOO_LARGE,
    LONG: TOO_LONG,
}
REPAIRED = {REQUEST: NO_REQUEST, WAITED: NO_WAIT, ROUNDED: "size a fraction: rounded up"}
OUTCOMES = 14

AT, ROWS, COMMENTS = range(3)
_TAB, _LF, _FF, _CR, _SPACE = 9, 10, 12, 13, 32
_PLUS, _MINUS, _POINT, _ZERO, _NINE, _SEMICOLON, _E, _SMALL_E = 43, 45, 46, 48, 57, 59, 69, 101
_FULL = 10**17
"""Digits are added to a number below this."""
_BEYOND = 2**62
"""Stands for a number that is too large."""
_TENS = np.array([10**power for power in range(19)], np.int64)
_TIMES, _SIZES, _OTHERS = np.array([1, 2, 3, 8]), np.array([4, 7]), np.array([0, 10, 11, 12, 13])
"""Positions of fields in a line."""


@kernel
def _blank(byte: Any) -> Any:
    return byte == _SPACE or (_TAB <= byte <= _FF and byte != _LF)


@kernel
def _number(text: Any, at: Any, end: Any) -> tuple[Any, Any, Any, Any]:
    """Returns digits, power of ten and sign of the number that begins at `at`, and where the field
    ends; or where a field that is not a number ends, minus 1 and negated, so below 0."""
    byte = np.int64(text[at])
    negative = byte == _MINUS
    if negative or byte == _PLUS:
        at += 1
    digits, power, seen, fraction = np.int64(0), np.int64(0), False, False
    while at < end:
        byte = np.int64(text[at])
        if _ZERO <= byte <= _NINE:
            seen = True
            if digits < _FULL:
                digits = digits * 10 + (byte - _ZERO)
                power -= fraction
            else:
                power += not fraction
        elif byte == _POINT and not fraction:
            fraction = True
        else:
            break
        at += 1
    fine = seen
    if fine and at < end and (text[at] == _E or text[at] == _SMALL_E):
        at += 1
        sign = np.int64(1)
        if at < end and (text[at] == _PLUS or text[at] == _MINUS):
            sign -= 2 * (text[at] == _MINUS)
            at += 1
        exponent, fine = np.int64(0), False
        while at < end and _ZERO <= text[at] <= _NINE:
            exponent = min(exponent * 10 + (np.int64(text[at]) - _ZERO), np.int64(10**9))
            fine = True
            at += 1
        power += sign * exponent
    while at < end and not (_blank(text[at]) or text[at] == _LF or text[at] == _CR):
        fine = False
        at += 1
    return digits, power, negative, at if fine else -at - 1


@kernel
def _scaled(digits: Any, power: Any) -> tuple[Any, Any]:
    """Returns digits · 10^power, halves rounded up, and what was cut off: -1 if it was less than
    a half, 1 if it was a half or more, 0 if nothing."""
    if digits == 0:
        return 0, 0
    if power >= 0:
        if power > 18 or digits > _BEYOND // _TENS[power]:
            return _BEYOND, 0
        return digits * _TENS[power], 0
    if power < -18:
        return 0, -1
    whole = digits // _TENS[-power]
    rest = digits - whole * _TENS[-power]
    if rest == 0:
        return whole, 0
    if rest >= _TENS[-power] // 2:  # an even number: 5, 50, 500, ...
        return whole + 1, 1
    return whole, -1


@kernel
def _read_fields(fields: Any) -> bool:
    """Replaces the digits of a line's fields by their values: times in us, sizes rounded up, others
    as they are. A value that is too large is _BEYOND. Returns whether those are whole numbers that
    must be."""
    fine = True
    for at in range(_OTHERS.shape[0]):
        field = _OTHERS[at]
        value, cut = _scaled(fields[0, field], fields[1, field])
        if cut != 0 or value >= _TENS[18]:
            fine = False
        fields[0, field] = -value if fields[2, field] else value
    for at in range(_TIMES.shape[0]):
        field = _TIMES[at]
        value, cut = _scaled(fields[0, field], fields[1, field] + 6)
        if value > LONGEST_US:
            value = _BEYOND
        fields[0, field] = -value if fields[2, field] else value
    for at in range(_SIZES.shape[0]):
        field = _SIZES[at]
        value, cut = _scaled(fields[0, field], fields[1, field])
        if cut < 0:
            value += 1
        fields[0, field] = 0 if fields[2, field] else value
        fields[1, field] = cut != 0
    return fine


@kernel
def _judged(
    fields: Any, found: int, numbers: bool, text: bool, rows: Any, row: int, counts: Any
) -> int:
    """Returns what becomes of a line, and writes it down as a row if it is kept. `numbers`: its
    first 18 fields are such; `text`: one after these is not."""
    if found < FIELDS or (found != FIELDS and found != MORE_FIELDS and not text):
        return FEW_FIELDS
    if not numbers:
        return NOT_NUMBERS
    if not _read_fields(fields):
        return FRACTION
    submit, wait, run, requested = fields[0, 1], fields[0, 2], fields[0, 3], fields[0, 8]
    status = fields[0, 10]
    if 2 <= status <= 4:
        return PARTIAL
    if submit < 0:
        return NO_SUBMIT
    if status == 5 and run == 0:
        return CANCELLED
    if run < 0:
        return NO_RUN
    size = 7 if fields[0, 7] > 0 else 4
    nodes = fields[0, size]
    if nodes < 1:
        return SIZELESS
    if nodes > MOST_NODES:
        return GIANT
    if max(max(submit, wait), max(run, requested)) == _BEYOND:
        return LONG
    counts[ROUNDED] += fields[1, size]
    if requested < 1:
        counts[REQUEST] += requested != -SECOND
        requested = UNKNOWN
    if wait < 0:
        counts[WAITED] += wait != -SECOND
        wait = UNKNOWN
    rows[NUMBER, row], rows[SUBMIT, row], rows[WAIT, row] = fields[0, 0], submit, wait
    rows[RUN, row], rows[NODES, row], rows[REQUESTED, row] = run, nodes, requested
    for column in range(USER, EXECUTABLE + 1):
        rows[column, row] = fields[0, 11 + column - USER]
    return KEPT


@entry
def parse(text: Any, rows: Any, comments: Any, fields: Any, counts: Any, done: Any) -> bool:
    """Read a block of whole lines from done[AT] on, and return whether its end is reached: there
    may be more comments than room for them, and then it is called again.

    rows[column, job] and comments[comment] (begin and end) are filled from done[ROWS] and
    done[COMMENTS] on; counts[outcome] are added to; fields[3, 18] is scratch: digits, powers of ten
    and signs of a line.
    """
    at, end = done[AT], np.int64(text.shape[0])
    while at < end:
        byte = np.int64(text[at])
        if _blank(byte) or byte == _LF or byte == _CR:  # noqa: SIM109
            at += 1
            continue
        if byte == _SEMICOLON:
            if done[COMMENTS] == comments.shape[0]:
                done[AT] = at
                return False
            begin = at + 1
            while at < end and text[at] != _LF and text[at] != _CR:
                at += 1
            comments[done[COMMENTS], 0], comments[done[COMMENTS], 1] = begin, at
            done[COMMENTS] += 1
            continue
        found, numbers, more = 0, True, False
        while at < end:
            byte = np.int64(text[at])
            if byte == _LF or byte == _CR:  # noqa: SIM109
                break
            if _blank(byte):
                at += 1
                continue
            digits, power, negative, at = _number(text, at, end)
            if at < 0:
                at = -at - 1
                if found < FIELDS:
                    numbers = False
                else:
                    more = True
            if found < FIELDS:
                fields[0, found], fields[1, found], fields[2, found] = digits, power, negative
            found += 1
        outcome = _judged(fields, found, numbers, more, rows, done[ROWS], counts)
        counts[outcome] += 1
        done[ROWS] += outcome == KEPT
    done[AT] = at
    return True
