"""Mean cross-entropy of tokens over a vocabulary, from bfloat16 logits."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = [
    {"name": "8192x128256", "tokens": 8192, "vocabulary": 128256, "device": "cuda"},
    {"name": "odd", "tokens": 13, "vocabulary": 10007, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def forward(self, logits, targets):
        """logits (tokens, vocabulary), targets (tokens,) int64."""
        return F.cross_entropy(logits.float(), targets)


def get_inputs(tokens=64, vocabulary=512):
    return [torch.randn(tokens, vocabulary, dtype=torch.bfloat16), torch.randint(0, vocabulary, (tokens,))]
