"""From a bearer key or a session's cookie to a Principal. Nothing is cached: a revoked key is refused at once."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from db.engine import read_session, write_session
from db.repositories.access import keys
from db.tokens import digest, prefix_of, same
from db.transitions.access.audit import record
from db.transitions.access.keys import USED_EVERY, end_session, open_session, touch_key
from db.views.access import Grant
from service.errors import Unauthorized
from service.identity.principal import BOOTSTRAP, LOCAL, Principal, Scope

log = logging.getLogger("warpwright.service")

COOKIE = "warpwright_session"
SECURE_COOKIE = "__Host-warpwright"
"""Over https: this prefix makes browsers refuse it from a subdomain or a plain connection."""


class Authenticator:
    """Makes Principals. `bootstrap` is the key of the settings; `keyless` accepts requests without credentials."""

    def __init__(self, engine: Engine, *, bootstrap: str | None, keyless: bool, session_lifetime: timedelta) -> None:
        self._engine = engine
        self._bootstrap = digest(bootstrap) if bootstrap else None
        self.keyless = keyless
        self.session_lifetime = session_lifetime

    def of_request(self, authorization: str | None, cookies: Mapping[str, str], *, forwarded: bool) -> Principal | None:
        """Return the caller, or None for a request without credentials that needs some.

        Raise Unauthorized for a bad key. `forwarded`: a proxy passed the request on, so it comes from another machine,
        even over a local connection.
        """
        if authorization is not None:
            scheme, _, key = authorization.partition(" ")
            if scheme.lower() != "bearer":
                raise _wrong_key()
            return self.of_key(key.strip())[0]
        secret = cookies.get(SECURE_COOKIE) or cookies.get(COOKIE)
        if secret and (found := self.of_cookie(secret)) is not None:
            return found
        return LOCAL if self.keyless and not forwarded else None

    def of_key(self, key: str) -> tuple[Principal, str | None]:
        """Return a key's owner and the key's id (None for the one of the settings). Raise Unauthorized."""
        if self._bootstrap is not None and same(digest(key), self._bootstrap):
            return BOOTSTRAP, None
        with read_session(self._engine) as s:
            grant = keys.grant_of_key(s, key) if prefix_of(key) else None
        if grant is None:
            raise _wrong_key()
        self._note_use(grant)
        return _principal(grant), grant.key_id

    def of_cookie(self, secret: str) -> Principal | None:
        """Return a session's owner, or None for a session that is forged or over."""
        with read_session(self._engine) as s:
            grant = keys.grant_of_session(s, secret, bound_to=self._bootstrap or "")
        return None if grant is None else _principal(grant, csrf_token=csrf_token_of(secret))

    def sign_in(self, key: str, *, address: str) -> str:
        """Exchange a key for a session; return the cookie's secret. Raise Unauthorized."""
        who, key_id = self.of_key(key)
        with write_session(self._engine) as s:
            session_id, secret = open_session(
                s,
                who.project_id,
                key_id=key_id,
                scope=who.scope,
                actor=who.actor,
                lifetime=self.session_lifetime,
                address=address,
                bound_to="" if key_id else self._bootstrap or "",
            )
            record(s, "sign_in", project_id=who.project_id, actor=who.actor, subject=session_id, address=address)
        return secret

    def sign_out(self, who: Principal) -> None:
        """End the session of a Principal that came with a cookie."""
        if who.csrf_token is None or who.credential is None:
            return
        with write_session(self._engine) as s:
            end_session(s, who.credential)
            record(
                s,
                "sign_out",
                project_id=who.project_id,
                actor=who.actor,
                subject=who.credential,
                address=who.address,
            )

    def _note_use(self, grant: Grant) -> None:
        if grant.key_id is None or (grant.used_at is not None and datetime.now(UTC) - grant.used_at < USED_EVERY):
            return
        try:
            with write_session(self._engine) as s:
                touch_key(s, grant.key_id)
        except OperationalError:
            log.warning("the last use of a key was not stored: the database is busy")


def csrf_token_of(secret: str) -> str:
    """Return the token that unsafe requests of a session must carry: derived, so that it need not be stored."""
    return hmac.new(secret.encode("utf-8", "surrogateescape"), b"csrf", hashlib.sha256).hexdigest()


def _principal(grant: Grant, *, csrf_token: str | None = None) -> Principal:
    return Principal(
        project_id=grant.project_id,
        scope=Scope(grant.scope),
        actor=grant.actor,
        credential=grant.credential,
        csrf_token=csrf_token,
    )


def _wrong_key() -> Unauthorized:
    return Unauthorized(
        "This API key is unknown, has expired or was revoked. Send a valid one: Authorization: Bearer KEY.",
        headers={"WWW-Authenticate": "Bearer"},
    )
