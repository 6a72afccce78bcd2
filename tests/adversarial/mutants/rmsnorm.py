"""rmsnorm | original | lanes of sixteen, then a tail | PASSED | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
#include <cmath>
extern "C" void rmsnorm(const float* x, const float* w, float* y, long rows, long n, float eps) {
  for (long r = 0; r < rows; r++) {
    const float* p = x + r * n;
    float* q = y + r * n;
    float lanes[16] = {0};
    long i = 0;
    for (; i + 16 <= n; i += 16)
      for (long j = 0; j < 16; j++) lanes[j] += p[i + j] * p[i + j];
    float sum = 0;
    for (long j = 0; j < 16; j++) sum += lanes[j];
    for (; i < n; i++) sum += p[i] * p[i];
    float scale = 1.0f / std::sqrt(sum / n + eps);
    for (long j = 0; j < n; j++) q[j] = p[j] * scale * w[j];
  }
}
"""
lib = load_cpp(SOURCE)
pointer = ctypes.c_void_p
long = ctypes.c_long


class ModelNew(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x):
        y = torch.empty_like(x)
        n = x.shape[-1]
        where = [pointer(t.data_ptr()) for t in (x, self.weight, y)]
        lib.rmsnorm(*where, long(x.numel() // n), long(n), ctypes.c_float(self.eps))
        return y
