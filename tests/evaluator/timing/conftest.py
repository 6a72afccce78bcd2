"""Tests of timing watch as closely as the judge does, in short rounds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.stages.judge import Judge
from tests.evaluator.rooms import workloads_alone


@pytest.fixture(scope="module")
def judge(judge: Judge) -> Iterator[Judge]:
    """The one judge, with every integrity check."""
    with workloads_alone(judge) as one:
        yield one
