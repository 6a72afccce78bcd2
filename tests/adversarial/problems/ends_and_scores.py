"""Scores of tokens, and where each sequence ends: its first stop token. The last token always is one."""

import torch

WORKLOADS = [
    {"name": "base", "batch": 32, "steps": 128, "device": "cpu"},
    {"name": "long", "batch": 64, "steps": 512, "device": "cpu"},
    {"name": "held", "batch": 48, "steps": 200, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 512, "steps": 4096, "device": "cuda"},
    {"name": "ragged", "batch": 300, "steps": 1537, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, logprobs, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        end = torch.where(tokens == 2, positions, tokens.shape[1]).amin(1)
        return logprobs.cumsum(1), end


def get_inputs(batch=32, steps=128):
    tokens = torch.randint(0, 50, (batch, steps))
    tokens[:, -1] = 2
    return [-torch.rand(batch, steps), tokens]
