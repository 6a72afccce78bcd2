"""A bounded in-memory cache of rows that never change again."""

from __future__ import annotations

from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class BoundedCache(dict[_Key, _Value]):
    """A dictionary that is emptied before it would hold more than `most` entries."""

    def __init__(self, most: int = 1000) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: _Key, value: _Value) -> None:
        if len(self) >= self._most and key not in self:
            self.clear()
        super().__setitem__(key, value)
