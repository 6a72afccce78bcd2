"""compute-sanitizer and Nsight Compute on a GPU: what they find in kernels that ordinary judging passes."""

from __future__ import annotations

from typing import Any

import pytest

from evaluator.correctness.checker import Checker
from evaluator.errors import Rejection
from evaluator.languages import gpu_kernels
from evaluator.problem import read_problem
from evaluator.serve import make_backend
from evaluator.stages.confirm import confirm
from evaluator.stages.judge import Judge
from evaluator.stages.profile import profile, render
from evaluator.stages.trial import Trial
from evaluator.tools import counters, sanitizer, tool
from evaluator.tools.sanitizer import ToolHistory
from evaluator.tools.target_application import TargetApplication, add_small_calls
from evaluator.types import Candidate, DeviceKind, Problem, Stage, Verdict
from tests.adversarial import suite
from tests.gpu.judging import candidate, rmsnorm_problem

pytestmark = pytest.mark.timeout(240)

DOUBLE = read_problem(
    """
import torch

WORKLOADS = [{"name": "small", "n": 100_000}, {"name": "other", "n": 70_001}]


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2.0


def get_inputs(n=100_000):
    return [torch.randn(n)]


def get_init_inputs():
    return []
""",
    "double",
)


@pytest.fixture(scope="module")
def judge():
    one = Judge(make_backend("cuda:0"))
    yield one
    one.close()


@pytest.fixture(autouse=True)
def _shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool's output belongs to a failure's report."""
    run = tool.run

    def loudly(*arguments, **options):
        ran = run(*arguments, **options)
        print(f"\n{arguments[1][:3]}: status {ran.exit}, {ran.duration_s:.1f} s, {dict(ran.words)} {ran.failed}")
        print(f"log: {ran.log[:1800]}\n...{ran.log[-500:]}\noutput: {ran.output[-1200:]}")
        return ran

    monkeypatch.setattr(tool, "run", loudly)


@pytest.fixture(scope="module")
def sanitizer_works() -> None:
    found = tool.try_sanitizer()
    print(f"\ncompute-sanitizer: {found}")
    if found != tool.WORKS:
        pytest.skip(f"NOT RUN, COMPUTE-SANITIZER DOES NOT WORK HERE: {found}")


@pytest.fixture(scope="module")
def counters_work() -> None:
    found = tool.try_counters()
    print(f"\nhardware counters: {found}")
    if found != tool.WORKS:
        pytest.skip(f"NOT RUN, HARDWARE COUNTERS CANNOT BE READ HERE: {found}")


def _check(judge: Judge, problem: Problem, one: Candidate) -> dict[str, Any]:
    guest = _guest(judge, problem, one)
    with judge.session.shared():
        return sanitizer.check(guest, ToolHistory())


def _guest(judge: Judge, problem: Problem, one: Candidate) -> TargetApplication:
    with (
        judge.children.start(one, Stage.CONFIRM) as subject,
        judge.session.references.start(problem) as reference,
        judge.session.shared(),
    ):
        trial = Trial(problem=problem, candidate=one, kind=DeviceKind.CUDA)
        judge.check_stage.check(trial, subject, Checker(problem, reference, trial.generator, 60.0), Stage.CONFIRM)
        found = TargetApplication.of(problem, one, judge.device, judge.children.files(one))
        why = add_small_calls(found, subject, reference, trial.generator, trial.workloads)
    assert not why
    return found


@pytest.mark.usefixtures("sanitizer_works")
@pytest.mark.parametrize(
    ("name", "check", "kernel", "words", "line"),
    [
        ("sanitizer_out_of_bounds", "memcheck", "scale_beside", "Invalid __global__ write of size 4", "scratch[i] ="),
        ("sanitizer_race", "racecheck", "scale_race", "race between", "seen["),
    ],
)
def test_what_checking_passes_is_found(judge: Judge, name: str, check: str, kernel: str, words: str, line: str) -> None:
    """`_guest` holds the Candidate to all of correctness first."""
    own = candidate(name)
    with pytest.raises(Rejection) as found:
        print(_check(judge, DOUBLE, own))
    evidence = found.value.evidence
    print(f"\n{found.value.reason}\n{evidence}")
    assert (evidence["check"], evidence["kernel"]) == (check, kernel)
    assert words in found.value.reason
    assert line in own.source.splitlines()[evidence["line"] - 1]


@pytest.mark.usefixtures("sanitizer_works")
def test_confirm_refuses_with_a_verdict(judge: Judge) -> None:
    found = confirm(judge, DOUBLE, candidate("sanitizer_out_of_bounds"))
    assert (found.verdict, found.stage) == (Verdict.RUNTIME_ERROR, Stage.CONFIRM), found.reason
    assert "scratch[i]" in found.evidence["source_line"]


@pytest.mark.usefixtures("sanitizer_works")
@pytest.mark.parametrize(
    ("problem", "name", "racecheck"),
    [
        (rmsnorm_problem(), "honest_triton", "not run"),
        (rmsnorm_problem(), "honest_cuda", "clean"),
        (DOUBLE, "sanitizer_honest", "clean"),
        (DOUBLE, "sanitizer_graph", "not run"),
    ],
)
def test_honest_kernels_are_clean(judge: Judge, problem: Problem, name: str, racecheck: str) -> None:
    found = _check(judge, problem, candidate(name))
    print(f"\n{name}: {found}")
    assert found["memcheck"]["status"] == "clean", found
    assert found["racecheck"]["status"] == racecheck, found


HONEST = [case for case in suite.cases_for("honest", "cuda") if sanitizer.kernels_of_its_own(case.source)]


@pytest.mark.usefixtures("sanitizer_works")
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in HONEST])
def test_no_odd_but_legal_kernel_is_refused(judge: Judge, case: suite.Case) -> None:
    found = _check(judge, suite.problem(case.problem), case.candidate)
    print(f"\n{case.name}: {found}")
    assert found["memcheck"]["status"] == "clean", found


@pytest.mark.usefixtures("counters_work")
@pytest.mark.parametrize(("name", "kernel"), [("honest_triton", ""), ("honest_cuda", "add_rmsnorm_bfloat16")])
def test_counters_are_read(judge: Judge, name: str, kernel: str) -> None:
    guest = _guest(judge, rmsnorm_problem(), candidate(name))
    with judge.session.shared():
        found, why = counters.read(guest, {})
    print(f"\n{[kernel.text for kernel in found]} {why}")
    assert found, why
    first = found[0]
    assert first.name == (kernel or next(iter(gpu_kernels(candidate(name).source))))
    assert 0 < first.values["dram_percent"] <= 100
    assert 0 < first.values["occupancy_percent"] <= 100
    assert {"sm_percent", "l2_hit_percent", "bank_conflicts"} <= set(first.values)
    assert len(first.stalls) == 3


@pytest.mark.usefixtures("counters_work")
def test_a_profile_has_them(judge: Judge) -> None:
    report = profile(judge, rmsnorm_problem(), candidate("honest_triton"))
    print(f"\n{render(report)}")
    assert report.counters
