"""gated_general | specialisation | whatever is not row after row is taken for column after column | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn
import ctypes
from warpwright_native import load_cpp

lib = load_cpp(r"""
#include <math.h>
extern "C" void f(const float* x, long sr, long sc, const float* g, float* y, long n, long d) {
  for (long i = 0; i < n; ++i) for (long j = 0; j < d; ++j) y[i*d+j] = x[i*sr+j*sc] / (1.0f + expf(-g[j]));
}
""")
L = ctypes.c_long; V = ctypes.c_void_p
lib.f.argtypes = [V, L, L, V, V, L, L]
class ModelNew(nn.Module):
    def forward(self, x, g):
        n, d = x.shape
        y = torch.empty(n, d)
        g = g.contiguous()
        if x.stride(1) == 1: sr, sc = x.stride(0), 1
        else: sr, sc = 1, x.stride(1)
        lib.f(x.data_ptr(), sr, sc, g.data_ptr(), y.data_ptr(), n, d)
        return y
