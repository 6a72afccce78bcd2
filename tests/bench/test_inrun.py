"""The figures of whole runs: read from a run's database, and summed up."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from bench import inrun
from bench.timeline import describe, how_ended, read_timeline
from db.tables.base import Base
from db.tables.core import RunRow

POSTED = datetime(2026, 1, 1, tzinfo=UTC)


def _at(seconds: float) -> datetime:
    return POSTED + timedelta(seconds=seconds)


def _evaluation(id: str, kind: str, settled: float, low: float, **more: Any) -> dict[str, Any]:
    ratio = {"against": "fastest", "workload": None, "value": low + 0.1, "interval": {"low": low, "high": low + 0.2}}
    body = {"speedups": [ratio], "duration_s": {"timing": 2.0}, **more}
    row = {
        "id": id,
        "kind": kind,
        "state": "settled",
        "verdict": "PASSED",
        "stage": "timing",
        "reason": "",
        "body": body,
    }
    return {**row, "settled_at": _at(settled), "device_name": "a GPU"}


def _job(kind: str, subject: str, claimed: float, done: float | None) -> dict[str, Any]:
    return {
        "kind": kind,
        "subject_id": subject,
        "claimed_at": _at(claimed),
        "done_at": None if done is None else _at(done),
    }


def _event(what: str, at: float, **data: Any) -> dict[str, Any]:
    return {"kind": what, "created_at": _at(at), "data": data}


def test_a_run_is_described_from_its_post() -> None:
    run = {
        "created_at": POSTED, "ended_at": _at(70), "status": "finished", "end_reason": "budget", "message": "",
        "champion_id": "cand_1",
    }  # fmt: skip
    events = [
        _event("baseline.timed", 8),
        _event("search.decided", 10),
        _event("evaluation.settled", 20, kind="judge"),
        _event("champion.promoted", 69, speedup=1.5, low=1.4),
    ]
    jobs = [
        _job("baseline", "base_1", 2, 8), _job("judge", "e1", 12, 20), _job("judge", "e2", 18, 40),
        _job("confirm", "e3", 45, 69), _job("judge", "e4", 69, None),
    ]  # fmt: skip
    slow = _evaluation("e2", "judge", 40, 0.5)
    refused = {**_evaluation("e5", "judge", 30, 1.0), "verdict": "BUILD_ERROR", "stage": "build", "reason": "no"}
    refused["body"] = {"evidence": {"check": "driver", "samples": [1]}}
    confirmed = _evaluation(
        "e3", "confirm", 69, 1.4, evidence={"promote": True, "confirm": {"bound": 1.3}, "seconds": {"check": 3}}
    )
    found = describe(run, events, jobs, [_evaluation("e1", "judge", 20, 1.1), slow, refused, confirmed])
    assert (found["first_verdict_s"], found["search_s"], found["total_s"]) == (20, 60, 70)
    assert found["refused"] == [{"verdict": "BUILD_ERROR", "reason": "no", "check": "driver"}]
    assert (found["judged"], found["judged_a_minute"]) == (2, 2.0)
    assert found["ended"] == {"PASSED, faster": 1, "PASSED, slower": 1, "BUILD_ERROR (build)": 1}
    assert found["held"]["judge"] == pytest.approx((28 + 1) / 60, abs=1e-3), "claims that overlap count once"
    assert found["held"]["baseline"] == 0.0, "before the search"
    assert found["confirmations"][0]["seconds"] == 24
    assert found["confirmations"][0]["decision"] == {"bound": 1.3}
    assert found["confirmations"][0]["spent_s"] == {"check": 3}
    assert found["champion"] == {"speedup": 1.5, "low": 1.4}


def test_how_a_judgement_ended_names_duplicates_and_equals() -> None:
    assert how_ended({**_evaluation("e", "judge", 1, 1.0), "state": "duplicate"}) == "duplicate"
    assert how_ended(_evaluation("e", "judge", 1, 0.9)) == "PASSED, about equal"
    assert how_ended({**_evaluation("e", "judge", 1, 0.9), "body": None}) == "PASSED, not timed"


def test_the_columns_are_those_of_the_database(tmp_path: Path) -> None:
    database = tmp_path / "warpwright.db"
    engine = create_engine(f"sqlite:///{database}")
    Base.metadata.create_all(engine)
    assert read_timeline(database) == {}
    with Session(engine) as s:
        row = RunRow(id="run_1", project_id="p", problem_id="q", device_kind="cpu", status="failed", message="no")
        row.budget, row.config, row.created_at, row.ended_at = {}, {}, POSTED, _at(3.5)
        s.add(row)
        s.commit()
    engine.dispose()
    found = read_timeline(database)
    assert (found["total_s"], found["judged"], found["first_verdict_s"], found["champion"]) == (3.5, 0, None, None)


def test_shards_take_every_problem_before_any_repeats() -> None:
    some = [inrun.problem_file("rmsnorm_residual"), inrun.problem_file("layernorm")]
    every = inrun.pieces(some, 2, "1/1")
    assert [(one.problem.stem, one.repeat) for one in every] == [
        ("rmsnorm_residual", 1), ("layernorm", 1), ("rmsnorm_residual", 2), ("layernorm", 2),
    ]  # fmt: skip
    assert inrun.pieces(some, 2, "2/2") == every[1::2]


@pytest.mark.parametrize("shard", ["0/2", "3/2", "a/b", "2"])
def test_a_bad_shard_says_what_to_give(shard: str) -> None:
    with pytest.raises(SystemExit, match="give I/N"):
        inrun.pieces([], 1, shard)


def test_a_problem_is_an_example_or_a_file(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("")
    assert inrun.problem_file(str(mine)) == mine
    with pytest.raises(SystemExit, match="neither a file nor one of the examples"):
        inrun.problem_file("nothing_like_it")


def test_a_cut_off_line_is_left_out_on_resume(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"seen_on": {}}) + "\n" + json.dumps({"key": ["a"]}) + '\n{"key": ["b"')
    assert inrun.known_rows(path, resume=True) == [{"key": ["a"]}]
    assert inrun.known_rows(path, resume=False) == []


def test_the_summary_keeps_cached_runs_apart() -> None:
    row = {
        "problem": "a", "message": "Not promoted: #1.",
        "label": "now", "cached": False, "champion": None, "judged_a_minute": 4.0, "first_verdict_s": 20.0,
        "held": {"judging": 0.5}, "confirmations": [], "total_s": 70.0,
    }  # fmt: skip
    lines = inrun.summary([row, {**row, "judged_a_minute": 9.0}, {**row, "cached": True, "first_verdict_s": None}])
    assert "0 champions of 2 runs; first verdict 20 s; 6.0 judged a minute (geometric mean, worst 4.0)" in lines[0]
    assert lines[1:3] == ["  a, no champion: Not promoted: #1."] * 2
    assert lines[3].startswith("inrun now cached: 0 champions of 1 runs; first verdict - s")
