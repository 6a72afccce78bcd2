"""An honest kernel, replayed from a CUDA graph of the module's own, in which CUDA may allocate nothing."""

import torch
import triton
import triton.language as tl


@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        held, n = x.clone(), x.numel()
        grid = (triton.cdiv(n, 1024),)
        doubled[grid](held, torch.empty_like(held), n, BLOCK=1024)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = torch.empty_like(held)
            doubled[grid](held, y, n, BLOCK=1024)
        graph.replay()
        return y.clone()
