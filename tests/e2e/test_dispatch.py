"""Two real kernels, each the faster one on one Workload: the Run answers with both of them in one file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.commands import ROOT, environment

pytestmark = [pytest.mark.timeout(700), pytest.mark.stack]

PROBLEM = '''"""Each row over its root mean square: few long rows, and very many short ones."""
import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "long", "rows": 48, "n": 8192},
    {"name": "short", "rows": 65536, "n": 6},
    {"name": "odd", "rows": 33, "n": 1025, "held_out": True},
]


class Model(nn.Module):
    def __init__(self, eps: float = 1e-6):
        super().__init__()
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + self.eps)


def get_inputs(rows=48, n=8192):
    return [torch.randn(rows, n)]


def get_init_inputs():
    return []
'''

KERNEL = '''import ctypes
import torch
from torch import nn
from warpwright_native import load_cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
BODY
"""

library = load_cpp(SOURCE, flags=["-fno-math-errno"])
library.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_float]
library.run.restype = None


class ModelNew(nn.Module):
    def __init__(self, eps: float = 1e-6):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        y = torch.empty_like(x)
        library.run(x.data_ptr(), y.data_ptr(), x.numel() // x.shape[-1], x.shape[-1], self.eps)
        return y
'''

ROW_BY_ROW = """
extern "C" void run(const float* x, float* y, int64_t rows, int64_t n, float eps) {
  for (int64_t r = 0; r < rows; ++r) {
    float part[64] = {0};
    int64_t j = 0;
    for (; j + 64 <= n; j += 64) for (int k = 0; k < 64; ++k) part[k] += x[r * n + j + k] * x[r * n + j + k];
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += part[k];
    for (; j < n; ++j) sum += x[r * n + j] * x[r * n + j];
    const float scale = 1.0f / std::sqrt(sum / n + eps);
    for (j = 0; j < n; ++j) y[r * n + j] = x[r * n + j] * scale;
  }
}
"""

ROWS_TOGETHER = """
extern "C" void run(const float* x, float* y, int64_t rows, int64_t n, float eps) {
  int64_t r = 0;
  for (; r + 16 <= rows; r += 16) {
    float sum[16] = {0};
    for (int64_t j = 0; j < n; ++j) for (int k = 0; k < 16; ++k) sum[k] += x[(r + k) * n + j] * x[(r + k) * n + j];
    for (int k = 0; k < 16; ++k) sum[k] = 1.0f / std::sqrt(sum[k] / n + eps);
    for (int64_t j = 0; j < n; ++j) for (int k = 0; k < 16; ++k) y[(r + k) * n + j] = x[(r + k) * n + j] * sum[k];
  }
  for (; r < rows; ++r) {
    float sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += x[r * n + j] * x[r * n + j];
    const float scale = 1.0f / std::sqrt(sum / n + eps);
    for (int64_t j = 0; j < n; ++j) y[r * n + j] = x[r * n + j] * scale;
  }
}
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "warpwright", *arguments]
    set_here = {**environment(folder / "data"), "WARPWRIGHT_REPLAY_DIR": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=set_here, cwd=folder, check=False)


@pytest.mark.soak
def test_two_kernels_that_win_on_different_workloads_become_one_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "rows.py").write_text(PROBLEM, encoding="utf-8")
    sources = [KERNEL.replace("BODY", body) for body in (ROW_BY_ROW, ROWS_TOGETHER)]
    lines = "".join(json.dumps({"source": source}) + "\n" for source in sources)
    (tmp_path / "two.jsonl").write_text(lines, encoding="utf-8")
    best = tmp_path / "best.py"
    limits = ("--candidates", "3", "--device", "cpu", "--json")
    made = run(tmp_path, "optimize", "rows.py", "--proposer", "replay:two.jsonl", *limits, "-o", str(best))
    assert made.returncode in (0, 4), made.stderr
    assert json.loads(made.stdout)["run"]["status"] == "finished"
    text = best.read_text(encoding="utf-8")
    assert "proposed by dispatch" in text, text[:3000]
    assert "_MEASURED = {" in text
    check = subprocess.run(
        [sys.executable, str(best), "--check"], capture_output=True, text=True, timeout=120, check=False, cwd=ROOT
    )
    assert check.returncode == 0, check.stdout + check.stderr
