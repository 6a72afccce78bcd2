"""general_rows | odd but legal | rows of any stride, by strides in C++ | PASSED | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
#include <cmath>
extern "C" void rms(const float* x, float* y, long rows, long n, long across, long along) {
  for (long r = 0; r < rows; r++) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += (double)x[r * across + i * along] * x[r * across + i * along];
    y[r] = (float)std::sqrt(sum / n);
  }
}
"""
lib = load_cpp(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.new_empty(len(x))
        where = [ctypes.c_void_p(t.data_ptr()) for t in (x, y)]
        lib.rms(*where, *map(ctypes.c_long, (*x.shape, *x.stride())))
        return y
