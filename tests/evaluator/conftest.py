"""Short rounds: what nearly all of these tests look at is who passes, and why others do not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.stages.judge import Judge
from tests.evaluator.rooms import QUICKLY


@pytest.fixture(scope="module")
def judge(judge: Judge) -> Iterator[Judge]:
    """The one judge, with short rounds; a test about times themselves sets its own protocol."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "protocol", QUICKLY)
        yield judge
