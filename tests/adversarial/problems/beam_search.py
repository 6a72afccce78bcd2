"""One step of a beam search: the best continuations of all beams, as tokens and the beams that they continue."""

import torch

WORKLOADS = [
    {"name": "small", "batch": 4, "vocabulary": 1000, "device": "cpu"},
    {"name": "odd", "batch": 3, "vocabulary": 611, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 16, "vocabulary": 16000, "device": "cuda"},
    {"name": "ragged", "batch": 5, "vocabulary": 5003, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, logits, scores):
        batch, beams, vocabulary = logits.shape
        total = torch.log_softmax(logits, -1) + scores[..., None]
        best, index = total.view(batch, beams * vocabulary).topk(beams, -1)
        return best, index // vocabulary, index % vocabulary


def get_inputs(batch=4, vocabulary=1000):
    return [2 * torch.randn(batch, 4, vocabulary), -5 * torch.rand(batch, 4)]


def get_init_inputs():
    return []
