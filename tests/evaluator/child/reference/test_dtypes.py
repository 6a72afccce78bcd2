"""Code that runs in float64 reads the dtypes of the reference's own run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from evaluator.child.reference.dtypes import DtypeReplay
from evaluator.child.reference.float64 import Float64Mode, in_float64

HALF = torch.float16


class _Model(torch.nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function
        self.calls = 0
        self.seen: torch.Tensor
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.seen += 1
        return self.function(*tensors)


def _told(model: _Model, dtypes: DtypeReplay, *tensors: torch.Tensor) -> Any:
    def call(given: Any) -> torch.Tensor:
        found: torch.Tensor = model(*given)
        return found

    with torch.no_grad():
        replayed = dtypes.replay(model, call, tensors)
        with in_float64(Float64Mode({})), replayed:
            return call(tensors)


def _clamped(x: torch.Tensor) -> torch.Tensor:
    h = x + x
    return h.clamp(max=60000) if h.dtype == HALF else h


def _one_after_the_other(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([torch.as_tensor(torch.finfo((x * 1).to(kind).dtype).bits) for kind in (HALF, torch.float32)])


def _asked_more_often_in_its_own(x: torch.Tensor) -> torch.Tensor:
    h = x * 4
    if h.isinf().any():  # not in float64
        assert h.dtype == HALF
    return torch.as_tensor(torch.finfo(h.dtype).max)


def _of_two(x: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(torch.finfo(torch.result_type(x * 1, x.float() * 1)).eps)


@pytest.mark.parametrize(
    ("function", "right"),
    [
        (_clamped, [60000.0]),
        (_one_after_the_other, [16, 32]),
        (_asked_more_often_in_its_own, 65504.0),
        (_of_two, torch.finfo(torch.float32).eps),
        (lambda x: (x / 3).to((x * 1).dtype) * 3, [40000.0]),  # in float64 all the same
    ],
)
def test_a_reference_reads_the_dtypes_of_its_own_precision(
    function: Callable[..., torch.Tensor], right: object
) -> None:
    found = _told(_Model(function), DtypeReplay(), torch.tensor([40000.0], dtype=HALF))
    assert torch.equal(found.double(), torch.tensor(right, dtype=torch.float64))


def test_a_recording_run_restores_buffers_and_happens_once_where_no_dtype_is_read() -> None:
    dtypes, x = DtypeReplay(), torch.ones(2)
    model = _Model(lambda x: x.mul_(2).to(x.dtype))  # of an input, which keeps it
    _told(model, dtypes, x)
    assert (model.calls, model.seen.item(), x.tolist()) == (2, 0.0, [1.0, 1.0])
    _told(model, dtypes, x)
    assert model.calls == 3


def test_a_recording_run_that_fails_is_ignored() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        h = x + 1
        if not model.calls % 2:
            return torch.as_tensor(torch.finfo(h.dtype).bits)
        raise ValueError

    model = _Model(function)
    assert int(_told(model, DtypeReplay(), torch.ones(1))) == 64
