"""The model path against a scripted server: each way to fail has a clear outcome, in time, with its cost."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from db.views.work import Call, ProposalResult
from evaluator.types import Language
from evolution.types import Arm, Operator, ProposalOutcome
from runtime.models import ModelEndpoint
from runtime.settings import Settings
from tests.support.scripted_llm import Cut, Drip, Fail, Garbage, Say, ScriptedLLM, Stall, Step
from tests.workers.work_items import FILE, propose_work
from workers.deadline import Deadline
from workers.proposers.base import Request
from workers.proposers.model import ModelProposer

GOOD = Say(f"Fused:\n```python\n{FILE}```\n")


def endpoint(server: ScriptedLLM, **changes: Any) -> ModelEndpoint:
    values = {"name": "one", "base_url": server.base_url, "model": "m", "usd_per_million_input": 1.0}
    return ModelEndpoint(**{**values, "usd_per_million_output": 10.0, **changes})


def ask(
    *endpoints: ModelEndpoint, deadline_s: float = 20.0, notes: tuple[str, ...] = (), **work: Any
) -> ProposalResult:
    proposer = ModelProposer(Settings(models=endpoints), backoff_s=0.01)
    return proposer.propose(Request(work=propose_work(**work), deadline=Deadline(deadline_s), notes=notes))


@pytest.mark.parametrize("stream", [True, False])
def test_a_good_reply_becomes_a_candidate_with_its_cost(stream: bool) -> None:
    with ScriptedLLM([GOOD]) as server:
        result = ask(endpoint(server, stream=stream, headers={"X-Team": "kernels"}))
    assert result.outcome is ProposalOutcome.CANDIDATE
    assert result.source == FILE
    assert result.language is Language.TORCH
    assert result.reply == GOOD.text
    assert "## The reference" in result.prompt
    assert result.prompt_template.startswith("create@6#")
    assert result.model == "scripted"
    assert result.input_tokens > 100
    assert result.output_tokens == len(GOOD.text.split())
    assert result.usd == pytest.approx((result.input_tokens + 10 * result.output_tokens) / 1e6)
    assert server.headers[0]["x-team"] == "kernels"
    assert server.requests[0].get("stream", False) is stream


@pytest.mark.parametrize(
    "step", [Fail(429, retry_after="0"), Fail(500), Fail(503), Cut("```python\nimport"), Garbage()], ids=repr
)
@pytest.mark.parametrize("stream", [True, False])
def test_a_passing_failure_is_tried_again(step: Step, stream: bool) -> None:
    with ScriptedLLM([step, GOOD]) as server:
        result = ask(endpoint(server, stream=stream))
    assert result.outcome is ProposalOutcome.CANDIDATE
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("step", "words", "calls"),
    [
        (Fail(500), "HTTP 500", 3),
        (Fail(429, retry_after="3600"), "HTTP 429", 1),
        (Fail(401, "bad key"), "bad key", 1),
        (Fail(400, "context length exceeded"), "context length", 1),
        (Cut("half of it"), "middle|broke off", 3),
        (Say("", finish=None, pieces=1), "no reply", 3),
        (Garbage(), "protocol|no reply", 3),
    ],
    ids=repr,
)
def test_a_lasting_failure_says_what_it_was(step: Step, words: str, calls: int) -> None:
    with ScriptedLLM([step]) as server:
        result = ask(endpoint(server))
    assert result.outcome is ProposalOutcome.ENDPOINT_ERROR
    assert any(word in result.detail for word in words.split("|")), result.detail
    assert result.detail.startswith("one: ")
    assert len(server.requests) == calls


def test_half_a_stream_is_charged_by_estimate_and_kept() -> None:
    with ScriptedLLM([Cut("half of a reply")]) as server:
        result = ask(endpoint(server))
    assert result.output_tokens == 3 * 5
    assert result.input_tokens > 0
    assert result.reply == "half of a reply"
    assert "estimated" in result.detail


@pytest.mark.parametrize("step", [Stall(), Drip(), Drip(headers=True)], ids=repr)
@pytest.mark.parametrize("stream", [True, False])
def test_an_endless_answer_ends_at_the_deadline(step: Step, stream: bool) -> None:
    started = time.monotonic()
    with ScriptedLLM([step]) as server:
        result = ask(endpoint(server, stream=stream), deadline_s=0.5)
        assert time.monotonic() - started < 30.0  # and not never
    assert result.outcome is ProposalOutcome.DEADLINE
    assert "time limit" in result.detail


@pytest.mark.parametrize(("stream", "limit"), [(True, {"stall_s": 0.3}), (False, {"timeout_s": 0.3})])
def test_a_call_that_was_sent_and_not_answered_is_charged_in_full_and_not_repeated(
    stream: bool, limit: dict[str, float]
) -> None:
    held: list[Call] = []

    def hold(call: Call) -> int:
        held.append(call)
        return 3000

    with ScriptedLLM([Stall()]) as server:
        proposer = ModelProposer(Settings(models=(endpoint(server, stream=stream, **limit),)), backoff_s=0.01)
        result = proposer.propose(Request(work=propose_work(), deadline=Deadline(60.0), hold=hold))
    assert result.outcome is ProposalOutcome.ENDPOINT_ERROR
    assert len(server.requests) == len(held) == 1
    assert (result.input_tokens, result.output_tokens) == (held[0].input_tokens, 3000)
    assert result.usd == pytest.approx((held[0].input_tokens + 10 * 3000) / 1e6)
    assert ("raise stall_s" if stream else "time limit") in result.detail


def test_a_whole_answer_may_come_after_a_longer_silence_than_a_stream_may_have() -> None:
    slow = threading.Event()

    def answer(number: int, body: dict[str, Any]) -> Step:
        slow.wait(0.5)
        return GOOD

    with ScriptedLLM(answer) as server:
        result = ask(endpoint(server, stream=False, stall_s=0.1))
    assert (result.outcome, len(server.requests)) == (ProposalOutcome.CANDIDATE, 1)


def test_a_dripping_endpoint_gives_way_to_the_next_one() -> None:
    with ScriptedLLM([Drip()]) as slow, ScriptedLLM([GOOD]) as good:
        result = ask(
            endpoint(slow, name="slow", timeout_s=0.3, weight=1e6), endpoint(good, name="good"), deadline_s=60.0
        )
    assert result.outcome is ProposalOutcome.CANDIDATE
    assert "slow: no whole reply" in result.detail


def test_a_dead_endpoint_gives_way_to_the_next_one() -> None:
    with ScriptedLLM([GOOD]) as gone:
        dead = endpoint(gone, name="dead", weight=1e6)
    with ScriptedLLM([GOOD]) as good:
        result = ask(dead, endpoint(good, name="good"))
        assert ask(dead).outcome is ProposalOutcome.ENDPOINT_ERROR
    assert result.outcome is ProposalOutcome.CANDIDATE
    assert "dead: no connection" in result.detail


def test_an_arm_named_after_an_endpoint_asks_that_one_alone() -> None:
    with ScriptedLLM([GOOD]) as one, ScriptedLLM([GOOD]) as two:
        ends = endpoint(one), endpoint(two, name="two")
        ask(*ends, proposer="two")
        ask(*ends, arm=Arm(proposer="model", operator=Operator.CREATE, model="two"))
        assert (len(one.requests), len(two.requests)) == (0, 2)


def test_prose_is_sent_back_once_with_the_reason() -> None:
    prose = Say("I would fuse the loops.")
    with ScriptedLLM([prose, GOOD]) as server:
        result = ask(endpoint(server))
    assert result.outcome is ProposalOutcome.CANDIDATE
    told = server.requests[1]["messages"]
    assert told[-2] == {"role": "assistant", "content": prose.text}
    assert "no code" in told[-1]["content"]
    assert "no code" in result.prompt
    assert result.output_tokens == len(prose.text.split()) + len(GOOD.text.split())


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (Say("I would fuse the loops."), "no code"),
        (Say("```cuda\n__global__ void f() {}\n```"), "cuda alone"),
        (Say("```python\nimport torch\nclass ModelNew(", finish="length"), "cut off"),
        (Say("```python\n" + "x = 1\n" * 180_000 + "```", pieces=40), "longer than"),
        (Say("```python\n" + "x = 1\n" * 60_000 + FILE + "```"), "at most"),
    ],
    ids=["prose", "language", "truncated", "megabyte", "long"],
)
def test_a_useless_reply_is_malformed_with_its_reason(step: Step, words: str) -> None:
    with ScriptedLLM([step]) as server:
        result = ask(endpoint(server))
    assert result.outcome is ProposalOutcome.MALFORMED
    assert words in result.detail
    assert len(server.requests) == 2


def test_what_failed_before_is_in_the_next_prompt() -> None:
    with ScriptedLLM([GOOD]) as server:
        ask(endpoint(server), notes=("the reply has no code: answer with one block",))
    assert "the reply has no code: answer with one block" in server.requests[0]["messages"][1]["content"]


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"prompt_tokens": 10**9, "completion_tokens": 1, "total_tokens": 10**9},
        {"prompt_tokens": -5, "completion_tokens": -5, "total_tokens": -10},
        {"prompt_tokens": "many", "completion_tokens": None},
    ],
    ids=str,
)
@pytest.mark.parametrize("stream", [True, False])
def test_missing_or_impossible_usage_is_estimated_and_flagged(usage: dict[str, Any] | None, stream: bool) -> None:
    with ScriptedLLM([Say(GOOD.text, usage=usage)]) as server:
        result = ask(endpoint(server, stream=stream))
    assert result.outcome is ProposalOutcome.CANDIDATE
    assert "estimated" in result.detail
    assert 500 < result.input_tokens < 5000
    assert 20 < result.output_tokens < 200


def test_the_budget_limits_what_is_asked_for() -> None:
    with ScriptedLLM([GOOD]) as server:
        assert ask(endpoint(server), tokens_left=4000).outcome is ProposalOutcome.CANDIDATE
        assert 256 <= server.requests[0]["max_tokens"] < 3000
        assert ask(endpoint(server), usd_left=0.02).outcome is ProposalOutcome.CANDIDATE
        assert server.requests[1]["max_tokens"] < 2000
        for left in ({"tokens_left": 1000}, {"usd_left": 1e-4}):
            result = ask(endpoint(server), **left)
            assert result.outcome is ProposalOutcome.OUT_OF_BUDGET
            assert "budget" in result.detail
        assert len(server.requests) == 2


def test_an_endpoint_that_is_too_dear_gives_way_to_a_cheaper_one() -> None:
    with ScriptedLLM([GOOD]) as server:
        dear = endpoint(server, name="dear", usd_per_million_output=1e4, weight=1e6)
        assert ask(dear, endpoint(server, name="cheap"), usd_left=0.02).detail.startswith("from cheap")
        assert ask(dear, usd_left=0.02).outcome is ProposalOutcome.OUT_OF_BUDGET


def test_a_missing_key_is_named_and_a_given_one_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedLLM([GOOD]) as server:
        monkeypatch.delenv("SCRIPTED_KEY", raising=False)
        assert "SCRIPTED_KEY" in ask(endpoint(server, api_key_env="SCRIPTED_KEY")).detail
        monkeypatch.setenv("SCRIPTED_KEY", "k-123")
        result = ask(endpoint(server, api_key_env="SCRIPTED_KEY"))
        assert server.headers[-1]["authorization"] == "Bearer k-123"
        assert "k-123" not in result.prompt + result.detail + result.reply


def test_a_reference_that_leaves_no_room_is_refused() -> None:
    with ScriptedLLM([GOOD]) as server:
        result = ask(endpoint(server, context_tokens=1024))
    assert result.outcome is ProposalOutcome.REFUSED
    assert "context_tokens" in result.detail
    assert server.requests == []


def test_while_one_endpoint_rests_the_next_is_asked() -> None:
    with ScriptedLLM([Fail(429, retry_after="30")]) as busy, ScriptedLLM([GOOD]) as free:
        ends = endpoint(busy, name="busy", weight=1e9), endpoint(free, name="free")
        proposer = ModelProposer(Settings(models=ends), backoff_s=0.01)
        for _ in range(3):
            result = proposer.propose(Request(work=propose_work(), deadline=Deadline(20.0)))
            assert result.outcome is ProposalOutcome.CANDIDATE
        assert (len(busy.requests), len(free.requests)) == (1, 3)


def test_an_endpoint_that_comes_back_is_found_again() -> None:
    """Five failures open the breaker; the next Proposal waits for it instead of failing at once."""
    with ScriptedLLM([Fail(500)] * 5 + [GOOD]) as server:
        proposer = ModelProposer(Settings(models=(endpoint(server),)), backoff_s=0.01, open_s=0.1)
        outcomes = [proposer.propose(Request(work=propose_work(), deadline=Deadline(20.0))).outcome for _ in range(2)]
    assert outcomes == [ProposalOutcome.ENDPOINT_ERROR, ProposalOutcome.CANDIDATE]


def test_a_reasoning_model_is_asked_in_its_own_way() -> None:
    with ScriptedLLM([GOOD]) as server:
        ask(endpoint(server, reasoning=True, body={"reasoning_effort": "high"}))
        ask(endpoint(server))
    thinking, plain = server.requests
    assert thinking["max_completion_tokens"] == plain["max_tokens"] > 0
    assert "max_tokens" not in thinking
    assert thinking["reasoning_effort"] == "high"


def test_what_a_call_may_cost_is_asked_for_before_it_is_made() -> None:
    asked: list[Call] = []

    def hold(call: Call) -> int:
        asked.append(call)
        return 300 if len(asked) == 1 else 0

    with ScriptedLLM([Say("prose"), GOOD]) as server:
        proposer = ModelProposer(Settings(models=(endpoint(server),)), backoff_s=0.01)
        result = proposer.propose(Request(work=propose_work(), deadline=Deadline(20.0), hold=hold))
    assert [body["max_tokens"] for body in server.requests] == [300]
    assert result.outcome is ProposalOutcome.MALFORMED
    assert asked[1].spent_tokens == result.input_tokens + result.output_tokens
    assert asked[0].usd_per_output == pytest.approx(10e-6)
