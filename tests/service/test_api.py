"""The API: what each route does when it is used as meant."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from db.queues import JobKind
from tests.db.world import World
from tests.service.conftest import BASE_URL, PROBLEM, SOURCES
from tests.support import scripts
from tests.support.stacks import Stack

pytestmark = pytest.mark.both_stacks(soak=True)

API = "/api/v1"


def post_problem(client: TestClient, **extra: object) -> dict[str, object]:
    response = client.post(f"{API}/problems", json={"name": "softmax", "source": PROBLEM, **extra})
    assert response.status_code == 201, response.text
    value: dict[str, object] = response.json()
    return value


def test_a_problem_is_stored_once_and_read_back(client: TestClient) -> None:
    first = post_problem(client)
    assert post_problem(client)["id"] == first["id"]
    assert first["description"] == "Softmax over rows."
    response = client.get(f"{API}/problems/{first['id']}")
    assert response.json() == first
    assert first["source"] == PROBLEM
    workloads = first["workloads"]
    assert isinstance(workloads, list)
    assert [w["name"] for w in workloads] == ["small", "hidden"]
    listed = client.get(f"{API}/problems").json()
    assert [item["id"] for item in listed["items"]] == [first["id"]]
    assert listed["items"][0]["source"] is None
    assert listed["next_cursor"] is None


def test_the_location_of_a_problem_leads_to_it(client: TestClient) -> None:
    response = client.post(f"{API}/problems", json={"name": "softmax", "source": PROBLEM, "domain": "general"})
    assert client.get(response.headers["location"]).json()["domain"] == "general"


def test_sizes_add_workloads(client: TestClient) -> None:
    text = "import torch\nrows = 4\ndef reference(x):\n    return x\ndef get_inputs():\n    return [torch.ones(rows)]\n"
    made = client.post(f"{API}/problems", json={"name": "p", "source": text, "sizes": [{"rows": 64}]}).json()
    assert [(w["name"], w["sizes"]) for w in made["workloads"]] == [("default", {}), ("rows=64", {"rows": 64})]
    refused = client.post(f"{API}/problems", json={"name": "p", "source": text, "sizes": [{"row": 64}]})
    assert refused.status_code == 422
    assert "'row' is no size of this file: its sizes are rows" in refused.json()["detail"]
    for wrong in ({"rows": None}, {"a b": 3}, {}, {"rows": [3]}):
        body = {"name": "p", "source": text, "sizes": [wrong]}
        assert client.post(f"{API}/problems", json=body).status_code == 422, wrong


def test_immutable_things_are_not_sent_twice(client: TestClient, finished: str) -> None:
    run = client.get(f"{API}/runs/{finished}").json()
    for path in (f"{API}/problems/{run['problem_id']}", f"{API}/candidates/{run['champion_id']}/source"):
        first = client.get(path)
        assert "immutable" in first.headers["cache-control"]
        again = client.get(path, headers={"if-none-match": f'"other", W/{first.headers["etag"]}'})
        assert again.status_code == 304
        assert again.content == b""
        assert client.get(path, headers={"if-none-match": '"other"'}).status_code == 200


@pytest.mark.parametrize("inline", [True, False])
def test_a_run_starts_and_nudges_a_worker_after_the_commit(
    client: TestClient, nudges: list[str], world: World, inline: bool
) -> None:
    problem = (
        {"problem": {"name": "softmax", "source": PROBLEM}} if inline else {"problem_id": post_problem(client)["id"]}
    )
    body = {**problem, "device": "cpu", "budget": {"candidates": 5}, "config": {"seed": 7}}
    response = client.post(f"{API}/runs", json=body)
    assert response.status_code == 202, response.text
    run = response.json()
    assert client.get(response.headers["location"]).json()["id"] == run["id"]
    assert run["status"] in ("queued", "admitting")
    assert run["budget"]["candidates"] == 5
    assert run["config"]["seed"] == 7
    assert run["config"]["proposers"] == ["synthesiser"]
    assert nudges
    world.drain()
    assert client.get(f"{API}/runs/{run['id']}").json()["status"] == "finished"


@pytest.mark.both_stacks
def test_a_finished_run_can_be_read_in_every_part(client: TestClient, finished: str) -> None:
    run = client.get(f"{API}/runs/{finished}").json()
    candidates = client.get(f"{API}/runs/{finished}/candidates").json()["items"]
    assert [c["number"] for c in candidates] == sorted((c["number"] for c in candidates), reverse=True)
    fastest = client.get(f"{API}/runs/{finished}/candidates", params={"order": "fastest", "limit": 1}).json()
    assert fastest["items"][0]["id"] == run["champion_id"]
    champion = client.get(f"{API}/candidates/{run['champion_id']}").json()
    assert champion["verdict"] == "PASSED"
    assert champion["confirmed"]
    source = client.get(f"{API}/candidates/{run['champion_id']}/source")
    assert source.text == SOURCES[2]
    assert source.headers["content-type"].startswith("text/x-python")
    evaluations = client.get(f"{API}/candidates/{run['champion_id']}/evaluations").json()["items"]
    assert [e["stage"] for e in evaluations][-1] == "confirm"
    assert evaluations[-1]["result"]["measurements"][0]["median_us"] > 0
    newest = client.get(f"{API}/evaluations/{evaluations[-1]['id']}").json()
    assert newest == evaluations[-1]
    samples = client.get(f"{API}/evaluations/{newest['id']}/samples").json()["items"]
    assert samples[0] == {"workload": "small", "series": "", "samples_us": [10.0, 10.5, 11.25]}
    assert {item["series"] for item in samples} == {"", "eager/calls", "compile/calls"}
    of_run = client.get(f"{API}/runs/{finished}/evaluations", params={"verdict": "PASSED", "limit": 2}).json()
    assert of_run["items"][0]["result"] is None
    rest = client.get(
        f"{API}/runs/{finished}/evaluations", params={"verdict": "PASSED", "cursor": of_run["next_cursor"]}
    ).json()
    assert all(item["verdict"] == "PASSED" and item["id"] < of_run["items"][1]["id"] for item in rest["items"])
    proposals = client.get(f"{API}/runs/{finished}/proposals").json()["items"]
    assert {"prompt", "reply"}.isdisjoint(proposals[0])
    whole = client.get(f"{API}/proposals/{proposals[0]['id']}").json()
    assert {"prompt", "reply", "input_tokens"} <= set(whole)
    board = client.get(f"{API}/leaderboard").json()["items"]
    assert [row["candidate_id"] for row in board] == [run["champion_id"]]
    assert client.get(f"{API}/devices").json()["items"] == []


@pytest.mark.both_stacks
def test_lists_go_on_where_they_stopped(client: TestClient, finished: str) -> None:
    for noun in ("candidates", "proposals"):
        path = f"{API}/runs/{finished}/{noun}"
        whole = [item["id"] for item in client.get(path).json()["items"]]
        found: list[str] = []
        cursor = None
        while True:
            page = client.get(path, params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
            found += [item["id"] for item in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert found == whole
        assert len(found) > 2


def test_events_are_pages_without_gaps(client: TestClient, finished: str) -> None:
    seqs: list[int] = []
    after: str | None = "0"
    while after is not None:
        page = client.get(f"{API}/runs/{finished}/events", params={"after": after, "limit": 3}).json()
        seqs += [item["seq"] for item in page["items"]]
        after = page["next_cursor"]
    assert seqs == list(range(1, len(seqs) + 1))
    assert client.get(f"{API}/runs/{finished}").json()["last_seq"] == len(seqs)


def test_runs_are_paused_resumed_and_cancelled(client: TestClient, world: World, nudges: list[str]) -> None:
    run = world.start()
    world.take(JobKind.PROPOSE)
    path = f"{API}/runs/{run.id}"
    assert client.post(f"{path}/pause").json()["status"] == "paused"
    nudges.clear()
    assert client.post(f"{path}/resume").json()["status"] != "paused"
    assert nudges
    ended = client.post(f"{path}/cancel").json()
    assert (ended["status"], ended["end_reason"]) == ("cancelled", "cancelled")
    assert client.post(f"{path}/cancel").json() == ended
    refused = client.post(f"{path}/pause")
    assert refused.status_code == 409
    assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.both_stacks
def test_a_repeated_post_with_a_key_is_answered_again_and_not_done_again(client: TestClient) -> None:
    body = {"problem": {"name": "softmax", "source": PROBLEM}, "budget": {"candidates": 2}}
    key = {"idempotency-key": "one-two-three"}
    first = client.post(f"{API}/runs", json=body, headers=key)
    again = client.post(f"{API}/runs", json=body, headers=key)
    assert again.status_code == 202
    assert again.json() == first.json()
    assert again.headers["location"] == first.headers["location"]
    assert again.headers["idempotent-replay"] == "true"
    assert len(client.get(f"{API}/runs").json()["items"]) == 1
    other = client.post(f"{API}/runs", json={**body, "budget": {"candidates": 3}}, headers=key)
    assert other.status_code == 422
    assert other.json()["type"].endswith("idempotency-key-reused")
    assert (
        client.post(f"{API}/runs", json=body, headers={"idempotency-key": "fresh"}).json()["id"] != first.json()["id"]
    )


def test_a_refused_post_leaves_no_trace_under_its_key(client: TestClient) -> None:
    key = {"idempotency-key": "k"}
    bad = {"problem_id": "prob_00000000000000000000000000", "budget": {"candidates": 2}}
    assert client.post(f"{API}/runs", json=bad, headers=key).status_code == 404
    good = {"problem": {"name": "softmax", "source": PROBLEM}, "budget": {"candidates": 2}}
    assert client.post(f"{API}/runs", json=good, headers=key).status_code == 202


def test_the_download_is_a_file_that_passes_its_own_check(client: TestClient, finished: str, tmp_path: Path) -> None:
    response = client.get(f"{API}/runs/{finished}/download")
    assert response.headers["content-disposition"] == 'attachment; filename="softmax_cpu.py"'
    assert response.headers["x-content-type-options"] == "nosniff"
    digest = base64.b64encode(hashlib.sha256(response.content).digest()).decode()
    assert response.headers["repr-digest"] == f"sha-256=:{digest}:"
    problem = client.get(f"{API}/runs/{finished}").json()["problem_id"]
    for text in (response.text, client.get(f"{API}/runs/{finished}/download", params={"held_out": False}).text):
        assert client.get(f"{API}/problems/{problem}").json()["hash"] in text
    same = client.get(f"{API}/problems/{problem}/download", params={"device": "cpu"})
    assert same.content == response.content
    assert "2.40 x as fast as the fastest PyTorch baseline, confirmed" in response.text
    path = tmp_path / "best.py"
    path.write_bytes(response.content)
    done = scripts.run_file(path, "--check", "--no-time", "--seeds", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hidden" in done.stdout


def test_a_kernel_comes_in_other_projects_forms_where_they_can_carry_it(client: TestClient, finished: str) -> None:
    refused = client.get(f"{API}/runs/{finished}/download", params={"format": "gpumode"})  # C++ for a CPU
    assert refused.status_code == 409
    assert refused.json()["type"].endswith("format-unsupported")
    assert "--device cuda" in refused.json()["detail"]
    response = client.get(f"{API}/runs/{finished}/download", params={"format": "flashinfer"})
    assert response.headers["content-type"] == "application/zip"
    page = client.get(f"/runs/{finished}").text
    for name in ("kernelbench", "gpumode", "flashinfer", "sol"):
        assert f"/runs/{finished}/download?format={name}" in page


def test_there_is_no_download_before_anything_passed(client: TestClient, world: World) -> None:
    run = world.start()
    for path in (f"{API}/runs/{run.id}/download", f"{API}/problems/{run.problem_id}/download?device=cpu"):
        response = client.get(path)
        assert response.status_code == 404
        assert response.json()["type"].endswith("no-kernel")
    path = f"{API}/runs/{run.id}/download"
    assert "has passed yet: wait for one" in client.get(path).json()["detail"]
    assert client.post(f"{API}/runs/{run.id}/cancel").status_code == 200
    assert "it has ended: its message says why" in client.get(path).json()["detail"]


def test_an_unconfirmed_kernel_is_downloadable_as_what_it_is(client: TestClient, world: World) -> None:
    world.promote = lambda work, speedup: False
    run = world.start()
    world.drain()
    assert world.run(run.id).champion_id is None
    text = client.get(f"{API}/runs/{run.id}/download").text
    assert "NOT confirmed" in text


def test_health_readiness_and_metrics(client: TestClient, stack: Stack) -> None:
    assert client.get("/healthz").json() == {"status": "ok", "checks": {}}
    ready = client.get("/readyz")
    assert ready.status_code == (200 if stack.has_broker else 503)
    assert ready.json()["checks"]["database"] == "ok"
    client.get(f"{API}/problems/prob_00000000000000000000000000")
    text = client.get("/metrics").text
    assert 'operation="get_problem",status="404"' in text
    assert "warpwright_event_followers 0.0" in text


def test_a_key_is_asked_for_where_one_is_set(settings: object, app: FastAPI) -> None:
    from runtime.settings import Settings
    from service.app import create_app

    assert isinstance(settings, Settings)
    guarded = create_app(settings.model_copy(update={"api_key": "correct-horse-battery"}))
    with TestClient(guarded, base_url=BASE_URL) as client:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic correct-horse-battery"}):
            for path in (f"{API}/runs", "/", "/metrics"):
                response = client.get(path, headers=headers)
                assert response.status_code == 401
                assert response.headers["www-authenticate"] == "Bearer"
                assert response.json()["type"].endswith("unauthorized")
        assert client.get(f"{API}/runs", headers={"authorization": "Bearer correct-horse-battery"}).status_code == 200
        assert client.get("/healthz").status_code == 200
