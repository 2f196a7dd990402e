"""Allocations that go by what the network reported do what they say, to the node."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from policies import views
from policies.allocation import base, network_data


@pytest.mark.parametrize("module", [base, network_data, views])
def test_examples_in_docstrings_are_so(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)
