"""Small problems with kernels, exported as files: their calls are mostly overhead."""

from __future__ import annotations

from evaluator.problem import read_problem
from evaluator.types import Candidate, DeviceKind, Language, WorkloadFacts
from service.exports import Export

SCALE = """import torch

WORKLOADS = [{"name": "w", "rows": 8, "columns": 64}]


class Model(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        return x * self.scale + 1.0


def get_inputs(rows=8, columns=64):
    return [torch.randn(rows, columns)]


def get_init_inputs(columns=64):
    return [columns]
"""
SCALE_CPP = '''import ctypes
import torch
from warpwright_native import load_cpp

lib = load_cpp(r"""
extern "C" void run(const float* x, const float* s, float* out, long rows, long columns) {
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < columns; j++) out[i * columns + j] = x[i * columns + j] * s[j] + 1;
}
""")
lib.run.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long] * 2


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        out = torch.empty_like(x)
        lib.run(x.data_ptr(), self.scale.data_ptr(), out.data_ptr(), *x.shape)
        return out
'''
SCALE_TRITON = """import torch
import triton
import triton.language as tl


@triton.jit
def scaled(x, s, out, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * columns + at
    value = tl.load(x + row, at < columns) * tl.load(s + at, at < columns) + 1
    tl.store(out + row, value, at < columns)


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        out = torch.empty_like(x)
        scaled[(x.shape[0],)](x, self.scale, out, x.shape[1], BLOCK=64)
        return out
"""
NESTED = """import torch

WORKLOADS = [{"name": "w", "rows": 4, "width": 16}]


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 2 * width)
        self.down = torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def get_inputs(rows=4, width=16):
    return [torch.randn(rows, width)]


def get_init_inputs(width=16):
    return [width]
"""
NESTED_TORCH = NESTED.replace("class Model(", "class ModelNew(").partition("\n\ndef get_inputs")[0]


def exports(kind: DeviceKind) -> dict[str, Export]:
    """Return the kernels of a device by what they are: one module, and one with three modules inside."""
    flat, language = (SCALE_CPP, Language.CPP) if kind is DeviceKind.CPU else (SCALE_TRITON, Language.TRITON)
    return {
        "flat": _export(kind, SCALE, flat, language, shape="[8, 64]", size=64),
        "nested": _export(kind, NESTED, NESTED_TORCH, Language.TORCH, shape="[4, 16]", size=16),
    }


def _export(kind: DeviceKind, problem: str, source: str, language: Language, *, shape: str, size: int) -> Export:
    fact = WorkloadFacts(
        workload="w",
        inputs=(f"float32 {shape}",),
        outputs=(),
        bytes_moved=0,
        constructor={"list": [size]},
        arguments={"list": [{"tensor": 0}]},
    )
    return Export(
        problem=read_problem(problem, "bench"),
        candidate=Candidate(source=source, language=language),
        candidate_id="cand_bench",
        device_kind=kind,
        evaluation=None,
        confirmed=False,
        facts=(fact,),
        dated="2026-11-26T00:00:00Z",
        proposed_by="hand",
    )
