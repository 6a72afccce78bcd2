"""Small problems with kernels, exported as files: their calls are mostly overhead."""

from __future__ import annotations

from dataclasses import replace

from evaluator.problem import read_problem
from evaluator.types import Candidate, DeviceKind, Language, WorkloadFacts
from service.exports import Export
from tests.take_home.exports import taken

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


def exports(kind: DeviceKind) -> dict[str, Export]:
    """Return the kernels of a device by what they are: one module, and one with three modules inside."""
    flat, language = (SCALE_CPP, Language.CPP) if kind is DeviceKind.CPU else (SCALE_TRITON, Language.TRITON)
    return {
        "flat": _export(kind, flat, language),
        "nested": replace(taken("nested_modules").export, device_kind=kind),
    }


def _export(kind: DeviceKind, source: str, language: Language) -> Export:
    fact = WorkloadFacts(
        workload="w",
        inputs=("float32 [8, 64]",),
        outputs=(),
        bytes_moved=0,
        constructor={"list": [64]},
        arguments={"list": [{"tensor": 0}]},
    )
    return Export(
        problem=read_problem(SCALE, "bench"),
        candidate=Candidate(source=source, language=language),
        candidate_id="cand_bench",
        device_kind=kind,
        evaluation=None,
        confirmed=False,
        facts=(fact,),
        dated="2026-11-26T00:00:00Z",
        proposed_by="hand",
    )
