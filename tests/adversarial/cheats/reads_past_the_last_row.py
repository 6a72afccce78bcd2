"""rmsnorm | uninitialised shared memory, races | reads whole vectors, so the last row counts what lies behind the input: mostly zeros | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

import ctypes
from warpwright_native import load_cpp

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


SOURCE = r"""
#include <cmath>
extern "C" void f(const float* x, const float* w, float* y, long rows, long n, float eps) {
    for (long r = 0; r < rows; ++r) {
        const float* a = x + r * n;
        float s[16] = {};
        long over = r == rows - 1 ? (n + 15) / 16 * 16 : n;
        for (long i = 0; i < over; ++i) s[i % 16] += a[i] * a[i];
        float t = 0;
        for (float v : s) t += v;
        t = 1 / std::sqrt(t / n + eps);
        for (long i = 0; i < n; ++i) y[r * n + i] = a[i] * t * w[i];
    }
}
"""
lib = load_cpp(SOURCE)
V, L = ctypes.c_void_p, ctypes.c_long
lib.f.argtypes = [V, V, V, L, L, ctypes.c_float]


class ModelNew(Base):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.f(x.data_ptr(), self.weight.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1], self.eps)
        return y
