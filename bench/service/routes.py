"""List every GET of the service as requests to make. They are found in the application, so a new route is covered."""

from __future__ import annotations

import enum
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from annotated_types import Le
from fastapi import FastAPI, params
from fastapi.dependencies.utils import get_flat_params

PAGING = frozenset({"cursor", "limit"})
KNOWN_VALUES: Mapping[str, Sequence[str]] = {
    "q": ("softmax", "rms 11", "nothing has this name"),
    "search": ("softmax", "rms 11", "nothing has this name"),
    "name": ("softmax",),
    "proposer": ("synthesiser", "model"),
    "model": ("qwen3-coder-480b",),
    "niche": ("vector/reduce/split",),
    "device_name": ("NVIDIA H200",),
    "fastest_baseline": ("compile",),
    "baseline": ("compile",),
    "variant": ("default",),
    "device": ("NVIDIA H200",),
    "language": ("triton",),
    "family": ("normalisation", "convolution"),
    "next": ("/runs",),
    "hash": ("0" * 64,),
    "reason": ("right",),
    "workload": ("decode",),
}
"""Values of free-text filters; ids come from the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One kind of request: a route, with this filter. `urls` are addresses of that kind, to be taken in turn."""

    name: str
    urls: tuple[str, ...]
    paged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The requests to make, and the routes without known values."""

    shapes: tuple[Shape, ...]
    uncovered: tuple[str, ...]


def discover(app: FastAPI, ids: Mapping[str, Sequence[str]]) -> Found:
    """Return every GET route with every filter. `ids` maps a noun in the plural ("runs") to ids to take in turn."""
    shapes: list[Shape] = []
    uncovered: list[str] = []
    for route in app.routes:
        contexts = route.effective_route_contexts() if hasattr(route, "effective_route_contexts") else ()
        for context in contexts:
            if "GET" not in (context.methods or ()):
                continue
            paths = _paths(context.path, ids)
            if not paths:
                uncovered.append(context.path)
                continue
            for shape in _variants(context, paths, ids, uncovered):
                shapes.append(shape)
    return Found(shapes=tuple(shapes), uncovered=tuple(uncovered))


def _paths(template: str, ids: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the template with ids of its nouns: `/runs/{id}` takes Runs. Return nothing for an unknown noun."""
    marks = re.findall(r"\{([^}]*)\}", template)
    if not marks:
        return [template]
    if len(marks) > 1:
        return []
    noun = template.partition("{")[0].rstrip("/").rpartition("/")[2]
    named = marks[0].removesuffix("_id") + "s"
    return [template.replace(f"{{{marks[0]}}}", id) for id in ids.get(noun) or ids.get(named) or ()]


def _variants(
    context: Any, paths: list[str], ids: Mapping[str, Sequence[str]], uncovered: list[str]
) -> Iterator[Shape]:
    fields = get_flat_params(context.dependant)
    parameters = {field.alias: field for field in fields if isinstance(field.field_info, params.Query)}
    paged = "cursor" in parameters
    required: dict[str, str] = {}
    for name, field in parameters.items():
        if field.field_info.is_required():
            values = _values(name, field.field_info.annotation, ids)
            if not values:
                uncovered.append(f"{context.path}?{name}=")
                return
            required[name] = values[0]

    def shape(extra: Mapping[str, str]) -> Shape:
        query = {**required, **extra}
        tail = "?" + urlencode(query) if query else ""
        label = "&".join(name if name.endswith("id") else f"{name}={value}" for name, value in query.items())
        urls = tuple(path + tail for path in paths)
        return Shape(name=context.path + (f"?{label}" if label else ""), urls=urls, paged=paged)

    yield shape({})
    for name, field in parameters.items():
        if name == "limit":
            most = next((item.le for item in field.field_info.metadata if isinstance(item, Le)), None)
            if most is not None:
                yield shape({"limit": str(most)})
        elif name not in PAGING and name not in required:
            values = _values(name, field.field_info.annotation, ids)
            if not values:
                uncovered.append(f"{context.path}?{name}=")
            for value in values:
                yield shape({name: value})


def _values(name: str, annotation: Any, ids: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the values of a filter: each of a choice, ids of its noun, or one known by its name."""
    if name.endswith("id") and ids.get(name.removesuffix("id").removesuffix("_") + "s"):
        return [ids[name.removesuffix("_id") + "s"][0]]
    if ids.get(name + "s"):  # an id that is named by its noun alone: ?problem=
        return [ids[name + "s"][0]]
    kinds = list(_leaves(annotation))
    choices = [str(getattr(kind, "value", kind)) for kind in kinds if not isinstance(kind, type)]
    if choices:
        return choices[:5]
    if name in KNOWN_VALUES:
        return list(KNOWN_VALUES[name])
    if bool in kinds:
        return ["true", "false"]
    if int in kinds or float in kinds:
        return ["1"]
    return []


def _leaves(annotation: Any) -> Iterator[Any]:
    """Return the plain types and choices within an annotation."""
    origin = typing.get_origin(annotation)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        yield from annotation
    elif origin is typing.Literal:
        yield from typing.get_args(annotation)
    elif origin in (typing.Union, types.UnionType, typing.Annotated, list, tuple, set, frozenset):
        for inner in typing.get_args(annotation):
            yield from _leaves(inner)
    elif annotation is not type(None):
        yield annotation
