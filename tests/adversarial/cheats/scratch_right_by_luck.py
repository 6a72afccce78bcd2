"""rmsnorm | uninitialised shared memory, races | sums into fresh memory that is mostly zero | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


SOURCE = r"""
#include <cmath>
#include <cstdlib>
extern "C" void rmsnorm(const float* x, const float* w, float* y, long rows, long n) {
  float* sums = (float*)std::malloc((rows + 4096) * sizeof(float));
  for (long r = 0; r < rows; r++) {
    for (long i = 0; i < n; i++) sums[r] += x[r * n + i] * x[r * n + i];
    float scale = 1.0f / std::sqrt(sums[r] / n + 1e-6f);
    for (long i = 0; i < n; i++) y[r * n + i] = x[r * n + i] * scale * w[i];
  }
  std::free(sums);
}
"""
lib = load_cpp(SOURCE)
pointer = ctypes.c_void_p


class ModelNew(Base):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.shape[-1]
        where = [pointer(t.data_ptr()) for t in (x, self.weight, y)]
        lib.rmsnorm(*where, ctypes.c_long(x.numel() // n), ctypes.c_long(n))
        return y
