"""Real answers to real prompts, recorded: they are read today as they were read then, without asking anybody."""

from __future__ import annotations

from pathlib import Path

from db.recording import read_recording
from evaluator.languages import detect
from evaluator.schema import from_json
from evaluator.types import Candidate, Evaluation, Language, Verdict
from evolution.types import ProposalOutcome
from prompts import read_reply

RECORDED = Path(__file__).with_name("recorded") / "softmax.zip"


def test_recorded_answers_make_the_recorded_candidates() -> None:
    recording = read_recording(RECORDED.read_bytes())
    made = {line["id"]: line for line in recording.lines["candidates"]}
    asked = [line for line in recording.lines["proposals"] if line["arm"]["proposer"] == "relay"]
    operators = [line["arm"]["operator"] for line in asked if line["outcome"] == ProposalOutcome.CANDIDATE]
    assert {"create", "rewrite", "diff"} <= set(operators)
    for line in asked:
        if line["candidate_id"] is None:
            continue
        parent = made[line["parents"][0]]["source"] if line["parents"] else None
        source = read_reply(line["reply"], parent=parent)
        language = detect(source)
        found = Candidate(source=source, language=language)
        assert language is Language.CPP
        assert found.hash == made[line["candidate_id"]]["hash"]


def test_recorded_judgements_are_still_read_whole() -> None:
    recording = read_recording(RECORDED.read_bytes())
    found = [from_json(Evaluation, line["evaluation"]) for line in recording.lines["evaluations"] if line["evaluation"]]
    assert all(evaluation.verdict is Verdict.PASSED for evaluation in found)
    assert all(len(m.samples_us) > 1 for evaluation in found for m in evaluation.measurements)
