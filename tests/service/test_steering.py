"""Steering Runs and handing in Candidates, over the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from httpx2 import Response
from sqlalchemy import Engine
from starlette.testclient import TestClient

from db.engine import read_session, write_session
from db.queues import JobKind
from db.repositories.work.jobs import payload
from db.transitions.access.projects import change_project
from db.transitions.work.webhooks import settle_webhook
from db.views.access import Quota
from db.views.work import Delivery, WebhookWork
from evaluator.types import Verdict
from runtime.models import ModelEndpoint
from runtime.settings import Settings
from service.app import create_app
from tests.db.world import World
from tests.service.conftest import BASE_URL, PROBLEM
from tests.service.test_refusals import refused

API = "/api/v1"
KERNEL = "SPEED = 'speed=3.0 '\nimport triton\nclass ModelNew: ...\n"


def test_a_run_out_of_budget_is_given_more(client: TestClient, finished: str, world: World, nudges: list[str]) -> None:
    before = client.get(f"{API}/runs/{finished}").json()
    nudges.clear()
    response = client.post(f"{API}/runs/{finished}/extend", json={"budget": {"candidates": 3}, "target_speedup": 9.0})
    assert response.status_code == 200, response.text
    run = response.json()
    assert run["status"] == "running"
    assert run["budget"]["candidates"] == before["budget"]["candidates"] + 3
    assert run["config"]["target_speedup"] == 9.0
    assert nudges == ["control"]
    world.drain()
    assert client.get(f"{API}/runs/{finished}").json()["status"] == "finished"
    refused(client.post(f"{API}/runs/{finished}/extend", json={"budget": {}}), 422)
    refused(client.post(f"{API}/runs/{finished}/extend", json={"budget": {"wall_s": 1e10}}), 422)


def test_a_cancelled_run_is_forked_and_not_extended(client: TestClient, world: World) -> None:
    run = world.start()
    client.post(f"{API}/runs/{run.id}/cancel")
    body = {"budget": {"candidates": 1}}
    assert "fork" in refused(client.post(f"{API}/runs/{run.id}/extend", json=body), 409)["detail"]
    assert "nothing" not in refused(client.post(f"{API}/runs/{run.id}/fork", json=body), 409)["detail"]


def test_a_fork_begins_with_the_champions(client: TestClient, finished: str) -> None:
    parent = client.get(f"{API}/runs/{finished}").json()
    body = {"budget": {"candidates": 8}, "heritage": "champions", "config": {"islands": 3}}
    response = client.post(f"{API}/runs/{finished}/fork", json=body)
    assert response.status_code == 202, response.text
    run = client.get(response.headers["location"]).json()
    assert run["forked_from"] == finished
    assert run["problem_id"] == parent["problem_id"]
    assert run["config"]["seed_candidates"] == [parent["champion_id"]]
    assert run["config"]["islands"] == 3
    assert run["config"]["proposers"] == ["synthesiser"]
    unknown = {**body, "config": {"proposers": ["gpt"]}}
    refused(client.post(f"{API}/runs/{finished}/fork", json=unknown), 422, "unknown-proposer")


def test_dollars_are_refused_for_a_model_whose_prices_are_unknown(
    settings: Settings, engine: Engine, finished: str
) -> None:
    models = (
        ModelEndpoint(name="vague", base_url="http://127.0.0.1:1/v1", model="vague"),
        ModelEndpoint(
            name="free", base_url="http://127.0.0.1:1/v1", model="free", usd_per_million_input=0.0,
            usd_per_million_output=0.0,
        ),
    )  # fmt: skip
    app = create_app(settings.model_copy(update={"models": models}), engine=engine, send_nudges=lambda _: True)
    with TestClient(app, base_url=BASE_URL) as client:
        problem_id = client.get(f"{API}/runs/{finished}").json()["problem_id"]

        def start(budget: dict[str, Any], *proposers: str) -> Response:
            config = {"config": {"proposers": proposers}} if proposers else {}
            body = {"problem_id": problem_id, "device": "cpu", "budget": budget, **config}
            return client.post(f"{API}/runs", json=body)

        dollars = {"candidates": 2, "usd": 1.0}
        before = len(client.get(f"{API}/runs").json()["items"])
        for proposers in (("vague",), ("model",), ("synthesiser", "free", "vague"), ()):
            document = refused(start(dollars, *proposers), 422, "unpriced-model")
            assert "The prices of vague are not known" in document["detail"]
        fork = {"budget": dollars, "config": {"proposers": ["vague"]}}
        refused(client.post(f"{API}/runs/{finished}/fork", json=fork), 422, "unpriced-model")
        assert len(client.get(f"{API}/runs").json()["items"]) == before
        for budget, name in ((dollars, "free"), (dollars, "synthesiser"), ({"candidates": 2}, "vague")):
            assert start(budget, name).status_code == 202
        with write_session(engine) as s:
            change_project(s, "default", quota=Quota(usd_per_month=1.0))
        document = refused(start({"candidates": 2}, "vague"), 422, "unpriced-model")
        assert "the project's quota of dollars" in document["detail"]
        assert start({"candidates": 2}, "free").status_code == 202


def test_seed_candidates_are_of_the_same_problem_and_project(client: TestClient, finished: str) -> None:
    champion = client.get(f"{API}/runs/{finished}").json()["champion_id"]
    problem_id = client.get(f"{API}/candidates/{champion}").json()["problem_id"]
    body: dict[str, Any] = {"problem_id": problem_id, "budget": {"candidates": 2}}
    response = client.post(f"{API}/runs", json={**body, "config": {"seed_candidates": [champion]}})
    assert response.status_code == 202
    nobody = {"seed_candidates": ["cand_" + "0" * 26]}
    refused(client.post(f"{API}/runs", json={**body, "config": nobody}), 404)
    other = {"problem": {"name": "other", "source": PROBLEM + "# other"}, "budget": {"candidates": 2}}
    refused(client.post(f"{API}/runs", json={**other, "config": {"seed_candidates": [champion]}}), 409)
    assert len(client.get(f"{API}/problems").json()["items"]) == 1  # a refused run stores no problem
    many = {"seed_candidates": [champion] * 40, "seed_sources": ["x = 1"] * 40}
    refused(client.post(f"{API}/runs", json={**body, "config": many}), 422)


def test_a_kernel_by_hand_is_judged_within_a_run(client: TestClient, world: World) -> None:
    run = world.start()
    world.work(world.take(JobKind.ADVANCE))
    body = {"source": KERNEL, "by": "ada"}
    response = client.post(f"{API}/runs/{run.id}/candidates", json=body)
    assert response.status_code == 202, response.text
    assert response.json()["arm"]["proposer"] == "external:ada"
    candidate = client.get(response.headers["location"]).json()
    assert (candidate["language"], candidate["run_id"]) == ("triton", run.id)
    again = client.post(f"{API}/runs/{run.id}/candidates", json=body).json()
    assert (again["outcome"], again["candidate_id"]) == ("duplicate", candidate["id"])
    foreign = {**body, "source": KERNEL + "#", "parents": ["cand_" + "0" * 26]}
    refused(client.post(f"{API}/runs/{run.id}/candidates", json=foreign), 404)
    world.drain()
    assert client.get(response.headers["location"]).json()["verdict"] == "PASSED"
    refused(client.post(f"{API}/runs/{run.id}/candidates", json={"source": "x"}), 409)


@pytest.mark.parametrize("inline", [True, False])
def test_a_candidate_is_judged_by_itself(client: TestClient, world: World, nudges: list[str], inline: bool) -> None:
    given = {"name": "softmax", "source": PROBLEM}
    problem = {"problem": given} if inline else {"problem_id": client.post(f"{API}/problems", json=given).json()["id"]}
    response = client.post(f"{API}/evaluations", json={**problem, "source": KERNEL, "device": "cpu", "by": "agent-7"})
    assert response.status_code == 202, response.text
    assert nudges == ["cpu"]
    record = response.json()
    assert (record["state"], record["kind"], record["result"]) == ("building", "judge", None)
    assert client.get(f"{API}/runs").json()["items"] == []
    world.drain()
    done = client.get(response.headers["location"]).json()
    assert (done["state"], done["verdict"]) == ("settled", "PASSED")
    assert done["result"]["speedups"][0]["value"] == 3.0
    run = client.get(f"{API}/runs/{done['run_id']}").json()
    assert (run["kind"], run["status"], run["champion_id"]) == ("judge", "finished", done["candidate_id"])
    listed = client.get(f"{API}/runs", params={"kind": "judge"}).json()["items"]
    assert [item["id"] for item in listed] == [run["id"]]
    row = client.get(f"{API}/leaderboard").json()["items"][0]
    assert (row["candidate_id"], row["proposer"]) == (done["candidate_id"], "external:agent-7")
    refused(client.post(f"{API}/runs/{run['id']}/extend", json={"budget": {"candidates": 1}}), 409)
    refused(client.post(f"{API}/runs/{run['id']}/candidates", json={"source": "x"}), 409)


@pytest.mark.parametrize("verdict", [Verdict.INCORRECT_VALUES, Verdict.BUILD_ERROR])
def test_a_wrong_candidate_is_told_so_and_its_run_ends(client: TestClient, world: World, verdict: Verdict) -> None:
    body = {"problem": {"name": "softmax", "source": PROBLEM}, "source": verdict.value}
    response = client.post(f"{API}/evaluations", json=body)
    world.drain()
    done = client.get(response.headers["location"]).json()
    assert (done["state"], done["verdict"]) == ("settled", verdict.value)
    run = client.get(f"{API}/runs/{done['run_id']}").json()
    assert (run["status"], run["end_reason"]) == ("finished", "no_improvement")


def test_a_cancelled_judging_says_so(client: TestClient, world: World) -> None:
    body = {"problem": {"name": "softmax", "source": PROBLEM}, "source": KERNEL}
    record = client.post(f"{API}/evaluations", json=body).json()
    client.post(f"{API}/runs/{record['run_id']}/cancel")
    world.drain()
    assert client.get(f"{API}/evaluations/{record['id']}").json()["state"] == "cancelled"


def test_a_paused_judging_waits(client: TestClient, world: World) -> None:
    body = {"problem": {"name": "softmax", "source": PROBLEM}, "source": KERNEL}
    record = client.post(f"{API}/evaluations", json=body).json()
    run = f"{API}/runs/{record['run_id']}"
    assert client.post(f"{run}/pause").json()["status"] == "paused"
    world.drain()
    assert client.get(f"{API}/evaluations/{record['id']}").json()["state"] == "building"
    client.post(f"{run}/resume")
    world.drain()
    assert client.get(f"{API}/evaluations/{record['id']}").json()["state"] == "settled"


def test_an_evaluation_names_one_problem_that_runs_there(client: TestClient) -> None:
    given = {"name": "softmax", "source": PROBLEM}
    refused(client.post(f"{API}/evaluations", json={"source": "x"}), 422)
    both = {"source": "x", "problem": given, "problem_id": "prob_" + "0" * 26}
    refused(client.post(f"{API}/evaluations", json=both), 422)
    refused(client.post(f"{API}/evaluations", json={"source": "x", "problem": given, "device": "cuda"}), 422)
    refused(client.post(f"{API}/evaluations", json={"source": "x", "problem": given, "by": "<b>"}), 422)
    assert client.get(f"{API}/problems").json()["items"] == []


def test_runs_are_filtered(client: TestClient, finished: str, world: World) -> None:
    waiting = world.start().id
    problem_id = world.run(waiting).problem_id

    def ids(**params: object) -> list[str]:
        response = client.get(f"{API}/runs", params=params)
        assert response.status_code == 200, response.text
        return [item["id"] for item in response.json()["items"]]

    assert ids() == [waiting, finished]
    assert ids(status="finished") == [finished]
    assert ids(status=["finished", "queued", "admitting", "running"]) == [waiting, finished]
    assert ids(problem_id=problem_id, device="cpu", q="SOFT") == [waiting, finished]
    assert ids(q="%") == ids(device="cuda") == ids(problem_id="prob_nothing") == []
    page = client.get(f"{API}/runs", params={"limit": 1, "device": "cpu"}).json()
    assert ids(cursor=page["next_cursor"], device="cpu") == [finished]
    refused(client.get(f"{API}/runs", params={"cursor": page["next_cursor"]}), 400, "bad-cursor")


HOOK = {"url": "https://ci.example.com/done", "secret": "sixteen characters"}


def test_a_webhook_is_ordered_when_the_run_ends_and_its_secret_never_told(client: TestClient, world: World) -> None:
    body = {"problem": {"name": "softmax", "source": PROBLEM}, "budget": {"candidates": 1}}
    secret = "not-for-your-eyes"
    response = client.post(f"{API}/runs", json={**body, "webhook": {**HOOK, "secret": secret}})
    assert response.status_code == 202, response.text
    run = response.json()["id"]
    hook = client.get(f"{API}/runs/{run}/webhook")
    assert (hook.json()["url"], hook.json()["state"]) == (HOOK["url"], "waiting")
    client.post(f"{API}/runs/{run}/cancel")
    assert client.get(f"{API}/runs/{run}/webhook").json()["state"] == "ready"
    job = world.claim("propose")
    assert job is not None
    with read_session(world.engine) as s:
        item = payload(s, job)
    assert isinstance(item, WebhookWork)
    told = json.loads(item.body)
    assert (told["type"], told["run"]["id"], told["run"]["status"]) == ("run.ended", run, "cancelled")
    with write_session(world.engine) as s:
        settle_webhook(s, job, Delivery(delivered=False, attempts=6, status=500, error="it answered 500"))
    settled = client.get(f"{API}/runs/{run}/webhook")
    assert (settled.json()["state"], settled.json()["status"]) == ("failed", 500)
    for text in (response.text, hook.text, settled.text, item.body, client.get(f"{API}/runs/{run}/events").text):
        assert secret not in text
    other = client.post(f"{API}/runs", json=body).json()["id"]
    refused(client.get(f"{API}/runs/{other}/webhook"), 404)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://a..b/", "1 to 63 letters"),
        (f"http://{'a' * 64}.com/", "1 to 63 letters"),
        ("https://x.com/#part", "without a #fragment"),
        ("https://x.com/a|b", "as %XX"),
        ("https://x.com:65536/", "this is not a URL"),
        ("https://x.com:65535/", ""),
        ("https://CI_2.Example.com?x=1", ""),
    ],
)
def test_the_address_of_a_webhook_is_refused_with_the_reason(client: TestClient, url: str, reason: str) -> None:
    body = {
        "problem": {"name": "softmax", "source": PROBLEM},
        "budget": {"candidates": 1},
        "webhook": {"url": url, "secret": "x" * 16},
    }
    response = client.post(f"{API}/runs", json=body)
    assert response.status_code == (422 if reason else 202)
    assert reason in response.text


@pytest.mark.parametrize(
    "hook",
    [
        {"url": "http://127.0.0.1:6379/"},
        {"url": "http://169.254.169.254/latest/meta-data"},
        {"url": "http://localhost/"},
        {"url": "file:///etc/passwd"},
        {"url": "gopher://x/"},
        {"url": "https://user:word@x.example/"},
        {"secret": "short"},
        {"secret": "with\nnew lines in the secret"},
        {"extra": 1},
    ],
)
def test_a_webhook_that_may_not_be_is_refused(client: TestClient, hook: dict[str, object]) -> None:
    body = {"problem": {"name": "softmax", "source": PROBLEM}, "budget": {"candidates": 1}, "webhook": {**HOOK, **hook}}
    refused(client.post(f"{API}/runs", json=body), 422)
    assert client.get(f"{API}/runs").json()["items"] == []
