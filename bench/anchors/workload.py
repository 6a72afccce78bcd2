"""A row's reference, its inputs, and the comparison of answers with float64."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from bench.anchors.rows import Row
from bench.synthesis import module_from_file
from tests.synthesis import checking

FP8 = torch.float8_e4m3fn
NORM_LIMITS = {torch.float32: 1e-4, torch.bfloat16: 1e-2, torch.float16: 5e-3, FP8: 2e-2}
TF32_LIMIT = 3e-3  # convolutions, as torch ships them
Call = Callable[..., Any]


class Wrong(Exception):
    """An answer that is too far from float64."""


class Workload:
    """The reference with random parameters, its inputs, and what it should answer."""

    def __init__(self, row: Row, device: str, *, small: bool = False) -> None:
        self.row = row
        self.device = device
        self.source = row.path.read_text(encoding="utf-8")
        self.reference = module_from_file(self.source)
        self.sizes = {} if small else row.sizes
        recipe = getattr(self.reference, "get_init_inputs", None)
        self.init: list[Any] = recipe(**checking.pick(recipe, self.sizes)) if recipe else []
        torch.manual_seed(0)
        self.model = self.construct(self.reference.Model)
        for parameter in self.model.parameters():
            if parameter.dim() == 1:  # norms begin with ones and zeros, which hide what is left out
                torch.nn.init.normal_(parameter, 0.5, 0.5)
        self.inputs = self.draw()

    def construct(self, kind: Any) -> torch.nn.Module:
        with torch.device(self.device):
            made: torch.nn.Module = kind(*self.init)
        return made.eval()

    def draw(self, device: str | None = None) -> list[Any]:
        recipe = self.reference.get_inputs
        with torch.device(device or self.device):
            made: list[Any] = recipe(**checking.pick(recipe, self.sizes))
        return made

    def with_state(self, kind: Any, state: dict[str, torch.Tensor]) -> torch.nn.Module:
        """Return a module of `kind` that uses the tensors of `state` themselves."""
        made = self.construct(kind)
        made.load_state_dict(state, assign=True)
        return made

    def again(self) -> torch.nn.Module:
        """Return the same model from another copy of its code, so that what is compiled of it stays apart."""
        state = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        return self.with_state(module_from_file(self.source).Model, {k: t.data for k, t in state.items()})

    @property
    def bytes(self) -> int:
        """Bytes of parameters, inputs and results."""
        with torch.no_grad():
            results = checking.flat(self.model(*self.inputs))
        tensors = [*self.model.parameters(), *self.model.buffers(), *results]
        return sum(t.nbytes for t in (*tensors, *(i for i in self.inputs if isinstance(i, torch.Tensor))))

    def oracle(self) -> Oracle:
        return Oracle(self)


class Oracle:
    """The answers of the reference: as it is, and in float64."""

    def __init__(self, workload: Workload) -> None:
        self.by_value = "argmax" in workload.row.name
        self.tf32 = workload.row.name.startswith(("kb/conv", "kb/lstm"))  # cuDNN may use it, as torch ships it
        self.inputs = workload.inputs
        self.narrow = max(
            (NORM_LIMITS.get(i.dtype, 0.0) for i in self.inputs if isinstance(i, torch.Tensor)), default=0.0
        )
        with torch.no_grad():
            self.eager = checking.flat(workload.model(*self.inputs))
            wide = copy.deepcopy(workload.model).double()
            with checking.Lifted():
                self.wide = checking.flat(wide(*(checking.widened(i) for i in self.inputs)))

    def check(self, answers: Any, *, strict: bool) -> float:
        """Return the relative error in norm. Raise Wrong.

        `strict` compares element by element with a few times the reference's own error, as for our Candidates.
        """
        got = checking.flat(answers)
        if len(got) != len(self.eager):
            raise Wrong(f"{len(got)} results for {len(self.eager)}")
        return max(self._check(*three, strict=strict) for three in zip(got, self.eager, self.wide, strict=True))

    def _check(self, got: torch.Tensor, eager: torch.Tensor, wide: torch.Tensor, *, strict: bool) -> float:
        if got.shape != eager.shape and got.numel() == eager.numel() and not strict:
            got = got.view(eager.shape)
        if got.shape != eager.shape or (strict and got.dtype != eager.dtype):
            raise Wrong(f"{got.dtype} {tuple(got.shape)} for {eager.dtype} {tuple(eager.shape)}")
        if not got.is_floating_point():
            return self._positions(got, eager)
        error = (got.to(torch.float64) - wide.to(torch.float64)).norm() / wide.to(torch.float64).norm().clamp_min(1e-30)
        limit = max(TF32_LIMIT if self.tf32 else 0.0, self.narrow, NORM_LIMITS[eager.dtype])
        if not error <= limit:
            raise Wrong(f"relative error {error:.2e}, allowed {limit:.0e}")
        if strict:
            try:
                checking.compare(got, eager, wide)
            except AssertionError as found:
                raise Wrong(str(found)[:200]) from found
        return float(error)

    def _positions(self, got: torch.Tensor, eager: torch.Tensor) -> float:
        if self.by_value:
            rows = self.inputs[0]
            same = bool((rows.gather(1, got.unsqueeze(1)) == rows.gather(1, eager.unsqueeze(1))).all())
        else:
            same = torch.equal(got, eager)
        if not same:
            raise Wrong("other integers")
        return 0.0
