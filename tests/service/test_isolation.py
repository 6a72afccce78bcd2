"""Tenants do not see one another: every route of the application is asked by a stranger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import Engine, select
from starlette.testclient import TestClient

from db.engine import write_session
from db.tables.core import CandidateRow, RunRow
from db.transitions.problems import publish_problem
from db.transitions.runs import create_run
from evaluator.types import DeviceKind
from evolution.types import Budget, RunConfig
from runtime.settings import Settings
from service.app import create_app
from tests.db.world import World
from tests.service.conftest import BASE_URL, Rows, put_rows, rows_of
from tests.service.tenants import KERNELS, SECRET, SOURCE, Address, Estate, Tenant, addresses, make_estate, make_tenant
from tests.service.test_refusals import refused

API = "/api/v1"
ORIGIN = {"origin": BASE_URL}
FOR_THE_OPERATOR = {
    ("POST", f"{API}/projects"),
    ("PATCH", f"{API}/projects/{{id}}"),
    ("POST", f"{API}/bundles"),
    ("POST", f"{API}/bundles/{{id}}/answers"),
    ("POST", f"{API}/bundles/{{id}}/release"),
    ("GET", "/metrics"),
}
FOR_ALL = {"/healthz", "/readyz", "/login", "/logout"}
BODIES: dict[str, Any] = {
    "create_problem": {"name": "mine", "source": "def get_inputs():\n    return []\n"},
    "create_key": {"name": "mine"},
    "set_visibility": {"public": True},
}
"""Bodies that a stranger posts to routes that name nothing of the estate."""


@pytest.fixture(scope="module")
def guarded_app(settings: Settings, database: Engine) -> FastAPI:
    update = {"allowed_hosts": ("127.0.0.1", "kernels.example"), "requests_per_s": 0.0}
    return create_app(settings.model_copy(update=update), engine=database, send_nudges=lambda queues: None)


@pytest.fixture
def http(guarded_app: FastAPI, engine: Engine) -> Iterator[TestClient]:
    with TestClient(guarded_app, base_url=BASE_URL) as client:
        yield client


@pytest.fixture(scope="module")
def kept(settings: Settings) -> list[tuple[Estate, Rows]]:
    """Keep the rows of the first estate in this database for later tests: a Run takes a second."""
    return []


@pytest.fixture
def estate(engine: Engine, http: TestClient, kept: list[tuple[Estate, Rows]]) -> Estate:
    if kept:
        put_rows(engine, kept[0][1])
        return kept[0][0]
    owner = make_tenant(engine, f"{SECRET}-team")
    made = make_estate(engine, owner)
    key = http.post(f"{API}/keys", headers=owner.headers, json={"name": f"{SECRET} key"}).json()
    made.ids |= {"key": key["id"], "project": owner.id}
    made.everything.add(key["id"])
    kept.append((made, rows_of(engine)))
    return made


@pytest.fixture
def stranger(engine: Engine) -> Tenant:
    return make_tenant(engine, "others")


def body_of(address: Address, ids: dict[str, str], app: FastAPI) -> dict[str, Any] | None:
    """A body that names something of the estate wherever the route takes an id."""
    if address.operation is None or "requestBody" not in address.operation:
        return None
    if address.operation["operationId"] in BODIES:
        return dict(BODIES[address.operation["operationId"]])
    schema = address.operation["requestBody"]["content"]["application/json"]["schema"]
    body = _example(schema, app.openapi()["components"]["schemas"], ids)
    assert isinstance(body, dict)
    return body


def _example(schema: dict[str, Any], components: dict[str, Any], ids: dict[str, str], name: str = "") -> Any:
    if "$ref" in schema:
        return _example(components[schema["$ref"].rpartition("/")[2]], components, ids, name)
    options = [schema[word][0] for word in ("anyOf", "oneOf", "allOf") if word in schema]
    if schema.get("type") == "object" or "properties" in schema:
        wanted = {*schema.get("required", ()), *(key for key in schema.get("properties", {}) if _names_an_id(key))}
        wanted |= {key for option in options for key in option.get("required", ())}
        made = {key: _example(schema["properties"][key], components, ids, key) for key in wanted}
        return made or {"candidates": 1}
    if options:
        return _example(options[0], components, ids, name)
    if schema.get("type") == "array":
        return [_example(schema["items"], components, ids, name)]
    if "enum" in schema:
        return schema["enum"][0]
    if name == "source":
        return KERNELS[0]
    if name in ("parents", "seed_candidates"):
        return ids["candidate"]
    noun = next((noun for noun in ids if noun in name), None)
    if noun is not None and schema.get("type") == "string" and _names_an_id(name):
        return ids[noun]
    return {"integer": 1, "number": 1.0, "boolean": True}.get(schema.get("type", ""), "text")


def _names_an_id(name: str) -> bool:
    return name.endswith("_id") or name in ("seed_candidates", "parents")


def ask(http: TestClient, address: Address, estate: Estate, headers: dict[str, str]) -> Any:
    accept = "text/html" if address.operation is None else "application/json"
    return http.request(
        address.method,
        address.filled(estate.ids),
        params=address.queries(estate.ids),
        json=body_of(address, estate.ids, http.app),  # type: ignore[arg-type]
        data=address.form(estate.ids),
        headers={"accept": accept, **ORIGIN, **headers},
        follow_redirects=False,
    )


def assert_nothing_told(response: Any, estate: Estate, *, but: frozenset[str] = frozenset()) -> None:
    text = response.text + str(response.headers)
    told = [word for word in (SECRET, *estate.everything - but) if word in text.replace(str(response.url), "")]
    assert not told, f"{response.request.method} {response.url} told a stranger {told}: {text[:500]}"


def test_the_owner_sees_what_the_walk_asks_for(http: TestClient, estate: Estate, guarded_app: FastAPI) -> None:
    """Else the walk would prove nothing."""
    seen = 0
    for address in addresses(guarded_app):
        if address.method == "GET" and address.parts:
            response = ask(http, address, estate, estate.tenant.headers)
            assert response.status_code == 200, f"{address}: {response.text}"
            seen += SECRET in response.text or any(id in response.text for id in estate.everything)
    assert seen >= 15


@pytest.mark.parametrize("by_session", [False, True], ids=["key", "session"])
def test_a_stranger_finds_nothing_on_any_route(
    http: TestClient, estate: Estate, stranger: Tenant, guarded_app: FastAPI, by_session: bool
) -> None:
    headers = stranger.headers
    if by_session:
        http.post("/login", data={"key": stranger.key}, headers=ORIGIN, follow_redirects=False)
        page = http.get("/", headers={"accept": "text/html"}).text
        headers = {"x-csrf-token": page.split('name="csrf-token" content="')[1].split('"')[0]}
    walked = 0
    for address in addresses(guarded_app):
        if address.path in FOR_ALL:
            continue
        response = ask(http, address, estate, headers)
        assert_nothing_told(response, estate)
        if (address.method, address.path) in FOR_THE_OPERATOR:
            refused(response, 403, "scope-missing")
        elif address.parts or any(id in str(body_of(address, estate.ids, guarded_app)) for id in estate.everything):
            assert response.status_code == 404, f"{address.method} {address.path}: {response.text}"
        else:
            assert response.status_code < 500
            assert response.status_code != 403
        walked += 1
    print(f"a stranger asked {walked} addresses and was told nothing")
    assert walked > 30
    for noun, path in {"run": "runs", "problem": "problems"}.items():
        listed = http.get(f"{API}/{path}", headers=headers).json()["items"]
        assert estate.ids[noun] not in str(listed)


def test_nothing_was_changed_by_asking(
    http: TestClient, estate: Estate, stranger: Tenant, guarded_app: FastAPI, world: World
) -> None:
    def state() -> dict[str, Any]:
        found = {
            key: http.get(f"{API}/runs/{estate.ids[key]}", headers=estate.tenant.headers).json()
            for key in ("run", "waiting")
        }
        return {key: {**run, "spend": {**run["spend"], "wall_s": 0.0}} for key, run in found.items()}

    before = state()
    for address in addresses(guarded_app):
        if address.method != "GET" and address.path not in FOR_ALL:
            ask(http, address, estate, stranger.headers)
    assert state() == before
    assert not http.get(f"{API}/problems/{estate.ids['problem']}", headers=estate.tenant.headers).json()["public"]
    assert http.get(f"{API}/keys/{estate.ids['key']}", headers=estate.tenant.headers).json()["revoked_at"] is None


def test_the_same_text_of_a_stranger_is_a_problem_of_its_own(
    http: TestClient, estate: Estate, stranger: Tenant, world: World
) -> None:
    """No duplicate answer, no warm start, no cached baseline and no Idempotency-Key crosses over."""
    key = {"idempotency-key": "the-same"}
    body = {"problem": {"name": f"{SECRET} softmax", "source": SOURCE}, "budget": {"candidates": 3}}
    mine = http.post(f"{API}/runs", json=body, headers={**estate.tenant.headers, **key}).json()
    theirs = http.post(f"{API}/runs", json=body, headers={**stranger.headers, **key})
    assert "idempotent-replay" not in theirs.headers
    run = theirs.json()
    assert run["id"] != mine["id"]
    assert run["problem_id"] != estate.ids["problem"]
    assert run["status"] == "queued"  # admitted anew: no trace of the other's Admission
    world.drain()
    events = http.get(f"{API}/runs/{run['id']}/events", headers=stranger.headers, params={"limit": 200}).json()
    assert not [event for event in events["items"] if event["data"].get("cached")]
    warm = http.get(f"{API}/runs/{run['id']}", headers=stranger.headers).json()
    assert estate.ids["champion"] not in str(warm) + str(events)
    for proposal in http.get(f"{API}/runs/{run['id']}/proposals", headers=stranger.headers).json()["items"]:
        whole = http.get(f"{API}/proposals/{proposal['id']}", headers=stranger.headers).text
        assert not [id for id in estate.everything if id in whole]


def test_a_published_problem_shows_itself_and_its_champions_and_nothing_else(
    http: TestClient, engine: Engine, estate: Estate, stranger: Tenant, guarded_app: FastAPI
) -> None:
    path = f"{API}/problems/{estate.ids['problem']}/visibility"
    refused(http.put(path, json={"public": True}, headers=stranger.headers), 404)
    assert http.put(path, json={"public": True}, headers=estate.tenant.headers).json()["public"] is True
    refused(http.put(path, json={"public": False}, headers=stranger.headers), 404)
    shown = {"problem": estate.ids["problem"], "candidate": estate.ids["champion"]}
    ids = {**estate.ids, **shown, "champion": estate.ids["champion"]}
    open_to_all = Estate(estate.tenant, ids, estate.everything)
    seen = set()
    for address in addresses(guarded_app):
        if address.method != "GET" or not address.parts or address.path in FOR_ALL:
            continue
        response = ask(http, address, open_to_all, stranger.headers)
        assert f"{SECRET} prompt" not in response.text
        assert f"{SECRET} reply" not in response.text
        others = estate.everything - {*shown.values(), estate.ids["run"]}
        # The Champion's row names its Run, its parents and its Evaluations; none of the others can be read.
        if "/candidates/" not in address.path:
            assert not [id for id in others if id in response.text], address
        if response.status_code == 200:
            seen.add(address.path)
        else:
            assert response.status_code == 404, address
            assert SECRET not in response.text
    assert {f"{API}/problems/{{id}}", f"{API}/candidates/{{id}}", f"{API}/candidates/{{id}}/source"} <= seen
    assert not [path for path in seen if "/runs/" in path or "/proposals/" in path or "/keys/" in path]
    board = http.get(f"{API}/leaderboard", headers=stranger.headers).json()["items"]
    assert [row["candidate_id"] for row in board] == [estate.ids["champion"]]
    listed = http.get(f"{API}/problems", headers=stranger.headers)
    assert listed.json()["items"] == []
    public = http.get(f"{API}/problems", headers=stranger.headers, params={"public": True}).json()["items"]
    assert [item["id"] for item in public] == [estate.ids["problem"]]
    refused(http.get(f"{API}/candidates/{estate.ids['candidate']}", headers=stranger.headers), 404)


def test_the_lineage_of_a_public_champion_ends_at_private_candidates(
    http: TestClient, engine: Engine, estate: Estate, stranger: Tenant
) -> None:
    champion = estate.ids["champion"]
    with write_session(engine) as s:
        publish_problem(s, estate.ids["problem"], estate.tenant.id, public=True)
        older, row, younger = s.scalars(
            select(CandidateRow).where(CandidateRow.run_id == estate.ids["run"]).order_by(CandidateRow.number).limit(3)
        )
        assert row.id == champion
        row.parents, younger.parents = [older.id], [champion]
        family = [older.id], [younger.id]

    def told(who: Tenant) -> tuple[list[str], list[str]]:
        found = http.get(f"{API}/candidates/{champion}/lineage", headers=who.headers).json()
        ancestors, descendants = ([one["id"] for one in found[name]] for name in ("ancestors", "descendants"))
        return ancestors, descendants

    assert told(estate.tenant) == family
    assert told(stranger) == ([], [])
    with write_session(engine) as s:
        run, _ = create_run(
            s, stranger.id, estate.ids["problem"], DeviceKind.CPU, Budget(candidates=1), RunConfig(proposers=("x",))
        )
        s.get_one(RunRow, run.id).champion_id = champion
    page = http.get(f"/runs/{run.id}/lineage", headers={**stranger.headers, "accept": "text/html"}).text
    assert champion in page
    assert family[0][0] not in page


def test_a_stranger_runs_a_public_problem_and_it_stays_public(
    http: TestClient, engine: Engine, estate: Estate, stranger: Tenant
) -> None:
    with write_session(engine) as s:
        publish_problem(s, estate.ids["problem"], estate.tenant.id, public=True)
    body = {"problem_id": estate.ids["problem"], "budget": {"candidates": 3}}
    run = http.post(f"{API}/runs", json=body, headers=stranger.headers)
    assert run.status_code == 202
    assert run.json()["project_id"] == stranger.id
    refused(http.get(f"{API}/runs/{run.json()['id']}", headers=estate.tenant.headers), 404)
    path = f"{API}/problems/{estate.ids['problem']}/visibility"
    refused(http.put(path, json={"public": False}, headers=estate.tenant.headers), 409)
