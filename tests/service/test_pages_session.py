"""Pages for somebody who has signed in: what changes something carries the session's token, or is not offered."""

from __future__ import annotations

import re

from db.queues import JobKind
from tests.db.world import World
from tests.service.conftest import PROBLEM
from tests.service.test_access import SAME_ORIGIN, Gate, gate, guarded_app

__all__ = ["gate", "guarded_app"]


def test_every_form_carries_the_token_of_the_session(gate: Gate, world: World) -> None:
    token = gate.sign_in(gate.make())
    run = world.start()
    world.take(JobKind.JUDGE)
    for path in (f"/runs/{run.id}", f"/runs/{run.id}/queue", "/submit", "/runs"):
        forms = re.findall(r'<form method="post".*?</form>', gate.http.get(path).text, re.DOTALL)
        assert forms, path
        assert all(f'name="csrf_token" value="{token}"' in form for form in forms), path
    answer = gate.http.post(
        f"/runs/{run.id}/pause", data={"csrf_token": token}, headers=SAME_ORIGIN, follow_redirects=False
    )
    assert answer.status_code == 303
    assert world.run(run.id).status == "paused"
    looked = gate.http.post(
        "/submit/check", data={"source": PROBLEM, "name": "x"}, headers={**SAME_ORIGIN, "x-csrf-token": token}
    )
    assert ">valid<" in looked.text
    refused = gate.http.post("/submit", data={"source": PROBLEM, "name": "x"}, headers=SAME_ORIGIN)
    assert refused.status_code == 403


def test_who_may_only_read_is_offered_nothing_else(gate: Gate, world: World) -> None:
    run = world.start()
    gate.sign_in(gate.make("read"))
    text = gate.http.get(f"/runs/{run.id}").text
    assert "/submit" not in text
    assert f'action="/runs/{run.id}' not in text
    page = {"accept": "text/html"}
    assert gate.http.get("/submit", headers=page).status_code == 403


def test_pages_of_another_project_do_not_exist(gate: Gate, world: World) -> None:
    run = world.start()
    world.drain()
    champion = world.run(run.id).champion_id
    gate.sign_in(gate.make(project="other"))
    page = {"accept": "text/html"}
    for path in (
        f"/runs/{run.id}",
        f"/runs/{run.id}/progress",
        f"/runs/{run.id}/lineage",
        f"/candidates/{champion}",
        f"/candidates/{champion}/samples",
        f"/candidates/{champion}/download",
        f"/compare?id={champion}",
        f"/problems/{run.problem_id}",
        f"/submit?problem={run.problem_id}",
    ):
        assert gate.http.get(path, headers=page).status_code == 404, path
    assert (
        "softmax" not in gate.http.get("/").text + gate.http.get("/runs").text + gate.http.get("/leaderboard.csv").text
    )
