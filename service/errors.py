"""Errors of the service.

ServiceError                    every error of ours; becomes application/problem+json (RFC 9457)
├── BadRequest          400     the request cannot be understood (a forged cursor, a bad header)
├── Unauthorized        401     no API key, or a wrong one
├── Forbidden           403     understood and refused (a request from another site's page)
├── NotFound            404     nothing has this id, or it belongs to another project
├── Conflict            409     its current state does not allow that
├── TooLarge            413     the body is too large
├── Unprocessable       422     well formed and wrong (a reference that does not parse)
├── TooManyRequests     429     too many requests, or a quota is used up
└── Unavailable         503     a temporary fault of ours: try again

StartupError                    the service refuses to start; the message says what to do
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class ServiceError(Exception):
    """One refusal: `title` is the same for every occurrence of `slug`, `detail` says what to do about this one."""

    status: ClassVar[int] = 500
    slug: str = "internal"
    title: str = "Internal error"

    def __init__(
        self,
        detail: str,
        *,
        slug: str | None = None,
        title: str | None = None,
        headers: Mapping[str, str] | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.slug = slug or self.slug
        self.title = title or self.title
        self.headers = dict(headers or {})
        self.extra = extra


class BadRequest(ServiceError):
    status = 400
    slug = "bad-request"
    title = "The request cannot be understood"


class Unauthorized(ServiceError):
    status = 401
    slug = "unauthorized"
    title = "An API key is needed"


class Forbidden(ServiceError):
    status = 403
    slug = "forbidden"
    title = "This request is refused"


class NotFound(ServiceError):
    status = 404
    slug = "not-found"
    title = "Not found"


class Conflict(ServiceError):
    status = 409
    slug = "conflict"
    title = "Not possible in its current state"


class TooLarge(ServiceError):
    status = 413
    slug = "too-large"
    title = "The request is too large"


class Unprocessable(ServiceError):
    status = 422
    slug = "unprocessable"
    title = "The request is well formed but wrong"


class TooManyRequests(ServiceError):
    status = 429
    slug = "too-many-requests"
    title = "Too many requests"


class Unavailable(ServiceError):
    status = 503
    slug = "unavailable"
    title = "Not available at the moment"


class StartupError(Exception):
    """The service cannot start as configured; the message is one line for a person."""
