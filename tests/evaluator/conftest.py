"""Short rounds: what nearly all of these tests look at is who passes, and why others do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from evaluator.stages import confirm, profile
from evaluator.stages import judge as judging
from evaluator.timing.bench import SamplingPlan
from tests.evaluator.rooms import QUICK


@pytest.fixture(scope="module", autouse=True)
def _short_rounds() -> Iterator[None]:
    """A test about times themselves sets its own rules."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "_JUDGE_RULES", QUICK)
        patch.setattr(profile, "_RULES", QUICK)
        patch.setattr(profile, "_LOOKS", SamplingPlan(span_s=0.5, most_samples=300))
        patch.setattr(confirm, "_RULES", replace(confirm._RULES, round_us=QUICK.round_us))  # its number of pairs stays
        yield
