"""Proposers that ask no model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from db.views.work import ParentView
from evaluator.types import Language, Problem
from evolution.types import Operator, ProposalOutcome
from runtime.settings import Settings, settings
from synthesis import Graph
from synthesis.graph.capture import capture
from tests.workers.conftest import Shop, drain
from tests.workers.work_items import FILE, PROBLEM, propose_work
from workers import graphs, record
from workers.proposers import Proposers

TUNABLE = 'TUNABLES = {"BLOCK": [1, 2]}\nCONFIG = {"BLOCK": 1}\n' + FILE
PARENT = ParentView(candidate_id="cand_1", source=TUNABLE, language=Language.TORCH, verdict=None, stage=None, reason="")


def test_a_seed_is_taken_as_it_is() -> None:
    result = Proposers(Settings()).propose(propose_work("seed", given=FILE))
    assert (result.outcome, result.source) == (ProposalOutcome.CANDIDATE, FILE)
    assert result.duration_s > 0


@pytest.mark.parametrize("given", ["def (", "x = 1", "\ud800"])
def test_a_seed_that_is_no_candidate_is_malformed(given: str) -> None:
    result = Proposers(Settings()).propose(propose_work("seed", given=given))
    assert result.outcome is ProposalOutcome.MALFORMED
    assert result.detail


def test_tuning_rewrites_the_configuration() -> None:
    work = propose_work("tuner", Operator.TUNE, parents=(PARENT,), hint={"configuration": {"BLOCK": 2}})
    result = Proposers(Settings()).propose(work)
    assert result.source is not None
    assert "'BLOCK': 2" in result.source.replace('"', "'")
    assert result.detail == "BLOCK=2"
    for hint in ({}, {"configuration": {"BLOCK": 3}}):
        refused = Proposers(Settings()).propose(replace(work, hint=hint))
        assert refused.outcome is ProposalOutcome.MALFORMED


def test_an_unknown_proposer_is_exhausted_and_names_the_known_ones() -> None:
    result = Proposers(Settings()).propose(propose_work("model"))
    assert result.outcome is ProposalOutcome.EXHAUSTED
    assert "synthesiser" in result.detail


def test_replay_answers_line_by_line(tmp_path: Path) -> None:
    lines = [
        {"source": FILE},
        {"reply": f"```python\n{FILE}```"},
        {"outcome": "malformed", "detail": "prose"},
        {"reply": "prose"},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    proposers = Proposers(Settings(replay_dir=tmp_path))
    results = [proposers.propose(propose_work("replay:a.jsonl", arm_number=n)) for n in range(5)]
    assert [result.outcome.value for result in results] == [
        "candidate",
        "candidate",
        "malformed",
        "malformed",
        "exhausted",
    ]
    assert results[0].source == results[1].source == FILE


@pytest.mark.parametrize(
    "name", ["", "../a.jsonl", "/etc/passwd", "..", ".hidden", "missing.jsonl", "bad.jsonl", "list.jsonl"]
)
def test_a_replay_that_cannot_be_read_says_so(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "replays"
    folder.mkdir()
    (tmp_path / "a.jsonl").write_text(json.dumps({"source": FILE}))
    (folder / "bad.jsonl").write_text("{")
    (folder / "list.jsonl").write_text("[1]")
    result = Proposers(Settings(replay_dir=folder)).propose(propose_work(f"replay:{name}"))
    assert result.outcome is ProposalOutcome.EXHAUSTED
    assert result.detail.startswith("replay of")
    assert Proposers(Settings()).propose(propose_work("replay:a")).outcome is ProposalOutcome.EXHAUSTED


def test_a_recorded_run_is_repeated_exactly(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = shop.context()
    first = shop.start("speed=1.1", "speed=1.3", "verdict=TIMEOUT", "speed=1.1")
    drain(context)
    monkeypatch.setenv("WARPWRIGHT_REPLAY_DIR", str(tmp_path))
    settings.cache_clear()
    assert record.main([first.id, "-o", str(tmp_path / "again.jsonl")]) == 0
    assert record.main(["run_none", "-o", str(tmp_path / "none.jsonl")]) == 1
    settings.cache_clear()
    recorded = [json.loads(line) for line in (tmp_path / "again.jsonl").read_text().splitlines()]
    second = shop.start(*[line["source"] for line in recorded if line["source"]])
    drain(context)

    def story(run_id: str) -> list[tuple[object, ...]]:
        found = sorted(shop.candidates(run_id), key=lambda c: c.number)
        return [(c.number, c.hash, c.verdict) for c in found]

    assert story(first.id) == story(second.id)


@pytest.mark.compiles
def test_the_synthesiser_writes_designs_until_it_has_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[str] = []

    def seen(problem: Problem, *more: Any, **named: Any) -> Mapping[str, Graph]:
        traced.append(problem.hash)
        return capture(problem, *more, **named)

    monkeypatch.setattr(graphs, "capture", seen)
    work = propose_work("synthesiser")
    work = replace(work, problem=replace(work.problem, source=f"{work.problem.source}\n# of this test alone\n"))
    proposers = Proposers(Settings())
    first = proposers.propose(work)
    assert first.outcome is ProposalOutcome.CANDIDATE, first.detail
    assert first.language is Language.CPP
    second = proposers.propose(replace(work, arm_number=1))
    assert traced == [work.problem.hash], "once for both"
    assert second.source != first.source
    assert proposers.propose(replace(work, arm_number=10_000)).outcome is ProposalOutcome.EXHAUSTED


@pytest.mark.parametrize(
    "source",
    [
        PROBLEM.source.replace("return torch.softmax(x * 2, dim=-1)", "raise SystemExit(3)"),
        PROBLEM.source.replace("return torch.softmax(x * 2, dim=-1)", "import os; os.kill(os.getpid(), 9)"),
    ],
    ids=["exit", "kill"],
)
@pytest.mark.compiles
def test_a_reference_that_cannot_be_traced_is_exhausted_with_the_reason(source: str) -> None:
    result = Proposers(Settings()).propose(propose_work("synthesiser", problem=replace(PROBLEM, source=source)))
    assert result.outcome is ProposalOutcome.EXHAUSTED
    assert "synthesiser has nothing" in result.detail


def test_workers_never_load_torch() -> None:
    import subprocess
    import sys

    code = "import sys, workers.app, workers.sweeper; print([m for m in ('torch', 'triton') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
