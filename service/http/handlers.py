"""From exceptions to answers."""

from __future__ import annotations

import re

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.responses import Response

from service.errors import ServiceError
from service.http import problem_details
from service.http.negotiation import respond

DATABASE_AWAY = (OperationalError, PoolTimeout)
"""What the database raises while it is away, or too busy to answer."""


def install(app: FastAPI) -> None:
    """Register every handler; the error boundary catches the rest."""
    app.add_exception_handler(ServiceError, _service_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    for error in DATABASE_AWAY:
        app.add_exception_handler(error, _database_error)


def _service_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    return refusal(request, error)


def refusal(request: Request, error: ServiceError) -> Response:
    """Answer a refused request."""
    members = problem_details.document(error.status, error.slug, error.title, error.detail, **error.extra)
    return respond(request, members, error.headers)


def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if [one["loc"] for one in found] == [("body",)] and not _is_json(request):
        found = [{"loc": ("body",), "msg": "send JSON, with the header Content-Type: application/json"}]
    fields = problem_details.field_errors(found)
    members = problem_details.document(
        422,
        "invalid-request",
        "The request does not match the schema",
        "The fields named in `errors` are missing, unknown or wrong.",
        errors=fields,
    )
    return respond(request, members)


def _is_json(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


_DETAILS = {
    400: "The body is not valid JSON.",
    404: "There is nothing at this address.",
    405: "This address does not support this method.",
}


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = _DETAILS.get(error.status_code, str(error.detail))
    headers = dict(error.headers or {})
    if error.status_code == 405 and (methods := _methods(request)):
        headers["Allow"] = ", ".join(methods)
    return respond(request, problem_details.for_status(error.status_code, detail), headers)


def _methods(request: Request) -> list[str]:
    """Return every method of this address; the router knows only those of the first matching route."""
    for template, operations in request.app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(template)), request.url.path):
            return sorted(method.upper() for method in operations)
    return []


def _database_error(request: Request, _: Exception) -> Response:
    return database_away(request)


def database_away(request: Request) -> Response:
    """Answer that the database is away or too busy: nothing was stored, and a retry is right."""
    members = problem_details.document(
        503, "unavailable", "Not available at the moment", "The database did not answer in time; try again shortly."
    )
    return respond(request, members, {"Retry-After": "2"})
