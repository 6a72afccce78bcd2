"""Runs with models as lines: costs, judgements, lineage; and every kernel again for the proposer `replay`."""

from __future__ import annotations

import json
from pathlib import Path

from bench import answers
from bench.report.outcomes import answered

ROOT = Path(__file__).resolve().parents[2]
ARCHIVE = ROOT / "docs" / "studies" / "real-answers" / "rmsnorm_residual.zip"


def test_a_run_with_a_model_becomes_lines_and_replays(tmp_path: Path) -> None:
    record = tmp_path / "answers.jsonl"
    assert answers.main([str(ARCHIVE), "--output", str(record)]) == 0
    run, *rows = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    assert (run["problem"], run["proposers"], run["answers"]) == ("rmsnorm_residual", ["model"], 5)
    champion = run["champion"]  # docs/studies/real-answers.md has the same: 2 -> 6 -> 10, 1.57 (1.53 to 1.60)
    assert (champion["candidate"], champion["lineage"]) == (10, [2, 6, 10])
    assert [round(champion[key], 2) for key in ("speedup", "low", "high")] == [1.57, 1.53, 1.6]
    assert (run["best_first"]["candidate"], run["best_first"]["of"]) == (9, 4)
    written = [row for row in rows if row["reply"]]
    assert len(written) == 5
    assert all(row["plan"] and row["source"] and row["judgements"] for row in written)
    assert {one["kind"] for row in written for one in row["judgements"]} == {"judge", "confirm"}

    assert answers.main(["--replay", str(tmp_path / "replays"), "--output", str(record)]) == 0
    (replay,) = (tmp_path / "replays").iterdir()
    assert replay.name == "rmsnorm_residual.jsonl"
    lines = [json.loads(line) for line in replay.read_text(encoding="utf-8").splitlines()]
    assert [line["source"] for line in lines] == [row["source"] for row in written]


def test_the_outcome_says_what_was_judged_and_that_nothing_was_confirmed() -> None:
    said = answered("answers-cuda.jsonl", "model")
    assert "groupnorm_silu 1.56x" in said
    assert "confirmed: **none**" in said
    assert "$ an answer" in said
