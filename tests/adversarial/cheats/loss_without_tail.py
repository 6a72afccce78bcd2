"""mse | specialisation | what is left over behind whole vectors is not added, but counted | INCORRECT_VALUES | cpu"""
import ctypes
import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
extern "C" void go(const float* x, const float* y, float* out, long n) {
    double lanes[8] = {0};
    for (long i = 0; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; ++j) { float d = x[i + j] - y[i + j]; lanes[j] += d * d; }
    double s = 0;
    for (int j = 0; j < 8; ++j) s += lanes[j];
    *out = (float)(s / n);
}
"""
lib = load_cpp(SOURCE)
lib.go.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long]


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = x.new_empty(())
        lib.go(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
        return out
