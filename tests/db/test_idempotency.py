"""Answers under an Idempotency-Key, with two requests at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi import FastAPI
from sqlalchemy import Engine, func, select
from starlette.testclient import TestClient

from db.engine import read_session, write_session
from db.tables.core import ProblemRow, RunRow
from db.transitions.access import idempotency
from db.views.rows import StoredAnswer
from runtime.settings import Settings
from service.app import create_app

pytestmark = pytest.mark.both_stacks

ANSWER = StoredAnswer(fingerprint="f" * 64, status=202, location="/runs/1", body="{}")
PROBLEM = """import torch
class Model(torch.nn.Module):
    def forward(self, x): return x + 1
def get_inputs(): return [torch.randn(4)]
"""


def in_thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_a_twin_waits_and_finds_the_answer(engine: Engine) -> None:
    found: list[StoredAnswer | None] = []

    def twin() -> None:
        with write_session(engine) as s:
            found.append(idempotency.claim(s, "default", "key"))

    with write_session(engine) as s:
        assert idempotency.claim(s, "default", "key") is None
        thread = in_thread(twin)
        idempotency.store(s, "default", "key", ANSWER)
        thread.join(0.2)
        assert found == []
    thread.join(30)
    assert found == [ANSWER]


def test_a_twin_goes_on_where_the_first_was_refused(engine: Engine) -> None:
    with write_session(engine) as s:
        assert idempotency.claim(s, "default", "key") is None
        s.rollback()
    with write_session(engine) as s:
        assert idempotency.claim(s, "default", "key") is None


def test_simultaneous_posts_under_one_key_are_done_once(engine: Engine, url: str) -> None:
    app: FastAPI = create_app(
        Settings(database_url=url, redis_url="redis://127.0.0.1:1/0"), engine=engine, send_nudges=lambda queues: None
    )
    start = threading.Barrier(6)
    body = {"problem": {"name": "p", "source": PROBLEM}, "device": "cpu", "budget": {"candidates": 1}}

    def post(_: int) -> tuple[int, str, bool]:
        client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
        start.wait(30)
        answer = client.post("/api/v1/runs", json=body, headers={"Idempotency-Key": "once"})
        return answer.status_code, answer.text, "idempotent-replay" in answer.headers

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(post, range(6)))
    assert {status for status, _, _ in answers} == {202}
    assert len({text for _, text, _ in answers}) == 1
    assert sorted(replayed for _, _, replayed in answers) == [False] + [True] * 5
    with read_session(engine) as s:
        assert s.scalar(select(func.count()).select_from(RunRow)) == 1
        assert s.scalar(select(func.count()).select_from(ProblemRow)) == 1
