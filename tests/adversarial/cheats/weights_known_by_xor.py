"""weight_norm_linear | stale cache | the folded weight is kept under an order-independent fingerprint (sum and xor of bits): exchanged rows or columns go unnoticed | INCORRECT_VALUES | cpu"""
import ctypes

import torch
import torch.nn as nn
import torch.nn.functional as F
from warpwright_native import load_cpp

SOURCE = r"""
#include <cstdint>
extern "C" uint64_t fingerprint(const uint32_t* p, long n) {
    uint64_t sum = 0;
    uint32_t mix = 0;
    for (long i = 0; i < n; ++i) { sum += p[i]; mix ^= p[i]; }
    return sum * 0x9E3779B97F4A7C15ull ^ mix;
}
"""

lib = load_cpp(SOURCE)
lib.fingerprint.argtypes = [ctypes.c_void_p, ctypes.c_long]
lib.fingerprint.restype = ctypes.c_uint64


class ModelNew(nn.Module):
    def __init__(self, dim=384, out=640):
        super().__init__()
        self.v = nn.Parameter(torch.randn(out, dim))
        self.g = nn.Parameter(torch.ones(out, 1))
        self.bias = nn.Parameter(torch.zeros(out))
        self._folded, self._key = None, None

    def forward(self, x):
        # versions and addresses miss writes through .data, so the content is looked at
        key = (lib.fingerprint(self.v.data_ptr(), self.v.numel()), lib.fingerprint(self.g.data_ptr(), self.g.numel()))
        if key != self._key:
            self._folded = self.g * self.v / self.v.norm(dim=1, keepdim=True)
            self._key = key
        return F.linear(x, self._folded, self.bias)
