"""The API as a page: every operation, with a form that tries it here and a line for curl."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.errors import NotFound
from service.identity.principal import LOCAL, Reads
from service.rendering.templates import page

router = APIRouter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter in the path or the query."""

    name: str
    place: str
    required: bool
    description: str
    choices: tuple[str, ...]
    default: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation. `body` is an example of its JSON body, empty where it takes none."""

    name: str
    method: str
    path: str
    summary: str
    description: str
    parameters: tuple[Parameter, ...]
    body: str
    answers: str
    streams: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The operations under one tag."""

    name: str
    description: str
    operations: tuple[Operation, ...]


@router.get("/docs")
def show(who: Reads, request: Request, part: Annotated[str | None, Query(max_length=30)] = None) -> Response:
    """List every operation, or show those under one tag, to read and to try."""
    groups = _groups(request.app.openapi())
    shown = next((group for group in groups if group.name == part), None)
    if part is not None and shown is None:
        raise NotFound("The API has no such part: /docs lists them.")
    origin = str(request.base_url).rstrip("/")
    return page("api.html", section="api", groups=groups, shown=shown, origin=origin, keyed=who.actor != LOCAL.actor)


def _groups(document: Mapping[str, Any]) -> list[Group]:
    operations = list(_operations(document))
    made = [
        Group(
            name=tag["name"],
            description=tag["description"],
            operations=tuple(operation for name, operation in operations if name == tag["name"]),
        )
        for tag in document["tags"]
    ]
    return [group for group in made if group.operations]


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, Operation]]:
    for path, methods in document["paths"].items():
        for method, found in methods.items():
            content = found.get("requestBody", {}).get("content", {}).get("application/json", {})
            yield (
                next(iter(found.get("tags", ["operations"]))),
                Operation(
                    name=found["operationId"],
                    method=method.upper(),
                    path=path,
                    summary=found["summary"],
                    description=found.get("description", ""),
                    parameters=tuple(
                        _parameter(one, document["components"]["schemas"])
                        for one in found.get("parameters", ())
                        if one["in"] != "header"
                    ),
                    body=json.dumps(content["example"], indent=2) if "example" in content else "",
                    answers=", ".join(found["responses"]),
                    streams=any("text/event-stream" in one.get("content", {}) for one in found["responses"].values()),
                ),
            )


def _parameter(found: Mapping[str, Any], schemas: Mapping[str, Any]) -> Parameter:
    schema = found.get("schema", {})
    options = [schema, *schema.get("anyOf", ()), schema.get("items", {})]
    options = [schemas[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in options]
    choices = next((one["enum"] for one in options if "enum" in one), ())
    if any(one.get("type") == "boolean" for one in options):
        choices = ("true", "false")
    default = schema.get("default")
    return Parameter(
        name=found["name"],
        place=found["in"],
        required=bool(found.get("required")),
        description=found.get("description", "").replace("`", ""),
        choices=tuple(str(choice) for choice in choices),
        default="" if default is None else str(default).lower() if isinstance(default, bool) else str(default),
    )
