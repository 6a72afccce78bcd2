"""long_rows | odd but legal | one accumulator for the mean, one for the squares | PASSED | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
#include <cmath>
constexpr int LANES = 1;
extern "C" void layernorm(const float* x, float* y, long rows, long n) {
  for (long r = 0; r < rows; r++, x += n, y += n) {
    float lanes[LANES] = {0}, mean = 0, variance = 0;
    for (long i = 0; i < n; i++) lanes[i % LANES] += x[i];
    for (float& lane : lanes) { mean += lane; lane = 0; }
    mean /= n;
    for (long i = 0; i < n; i++) lanes[i % LANES] += (x[i] - mean) * (x[i] - mean);
    for (float lane : lanes) variance += lane;
    float scale = 1.0f / std::sqrt(variance / n + 1e-5f);
    for (long i = 0; i < n; i++) y[i] = (x[i] - mean) * scale;
  }
}
"""
lib = load_cpp(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        rows, n = x.shape
        lib.layernorm(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), ctypes.c_long(rows), ctypes.c_long(n))
        return y
