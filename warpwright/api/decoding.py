"""Decode JSON into the dataclasses of the API. Unknown fields are ignored, so an older client reads a newer service."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from warpwright.errors import ServiceFailed

T = TypeVar("T")
Read = Callable[[Any], Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """A page of a list. `next_cursor` asks for the next page and is None on the last."""

    items: tuple[T, ...]
    next_cursor: str | None


def decode(kind: type[T], value: Any) -> T:
    """Return a JSON value as `kind`. Raises ServiceFailed if it does not fit."""
    try:
        reader: Read = _reader(kind)  # type: ignore[arg-type]  # a type is hashable
        found: T = reader(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ServiceFailed(f"the service's answer is not a {_name(kind)}: {error!r}") from error
    return found


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))


@cache
def _reader(kind: Any) -> Read:
    origin = get_origin(kind)
    if origin is Page:
        item = _reader(get_args(kind)[0])
        return lambda value: Page(items=tuple(map(item, value["items"])), next_cursor=value["next_cursor"])
    if origin is tuple:
        inner = _reader(get_args(kind)[0])
        return lambda value: tuple(map(inner, value))
    if origin is Mapping or origin is getattr(Mapping, "__origin__", Mapping):
        inner = _reader(get_args(kind)[1])
        return lambda value: {key: inner(item) for key, item in value.items()}
    if origin in (Union, types.UnionType):
        return _optional(kind)
    if origin is Literal or kind is Any or not dataclasses.is_dataclass(kind):
        return float if kind is float else lambda value: value
    return _dataclass(kind)


def _optional(kind: Any) -> Read:
    """Return a reader for a union, which here is always one type or None."""
    some = [argument for argument in get_args(kind) if argument is not type(None)]
    inner: Read = _reader(some[0]) if len(some) == 1 else (lambda value: value)
    return lambda value: None if value is None else inner(value)


def _dataclass(kind: Any) -> Read:
    hints = get_type_hints(kind)
    readers = {field.name: _reader(hints[field.name]) for field in dataclasses.fields(kind)}

    def read(value: Any) -> Any:
        return kind(**{name: reader(value[name]) for name, reader in readers.items() if name in value})

    return read
