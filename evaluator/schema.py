"""Convert frozen dataclasses to JSON values and back, by their annotations. Standard library only.

Every list and event of the service passes through here, so each type is analysed once: `_form` and `_reader` make a
function for it, which is cached.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin

T = TypeVar("T")

_Read = Callable[[object], Any]


class SchemaError(ValueError):
    """A JSON value does not fit its dataclass; the message names the path."""


class _Misfit(Exception):
    """A value that does not fit. `path` grows on the way up, so that reading a fitting value builds no path."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.path = ""

    def at(self, step: str) -> _Misfit:
        self.path = step + self.path
        return self


def to_json(value: object) -> Any:
    """Return the JSON value (dict, list, str, number, bool, None) of a dataclass or a container of dataclasses.

    Non-finite floats become the strings "nan", "inf", "-inf", because JSON has none.
    """
    return _form(cast(Any, type(value)))(value)


def from_json(cls: type[T], data: object, *, path: str = "$") -> T:
    """Read a JSON value as dataclass `cls`. Refuse unknown fields. Raise SchemaError."""
    try:
        return cast(T, _reader(cast(Any, cls))(data))
    except _Misfit as misfit:
        raise SchemaError(f"{path}{misfit.path}: {misfit.message}") from misfit.__cause__


@cache
def _form(kind: type) -> Callable[[Any], Any]:
    """Return the function that converts values of exactly this type to JSON."""
    if dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
        return lambda value: {name: to_json(getattr(value, name)) for name in names}
    if issubclass(kind, Enum):
        return lambda value: value.value
    if issubclass(kind, Mapping):
        return lambda value: {str(key): to_json(item) for key, item in value.items()}
    if issubclass(kind, list | tuple | set | frozenset):
        return lambda value: [to_json(item) for item in value]
    if issubclass(kind, float):
        return lambda value: value if math.isfinite(value) else str(value)
    if kind is types.NoneType or issubclass(kind, int | str):
        return lambda value: value
    raise SchemaError(f"{kind.__name__} has no JSON form")


@cache
def _reader(kind: Any) -> _Read:
    """Return the function that reads a JSON value as this type; it raises _Misfit."""
    origin = get_origin(kind)
    if kind is Any:
        return lambda data: data
    if origin in (Union, types.UnionType):
        return _union_reader(get_args(kind))
    if dataclasses.is_dataclass(kind):
        return _dataclass_reader(cast(type, kind))
    if origin is tuple:
        return _list_reader(_reader(get_args(kind)[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_reader(_reader(get_args(kind)[1]))
    return _scalar_reader(kind)


def _union_reader(options: tuple[Any, ...]) -> _Read:
    rest = [option for option in options if option is not types.NoneType]
    if len(rest) != 1 or len(rest) == len(options):
        raise TypeError("a schema field has one type in addition to null")
    read = _reader(rest[0])
    return lambda data: None if data is None else read(data)


def _list_reader(item: _Read) -> _Read:
    def read(data: object) -> tuple[Any, ...]:
        if not isinstance(data, list | tuple):
            raise _Misfit(f"expected a list, got {type(data).__name__}")
        found = []
        for value in data:
            try:
                found.append(item(value))
            except _Misfit as misfit:
                raise misfit.at(f"[{len(found)}]") from misfit.__cause__
        return tuple(found)

    return read


def _mapping_reader(item: _Read) -> _Read:
    def read(data: object) -> dict[str, Any]:
        if not isinstance(data, dict | Mapping):
            raise _Misfit(f"expected an object, got {type(data).__name__}")
        found = {}
        for key, value in data.items():
            try:
                found[str(key)] = item(value)
            except _Misfit as misfit:
                raise misfit.at(f".{key}") from misfit.__cause__
        return found

    return read


def _dataclass_reader(kind: type) -> _Read:
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    readers: dict[str, _Read] = {}  # filled when first needed: a type may hold itself

    def read(data: object) -> Any:
        if not isinstance(data, dict | Mapping):
            raise _Misfit(f"expected an object, got {type(data).__name__}")
        if not readers:
            readers.update({name: _reader(hints[name]) for name in names})
        unknown = sorted(data.keys() - readers.keys())
        if unknown:
            raise _Misfit(f"unknown field {unknown[0]!r}")
        values = {}
        for key, value in data.items():
            try:
                values[key] = readers[key](value)
            except _Misfit as misfit:
                raise misfit.at(f".{key}") from misfit.__cause__
        try:
            return kind(**values)
        except (TypeError, ValueError) as error:
            raise _Misfit(str(error)) from error

    return read


def _scalar_reader(kind: Any) -> _Read:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum_reader(kind)
    if kind is float:
        return _read_float
    if kind is int:
        return _read_int
    return _plain_reader(kind)


def _plain_reader(kind: Any) -> _Read:
    def read(data: object) -> object:
        if kind not in (str, bool) or not isinstance(data, kind):
            raise _wrong(kind, data)
        return data

    return read


def _enum_reader(kind: type[Enum]) -> _Read:
    def read(data: object) -> Enum:
        try:
            return kind(data)
        except ValueError as error:
            raise _Misfit(str(error)) from error

    return read


def _read_float(data: object) -> float:
    if isinstance(data, int | float) and not isinstance(data, bool):
        return float(data)
    if isinstance(data, str) and data in ("nan", "inf", "-inf"):
        return float(data)
    raise _wrong(float, data)


def _read_int(data: object) -> int:
    if isinstance(data, int) and not isinstance(data, bool):
        return data
    raise _wrong(int, data)


def _wrong(kind: Any, data: object) -> _Misfit:
    return _Misfit(f"expected {getattr(kind, '__name__', kind)}, got {type(data).__name__}")
