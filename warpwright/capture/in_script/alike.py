"""Find the modules of a part that compute what its graph does: they look alike, and may differ in attributes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch

from .recording import Part
from .settings import settings_of
from .tracing import CannotTrace, Traced, trace

Settings = dict[str, str]


@dataclass(slots=True)
class Alike:
    """Sets of attributes with which a module computes a part's graph, without those (`moving`) that calls change.

    `others` modules compute something else; `differing` are the attributes in which they do.
    """

    settings: list[Settings] = field(default_factory=list)
    moving: list[str] = field(default_factory=list)
    others: int = 0
    differing: list[str] = field(default_factory=list)


def exchangeable(part: Part, traced: Traced, most_nodes: int) -> Alike:
    """Trace one module of each set of attributes, and compare its graph with the part's."""
    found = Alike(moving=_moving(part))
    refused: list[Settings] = []
    for place, before in part.settings.items():
        own = {name: text for name, text in before.items() if name not in found.moving}
        module = part.instances[place]
        if own in found.settings:
            continue
        if own not in refused and (module is part.target or _computes(part, module, traced, most_nodes)):
            found.settings.append(own)
        else:
            refused.append(own)
    found.others = len(refused)
    fine = {pair for own in found.settings for pair in own.items()}
    found.differing = sorted({name for own in refused for name, text in own.items() if (name, text) not in fine})
    return found


def _moving(part: Part) -> list[str]:
    """Return the attributes that have changed since the first calls."""
    changed = set()
    for place, before in part.settings.items():
        changed |= {name for name, _ in before.items() ^ settings_of(part.instances[place]).items()}
    return sorted(changed)


def _computes(part: Part, module: torch.nn.Module, traced: Traced, most_nodes: int) -> bool:
    try:
        other = trace(replace(part, target=module), traced.forms, most_nodes)
    except CannotTrace:
        return False
    return _graph(other) == _graph(traced) and all(
        torch.equal(other.state[name], traced.state[name]) for name in traced.constants
    )


def _graph(traced: Traced) -> tuple[Any, ...]:
    shapes = {name: (tensor.shape, tensor.dtype) for name, tensor in traced.state.items()}
    return traced.lines, shapes, traced.constants, traced.kept, traced.output, len(traced.forms)
