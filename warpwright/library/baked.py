"""Plain values from outside a function, which its problem file, and so its kernel, has as constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import CellType
from typing import Any

from warpwright.library.literals import PLAIN, literal

UNCHANGING = frozenset({*PLAIN, float})


@dataclass(frozen=True, slots=True)
class Baked:
    """A value as it was written into a file, and the namespace or closure cell that the function reads it from."""

    place: Mapping[str, Any] | CellType
    name: str
    value: Any
    text: str

    def __deepcopy__(self, _: Any) -> Baked:
        return self  # the copy of a module reads the same namespace

    def holds(self) -> bool:
        """Return True if the function still reads this value."""
        try:
            now = self.place.cell_contents if isinstance(self.place, CellType) else self.place[self.name]
        except (KeyError, ValueError):  # deleted
            return False
        if now is self.value and type(now) in UNCHANGING:
            return True
        return literal(now) == self.text  # lists and dicts may have changed in place


def all_hold(baked: Iterable[Baked]) -> bool:
    """Return True if no value has changed since a kernel was made with it."""
    return all(one.holds() for one in baked)
