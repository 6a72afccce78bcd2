"""The judge on a GPU: honest kernels pass, wrong ones get their Verdict, cheats gain nothing, crashes stay alone."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from evaluator.schema import from_json
from evaluator.types import BaselineReport, Clock, Evaluation, Verdict
from tests.gpu.judging import candidate, explained, rmsnorm_problem

PROBLEM = rmsnorm_problem()


@pytest.fixture(scope="module")
def baseline(judge) -> BaselineReport:
    return judge.baselines(PROBLEM)


@pytest.fixture(scope="module")
def against_eager(baseline) -> BaselineReport:
    """The report as if eager were the only Baseline: what a cheat does is plain PyTorch, so it must come out at 1."""
    return dataclasses.replace(baseline, times=tuple(t for t in baseline.times if t.mode == "eager"))


def test_the_problem_is_admitted_and_its_baselines_are_timed(judge, baseline):
    admission = judge.ask("admit", problem=PROBLEM)
    assert admission["verdict"] == "PASSED", admission["reason"]
    assert {"eager", "compile"} <= {t.mode for t in baseline.times}
    eager, best = next(t for t in baseline.times if t.mode == "eager"), baseline.fastest("prefill")
    assert best.median_us < eager.median_us


@pytest.mark.parametrize("name", ["honest_triton", "honest_cuda"])
def test_honest_kernels_pass_and_are_timed_by_graph(judge, against_eager, name):
    seen = judge.judge(PROBLEM, candidate(name), baseline=against_eager)
    assert seen.verdict is Verdict.PASSED, explained(seen)
    assert [m.workload for m in seen.measurements] == ["prefill"]
    assert seen.measurements[0].clock is Clock.GRAPH
    assert seen.speedups[0].value > 2, seen.speedups
    floor = seen.measurements[0].floor_us
    assert floor is None or seen.measurements[0].median_us > floor


def test_plain_torch_against_itself_is_one(judge, against_eager):
    seen = judge.judge(PROBLEM, candidate("plain_torch"), baseline=against_eager)
    assert seen.verdict is Verdict.PASSED, explained(seen)
    assert 0.95 < seen.speedups[0].value < 1.05


@pytest.mark.parametrize(
    ("name", "verdicts"),
    [
        ("wrong_element", {Verdict.INCORRECT_VALUES}),
        ("skips_weight", {Verdict.INCORRECT_VALUES}),
        ("wrong_shape", {Verdict.INCORRECT_SHAPE}),
        ("wrong_dtype", {Verdict.INCORRECT_DTYPE}),
        ("broken_cuda", {Verdict.BUILD_ERROR}),
        ("broken_triton", {Verdict.BUILD_ERROR}),
        ("crash_illegal_access", {Verdict.RUNTIME_ERROR}),
        ("crash_endless_kernel", {Verdict.TIMEOUT}),
    ],
)
def test_wrong_kernels_get_the_right_verdict_and_harm_nobody(judge, against_eager, name, verdicts):
    seen = judge.judge(PROBLEM, candidate(name), baseline=against_eager)
    assert seen.verdict in verdicts, explained(seen)
    after = judge.judge(PROBLEM, candidate("honest_triton"), baseline=against_eager)
    assert after.verdict is Verdict.PASSED, explained(after)


@pytest.mark.parametrize("name", ["evil_memo", "evil_first_forever", "evil_late_write", "evil_mutates_input"])
def test_cheats_that_give_wrong_answers_are_refused(judge, against_eager, name):
    seen = judge.judge(PROBLEM, candidate(name), baseline=against_eager)
    assert seen.verdict in {Verdict.INCORRECT_VALUES, Verdict.REWARD_HACK, Verdict.RUNTIME_ERROR}, explained(seen)


def test_work_skipped_in_later_replays_is_found_or_timed_true(judge, against_eager):
    """The same kernel without the mark tells its true time."""
    seen = judge.judge(PROBLEM, candidate("evil_skips_replays"), baseline=against_eager)
    if seen.verdict is Verdict.PASSED:
        honest = judge.judge(PROBLEM, candidate("honest_cuda"), baseline=against_eager)
        assert honest.verdict is Verdict.PASSED, explained(honest)
        assert seen.speedups[0].value < 1.15 * honest.speedups[0].value, (seen.speedups, honest.speedups)
    else:
        # Warps that read the mark which their block has just made leave elements out: that may be seen first.
        assert seen.evidence["check"] in {"first_replay", "floor", "values"}


@pytest.mark.parametrize("name", ["evil_no_sync", "evil_side_stream"])
def test_cheats_on_the_clock_fail_or_are_timed_true(judge, against_eager, name):
    seen = judge.judge(PROBLEM, candidate(name), baseline=against_eager)
    if seen.verdict is Verdict.PASSED:
        assert seen.speedups[0].interval.low < 1.1, seen.speedups  # a race's few rounds may leave it wide


@pytest.mark.timeout(300)
def test_a_faster_kernel_is_confirmed_and_an_equal_one_is_not(judge, against_eager):
    def confirm(name: str) -> Evaluation:
        asked = {"problem": PROBLEM, "candidate": candidate(name), "baseline": against_eager}
        return from_json(Evaluation, judge.ask("confirm", timeout_s=140.0, **asked))

    seen = {name: confirm(name) for name in ("honest_triton", "plain_torch")}
    assert all(one.verdict is Verdict.PASSED for one in seen.values()), [explained(one) for one in seen.values()]
    assert seen["honest_triton"].evidence["promote"], seen["honest_triton"].evidence
    assert not seen["plain_torch"].evidence["promote"], seen["plain_torch"].evidence


# Leaves the device three tenths of its memory at most, until it is told to end. Others may take some meanwhile.
NEIGHBOUR = """
import sys, torch
kept = []
while (now := torch.cuda.mem_get_info())[0] > 0.3 * now[1]:
    kept.append(torch.empty(now[1] // 100, dtype=torch.uint8, device="cuda"))
print("ready", flush=True)
sys.stdin.read()
"""


def test_memory_that_a_neighbour_has_is_not_the_candidates_fault(judge, against_eager):
    neighbour = subprocess.Popen(
        [sys.executable, "-c", NEIGHBOUR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert neighbour.stdout.readline() == "ready\n"
        seen = judge.judge(PROBLEM, candidate("needs_a_third"), baseline=against_eager)
        assert seen.verdict is Verdict.INTERNAL_ERROR, explained(seen)
        assert "judge again when they are done" in seen.reason
    finally:
        neighbour.communicate(timeout=30)
    seen = judge.judge(PROBLEM, candidate("needs_a_third"), baseline=against_eager)
    assert seen.verdict is Verdict.PASSED, explained(seen)


def test_errors_carry_the_candidates_own_line(judge, against_eager):
    seen = judge.judge(PROBLEM, candidate("broken_cuda"), baseline=against_eager)
    lines = candidate("broken_cuda").source.splitlines()
    assert "undeclared" in lines[seen.evidence["line"] - 1]
