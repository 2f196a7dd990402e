"""Kernels are compiled into what calls them, and only there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import clean_environment

from pdes import jit
from pdes.errors import Refused
from pdes.jit import entry, kernel

compiled_only = pytest.mark.skipif(not jit.ENABLED, reason="it is about the compiler")


@kernel
def doubled(x: int) -> int:
    return 2 * x


@kernel
def quadrupled(x: int) -> int:
    return doubled(doubled(x))


@entry
def with_constants(x: int) -> int:
    return quadrupled(x) + doubled(1) + doubled(2) + doubled(x)


@compiled_only
def test_a_kernel_has_no_machine_code_and_no_copy_for_each_constant() -> None:
    from pdes.inlining import PartLibrary

    assert with_constants(5) == 20 + 2 + 4 + 10
    if not with_constants.stats.cache_hits:  # type: ignore[attr-defined]
        for each in (doubled, quadrupled):
            (made,) = each.overloads.values()  # type: ignore[attr-defined]
            assert isinstance(made.library, PartLibrary)
            assert not made.library.get_pointer_to_function(made.fndesc.llvm_func_name)


def test_an_entry_may_be_called_again_with_arguments_of_another_type() -> None:
    assert with_constants(5) == 36
    assert with_constants(0.5) == 9.0  # type: ignore[arg-type]


@kernel
def even(n: int) -> bool:
    if n == 0:
        return True
    return odd(n - 1)


@kernel
def odd(n: int) -> bool:
    if n == 0:
        return False
    return even(n - 1)


@entry
def circle(n: int) -> bool:
    return even(n)


@compiled_only
def test_kernels_that_call_each_other_in_a_circle_are_refused() -> None:
    """Numba would compile them, and the process that loads them from disk would crash."""
    with pytest.raises(Refused, match="kernels call each other in a circle"), jit.explaining():
        circle(5)


@compiled_only
def test_with_a_numba_that_is_made_otherwise_kernels_compile_in_its_own_way(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from typing import NamedTuple\nimport numpy as np\n"
        "from pdes.jit import entry, kernel, record\n"
        "@record\nclass Two(NamedTuple):\n    a: object\n    b: object\n"
        "@kernel\ndef total(two):\n    return two.a[0] + two.b[0]\n"
        "@entry\ndef called(two):\n    return total(two)\n"
        "print(called(Two(np.ones(1), np.arange(2, 4))))\n"
    )
    code = "import sys; sys.modules['pdes.inlining'] = None; import mine"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
        env={**clean_environment(), "ODONATA_CACHE_DIR": str(tmp_path / "kept")},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("3.0\n", "")
