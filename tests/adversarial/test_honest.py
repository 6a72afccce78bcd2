"""Odd but legal Candidates: none is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.stages.judge import Judge
from tests.adversarial import suite
from tests.adversarial.open_findings import OPEN

pytestmark = pytest.mark.timeout(600)  # a busy machine; a verdict takes a second on a free one


@pytest.fixture(scope="module")
def court(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[suite.Court]:
    with suite.Court(judge, tmp_path_factory.mktemp("honest")) as one:
        yield one


CASES = suite.cases_for("honest", "cpu")
MARKS = suite.parameters(dict.fromkeys((case.name for case in CASES), "honest"), OPEN, suite.HONEST_SHARE)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name, marks=MARKS[case.name]) for case in CASES])
def test_an_honest_candidate_passes(court: suite.Court, case: suite.Case) -> None:
    suite.check(case, court.try_case(case))


def test_there_are_enough_of_them() -> None:
    assert len(suite.cases("honest")) >= 40
