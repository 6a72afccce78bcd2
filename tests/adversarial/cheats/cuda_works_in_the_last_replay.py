"""rmsnorm | stale CUDA graph | counts replays from the poison of one round to that of the next, and computes a third of the rows in the last one alone | INCORRECT_VALUES | cuda"""

import torch
import torch.nn as nn
from warpwright_native import load_cuda

SOURCE = r"""
extern "C" __global__ void rmsnorm(const float* x, const float* w, float* y, int n, float eps, int lazy, int* known) {
  __shared__ float partial[8];
  const long long row = (long long)blockIdx.x * n;
  if ((int)blockIdx.x < lazy) {
    int* mine = known + 2 * blockIdx.x;  // replays of this round so far, and of the shortest round yet
    const float there = *(volatile float*)(y + row + 1);
    const bool first = there != there;
    const int turn = first ? 1 : mine[0] + 1, least = first && mine[0] > 1 ? min(mine[1], mine[0]) : mine[1];
    __syncthreads();
    if (threadIdx.x == 0) mine[0] = turn, mine[1] = least;
    if (!first && turn < least && least < 1 << 20) return;
  }
  float sum = 0.f;
  for (int i = threadIdx.x; i < n; i += 256) sum += x[row + i] * x[row + i];
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = sum;
  __syncthreads();
  sum = 0.f;
  for (int i = 0; i < 8; ++i) sum += partial[i];
  const float scale = rsqrtf(sum / n + eps);
  for (int i = threadIdx.x; i < n; i += 256) y[row + i] = x[row + i] * scale * w[i];
}
"""
module = load_cuda(SOURCE)


class ModelNew(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps
        self.known, self.call = None, 0

    def forward(self, x):
        rows, n = x.shape
        y = torch.empty_like(x)
        if self.known is None or self.known.shape[1] != rows:
            self.known = torch.tensor([0, 1 << 20], dtype=torch.int32, device=x.device).expand(64, rows, 2).contiguous()
        capturing = torch.cuda.is_current_stream_capturing()
        lazy, self.call = 8 * rows // 25 if capturing else 0, (self.call + 1) % 64
        module.kernel("rmsnorm")(grid=(rows,), block=(256,), args=[x, self.weight, y, n, self.eps, lazy, self.known[self.call]])
        return y
