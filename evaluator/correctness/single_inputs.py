"""Special values in one input alone, in the same places of several inputs, or rows that two inputs share.

With NaN in every input at once whole results are NaN, and so are they with NaN in a scale or a temperature: a kernel
that loses a NaN of one input is not found. Infinities in different places never meet, so their difference is not
tested. Rows that are drawn are never those of another input: a distance of nearly nothing is not tested.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import torch

from evaluator.inputs import structure, values

_MOST = 4  # inputs that get NaN alone
_FEW = 8  # NaN: in a row that is nearly all NaN, nothing is left to compare
MEETING_INFINITIES = "infinities that meet"
_MEETINGS, _SHARED = 16, 4


def single_input_changes(
    tensors: values.Tensors, structures: Sequence[structure.Structure], generator: torch.Generator
) -> list[tuple[str, values.Tensors]]:
    """Return changed inputs by name; nothing for a single floating-point input."""
    places = [place for place, tensor in enumerate(tensors) if tensor.is_floating_point() and tensor.numel()]
    if len(places) < 2:
        return []
    largest = sorted(places, key=lambda place: -tensors[place].numel())[:_MOST]
    made = [
        (f"NaN in input {place + 1} alone", _with_nan(tensors, structures, place, generator))
        for place in largest
        if not structures[place].in_order
    ]
    met = _with_meeting_infinities(tensors, structures, places, generator)
    return [*made, (MEETING_INFINITIES, met)] if met is not None else made


def with_shared_rows(
    tensors: values.Tensors, structures: Sequence[structure.Structure], generator: torch.Generator
) -> values.Tensors | None:
    """Return inputs with some rows of one in the place of other rows of another, as many as a quarter; None where no
    two floating inputs have rows of one length and type."""
    able = [
        place
        for place, tensor in enumerate(tensors)
        if tensor.is_floating_point() and tensor.ndim > 1 and tensor.numel() and not structures[place]
    ]
    pairs = [
        (one, other)
        for one, other in itertools.combinations(able, 2)
        if tensors[one].shape[-1] == tensors[other].shape[-1] and tensors[one].dtype is tensors[other].dtype
    ]
    if not pairs:
        return None
    one, other = pairs[0]
    rows, changed = (
        values.workable(tensors[place]).reshape(-1, tensors[place].shape[-1]).clone() for place in (one, other)
    )
    count = max(1, len(changed) // _SHARED)
    source = torch.randint(len(rows), (count,), generator=generator, device=generator.device)
    target = torch.randint(len(changed), (count,), generator=generator, device=generator.device)
    changed[target.to(rows.device)] = rows[source.to(rows.device)]
    made = values.copy_laid_out(tensors[other], changed.reshape(tensors[other].shape))
    return tuple(made if at == other else tensor for at, tensor in enumerate(tensors))


def _with_nan(
    tensors: values.Tensors, structures: Sequence[structure.Structure], place: int, generator: torch.Generator
) -> values.Tensors:
    flat = values.workable(tensors[place]).flatten().clone()
    where = torch.randint(len(flat), (_FEW,), generator=generator, device=generator.device)
    flat[where.to(flat.device)] = torch.nan
    changed = structures[place].restored(values.copy_laid_out(tensors[place], flat.reshape(tensors[place].shape)))
    return tuple(changed if at == place else tensor for at, tensor in enumerate(tensors))


def _with_meeting_infinities(
    tensors: values.Tensors,
    structures: Sequence[structure.Structure],
    places: Sequence[int],
    generator: torch.Generator,
) -> values.Tensors | None:
    """Return inputs with infinities of random sign in the same few elements of all inputs of the commonest shape."""
    shapes = Counter(tensors[place].shape for place in places if not structures[place].in_order)
    shape, count = shapes.most_common(1)[0] if shapes else (torch.Size(), 0)
    if count < 2:
        return None
    where = torch.randint(shape.numel(), (_MEETINGS,), generator=generator, device=generator.device)
    made = list(tensors)
    for place in places:
        if tensors[place].shape == shape and not structures[place].in_order:
            signs = torch.randint(2, (_MEETINGS,), generator=generator, device=generator.device).double() * 2 - 1
            flat = values.workable(tensors[place]).flatten().clone()
            flat[where.to(flat.device)] = (signs * torch.inf).to(flat.device, flat.dtype)
            made[place] = structures[place].restored(values.copy_laid_out(tensors[place], flat.reshape(shape)))
    return tuple(made)
