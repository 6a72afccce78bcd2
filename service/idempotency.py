"""Idempotency-Key on POST: the answer is stored in the transaction of the work, so a retry changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Header, Request
from pydantic import BaseModel
from sqlalchemy.orm import Session
from starlette.responses import Response

import db.transitions.access.idempotency
from db.engine import write_session
from db.views.rows import StoredAnswer
from evaluator.types import canonical_json, content_hash
from service.context import Context
from service.errors import Unprocessable
from service.http.answering import answer, refusals
from service.identity.auditing import record_operation
from service.identity.principal import Principal

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[\x21-\x7e]{1,200}$",
        description="Any unique text: a repeated POST with the same key and body gets the first answer.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The result of a write: the answer, and the queues to nudge once it is committed."""

    value: object
    status: int
    location: str | None = None
    nudges: Sequence[str] = field(default_factory=tuple)


def perform(
    context: Context,
    who: Principal,
    request: Request,
    key: str | None,
    body: BaseModel | None,
    work: Callable[[Session], Done],
    *,
    operation: str,
) -> Response:
    """Do `work` in one write transaction and answer with its result; repeat the stored answer for a known key.

    `operation` names it in the audit log.
    """
    fingerprint = content_hash(
        request.method, request.url.path, canonical_json(body.model_dump(mode="json") if body else None)
    )
    with write_session(context.engine) as session, refusals():
        stored = db.transitions.access.idempotency.claim(session, who.project_id, key) if key else None
        if stored is not None:
            return _again(stored, fingerprint)
        done = work(session)
        record_operation(session, who, operation, _subject(request, done))
        headers = {"Location": done.location} if done.location else {}
        response = answer(done.value, status=done.status, headers=headers)
        if key:
            text = bytes(response.body).decode()
            db.transitions.access.idempotency.store(
                session,
                who.project_id,
                key,
                StoredAnswer(fingerprint=fingerprint, status=done.status, location=done.location, body=text),
            )
    context.nudge(done.nudges)
    return response


def _subject(request: Request, done: Done) -> str:
    """Return the id of the created or changed thing."""
    return (done.location or "").rpartition("/")[2] or str(request.path_params.get("id", ""))


def _again(stored: StoredAnswer, fingerprint: str) -> Response:
    if stored.fingerprint != fingerprint:
        raise Unprocessable(
            "This Idempotency-Key was used for another request: use a new one.",
            slug="idempotency-key-reused",
            title="The Idempotency-Key belongs to another request",
        )
    headers = {"Idempotent-Replay": "true"}
    if stored.location:
        headers["Location"] = stored.location
    return Response(stored.body.encode(), stored.status, headers, media_type="application/json")
