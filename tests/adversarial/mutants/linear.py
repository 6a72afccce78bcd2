"""linear | original | tiles of eight rows and eight columns | PASSED | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
#include <algorithm>
extern "C" void linear(const float* x, const float* w, const float* b, float* y, long m, long k, long n) {
  const long T = 8;
  for (long r0 = 0; r0 < m; r0 += T)
    for (long c0 = 0; c0 < n; c0 += T) {
      long r1 = std::min(r0 + T, m), c1 = std::min(c0 + T, n);
      for (long r = r0; r < r1; r++)
        for (long c = c0; c < c1; c++) {
          float even = 0, odd = 0;
          long i = 0;
          for (; i + 2 <= k; i += 2) {
            even += x[r * k + i] * w[c * k + i];
            odd += x[r * k + i + 1] * w[c * k + i + 1];
          }
          for (; i < k; i++) even += x[r * k + i] * w[c * k + i];
          y[r * n + c] = even + odd + b[c];
        }
    }
}
"""
lib = load_cpp(SOURCE)
pointer = ctypes.c_void_p
long = ctypes.c_long


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n, k))
        self.bias = nn.Parameter(torch.zeros(n))

    def forward(self, x):
        n, k = self.weight.shape
        y = x.new_empty(len(x), n)
        where = [pointer(t.data_ptr()) for t in (x, self.weight, self.bias, y)]
        lib.linear(*where, long(len(x)), long(k), long(n))
        return y
