"""Real answers to real prompts, recorded: read today as they were then, and every decision made again, asking nobody.

Made with `python -m bench.recorded`. A change of the search makes other decisions: then record again, or say in the
commit which recordings it ends.
"""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import pytest
from sqlalchemy import select

from db.engine import make_engine, migrate, read_session
from db.recording import Recording, read_recording
from db.replay import replay, replay_archive
from db.repositories.work.proposing import propose_work
from db.tables.core import CandidateRow, ProposalRow
from evaluator.languages import detect
from evaluator.schema import from_json
from evaluator.types import Candidate, Evaluation, Language, Verdict
from evolution.types import ProposalOutcome
from prompts import read_reply

RECORDED = sorted(Path(__file__).with_name("recorded").glob("*.zip"))
each = pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
one = pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=() if path == RECORDED[0] else pytest.mark.soak) for path in RECORDED],
)


def answers(recording: Recording) -> list[dict[str, object]]:
    return [line for line in recording.lines["proposals"] if line["arm"]["proposer"] == "relay"]


def test_three_problems_are_recorded() -> None:
    assert len(RECORDED) >= 3
    operators = {
        line["arm"]["operator"]  # type: ignore[index]
        for path in RECORDED
        for line in answers(read_recording(path.read_bytes()))
        if line["outcome"] == ProposalOutcome.CANDIDATE
    }
    assert {"create", "diff"} <= operators


@each
def test_recorded_answers_make_the_recorded_candidates(path: Path) -> None:
    recording = read_recording(path.read_bytes())
    made = {line["id"]: line for line in recording.lines["candidates"]}
    asked = [line for line in answers(recording) if line["candidate_id"] is not None]
    assert asked
    for line in asked:
        candidate = made[str(line["candidate_id"])]
        parents = line["parents"]
        assert isinstance(parents, list)
        source = read_reply(str(line["reply"]), parent=made[parents[0]]["source"] if parents else None)
        language = detect(source)
        assert language is Language(candidate["language"])
        assert Candidate(source=source, language=language).hash == candidate["hash"]


@each
def test_recorded_judgements_are_still_read_whole(path: Path) -> None:
    recording = read_recording(path.read_bytes())
    found = [from_json(Evaluation, line["evaluation"]) for line in recording.lines["evaluations"] if line["evaluation"]]
    passed = [evaluation for evaluation in found if evaluation.verdict is Verdict.PASSED]
    assert passed
    assert all(len(m.samples_us) > 1 for evaluation in passed for m in evaluation.measurements)


@each
def test_a_recorded_run_is_decided_again_as_it_was(path: Path) -> None:
    found = replay_archive(path.read_bytes())
    assert found.differences == []
    assert found.decisions > 5


@one
def test_who_is_asked_to_improve_an_answer_is_told_of_all_and_no_number_contradicts_another(
    path: Path, tmp_path: Path
) -> None:
    """Printed beside times of another session, a parent's ratio contradicted them: what is told is of one judging."""
    engine = make_engine(f"sqlite:///{tmp_path / 'replay.db'}")
    try:
        migrate(engine)
        replay(engine, path.read_bytes())
        with read_session(engine) as s:
            asked = s.scalars(select(ProposalRow).where(ProposalRow.operator.in_(("rewrite", "diff")))).all()
            works = [propose_work(s, row.id, calls=1) for row in asked]
            rows = {row.id: row for row in s.scalars(select(CandidateRow))}
    finally:
        engine.dispose()
    assert works
    for work in works:
        (parent,) = work.parents
        whole = next(one.value for one in parent.ratios if one.workload is None)
        each_one = [math.log(one.value) for one in parent.ratios if one.workload is not None]
        assert whole == pytest.approx(math.exp(statistics.fmean(each_one)), rel=1e-3)
        for m in parent.measurements:
            stated = next(one for one in parent.ratios if one.workload == m.workload)
            fastest_us = min(one.median_us for one in m.baselines)
            # Medians of a disturbed session are not quite what its pairs of rounds say.
            assert 0.9 * stated.interval.low < fastest_us / m.median_us < 1.1 * stated.interval.high
        assert {one.number for one in work.approaches} == {r.number for r in rows.values() if r.operator != "tune"}
        assert all(
            len(one.said) > 100 and (one.said.endswith(" ...") or "..." not in one.said) for one in work.approaches
        )
        family = rows[parent.candidate_id].family
        related = {r.number for r in rows.values() if r.family == family} - {rows[parent.candidate_id].number}
        assert {one.number for one in parent.relatives} == related
        assert all(one.configuration for one in parent.relatives)
        assert work.varied
