"""Find dimensions of the inputs that no size names, and that the reference accepts in another length.

For a `general` domain: a recipe such as `return [torch.randn(256, 2048)]` names nothing, and a kernel has to work for
other shapes all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from evaluator.child.protocol.layout import LayoutError
from evaluator.child.reference.resizing import DIMENSION, WITH_ARGUMENTS
from evaluator.errors import ChildError, ChildFault, UnsupportedCase
from evaluator.inputs.sizes import smallest, with_all_sizes
from evaluator.oracle.oracle import Oracle
from evaluator.subject import Subject
from evaluator.types import Domain, Problem, Workload

_MOST_DIMENSIONS = 6
_DRAW_S = 10.0


def find_dimensions(
    problem: Problem, workloads: Sequence[Workload], reference: Subject, generator: torch.Generator
) -> Mapping[str, int]:
    """Return the usual lengths by the names that `child.reference.resizing` gives them. Raise UnsupportedCase where the
    reference does not survive another length."""
    if reference.dimensions is None:
        shown = [one for one in with_all_sizes(problem, workloads) if not one.held_out]
        general = problem.domain is Domain.GENERAL and shown
        reference.dimensions = _accepted(problem, reference, smallest(shown).sizes, generator) if general else {}
    return reference.dimensions


def _accepted(
    problem: Problem, reference: Subject, sizes: Mapping[str, Any], generator: torch.Generator
) -> dict[str, int]:
    found = {}
    for length in _unnamed_lengths(reference, sizes)[:_MOST_DIMENSIONS]:
        tried = ((prefix, other) for prefix in (DIMENSION, WITH_ARGUMENTS) for other in _others(length))
        accepted = (
            f"{prefix}{length}"
            for prefix, other in tried
            if _accepts(problem, reference, {**sizes, f"{prefix}{length}": other}, generator)
        )
        if name := next(accepted, ""):
            found[name] = length
    return found


def _unnamed_lengths(reference: Subject, sizes: Mapping[str, Any]) -> list[int]:
    """Return the lengths, largest first, of the axes that no size is the length of: also where one follows from a size,
    as from a number of heads, since a kernel may rely on what they have in common."""
    usual = _shapes(reference, sizes)
    unnamed = {(place, axis) for place, shape in enumerate(usual) for axis, length in enumerate(shape) if length > 1}
    for name, value in sizes.items():
        for other in _others(value) if type(value) is int else ():
            changed = _shapes(reference, {**sizes, name: other})
            if [len(shape) for shape in changed] == [len(shape) for shape in usual]:
                unnamed -= {(at, axis) for at, axis in unnamed if changed[at][axis] != usual[at][axis] == value}
                break
    return sorted({usual[place][axis] for place, axis in unnamed}, reverse=True)


def _others(length: int) -> Iterator[int]:
    """Yield other lengths, at first those that a reference accepts if it accepts any."""
    yield length + 1
    yield 2 * length
    if length > 1:
        yield length - 1


def _shapes(reference: Subject, sizes: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Return the shapes of the inputs, none where the recipe does not take these sizes."""
    try:
        drawn = reference.drawn_layouts(sizes, [0], limit_s=_DRAW_S)
    except (ChildError, LayoutError):
        return []
    return [spec.shape for spec in drawn[0]]


def _accepts(problem: Problem, reference: Subject, sizes: Mapping[str, Any], generator: torch.Generator) -> bool:
    label = ", ".join(f"{name}={value}" for name, value in sizes.items())
    if label in reference.left_out:
        return False
    try:
        oracle = Oracle(problem, reference, sizes, generator)
        made = oracle.inputs()
        return oracle.try_calls(made.tree, [made.tensors]) is not None
    except ChildFault as fault:
        if not isinstance(fault, ChildError) or fault.loses_device:
            raise UnsupportedCase(label, fault) from fault
        return False
    except LayoutError:
        return False
