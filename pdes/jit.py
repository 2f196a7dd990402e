"""The compiler: the one place where kernels are compiled.

Three decorators: `kernel` for what the hot loop calls (inlined into it), `entry` for what Python
calls (compiled once, kept on disk), and `bind` for a loop that is written once and compiled once
per model; and `record` marks a NamedTuple that kernels are passed. With ``ODONATA_JIT=0`` each of
them returns what it is given, so a kernel is its own readable twin: same results, bounds checked,
stoppable in pdb.

What a kernel may not do: allocate an array, raise, or count on signed overflow. Reference counting
is off (``_nrt=False``), which made the same loop three times faster; a kernel that runs out of room
returns a status and Python grows the array.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import platform
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pdes import shown
from pdes.compiler_words import explained
from pdes.errors import Refused
from pdes.kernel_cache import cache_root, folder_for, keep_in, prune

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

ENABLED = os.environ.get("ODONATA_JIT", "1") != "0" and os.environ.get("NUMBA_DISABLE_JIT") != "1"

_cache_dir_lock = threading.Lock()
"""Numba knows one cache directory per process; it is ours only while one function is decorated."""

if ENABLED:
    # Where colorama is installed, numba colours what it says of every implementation that does not
    # fit, which took a twentieth of the time to compile. It reads this when it is imported.
    COLOURLESS = "NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING"
    _named = COLOURLESS in os.environ
    os.environ.setdefault(COLOURLESS, "1")

    import numba
    from numba.core import errors as numba_errors
    from numba.core import event as numba_event
    from numba.core.errors import NumbaError
    from numba.extending import intrinsic

    try:
        from pdes.inlining import PART, WHOLE
        from pdes.records import mark
    except (ImportError, AttributeError):  # this numba is not made as those they are written for
        PART, WHOLE, mark = {}, {}, lambda made_of: None
    if not _named:
        del os.environ[COLOURLESS]

    # Where colorama is installed, numba has it reset the colours of stdout when Python ends: four
    # bytes behind a user's JSON. This tells it that it has done so already.
    if "colorama.initialise" in sys.modules:
        sys.modules["colorama.initialise"].atexit_done = True  # type: ignore[attr-defined]

    UnsupportedBytecodeError = getattr(numba_errors, "UnsupportedBytecodeError", NumbaError)
    OPTIONS = {"_nrt": False, "error_model": "numpy", "boundscheck": False}
    INLINED = {"forceinline": True, "no_cfunc_wrapper": True}
    CALLED = {"no_cfunc_wrapper": True, **WHOLE}
    MADE_BY = {
        __file__,
        *(str(Path(__file__).with_name(f"{n}.py")) for n in ("inlining", "records")),
    }


_compiled: dict[int, Any] = {}
"""The functions of all kernels, by their `id`."""


def kernel(function: F) -> F:
    """Compile for use inside other kernels, and inline it there.

    Without the wrapper that lets Python call it, which for a hundred kernels took longer to compile
    than the kernels. Python may call it all the same, a test for example: then a twin is compiled.
    """
    if not ENABLED:
        return function
    code = function.__code__
    _compiled[id(function)] = function
    if code.co_flags & inspect.CO_VARARGS or code.co_name in code.co_names:
        # The arguments of the one would be packed twice, the other would call its twin.
        return numba.njit(function, **INLINED, **OPTIONS)  # type: ignore[no-any-return]
    bare = {"no_cpython_wrapper": True}
    inlined = numba.njit(function, **bare, **INLINED, **OPTIONS, **PART)
    states, templates = inlined._reduce_states, inlined.get_call_template

    @cache
    def twin() -> Any:
        return numba.njit(function, **OPTIONS)

    def wrapped() -> dict[str, Any]:
        state = states()
        return {**state, "targetoptions": {**state["targetoptions"], **dict.fromkeys(bare, False)}}

    # What has been compiled is known to kernels, and not to calls from Python, which then ask for
    # it to be compiled; and what another process unpickles is an ordinary function of numba's.
    inlined.add_overload = lambda made: inlined.overloads.update({made.signature.args: made})
    inlined._compile_for_args = lambda *arguments: twin()
    inlined._reduce_states = wrapped
    # A constant is inlined as well, without a copy of the kernel that is compiled for it alone.
    unliteral = numba.types.unliteral
    inlined.get_call_template = lambda args, kws: templates(
        tuple(map(unliteral, args)), {name: unliteral(each) for name, each in kws.items()}
    )
    return inlined  # type: ignore[no-any-return]


def entry(function: F) -> F:
    """Compile for calls from Python, and keep the result on disk.

    Numba's own cache notices a change in this function's file, but not in a kernel that it calls or
    in a constant that either reads; so the directory is named by a hash of all of these.
    """
    if not ENABLED:
        return function
    folder = folder_for(_digest(function))
    with _cache_dir_lock:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(folder)
        try:
            made = numba.njit(function, cache=True, **CALLED, **OPTIONS)
            keep_in(made._cache, folder)
        except (RuntimeError, AttributeError, TypeError):
            # It comes from no file: a notebook, or standard input. Or this numba keeps functions in
            # another way, of which nobody knows what it loads.
            return numba.njit(function, **CALLED, **OPTIONS)  # type: ignore[no-any-return]
        finally:
            numba.config.CACHE_DIR = before
    _load_machine_code_alone(made._cache)
    return made  # type: ignore[no-any-return]


def _load_machine_code_alone(kept: Any) -> None:
    """Have what numba keeps of a function loaded without all that it needs to compile one, which
    would be a third of the time in which a process starts. Where nothing is kept, it is compiled,
    and numba loads the rest."""

    def load_overload(signature: Any, context: Any) -> Any:
        with kept._guard_against_spurious_io_errors():
            return kept._load_overload(signature, context)

    kept.load_overload = load_overload


def record(made_of: C) -> C:
    """Have kernels be passed the address of such a NamedTuple (`pdes.records`), instead of all that
    is in it. With many arrays they compile in half the time; they may use its attributes only."""
    if ENABLED:
        mark(made_of)
    return made_of


def bind(template: F, name: str, **names: Any) -> F:
    """Returns a copy of `template` in which each of `names` is another global, compiled as an
    `entry`.

    Globals rather than arguments or closures, because only those let the compiled copy be kept on
    disk.
    """
    return entry(rebound(template, name, **names))


def rebound(template: F, name: str, **names: Any) -> F:
    """Returns such a copy, not compiled: for a `kernel` that comes in several kinds."""
    copy = types.FunctionType(template.__code__, {**template.__globals__, **names}, name)
    copy.__qualname__ = name
    copy.__module__ = template.__module__
    return copy  # type: ignore[return-value]


def direct(function: F, *arguments: Any) -> F:
    """Returns the compiled code of an `entry` for arguments of exactly these types.

    It saves the look at every argument that the compiler's dispatcher takes on every call: 0.6
    microseconds instead of 6 for a loop and its state. The caller keeps to these types.
    """
    if not ENABLED:
        return function
    assert "forceinline" not in function.targetoptions, "a kernel cannot be called from Python so"  # type: ignore[attr-defined]
    key = (function, *map(kind_of, arguments))
    found = _DIRECT.get(key)
    if found is None:
        signature = tuple(numba.typeof(argument) for argument in arguments)
        function.compile(signature)  # type: ignore[attr-defined]
        found = _DIRECT[key] = function.overloads[signature].entry_point  # type: ignore[attr-defined]
    return found  # type: ignore[no-any-return]


_DIRECT: dict[Any, Any] = {}
"""The compiled code of entries, by the kinds of their arguments."""


def kind_of(argument: Any) -> Any:
    """Returns what stands for the compiler's type of an argument, which is 50 times as slow to find
    for a tuple of many arrays."""
    if isinstance(argument, tuple):
        return type(argument), tuple(map(kind_of, argument))
    if isinstance(argument, np.ndarray):
        return argument.dtype, argument.ndim, argument.flags.num
    return type(argument)


def _digest(function: Callable[..., Any]) -> str:
    """Returns a name for all that is compiled into a function, under this compiler."""
    about = [numba.__version__, sys.version, platform.machine()]
    files = set(MADE_BY)
    _describe(function, about, files, set())
    hashed = hashlib.sha256(repr(about).encode())
    contents = (Path(f).read_bytes() if os.path.exists(f) else f.encode() for f in files)
    for content in sorted(contents):  # not by path: a plug-in may move
        hashed.update(content)
    return hashed.hexdigest()[:16]


def _describe(thing: Any, about: list[str], files: set[str], seen: set[int]) -> None:
    """Note the file of a function and of every function it calls, and every constant they read."""
    function = getattr(thing, "py_func", thing)
    if not isinstance(function, types.FunctionType):
        if isinstance(thing, int | float | complex | str | bytes | tuple | np.generic):
            about.append(repr(thing))
        elif isinstance(thing, type):
            about.append(f"{thing.__module__}.{thing.__qualname__}")
        elif isinstance(thing, np.ndarray):
            about.append(repr(thing.tolist()))
        return
    if id(function) in seen:
        return
    seen.add(id(function))
    files.add(function.__code__.co_filename)
    code = function.__code__
    about.append(f"{function.__module__}.{function.__qualname__}")
    about.append(code.co_code.hex())  # two functions of one file may have one name
    about.append(repr([each for each in code.co_consts if not isinstance(each, types.CodeType)]))
    names = code.co_names
    known = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    for name in sorted({*names, *function.__code__.co_freevars} & set(known)):
        value = known[name]
        about.append(name)
        if isinstance(value, types.ModuleType):
            for attribute in sorted(set(names) & set(vars(value))):
                if value.__name__.partition(".")[0] not in ("numpy", "math"):
                    _describe(vars(value)[attribute], about, files, seen)
        else:
            _describe(value, about, files, seen)


@contextmanager
def explaining(asked: Callable[..., Any] | None = None) -> Iterator[None]:
    """Turns what the compiler says of a kernel that it cannot compile into one sentence. `asked` is
    the kernel that is called here, if one is."""
    if not ENABLED:
        yield
        return
    try:
        yield
    except Exception as error:
        if not isinstance(error, NumbaError | UnsupportedBytecodeError) and not _inside(error):
            raise
        words = explained(error, _compiled, getattr(asked, "py_func", None))
        raise Refused(f"a kernel cannot be compiled: {words}") from error


def _inside(error: Exception) -> bool:
    """Tells whether it was the compiler that failed, and not what it had compiled."""
    return Path(traceback.extract_tb(error.__traceback__)[-1].filename).is_relative_to(
        Path(numba.__file__).parent
    )


class Compiled:
    """What a block of code has compiled: when that began, or 0."""

    began = 0.0

    def __bool__(self) -> bool:
        return self.began > 0


@contextmanager
def compiling(first: Callable[[], None] = lambda: None) -> Iterator[Compiled]:
    """Tells whether anything is compiled in this block, and calls `first` when it begins."""
    compiled = Compiled()
    if not ENABLED:
        yield compiled
        return

    class Listener(numba_event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            if not compiled:
                compiled.began = time.perf_counter()
                first()

        def on_end(self, event: Any) -> None:
            pass

    listener = Listener()
    numba_event.register("numba:compile", listener)
    try:
        yield compiled
    finally:
        numba_event.unregister("numba:compile", listener)


@contextmanager
def compile_notice(show: bool, how_often: str) -> Iterator[None]:
    """Says on stderr that kernels are being compiled, if and only if they are."""

    def say(words: str) -> None:
        if show:
            shown.say(words)

    with compiling(lambda: say(f"compiling kernels, {how_often} ...")) as compiled:
        yield
    if compiled and show:
        say(f"compiled in {time.perf_counter() - compiled.began:.1f} s")
        prune(cache_root())


if ENABLED:

    @intrinsic  # type: ignore[untyped-decorator]
    def ticks(typingctx: Any) -> Any:
        """Returns the count of a cheap clock without a unit: only ratios of its differences mean
        anything."""
        from llvmlite import binding, ir

        binding.initialize_native_asmparser()

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.IntType(64)
            if platform.machine() in ("aarch64", "arm64"):
                read = ir.InlineAsm(
                    ir.FunctionType(word, []), "mrs $0, cntvct_el0", "=r", side_effect=True
                )
                return builder.call(read, [])
            read = builder.module.declare_intrinsic(
                "llvm.readcyclecounter", fnty=ir.FunctionType(word, [])
            )
            return builder.call(read, [])

        return numba.int64(), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def prefetch(typingctx: Any, array: Any, row: Any) -> Any:
        """Prefetch the first cache line of a row that is about to be used."""
        from llvmlite import ir

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, value=args[0])
            stride = builder.extract_value(view.strides, 0)
            address = builder.gep(
                builder.bitcast(view.data, ir.IntType(8).as_pointer()),
                [builder.mul(args[1], stride)],
            )
            word, byte = ir.IntType(32), ir.IntType(8).as_pointer()
            kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
            function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
            builder.call(function, [address, word(1), word(3), word(1)])
            return context.get_dummy_value()

        return numba.void(array, numba.int64), codegen

else:
    ticks = time.perf_counter_ns

    def prefetch(array: Any, row: int) -> None:
        return None
