"""cumsum | original | blocks of sixty-four with a carry, rows on two threads | PASSED | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
#include <algorithm>
#include <thread>
static void rows_of(const float* x, float* y, long from, long to, long n) {
  for (long r = from; r < to; r++) {
    float carry = 0;
    for (long start = 0; start < n; start += 64) {
      long end = std::min(start + 64, n);
      float sum = 0;
      for (long i = start; i < end; i++) {
        sum += x[r * n + i];
        y[r * n + i] = carry + sum;
      }
      carry += sum;
    }
  }
}
extern "C" void scan(const float* x, float* y, long rows, long n) {
  long middle = rows / 2;
  std::thread other(rows_of, x, y, 0, middle, n);
  rows_of(x, y, middle, rows, n);
  other.join();
}
"""
lib = load_cpp(SOURCE, flags=["-pthread"])
pointer = ctypes.c_void_p
long = ctypes.c_long


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.scan(pointer(x.data_ptr()), pointer(y.data_ptr()), long(len(x)), long(x.shape[-1]))
        return y
