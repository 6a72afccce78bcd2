"""A Run is exported as one archive, and its replay decides the same, step by step, without any model."""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from db.engine import make_engine, read_session, write_session
from db.errors import NotFound
from db.queues import JobKind
from db.recording import BadRecording, export_run, read_recording
from db.replay import ReplayResult, main, replay
from db.repositories import candidates, runs
from db.transitions.extend import extend_run
from db.transitions.runs import cancel_run
from db.views.work import ProposalResult, ProposeWork
from evolution.types import Budget, EndReason, ProposalOutcome, RunConfig
from tests.db.world import World, candidate_result, from_list

WORDS = ("_mm256_stream", "omp parallel", "tile_size", "")
TUNABLE = 'TUNABLES = {"BLOCK": [1, 2, 4, 8]}\nCONFIG = {"BLOCK": 2}\n'


def erratic(seed: int) -> Any:
    """A Proposer that makes something of every kind."""
    rng = random.Random(seed)

    def propose(work: ProposeWork) -> ProposalResult:
        if work.arm.operator == "tune":
            return candidate_result(f"speed={rng.uniform(0.5, 2):.3f} # t{work.number}\n{TUNABLE}", prompt="## p\nx")
        draw = rng.random()
        if draw < 0.1:
            return ProposalResult(outcome=ProposalOutcome.MALFORMED, detail="prose", reply="I would fuse")
        if draw < 0.3:
            return candidate_result(rng.choice(["INCORRECT_VALUES", "BUILD_ERROR", "speed=1.1"]))
        source = f"speed={rng.uniform(0.5, 2):.3f} {rng.choice(WORDS)}\n{TUNABLE if draw < 0.6 else ''}#{work.number}"
        return candidate_result(source, prompt=f"[system]\nrules\n## p\n{work.number}", reply=source, usd=0.01)

    return propose


def live(engine: Engine, seed: int, candidates_limit: int = 9) -> str:
    """A Run that several workers work on in a random order."""
    world, rng = World(engine, propose=erratic(seed)), random.Random(seed)
    config = RunConfig(proposers=("model", "synthesiser"), in_flight=4, seed=seed, stagnation_candidates=12)
    run = world.start(Budget(candidates=candidates_limit, wall_s=3600.0), config)
    held: list[Any] = []
    for _ in range(3000):
        job = world.claim() if len(held) < 5 else None
        if job is not None:
            held.append(job)
        if not held:
            break
        if job is None or rng.random() < 0.5:
            world.work(held.pop(rng.randrange(len(held))))
    assert world.run(run.id).status.ended
    return run.id


def exported(engine: Engine, run_id: str) -> bytes:
    out = io.BytesIO()
    with read_session(engine) as s:
        export_run(s, run_id, out)
    return out.getvalue()


@pytest.fixture
def empty(tmp_path: Path, sqlite_template: bytes) -> Iterator[Engine]:
    path = tmp_path / "replay.db"
    path.write_bytes(sqlite_template)
    made = make_engine(f"sqlite:///{path}")
    yield made
    made.dispose()


def outcome(engine: Engine, run_id: str) -> Any:
    with read_session(engine) as s:
        run = runs.get(s, run_id)
        best = candidates.get(s, run.champion_id) if run.champion_id else None
        made = [(c.number, c.hash, c.verdict, c.elite, c.confirmed) for c in candidates.list(s, run_id, limit=500)]
    spend = (run.spend.candidates, run.spend.tokens, round(run.spend.usd, 9), run.spend.device_s)
    return run.status, run.end_reason, run.message, spend, best and best.hash, made


def test_a_replay_goes_as_recorded(engine: Engine, empty: Engine) -> None:
    run_id = live(engine, 5)
    found = replay(empty, exported(engine, run_id))
    assert found.differences == []
    assert found.decisions > 4  # how many it takes to bring in what is settled depends on the order of settling
    assert outcome(empty, found.run_id) == outcome(engine, run_id)


