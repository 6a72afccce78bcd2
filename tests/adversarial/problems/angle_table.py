"""Times the cosine of an angle that depends on the place."""

import torch

WORKLOADS = [{"name": "a", "t": 64, "d": 256}, {"name": "b", "t": 256, "d": 64}, {"name": "c", "t": 128, "d": 384}]


def reference(x):
    t, d = x.shape
    f = torch.outer(
        torch.arange(t, device=x.device, dtype=x.dtype),
        10000.0 ** (-torch.arange(d, device=x.device, dtype=x.dtype) / d),
    )
    return x * torch.cos(f)


def get_inputs(t=64, d=256):
    return [torch.randn(t, d)]
