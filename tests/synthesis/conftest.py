"""Shared by the synthesiser's tests: C++ Candidates that are compiled together, and Triton's interpreter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.synthesis.checking import module, warpwright_native
from tests.synthesis.interpreter import Interpreter
from tests.synthesis.together import Together

# What takes the compiler three quarters of the time of -O1, and inlines and keeps vectors in registers, too.
QUICK_BUILD = ["-Og", "-fno-exceptions", "-fno-asynchronous-unwind-tables"]


@pytest.fixture(
    scope="session",
    params=[pytest.param(QUICK_BUILD, id="Og"), pytest.param([], id="O3", marks=pytest.mark.soak)],
)
def together(request: pytest.FixtureRequest) -> Iterator[Together]:
    """Replace load_cpp for the session; a file registers the Candidates that it will run.

    The compiler's optimiser takes nearly all of the time: so much of it as users get runs with `--soak`, and always
    where a kernel is compiled alone (test_examples.py, and whatever is judged).
    """
    with pytest.MonkeyPatch.context() as patch:
        made = Together(request.param)
        patch.setattr(warpwright_native, "load_cpp", made)
        yield made
    module.cache_clear()  # modules keep their libraries


@pytest.fixture(scope="session")
def interpreter() -> Iterator[Interpreter]:
    with Interpreter() as one:
        yield one
