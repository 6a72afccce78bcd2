"""Sign in: a key is exchanged for a session's cookie, which scripts cannot read and other sites cannot use."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from service.context import Ctx
from service.errors import Forbidden, TooManyRequests, Unauthorized
from service.http.addresses import block_of
from service.http.limits import check_guesses, count_guess
from service.identity.authentication import COOKIE, SECURE_COOKIE
from service.identity.principal import Reads
from service.rendering.templates import page

router = APIRouter()

Next = Annotated[str, Query(alias="next", max_length=2000)]
NO_STORE = {"Cache-Control": "no-store"}


def safe_target(target: str) -> str:
    """Return the page to go to afterwards: always an address of ours."""
    try:
        parts = urlsplit(target)
    except ValueError:  # an address that nobody can read, such as "//["
        return "/"
    ours = target.startswith("/") and not target.startswith(("//", "/\\")) and not parts.netloc and target.isprintable()
    return target if ours and parts.path != "/login" else "/"


@router.get("/login")
def show(context: Ctx, target: Next = "/") -> Response:
    """Show the form; without need of a key, redirect."""
    if context.authenticator.keyless:
        return RedirectResponse("/", status_code=303)
    return _form(target)


def _form(target: str, *, message: str = "", status: int = 200, headers: dict[str, str] | None = None) -> Response:
    answer = page("login.html", status=status, section="", target=safe_target(target), message=message)
    answer.headers.update({**NO_STORE, **(headers or {})})
    return answer


@router.post("/login")
def sign_in(
    context: Ctx,
    request: Request,
    key: Annotated[str, Form(max_length=500)] = "",
    target: Annotated[str, Form(alias="next", max_length=2000)] = "/",
) -> Response:
    """Open a session for a key. The Origin header keeps other sites from signing a reader in."""
    origin = request.headers.get("origin")
    if origin is None and request.headers.get("sec-fetch-site") != "same-origin":
        raise Forbidden(
            "Sign in from this service's own page; programs send their key with each request.",
            slug="cross-origin",
            title="Requests from other sites are refused",
        )
    block, address = block_of(request.scope["address"]), request.scope["address"]
    try:
        check_guesses(context.limits, block, key.strip())
        secret = context.authenticator.sign_in(key.strip(), address=address)
    except TooManyRequests as error:
        return _form(target, message=error.detail, status=429, headers=error.headers)
    except Unauthorized:
        count_guess(context.limits, block, key.strip())
        return _form(target, message="This key is unknown, has expired or was revoked.", status=401)
    answer = RedirectResponse(safe_target(target), status_code=303, headers=NO_STORE)
    secure = request.url.scheme == "https" or (origin or "").startswith("https://")
    answer.set_cookie(
        SECURE_COOKIE if secure else COOKIE,
        secret,
        max_age=int(context.authenticator.session_lifetime.total_seconds()),
        path="/",
        secure=secure,
        httponly=True,
        samesite="lax",
    )
    return answer


@router.post("/logout")
def sign_out(context: Ctx, who: Reads) -> Response:
    """End the session on the server, not only in this browser."""
    context.authenticator.sign_out(who)
    answer = RedirectResponse("/login", status_code=303, headers=NO_STORE)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax")
    answer.delete_cookie(SECURE_COOKIE, path="/", secure=True, httponly=True, samesite="lax")
    return answer
