"""Tunables: named constants of a Candidate with their allowed values, and the Configuration in force.

A Candidate declares them as two literals at its top level, `TUNABLES = {"BLOCK": [256, 512]}` and
`CONFIG = {"BLOCK": 512}`. They are read and rewritten as text, by the positions in the syntax tree; nothing is run.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping

from evaluator.types import canonical_json, content_hash

Scalar = bool | int | float | str
Tunables = Mapping[str, tuple[Scalar, ...]]
Configuration = Mapping[str, Scalar]

MAX_SOURCE = 400_000
MAX_TUNABLES = 32
MAX_VALUES = 64
MAX_CHARACTERS = 200
MAX_INTEGER = 2**63 - 1


class TunablesError(ValueError):
    """TUNABLES or CONFIG is invalid; the message gives the reason."""


def read_tunables(source: str) -> tuple[dict[str, tuple[Scalar, ...]], dict[str, Scalar]]:
    """Return the Tunables and the Configuration of a source; ({}, {}) if it declares none. Raises TunablesError."""
    found = _literals(source)
    if "TUNABLES" not in found:
        return {}, {}
    tunables = _checked_tunables(_value(found["TUNABLES"], "TUNABLES"))
    if "CONFIG" not in found:
        raise TunablesError("TUNABLES needs a CONFIG")
    configuration = _value(found["CONFIG"], "CONFIG")
    return tunables, check_configuration(tunables, configuration)


def apply_configuration(source: str, configuration: Configuration) -> str:
    """Return the source with only its CONFIG literal rewritten. Raises TunablesError."""
    tunables, _ = read_tunables(source)
    if not tunables:
        raise TunablesError("this source declares no TUNABLES")
    check_configuration(tunables, configuration)
    items = ", ".join(f"{name!r}: {configuration[name]!r}" for name in tunables)
    return _splice(source, _literals(source)["CONFIG"], "{" + items + "}")


def family_of(source: str) -> str:
    """Return a hash that is equal for all Configurations of one source."""
    config = _literals(source).get("CONFIG")
    return content_hash("family", source if config is None else _splice(source, config, "{}"))


def check_configuration(tunables: Tunables, configuration: Mapping[str, object]) -> dict[str, Scalar]:
    """Return the Configuration if it assigns each Tunable one of its values and nothing else. Raises TunablesError."""
    if set(configuration) != set(tunables):
        raise TunablesError(f"CONFIG must assign exactly {sorted(tunables)}, not {sorted(configuration)}")
    checked: dict[str, Scalar] = {}
    for name, values in tunables.items():
        value = configuration[name]
        same = [allowed for allowed in values if type(value) is type(allowed) and value == allowed]
        if not same:
            raise TunablesError(f"{name} = {value!r} is not one of {list(values)}")
        checked[name] = same[0]
    return checked


def key_of(configuration: Configuration) -> str:
    """Return text that is equal for equal Configurations."""
    return canonical_json(dict(configuration))


def neighbours(tunables: Tunables, configuration: Configuration) -> Iterator[dict[str, Scalar]]:
    """Yield every Configuration that is one step away in one Tunable. Steps follow the declared order of values."""
    for name, values in tunables.items():
        here = values.index(configuration[name])
        for there in (here - 1, here + 1):
            if 0 <= there < len(values):
                yield {**configuration, name: values[there]}


def _literals(source: str) -> dict[str, ast.expr]:
    """Return the value nodes of the last top-level assignments to TUNABLES and CONFIG."""
    if len(source) > MAX_SOURCE:
        raise TunablesError(f"a source longer than {MAX_SOURCE} characters is not read for Tunables")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TunablesError(f"the source does not parse: {error}") from error
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        for target in targets:
            if isinstance(target, ast.Name) and target.id in ("TUNABLES", "CONFIG") and value is not None:
                found[target.id] = value
    return found


def _value(node: ast.expr, name: str) -> dict[str, object]:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, OverflowError, RecursionError, MemoryError, SyntaxError) as error:
        raise TunablesError(f"{name} must be a literal: {error}") from error
    if not isinstance(value, dict) or not all(isinstance(key, str) and key for key in value):
        raise TunablesError(f"{name} must be a dict with names as keys")
    values = (item for each in value.values() for item in (each if isinstance(each, list | tuple) else [each]))
    if not all(map(_storable, value)) or not all(map(_storable, values)):
        raise TunablesError(
            f"{name} may hold text that UTF-8 can encode, of {MAX_CHARACTERS} characters, integers of 64 bits, "
            "floats and booleans"
        )
    return value


def _storable(value: object) -> bool:
    """Tell whether a value can be stored as JSON, or at least repeated in a message that refuses it."""
    if isinstance(value, str):
        return len(value) <= MAX_CHARACTERS and not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, int):
        return abs(value) <= MAX_INTEGER
    return not isinstance(value, list | tuple | dict | set)


def _checked_tunables(value: dict[str, object]) -> dict[str, tuple[Scalar, ...]]:
    if len(value) > MAX_TUNABLES:
        raise TunablesError(f"more than {MAX_TUNABLES} TUNABLES")
    tunables: dict[str, tuple[Scalar, ...]] = {}
    for name, values in value.items():
        if not isinstance(values, list | tuple) or not 1 <= len(values) <= MAX_VALUES:
            raise TunablesError(f"TUNABLES[{name!r}] must list 1 to {MAX_VALUES} values")
        for item in values:
            if not isinstance(item, bool | int | float | str) or (isinstance(item, float) and not math.isfinite(item)):
                raise TunablesError(f"TUNABLES[{name!r}] has a value that is no finite number, string or boolean")
        if len({(type(item), item) for item in values}) != len(values):
            raise TunablesError(f"TUNABLES[{name!r}] lists a value twice")
        tunables[name] = tuple(values)
    return tunables


def _splice(source: str, node: ast.expr, text: str) -> str:
    """Replace a node's text. Columns of the syntax tree count UTF-8 bytes, and its lines end as the tokenizer's do."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    lines = _lines(source.encode())
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    after = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    return (before + text.encode() + after).decode()


def _lines(data: bytes) -> list[bytes]:
    """Return lines with their ends, split as the tokenizer does: at \\n, \\r\\n and \\r only."""
    return data.splitlines(keepends=True)
