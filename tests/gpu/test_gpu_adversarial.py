"""The adversarial suite on a GPU: the same files, those that a GPU can judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from evaluator.serve import make_backend
from evaluator.stages.judge import Judge
from evaluator.types import Verdict
from tests.adversarial import suite
from tests.adversarial.open_findings import OPEN
from tests.adversarial.planted_bugs import BUGS, HERE, KERNELS, Bug, as_candidate, original

ON_GPU = {kernel: suite.read_case(HERE / f"{kernel}.py") for kernel in KERNELS}
ON_GPU = {kernel: case for kernel, case in ON_GPU.items() if case.devices & {"cuda", "triton"}}


def parameter(case: suite.Case) -> Any:
    return pytest.param(case, id=case.name, marks=suite.unsolved(case.name, OPEN))


@pytest.fixture(scope="module")
def court() -> Iterator[suite.Court]:
    judge = Judge(make_backend("cuda:0"))
    try:
        with suite.Court(judge) as one:
            yield one
    finally:
        judge.close()


@pytest.mark.parametrize("case", [*map(parameter, suite.cases_for("cheats", "cuda"))])
def test_a_cheat_gets_its_verdict(court: suite.Court, case: suite.Case) -> None:
    found = court.try_case(case)
    if suite.TRUE_TIME in case.verdicts:
        found = court.true_time(case, found)
    suite.check(case, found)
    if case.kind == "escapes":
        after = court.try_source(next(c for c in suite.cases("honest") if c.name == "cuda_plain").candidate, "rmsnorm")
        assert after.verdict is Verdict.PASSED, suite.explained(after)


@pytest.mark.parametrize("case", [*map(parameter, suite.cases_for("honest", "cuda"))])
def test_an_honest_candidate_passes(court: suite.Court, case: suite.Case) -> None:
    suite.check(case, court.try_case(case))


@pytest.mark.parametrize("kernel", sorted(ON_GPU))
def test_the_correct_kernel_passes(court: suite.Court, kernel: str) -> None:
    found = court.try_source(as_candidate(original(kernel)), ON_GPU[kernel].problem)
    assert found.verdict is Verdict.PASSED, suite.explained(found)


@pytest.mark.parametrize(
    "bug", [pytest.param(bug, id=f"{bug.kernel}: {bug.name}") for bug in BUGS if bug.kernel in ON_GPU]
)
def test_a_planted_bug_is_caught(court: suite.Court, bug: Bug) -> None:
    found = court.try_source(bug.candidate, ON_GPU[bug.kernel].problem)
    assert found.verdict not in (Verdict.PASSED, Verdict.BUILD_ERROR, Verdict.INTERNAL_ERROR), found.reason
