"""argmax | original | two halves of each row, then the better one | PASSED | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
#include <cmath>
static inline bool better(float a, float b) { return a > b || (std::isnan(a) && !std::isnan(b)); }
static long best(const float* p, long from, long to) {
  long at = from;
  for (long i = from + 1; i < to; i++)
    if (better(p[i], p[at])) at = i;
  return at;
}
extern "C" void argmax(const float* x, long* y, long rows, long n) {
  for (long r = 0; r < rows; r++) {
    const float* p = x + r * n;
    long half = n / 2;
    long right = best(p, half, n);
    if (half == 0) { y[r] = right; continue; }
    long left = best(p, 0, half);
    y[r] = better(p[right], p[left]) ? right : left;
  }
}
"""
lib = load_cpp(SOURCE)
pointer = ctypes.c_void_p
long = ctypes.c_long


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(len(x), dtype=torch.int64)
        lib.argmax(pointer(x.data_ptr()), pointer(y.data_ptr()), long(len(x)), long(x.shape[-1]))
        return y
