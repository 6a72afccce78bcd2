"""rmsnorm_bf16 | original | bfloat16 in and out, float32 in between | PASSED | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
static inline float wide(uint16_t h) { uint32_t b = (uint32_t)h << 16; float f; std::memcpy(&f, &b, 4); return f; }
static inline uint16_t narrow(float f) {
  uint32_t b;
  std::memcpy(&b, &f, 4);
  if (f != f) return 0x7fc0;
  return (uint16_t)((b + 0x7fff + ((b >> 16) & 1)) >> 16);
}
extern "C" void rmsnorm(const uint16_t* x, const uint16_t* w, uint16_t* y, long rows, long n, float eps) {
  for (long r = 0; r < rows; r++) {
    const uint16_t* p = x + r * n;
    float sum = 0;
    for (long i = 0; i < n; i++) sum += wide(p[i]) * wide(p[i]);
    float scale = 1.0f / std::sqrt(sum / n + eps);
    for (long i = 0; i < n; i++) y[r * n + i] = narrow(wide(narrow(wide(p[i]) * scale)) * wide(w[i]));
  }
}
"""
lib = load_cpp(SOURCE)
pointer = ctypes.c_void_p
long = ctypes.c_long


class ModelNew(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden, dtype=torch.bfloat16))
        self.eps = eps

    def forward(self, x):
        y = torch.empty_like(x)
        n = x.shape[-1]
        where = [pointer(t.data_ptr()) for t in (x, self.weight, y)]
        lib.rmsnorm(*where, long(x.numel() // n), long(n), ctypes.c_float(self.eps))
        return y