@settings(
    max_examples=settings.default.max_examples // 40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(seed=st.integers(0, 10_000))
def test_any_search_is_decided_again_from_its_events(sqlite_template: bytes, tmp_path: Path, seed: int) -> None:
    engines = []
    for name in ("live", "again"):
        path = tmp_path / f"{name}{seed}.db"
        path.write_bytes(sqlite_template)
        engines.append(make_engine(f"sqlite:///{path}"))
    run_id = live(engines[0], seed, 8)
    found = replay(engines[1], exported(engines[0], run_id))
    assert found.differences == []
    assert outcome(engines[1], found.run_id) == outcome(engines[0], run_id)
    for made in engines:
        made.dispose()


def test_an_extended_run_is_replayed_too(engine: Engine, empty: Engine) -> None:
    world = World(engine, propose=erratic(3))
    run = world.start(Budget(candidates=4), RunConfig(proposers=("model",), in_flight=2, stagnation_candidates=50))
    world.drain()
    with write_session(engine) as s:
        extend_run(s, run.id, Budget(candidates=3))
    world.drain()
    found = replay(empty, exported(engine, run.id))
    assert found.differences == []
    assert outcome(empty, found.run_id) == outcome(engine, run.id)


@pytest.mark.parametrize("cancelled", [False, True])
def test_answers_that_came_after_the_end_are_replayed_too(engine: Engine, empty: Engine, cancelled: bool) -> None:
    world = World(engine, propose=from_list("speed=1.5", "speed=1.4"))
    run = world.start(Budget(candidates=2), RunConfig(in_flight=2, target_speedup=1.2))
    late = world.take(JobKind.JUDGE)
    if cancelled:
        with write_session(engine) as s:
            cancel_run(s, run.id)
    world.drain()
    assert world.run(run.id).end_reason is (EndReason.CANCELLED if cancelled else EndReason.TARGET_REACHED)
    world.work(late)
    found = replay(empty, exported(engine, run.id))
    assert found.differences == []
    assert outcome(empty, found.run_id) == outcome(engine, run.id)


def test_the_same_run_is_the_same_archive_and_the_command_replays_it(engine: Engine, tmp_path: Path) -> None:
    run_id = live(engine, 1, 4)
    data = exported(engine, run_id)
    assert data == exported(engine, run_id)
    path = tmp_path / "run.zip"
    path.write_bytes(data)
    assert main([str(path)]) == 0
    with read_session(engine) as s, pytest.raises(NotFound):
        export_run(s, run_id, io.BytesIO(), project_id="other")


def changed(data: bytes, name: str, old: str, new: str, *, honest: bool) -> bytes:
    """The archive with a text replaced; `honest` keeps the manifest true."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: archive.read(info).decode() for info in archive.infolist()}
    assert old in members[name]
    members[name] = members[name].replace(old, new, 1)
    if honest:
        manifest = json.loads(members["manifest.json"])
        manifest["members"][name] = hashlib.sha256(members[name].encode()).hexdigest()
        members["manifest.json"] = json.dumps(manifest)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return out.getvalue()


def test_another_decision_is_found(engine: Engine, empty: Engine, tmp_path: Path) -> None:
    data = changed(exported(engine, live(engine, 2, 5)), "events.jsonl", "propose model", "propose modem", honest=True)
    found: ReplayResult = replay(empty, data)
    assert "modem" in found.differences[0]
    path = tmp_path / "other.zip"
    path.write_bytes(data)
    assert main([str(path)]) == 1


def test_a_broken_archive_is_refused(engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = exported(engine, live(engine, 2, 3))
    path = tmp_path / "broken.zip"
    for bad, words in (
        (b"", "not a recording"),
        (data[: len(data) // 2], "not a recording"),
        (data[:100] + b"\xff" * 20 + data[120:], "not a recording"),
        (changed(data, "events.jsonl", "propose", "dispose", honest=False), "changed or cut"),
        (changed(data, "manifest.json", '"schema_version": ', '"schema_version": 99', honest=False), "expected is"),
    ):
        with pytest.raises(BadRecording, match=words):
            read_recording(bad)
    path.write_bytes(b"x")
    assert main([str(path)]) == 2
    path.unlink()
    assert main([str(path)]) == 2
    assert capsys.readouterr().err.endswith(f"{path}: No such file or directory\n")
