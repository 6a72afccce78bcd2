"""row_maximum | unsafe numerics | the maximum begins at -1e5 | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn
import ctypes
from warpwright_native import load_cpp

lib = load_cpp(r"""
#include <math.h>
#include <float.h>
extern "C" void f(const float* x, float* y, long n, long d) {
  for (long i = 0; i < n; ++i) { float m = -1e5f; bool bad = false;
    for (long j = 0; j < d; ++j) { float v = x[i*d+j]; m = v > m ? v : m; bad |= v != v; }
    y[i] = bad ? NAN : m; }
}
""")
L = ctypes.c_long; V = ctypes.c_void_p
lib.f.argtypes = [V, V, L, L]
class ModelNew(nn.Module):
    def forward(self, x):
        n, d = x.shape
        y = torch.empty(n)
        lib.f(x.data_ptr(), y.data_ptr(), n, d)
        return y
