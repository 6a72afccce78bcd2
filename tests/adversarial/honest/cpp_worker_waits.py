"""rmsnorm | odd but legal | a worker thread of its own does the work of each call, and the caller waits for it | PASSED | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp

SOURCE = r"""
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>
static std::mutex guard;
static std::condition_variable changed;
static const float *x, *w;
static float *y, eps;
static long rows, n;
static bool wanted = false;
static void serve() {
  for (;;) {
    std::unique_lock<std::mutex> held(guard);
    changed.wait(held, [] { return wanted; });
    for (long r = 0; r < rows; r++) {
      const float* p = x + r * n;
      float sum = 0;
      for (long i = 0; i < n; i++) sum += p[i] * p[i];
      float scale = 1.0f / std::sqrt(sum / n + eps);
      for (long i = 0; i < n; i++) y[r * n + i] = p[i] * scale * w[i];
    }
    wanted = false;
    changed.notify_all();
  }
}
extern "C" void norm(const float* a, const float* b, float* c, long count, long width, float e) {
  static bool begun = (std::thread(serve).detach(), true);
  (void)begun;
  std::unique_lock<std::mutex> held(guard);
  x = a, w = b, y = c, rows = count, n = width, eps = e;
  wanted = true;
  changed.notify_all();
  changed.wait(held, [] { return !wanted; });
}
"""
lib = load_cpp(SOURCE)
V, L = ctypes.c_void_p, ctypes.c_long
lib.norm.argtypes = [V, V, V, L, L, ctypes.c_float]


class ModelNew(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x):
        y = torch.empty_like(x)
        n = x.shape[-1]
        lib.norm(x.data_ptr(), self.weight.data_ptr(), y.data_ptr(), x.numel() // n, n, self.eps)
        return y
