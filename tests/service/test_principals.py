"""Every route says which scope it needs; what a Principal may do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Mount, Route

from service.identity.principal import Scope, scope_of
from service.middleware.authenticate import OPEN_PATHS


def _calls(dependant: Any) -> Iterator[Callable[..., object] | None]:
    yield dependant.call
    for inner in dependant.dependencies:
        yield from _calls(inner)


def routes(app: FastAPI | APIRouter) -> Iterator[APIRoute]:
    """Every route of an application, those of included routers too."""
    for route in app.routes:
        if isinstance(route, APIRoute):
            yield route
        elif isinstance(route, Mount) or type(route) is Route:
            continue
        else:
            yield from routes(route.original_router)  # type: ignore[attr-defined]


def test_every_route_asks_for_a_scope_and_every_writing_one_for_more_than_reading(app: FastAPI) -> None:
    found = list(routes(app))
    assert len(found) > 25
    for route in found:
        scope = scope_of(list(_calls(route.dependant)))
        if route.path in OPEN_PATHS:
            assert scope is None
            continue
        assert scope is not None, f"{route.path} asks nobody who they are: give it a `who: Reads`"
        if route.methods - {"GET", "HEAD"} and route.path != "/logout":
            assert scope.allows(Scope.SUBMIT), f"{route.path} writes and asks for no more than {scope}"


@pytest.mark.parametrize("scope", list(Scope))
def test_a_scope_allows_itself_and_what_stands_before_it(scope: Scope) -> None:
    order = list(Scope)
    assert [scope.allows(needed) for needed in order] == [n <= order.index(scope) for n in range(len(order))]
