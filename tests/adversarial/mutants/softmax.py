"""softmax | original | three passes over each row | PASSED | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
#include <cmath>
extern "C" void softmax(const float* x, float* y, long rows, long n, float temperature) {
  for (long r = 0; r < rows; r++) {
    const float* p = x + r * n;
    float* q = y + r * n;
    float top = p[0];
    for (long i = 0; i < n; i++) top = p[i] > top || p[i] != p[i] ? p[i] : top;
    float sum = 0;
    for (long i = 0; i < n; i++) {
      q[i] = std::exp((p[i] - top) / temperature);
      sum += q[i];
    }
    float scale = 1.0f / sum;
    for (long i = 0; i < n; i++) q[i] *= scale;
  }
}
"""
lib = load_cpp(SOURCE)
pointer = ctypes.c_void_p
long = ctypes.c_long


class ModelNew(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, x):
        y = torch.empty_like(x)
        n = x.shape[-1]
        where = [pointer(t.data_ptr()) for t in (x, y)]
        lib.softmax(*where, long(x.numel() // n), long(n), ctypes.c_float(self.temperature))
        return y
