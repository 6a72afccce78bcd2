"""Write texts like those of people and models: kernels of a few hundred bytes to a few KB, prompts, references."""

from __future__ import annotations

import random

LANGUAGES = ("triton", "triton", "cuda", "cpp", "torch")
_NAMES = ("x", "y", "weight", "bias", "row", "col", "acc", "mask", "offsets", "scale", "m_new", "l_i", "tile", "idx")
_LINES = {
    "triton": (
        "    {a} = tl.load({b}_ptr + {c} * stride_{a} + tl.arange(0, BLOCK_{n}), mask={c} < n_{b}, other=0.0)",
        "    {a} = {b} * tl.exp({c} - {a}[:, None]) / {n}.0",
        "    {a} += tl.sum({b} * {c}.to(tl.float32), axis=0)",
        "    tl.store({a}_ptr + {b} * {n} + tl.arange(0, BLOCK_{n}), {c}.to({a}_ptr.dtype.element_ty))",
        "    {a} = tl.maximum({b}, tl.max({c}, axis=1))  # {n} rows at a time",
        "    for {a} in range(0, n_{b}, {n}):",
    ),
    "cuda": (
        "  float {a} = __shfl_xor_sync(0xffffffff, {b}, {n});",
        "  for (int {a} = threadIdx.x; {a} < n_{b}; {a} += blockDim.x * {n}) {{ {c} += {b}[{a}]; }}",
        "  __shared__ float {a}_tile[{n}][33]; const float4 {b}4 = reinterpret_cast<const float4*>({c})[{a}];",
        "  if (threadIdx.x < {n}) {a}[blockIdx.x * {n} + threadIdx.x] = __fdividef({b}, {c});",
    ),
    "cpp": (
        "  for (long {a} = 0; {a} < n_{b}; {a} += {n}) {{ {c} += {b}[{a}] * {b}[{a}]; }}",
        "#pragma omp simd reduction(+:{a})",
        "  const float {a} = 1.0f / std::sqrt({b} / {n} + 1e-6f); /* {c} */",
    ),
    "torch": (
        "        {a} = torch.addcmul({b}, {c}, {a}, value={n})",
        "        {a} = ({b} * {c}).sum(-1, keepdim=True) / {n}",
    ),
}


class Writer:
    """Writes sources: each is one of a fixed pool of bodies with a head of its own."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._bodies = {language: [self._body(language) for _ in range(400)] for language in _LINES}

    def source(self, language: str, number: int) -> str:
        """Return one Candidate's source; no two are the same."""
        body = self._bodies[language][int(self._rng.random() * 400)]
        return (
            f"# design {number} of {self._rng.getrandbits(48):012x}\nimport torch\n\nBLOCK = {1 << number % 11}\n{body}"
        )

    def _body(self, language: str) -> str:
        lines = min(90, max(4, int(self._rng.lognormvariate(2.3, 0.8))))
        found = [
            self._rng.choice(_LINES[language]).format(
                a=self._rng.choice(_NAMES),
                b=self._rng.choice(_NAMES),
                c=self._rng.choice(_NAMES),
                n=self._rng.randrange(1, 4096),
            )
            for _ in range(lines)
        ]
        return "\n".join([*found, "", "class ModelNew(torch.nn.Module):", "    def forward(self, x): ...", ""])


def prompt(rng: random.Random) -> str:
    """Return a model's prompt of a couple of KB."""
    words = [
        rng.choice(("the", "kernel", "rows", "load", "store", "memory", "speedup", "tile", "is", "wide"))
        for _ in range(350)
    ]
    return "You write fast GPU kernels.\n" + " ".join(words)


EXPRESSIONS = {
    "softmax": "torch.softmax({x}, -1)",
    "rmsnorm": "torch.rms_norm({x}, ({x}).shape[-1:])",
    "layernorm": "torch.layer_norm({x}, ({x}).shape[-1:])",
    "gelu": "torch.nn.functional.gelu({x})",
    "attention": "torch.nn.functional.scaled_dot_product_attention({x}, {x}, {x})",
    "rope": "torch.cat((-{x}, {x}), -1) * 0.5",
    "swiglu": "torch.sigmoid({x}) * {x}",
    "cross entropy": "torch.nn.functional.cross_entropy({x}, torch.zeros_like({x}))",
    "gather": "torch.gather({x}, 1, torch.zeros_like({x}, dtype=torch.int64))",
    "topk": "torch.topk({x}, 4).values",
}
"""The operation of each Problem's name."""


def reference(name: str, number: int) -> str:
    """Return a Problem's reference: `name` is one of EXPRESSIONS and a number."""
    expression = EXPRESSIONS[name.rpartition(" ")[0]].format(x=f"x * {number + 1}.0")
    return f'''"""{name}: problem {number} of the benchmark."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return {expression}


def get_inputs(rows=4):
    return [torch.randn(rows, {64 + number % 7})]
'''
