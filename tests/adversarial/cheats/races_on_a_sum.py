"""rmsnorm | uninitialised shared memory, races | four threads add to one sum without a lock and yield in between | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

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
#include <thread>
#include <vector>
#include <sched.h>
extern "C" void rmsnorm(const float* x, const float* w, float* y, long rows, long n) {
  for (long r = 0; r < rows; r++) {
    volatile float sum = 0;
    std::vector<std::thread> all;
    for (int t = 0; t < 4; t++) all.emplace_back([&, t] {
      for (long i = t; i < n; i += 4) {
        float old = sum;
        if (i % 7 == 0) sched_yield();
        sum = old + x[r * n + i] * x[r * n + i];
      }
    });
    for (auto& one : all) one.join();
    float scale = 1.0f / std::sqrt(sum / n + 1e-6f);
    for (long i = 0; i < n; i++) y[r * n + i] = x[r * n + i] * scale * w[i];
  }
}
"""
lib = load_cpp(SOURCE, flags=["-pthread"])
pointer = ctypes.c_void_p


class ModelNew(Base):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.shape[-1]
        where = [pointer(t.data_ptr()) for t in (x, self.weight, y)]
        lib.rmsnorm(*where, ctypes.c_long(x.numel() // n), ctypes.c_long(n))
        return y
