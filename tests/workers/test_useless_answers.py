"""Answers that are paid for and of no use: each cause is told apart, said with what to change, and ends soon."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from db.engine import make_engine, migrate, read_session
from db.repositories import proposals
from evolution.types import Budget, EndReason, Fault, ProposalOutcome, RunConfig
from runtime.models import ModelEndpoint
from runtime.settings import Settings
from tests.db.world import World
from tests.support.scripted_llm import Body, Fail, Garbage, Message, Say, ScriptedLLM, Step
from tests.workers.test_model_proposer import GOOD, ask, endpoint
from tests.workers.work_items import FILE, propose_work
from workers.context import Context
from workers.deadline import Deadline
from workers.loop import work
from workers.proposers import PROPOSERS, Proposers, Registered
from workers.proposers.base import Request
from workers.proposers.model import ModelProposer

ONLY_THOUGHTS = Message({"reasoning_content": "Let me think about tiles. " * 20}, finish="length")
TOOL = {"tool_calls": [{"index": 0, "id": "1", "type": "function", "function": {"name": "run_code", "arguments": ""}}]}
CODE = f"```python\n{FILE}```"
PARTS = [{"type": "thinking", "thinking": "tiles"}, {"type": "text", "text": CODE[:20]}, {"text": CODE[20:]}]


@pytest.mark.parametrize(
    ("step", "fault", "words"),
    [
        (ONLY_THOUGHTS, Fault.THOUGHTS_ONLY, "raise max_output_tokens of endpoint 'one'"),
        (Message({"reasoning": "hm"}), Fault.THOUGHTS_ONLY, "reasoning_effort"),
        (Message({"content": ""}, finish="length"), Fault.THOUGHTS_ONLY, "took all of its 16384 output tokens"),
        (Say("<think>tiles, tiles", finish="length"), Fault.THOUGHTS_ONLY, "raise max_output_tokens"),
        (Say("I fuse the loops, so that", finish="length"), Fault.CUT_OFF, "cut off before its code"),
        (Say("<think>tiles</think>"), Fault.THOUGHTS_ONLY, "only thought"),
        (Message({"refusal": "I can't help with that."}), Fault.REFUSED, "refused: I can't help with that."),
        (Message({"content": "I"}, finish="content_filter"), Fault.FILTERED, "content filter"),
        (Message(TOOL, finish="tool_calls"), Fault.TOOL_CALL, "called a tool (run_code)"),
        (Message({"content": ""}), Fault.EMPTY, "empty (finish reason: stop)"),
        (Message({"content": ""}, finish=None, usage={"prompt_tokens": 500, "completion_tokens": 9}),
         Fault.THOUGHTS_ONLY, "only thought"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stream", [True, False])
def test_each_cause_is_said_with_what_to_change(step: Step, fault: Fault, words: str, stream: bool) -> None:
    with ScriptedLLM([step]) as server:
        result = ask(endpoint(server, stream=stream))
    assert result.outcome in (ProposalOutcome.MALFORMED, ProposalOutcome.REFUSED)
    assert (result.fault, words in result.detail) == (fault, True), result.detail
    assert result.detail.startswith("one: ")
    assert len(server.requests) == (1 if fault.of_model else 2)
    assert result.output_tokens > 0 or fault is Fault.EMPTY


def test_hidden_thoughts_without_figures_cost_the_whole_limit() -> None:
    with ScriptedLLM([Message({"content": ""}, finish="length")]) as server:
        result = ask(endpoint(server, max_output_tokens=3000))
    assert result.output_tokens == 3000


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "step",
    [Message({"content": PARTS}), Message({"content": CODE}, finish=None), Message({"content": CODE, **TOOL}),
     Message({"content": CODE, "reasoning_content": "tiles"}), Message({"content": CODE}, finish="content_filter")],
    ids=["parts", "no finish reason", "a tool beside it", "thoughts beside it", "filtered after the file"],
)  # fmt: skip
def test_a_whole_file_is_taken_from_an_answer_of_any_form(step: Step, stream: bool) -> None:
    with ScriptedLLM([step]) as server:
        result = ask(endpoint(server, stream=stream))
    assert (result.outcome, result.source) == (ProposalOutcome.CANDIDATE, FILE)
    assert len(server.requests) == 1


def test_an_endpoint_that_does_not_stream_is_read_all_the_same() -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": CODE}, "finish_reason": "stop"}
    whole = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    with ScriptedLLM([Body(whole)]) as server:
        assert ask(endpoint(server)).outcome is ProposalOutcome.CANDIDATE


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "no credit left", "code": 402}}, "HTTP 402: no credit left"),
        ({"error": "overloaded"}, "overloaded"),
        ({"detail": "model m is not loaded"}, "model m is not loaded"),
        ({"detail": [{"msg": "messages: too long"}]}, "messages: too long"),
        ({"object": "error", "message": "too long", "code": 400}, "HTTP 400: too long"),
        ({"error": {"message": "busy", "code": "503"}}, "HTTP 503: busy"),
        ({"error": {"errors": [{"title": "no such model"}]}}, "no such model"),
    ],
)
@pytest.mark.parametrize("event", [True, False])
def test_the_reason_of_an_error_body_is_told(body: dict[str, Any], words: str, event: bool, stream: bool) -> None:
    with ScriptedLLM([Body(body, event=event)]) as server:
        result = ask(endpoint(server, stream=stream))
    assert result.outcome is ProposalOutcome.ENDPOINT_ERROR
    assert words in result.detail, result.detail
    assert result.usd == 0.0


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("detail", "calls"), [("model m is not loaded", 3), ([{"msg": "messages: too long"}], 1)])
def test_an_error_without_a_status_is_no_outage(detail: Any, calls: int, stream: bool) -> None:
    with ScriptedLLM([Body({"detail": detail}, event=stream)]) as server:
        proposer = ModelProposer(Settings(models=(endpoint(server, stream=stream),)), backoff_s=0.01)
        told = [proposer.propose(Request(work=propose_work(), deadline=Deadline(20.0))).detail for _ in range(6)]
    assert len(server.requests) == 6 * calls
    assert not any("left alone" in detail for detail in told)
    assert [detail.count("one: ") for detail in told] == [1] * 6
    assert told[0].endswith("(3 times)") is (calls == 3)


def test_what_can_be_read_of_a_body_that_is_cut_off_is_told() -> None:
    with ScriptedLLM([Garbage('{"error": {"message": "The model is ov', "application/json")]) as server:
        assert "The model is ov" in ask(endpoint(server)).detail


def test_the_reason_of_a_refused_request_is_told_without_its_wrapping() -> None:
    with ScriptedLLM([Fail(400, "context length exceeded")]) as server:
        assert ask(endpoint(server)).detail == "one: HTTP 400: context length exceeded"


def test_a_pool_goes_on_with_the_models_that_answer() -> None:
    with ScriptedLLM([ONLY_THOUGHTS]) as thinker, ScriptedLLM([GOOD]) as good:
        ends = endpoint(thinker, name="thinker", weight=1e9), endpoint(good, name="good")
        proposer = ModelProposer(Settings(models=ends), backoff_s=0.01)
        results = [proposer.propose(Request(work=propose_work(), deadline=Deadline(20.0))) for _ in range(6)]
    assert (len(thinker.requests), len(good.requests)) == (2, 4)
    assert [one.outcome for one in results[2:]] == [ProposalOutcome.CANDIDATE] * 4


def test_after_a_repetition_the_temperature_rises() -> None:
    with ScriptedLLM([GOOD]) as server:
        ask(endpoint(server), repeats=1)
        ask(endpoint(server, temperature=0.2), repeats=2)
        ask(endpoint(server, reasoning=True), repeats=1)
        ask(endpoint(server))
    assert [one.get("temperature") for one in server.requests] == [1.25, 0.7, None, None]


def run_with(tmp_path: Path, step: Step, budget: Budget, threads: int = 6) -> tuple[World, Any, ScriptedLLM]:
    """One Run of a model alone that always answers with `step`, with all of `threads` asking at once."""
    engine = make_engine(f"sqlite:///{tmp_path / 'run.db'}")
    migrate(engine)
    world = World(engine)
    with ScriptedLLM([step]) as server:
        models = (
            ModelEndpoint(
                name="one", base_url=server.base_url, model="m", usd_per_million_input=1.0, usd_per_million_output=4.0
            ),
        )
        context = Context(Settings(models=models, database_url=engine.url.render_as_string(False)))
        context.engine = engine
        context.nudge = lambda queues: None  # type: ignore[method-assign]
        quick = Registered(lambda given: ModelProposer(given, backoff_s=0.01))
        context.proposers = Proposers(context.settings, {**PROPOSERS, "model": quick})
        stop = threading.Event()

        def propose() -> None:
            while not stop.is_set():
                if not work(context, "propose"):
                    stop.wait(0.1)

        run = world.start(budget, RunConfig(proposers=("one",), in_flight=threads))
        asking = [threading.Thread(target=propose, daemon=True) for _ in range(threads)]
        for thread in asking:
            thread.start()
        for _ in range(4000):
            if world.run(run.id).status.ended:
                break
            job = world.claim("control", "build", "cpu")
            if job is None:
                stop.wait(0.02)
            else:
                world.work(job)
        stop.set()
        for thread in asking:
            thread.join(60.0)
    return world, world.run(run.id), server


def test_a_model_that_only_thinks_ends_a_run_after_four_calls_with_what_to_set(tmp_path: Path) -> None:
    _, run, server = run_with(tmp_path, ONLY_THOUGHTS, Budget(candidates=40))
    assert len(server.requests) <= 4
    assert run.end_reason is EndReason.NO_PROPOSER
    assert "raise max_output_tokens of endpoint 'one'" in run.message
    assert run.spend.candidates == len(server.requests)


def test_a_model_that_repeats_itself_is_stopped_and_its_answers_are_charged(tmp_path: Path) -> None:
    world, run, server = run_with(tmp_path, Say(f"```python\n{FILE}# speed=0.5\n```"), Budget(candidates=40))
    with read_session(world.engine) as s:
        outcomes = [p.outcome for p in proposals.list(s, run.id, limit=200) if p.input_tokens]
    assert outcomes.count(ProposalOutcome.CANDIDATE) == 1
    # Four repetitions count, and those in flight together count once: at most six calls for each.
    assert run.spend.candidates == len(server.requests) <= 24
    assert "one was stopped: it repeated itself" in run.message


RUNS = [
    ("only thoughts", ONLY_THOUGHTS, 4, "raise max_output_tokens of endpoint 'one'"),
    ("refusals", Message({"refusal": "I can't help with that."}), 4, "use another model for this problem"),
    ("a content filter", Message({"content": "I"}, finish="content_filter"), 4, "change the filter, or the model"),
    ("tool calls", Message(TOOL, finish="tool_calls"), 4, "switch tools off for it"),
    ("nothing", Message({"content": ""}), 4, "check the model and its chat template"),
    ("prose", Say("I would tile the rows."), 8, "the reply has no code"),
    ("cut off", Say("```python\nimport torch\n", finish="length"), 8, "cut off inside its code"),
    ("no Python", Say("```python\nclass ModelNew(:\n```"), 8, "the file is not Python: line 1"),
    ("an error body", Body({"error": {"message": "no credit left", "code": 402}}), 12, "HTTP 402: no credit left"),
]


@pytest.mark.parametrize(
    ("step", "most", "words"),
    [pytest.param(*case, id=name, marks=[] if name == "refusals" else pytest.mark.soak) for name, *case in RUNS],
)
def test_a_run_with_nothing_but_useless_answers_ends_soon_and_says_why(
    tmp_path: Path, step: Step, most: int, words: str
) -> None:
    """Runs of one cause differ by the step alone; one shows that the Run ends. `--soak -s` prints the table."""
    _, run, server = run_with(tmp_path, step, Budget(candidates=40))
    print(f"{len(server.requests)} calls, {run.spend.usd:.4f} $: {run.message}")
    assert len(server.requests) <= most
    assert run.end_reason in (EndReason.NO_PROPOSER, EndReason.BUDGET)
    assert words in run.message
