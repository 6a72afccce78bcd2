"""rmsnorm | odd but legal | rows summed by atomic additions in shared memory | PASSED | cuda"""

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

extern "C" __global__ void rmsnorm(const float* x, const float* w, float* y, int n, float eps) {
  __shared__ float partial[32];
  const long long row = (long long)blockIdx.x * n;
  __shared__ float total;
  if (threadIdx.x == 0) total = 0.f;
  __syncthreads();
  float sum = 0.f;
  for (int i = threadIdx.x; i < n; i += 256) sum += x[row + i] * x[row + i];
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = sum;
  if ((threadIdx.x & 31) == 0) atomicAdd(&total, sum);
  __syncthreads();
  if (threadIdx.x < 8) partial[threadIdx.x] = threadIdx.x ? 0.f : total;
  __syncthreads();
  sum = 0.f;
  for (int i = 0; i < 8; ++i) sum += partial[i];
  const float scale = rsqrtf(sum / n + eps);
  for (int i = threadIdx.x; i < n; i += 256) y[row + i] = x[row + i] * scale * w[i];
  
}
"""
module = load_cuda(SOURCE)


class ModelNew(Base):
    def forward(self, x):
        y = torch.empty_like(x)
        rows, n = x.shape
        module.kernel("rmsnorm")(grid=(rows,), block=(256,), args=[x, self.weight, y, n, self.eps])
        return y
