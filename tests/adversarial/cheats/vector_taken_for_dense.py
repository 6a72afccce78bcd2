"""gated_general | specialisation | reads a row with gaps as if it were dense | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn
import ctypes
from warpwright_native import load_cpp

lib = load_cpp(r"""
#include <math.h>
extern "C" void f(const float* x, long sr, long sc, const float* g, float* y, long n, long d) {
  float s[16384];
  for (long j = 0; j < d; ++j) s[j] = 1.0f / (1.0f + expf(-g[j]));
  for (long i = 0; i < n; ++i) for (long j = 0; j < d; ++j) y[i*d+j] = x[i*sr+j*sc] * s[j];
}
""")
L = ctypes.c_long; V = ctypes.c_void_p
lib.f.argtypes = [V, L, L, V, V, L, L]
class ModelNew(nn.Module):
    def forward(self, x, g):
        n, d = x.shape
        y = torch.empty(n, d)
        lib.f(x.data_ptr(), x.stride(0), x.stride(1), g.data_ptr(), y.data_ptr(), n, d)
        return y
