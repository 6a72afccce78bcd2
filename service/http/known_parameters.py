"""Unknown query parameters are refused: a misspelt filter must not pass as no filter."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.params import ParamTypes
from fastapi.routing import APIRoute

_KNOWN: dict[Callable[..., object], frozenset[str]] = {}


def known_parameters(request: Request) -> None:
    """Raise RequestValidationError (422) naming the unknown parameters. A dependency of every API route."""
    known = _names(request.scope["route"])
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        takes = f"accepted: {', '.join(sorted(known))}" if known else "none is accepted"
        raise RequestValidationError(
            [
                {"type": "unknown", "loc": ("query", name), "msg": f"there is no such parameter; {takes}"}
                for name in unknown
            ]
        )


def _names(route: APIRoute) -> frozenset[str]:
    endpoint = route.endpoint  # routes are not hashable
    if endpoint not in _KNOWN:
        found = get_flat_params(route.dependant)
        _KNOWN[endpoint] = frozenset(
            field.alias for field in found if getattr(field.field_info, "in_", None) is ParamTypes.query
        )
    return _KNOWN[endpoint]
