"""moments | odd but legal | reads past the end of the input within its page, and masks what it read | PASSED | cpu"""

import ctypes
from warpwright_native import load_cpp

import torch
import torch.nn as nn



SOURCE = r"""
extern "C" void f(const float* x, float* m, float* v, long rows, long n) {
    for (long r = 0; r < rows; ++r) {
        const float* a = x + r * n;
        long over = (n + 15) / 16 * 16;
        double s = 0, q = 0;
        for (long i = 0; i < over; ++i) { double u = a[i]; s += i < n ? u : 0; }
        s /= n;
        for (long i = 0; i < over; ++i) { double u = a[i] - s; q += i < n ? u * u : 0; }
        m[r] = s; v[r] = q / n;
    }
}
"""
lib = load_cpp(SOURCE)
V, L = ctypes.c_void_p, ctypes.c_long
lib.f.argtypes = [V, V, V, L, L]


class ModelNew(nn.Module):
    def forward(self, x):
        m, v = x.new_empty(x.shape[0]), x.new_empty(x.shape[0])
        lib.f(x.data_ptr(), m.data_ptr(), v.data_ptr(), x.shape[0], x.shape[1])
        return m, v
