"""Keys and browser sessions: what lets somebody in, and what ends that at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from fastapi import FastAPI
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from db.engine import read_session, write_session
from db.repositories.access import audit, keys
from db.tables.core import Project
from db.transitions.access.keys import create_key, open_session, revoke_key
from runtime.settings import Settings
from service.app import create_app
from service.http.limits import Limits, TokenBuckets
from tests.db.world import World
from tests.service.conftest import BASE_URL, PROBLEM
from tests.service.test_refusals import refused

API = "/api/v1"
BOOTSTRAP = "correct-horse-battery"
SAME_ORIGIN = {"origin": BASE_URL}


@pytest.fixture(scope="module")
def guarded_app(settings: Settings, database: Engine) -> FastAPI:
    named = settings.model_copy(update={"api_key": BOOTSTRAP})
    return create_app(named, engine=database, send_nudges=lambda queues: None)


@dataclass
class Gate:
    """A service that asks for keys, and a hand on its database."""

    http: TestClient
    engine: Engine
    limits: Limits

    def forget(self) -> None:
        """Fill every bucket, as time would."""
        for buckets in (self.limits.guesses, self.limits.keys, self.limits.addresses):
            buckets.forget()

    def make(self, scope: str = "submit", *, project: str = "default", lifetime: timedelta | None = None) -> str:
        with write_session(self.engine) as s:
            if s.get(Project, project) is None:
                s.add(Project(id=project, name=project, weight=1.0, created_at=datetime.now(UTC)))
                s.flush()
            return create_key(s, project, name="test", scope=scope, created_by="test", lifetime=lifetime)[1]

    def key_id(self, secret: str) -> str:
        with read_session(self.engine) as s:
            grant = keys.grant_of_key(s, secret)
        assert grant is not None
        return grant.credential

    def sign_in(self, secret: str, target: str = "/") -> str:
        """The CSRF token of a fresh session, whose cookie the client keeps."""
        answer = self.http.post(
            "/login", data={"key": secret, "next": target}, headers=SAME_ORIGIN, follow_redirects=False
        )
        assert answer.status_code == 303, answer.text
        page = self.http.get("/", headers={"accept": "text/html"}).text
        return page.split('name="csrf-token" content="')[1].split('"')[0]


@pytest.fixture
def gate(guarded_app: FastAPI, engine: Engine) -> Iterator[Gate]:
    with TestClient(guarded_app, base_url=BASE_URL) as client:
        made = Gate(client, engine, guarded_app.state.context.limits)
        made.forget()
        yield made


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_without_a_good_key_nothing_but_health_is_answered(gate: Gate) -> None:
    secret = gate.make()
    wrong = secret[:-1] + ("0" if secret[-1] != "0" else "1")
    for headers in ({}, bearer("wrong"), bearer(wrong), bearer(""), {"authorization": f"Basic {secret}"}):
        gate.forget()
        for path in (f"{API}/runs", "/", "/metrics", f"{API}/nothing", f"{API}/openapi.json"):
            document = refused(gate.http.get(path, headers=headers), 401, "unauthorized")
            assert secret not in str(document)
    assert gate.http.get("/healthz").status_code == 200
    gate.forget()
    for good in (secret, BOOTSTRAP):
        assert gate.http.get(f"{API}/runs", headers=bearer(good)).status_code == 200


def test_a_reader_at_a_page_is_sent_to_sign_in_and_comes_back(gate: Gate) -> None:
    html = {"accept": "text/html,*/*"}
    answer = gate.http.get("/runs?cursor=x", headers=html, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=/runs%3Fcursor%3Dx")
    form = gate.http.get(answer.headers["location"], headers=html)
    assert 'value="/runs?cursor=x"' in form.text
    assert "script-src 'self'" in form.headers["content-security-policy"]
    done = gate.http.post(
        "/login", data={"key": gate.make(), "next": "/runs?limit=1"}, headers=SAME_ORIGIN, follow_redirects=False
    )
    assert done.headers["location"] == "/runs?limit=1"


@pytest.mark.parametrize(
    "target",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/login", "/\n/x", "//[", ""],
)
def test_signing_in_leads_nowhere_else(gate: Gate, target: str) -> None:
    answer = gate.http.post(
        "/login", data={"key": gate.make(), "next": target}, headers=SAME_ORIGIN, follow_redirects=False
    )
    assert answer.headers["location"] == "/"


def test_a_session_is_a_cookie_that_scripts_and_other_sites_cannot_use(gate: Gate) -> None:
    secret = gate.make()
    plain = gate.http.post("/login", data={"key": secret}, headers=SAME_ORIGIN, follow_redirects=False)
    cookie = plain.headers["set-cookie"].lower()
    assert cookie.startswith("warpwright_session=")
    assert {"httponly", "samesite=lax", "path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "secure" not in cookie
    assert secret not in cookie
    behind_tls = {"origin": BASE_URL.replace("http:", "https:")}
    secure = gate.http.post("/login", data={"key": secret}, headers=behind_tls, follow_redirects=False)
    assert secure.headers["set-cookie"].startswith("__Host-warpwright=")
    assert "Secure" in secure.headers["set-cookie"]
    with read_session(gate.engine) as s:
        actions = [line.action for line in audit.list(s, "default", limit=2)]
    assert actions == ["sign_in", "sign_in"]


def test_a_session_reads_and_writes_with_its_token_and_from_its_own_pages_alone(gate: Gate, world: World) -> None:
    token = gate.sign_in(gate.make("submit"))
    run = world.start()
    path = f"{API}/runs/{run.id}/pause"
    assert gate.http.get(f"{API}/runs/{run.id}").status_code == 200
    refused(gate.http.post(path, headers=SAME_ORIGIN), 403, "csrf")
    refused(gate.http.post(path, headers={**SAME_ORIGIN, "x-csrf-token": token[:-1] + "x"}), 403, "csrf")
    evil = {"origin": "https://evil.example", "x-csrf-token": token}
    refused(gate.http.post(path, headers=evil), 403, "cross-origin")
    form = {"content-type": "application/x-www-form-urlencoded"}
    refused(gate.http.post(path, content="csrf_token=", headers={**SAME_ORIGIN, **form}), 403, "csrf")
    assert world.run(run.id).status != "paused"
    assert gate.http.post(path, headers={**SAME_ORIGIN, "x-csrf-token": token}).json()["status"] == "paused"
    assert gate.http.post("/logout", data={"csrf_token": token}, headers=SAME_ORIGIN).status_code == 200
    with write_session(gate.engine) as s:
        other = open_session(s, "default", key_id=None, scope="read", actor="x", lifetime=timedelta(hours=1))[1]
    gate.http.cookies.set("warpwright_session", other)
    refused(gate.http.get(f"{API}/runs"), 401)  # bound to no key at all: nobody may make such a session


@pytest.mark.parametrize("cookie", ["", "x", "0" * 52, "é", "sess_00000000000000000000000000", "a; b=c"])
def test_a_forged_cookie_lets_nobody_in(gate: Gate, cookie: str) -> None:
    refused(gate.http.get(f"{API}/runs", headers={"cookie": f"warpwright_session={cookie}".encode()}), 401)


def test_signing_out_ends_the_session_on_the_server(gate: Gate) -> None:
    token = gate.sign_in(gate.make())
    stolen = gate.http.cookies["warpwright_session"]
    refused(gate.http.post("/logout", headers=SAME_ORIGIN), 403, "csrf")
    answer = gate.http.post("/logout", data={"csrf_token": token}, headers=SAME_ORIGIN, follow_redirects=False)
    assert answer.headers["location"] == "/login"
    assert "warpwright_session" not in gate.http.cookies
    gate.http.cookies.set("warpwright_session", stolen)
    refused(gate.http.get(f"{API}/runs"), 401)


def test_revoking_a_key_ends_it_and_its_sessions_at_once(gate: Gate) -> None:
    secret = gate.make("manage")
    gate.sign_in(secret)
    mine = gate.key_id(secret)
    assert gate.http.get(f"{API}/me").json() == {"project_id": "default", "scope": "manage", "actor": mine}
    with write_session(gate.engine) as s:
        revoke_key(s, mine)
    refused(gate.http.get(f"{API}/me"), 401)
    refused(gate.http.get(f"{API}/me", headers=bearer(secret)), 401)
    with read_session(gate.engine) as s:
        assert keys.ended(s, [mine]) == {mine}


def test_an_expired_key_and_an_expired_session_are_refused(gate: Gate) -> None:
    refused(gate.http.get(f"{API}/me", headers=bearer(gate.make(lifetime=timedelta(seconds=-1)))), 401)
    secret = gate.make(lifetime=timedelta(hours=1))
    assert gate.http.get(f"{API}/me", headers=bearer(secret)).status_code == 200
    with write_session(gate.engine) as s:
        cookie = open_session(
            s, "default", key_id=gate.key_id(secret), scope="read", actor="x", lifetime=timedelta(seconds=-1)
        )[1]
    gate.http.cookies.set("warpwright_session", cookie)
    refused(gate.http.get(f"{API}/me"), 401)
    gate.http.cookies.clear()

    def later(s: Session) -> set[str]:
        s.info["now"] = lambda: datetime.now(UTC) + timedelta(hours=2)
        return keys.ended(s, [gate.key_id(secret)])

    with read_session(gate.engine) as s:
        assert later(s) == {gate.key_id(secret)}


def test_the_wrong_scope_is_403_and_says_which_is_needed(gate: Gate, world: World) -> None:
    run = world.start()
    reader, submitter = bearer(gate.make("read")), bearer(gate.make("submit"))
    body = {"problem": {"name": "softmax", "source": PROBLEM}, "budget": {"candidates": 2}}
    for headers, method, path, needed in (
        (reader, "post", f"{API}/runs", "submit"),
        (reader, "post", f"{API}/runs/{run.id}/cancel", "submit"),
        (submitter, "get", f"{API}/keys", "manage"),
        (submitter, "post", f"{API}/keys", "manage"),
        (submitter, "get", f"{API}/audit", "manage"),
        (submitter, "get", "/metrics", "operator"),
    ):
        extra = {"json": body} if method == "post" else {}
        document = refused(getattr(gate.http, method)(path, headers=headers, **extra), 403, "scope-missing")
        assert document["needed"] == needed
        assert needed in document["detail"]
        assert ("Ask the operator for one" in document["detail"]) is (needed == "operator")
    assert gate.http.get(f"{API}/runs/{run.id}", headers=reader).status_code == 200
    assert gate.http.post(f"{API}/runs", headers=submitter, json=body).status_code == 202


def test_keys_are_made_shown_once_listed_without_secrets_and_revoked(gate: Gate) -> None:
    manager = bearer(gate.make("manage"))
    made = gate.http.post(
        f"{API}/keys", headers=manager, json={"name": "nightly", "scope": "submit", "expires_in_days": 30}
    )
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    key = made.json()
    use = bearer(key["key"])
    assert gate.http.get(f"{API}/me", headers=use).json()["actor"] == key["id"]
    listed = gate.http.get(f"{API}/keys", headers=manager)
    assert key["key"] not in listed.text
    row = next(item for item in listed.json()["items"] if item["id"] == key["id"])
    assert key["key"].startswith(row["prefix"] + "_")
    assert row["last_used_at"] is not None
    assert gate.http.get(made.headers["location"], headers=manager).json() == row
    assert gate.http.delete(made.headers["location"], headers=manager).json()["revoked_at"]
    refused(gate.http.get(f"{API}/me", headers=use), 401)
    with read_session(gate.engine) as s:
        assert key["key"].partition("_")[2] not in str(audit.list(s, "default"))
        assert [line.action for line in audit.list(s, "default", limit=2)] == ["revoke_key", "create_key"]
    refused(gate.http.post(f"{API}/keys", headers=manager, json={"name": "x", "scope": "operator"}), 403)
    operator = gate.make("operator")
    refused(gate.http.delete(f"{API}/keys/{gate.key_id(operator)}", headers=manager), 403, "scope-missing")
    assert gate.http.get(f"{API}/me", headers=bearer(operator)).status_code == 200
    refused(gate.http.post(f"{API}/keys", headers=manager, json={"name": "x", "project_id": "default2"}), 404)
    refused(gate.http.post(f"{API}/keys", headers=bearer(BOOTSTRAP), json={"name": "x", "project_id": "no"}), 404)


def test_an_idempotency_key_keeps_no_secret(gate: Gate) -> None:
    manager = {**bearer(gate.make("manage")), "idempotency-key": "once"}
    made = [gate.http.post(f"{API}/keys", headers=manager, json={"name": "x"}).json() for _ in range(2)]
    assert made[0]["id"] != made[1]["id"]
    with gate.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM stored_answers").scalar_one() == 0


def test_what_is_written_is_audited_with_who_and_from_where(gate: Gate, world: World) -> None:
    run = world.start()
    secret = gate.make("submit")
    gate.http.post(f"{API}/runs/{run.id}/cancel", headers=bearer(secret))
    lines = gate.http.get(f"{API}/audit", headers=bearer(BOOTSTRAP), params={"limit": 1}).json()["items"]
    expected = {"action": "cancel_run", "subject": run.id, "actor": gate.key_id(secret), "address": "testclient"}
    assert expected.items() <= lines[0].items()


def test_guessing_is_slowed_down_and_a_key_of_ours_is_never_locked_out(gate: Gate) -> None:
    codes = [gate.http.get(f"{API}/me", headers=bearer(f"guess-{n}")).status_code for n in range(12)]
    assert codes == [401] * 10 + [429] * 2
    answer = gate.http.post("/login", data={"key": BOOTSTRAP}, headers=SAME_ORIGIN)
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) <= 10
    refused(gate.http.get(f"{API}/me", headers=bearer(BOOTSTRAP)), 429, "too-many-requests")
    assert gate.http.get(f"{API}/me", headers=bearer(gate.make())).status_code == 200


def test_a_key_has_a_rate_and_the_answer_says_when_to_come_back(settings: Settings, engine: Engine) -> None:
    slow = settings.model_copy(update={"api_key": BOOTSTRAP, "requests_per_s": 0.5, "request_burst": 3})
    with TestClient(create_app(slow, engine=engine, send_nudges=lambda queues: None), base_url=BASE_URL) as client:
        answers = [client.get(f"{API}/me", headers=bearer(BOOTSTRAP)) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    refused(answers[3], 429, "too-many-requests")
    assert answers[3].headers["retry-after"] in ("1", "2")


def test_buckets_refill_by_the_clock_and_stay_of_one_size() -> None:
    moment = [0.0]
    buckets = TokenBuckets(2.0, 4, clock=lambda: moment[0])
    taken = [buckets.try_take("a") for _ in range(5)]
    assert taken == [0.0, 0.0, 0.0, 0.0, 0.5]
    moment[0] = 1.0
    assert [buckets.try_take("a") for _ in range(3)] == [0.0, 0.0, 0.5]
    assert buckets.try_take("b") == 0.0
    for number in range(30_000):
        buckets.try_take(str(number))
    assert len(buckets) == 20_000
    assert TokenBuckets(0.0, 1).try_take("a") == 0.0


def test_only_a_direct_connection_may_do_without_a_key(settings: Settings, client: TestClient) -> None:
    assert client.get(f"{API}/me").json() == {"project_id": "default", "scope": "operator", "actor": "local"}
    for name in ("x-forwarded-for", "forwarded", "via", "x-real-ip"):
        refused(client.get(f"{API}/me", headers={name: "203.0.113.9"}), 401)
    refused(client.get(f"{API}/me", headers=bearer("a-wrong-key")), 401)
    assert client.get("/login", follow_redirects=False).headers["location"] == "/"


def test_nobody_signs_in_from_another_site(gate: Gate) -> None:
    secret = gate.make()
    for headers in ({}, {"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        refused(gate.http.post("/login", data={"key": secret}, headers=headers), 403, "cross-origin")
    wrong = gate.http.post("/login", data={"key": "<b>x"}, headers=SAME_ORIGIN)
    assert wrong.status_code == 401
    assert "set-cookie" not in wrong.headers
    assert "<b>x" not in wrong.text


def test_a_changed_first_key_ends_the_sessions_that_it_opened(gate: Gate, settings: Settings) -> None:
    gate.sign_in(BOOTSTRAP)
    cookie = gate.http.cookies["warpwright_session"]
    changed = settings.model_copy(update={"api_key": "another-horse-battery"})
    with TestClient(create_app(changed, engine=gate.engine), base_url=BASE_URL) as client:
        client.cookies.set("warpwright_session", cookie)
        refused(client.get(f"{API}/me"), 401)
