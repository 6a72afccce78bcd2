"""Shared by the synthesiser's tests: C++ Candidates that are compiled together, and Triton's interpreter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.synthesis.checking import warpwright_native
from tests.synthesis.interpreter import Interpreter
from tests.synthesis.together import Together


@pytest.fixture(scope="session")
def together() -> Iterator[Together]:
    """Replace load_cpp for the session; a file registers the Candidates that it will run."""
    with pytest.MonkeyPatch.context() as patch:
        made = Together()
        patch.setattr(warpwright_native, "load_cpp", made)
        yield made


@pytest.fixture(scope="session")
def interpreter() -> Iterator[Interpreter]:
    with Interpreter() as one:
        yield one
