"""bias_act | original | one pass, four elements at a time | PASSED | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
#include <cmath>
static inline float silu(float v) { return v / (1.0f + std::exp(-v)); }
extern "C" void act(const float* x, const float* mean, const float* scale, const float* bias, float* y, long rows, long n) {
  for (long r = 0; r < rows; r++) {
    long i = 0;
    for (; i + 4 <= n; i += 4)
      for (long j = i; j < i + 4; j++) y[r * n + j] = silu((x[r * n + j] - mean[j]) * scale[j] + bias[j]);
    for (; i < n; i++) y[r * n + i] = silu((x[r * n + i] - mean[i]) * scale[i] + bias[i]);
  }
}
"""
lib = load_cpp(SOURCE)
pointer = ctypes.c_void_p
long = ctypes.c_long


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.linspace(-1, 1, channels))
        self.register_buffer("scale", torch.linspace(0.5, 2, channels))

    def forward(self, x):
        y = torch.empty_like(x)
        n = x.shape[-1]
        where = [pointer(t.data_ptr()) for t in (x, self.mean, self.scale, self.bias, y)]
        lib.act(*where, long(x.numel() // n), long(n))
        return y
