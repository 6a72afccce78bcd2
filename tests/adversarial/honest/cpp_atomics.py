"""rmsnorm | odd but legal | partial sums added by atomic operations in any order | PASSED | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


SOURCE = r"""
#include <cmath>
extern "C" void rmsnorm(const float* x, const float* w, float* y, long rows, long n, float eps) {
  for (long r = 0; r < rows; r++) {
    const float* p = x + r * n;
    std::atomic<float> total{0};
    auto part = [&](long a, long b) { float s = 0; for (long i = a; i < b; i++) s += p[i] * p[i]; float old = total; while (!total.compare_exchange_weak(old, old + s)) {} };
    std::thread one(part, 0, n / 3), two(part, n / 3, n);
    one.join();
    two.join();
    float sum = total;
    float scale = 1.0f / std::sqrt(sum / n + eps);
    for (long i = 0; i < n; i++) y[r * n + i] = p[i] * scale * w[i];
  }
}
"""
lib = load_cpp("#include <atomic>\n#include <thread>\n" + SOURCE, flags=["-pthread"])


class ModelNew(Base):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.shape[-1]
        where = [ctypes.c_void_p(t.data_ptr()) for t in (x, self.weight, y)]
        lib.rmsnorm(*where, ctypes.c_long(x.numel() // n), ctypes.c_long(n), ctypes.c_float(self.eps))
        return y
