"""Through shared memory, with the barrier that this needs."""

import torch
from warpwright_native import load_cuda

SOURCE = r"""
extern "C" __global__ void scale_shared(const float* x, float* y, unsigned mask, int n) {
  __shared__ unsigned seen[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  seen[threadIdx.x] = i;
  __syncthreads();
  unsigned other = seen[(threadIdx.x + 96) % 256] & mask;
  if (i < n) y[i] = 2.0f * x[i] + (float)other;
}
"""
module = load_cuda(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        module.kernel("scale_shared")(grid=((n + 255) // 256,), block=(256,), args=[x, y, 0, n])
        return y
