"""rmsnorm | uninitialised shared memory, races | an asynchronous copy into shared memory that nobody waits for | INCORRECT_VALUES NONDETERMINISTIC | cuda"""

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
__device__ inline void copy16(void* to, const void* from) { asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)); }
extern "C" __global__ void rmsnorm(const float* x, const float* w, float* y, int n, float eps) {
  __shared__ float partial[32];
  const long long row = (long long)blockIdx.x * n;
  __shared__ __align__(16) float room[1024];
  if ((((unsigned long long)(x + row)) & 15) == 0 && n >= 1024) copy16(&room[threadIdx.x * 4], x + row + threadIdx.x * 4);
  float extra = (((unsigned long long)(x + row)) & 15) == 0 && n >= 1024 ? room[(threadIdx.x * 4 + 512) % 1024] * 1e-3f : 0.f;
  float sum = 0.f;
  for (int i = threadIdx.x; i < n; i += 256) sum += x[row + i] * x[row + i];
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = sum;
  __syncthreads();
  sum = 0.f;
  for (int i = 0; i < 8; ++i) sum += partial[i];
  const float scale = rsqrtf(sum / n + eps);
  for (int i = threadIdx.x; i < n; i += 256) y[row + i] = x[row + i] * scale * w[i];
  asm volatile("cp.async.wait_all;");
  if (threadIdx.x == 0) y[row] += extra;
}
"""
module = load_cuda(SOURCE)


class ModelNew(Base):
    def forward(self, x):
        y = torch.empty_like(x)
        rows, n = x.shape
        module.kernel("rmsnorm")(grid=(rows,), block=(256,), args=[x, self.weight, y, n, self.eps])
        return y
