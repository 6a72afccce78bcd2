"""Frozen dataclasses to JSON values and back, by their annotations. Standard library only."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin

T = TypeVar("T")


class SchemaError(ValueError):
    """A JSON value does not fit the dataclass it is read as; the message names the path."""


def to_json(value: object) -> Any:
    """A JSON value (dict, list, str, number, bool, None) for a dataclass or a container of them.

    Non-finite floats become the strings "nan", "inf", "-inf", because JSON has none.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise SchemaError(f"{type(value).__name__} has no JSON form")


def from_json(cls: type[T], data: object, *, path: str = "$") -> T:
    """Read a JSON value as dataclass `cls`. Unknown fields are refused. Raises SchemaError."""
    return cast(T, _read(cls, data, path))


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _read(kind: Any, data: object, path: str) -> Any:
    origin = get_origin(kind)
    if kind is Any:
        return data
    if origin in (Union, types.UnionType):
        return _read_union(get_args(kind), data, path)
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(cast(type, kind), data, path)
    if origin is tuple:
        if not isinstance(data, list | tuple):
            raise SchemaError(f"{path}: expected a list, got {type(data).__name__}")
        item = get_args(kind)[0]
        return tuple(_read(item, value, f"{path}[{i}]") for i, value in enumerate(data))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(data, Mapping):
            raise SchemaError(f"{path}: expected an object, got {type(data).__name__}")
        item = get_args(kind)[1]
        return {str(key): _read(item, value, f"{path}.{key}") for key, value in data.items()}
    return _read_scalar(kind, data, path)


def _read_union(options: tuple[Any, ...], data: object, path: str) -> Any:
    if data is None and type(None) in options:
        return None
    rest = [option for option in options if option is not type(None)]
    if len(rest) != 1:
        raise SchemaError(f"{path}: a schema field has one type besides null")
    return _read(rest[0], data, path)


def _read_dataclass(kind: type, data: object, path: str) -> Any:
    if not isinstance(data, Mapping):
        raise SchemaError(f"{path}: expected an object, got {type(data).__name__}")
    hints = _hints(kind)
    names = {f.name for f in dataclasses.fields(kind)}
    unknown = sorted(set(data) - names)
    if unknown:
        raise SchemaError(f"{path}: unknown field {unknown[0]!r}")
    try:
        return kind(**{key: _read(hints[key], value, f"{path}.{key}") for key, value in data.items()})
    except SchemaError:
        raise
    except (TypeError, ValueError) as error:
        raise SchemaError(f"{path}: {error}") from error


def _read_scalar(kind: Any, data: object, path: str) -> Any:
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(data)
        except ValueError as error:
            raise SchemaError(f"{path}: {error}") from error
    if kind is float and isinstance(data, str) and data in ("nan", "inf", "-inf"):
        return float(data)
    if kind is float and isinstance(data, int | float) and not isinstance(data, bool):
        return float(data)
    if kind is int and isinstance(data, int) and not isinstance(data, bool):
        return data
    if kind in (str, bool) and isinstance(data, kind):
        return data
    raise SchemaError(f"{path}: expected {getattr(kind, '__name__', kind)}, got {type(data).__name__}")
