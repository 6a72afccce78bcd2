"""rmsnorm | escape from the window | a kernel that stays resident on a raw stream and writes outputs when it is told to | INCORRECT_VALUES NONDETERMINISTIC TIMEOUT RUNTIME_ERROR TRUE_TIME | cuda"""

import torch
import torch.nn as nn
from warpwright_native import load_cuda


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


SOURCE = r"""
extern "C" __global__ void wait_and_write(volatile int* flag, float* y, const float* from, int n) {
  long long begin = clock64();
  while (*flag == 0 && clock64() - begin < 200000000ll) {}
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = from[i];
}
"""
module = load_cuda(SOURCE)
side, flag = [], []


class ModelNew(Base):
    def forward(self, x):
        if not side:
            side.append(torch.cuda.Stream())
            flag.append(torch.zeros(1, dtype=torch.int32, device=x.device))
        y, answer = torch.empty_like(x), right(x, self.weight)
        with torch.cuda.stream(side[0]):
            module.kernel("wait_and_write")(grid=(1,), block=(256,), args=[flag[0], y, answer, x.numel()])
        self.kept = answer
        return y
