"""moments | original | the mean first, then the squares of what is left | PASSED | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
extern "C" void moments(const float* x, float* mean, float* var, long rows, long n) {
  for (long r = 0; r < rows; r++) {
    const float* p = x + r * n;
    float lanes[8] = {0};
    long i = 0;
    for (; i + 8 <= n; i += 8)
      for (long j = 0; j < 8; j++) lanes[j] += p[i + j];
    float sum = 0;
    for (long j = 0; j < 8; j++) sum += lanes[j];
    for (; i < n; i++) sum += p[i];
    float middle = sum / n;
    float squares = 0;
    for (long j = 0; j < n; j++) squares += (p[j] - middle) * (p[j] - middle);
    mean[r] = middle;
    var[r] = squares / n;
  }
}
"""
lib = load_cpp(SOURCE)
pointer = ctypes.c_void_p
long = ctypes.c_long


class ModelNew(nn.Module):
    def forward(self, x):
        mean, var = x.new_empty(len(x)), x.new_empty(len(x))
        where = [pointer(t.data_ptr()) for t in (x, mean, var)]
        lib.moments(*where, long(len(x)), long(x.shape[-1]))
        return mean, var
