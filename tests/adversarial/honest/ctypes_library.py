"""rmsnorm | odd but legal | compiled by its own call of g++ and loaded by ctypes, argument types set | PASSED | cpu"""

import ctypes
import subprocess
import tempfile

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
extern "C" void rmsnorm(const float* x, const float* w, float* y, long rows, long n, float eps) {
  for (long r = 0; r < rows; r++) {
    float sum = 0;
    for (long i = 0; i < n; i++) sum += x[r * n + i] * x[r * n + i];
    float scale = 1.0f / std::sqrt(sum / n + eps);
    for (long i = 0; i < n; i++) y[r * n + i] = x[r * n + i] * scale * w[i];
  }
}
"""
folder = tempfile.mkdtemp()
with open(folder + "/k.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run(["g++", "-O3", "-shared", "-fPIC", "-o", folder + "/k.so", folder + "/k.cpp"], check=True)
lib = ctypes.CDLL(folder + "/k.so")
lib.rmsnorm.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long] * 2 + [ctypes.c_float]
lib.rmsnorm.restype = None


class ModelNew(Base):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.rmsnorm(x.data_ptr(), self.weight.data_ptr(), y.data_ptr(), len(x), x.shape[-1], self.eps)
        return y
