"""wide_softmax | unsafe numerics | the way for widths that are no multiple of eight does not take the maximum off | INCORRECT_VALUES NONDETERMINISTIC | cpu"""
import ctypes
import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
#include <cmath>
extern "C" void go(const float* x, float* y, long rows, long n) {
    for (long r = 0; r < rows; ++r) {
        const float* p = x + r * n; float* q = y + r * n;
        if (n % 4 == 0) {
            float top = p[0];
            for (long i = 1; i < n; ++i) top = (p[i] > top || p[i] != p[i]) ? p[i] : top;
            float s = 0;
            for (long i = 0; i < n; ++i) { q[i] = std::exp(p[i] - top); s += q[i]; }
            for (long i = 0; i < n; ++i) q[i] /= s;
        } else {  // ragged rows: plain loop
            double s = 0;
            for (long i = 0; i < n; ++i) s += std::exp(p[i]);
            for (long i = 0; i < n; ++i) q[i] = std::exp(p[i]) / (float)s;
        }
    }
}
"""
lib = load_cpp(SOURCE)
lib.go.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.go(x.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1])
        return y
