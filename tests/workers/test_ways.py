"""Three ways to write: slots of a block, edits of a parent, a whole file. What does not fit is sent back once."""

from __future__ import annotations

from typing import Any

import pytest

from db.views.work import ParentView
from evaluator.types import DeviceKind, Language
from evolution.types import SLOTS, Arm, Fault, Operator, ProposalOutcome
from synthesis.slots import expand
from tests.support.scripted_llm import Say, ScriptedLLM, Step
from tests.synthesis.slot_answers import GATE, SOFTMAX
from tests.workers.test_model_proposer import GOOD, ask, endpoint
from tests.workers.work_items import FILE

BY_SLOTS: dict[str, Any] = {
    "arm": Arm(proposer="model", operator=Operator.CREATE, variant=SLOTS),
    "device_kind": DeviceKind.CUDA,
}
FILLED = Say(f"It is bound by memory.\n```python\n{SOFTMAX}```\n")
WRONG = Say(f"```python\n{SOFTMAX.replace('def value(x)', 'def value(x, y)')}```\n")
PARENT = ParentView(
    candidate_id="cand_1", source=FILE, language=Language.TORCH, verdict=None, stage=None, reason="", evidence={},
    resources={},
)  # fmt: skip
BY_EDITS: dict[str, Any] = {"operator": Operator.DIFF, "parents": (PARENT,)}
EDIT = Say("<<<<<<< SEARCH\n        return torch.softmax(x * 2, dim=-1)\n=======\n        return x\n>>>>>>> REPLACE")


@pytest.mark.parametrize(
    ("steps", "calls"),
    [([FILLED], 1), ([WRONG, FILLED], 2)],
    ids=["at once", "after the reason"],
)
def test_filled_slots_become_the_whole_file(steps: list[Step], calls: int) -> None:
    with ScriptedLLM(steps) as server:
        result = ask(endpoint(server), **BY_SLOTS)
    assert (result.outcome, result.source) == (ProposalOutcome.CANDIDATE, expand(SOFTMAX))
    assert result.language is Language.TRITON
    assert result.prompt_template.startswith("slots@1#")
    assert "## Writing: the slots of a block" in result.prompt
    assert len(server.requests) == calls
    if calls == 2:
        assert "slot `value` has no `y` to take" in str(server.requests[1])
        assert "all slots of the block" in str(server.requests[1])


def test_slots_that_do_not_fit_twice_are_a_fault_of_their_own() -> None:
    with ScriptedLLM([WRONG, WRONG]) as server:
        result = ask(endpoint(server), **BY_SLOTS)
    assert (result.outcome, result.fault) == (ProposalOutcome.MALFORMED, Fault.BAD_SLOTS)
    assert "slot `value` has no `y` to take" in result.detail
    assert len(server.requests) == 2
    assert result.usd > 0


def test_slots_that_are_cut_off_are_no_fault_of_the_slots() -> None:
    with ScriptedLLM([Say(f"```python\n{SOFTMAX[:300]}", finish="length")]) as server:
        assert ask(endpoint(server), **BY_SLOTS).fault is Fault.CUT_OFF


def test_a_reference_that_does_not_fit_the_block_may_have_a_whole_file() -> None:
    with ScriptedLLM([GOOD]) as server:
        assert ask(endpoint(server), **BY_SLOTS).source == FILE


def test_slots_that_nobody_asked_for_are_no_file() -> None:
    with ScriptedLLM([Say(f"```python\n{GATE.split('class ModelNew')[0]}```")]) as server:
        assert ask(endpoint(server)).fault is Fault.NO_CODE


def test_edits_are_made_on_the_parent() -> None:
    with ScriptedLLM([EDIT]) as server:
        result = ask(endpoint(server), **BY_EDITS)
    assert result.source == FILE.replace("torch.softmax(x * 2, dim=-1)", "x")
    assert result.prompt_template.startswith("diff@")


def test_edits_that_do_not_fit_twice_are_a_fault_of_their_own() -> None:
    with ScriptedLLM([Say(EDIT.text.replace("x * 2", "x * 3"))]) as server:
        result = ask(endpoint(server), **BY_EDITS)
    assert (result.outcome, result.fault) == (ProposalOutcome.MALFORMED, Fault.BAD_EDITS)
    assert "the lines that edit 1 searches for are not in the file" in result.detail
