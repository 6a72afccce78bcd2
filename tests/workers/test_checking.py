"""Answers that do not build come back to their model within the proposal, with the compiler's words."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from db.views.work import ProposalResult, ProposeWork
from evaluator.schema import to_json
from evaluator.types import BuildReport, Candidate, DeviceKind, Evaluation, Language, Stage, Verdict
from evolution.types import ProposalOutcome
from runtime.settings import Settings
from tests.support.scripted_llm import Fail, Say, ScriptedLLM, Step
from tests.workers.test_model_proposer import endpoint
from tests.workers.work_items import FILE, PROBLEM, propose_work
from workers.deadline import Deadline
from workers.models.checking import REPEATED, BuildCheck, told
from workers.proposers.base import Request
from workers.proposers.model import ModelProposer


def say(source: str) -> Say:
    return Say(f"```python\n{source}```\n")


BAD, GOOD = FILE + "# bad\n", FILE + "# good\n"
ERROR = 'BUILD_ERROR: kernel.cu(3): error: identifier "x" is undefined'


class Canned:
    """A check that refuses some sources."""

    def __init__(self, refuses: Callable[[str], str | None]) -> None:
        self.refuses, self.seen = refuses, list[str]()

    def refusal(self, work: ProposeWork, source: str, deadline: Deadline) -> str | None:
        self.seen.append(source)
        return self.refuses(source)


def ask(server: ScriptedLLM, check: Canned, repairs: int = 2, **work: Any) -> ProposalResult:
    settings = Settings(models=(endpoint(server),), proposal_repairs=repairs)
    proposer = ModelProposer(settings, backoff_s=0.01, check=check)
    return proposer.propose(Request(work=propose_work(**work), deadline=Deadline(20.0)))


def bad_only(source: str) -> str | None:
    return ERROR if source == BAD else None


def test_what_does_not_build_is_repaired_in_the_same_proposal() -> None:
    with ScriptedLLM([say(BAD), say(GOOD)]) as server:
        result = ask(server, Canned(bad_only))
    assert (result.outcome, result.source) == (ProposalOutcome.CANDIDATE, GOOD)
    assert "after 1 repair" in result.detail
    assert ERROR in server.requests[1]["messages"][-1]["content"]
    assert ERROR in result.prompt


@pytest.mark.parametrize(("repairs", "calls"), [(2, 3), (1, 2), (0, 1)])
def test_after_the_last_repair_the_judge_tells_the_rest(repairs: int, calls: int) -> None:
    with ScriptedLLM([say(BAD)]) as server:
        result = ask(server, Canned(bad_only), repairs)
    assert (result.outcome, result.source) == (ProposalOutcome.CANDIDATE, BAD)
    assert len(server.requests) == calls


@pytest.mark.parametrize("then", [Fail(400, "too long"), Say("Sorry, I cannot.")], ids=["failure", "prose"])
def test_a_repair_that_fails_keeps_the_kernel_that_was_paid_for(then: Step) -> None:
    with ScriptedLLM([say(BAD), then]) as server:
        result = ask(server, Canned(bad_only))
    assert (result.outcome, result.source) == (ProposalOutcome.CANDIDATE, BAD)


def test_prose_and_a_broken_kernel_are_both_sent_back() -> None:
    with ScriptedLLM([Say("I would fuse."), say(BAD), say(GOOD)]) as server:
        result = ask(server, Canned(bad_only))
    assert result.source == GOOD
    assert len(server.requests) == 3


JUDGE = """
import json, sys
open(sys.argv[2], "a").write(" ".join(sys.argv[3:]) + "\\n")
for line in sys.stdin:
    request = json.loads(line)
    report = json.load(open(sys.argv[1]))
    if report == "die": sys.exit(1)
    report["candidate_hash"] = request["candidate"]["source"][:0] + report["candidate_hash"]
    print(json.dumps({"id": request["id"], "ok": True, "result": report}), flush=True)
"""
CANDIDATE = Candidate(source=GOOD, language=Language.TORCH)


class Site:
    """A build check whose judge reads its answer from a file."""

    def __init__(self, folder: Path, *, gpu: bool = False) -> None:
        self.answer = folder / "answer.json"
        self.log = folder / "log"
        script = folder / "judge.py"
        script.write_text(JUDGE, encoding="utf-8")
        dev = folder / "dev"
        dev.mkdir()
        if gpu:
            (dev / "nvidia0").touch()
        command = (sys.executable, str(script), str(self.answer), str(self.log))
        self.check = BuildCheck(Settings(judge_command=command), dev)

    def asked(self) -> list[str]:
        """Return the words of every command that started a judge."""
        return self.log.read_text(encoding="utf-8").split()

    def refusal(self, report: object, seconds: float = 60.0, **work: Any) -> str | None:
        self.answer.write_text(json.dumps(report), encoding="utf-8")
        return self.check.refusal(propose_work(**work), GOOD, Deadline(seconds))


def report(**changes: Any) -> Any:
    return to_json(BuildReport(**{"candidate_hash": CANDIDATE.hash, "signature": "sig", **changes}))


def refused(verdict: Verdict, **evidence: object) -> Evaluation:
    return Evaluation(
        verdict=verdict, stage=Stage.BUILD, reason="it does not build", problem_hash=PROBLEM.hash,
        candidate_hash=CANDIDATE.hash, evidence=evidence,
    )  # fmt: skip


def test_a_build_tells_its_error_its_repetition_or_nothing(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert site.refusal(report()) is None
    said = site.refusal(report(evaluation=refused(Verdict.BUILD_ERROR, line=3, log="k.cu(3): error", check="builds")))
    assert said is not None
    assert said.split("\n") == [
        "BUILD_ERROR: it does not build", '{"line": 3, "check": "builds"}', "k.cu(3): error",
    ]  # fmt: skip
    assert site.refusal(report(), tried=("sig",)) == REPEATED
    assert site.refusal(report(), tried=(CANDIDATE.hash,)) == REPEATED
    assert site.refusal(report(evaluation=refused(Verdict.INTERNAL_ERROR))) is None


def test_a_fault_of_ours_and_an_unknown_device_refuse_nothing(tmp_path: Path) -> None:
    site = Site(tmp_path)
    broken = report(evaluation=refused(Verdict.BUILD_ERROR))
    assert site.refusal("die") is None
    assert site.refusal({"candidate_hash": "h"}) is None
    assert site.refusal(broken) is not None
    assert site.refusal(broken, device_kind=DeviceKind.CUDA, device_facts={}) is None
    assert site.refusal(broken, seconds=5.0) is None


def test_a_machine_with_the_device_builds_for_it(tmp_path: Path) -> None:
    site = Site(tmp_path, gpu=True)
    assert site.refusal(report(evaluation=refused(Verdict.BUILD_ERROR)), device_kind=DeviceKind.CUDA) is not None


def test_a_gpu_that_is_elsewhere_is_built_for(tmp_path: Path) -> None:
    site = Site(tmp_path)
    facts = {"capability": "9.0"}
    said = site.refusal(
        report(resources={"compile_error": "at 3:4: no"}), device_kind=DeviceKind.CUDA, device_facts=facts
    )
    assert said == "BUILD_ERROR: at 3:4: no"
    assert site.asked().count("sm_90") == 1


def test_a_long_log_is_shortened_in_its_middle() -> None:
    words = told(
        BuildReport(candidate_hash="h", signature="s", evaluation=refused(Verdict.BUILD_ERROR, log="e" * 9999))
    )
    assert words is not None
    assert "characters left out" in words
    assert len(words) < 3000
