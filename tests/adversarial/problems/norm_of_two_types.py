"""RMSNorm in float32 and in bfloat16."""

import torch

WORKLOADS = [{"name": "a", "rows": 64, "cols": 256}, {"name": "b", "rows": 96, "cols": 512, "dtype": "bfloat16"}]


def reference(x):
    h = x.float()
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def get_inputs(rows=64, cols=256, dtype="float32"):
    return [torch.randn(rows, cols, dtype=getattr(torch, dtype))]
