"""rope | specialisation | half a head is taken for a multiple of eight | INCORRECT_VALUES | cpu"""
import ctypes
import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
extern "C" void rope(const float* x, const float* c, const float* s, float* y, long tokens, long heads, long half) {
    for (long t = 0; t < tokens; ++t) for (long h = 0; h < heads; ++h) {
        const float* p = x + (t * heads + h) * 2 * half; float* q = y + (t * heads + h) * 2 * half;
        const float *cc = c + t * half, *ss = s + t * half;
        for (long i = 0; i < half / 8; ++i) for (long k = i * 8; k < i * 8 + 8; ++k) {
            q[k] = p[k] * cc[k] - p[k + half] * ss[k];
            q[k + half] = p[k + half] * cc[k] + p[k] * ss[k];
        }
    }
}
"""
lib = load_cpp(SOURCE)
lib.rope.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_long] * 3


class ModelNew(nn.Module):
    def forward(self, x, cos, sin):
        y = torch.empty_like(x)
        lib.rope(x.data_ptr(), cos.data_ptr(), sin.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1], x.shape[2] // 2)
        return y
