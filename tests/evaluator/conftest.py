"""Short rounds: what nearly all of these tests look at is who passes, and why others do not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.stages.judge import Judge
from tests.evaluator import rooms


@pytest.fixture(scope="module")
def judge(judge: Judge) -> Iterator[Judge]:
    """The one judge, with few and short rounds; tests about times themselves choose other protocols."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "protocol", rooms.BRIEFLY)
        yield judge


@pytest.fixture
def workloads_alone(judge: Judge) -> Iterator[None]:
    """Check Workloads alone, in tests of what a judge does beside checking."""
    with rooms.workloads_alone(judge, judge.protocol):
        yield
