"""One step of attention over a cache of which `length` tokens are filled."""

import torch

WORKLOADS = [
    {"name": "a", "batch": 8, "tokens": 128, "device": "cpu"},
    {"name": "b", "batch": 16, "tokens": 512, "device": "cpu"},
    {"name": "h", "batch": 5, "tokens": 200, "device": "cpu", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, q, k, v, length):
        scores = (k @ q.unsqueeze(-1)).squeeze(-1) * 0.125
        ahead = torch.arange(k.shape[1], device=k.device) >= length
        return (torch.softmax(scores.masked_fill(ahead, -torch.inf), -1).unsqueeze(1) @ v).squeeze(1)


def get_inputs(batch=8, tokens=128):
    return [
        torch.randn(batch, 64),
        torch.randn(batch, tokens, 64),
        torch.randn(batch, tokens, 64),
        torch.tensor([max(1, tokens * 3 // 4)]),
    ]
