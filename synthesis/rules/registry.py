"""The rules by the name of the aten operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from synthesis.graph.aten import Call

Calls = tuple[Call, ...]
RULES: dict[str, Callable[..., Any]] = {}


def rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the rule for these operations."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            RULES[name] = function
        return function

    return register
