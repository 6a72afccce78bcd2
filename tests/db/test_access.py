"""Keys, sessions and the audit log, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, select, text
from sqlalchemy.exc import DatabaseError

from db.engine import read_session, write_session
from db.errors import NotFound
from db.repositories.access import audit, keys
from db.tables.access import ApiKeyRow, SessionRow
from db.tokens import digest, new_key, prefix_of
from db.transitions.access.audit import record
from db.transitions.access.keys import create_key, end_session, open_session, revoke_key, touch_key

HOUR = timedelta(hours=1)


def make(engine: Engine, *, lifetime: timedelta | None = None) -> tuple[str, str]:
    with write_session(engine) as s:
        view, secret = create_key(s, "default", name="k", scope="submit", created_by="t", lifetime=lifetime)
    return view.id, secret


def test_of_a_secret_only_its_hash_is_stored(engine: Engine) -> None:
    _, secret = make(engine)
    with read_session(engine) as s:
        row = s.scalars(select(ApiKeyRow)).one()
    assert row.digest == digest(secret)
    assert secret not in str(vars(row))
    assert prefix_of(secret) == row.prefix


@pytest.mark.parametrize(
    "key",
    ["", "ww_", "ww_a_b", new_key()[1] + "0", new_key()[1] + "\n", "ww_" + "l" * 10 + "_" + "0" * 52],
    ids=["empty", "prefix alone", "short", "too long", "line end", "letters that we never use"],
)
def test_what_is_not_a_key_of_ours_is_not_looked_up(key: str) -> None:
    assert prefix_of(key) is None


def test_a_key_grants_until_it_expires_or_is_revoked(engine: Engine) -> None:
    key_id, secret = make(engine, lifetime=HOUR)
    with read_session(engine) as s:
        grant = keys.grant_of_key(s, secret)
        assert grant is not None
        assert (grant.credential, grant.project_id, grant.scope) == (key_id, "default", "submit")
        other = secret[:-1] + ("1" if secret[-1] == "0" else "0")
        assert keys.grant_of_key(s, other) is None
        s.info["now"] = lambda: datetime.now(UTC) + 2 * HOUR
        assert keys.grant_of_key(s, secret) is None
    with write_session(engine) as s:
        revoke_key(s, key_id)
    with read_session(engine) as s:
        assert keys.grant_of_key(s, secret) is None


def test_sessions_end_with_their_key_by_signing_out_and_in_time(engine: Engine) -> None:
    key_id, _ = make(engine)
    found = []
    with write_session(engine) as s:
        for _ in range(3):
            found.append(open_session(s, "default", key_id=key_id, scope="read", actor="a", lifetime=HOUR))
        end_session(s, found[0][0])
    with read_session(engine) as s:
        assert [keys.grant_of_session(s, secret) is not None for _, secret in found] == [False, True, True]
        assert keys.ended(s, [key_id, *(id for id, _ in found)]) == {found[0][0]}
        s.info["now"] = lambda: datetime.now(UTC) + 2 * HOUR
        assert keys.ended(s, [key_id, *(id for id, _ in found)]) == {id for id, _ in found}
    with write_session(engine) as s:
        revoke_key(s, key_id)
        revoke_key(s, key_id)
    with read_session(engine) as s:
        assert all(keys.grant_of_session(s, secret) is None for _, secret in found)
    with write_session(engine) as s:
        s.info["now"] = lambda: datetime.now(UTC) + timedelta(days=3)
        open_session(s, "default", key_id=None, scope="read", actor="a", lifetime=HOUR, bound_to="x")
        assert len(s.scalars(select(SessionRow)).all()) == 1  # what ended long ago is forgotten


def test_a_session_of_the_settings_key_is_bound_to_it(engine: Engine) -> None:
    with write_session(engine) as s:
        secret = open_session(s, "default", key_id=None, scope="read", actor="a", lifetime=HOUR, bound_to="one")[1]
        free = open_session(s, "default", key_id=None, scope="read", actor="a", lifetime=HOUR)[1]
    with read_session(engine) as s:
        assert keys.grant_of_session(s, secret, bound_to="one") is not None
        for bound_to in ("two", ""):
            assert keys.grant_of_session(s, secret, bound_to=bound_to) is None
            assert keys.grant_of_session(s, free, bound_to=bound_to) is None


def test_the_last_use_is_noted_coarsely(engine: Engine) -> None:
    key_id, _ = make(engine)
    seen = []
    for minutes in (0, 1, 6):
        with write_session(engine) as s:
            s.info["now"] = lambda later=minutes: datetime(2027, 1, 1, 0, later, tzinfo=UTC)
            touch_key(s, key_id)
            seen.append(s.get_one(ApiKeyRow, key_id).last_used_at)
    assert [moment.minute for moment in seen if moment] == [0, 0, 6]


def test_a_key_of_another_project_is_not_there(engine: Engine) -> None:
    key_id, _ = make(engine)
    with write_session(engine) as s:
        with pytest.raises(NotFound):
            revoke_key(s, key_id, project_id="other")
        with pytest.raises(NotFound):
            keys.get(s, key_id, project_id="other")
        with pytest.raises(NotFound):
            create_key(s, "none", name="k", scope="read", created_by="t")
        assert keys.list(s, "other") == ()


@pytest.mark.parametrize("change", ["UPDATE audit_log SET actor = 'x'", "DELETE FROM audit_log"])
def test_the_audit_log_only_grows(engine: Engine, change: str) -> None:
    with write_session(engine) as s:
        record(s, "create_run", project_id="default", actor="key_1", subject="run_1", detail={"a": 1})
    with pytest.raises(DatabaseError, match="append-only"), engine.execution_options(writes=True).begin() as connection:
        connection.execute(text(change))
    with read_session(engine) as s:
        line = audit.list(s, "default", limit=1)[0]
    assert (line.actor, line.action, line.subject, line.detail) == ("key_1", "create_run", "run_1", {"a": 1})
