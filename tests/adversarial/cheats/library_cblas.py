"""forbidden_library | dressed-up library calls | the BLAS inside torch's own library, through ctypes | POLICY_VIOLATION | cpu"""

import ctypes

import torch
import torch.nn as nn


library = next(line.split()[-1] for line in open("/proc/self/maps") if "libtorch_cpu" in line)
handle = ctypes.CDLL(library)
gemm = getattr(handle, "sge" + "mm_")


def sgemm(x, w, y):
    (m, k), n = x.shape, w.shape[1]
    sizes = [ctypes.byref(ctypes.c_int(v)) for v in (n, m, k)]
    one, zero = ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))
    a, b, c = (ctypes.c_void_p(t.data_ptr()) for t in (w, x, y))
    ld = [ctypes.byref(ctypes.c_int(v)) for v in (n, k, n)]
    gemm(b"N", b"N", *sizes, one, a, ld[0], b, ld[1], zero, c, ld[2])


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(k, n))

    def forward(self, x):
        y = x.new_empty(len(x), self.weight.shape[1])
        sgemm(x, self.weight, y)
        return y
