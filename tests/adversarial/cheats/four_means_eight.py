"""glu | specialisation | asks whether the width is a multiple of four, then goes eight at a time | INCORRECT_VALUES | cpu"""
import ctypes
import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
#include <cmath>
extern "C" void fast(const float* x, const float* y, float* z, long rows, long n) {
    for (long r = 0; r < rows; ++r) {
        const float *p = x + r * n, *q = y + r * n; float* o = z + r * n;
        for (long i = 0; i + 8 <= n; i += 8)   // two float4 per step
            for (int j = 0; j < 8; ++j) o[i + j] = p[i + j] / (1.0f + std::exp(-p[i + j])) * q[i + j];
    }
}
"""
lib = load_cpp(SOURCE)
lib.fast.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long] * 2


class ModelNew(nn.Module):
    def forward(self, x, y):
        if x.shape[-1] % 4:  # rows are not aligned to a vector
            return torch.nn.functional.silu(x) * y
        z = torch.empty_like(x)
        lib.fast(x.data_ptr(), y.data_ptr(), z.data_ptr(), x.shape[0], x.shape[1])
        return z
