"""How code that people have becomes a problem file for `warpwright.optimize`: its names, classes, calls and state."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import warpwright
from tests.warpwright.fake_api import FakeApi
from warpwright.library.errors import NotPortable
from warpwright.library.loading import kernel_path
from warpwright.library.problems import Portable, arguments_of, bind, portable, signature_of
from warpwright.library.verifying import verify

X = torch.randn(6, 16)


def problem_of(target: Callable[..., Any], inputs: Any) -> Portable:
    args, kwargs = arguments_of(inputs)
    return verify(portable(target, bind(signature_of(target), args, kwargs)), target)


def by_place(x: torch.Tensor, power: float, /, w: torch.Tensor, *, bias: float = 0.0) -> torch.Tensor:
    return x**power * w + bias


def scale(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return x * scale


def first_is_self(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return self * other


def small_float(x: torch.Tensor) -> torch.Tensor:
    return x.float() * 2


def imports_within(x: torch.Tensor) -> torch.Tensor:
    import math as mathematics

    from torch.nn import functional

    return functional.silu(x) * mathematics.pi


def binds_names(x: torch.Tensor) -> torch.Tensor:
    class Gain:
        value = 2.0

    try:
        y = x * Gain.value
    except RuntimeError as error:
        raise error
    match x.shape:
        case (rows, *rest):
            return y * rows * len(rest)
    return y


EPS = 1e-5


def with_default(x: torch.Tensor, eps: float = EPS, *, dim: int | None = -1) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(dim, keepdim=True) + eps)


def scaled_by() -> list[Callable[..., Any]]:
    made: list[Callable[..., Any]] = []
    for factor in (2.0, 3.0):

        def scaled(x: torch.Tensor, factor: float = factor) -> torch.Tensor:
            return x * factor

        made.append(scaled)
    return made


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.gain = nn.Linear(16, 16), 2.0

    def mixed(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.gain

    def after(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.gain


class Derived(Base):
    """Has the methods of its base, one of them by `super()`."""

    def after(self, x: torch.Tensor) -> torch.Tensor:
        return super().after(x) * 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.after(self.mixed(x))


class Further(Derived):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + super().mixed(x)


class Both(nn.Module):
    """Needs other methods of the same base in each part."""

    def __init__(self) -> None:
        super().__init__()
        self.derived, self.further = Derived(), Further()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.further(self.derived(x))


class Doubling:
    def doubled(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Mixed(Doubling, nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.doubled(x)


class Float32Norm(nn.LayerNorm):
    """Needs attributes that only the code of torch reads."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(input.float()).to(input.dtype)


class Named(nn.Module):
    """Takes a tensor by name alone."""

    def forward(self, x: torch.Tensor, *, gate: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(gate)


@pytest.mark.parametrize(
    ("target", "inputs"),
    [
        (by_place, (X, 2.0, X)),
        (by_place, ((X, 2.0), {"w": X, "bias": 1.0})),
        (scale, (X, X)),
        (first_is_self, (X, X)),
        (small_float, X.to(torch.float8_e4m3fn)),
        (imports_within, X),
        (binds_names, X),
        (scaled_by()[0], X),
        (Derived(), X),
        (Further(), X),
        (Both(), X),
        (Mixed(), X),
        (Float32Norm(16), X),
        (Named(), ((X,), {"gate": X})),
    ],
)
def test_code_as_people_write_it_becomes_a_file_that_answers_alike(target: Callable[..., Any], inputs: Any) -> None:
    """The file is run beside the original while it is made."""
    assert "class Model(" in problem_of(target, inputs).source


def test_defaults_are_those_of_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name that a default was written with has another value now, by less than a comparison sees."""
    monkeypatch.setattr("tests.warpwright.test_library_code.EPS", 1e-6)
    problem = problem_of(with_default, X)
    assert "def with_default(x, eps=1e-05, *, dim=-1)" in problem.source
    assert problem.baked == ()


def imports_foreign(x: torch.Tensor) -> torch.Tensor:
    import numpy as np

    return x * float(np.sqrt(2.0))


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self.act = nn.ReLU()
        self.act.register_forward_hook(lambda module, args, output: self.seen.append(output))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.act(x)
        return made


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (imports_foreign, "'imports_foreign' imports 'numpy', which the judge does not have"),
        (Hooked(), "act has a forward hook, which a kernel does not call"),
    ],
)
def test_what_a_kernel_would_lose_is_refused_by_name(target: Callable[..., Any], words: str) -> None:
    with pytest.raises(NotPortable, match=words):
        problem_of(target, X)


def test_a_compiled_module_is_refused() -> None:
    compiled = torch.compile(Derived(), backend="eager")  # here: to import its compiler takes most of a second
    with pytest.raises(NotPortable, match=r"the module is compiled: give the one that torch\.compile was given"):
        problem_of(compiled, X)


class Counting(nn.Module):
    """Changes a buffer in place, replaces another, and returns one."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(16))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.calls = self.calls + 1
        self.total.add_(x.sum(0))
        return x * self.calls, self.total


def test_trying_a_module_leaves_its_buffers_as_they_were() -> None:
    """Both calls, of the original and of the file, begin with the same values."""
    module = Counting()
    total = module.total
    problem_of(module, X)
    assert module.total is total
    assert not module.total.any()
    assert math.isclose(float(module.calls), 0.0)


ZEROS = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
"""
NAMED = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x, gate):
        return torch.zeros_like(x)
"""


def test_a_module_that_takes_tensors_by_name_alone_is_called_so(api: FakeApi) -> None:
    api.kernel, module = NAMED, Named().eval()
    fast = warpwright.optimize(module, ((X,), {"gate": X}), seconds=5, server=api.url, quiet=True)
    assert not fast(X, gate=X).any()


def test_settings_that_the_judge_does_not_have_are_refused(api: FakeApi) -> None:
    """Under them the same code computes something else: nothing is searched for, and nothing is paid."""

    def refused(words: str) -> None:
        with pytest.warns(warpwright.OptimizeWarning, match=words):
            assert warpwright.optimize(scale, (X, X), seconds=5, server=api.url, quiet=True) is scale
        assert api.bodies == []

    with torch.autocast("cpu", dtype=torch.bfloat16):
        refused("called under torch.autocast")
    torch.set_default_dtype(torch.bfloat16)
    try:
        refused("the default dtype is torch.bfloat16")
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_decorator_can_be_compiled_and_exported(tmp_path: Path) -> None:
    """Nothing is looked up meanwhile, when tensors have no values; a champion that is known already is used."""
    compiling = {"fullgraph": True, "backend": "eager"}
    decorated = warpwright.kernel(with_default, data=tmp_path)

    class Part(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return decorated(x)  # type: ignore[no-any-return]  # as the function, which a module's attribute hides

    with warnings.catch_warnings():
        warnings.simplefilter("error", warpwright.OptimizeWarning)
        torch.testing.assert_close(torch.compile(decorated, **compiling)(X), with_default(X))
        torch.testing.assert_close(torch.export.export(Part(), (X,)).module()(X), with_default(X))
    key = portable(with_default, bind(signature_of(with_default), (X,), {})).key
    kernel_path(key, "cpu", tmp_path).parent.mkdir()
    kernel_path(key, "cpu", tmp_path).write_text(ZEROS, encoding="utf-8")
    assert not decorated(X).any()
    torch.compiler.reset()
    assert not torch.compile(decorated, **compiling)(X).any()
