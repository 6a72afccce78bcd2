"""One judge for the whole session: each starts children that import torch, which takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.judge import Judge
from evaluator.serve import make_backend


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    one = Judge(make_backend("cpu"))
    yield one
    one.close()
