"""Bundles: waiting device work as a file, for a machine without network access, and its answers."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from db.transitions.work.bundles import make_bundle, release_bundle, settle_answer
from evaluator.batch.lines import Answer, BadLine, read_line
from service.context import Ctx
from service.errors import Unprocessable
from service.http.answering import BundleId, write_errors
from service.idempotency import Done, IdempotencyKey, perform
from service.identity.principal import Operates
from service.schemas.answers import BundleAnswer, CollectedAnswer, ReleasedAnswer
from service.schemas.requests import AnswerRequest, BundleRequest

router = APIRouter(prefix="/bundles", tags=["fleet"])


@router.post(
    "",
    operation_id="create_bundle",
    status_code=201,
    response_model=BundleAnswer,
    responses=write_errors(409),
    summary="Make a bundle of waiting work",
)
def create(context: Ctx, who: Operates, request: Request, body: BundleRequest, key: IdempotencyKey = None) -> Response:
    """Claim work of every project that waits for a kind of device, and return it as a file's text."""
    lease_s = timedelta(hours=body.hours).total_seconds()

    def work(session: Session) -> Done:
        bundle = make_bundle(session, body.device, limit=body.limit, lease_s=lease_s)
        return Done(value=bundle, status=201, location=f"/api/v1/bundles/{bundle.id}")

    return perform(context, who, request, key, body, work, operation="create_bundle")


@router.post(
    "/{id}/answers",
    operation_id="collect_answer",
    response_model=CollectedAnswer,
    responses=write_errors(404),
    summary="Settle one answer of a bundle",
)
def collect(
    context: Ctx, who: Operates, request: Request, id: BundleId, body: AnswerRequest, key: IdempotencyKey = None
) -> Response:
    """Settle one line of a file of answers, exactly once: again, too late or forged, it changes nothing and says so."""
    try:
        found = read_line(Answer, body.line)
    except BadLine as error:
        raise Unprocessable(f"{error}.", slug="bad-answer", title="The line is not a complete answer") from error

    def work(session: Session) -> Done:
        collected, nudges = settle_answer(session, id, found)
        return Done(value=collected, status=200, nudges=nudges)

    return perform(context, who, request, key, body, work, operation="collect_answer")


@router.post(
    "/{id}/release",
    operation_id="release_bundle",
    response_model=ReleasedAnswer,
    responses=write_errors(404),
    summary="Return a bundle's work to its queue",
)
def release(context: Ctx, who: Operates, request: Request, id: BundleId, key: IdempotencyKey = None) -> Response:
    """Return all work of a bundle that is not answered to its queue. Later answers count as long as it waits there."""

    def work(session: Session) -> Done:
        released, nudges = release_bundle(session, id)
        return Done(value=ReleasedAnswer(released=released), status=200, nudges=nudges)

    return perform(context, who, request, key, None, work, operation="release_bundle")
