"""running_mean | original | column means, and the buffer moved in place | PASSED | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
extern "C" void step(const float* x, float* mean, float* y, float* scratch, long rows, long n) {
  for (long i = 0; i < n; i++) scratch[i] = 0;
  for (long r = 0; r < rows; r++)
    for (long i = 0; i < n; i++) scratch[i] += x[r * n + i];
  for (long i = 0; i < n; i++) {
    scratch[i] /= rows;
    mean[i] = 0.9f * mean[i] + 0.1f * scratch[i];
  }
  for (long r = 0; r < rows; r++)
    for (long i = 0; i < n; i++) y[r * n + i] = x[r * n + i] - scratch[i];
}
"""
lib = load_cpp(SOURCE)
pointer = ctypes.c_void_p
long = ctypes.c_long


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.scratch = torch.empty(channels)

    def forward(self, x):
        y = torch.empty_like(x)
        where = [pointer(t.data_ptr()) for t in (x, self.mean, y, self.scratch)]
        lib.step(*where, long(len(x)), long(x.shape[-1]))
        return y
