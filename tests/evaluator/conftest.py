"""Short rounds: what nearly all of these tests look at is who passes, and why others do not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.stages.judge import Judge
from tests.evaluator.rooms import BRIEFLY


@pytest.fixture(scope="module")
def judge(judge: Judge) -> Iterator[Judge]:
    """The one judge, with few and short rounds; tests about times themselves choose other protocols."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "protocol", BRIEFLY)
        yield judge
