"""Facts about a device for a prompt: in words and human units, without those that help nobody to write a kernel."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from evaluator.schema import to_json
from evaluator.types import Environment
from prompts import units
from prompts.budget import clip

_OMITTED = frozenset({"compute_mode", "name", "nvml", "ordinal", "reserved_core"})
_UNITS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_bytes_per_s", units.rate),
    ("_bytes", units.size),
    ("_w", units.watts),
    ("_mhz", "{:.0f} MHz".format),
)
_NAMES = {
    "bandwidth": "memory bandwidth (datasheet)",
    "capability": "compute capability",
    "l2": "L2 cache",
    "max_sm": "highest clock",
    "power_limit": "power limit",
    "registers_per_sm": "32-bit registers a multiprocessor",
    "shared_memory_per_block": "shared memory a block, at most",
    "shared_memory_per_sm": "shared memory a multiprocessor",
    "sms": "multiprocessors",
    "threads": "CPU threads of kernels and baselines",
    "threads_per_sm": "threads a multiprocessor, at most",
    "warp": "threads a warp",
}


def described(facts: Mapping[str, Any], environment: Environment | None) -> dict[str, str]:
    """Return names and values of a device's facts, and the versions there."""
    known = {**facts, **_versions(environment)}
    return dict(_fact(key, value) for key, value in sorted(known.items()) if value is not None and key not in _OMITTED)


def _fact(key: str, value: Any) -> tuple[str, str]:
    """Return a fact's name and value; the unit goes from the name to the value."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        for unit, text in _UNITS:
            if key.endswith(unit):
                name = key.removesuffix(unit)
                return _NAMES.get(name, name), text(value)
    return _NAMES.get(key, key), clip(_text(value), 400)


def _text(value: Any) -> str:
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(to_json(value))


def _versions(environment: Environment | None) -> dict[str, str | None]:
    if environment is None:
        return {}
    return {name: getattr(environment, name) for name in ("compiler", "cuda", "languages", "torch", "triton")}
