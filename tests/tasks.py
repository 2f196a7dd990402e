"""Tasks for worker processes, which import this file, and little else, to find them."""

from __future__ import annotations

import os
import time

from pdes.errors import Fault

FIRST_DIES = -1


def square(number: int) -> int:
    return number * number


def refuse_seven(number: int) -> int:
    if number == 7:
        raise Fault(f"number {number}: seven is not served")
    return number


def stumble(number: int) -> float:
    return 1 / number


def perish(number: int) -> int:
    if number == FIRST_DIES:
        os._exit(9)
    return number


def linger(number: int) -> int:
    time.sleep(0 if number == 0 else 600)
    return number
