"""bias_general | specialisation | a bias that is a column of a matrix is read as if it were dense | INCORRECT_VALUES | cpu"""
import ctypes
import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
extern "C" void go(const float* x, const float* b, float* y, long rows, long n) {
    for (long r = 0; r < rows; ++r) for (long i = 0; i < n; ++i) {
        float v = x[r * n + i] + b[i];
        v = v > 0 || v != v ? v : 0;
        y[r * n + i] = v * v;
    }
}
"""
lib = load_cpp(SOURCE)
lib.go.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long] * 2


class ModelNew(nn.Module):
    def forward(self, x, bias):
        if not x.is_contiguous():
            return torch.relu(x + bias).square()
        y = torch.empty_like(x)
        lib.go(x.data_ptr(), bias.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1])
        return y
