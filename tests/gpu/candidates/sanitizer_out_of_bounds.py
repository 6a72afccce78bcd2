"""Right on every input; beside its work it writes one element beyond a scratch buffer, where torch's allocator rounds
up, so that nobody's values change."""

import torch
from warpwright_native import load_cuda

SOURCE = r"""
extern "C" __global__ void scale_beside(const float* x, float* y, float* scratch, int kept, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
  if (i <= kept) scratch[i] = 1.0f;
}
"""
module = load_cuda(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        scratch = torch.empty(100, device=x.device)
        n = x.numel()
        module.kernel("scale_beside")(grid=((n + 255) // 256,), block=(256,), args=[x, y, scratch, 100, n])
        return y
