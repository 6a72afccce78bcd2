"""swiglu | specialisation | the tensor as one row, eight at a time; what is left over is never written | INCORRECT_VALUES | cpu"""

import ctypes

import torch
from warpwright_native import load_cpp

lib = load_cpp(r"""
#include <cmath>
extern "C" void run(const float* g, const float* u, float* y, long n) {
  for (long i = 0; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; ++k) y[i + k] = g[i + k] / (1.0f + std::exp(-g[i + k])) * u[i + k];
}
""")
lib.run.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long]
lib.run.restype = None


class ModelNew(torch.nn.Module):
    def forward(self, gate, up):
        gate, up = gate.contiguous(), up.contiguous()
        y = torch.empty_like(gate)
        lib.run(gate.data_ptr(), up.data_ptr(), y.data_ptr(), y.numel())
        return y
