"""gelu | original | chunks of four thousand and ninety-six elements | PASSED | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
#include <algorithm>
#include <cmath>
static inline float gelu(float v) { return 0.5f * v * (1.0f + std::erf(v * 0.70710678118654752f)); }
extern "C" void pointwise(const float* x, float* y, long n) {
  for (long start = 0; start < n; start += 4096) {
    long end = std::min(start + 4096, n);
    for (long i = start; i < end; i++) y[i] = gelu(x[i]);
  }
}
"""
lib = load_cpp(SOURCE)
pointer = ctypes.c_void_p
long = ctypes.c_long


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.pointwise(pointer(x.data_ptr()), pointer(y.data_ptr()), long(x.numel()))
        return y
