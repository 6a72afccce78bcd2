"""Answers of routes: dataclasses as JSON, refusals of `db` as HTTP errors, ids checked before any look-up."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Path
from pydantic import AfterValidator
from starlette.responses import Response

import db.errors
from evaluator.schema import to_json
from service.errors import Conflict, NotFound, TooManyRequests
from service.http import problem_details

_ID = re.compile(r"[a-z]{2,8}_[0-9a-z]{8,40}\Z")

_MEANINGS = {
    400: "The request cannot be understood.",
    401: "An API key is needed and was not sent, or is wrong.",
    403: "The key does not allow this, or a page of another site sent it; `type` says which.",
    404: "Nothing has this id.",
    405: "Method not allowed.",
    406: "None of the accepted media types is available.",
    408: "The body arrived too slowly.",
    409: "Not possible in its current state.",
    413: "More than 2 MiB.",
    429: "Too many requests, or a quota is used up; `Retry-After` says when to try again, if that helps.",
    422: "Well formed but wrong: the fields or the line are named.",
    500: "Internal error; logged under `error_id`.",
    503: "Not available at the moment.",
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documented errors of a route, on top of those of every route."""
    return {
        status: {
            "description": _MEANINGS[status],
            "content": {problem_details.MEDIA_TYPE: {"schema": problem_details.SCHEMA}},
        }
        for status in sorted({400, 401, 403, 422, 429, 500, 503, *statuses})
    }


def write_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documented errors of a route that changes something: it takes a body."""
    return errors(408, 413, *statuses)


def answer(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON answer for a dataclass or a container of them."""
    body = json.dumps(to_json(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(body.encode("utf-8", "replace"), status_code=status, media_type="application/json", headers=headers)


@contextmanager
def refusals() -> Iterator[None]:
    """Turn refusals of the database room into HTTP errors."""
    try:
        yield
    except db.errors.NotFound as error:
        raise NotFound(f"There is no {error.noun} with this id.") from error
    except db.errors.Conflict as error:
        raise Conflict(f"{error}.") from error
    except db.errors.QuotaExceeded as error:
        raise _quota(error) from error


_QUOTAS = {
    "live_runs": "{used:g} of {allowed:g} concurrent Runs are live. Wait for one to end, or cancel one.",
    "runs_per_day": "{used:g} of {allowed:g} Runs of today (UTC) have started. More may start after midnight.",
    "device_s_per_month": "{used:.0f} of {allowed:g} device seconds of this month (UTC) are used.",
    "usd_per_month": "{used:.2f} of {allowed:g} US dollars of this month (UTC) are used.",
}


def _quota(error: db.errors.QuotaExceeded) -> TooManyRequests:
    said = _QUOTAS[error.quota].format(used=error.used, allowed=error.allowed)
    headers = {}
    if error.resets_at is not None:
        seconds = (error.resets_at - datetime.now(UTC)).total_seconds()
        headers["Retry-After"] = str(max(1, math.ceil(seconds)))
    return TooManyRequests(
        f"The project's quota is used up: {said} The operator can raise it.",
        slug="quota-exceeded",
        title="A quota of the project is used up",
        headers=headers,
        quota=error.quota,
        used=error.used,
        allowed=error.allowed,
    )


def checked_id(value: str, noun: str) -> str:
    """Return a well-formed id. Raise NotFound otherwise, so that odd characters never reach the database."""
    if not _ID.match(value):
        raise NotFound(f"There is no {noun} with this id.")
    return value


def _check(noun: str) -> AfterValidator:
    return AfterValidator(lambda value: checked_id(value, noun))


ProblemId = Annotated[str, Path(examples=["prob_01jd3z8v5e0000q4x9k2m7n8p1"]), _check("problem")]
BundleId = Annotated[str, Path(examples=["bndl_01jd3z8v5e0000q4x9k2m7n8p1"]), _check("bundle")]
RunId = Annotated[str, Path(examples=["run_01jd3z8v5e0000q4x9k2m7n8p1"]), _check("run")]
CandidateId = Annotated[str, Path(examples=["cand_01jd3z8v5e0000q4x9k2m7n8p1"]), _check("candidate")]
ProposalId = Annotated[str, Path(examples=["prop_01jd3z8v5e0000q4x9k2m7n8p1"]), _check("proposal")]
KeyId = Annotated[str, Path(examples=["key_01jd3z8v5e0000q4x9k2m7n8p1"]), _check("key")]
EvaluationId = Annotated[str, Path(examples=["eval_01jd3z8v5e0000q4x9k2m7n8p1"]), _check("evaluation")]


def _check_project(value: str) -> str:
    if not re.match(r"[a-z0-9_]{1,40}\Z", value):
        raise NotFound("There is no project with this id.")
    return value


ProjectId = Annotated[str, Path(examples=["proj_01jd3z8v5e0000q4x9k2m7n8p1"]), AfterValidator(_check_project)]
