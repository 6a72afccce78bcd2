"""Names of a language's own modules that screening allows: data for `screening.restricted` and `screening.screen`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedNames:
    """Imports and attributes from which the judge's loop in the child cannot be reached.

    A family is a label for modules with the same rule. `modules` and `members` give the family of `import NAME` and of
    `from MODULE import NAME`. `attributes` lists what a family's modules may be asked for; of an `open` family that is
    every public name. `submodules` gives the family of a module that is an attribute of another: alone it is a value
    only where that one's family allows it. `values` are attributes that its values may be asked for. `settable` are
    prefixes of switches that a Candidate may assign.
    """

    modules: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[tuple[str, str], str] = field(default_factory=dict)
    attributes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    open: frozenset[str] = frozenset()
    submodules: Mapping[tuple[str, str], str] = field(default_factory=dict)
    values: frozenset[str] = frozenset()
    settable: tuple[str, ...] = ()


def union(*parts: AllowedNames) -> AllowedNames:
    """Return everything that any of the parts allows."""
    attributes: dict[str, frozenset[str]] = {}
    for part in parts:
        for family, names in part.attributes.items():
            attributes[family] = attributes.get(family, frozenset()) | names
    return AllowedNames(
        modules={name: family for part in parts for name, family in part.modules.items()},
        members={name: family for part in parts for name, family in part.members.items()},
        attributes=attributes,
        open=frozenset().union(*(part.open for part in parts)),
        submodules={place: family for part in parts for place, family in part.submodules.items()},
        values=frozenset().union(*(part.values for part in parts)),
        settable=tuple(prefix for part in parts for prefix in part.settable),
    )
