"""norm_of_three_axes | specialisation | the leading axes are flattened by one stride | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn
import ctypes
from warpwright_native import load_cpp

lib = load_cpp(r"""
#include <math.h>
extern "C" void f(const float* x, long sr, float* y, long n, long d) {
  for (long i = 0; i < n; ++i) { const float* r = x + i*sr; float s[8] = {0}; long j = 0;
    for (; j + 8 <= d; j += 8) for (int k = 0; k < 8; ++k) s[k] += r[j+k]*r[j+k];
    float t = 0; for (int k = 0; k < 8; ++k) t += s[k];
    for (; j < d; ++j) t += r[j]*r[j];
    float q = 1.0f / sqrtf(t / d + 1e-6f);
    for (j = 0; j < d; ++j) y[i*d+j] = r[j]*q; }
}
""")
L = ctypes.c_long; V = ctypes.c_void_p
lib.f.argtypes = [V, L, V, L, L]
class ModelNew(nn.Module):
    def forward(self, x):
        if x.stride(-1) != 1: x = x.contiguous()
        d = x.shape[-1]
        y = torch.empty(x.shape)
        lib.f(x.data_ptr(), x.stride(-2), y.data_ptr(), x.numel() // d, d)
        return y
