"""Plain values from outside a function, which its problem file, and so its kernel, has as constants."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pickle import PicklingError
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a pickle holds: the name of the module that has the namespace. Raises PicklingError."""
        module = "" if isinstance(self.place, CellType) else str(self.place.get("__name__", ""))
        if getattr(sys.modules.get(module), "__dict__", None) is not self.place:
            raise PicklingError(f"the kernel depends on {self.name} of an inner function, which no pickle can hold")
        return _in_module, (module, self.name, self.value, self.text)

    def holds(self) -> bool:
        """Return True if the function still reads this value."""
        try:
            now = self.place.cell_contents if isinstance(self.place, CellType) else self.place[self.name]
        except (KeyError, ValueError):  # deleted
            return False
        if now is self.value and type(now) in UNCHANGING:
            return True
        return literal(now) == self.text  # lists and dicts may have changed in place


def _in_module(module: str, name: str, value: Any, text: str) -> Baked:
    """Return a value of a module's namespace, read from a pickle."""
    return Baked(vars(importlib.import_module(module)), name, value, text)


def all_hold(baked: Iterable[Baked]) -> bool:
    """Return True if no value has changed since a kernel was made with it."""
    return all(one.holds() for one in baked)
