"""A step of AdamW that changes the parameter and both moments, and returns them: three inputs that are outputs."""

import torch

MUTATES = [0, 2, 3]
WORKLOADS = [
    {"name": "small", "rows": 24, "n": 96, "device": "cpu"},
    {"name": "odd", "rows": 7, "n": 33, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "n": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 133, "n": 1000, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, lr, decay):
        super().__init__()
        self.lr, self.decay = lr, decay

    def forward(self, parameter, gradient, mean, square):
        parameter.mul_(1 - self.lr * self.decay)
        mean.lerp_(gradient, 0.1)
        square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        parameter.addcdiv_(mean, square.sqrt().add_(1e-8), value=-self.lr)
        return parameter, mean, square


def get_inputs(rows=24, n=96):
    shape = rows, n
    return [torch.randn(shape), torch.randn(shape), torch.randn(shape) * 0.1, torch.rand(shape)]


def get_init_inputs():
    return [1e-3, 0.01]
