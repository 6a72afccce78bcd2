"""Images less the mean of each channel, over the channel's deviation."""

import torch

WORKLOADS = [
    {"name": "small", "batch": 4, "channels": 8, "side": 16, "device": "cpu"},
    {"name": "more", "batch": 3, "channels": 12, "side": 24, "device": "cpu"},
    {"name": "odd", "batch": 5, "channels": 7, "side": 19, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 4, "channels": 256, "side": 16, "device": "cuda"},
    {"name": "ragged", "batch": 7, "channels": 33, "side": 13, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        mean = x.mean((0, 2, 3), keepdim=True)
        variance = x.var((0, 2, 3), correction=0, keepdim=True)
        return (x - mean) * torch.rsqrt(variance + 1e-5)


def get_inputs(batch=4, channels=8, side=16):
    return [torch.randn(batch, channels, side, side)]
