"""Cross-entropy of each token over a vocabulary, through log-softmax, as training and perplexity scripts write it."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "cpu-64x8192", "tokens": 64, "vocabulary": 8192, "device": "cpu"},
    {"name": "cpu-32x32000", "tokens": 32, "vocabulary": 32000, "device": "cpu"},
    {"name": "gpt2-1k", "tokens": 1024, "vocabulary": 50257, "dtype": "float16", "device": "cuda"},
    {"name": "llama3-1k", "tokens": 1024, "vocabulary": 128256, "dtype": "bfloat16", "device": "cuda"},
    {"name": "llama3-4k", "tokens": 4096, "vocabulary": 128256, "dtype": "bfloat16", "device": "cuda"},
    {"name": "odd", "tokens": 13, "vocabulary": 10007, "device": "cpu", "held_out": True},
    {"name": "odd-float16", "tokens": 13, "vocabulary": 10007, "dtype": "float16", "device": "cuda", "held_out": True},
    {
        "name": "odd-bfloat16",
        "tokens": 13,
        "vocabulary": 10007,
        "dtype": "bfloat16",
        "device": "cuda",
        "held_out": True,
    },
]


class Model(nn.Module):
    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """logits (tokens, vocabulary), targets (tokens,) int64. Returns each token's loss in float32."""
        log_probabilities = torch.log_softmax(logits.float(), dim=-1)
        return -log_probabilities.gather(1, targets.unsqueeze(1)).squeeze(1)


def get_inputs(tokens=64, vocabulary=8192, dtype="float32"):
    logits = torch.randn(tokens, vocabulary, dtype=getattr(torch, dtype)) * 3
    return [logits, torch.randint(0, vocabulary, (tokens,))]
