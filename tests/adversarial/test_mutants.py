"""Planted bugs: every one is caught, and the correct kernels that they were planted in pass.

All of them, and often: `make bench-mutation`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.stages.judge import Judge
from evaluator.types import Verdict
from tests.adversarial import suite
from tests.adversarial.open_findings import OPEN
from tests.adversarial.planted_bugs import BUGS, HERE, KERNELS, Bug, as_candidate, original

PROBLEM = {kernel: suite.read_case(HERE / f"{kernel}.py").problem for kernel in KERNELS}
CASES = {f"{bug.kernel}: {bug.name}": bug for bug in BUGS}
MARKS = suite.parameters({name: bug.kernel for name, bug in CASES.items()}, OPEN)
KERNEL_MARKS = suite.parameters(dict.fromkeys(KERNELS, "correct"), OPEN, suite.KERNEL_SHARE)

pytestmark = pytest.mark.timeout(600)  # a busy machine; a verdict takes a second on a free one


@pytest.fixture(scope="module")
def court(judge: Judge) -> Iterator[suite.Court]:
    with suite.Court(judge) as one:
        yield one


@pytest.mark.parametrize("kernel", [pytest.param(kernel, marks=KERNEL_MARKS[kernel]) for kernel in KERNELS])
def test_the_correct_kernel_passes(court: suite.Court, kernel: str) -> None:
    found = court.try_source(as_candidate(original(kernel)), PROBLEM[kernel])
    assert found.verdict is Verdict.PASSED, suite.explained(found)


@pytest.mark.parametrize("bug", [pytest.param(bug, id=name, marks=MARKS[name]) for name, bug in CASES.items()])
def test_a_planted_bug_is_caught(court: suite.Court, bug: Bug) -> None:
    found = court.try_source(bug.candidate, PROBLEM[bug.kernel])
    assert found.verdict is not Verdict.PASSED, f"survived: {bug.old!r} -> {bug.new!r}"
    assert found.verdict not in (Verdict.BUILD_ERROR, Verdict.INTERNAL_ERROR, Verdict.INVALID_SUBMISSION), found.reason


def test_there_are_enough_of_them_and_they_fit_their_kernels() -> None:
    assert len(KERNELS) >= 10
    assert len({bug.source for bug in BUGS}) == len(BUGS) >= 75
