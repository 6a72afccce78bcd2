"""Projects over HTTP: made, limited, closed; and what a quota answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from sqlalchemy import Engine
from starlette.testclient import TestClient

from db.engine import write_session
from db.transitions.access.projects import charge
from runtime.settings import Settings
from service.app import create_app
from tests.service.conftest import BASE_URL, PROBLEM
from tests.service.tenants import Tenant, make_tenant
from tests.service.test_refusals import refused

API = "/api/v1"
RUN = {"problem": {"name": "softmax", "source": PROBLEM}, "budget": {"candidates": 2}}


@pytest.fixture(scope="module")
def guarded_app(settings: Settings, database: Engine) -> FastAPI:
    named = settings.model_copy(update={"api_key": "correct-horse-battery"})
    return create_app(named, engine=database, send_nudges=lambda queues: None)


@pytest.fixture
def http(guarded_app: FastAPI, engine: Engine) -> Iterator[TestClient]:
    with TestClient(guarded_app, base_url=BASE_URL) as client:
        yield client


@pytest.fixture
def tenant(engine: Engine) -> Tenant:
    return make_tenant(engine, "tenant")


OPERATOR = {"authorization": "Bearer correct-horse-battery"}


def limit(http: TestClient, tenant: Tenant, **quota: float) -> None:
    answer = http.patch(f"{API}/projects/{tenant.id}", json={"quota": quota}, headers=OPERATOR)
    assert answer.status_code == 200, answer.text


def test_a_project_is_made_changed_and_audited(http: TestClient) -> None:
    body = {"name": "attention-team", "weight": 2.0, "quota": {"live_runs": 3, "usd_per_month": 10.5}}
    made = http.post(f"{API}/projects", json=body, headers=OPERATOR)
    assert made.status_code == 201, made.text
    project = made.json()
    assert project["quota"] == {
        "live_runs": 3, "runs_per_day": None, "device_s_per_month": None, "usd_per_month": 10.5
    }  # fmt: skip
    assert http.get(made.headers["location"], headers=OPERATOR).json() == project
    refused(http.post(f"{API}/projects", json=body, headers=OPERATOR), 409, "conflict")
    for name in ("Upper", "a b", "", "-a", "x" * 64, "default"):
        response = http.post(f"{API}/projects", json={"name": name}, headers=OPERATOR)
        assert response.status_code in (409, 422), name
    changed = http.patch(made.headers["location"], json={"name": "flash", "quota": {}}, headers=OPERATOR).json()
    assert (changed["name"], changed["weight"], set(changed["quota"].values())) == ("flash", 2.0, {None})
    log = http.get(f"{API}/audit", params={"project_id": project["id"]}, headers=OPERATOR).json()["items"]
    assert log[0]["action"] == "change_project"
    assert log[0]["detail"]["name"] == "flash"
    names = [item["name"] for item in http.get(f"{API}/projects", headers=OPERATOR).json()["items"]]
    assert set(names) == {"default", "flash"}
    refused(http.patch(f"{API}/projects/proj_none", json={}, headers=OPERATOR), 404)


def test_a_tenant_sees_its_own_project_and_its_use(http: TestClient, tenant: Tenant) -> None:
    http.post(f"{API}/runs", json=RUN, headers=tenant.headers)
    own = http.get(f"{API}/projects/{tenant.id}", headers=tenant.headers).json()
    assert (own["usage"]["live_runs"], own["usage"]["runs_today"], own["usage"]["usd"]) == (1, 1, 0.0)
    assert [item["id"] for item in http.get(f"{API}/projects", headers=tenant.headers).json()["items"]] == [tenant.id]
    refused(http.get(f"{API}/projects/default", headers=tenant.headers), 404)


@pytest.mark.parametrize(
    ("quota", "again"), [({"live_runs": 1}, False), ({"runs_per_day": 1}, True), ({"runs_per_day": 0}, True)]
)
def test_one_run_too_many_is_refused_and_nothing_is_stored(
    http: TestClient, tenant: Tenant, quota: dict[str, int], again: bool
) -> None:
    [(name, allowed)] = quota.items()
    limit(http, tenant, **quota)
    for _ in range(allowed):
        assert http.post(f"{API}/runs", json=RUN, headers=tenant.headers).status_code == 202
    other = {"problem": {"name": "other", "source": PROBLEM + "# other\n"}, "budget": {"candidates": 2}}
    response = http.post(f"{API}/runs", json=other, headers={**tenant.headers, "idempotency-key": "k"})
    document = refused(response, 429, "quota-exceeded")
    assert (document["quota"], document["used"], document["allowed"]) == (name, allowed, allowed)
    assert ("retry-after" in response.headers) is again
    assert "operator can raise it" in document["detail"]
    assert len(http.get(f"{API}/problems", headers=tenant.headers).json()["items"]) == allowed
    limit(http, tenant)
    retried = http.post(f"{API}/runs", json=other, headers={**tenant.headers, "idempotency-key": "k"})
    assert retried.status_code == 202


@pytest.mark.parametrize(
    ("quota", "spent", "words"),
    [
        ({"usd_per_month": 5.0}, {"usd": 5.25}, "5.25 of 5 US dollars"),
        ({"device_s_per_month": 60.0}, {"device_s": 61.0}, "61 of 60 device seconds"),
    ],
)
def test_what_is_spent_this_month_stops_new_and_paused_runs(
    http: TestClient, engine: Engine, tenant: Tenant, quota: dict[str, float], spent: dict[str, float], words: str
) -> None:
    run = http.post(f"{API}/runs", json=RUN, headers=tenant.headers).json()
    http.post(f"{API}/runs/{run['id']}/pause", headers=tenant.headers)
    limit(http, tenant, **quota)
    with write_session(engine) as s:
        charge(s, tenant.id, **spent)
    for path, body in ((f"{API}/runs", RUN), (f"{API}/runs/{run['id']}/resume", None)):
        response = http.post(path, json=body, headers=tenant.headers)
        assert words in refused(response, 429, "quota-exceeded")["detail"]
        assert int(response.headers["retry-after"]) > 0


def test_a_closed_project_lets_nobody_in_until_it_is_opened(http: TestClient, tenant: Tenant) -> None:
    address = f"{API}/projects/{tenant.id}"
    assert http.patch(address, json={"archived": True}, headers=OPERATOR).json()["archived_at"]
    refused(http.get(f"{API}/me", headers=tenant.headers), 401)
    assert http.patch(address, json={"archived": False}, headers=OPERATOR).json()["archived_at"] is None
    assert http.get(f"{API}/me", headers=tenant.headers).status_code == 200
