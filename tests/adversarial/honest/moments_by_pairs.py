"""moments_bitwise | odd but legal | sums by pairs, in an order of their own that is always the same | PASSED | cpu"""

import ctypes
import torch
import torch.nn as nn
from warpwright_native import load_cpp

lib = load_cpp(r"""
struct Two { float s, q; };
static Two walk(const float* x, long n) {
  if (n <= 128) {
    float s[8] = {0}, q[8] = {0}; long j = 0;
    for (; j + 8 <= n; j += 8) for (int k = 0; k < 8; ++k) { s[k] += x[j + k]; q[k] += x[j + k] * x[j + k]; }
    for (; j < n; ++j) { s[0] += x[j]; q[0] += x[j] * x[j]; }
    return {((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])), ((q[0] + q[1]) + (q[2] + q[3])) + ((q[4] + q[5]) + (q[6] + q[7]))};
  }
  const long h = n / 16 * 8;
  const Two a = walk(x, h), b = walk(x + h, n - h);
  return {a.s + b.s, a.q + b.q};
}
extern "C" void stats(const float* x, float* s, float* q, long rows, long n) {
  for (long i = 0; i < rows; ++i) { const Two t = walk(x + i * n, n); s[i] = t.s; q[i] = t.q; }
}
""")
lib.stats.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long] * 2


class ModelNew(nn.Module):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2:
            return x.sum(-1), (x * x).sum(-1)
        x = x.contiguous()
        s, q = x.new_empty(len(x)), x.new_empty(len(x))
        lib.stats(x.data_ptr(), s.data_ptr(), q.data_ptr(), *x.shape)
        return s, q
