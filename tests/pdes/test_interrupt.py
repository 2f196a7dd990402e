"""SIGINT becomes a KeyboardInterrupt, and none is lost."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
import weakref
from collections.abc import Iterator

import pytest
from conftest import PATIENCE

from pdes.interrupt import interruptible

CALLED = """
import signal
def called():
    signal.raise_signal(signal.SIGINT)
    done.append(True)
"""


@pytest.fixture(autouse=True)
def usual_handler() -> Iterator[None]:
    """Python's own, also where these tests were started with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def call_back(module: str) -> list[bool]:
    """Have C call a function of that module which SIGINT reaches. Returns whether it came to its
    end."""
    done: list[bool] = []
    names = {"__name__": module, "done": done}
    exec(CALLED, names)
    ctypes.CFUNCTYPE(None)(names["called"])()
    return done


def wait() -> None:
    """Be where an interrupt can be raised, for as long as one may take."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        time.sleep(0.01)


def test_it_is_raised_at_once_where_python_can_pass_it_on() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_the_compiler_calls_comes_to_its_end_first() -> None:
    done: list[bool] = []

    def work() -> None:
        done.extend(call_back("llvmlite.binding.executionengine"))
        wait()

    with pytest.raises(KeyboardInterrupt), interruptible():
        work()
    assert done == [True]


class Goes:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_where_an_object_goes_it_is_not_lost() -> None:
    def work() -> None:
        Goes()
        wait()

    with pytest.raises(KeyboardInterrupt), interruptible():
        work()


def test_nor_where_a_weak_reference_is_told() -> None:
    class Thing:
        pass

    def work() -> None:
        thing = Thing()
        told = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
        del thing
        assert told() is None
        wait()

    with pytest.raises(KeyboardInterrupt), interruptible():
        work()


def test_a_handler_of_the_program_is_kept() -> None:
    seen: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    with interruptible():
        signal.raise_signal(signal.SIGINT)
    assert seen == [signal.SIGINT]


def test_another_thread_changes_nothing() -> None:
    found: list[object] = []

    def look() -> None:
        with interruptible():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]
