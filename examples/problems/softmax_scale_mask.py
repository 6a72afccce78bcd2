"""Attention probabilities: scale the scores, mask the padded keys, softmax over the keys."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "cpu-encoder", "batch": 2, "heads": 8, "queries": 64, "keys": 256, "device": "cpu"},
    {"name": "cpu-decode", "batch": 4, "heads": 16, "queries": 1, "keys": 2048, "device": "cpu"},
    {"name": "encoder", "batch": 8, "heads": 16, "queries": 512, "keys": 512, "dtype": "bfloat16", "device": "cuda"},
    {"name": "prefill", "batch": 1, "heads": 32, "queries": 2048, "keys": 2048, "dtype": "bfloat16", "device": "cuda"},
    {"name": "decode-4k", "batch": 32, "heads": 32, "queries": 1, "keys": 4096, "dtype": "bfloat16", "device": "cuda"},
    {"name": "odd", "batch": 3, "heads": 5, "queries": 17, "keys": 333, "device": "cpu", "held_out": True},
    {"name": "long-keys", "batch": 1, "heads": 2, "queries": 8, "keys": 5000, "device": "cpu", "held_out": True},
    {
        "name": "odd-cuda",
        "batch": 3,
        "heads": 5,
        "queries": 17,
        "keys": 333,
        "dtype": "bfloat16",
        "device": "cuda",
        "held_out": True,
    },
    {
        "name": "long-keys-cuda",
        "batch": 1,
        "heads": 2,
        "queries": 8,
        "keys": 5000,
        "dtype": "bfloat16",
        "device": "cuda",
        "held_out": True,
    },
]


class Model(nn.Module):
    def __init__(self, scale: float = 0.125):
        super().__init__()
        self.scale = scale

    def forward(self, scores: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        """scores (batch, heads, queries, keys); padding (batch, 1, 1, keys), True where a key is padding."""
        scores = scores * self.scale
        scores = scores.masked_fill(padding, float("-inf"))
        return torch.softmax(scores, dim=-1)


def get_inputs(batch=2, heads=8, queries=64, keys=256, dtype="float32"):
    scores = torch.randn(batch, heads, queries, keys, dtype=getattr(torch, dtype)) * 4
    lengths = torch.randint(1 + keys // 2, keys + 1, (batch, 1, 1, 1))
    return [scores, torch.arange(keys).view(1, 1, 1, keys) >= lengths]


def get_init_inputs():
    return [0.125]
