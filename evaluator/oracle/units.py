"""The unit of rounding of sums: float64's where the numbers are float64, else float32's, in which half precisions add
up, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch

from evaluator.subject import Result

FLOAT64 = torch.finfo(torch.float64).eps
FLOAT32 = torch.finfo(torch.float32).eps
_WIDE = (torch.float64, torch.complex128)


def units_of(given: Iterable[torch.Tensor], outputs: Sequence[torch.Tensor]) -> list[float]:
    """Return the unit for each output of a call, from what the call is `given`.

    Where that has several precisions (a scale of float64 beside a tensor of float32), an output's own precision
    tells.
    """
    wide = {tensor.dtype in _WIDE for tensor in given if _is_real(tensor)}
    if len(wide) < 2:
        return [FLOAT64 if True in wide else FLOAT32] * len(outputs)
    own = [tensor.dtype in _WIDE if _is_real(tensor) else None for tensor in outputs]
    rest = True not in own and False in own
    return [FLOAT32 if of is False or (of is None and rest) else FLOAT64 for of in own]


def merged(runs: Mapping[float, Sequence[Result]], units: Sequence[float]) -> list[Result]:
    """Return results with each output from the run of its own unit."""
    if len(runs) == 1:
        return list(*runs.values())
    structures = [structure for structure, _ in next(iter(runs.values()))]
    return [
        (structure, [runs[unit][index][1][place] for place, unit in enumerate(units)])
        for index, structure in enumerate(structures)
    ]


def _is_real(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
