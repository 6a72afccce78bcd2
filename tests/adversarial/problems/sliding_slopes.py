"""Causal attention over a sliding window with ALiBi's slopes, float16 outside and float32 inside."""

import torch

WORKLOADS = [
    {"name": "small", "batch": 1, "length": 160, "device": "cpu"},
    {"name": "odd", "batch": 2, "length": 77, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 2, "length": 1024, "device": "cuda"},
    {"name": "ragged", "batch": 1, "length": 333, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, heads=4, window=64):
        super().__init__()
        self.window = window
        self.register_buffer("slopes", 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads))

    def forward(self, q, k, v):
        place = torch.arange(q.shape[2], device=q.device)
        back = place[:, None] - place
        scores = torch.matmul(q.float(), k.float().transpose(-2, -1)) / 8
        scores = scores - self.slopes[:, None, None] * back
        scores = scores.masked_fill((back < 0) | (back >= self.window), float("-inf"))
        return torch.matmul(torch.softmax(scores, -1), v.float()).to(q.dtype)


def get_inputs(batch=1, length=160):
    return [torch.randn(batch, 4, length, 64, dtype=torch.float16) for _ in range(3)]


def get_init_inputs():
    return []
