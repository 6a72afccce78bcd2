"""Shared by the synthesiser's tests: one thread, and C++ Candidates that are compiled together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.synthesis.checking import warpwright_native
from tests.synthesis.together import Together


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Use one thread: tensors are small, and a second thread would only wait for a core."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def together() -> Iterator[Together]:
    """Replace load_cpp for the session; a file registers the Candidates that it will run."""
    with pytest.MonkeyPatch.context() as patch:
        made = Together()
        patch.setattr(warpwright_native, "load_cpp", made)
        yield made
