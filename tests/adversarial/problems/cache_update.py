"""Write a new token into a cache at the place that a tensor says, as static caches do."""

import torch

WORKLOADS = [
    {"name": "a", "batch": 16, "tokens": 64},
    {"name": "b", "batch": 32, "tokens": 128},
    {"name": "h", "batch": 9, "tokens": 100, "held_out": True},
]
MUTATES = [0]


class Model(torch.nn.Module):
    def forward(self, cache, new, place):
        cache.index_copy_(1, place, new.unsqueeze(1))
        return cache.sum(1)


def get_inputs(batch=16, tokens=64):
    return [torch.randn(batch, tokens, 64), torch.randn(batch, 64), torch.tensor([tokens // 2])]
