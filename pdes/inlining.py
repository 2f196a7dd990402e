"""Kernels that are inlined wherever they are called: compiled as far as their callers need them.

Numba optimises a function when it has compiled it, emits its machine code, and does both again with
the copy in every caller. The machine code of a kernel is never used. So a `Part` ends with its LLVM
code as it was first simplified, and a `Whole`, which Python calls, links all of its parts and is
optimised once. What numba finds out of an operation (that the sum of two integers is one) is
remembered, instead of searched for each time.

This goes by names of numba's that are not documented. Where one of them is missing, `PART` and
`WHOLE` are empty, and numba compiles in its own way: to the same results, in twice the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from numba.core import codegen, compiler, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.errors import NumbaError
from numba.core.types.functions import BaseFunction

PLAIN = (types.Number, types.Boolean, types.Array, types.BaseTuple)  # type: ignore[attr-defined]
"""Types of which an operation always has the same type."""


class PartLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
    """The LLVM code of one kernel, without that of the kernels that it calls."""

    complete: Any = None

    def finalize(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def alone(self) -> Any:
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """Returns the code with all that it calls, for a function that is no `Whole`."""
        if self.complete is None:
            self.complete = self.alone().clone()
            for library in _needed(self._linking_libraries):
                self.complete.link_in(_code(library), preserve=True)
        return self.complete


class WholeLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
    def finalize(self) -> None:
        for library in _needed(self._linking_libraries):  # type: ignore[has-type]
            if hasattr(self, "_reload_init"):  # of numba 0.61 and later
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(_code(library), preserve=True)
        self._linking_libraries: list[Any] = []
        if any(
            each.name.startswith(codegen.RuntimeLinker.PREFIX)
            for each in self._final_module.global_variables
        ):  # numba compiles these, and crashes when it has loaded them from disk
            raise NumbaError("kernels call each other in a circle")
        super().finalize()


def _needed(libraries: list[Any]) -> list[Any]:
    """Returns these libraries and those that their parts need, each once."""
    found = dict.fromkeys(libraries)
    waiting = list(found)
    while waiting:
        library = waiting.pop()
        if isinstance(library, PartLibrary):
            new = [each for each in library._linking_libraries if each not in found]
            found.update(dict.fromkeys(new))
            waiting += new
    return list(found)


def _code(library: Any) -> Any:
    part = isinstance(library, PartLibrary)
    return library.alone() if part else library._get_module_for_linking()


class Part(compiler.Compiler):  # type: ignore[misc]
    """Compiles a kernel. It has no machine code: what stands for its address is an object of its
    own, by which callers find it."""

    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        super().__init__(typing, target, PartLibrary(target.codegen(), "kernel"), *others)
        self.state.flags.no_compile = True

    def define_pipelines(self) -> list[Any]:
        """Leave out what finds nothing in a kernel: expressions of whole arrays, which would
        allocate, and functions within functions."""
        needless = {"NopythonRewrites"}
        if not any(isinstance(each, CodeType) for each in self.state.func_id.code.co_consts):
            needless.add("InlineClosureLikes")
        pipelines = []
        for ordinary in super().define_pipelines():
            passes = PassManager(ordinary.pipeline_name)
            for made_of, words in ordinary.passes:
                if made_of.__name__ not in needless:
                    passes.add_pass(made_of, words)
            passes.finalize()
            pipelines.append(passes)
        return pipelines

    def compile_extra(self, function: Any) -> Any:
        made = super().compile_extra(function)._replace(entry_point=object())
        made.target_context.insert_user_function(made.entry_point, made.fndesc, [made.library])
        return made


class Whole(compiler.Compiler):  # type: ignore[misc]
    """Compiles a function that Python calls."""

    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        library = WholeLibrary(target.codegen(), "entry")
        library.enable_object_caching()
        super().__init__(typing, target, library, *others)

    def compile_extra(self, function: Any) -> Any:
        with global_compiler_lock, _without_garbage(), _remembered_types():
            made = super().compile_extra(function)
            for environment in made._find_referenced_environments():  # those of its parts
                made.library.codegen.set_env(environment.env_name, environment)
        return made


@contextmanager
def _without_garbage() -> Iterator[None]:
    """Do not look for garbage: it takes a tenth of the time, and there is little."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@contextmanager
def _remembered_types() -> Iterator[None]:
    """Keep the types of operations on plain values, which are the same each time."""
    search = BaseFunction.get_call_type

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(isinstance(each, PLAIN) for each in args):
            return search(self, context, args, kws)
        key = self, tuple(args)
        if key not in _TYPES:
            _TYPES[key] = search(self, context, args, kws)
        return _TYPES[key]

    BaseFunction.get_call_type = get_call_type  # type: ignore[method-assign]
    try:
        yield
    finally:
        BaseFunction.get_call_type = search  # type: ignore[method-assign]


_TYPES: dict[Any, Any] = {}
_PRIVATE = {
    codegen.JITCodeLibrary: ("_finalize_dynamic_globals", "_finalized", "_get_module_for_linking"),
    compiler.CompileResult: ("_find_referenced_environments", "_replace"),
    codegen.RuntimeLinker: ("PREFIX",),
    compiler.Flags: ("no_compile",),
}
_AS_EXPECTED = all(hasattr(each, name) for each, names in _PRIVATE.items() for name in names)
PART: dict[str, Any] = {"pipeline_class": Part} if _AS_EXPECTED else {}
WHOLE: dict[str, Any] = {"pipeline_class": Whole} if _AS_EXPECTED else {}
"""Options of numba's for functions that are compiled so."""
