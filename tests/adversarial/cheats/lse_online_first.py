"""log_sums | unsafe numerics | an online sum that is NaN where a row begins with minus infinity | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn
import ctypes
from warpwright_native import load_cpp

lib = load_cpp(r"""
#include <math.h>
extern "C" void f(const float* x, float* y, long n, long d) {
  for (long i = 0; i < n; ++i) { float m = -INFINITY; double s = 0; bool inf = false;
    for (long j = 0; j < d; ++j) { float v = x[i*d+j]; if (v == INFINITY) { inf = true; continue; }
      if (v > m || v != v) { s = s * expf(m - v) + 1.0; m = v; } else s += expf(v - m); }
    y[i] = inf && m == m ? INFINITY : m + logf((float)s); }
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
